"""State of each session: where its transcript is, how far it was read, and whether it is live.

One small file for each session under `MEMKIT_HOME/sessions`, without conversation text. Losing them loses
nothing: memkit reads the transcripts again from the start, and the journal's anchors keep every turn single.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memkit.agents.registry import status_of
from memkit.errors import NewerFileError
from memkit.files import make_private_directory, write_durably
from memkit.journal.day_writes import Growing
from memkit.paths import Home, is_plain_name
from memkit.state import parse_json, read_state_or_none, write_state
from memkit.typed import typed

logger = logging.getLogger(__name__)

VERSION = 1
"""Version of the files' format."""

MAX_RECENT = 50
"""Ids of turns kept to recognize an event that comes after its turn was read."""

SAME_SECONDS = 2.0
"""Tolerance for a process's creation time: the clock may be set in between."""


@dataclass(slots=True)
class Session:
    """One session's state.

    Attributes:
        id: the transcript's file name without its suffix.
        offset: the byte from which to read on: the start of the last turn, which may still grow.
        size: how far the transcript was read.
        last_event: when its last hook event happened, in seconds since the epoch; 0 if it was imported.
        growing: the possible hashes of each section that may be written again unless the user edits it. Keys
            are `TURN ROOT`, with the root of the journal: several projects can import one session.
        written: the keys of `growing` whose sections certainly are in the journal.
        recent: the ids of the latest turns read.
        under_way: the prompt id of a turn that was written before it ended, or "".
        elsewhere: whether Claude Code sends its text elsewhere than it would in the background.
    """

    id: str
    transcript: str = ""
    project: str = ""
    offset: int = 0
    size: int = 0
    last_event: float = 0.0
    growing: dict[str, list[str]] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    recent: list[str] = field(default_factory=list)
    under_way: str = ""
    elsewhere: bool = False

    def has_read(self, turns: list[str]) -> None:
        """Record the turns just read. All but the last are complete and not written again.

        A bare `/clear` and the prompt after it can share a prompt id, and so a turn id.
        """
        turns = list(dict.fromkeys(reversed(turns)))[::-1]
        read = [*(turn for turn in self.recent if turn not in turns), *turns]
        self.recent = read[-MAX_RECENT:]
        self.have_ended(read[:-1])

    def have_ended(self, turns: Collection[str], root: str | None = None) -> None:
        """Record that these turns are complete in the journal at `root`; None means in all journals."""
        for key in list(self.growing):
            turn, _, own = key.partition(" ")
            if turn in turns and root in (None, own):
                del self.growing[key]
        while len(self.growing) > MAX_RECENT:
            self.growing.pop(next(iter(self.growing)))
        self.written = [key for key in self.written if key in self.growing]

    def growing_in(self, root: str) -> dict[str, Growing]:
        """Return the turns, by id, that may be written again in the journal at `root`.

        A turn known only from another journal may have come from there by a move or a merge. It was
        written there, but maybe never here.
        """
        found: dict[str, Growing] = {}
        own: set[str] = set()
        for key, hashes in self.growing.items():
            turn, _, written_to = key.partition(" ")
            if written_to == root:
                found[turn] = Growing(tuple(hashes), key in self.written)
                own.add(turn)
            elif turn not in own:
                before = found[turn].hashes if turn in found else ()
                found[turn] = Growing((*before, *hashes), False)
        return found

    def read_again(self) -> None:
        """Restart at the beginning of the transcript."""
        self.offset, self.size, self.recent = 0, 0, []

    def will_write(self, turn: str, root: str, section_hash: str) -> None:
        """Record that the section of a growing turn is about to be written to the journal at `root`."""
        known = self.growing_in(root).get(turn)
        hashes = self.growing.setdefault(f"{turn} {root}", list(known.hashes) if known else [])
        if section_hash not in hashes:
            hashes.append(section_hash)

    def has_written(self, turn: str, root: str, section_hash: str) -> None:
        """Record that a growing turn's section was written, or found as a user edited it."""
        key = f"{turn} {root}"
        self.growing[key] = [section_hash]
        if key not in self.written:
            self.written.append(key)

    @property
    def has_unread_transcript(self) -> bool:
        """Whether the transcript has grown since it was last read, as it does if Claude Code crashes."""
        try:
            return status_of(Path(self.transcript)).size > self.size
        except OSError:
            return False


