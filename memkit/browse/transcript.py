"""Depth L3: the original exchange, from Claude Code's transcript or, once that is gone, from the archive."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from memkit import anchors
from memkit.agents.claude_code.places import transcripts_directory
from memkit.agents.exchange import message_of
from memkit.agents.registry import is_there, open_transcript, session_at, status_of
from memkit.agents.turns import read_turns
from memkit.archive.archive import Archive
from memkit.archive.turn import ArchivedTurn
from memkit.browse.names import find_entry
from memkit.capture.sessions import Sessions
from memkit.conversation.turn import Message, MessageView, Turn
from memkit.conversation.values import redacted_again
from memkit.errors import AmbiguousIdError, MemkitError, NotFoundError
from memkit.hook.entries import OwnEntries, heading_words
from memkit.index.chunk import Chunk
from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.privacy.tombstones import NOTHING, Forgotten, Tombstones
from memkit.projects.project import Project

REFUSAL = (
    "a Claude Code session can use only its own project's memory; "
    "run this command in a terminal of your own"
)


@dataclass(frozen=True, slots=True)
class Original:
    """The exchanges of a session: in the transcript at `path`, or in the archive's file.

    Turns that are `forgotten` are not shown, though Claude Code's transcript may still hold them.
    """

    session: str
    path: Path
    archive: Archive | None = None
    forgotten: Forgotten = NOTHING

    @property
    def damaged_bytes(self) -> int:
        """The number of bytes of the archive's file that cannot be read."""
        return self.archive.damaged(self.session) if self.archive is not None else 0

    def find_turn(self, name: str) -> Turn | ArchivedTurn:
        """Return the turn whose id, prompt id, or uuid begins with `name`.

        Raise `NotFoundError`, `AmbiguousIdError`, `TranscriptError`, or `ArchiveError`.
        """
        found: dict[str, Turn | ArchivedTurn] = {}
        for turn in self._turns():
            names = (turn.id, turn.prompt_id, turn.uuid)
            if name in names:
                return turn
            if any(one.startswith(name) for one in names if one):
                found.setdefault(turn.id, turn)
        if len(found) > 1:
            raise AmbiguousIdError(f"{name!r} matches several turns: {', '.join(list(found)[:5])}")
        if not found:
            damaged = self.damaged_bytes
            rest = f"; {damaged:,} bytes of it cannot be read" if damaged else ""
            raise NotFoundError(f"{self.path} has no turn {name!r}{rest}")
        return next(iter(found.values()))

    def _turns(self) -> Iterator[Turn | ArchivedTurn]:
        if self.archive is not None:
            yield from self.archive.turns(self.session)
            return
        for turn in read_turns(open_transcript(self.path)):
            if not _is_gone(turn, self.forgotten):
                yield turn

    def missing(self, turns: Iterable[str]) -> list[str]:
        """Return those of `turns` that a damaged archive has lost."""
        if self.archive is None or not self.damaged_bytes:
            return []
        kept = {turn.id for turn in self.archive.turns(self.session)}
        return [turn for turn in turns if turn not in kept]

    def messages(self, redact: Callable[[str], str]) -> Iterator[Message]:
        """Yield all messages in order, with today's redaction. Raise `TranscriptError`, `ArchiveError`."""
        if self.archive is None:
            yield from read_messages(self.path, redact, self.forgotten)
            return
        for turn in self.archive.turns(self.session):
            for message in turn.messages:
                yield redacted_again(message, redact)


class ExchangeView(TypedDict):
    """An `Exchange` as JSON. `transcript` is the path of Claude Code's; None for text from the archive."""

    session: str
    transcript: str | None
    archived: bool
    turn: str | None
    branch: str
    commit: str
    damaged_bytes: int
    missing: list[str]
    messages: list[MessageView]


