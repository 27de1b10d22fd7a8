"""Check hooks, their events, transcripts, and the archive."""

from __future__ import annotations

import functools
import os
import re
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path

import memkit
from memkit import anchors, environment
from memkit.agents.claude_code.files import TranscriptFile, session_transcripts
from memkit.agents.claude_code.installation import kept_days
from memkit.agents.claude_code.transcript import Transcript
from memkit.agents.turns import read_turns
from memkit.archive.archive import Archive
from memkit.archive.file import turn_ids
from memkit.capture.capture import Capture
from memkit.capture.ingest import turn_of
from memkit.capture.sessions import Session, Sessions
from memkit.conversation.turn import Turn
from memkit.doctor import FIX, Finding, Subject, make_finding, split_advice
from memkit.errors import (
    ArchiveError,
    ArchiveVersionError,
    DamagedFileError,
    MemkitError,
    NewerFileError,
    TranscriptError,
)
from memkit.ipc import spool
from memkit.journal.digest import local_time
from memkit.journal.journal import Journal
from memkit.locks import capture_lock
from memkit.paths import Home
from memkit.privacy.redact import redact
from memkit.privacy.tombstones import Forgotten, Tombstones
from memkit.processes import is_locked
from memkit.projects.git import run_git
from memkit.projects.project import Project
from memkit.settings import load
from memkit.settings.load import Settings
from memkit.state import read_json_lines
from memkit.text import format_time, one_line, plural

_IN_DIFF = re.compile(rb"^[+-].*<!--.* turn:(\S+) ", re.MULTILINE)


def lost_turns(home: Home, project: Project, settings: Settings) -> list[Turn]:
    """Return the archived turns that the journal lacks, oldest first.

    Leave out what was forgotten, and what is older than `memory.keep_days`. In a shared memory, leave out
    what git has or had, on another branch perhaps, and what git cannot have thrown away since it was written:
    somebody removed it. Raise `ArchiveError`, `JournalError`, and if git does not answer,
    `MemkitError`.
    """
    titles = Journal(project).turn_titles()
    forgotten = Tombstones(home).forgotten()
    keep = settings.memory.keep_days
    first = date.today() - timedelta(days=keep) if keep else date.min
    lost = []
    for session, path in Archive(home).files():
        for one in Archive(home).turns(session) if turn_ids(path) - titles.keys() else ():
            is_own = one.project == project.root and bool(one.messages)
            is_kept = is_own and not forgotten.covers(one.id, project.root, session, one.time)
            if is_kept and one.id not in titles and local_time(one.time).date() >= first:
                lost.append(turn_of(session, one))
    if lost and settings.memory.shared:
        answer = run_git(project.root, "log", "--all", "-p", "--format=", "--", project.memory)
        if answer is None or answer[0] != 0:
            raise MemkitError("git did not answer, so archived turns were not compared with it; try again")
        known = set(_IN_DIFF.findall(answer[1]))
        last_reset = _last_reset(project.root)
        lost = [
            turn
            for turn in lost
            if turn.id.encode() not in known and local_time(turn.time).timestamp() < last_reset
        ]
    return sorted(lost, key=lambda turn: local_time(turn.time))


def _last_reset(root: str) -> float:
    """Return when git last threw changes away (seconds since the epoch), 0 for never."""
    options = ("-g", "-1", "--date=unix", "--format=%gd", "-E", "--grep-reflog=^(reset:|rebase.*abort)")
    answer = run_git(root, "log", *options)
    found = re.search(rb"@\{(\d+)\}", answer[1]) if answer else None
    return float(found[1]) if found else 0.0


RECENT_SECONDS = 7 * 86_400.0
"""Older errors of hooks are not reported."""

LATE_SECONDS = 60.0
"""A hook starts a worker. An event that waits longer than this has none."""

AHEAD_DAYS = 5.0
"""Report a transcript this long before Claude Code deletes it."""

LOCK_SECONDS = 30.0

MAX_NAMED = 5
"""The most days that are named."""

_UNSURE = "if you did not delete them, run `memkit import` while Claude Code has them, or restore a backup"