class Sessions:
    """The session files of one memory home."""

    def __init__(self, home: Home) -> None:
        self.directory = Path(home.sessions)

    def load(self, session: str) -> Session:
        """Return the state of `session`, a new one if there is none or it is damaged.

        Raise `NewerFileError`.
        """
        return _read(self.path(session)) or Session(session)

    def knows(self, session: str) -> bool:
        """Return whether `session` has a state file."""
        return self.path(session).is_file()

    def save(self, session: Session) -> None:
        """Store the state durably. Raise `OSError`."""
        make_private_directory(str(self.directory))
        write_state(self.path(session.id), VERSION, dataclasses.asdict(session))

    def remove_old(self, before: float, is_archived: Callable[[str], bool]) -> int:
        """Remove states untouched since `before` (seconds since the epoch) whose transcript is gone.

        Return how many. If the session comes back, the journal's anchors keep its turns single. Keep the
        state of a session that is not archived: an import of Claude Code's history would otherwise take
        its prompts for new ones.
        """
        removed = 0
        for session in self:
            path = self.path(session.id)
            try:
                is_old = max(session.last_event, path.stat().st_mtime) < before
                if is_old and _is_gone(session.transcript) and is_archived(session.id):
                    path.unlink()
                    removed += 1
            except FileNotFoundError:  # another process removed it
                continue
        return removed

    def __iter__(self) -> Iterator[Session]:
        for path in sorted(self.directory.glob("*.json")):
            try:
                session = _read(path)
            except NewerFileError as error:
                logger.warning("%s", error)
                continue
            if session is not None:
                yield session

    def path(self, session: str) -> Path:
        """Return the file of a session."""
        return self.directory / _file_name(session)


@dataclass(frozen=True, slots=True)
class LiveSession:
    """A live session: its project's root, and its Claude Code process by id and creation time."""

    session: str
    root: str
    client: int
    created: float

    @property
    def is_alive(self) -> bool:
        """Whether its process exists; the system reuses ids, but not creation times."""
        created = _created(self.client)
        return created is not None and abs(created - self.created) < SAME_SECONDS


class LiveSessions:
    """The sessions between SessionStart and SessionEnd, while their Claude Code process exists.

    Claude Code fires no SessionEnd after a crash or with `-p`. One small file for each in `run/live`.
    """

    def __init__(self, home: Home) -> None:
        self.directory = Path(home.live)

    def begin(self, session: str, root: str, process: int) -> None:
        """Record that a session has started, unless its process is gone. Raise `OSError`."""
        created = _created(process)
        if created is not None:
            make_private_directory(str(self.directory))
            value = dataclasses.asdict(LiveSession(session, root, process, created))
            write_durably(str(self._path(session)), json.dumps(value).encode("ascii"))

    def end(self, session: str) -> None:
        """Record that a session has ended."""
        self._path(session).unlink(missing_ok=True)

    def __iter__(self) -> Iterator[LiveSession]:
        for path in sorted(self.directory.glob("*.json")):
            try:
                found = LiveSession(**parse_json(path.read_bytes()))
                is_alive = found.is_alive
            except FileNotFoundError:  # ended since the listing
                continue
            except (OSError, ValueError, TypeError) as error:
                logger.warning("%s is damaged and removed: %s", path, error)
                is_alive = False
            if is_alive:
                yield found
            else:
                path.unlink(missing_ok=True)

    def _path(self, session: str) -> Path:
        return self.directory / _file_name(session)


def _file_name(session: str) -> str:
    # Session ids come from outside: hash one that is not a plain name.
    if is_plain_name(session):
        return f"{session}.json"
    return hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:32] + ".json"


def _created(process: int) -> float | None:
    import psutil  # slow, and most users of this module do not need it

    try:
        found = psutil.Process(process)
        return None if found.status() == psutil.STATUS_ZOMBIE else found.create_time()
    except (psutil.Error, ValueError, OverflowError):
        return None


def _is_gone(path: str) -> bool:
    """Return whether there certainly is no file: one on a disk that is not mounted may come back."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return bool(path)
    except (OSError, ValueError):
        return False
    return False


def _read(path: Path) -> Session | None:
    return read_state_or_none(path, VERSION, _converted)


def _converted(value: dict[str, Any]) -> Session:
    session = typed(value, Session)
    if not session.id:
        raise ValueError("it names no session")
    return session