@dataclass(frozen=True, slots=True)
class Exchange:
    """The messages of a session, or those around one `turn` ("" for all).

    `missing` lists remembered turns that a damaged archive has lost.
    """

    original: Original
    turn: str
    messages: list[Message]
    branch: str
    commit: str
    missing: list[str]

    def as_dict(self) -> ExchangeView:
        """Return the exchange as `memkit transcript --json` prints it."""
        archived = self.original.archive is not None
        return {
            "session": self.original.session, "transcript": None if archived else str(self.original.path),
            "archived": archived, "turn": self.turn or None, "branch": self.branch, "commit": self.commit,
            "damaged_bytes": self.original.damaged_bytes, "missing": self.missing,
            "messages": [message.as_dict() for message in self.messages],
        }


def find_transcript(home: Home, session: str) -> Path | None:
    """Return the transcript of the session whose id begins with `session`, None if it is gone.

    Look where memkit saw the session, then in Claude Code's folder. Raise `AmbiguousIdError`.
    """
    if not session:
        return None
    seen = {
        Path(state.transcript)
        for state in Sessions(home)
        if state.transcript and anchors.safe(state.id).startswith(session)
    }
    found = {path for path in seen if is_there(path)}
    if not found and "/" not in session and transcripts_directory().is_dir():
        found = set(transcripts_directory().glob(f"*/{glob.escape(session)}*.jsonl"))
    names = {path: session_at(path) for path in found}
    found = {path for path in found if names[path] == session} or found
    if len({names[path] for path in found}) > 1:
        shown = ", ".join(sorted(names.values())[:5])
        raise AmbiguousIdError(f"{session!r} matches several sessions: {shown}")
    return min(found) if found else None


def find_original(home: Home, session: str) -> Original | None:
    """Return the transcript of the session whose id begins with `session`, else its archive, else None.

    Raise `AmbiguousIdError`, `DamagedFileError`.
    """
    path = find_transcript(home, session)
    archive = Archive(home)
    if path is not None and (session_at(path) == session or not archive.path(session).is_file()):
        return original_at(home, path)
    found = archive.find(session)
    return Original(found, archive.path(found), archive) if found is not None else None


def original_at(home: Home, path: Path) -> Original:
    """Return the session whose transcript is the file at `path`. Raise `DamagedFileError`."""
    return Original(session_at(path), path, forgotten=Tombstones(home).forgotten())


def locate(
    home: Home, project: Project, session: str | None, turn: str | None,
    chunks: Callable[[], Sequence[Chunk]], *, other_projects: bool = True,
) -> Original:
    """Return a session by id, its first characters, or the path of a transcript.

    Without a name, return the session that holds `turn`, or the latest session of the project. `chunks`
    returns the project's indexed memory. Raise `NotFoundError`, `AmbiguousIdError`, and without
    `other_projects` `MemkitError` for a session of another project.
    """
    is_path = session is not None and (session.endswith(".jsonl") or "/" in session or os.sep in session)
    if is_path and not other_projects:  # it may be any file
        raise MemkitError(REFUSAL)
    if session is None and turn is not None:
        session = _session_of(turn, project, chunks)
    if session is None:
        original = _latest(home, project, chunks)
    elif is_path and is_there(Path(session)):
        original = original_at(home, Path(session))
    else:
        name = Path(session).stem if is_path else session
        found = find_original(home, name)
        if found is None or (is_path and found.session != name):
            raise NotFoundError(
                f"no such transcript: {session}"
                if is_path
                else f"no transcript of session {session!r} on this machine (agents delete old ones; "
                "Claude Code after cleanupPeriodDays, by default 30), and none in memkit's archive"
            )
        original = found
    if not other_projects and not _belongs_to(home, project, original.session, chunks):
        raise MemkitError(REFUSAL)
    return original


def _session_of(turn: str, project: Project, chunks: Callable[[], Sequence[Chunk]]) -> str:
    found = find_entry(Journal(project), turn)
    if found is not None and found.kind == "turn" and found.session:
        return found.session
    for chunk in chunks():  # of a memory elsewhere, or a turn that only its bullet names
        if chunk.session and any(name.startswith(turn) for name in chunk.turns):
            return chunk.session
    raise NotFoundError(f"no turn {turn!r} in the memory of {project.root}; give its session, or search")