WRITING_SECONDS = 60.0
"""After its last change, another process may still be writing an archive for this long."""


def last_events(home: Home) -> dict[str, float]:
    """Return when a hook last ran in each project: seconds since the epoch by root."""
    times = [(one.project, one.last_event) for one in Sessions(home) if one.last_event]
    times += [(str(item.record.get("project", "")), spool.time_of(item.record)) for item in _all_events(home)]
    last: dict[str, float] = {}
    for root, when in times:
        if root:
            last[root] = max(when, last.get(root, 0.0))
    return last


def _all_events(home: Home) -> list[spool.Item]:
    return [*spool.unfinished(home), *spool.failed(home)]


def check_hooks(subject: Subject) -> Iterator[Finding]:
    """Find sessions of this project that ran no hook since memkit was installed."""
    if subject.project.is_off:
        return
    known = {session.id for session in Sessions(subject.home)}
    for item in _all_events(subject.home):
        name = os.path.basename(str(item.record.get("transcript", "")))
        known |= {str(item.record.get("session")), name.removesuffix(".jsonl")}
    installed = os.stat(memkit.__file__)
    since = max(installed.st_mtime, installed.st_ctime)
    missed = [
        one
        for one in session_transcripts(subject.project)
        if one.session not in known and one.changed > since
    ]
    if not missed:
        return
    root, count = subject.project.root, plural(len(missed), "session")
    last = last_events(subject.home).get(root)
    if last is None:
        yield make_finding("hooks-never-fired", root=root, count=count)
    elif max(one.changed for one in missed) > last:
        yield make_finding("hooks-silent", root=root, time=format_time(last), count=count)


def check_hook_log(subject: Subject) -> Iterator[Finding]:
    """Find recent errors of hooks."""
    recent = list(_recent_errors(subject))
    if recent:
        yield make_finding("hook-errors", count=plural(len(recent), "time"), error=recent[-1])


def _recent_errors(subject: Subject) -> Iterator[str]:
    for value in read_json_lines(subject.home.hook_log):
        try:
            when = datetime.strptime(value["time"], "%Y-%m-%dT%H:%M:%S%z").timestamp()
            error = f"{value['event']}: {value['error']}"
        except (ValueError, KeyError, TypeError):  # cut off by a full disk
            continue
        if subject.now - when < RECENT_SECONDS:
            yield error


def check_failed_events(subject: Subject) -> Iterator[Finding]:
    """Find failed events, and events that memkit will try again, by reason."""
    failed = spool.failed(subject.home)
    for reason, count in Counter(map(_reason, failed)).items():
        same = [item for item in failed if _reason(item) == reason]
        damaged = ", ".join(item.name for item in same if "event" not in item.record)
        fix = f"in a terminal of your own, delete what is damaged in {subject.home.spool}/failed: {damaged}"
        if any("event" in item.record for item in same):
            fix = f"fix the cause, then run {FIX}"
        yield make_finding("event-failed", count=plural(count, "event"), reason=reason, fix=fix)
    retried = [item for item in spool.unfinished(subject.home) if item.record.get("attempts")]
    for reason, count in Counter(map(_reason, retried)).items():
        yield make_finding("event-retried", count=plural(count, "event"), reason=reason)


def _reason(item: spool.Item) -> str:
    return str(item.record.get("error") or "the reason is unknown")


def check_waiting_events(subject: Subject) -> Iterator[Finding]:
    """Find events without a worker, and those of a killed worker."""
    home = subject.home
    if is_locked(home.capture_lock) or is_locked(environment.lock_file(home.root)):
        return  # who only indexes takes no events
    claimed = spool.claimed(home)
    if claimed:
        yield make_finding("worker-killed", count=plural(len(claimed), "event"))
    late = [
        item
        for item in spool.unfinished(home)
        if item.name not in claimed
        and not item.record.get("attempts")
        and subject.now - spool.time_of(item.record) > LATE_SECONDS
    ]
    if late:
        since = format_time(spool.time_of(late[0].record))
        yield make_finding("events-waiting", count=plural(len(late), "event"), time=since)


