"""The client's transcripts: can they be read, and are they archived before the client deletes them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from memkit import anchors
from memkit.archive.archive import Archive
from memkit.capture.live_sessions import LiveSessions
from memkit.capture.sessions import Session, Sessions
from memkit.claude_code.transcript import Transcript
from memkit.claude_code.turn import Turn, read_turns
from memkit.doctor.claude_code import ClientTranscript, kept_days, transcripts
from memkit.doctor.finding import MEND, Finding, Subject
from memkit.errors import (
    ArchiveError,
    ArchiveVersionError,
    DamagedFileError,
    NewerFileError,
    TranscriptError,
)
from memkit.hook.project import Project
from memkit.index.lock import index_lock
from memkit.privacy.redact import redact
from memkit.privacy.tombstones import Forgotten, Tombstones

DAY = 86_400.0

AHEAD_DAYS = 5.0
"""How long before the client deletes a transcript that is told of."""

LOCK_SECONDS = 30.0

WRITING_SECONDS = 60.0
"""For so long after its last change an archive may be in the middle of a write."""


def check_transcripts(subject: Subject) -> Iterator[Finding]:
    """Whether what sessions have written since they were last read can be read."""
    live = {one.session for one in LiveSessions(subject.home)}
    for session in Sessions(subject.home):
        path = Path(session.transcript)
        if not session.transcript or not os.path.lexists(path):
            continue  # there was none, or the client has deleted it
        problem = _unreadable(path) or ("" if session.id in live else _damage(session))
        if problem:
            yield Finding(
                "transcript-unreadable",
                "warning",
                f"the transcript {path} {problem}",
                "what was said there since it was last read is not in the memory",
                f"make it readable (`ls -l {path}`); memkit then reads on by itself",
            )


def _unreadable(path: Path) -> str:
    """Why the file cannot be opened; "" if it can. A pipe would be waited for, so none is opened."""
    if not path.is_file():
        return "is no file"
    try:
        with path.open("rb"):
            return ""
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"


def _damage(session: Session) -> str:
    """What is wrong in what was not read yet."""
    if not session.has_unread_transcript:
        return ""
    transcript = Transcript(Path(session.transcript), session.offset)
    spoken = sum(1 for _ in transcript)
    broken = transcript.counts["broken"] + transcript.counts["too long"]
    return f"has {broken} lines that are no JSON" if broken and not spoken else ""


def check_archive(subject: Subject) -> Iterator[Finding]:
    """Whether the client will soon delete transcripts that are in no archive."""
    if not subject.settings.archive.enabled:
        return
    remembered, unknown = _soon_swept(subject)
    days = f"within {AHEAD_DAYS:.0f} days"
    if remembered:
        yield Finding(
            "archive-gap",
            "warning",
            f"the client deletes the transcripts of {len(remembered)} remembered sessions {days}, and "
            f"they are not archived: {remembered[0].id}",
            "their digests stay, but the exchanges themselves will be gone",
            MEND,
            fixable=True,
        )
    if unknown:
        yield Finding(
            "never-imported",
            "note",
            f"the client deletes {len(unknown)} transcripts {days} that memkit never read",
            "nothing will be known of those sessions",
            f"`memkit import {unknown[0].path.parent}`, for this and each other project you want to keep",
        )


def check_archive_files(subject: Subject) -> Iterator[Finding]:
    """Whether every archived session can be read."""
    archive = Archive(subject.home)
    for session in archive.sessions():
        path = archive.path(session)
        try:
            damaged = archive.damaged(session)
            is_written = subject.now - path.stat().st_mtime < WRITING_SECONDS
        except ArchiveVersionError:  # of a newer memkit, which says so
            continue
        except (ArchiveError, OSError) as error:
            what = " ".join(str(error).split())
        else:
            if not damaged or is_written:
                continue
            what = f"{damaged:,} bytes of {path} cannot be read"
        yield Finding(
            "archive-damaged",
            "warning",
            what,
            f"some original exchanges of the session {session} are lost; its memory is whole",
            "`memkit import` reads them again while Claude Code has the transcript; else restore that file "
            "from a backup",
        )


def mend_archive(subject: Subject) -> str:
    """Archive them; their memory stays as it is. Raises `ArchiveError`, `TranscriptError`."""
    patterns = subject.settings.capture.compiled_patterns()
    archive, home = Archive(subject.home), subject.home
    remembered, _ = _soon_swept(subject)
    with index_lock(home, LOCK_SECONDS):
        forgotten = Tombstones(home).forgotten()
        for session in remembered:
            root = Project.at_root(session.project, home).root
            path = Path(session.transcript)
            turns = ((turn, root) for turn in _to_keep(path, forgotten, root))
            archive.keep(turns, path, lambda text: redact(text, patterns))
    return f"{len(remembered)} sessions archived"


def _soon_swept(subject: Subject) -> tuple[list[Session], list[ClientTranscript]]:
    """Of what is swept soon and not archived: the sessions memkit knows, and the others' transcripts."""
    before = subject.now - (kept_days() - AHEAD_DAYS) * DAY
    known = {session.id: session for session in Sessions(subject.home)}
    archive = Archive(subject.home)
    forgotten = Tombstones(subject.home).forgotten()
    remembered, unknown = [], []
    for one in transcripts():
        if one.changed > before or archive.path(anchors.safe(one.session)).is_file():
            continue
        session = known.get(one.session)
        if session is None:
            unknown.append(one)
        elif (
            session.project
            and not Project(session.project).is_off
            and session.transcript == str(one.path)
            and _is_missing(one.path, archive, forgotten, session.project)
        ):
            remembered.append(session)
    return remembered, unknown


def _is_missing(path: Path, archive: Archive, forgotten: Forgotten, root: str) -> bool:
    """Whether a transcript has turns of a session that is not archived, and not forgotten either."""
    try:
        return any(
            not archive.path(anchors.safe(turn.session)).is_file()
            for turn in _to_keep(path, forgotten, root)
        )
    except TranscriptError:  # told of by `check_transcripts`
        return False


def _to_keep(path: Path, forgotten: Forgotten, root: str) -> Iterator[Turn]:
    """The turns of a transcript that are memory of the project at `root`. Raises `TranscriptError`."""
    for turn in read_turns(Transcript(path)):
        if turn.is_memory and not forgotten.covers(turn.id, root, turn.session, turn.time):
            yield turn


def check_forgetting(subject: Subject) -> Iterator[Finding]:
    """Whether something is half forgotten."""
    try:
        is_unfinished = Tombstones(subject.home).unfinished() is not None
    except (DamagedFileError, NewerFileError) as error:
        what, _, fix = str(error).partition("; ")
        yield Finding("forgotten-unreadable", "error", what, "nothing is remembered meanwhile", fix)
        return
    if is_unfinished:
        yield Finding(
            "forgetting-unfinished",
            "warning",
            "a `memkit forget` was interrupted",
            "some of what was to be forgotten may still be in the memory or its index",
            "`memkit forget` finishes it",
        )