def _latest(home: Home, project: Project, chunks: Callable[[], Sequence[Chunk]]) -> Original:
    own = [
        Path(state.transcript)
        for state in Sessions(home)
        if state.project == project.root and is_there(Path(state.transcript))
    ]
    if own:
        return original_at(home, max(own, key=lambda path: status_of(path).modified))
    # Only the memory knows the project of an imported session, or of one whose transcript is gone.
    for session in dict.fromkeys(chunk.session for chunk in reversed(chunks())):
        if found := find_original(home, session):
            return found
    raise NotFoundError(
        f"no session of {project.root} is known; give a session ID or the path of a transcript"
    )


def is_recorded(home: Home, project: Project, session: str) -> bool:
    """Return whether memkit's own records assign the session to the project."""
    if any(state.id == session and state.project == project.root for state in Sessions(home)):
        return True
    return any(turn.project == project.root for turn in Archive(home).turns(session))


def _belongs_to(home: Home, project: Project, session: str, chunks: Callable[[], Sequence[Chunk]]) -> bool:
    """Return whether memkit's records, or memory that this home wrote, assign the session to the project.

    Other memory proves nothing: a repository can bring anchors that name any session.
    """
    if is_recorded(home, project, session):
        return True
    named = [chunk for chunk in chunks() if chunk.session == session]
    own = OwnEntries(home, project.root) if named else ()
    return any(heading_words(chunk.heading) in own for chunk in named)


def read_exchange(
    home: Home, original: Original, turn: str | None, context: int, redact: Callable[[str], str],
    chunks: Callable[[], Sequence[Chunk]],
) -> Exchange:
    """Return all of a session, or one turn with `context` messages before and after it."""
    found = branch = commit = ""
    if turn:
        named = original.find_turn(turn)
        found, branch = named.id, named.branch
        for kept in Archive(home).turns(original.session):  # which knows the commit too
            if kept.id == found:
                branch, commit = kept.branch, kept.commit
                break
    messages = original.messages(redact)
    missing: list[str] = []
    if original.damaged_bytes:
        own = (chunk.turns for chunk in chunks() if chunk.session == original.session)
        missing = original.missing(dict.fromkeys(name for turns in own for name in turns))
    chosen = around(messages, found, context) if found else list(messages)
    return Exchange(original, found, chosen, branch, commit, missing)


def _is_gone(turn: Turn, forgotten: Forgotten) -> bool:
    if forgotten.keeps_elsewhere(turn.id):
        return False
    root = Project.containing(turn.cwd).root if forgotten.periods and turn.cwd else ""
    return forgotten.covers(turn.id, root, turn.session, turn.time)


def read_messages(
    path: Path, redact: Callable[[str], str], forgotten: Forgotten = NOTHING
) -> Iterator[Message]:
    """Yield the messages of a transcript in order, redacted; an entry that a resume repeats once.

    Leave out turns that are `forgotten`, and turns with an open `<private>`. Raise `TranscriptError`.
    """
    turns = iter(read_turns(open_transcript(path)))
    current: Turn | None = None
    upcoming = next(turns, None)
    is_gone = False
    names: dict[str, tuple[str, str]] = {}
    seen: set[str] = set()
    for entry in open_transcript(path):
        if entry.uuid in seen or entry.is_progress:
            continue
        if entry.uuid:
            seen.add(entry.uuid)
        while upcoming is not None and entry.start >= upcoming.start:
            current, upcoming = upcoming, next(turns, None)
            is_gone = _is_gone(current, forgotten) or current.is_private
        message = message_of(entry, current.id if current else "", names, redact)
        if (message.text or message.tools) and not is_gone:
            yield message


def around(messages: Iterable[Message], turn: str, context: int) -> list[Message]:
    """Return the messages of a turn with `context` messages before and after it."""
    before: list[Message] = []
    own: list[Message] = []
    after = 0
    for message in messages:
        if message.turn == turn:
            own.append(message)
        elif own:
            if after == context:
                break
            own.append(message)
            after += 1
        else:
            before = [*before, message][-context:] if context else []
    return before + own
