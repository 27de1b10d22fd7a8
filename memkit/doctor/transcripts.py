"""Check transcripts, the archive, and whether a `memkit forget` was interrupted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from memkit import anchors
from memkit.archive.archive import Archive
from memkit.capture.sessions import LiveSessions, Session, Sessions
from memkit.claude_code.settings import TranscriptFile, kept_days, session_transcripts
from memkit.claude_code.transcript import Transcript
from memkit.claude_code.turn import Turn, read_turns
from memkit.doctor.finding import Finding, Subject, split_advice
from memkit.errors import (
    ArchiveError,
    ArchiveVersionError,
    DamagedFileError,
    NewerFileError,
    TranscriptError,
)
from memkit.hook.project import Project
from memkit.index import index_lock
from memkit.privacy.redact import redact
from memkit.privacy.tombstones import Forgotten, Tombstones
from memkit.text import one_line, plural

DAY = 86_400.0

AHEAD_DAYS = 5.0
"""Report a transcript this long before Claude Code deletes it."""

LOCK_SECONDS = 30.0

WRITING_SECONDS = 60.0
"""After its last change, another process may still be writing an archive for this long."""


def check_transcripts(subject: Subject) -> Iterator[Finding]:
    """Find transcripts with unread parts that cannot be read."""
    live = {one.session for one in LiveSessions(subject.home)}
    for session in Sessions(subject.home):
        path = Path(session.transcript)
        if not session.transcript or not os.path.lexists(path):
            continue  # there was none, or Claude Code has deleted it
        problem = _unreadable(path) or ("" if session.id in live else _damage(session))
        if problem:
            yield Finding(
                "transcript-unreadable",
                "warning",
                f"the transcript {path} {problem}",
                "the memory lacks what was written there since memkit last read it",
                f"make it readable (`ls -l {path}`); memkit then continues by itself",
            )


def _unreadable(path: Path) -> str:
    """Return why the file cannot be opened, or "". Do not open a pipe: that would wait."""
    if not path.is_file():
        return "is not a file"
    try:
        with path.open("rb"):
            return ""
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"


def _damage(session: Session) -> str:
    """Return what is wrong in the unread part, or ""."""
    if not session.has_unread_transcript:
        return ""
    transcript = Transcript(Path(session.transcript), session.offset)
    entries = sum(1 for _ in transcript)
    broken = transcript.counts["broken"] + transcript.counts["too long"]
    return f"has {plural(broken, 'line')} that are not JSON" if broken and not entries else ""


def check_archive(subject: Subject) -> Iterator[Finding]:
    """Find transcripts that Claude Code will delete soon and that are in no archive."""
    if not subject.settings.archive.enabled:
        return
    remembered, unknown = _expiring(subject)
    days = f"within {AHEAD_DAYS:.0f} days"
    if remembered:
        yield Finding(
            "archive-gap",
            "warning",
            f"Claude Code deletes the transcripts of {plural(len(remembered), 'remembered session')} {days}, "
            f"and they are not archived: {remembered[0].id}",
            "their digests stay, but the original exchanges will be lost",
        )
    if unknown:
        yield Finding(
            "never-imported",
            "note",
            f"Claude Code deletes {plural(len(unknown), 'transcript')} {days} that memkit never read",
            "those sessions will not be remembered",
            f"`memkit import {unknown[0].path.parent}`, and so for each other project that you want to keep",
        )


def _expiring(subject: Subject) -> tuple[list[Session], list[TranscriptFile]]:
    """Return the expiring sessions without an archive: those that memkit knows, and other transcripts."""
    before = subject.now - (kept_days() - AHEAD_DAYS) * DAY
    known = {session.id: session for session in Sessions(subject.home)}
    archive = Archive(subject.home)
    forgotten = Tombstones(subject.home).forgotten()
    remembered, unknown = [], []
    for one in session_transcripts():
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
    """Return whether a transcript has a turn to keep whose session is not archived."""
    try:
        turns = _turns_to_keep(path, forgotten, root)
        return any(not archive.path(anchors.safe(turn.session)).is_file() for turn in turns)
    except TranscriptError:  # `check_transcripts` reports it
        return False


def _turns_to_keep(path: Path, forgotten: Forgotten, root: str) -> Iterator[Turn]:
    """Yield the turns that are memory of the project at `root`. Raise `TranscriptError`."""
    for turn in read_turns(Transcript(path)):
        if turn.is_memory and not forgotten.covers(turn.id, root, turn.session, turn.time):
            yield turn


def fix_archive(subject: Subject) -> str:
    """Archive the expiring sessions. Raise `ArchiveError`, `TranscriptError`."""
    patterns = subject.settings.capture.compiled_patterns()
    archive, home = Archive(subject.home), subject.home
    remembered, _ = _expiring(subject)
    with index_lock(home, LOCK_SECONDS):
        forgotten = Tombstones(home).forgotten()
        for session in remembered:
            root = Project.at_root(session.project, home).root
            path = Path(session.transcript)
            turns = ((turn, root) for turn in _turns_to_keep(path, forgotten, root))
            archive.keep(turns, path, lambda text: redact(text, patterns))
    return f"{plural(len(remembered), 'session')} archived"


def check_archive_files(subject: Subject) -> Iterator[Finding]:
    """Check that every archived session can be read."""
    archive = Archive(subject.home)
    for session in archive.sessions():
        path = archive.path(session)
        try:
            damaged = archive.damaged(session)
            is_written = subject.now - path.stat().st_mtime < WRITING_SECONDS
        except ArchiveVersionError:  # not damaged, but of a newer memkit
            continue
        except (ArchiveError, OSError) as error:
            what = one_line(str(error))
        else:
            if not damaged or is_written:
                continue
            what = f"{damaged:,} bytes of {path} cannot be read"
        yield Finding(
            "archive-damaged",
            "warning",
            what,
            f"some original exchanges of the session {session} are lost; its memory is complete",
            "`memkit import` reads them again while Claude Code has the transcript; otherwise restore that "
            "file from a backup",
        )


def check_forgetting(subject: Subject) -> Iterator[Finding]:
    """Check the record of forgotten entries, and find an interrupted `memkit forget`."""
    try:
        is_unfinished = Tombstones(subject.home).unfinished() is not None
    except (DamagedFileError, NewerFileError) as error:
        what, fix = split_advice(error)
        yield Finding("forgotten-unreadable", "error", what, "memkit remembers nothing until then", fix)
        return
    if is_unfinished:
        yield Finding(
            "forgetting-unfinished",
            "warning",
            "a `memkit forget` was interrupted",
            "the memory or its index may still hold some of what you had forgotten",
            "`memkit forget` finishes it",
        )
