"""Depth L3: the original exchange, from Claude Code's own transcript or, once that is gone, the archive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from memkit import anchors
from memkit.archive.archive import Archive
from memkit.archive.turn import ArchivedTurn
from memkit.capture.sessions import Sessions
from memkit.claude_code.exchange import Message, message_of, redacted_again
from memkit.claude_code.files import transcripts_directory
from memkit.claude_code.transcript import Transcript
from memkit.claude_code.turn import Turn, read_turns
from memkit.errors import AmbiguousIdError, NotFoundError
from memkit.hook.project import Project
from memkit.paths import Home
from memkit.privacy.tombstones import NOTHING, Forgotten, Tombstones


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
        found = set(transcripts_directory().glob(pattern)) if transcripts_directory().is_dir() else set()
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
    """Where the exchanges of a session are: in the transcript at `path`, or in the archive's file.

    What is `forgotten` is not shown, though the client's transcript may still hold it.
    """

    session: str
    path: Path
    archive: Archive | None = None
    forgotten: Forgotten = NOTHING

    def find_turn(self, turn: str) -> str:
        """The id of the turn whose id, prompt id or uuid is, or begins with, `turn`.

        Raises `NotFoundError`, `AmbiguousIdError`, `TranscriptError` or `ArchiveError`.
        """
        if self.archive is None:
            return find_turn(self.path, turn, self.forgotten).id
        try:
            return _named(self.archive.turns(self.session), turn, self.path).id
        except NotFoundError as error:
            if damaged := self.archive.damaged(self.session):
                raise NotFoundError(f"{error}; {damaged:,} bytes of it cannot be read") from error
            raise

    def missing(self, turns: Iterable[str]) -> list[str]:
        """Those of `turns` that cannot be read, because the archive's file is damaged."""
        if self.archive is None or not self.archive.damaged(self.session):
            return []
        kept = {turn.id for turn in self.archive.turns(self.session)}
        return [turn for turn in turns if turn not in kept]

    def checked_out(self, home: Home, turn: str) -> tuple[str, str]:
        """The branch and commit of the turn with that id, as far as transcript and archive tell."""
        kept = {one.id: one for one in Archive(home).turns(self.session)}.get(turn)
        commit = kept.commit if kept is not None else ""
        if kept is None and self.archive is None:
            return find_turn(self.path, turn).branch, commit
        return kept.branch if kept is not None else "", commit

    def messages(self, redact: Callable[[str], str]) -> Iterator[Message]:
        """All that was said, in order, redacted (the archive again: there may be new patterns).

        Raises `TranscriptError` or `ArchiveError`.
        """
        if self.archive is None:
            yield from read_messages(self.path, redact, self.forgotten)
            return
        for turn in self.archive.turns(self.session):
            for message in turn.messages:
                yield redacted_again(message, redact)


def find_original(home: Home, session: str) -> Original | None:
    """The transcript of the session whose id is, or begins with, `session`, else what the archive has of
    it; None if neither has it. Raises `AmbiguousIdError`.
    """
    path = find_transcript(home, session)
    return original_at(home, path) if path is not None else find_archived(home, session)


def original_at(home: Home, path: Path) -> Original:
    """The session whose transcript is the file at `path`. Raises `TombstoneError`."""
    return Original(path.stem, path, forgotten=Tombstones(home).forgotten())


def is_told_of(home: Home, project: Project, session: str) -> bool:
    """Whether memkit's own records say that the session was one of the project."""
    if any(state.id == session and state.project == project.root for state in Sessions(home)):
        return True
    return any(turn.project == project.root for turn in Archive(home).turns(session))


def find_archived(home: Home, session: str) -> Original | None:
    """What the archive has of a session; see `find_original`."""
    archive = Archive(home)
    found = archive.find(session)
    return Original(found, archive.path(found), archive) if found is not None else None


def find_turn(path: Path, turn: str, forgotten: Forgotten = NOTHING) -> Turn:
    """The turn of a transcript whose id, prompt id or uuid is, or begins with, `turn`.

    One that is `forgotten` is not found. Raises `NotFoundError` or `AmbiguousIdError`.
    """
    turns = read_turns(Transcript(path))
    return _named((one for one in turns if not _is_gone(one, forgotten)), turn, path)


def _is_gone(turn: Turn, forgotten: Forgotten) -> bool:
    if forgotten.keeps_elsewhere(turn.id):
        return False
    root = Project.containing(turn.cwd).root if forgotten.periods and turn.cwd else ""
    return forgotten.covers(turn.id, root, turn.session, turn.time)


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


def read_messages(
    path: Path, redact: Callable[[str], str], forgotten: Forgotten = NOTHING
) -> Iterator[Message]:
    """All that was said in a transcript, in order, redacted; entries repeated by a resume once.

    Turns that are `forgotten`, or left `<private>` open, are left out.

    Raises `TranscriptError`.
    """
    turns = iter(read_turns(Transcript(path)))
    current: Turn | None = None
    upcoming = next(turns, None)
    is_gone = False
    names: dict[str, str] = {}
    seen: set[str] = set()
    for entry in Transcript(path):
        if entry.uuid in seen:
            continue
        if entry.uuid:
            seen.add(entry.uuid)
        while upcoming is not None and entry.start >= upcoming.start:
            current, upcoming = upcoming, next(turns, None)
            is_gone = _is_gone(current, forgotten) or current.is_private
        message = message_of(entry, current.id if current else "", names, redact)
        if (message.text or message.tools) and not is_gone:
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
