"""Depth L3: the original exchange, from Claude Code's own transcript or, once that is gone, the archive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from memkit import anchors
from memkit.capture.archive import Archive
from memkit.capture.archived_turn import ArchivedTurn
from memkit.capture.client_files import client_projects
from memkit.capture.exchange import Message, message_of, redacted_again
from memkit.capture.sessions import Sessions
from memkit.capture.transcript import Transcript
from memkit.capture.turn import Turn, read_turns
from memkit.errors import AmbiguousIdError, NotFoundError
from memkit.paths import Home


def find_transcript(home: Home, session: str) -> Path | None:
    """The transcript of the session whose id is, or begins with, `session`; None if it is gone.

    Looks where memkit saw the session, then in the client's own folder. Raises `AmbiguousIdError`.
    """
    if not session:
        return None
    known = {
        Path(state.transcript)
        for state in Sessions(home)
        if state.transcript and anchors.safe(state.id).startswith(session)
    }
    found = {path for path in known if path.is_file()}
    if not found and "/" not in session:
        pattern = f"*/{_escape(session)}*.jsonl"
        found = set(client_projects().glob(pattern)) if client_projects().is_dir() else set()
    exact = {path for path in found if path.stem == session}
    found = exact or found
    if len({path.stem for path in found}) > 1:
        shown = ", ".join(sorted(path.stem for path in found)[:5])
        raise AmbiguousIdError(f"the session {session!r} fits several: {shown}")
    return min(found) if found else None


def _escape(text: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in text)


@dataclass(frozen=True, slots=True)
class Original:
    """Where the exchanges of a session are: in the transcript at `path`, or in the archive's file."""

    session: str
    path: Path
    archive: Archive | None = None

    def find_turn(self, turn: str) -> str:
        """The id of the turn whose id, prompt id or uuid is, or begins with, `turn`.

        Raises `NotFoundError`, `AmbiguousIdError`, `TranscriptError` or `ArchiveError`.
        """
        if self.archive is None:
            return find_turn(self.path, turn).id
        return _named(self.archive.turns(self.session), turn, self.path).id

    def messages(self, redact: Callable[[str], str]) -> Iterator[Message]:
        """All that was said, in order, redacted (the archive again: there may be new patterns).

        Raises `TranscriptError` or `ArchiveError`.
        """
        if self.archive is None:
            yield from read_messages(self.path, redact)
            return
        for turn in self.archive.turns(self.session):
            for message in turn.messages:
                yield redacted_again(message, redact)


def find_original(home: Home, session: str) -> Original | None:
    """The transcript of the session whose id is, or begins with, `session`, else what the archive has of
    it; None if neither has it. Raises `AmbiguousIdError`.
    """
    path = find_transcript(home, session)
    return Original(path.stem, path) if path is not None else find_archived(home, session)


def find_archived(home: Home, session: str) -> Original | None:
    """What the archive has of a session; see `find_original`."""
    archive = Archive(home)
    found = archive.find(session)
    return Original(found, archive.path(found), archive) if found is not None else None


def find_turn(path: Path, turn: str) -> Turn:
    """The turn of a transcript whose id, prompt id or uuid is, or begins with, `turn`.

    Raises `NotFoundError` or `AmbiguousIdError`.
    """
    return _named(read_turns(Transcript(path)), turn, path)


_AnyTurn = TypeVar("_AnyTurn", Turn, ArchivedTurn)


def _named(turns: Iterable[_AnyTurn], turn: str, path: Path) -> _AnyTurn:
    found: dict[str, _AnyTurn] = {}
    for candidate in turns:
        names = (candidate.id, candidate.prompt_id, candidate.uuid)
        if turn in names:
            return candidate
        if any(name.startswith(turn) for name in names if name):
            found.setdefault(candidate.id, candidate)
    if not found:
        raise NotFoundError(f"{path} has no turn {turn!r}")
    if len(found) > 1:
        raise AmbiguousIdError(f"the turn {turn!r} fits several: {', '.join(list(found)[:5])}")
    return next(iter(found.values()))


def read_messages(path: Path, redact: Callable[[str], str]) -> Iterator[Message]:
    """All that was said in a transcript, in order, redacted; entries repeated by a resume once.

    Raises `TranscriptError`.
    """
    turns = iter(read_turns(Transcript(path)))
    current: Turn | None = None
    upcoming = next(turns, None)
    names: dict[str, str] = {}
    seen: set[str] = set()
    for entry in Transcript(path):
        if entry.uuid in seen:
            continue
        if entry.uuid:
            seen.add(entry.uuid)
        while upcoming is not None and entry.start >= upcoming.start:
            current, upcoming = upcoming, next(turns, None)
        message = message_of(entry, current.id if current else "", names, redact)
        if message.text or message.tools:
            yield message


def around(messages: Iterator[Message], turn: str, context: int) -> list[Message]:
    """The messages of a turn with `context` messages before and after it."""
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