def handle_events(subject: Subject) -> str:
    """Handle waiting and failed events, as a worker does. Raise `MemkitError`, also if an event fails."""
    from memkit.capture.worker import work

    if subject.problem is not None:
        raise subject.problem
    spool.retry_failed(subject.home)
    report = work(
        subject.home,
        functools.cache(lambda project: load.load(subject.home, project).settings),
        wait_seconds=LOCK_SECONDS,
    )
    if report.failures:
        raise MemkitError("; ".join(report.failures))
    return f"{plural(report.events, 'event')} processed"


def check_transcripts(subject: Subject) -> Iterator[Finding]:
    """Find transcripts that cannot be read."""
    for session in Sessions(subject.home):
        path = Path(session.transcript)
        if not session.transcript or not os.path.lexists(path):
            continue  # there was none, or Claude Code has deleted it
        problem = _unreadable(path)
        if problem:
            yield make_finding("transcript-unreadable", path=path, problem=problem)


def _unreadable(path: Path) -> str:
    if not path.is_file():
        return "is not a file"
    try:
        with path.open("rb"):
            return ""
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"


def check_archive(subject: Subject) -> Iterator[Finding]:
    """Find transcripts that Claude Code will delete soon and that are in no archive."""
    if not subject.settings.archive.enabled:
        return
    remembered, unknown = _expiring(subject)
    days = f"{AHEAD_DAYS:.0f}"
    if remembered:
        count = plural(len(remembered), "remembered session")
        yield make_finding("archive-gap", count=count, days=days, first=remembered[0].id)
    if unknown:
        count = plural(len(unknown), "transcript")
        yield make_finding("never-imported", count=count, days=days, directory=unknown[0].path.parent)


def _expiring(subject: Subject) -> tuple[list[Session], list[TranscriptFile]]:
    """Return the expiring sessions without an archive: those that memkit knows, and other transcripts."""
    before = subject.now - (kept_days() - AHEAD_DAYS) * 86_400.0
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
            and not Project(session.project, subject.home).is_off
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
    for turn in read_turns(Transcript(path)):
        is_gone = forgotten.covers(turn.id, root, turn.session, turn.time)
        if turn.is_memory and not is_gone:
            yield turn


def fix_archive(subject: Subject) -> str:
    """Archive the expiring sessions. Raise `ArchiveError`, `TranscriptError`."""
    patterns = subject.settings.capture.compiled_patterns()
    archive, home = Archive(subject.home), subject.home
    remembered, _ = _expiring(subject)
    with capture_lock(home, LOCK_SECONDS):
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
            yield make_finding("archive-damaged", what=one_line(str(error)), session=session)
            continue
        if damaged and not is_written:
            what = f"{damaged:,} bytes of {path} cannot be read"
            yield make_finding("archive-damaged", what=what, session=session)


def check_lost_turns(subject: Subject) -> Iterator[Finding]:
    """Find days that lack turns of the archive."""
    lost = lost_turns(subject.home, subject.project, subject.settings)
    if lost:
        names = list(dict.fromkeys(local_time(turn.time).date().isoformat() for turn in lost))
        shown = ", ".join(names[:MAX_NAMED]) + (" …" if names[MAX_NAMED:] else "")
        fix = FIX if subject.settings.memory.shared else _UNSURE
        count = plural(len(lost), "archived turn")
        yield make_finding("turns-missing", count=count, days=shown, fix=fix)


def write_lost_turns(subject: Subject) -> str:
    """Write the archived turns that the journal lacks. Raise `ArchiveError`, `JournalError`."""
    with capture_lock(subject.home, LOCK_SECONDS):
        lost = lost_turns(subject.home, subject.project, subject.settings)
        Capture(subject.home, subject.settings).import_turns(lost, subject.project)
    return f"{plural(len(lost), 'turn')} written again"


def check_forgetting(subject: Subject) -> Iterator[Finding]:
    """Check the record of forgotten entries, and find an interrupted `memkit forget`."""
    try:
        if Tombstones(subject.home).unfinished() is not None:
            yield make_finding("forgetting-unfinished")
    except (DamagedFileError, NewerFileError) as error:
        what, fix = split_advice(error)
        yield make_finding("forgotten-unreadable", what=what, fix=fix)
