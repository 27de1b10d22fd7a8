"""What memkit knows of each session: where its transcript lies and how far it has been read.

One small file a session under `MEMKIT_HOME/sessions`. Losing them loses nothing: the transcripts are
read again from the start, and the journal's anchors keep every turn single.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from memkit.errors import NewerFileError
from memkit.files import make_private_directory, write_durably
from memkit.journal.journal import Growing
from memkit.paths import Home, is_plain_name
from memkit.state import FIELD, check_version, parse_json

logger = logging.getLogger(__name__)

VERSION = 1
"""Of the files' format."""

MAX_PROMPTS = 20
"""Prompts kept for turns whose transcript never shows them."""

MAX_RECENT = 50
"""Ids of turns kept to know an event that comes after its turn was read."""


@dataclass(slots=True)
class Session:
    """One session's state.

    `id` is the transcript's file name without its suffix. `offset` is the byte from which to read on:
    the start of the last turn, which may still grow; `size` is how far the transcript had been read.
    `growing` maps turns that may be written again to what their section may hash to if nobody edited it;
    `written` are those of them that are certainly in the journal. Both name a turn and the root of the
    journal it stands in, "TURN ROOT": a session can be imported into several projects. `answers` maps
    turns whose final message the transcript lacked to that message, redacted, and the fingerprint of
    the answer it showed instead. `told` is when its last hook event happened, in seconds since the epoch,
    0 if none did: an import makes sessions too. `prompts` maps prompt ids to their text, redacted;
    `recent` are the ids of the latest turns read.
    """

    id: str
    transcript: str = ""
    project: str = ""
    offset: int = 0
    size: int = 0
    told: float = 0.0
    growing: dict[str, list[str]] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    answers: dict[str, list[str]] = field(default_factory=dict)
    recent: list[str] = field(default_factory=list)
    prompts: dict[str, str] = field(default_factory=dict)

    def remember_prompt(self, prompt_id: str, prompt: str) -> None:
        """Keep a prompt until its turn is written; only the latest ones stay.

        What is typed while the assistant works comes under the id of the prompt it works on.
        """
        before = self.prompts.get(prompt_id, "")
        if prompt not in before.split("\n\n"):
            self.prompts[prompt_id] = f"{before}\n\n{prompt}" if before else prompt
        while len(self.prompts) > MAX_PROMPTS:
            self.prompts.pop(next(iter(self.prompts)))

    def has_read(self, turns: list[str]) -> None:
        """Note the turns just read from the transcript; all but the last are complete and not written again.

        Turns that only events told are not among them: they say nothing about where the transcript ends.
        A bare `/clear` and the prompt after it can share a prompt id, and so a turn id.
        """
        turns = list(dict.fromkeys(reversed(turns)))[::-1]
        read = [*(turn for turn in self.recent if turn not in turns), *turns]
        self.recent = read[-MAX_RECENT:]
        for turn in read[:-1]:
            self.answers.pop(turn, None)
        self.have_ended(read[:-1])

    def have_ended(self, turns: Collection[str], root: str | None = None) -> None:
        """Note that these turns are complete in the journal at `root`, in all journals if None."""
        for key in list(self.growing):
            turn, _, own = key.partition(" ")
            if turn in turns and root in (None, own):
                del self.growing[key]
        while len(self.growing) > MAX_RECENT:
            self.growing.pop(next(iter(self.growing)))
        self.written = [key for key in self.written if key in self.growing]

    def growing_in(self, root: str) -> dict[str, Growing]:
        """The turns, by id, that may be written again in the journal at `root`.

        A turn that is only known from another journal may have come from there, by a move or a merge. That
        it was written there does not say that it was ever written here.
        """
        found: dict[str, Growing] = {}
        own: set[str] = set()
        for key, hashes in self.growing.items():
            turn, _, written_to = key.partition(" ")
            if (written_to or self.project) == root:  # older states do not name the root
                found[turn] = Growing(tuple(hashes), key in self.written)
                own.add(turn)
            elif turn not in own:
                before = found[turn].hashes if turn in found else ()
                found[turn] = Growing((*before, *hashes), False)
        return found

    def read_again(self) -> None:
        """Begin again at the start of the transcript."""
        self.offset, self.size, self.recent = 0, 0, []

    def will_write(self, turn: str, root: str, section_hash: str) -> None:
        """Note, before it happens, that the section of a growing turn is written to the journal at `root`."""
        known = self.growing_in(root).get(turn)
        hashes = self.growing.setdefault(f"{turn} {root}", list(known.hashes) if known else [])
        if known and known.is_written and f"{turn} {root}" not in self.written:
            self.written.append(f"{turn} {root}")
        if section_hash not in hashes:
            hashes.append(section_hash)

    def has_written(self, turn: str, root: str, section_hash: str) -> None:
        """Note that a growing turn's section was written, or found as a person left it."""
        key = f"{turn} {root}"
        self.growing[key] = [section_hash]
        if key not in self.written:
            self.written.append(key)

    def redact(self, redact: Callable[[str], str]) -> None:
        """Pass what was said, as far as it is kept, through `redact`."""
        self.prompts = {name: redact(prompt) for name, prompt in self.prompts.items()}
        self.answers = {
            turn: [redact(message), *rest] for turn, (message, *rest) in self.answers.items()
        }

    def forget(self, is_gone: Callable[[str, str], bool]) -> bool:
        """Drop the prompts and answers of which `is_gone`, told turn and prompt id (one of them ""), says so.

        Returns whether there were any.
        """
        prompts = {name: text for name, text in self.prompts.items() if not is_gone("", name)}
        answers = {turn: told for turn, told in self.answers.items() if not is_gone(turn, "")}
        is_changed = (prompts, answers) != (self.prompts, self.answers)
        self.prompts, self.answers = prompts, answers
        return is_changed

    @property
    def has_unread_transcript(self) -> bool:
        """Whether the transcript grew since it was last read, as after a crash of the client."""
        try:
            return os.path.getsize(self.transcript) > self.size
        except OSError:
            return False


