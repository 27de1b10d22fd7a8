"""The worker: apply spooled events to the journal, then update the index.

One process at a time captures, and one writes the index. A worker ends when nothing is left to do. Slow
imports happen under a lock: of several workers started at once, all but one leave immediately.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memkit.errors import IndexBusyError, MemkitError
from memkit.index import SyncReport
from memkit.ipc import launch, spool, unindexed
from memkit.locks import capture_lock, index_lock
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.text import one_line

if TYPE_CHECKING:
    from memkit.settings.load import Settings

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.05
"""Interval between looks at a transcript that lacks the answer of an event's turn."""


@dataclass(slots=True)
class WorkReport:
    """The result of a run. `failures` are lines for users; `has_ended` is set if a session has ended."""

    events: int = 0
    has_ended: bool = False
    retried: int = 0
    failures: list[str] = field(default_factory=list)
    indexed: list[SyncReport] = field(default_factory=list)


def work(home: Home, settings_of: Callable[[Project], Settings], *, wait_seconds: float = 0.0) -> WorkReport:
    """Work until the spool and the list of unindexed projects are empty.

    `settings_of` returns a project's settings. Wait at most `wait_seconds` for another process that holds
    a lock; raise `IndexBusyError` if it still does then.
    """
    report = WorkReport()
    seen = _work_once(home, settings_of, report, wait_seconds)
    # A hook that found a lock held left its event to this process.
    while pending(home) - seen:
        try:
            seen |= _work_once(home, settings_of, report, 0)
        except IndexBusyError:  # another worker was quicker, and finds the same work
            break
    return report


def note_left(home: Home, left: set[str]) -> None:
    """Record what was left for later, and when to try it again: names of events, and roots."""
    try:
        launch.note_left(home, left)
    except OSError as error:  # costs a process that tries in vain
        logger.warning("cannot record what is left for later: %s", error)


def _work_once(
    home: Home, settings_of: Callable[[Project], Settings], report: WorkReport, wait_seconds: float
) -> set[str]:
    """Do everything that waits; return the names of events and the roots that are left for later."""
    with capture_lock(home, wait_seconds):
        left = apply_events(home, settings_of, report)
    if unindexed.names(home):
        with index_lock(home, wait_seconds):
            left |= _index(home, settings_of, report)
    note_left(home, left)
    return left


def apply_events(home: Home, settings_of: Callable[[Project], Settings], report: WorkReport) -> set[str]:
    """Apply the events that are due; return the names of those left for later.

    The caller holds the capture lock.
    """
    from memkit.capture.capture import Capture, TranscriptBehind, project_of_event
    from memkit.settings import load

    load.publish_hook_settings(home)
    spool.recover(home)
    later: set[str] = set()
    first_seen: dict[str, float] = {}
    while True:
        is_behind = False
        names = [name for name in spool.waiting(home) if name not in later]
        for name in names:
            now = time.time()
            item = spool.claim(home, name, now)
            if item is None:
                later.add(name)
                continue
            # The clock may have been set back since the event, so count our own wait too.
            waited = time.monotonic() - first_seen.setdefault(name, time.monotonic())
            happened = spool.time_of(item.record)
            try:
                project = project_of_event(item.record, home)
                capture = Capture(home, settings_of(project))
                capture.handle(item.record, project, max(now, happened + waited))
            except TranscriptBehind:
                spool.put_back(home, item)
                is_behind = True
            except Exception as error:
                logger.exception("event %s failed", name)
                _postpone(home, item, error, now, report)
                later.add(name)
            else:
                spool.done(home, item)
                report.events += 1
                report.has_ended |= item.record.get("event") == "SessionEnd"
        if is_behind:
            time.sleep(POLL_SECONDS)
        elif not names:
            return later


def pending(home: Home) -> set[str]:
    """Return the names of events and the roots that wait."""
    return set(spool.waiting(home)) | set(unindexed.roots(home))


def _postpone(home: Home, item: spool.Item, error: Exception, now: float, report: WorkReport) -> None:
    if isinstance(error, MemkitError):
        reason = one_line(str(error))
    elif isinstance(error, OSError):
        reason = one_line(f"{type(error).__name__}: {error}")
    else:  # its message could quote the transcript, and the spool contains no text
        reason = f"{type(error).__name__}; see `memkit logs`"
    if spool.retry_later(home, item, reason, now):
        report.retried += 1
    report.failures.append(f"event {item.name}: {reason}")


def _index(home: Home, settings_of: Callable[[Project], Settings], report: WorkReport) -> set[str]:
    """Update the index of every changed project; return the roots where that failed."""
    from memkit.index import sync_project

    failed: set[str] = set()
    for root in unindexed.roots(home):
        try:
            project = Project(root, home)
            later = not report.has_ended
            report.indexed.append(sync_project(project, home, settings_of(project), later=later))
        except Exception as error:
            logger.exception("indexing %s failed", root)
            report.failures.append(f"indexing {root}: {one_line(str(error))}")
            failed.add(root)
    return failed