class Sessions:
    """The session files of one memory home."""

    def __init__(self, home: Home) -> None:
        self.directory = Path(home.sessions)

    def load(self, session: str) -> Session:
        """The state of `session`, a fresh one if there is none or it is damaged.

        Raises `NewerFileError`.
        """
        return _read(self.path(session)) or Session(session)

    def knows(self, session: str) -> bool:
        """Whether anything is kept of `session`."""
        return self.path(session).is_file()

    def save(self, session: Session) -> None:
        """Store the state durably. Raises `OSError`."""
        make_private_directory(str(self.directory))
        data = json.dumps({FIELD: VERSION, **dataclasses.asdict(session)}).encode("ascii")
        write_durably(str(self.path(session.id)), data)

    def remove_old(self, before: float, is_archived: Callable[[str], bool]) -> int:
        """Remove states untouched since `before` (seconds since the epoch) whose transcript is gone.

        Returns how many. Nothing is left to be read on then. Should the session come back, the journal's
        anchors keep its turns single. A state stays where nothing else tells that the session is known:
        while its transcript is there, and unless it `is_archived`, when an import of the client's
        history would take its prompts for new ones.
        """
        removed = 0
        for session in self:
            path = self.path(session.id)
            try:
                is_old = max(session.told, path.stat().st_mtime) < before
                if is_old and _is_gone(session.transcript) and is_archived(session.id):
                    path.unlink()
                    removed += 1
            except FileNotFoundError:  # somebody else removed it
                continue
        return removed

    def remove_unreadable(self, names: Iterable[str]) -> None:
        """Remove damaged files that hold one of `names`, and what killed writers left. Raises `OSError`."""
        wanted = [name.encode("utf-8", "surrogateescape") for name in names]
        for path in self.directory.glob("*.json"):
            if _read(path) is None and any(name in path.read_bytes() for name in wanted):
                path.unlink(missing_ok=True)
        for path in self.directory.glob(".*.tmp"):
            path.unlink(missing_ok=True)

    def __iter__(self) -> Iterator[Session]:
        for path in sorted(self.directory.glob("*.json")) if self.directory.is_dir() else ():
            try:
                session = _read(path)
            except NewerFileError as error:
                logger.warning("%s", error)
                continue
            if session is not None:
                yield session

    def path(self, session: str) -> Path:
        """The file of a session."""
        # Session ids come from outside: one that is no plain name is hashed.
        if is_plain_name(session):
            return self.directory / f"{session}.json"
        return self.directory / f"{hashlib.sha256(session.encode()).hexdigest()[:32]}.json"


def _is_gone(path: str) -> bool:
    """Whether there certainly is no file: one that cannot be looked at now may be back in a moment."""
    if not path:
        return False
    try:
        os.lstat(path)
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False
    return False


def _read(path: Path) -> Session | None:
    try:
        value = parse_json(path.read_bytes())
        check_version(path, value, VERSION)
        session = Session("")
        for name in {field.name for field in dataclasses.fields(Session)} & value.keys():
            if type(value[name]) is not type(getattr(session, name)):
                raise TypeError(f"{name} is no {type(getattr(session, name)).__name__}")
            setattr(session, name, value[name])
        if not session.id:
            raise ValueError("it names no session")
        return session
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, AttributeError) as error:
        logger.warning("session file %s is damaged and read as new: %s", path, error)
        return None
