"""The worker: takes events from the spool into the journal, then brings the index into step.

One process at a time does this, holding the index lock. It ends when nothing is left to do. What takes
time to import is imported under the lock: of several workers started at once, all but one leave at once.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memkit.errors import IndexBusyError, MemkitError
from memkit.files import stale_temporary_files
from memkit.hook.project import Project
from memkit.index import SyncReport, index_lock
from memkit.ipc import launch, spool, unindexed
from memkit.paths import Home

if TYPE_CHECKING:
    from memkit.settings.load import Settings

logger = logging.getLogger(__name__)

LEFTOVER_SECONDS = 3600.0
"""Age of a temporary file that no writer can still be at; not all of them hold the index lock."""

POLL_SECONDS = 0.05
"""How often to look at a transcript that is behind its event."""


@dataclass(slots=True)
class WorkReport:
    """What a run did. `failures` are lines for people."""

    events: int = 0
    retried: int = 0
    failures: list[str] = field(default_factory=list)
    indexed: list[SyncReport] = field(default_factory=list)


Index = Callable[[Project, "Settings"], SyncReport]
"""Brings the index of a project into step; called under the index lock."""


def work(
    home: Home,
    settings_of: Callable[[Project], Settings],
    *,
    wait_seconds: float = 0.0,
) -> WorkReport:
    """Work until the spool and the list of unindexed projects are empty.

    `settings_of` gives a project's settings. Waits at most `wait_seconds` for another process that
    holds the index; raises `IndexBusyError` if it is still at it then.
    """
    report = WorkReport()
    with index_lock(home, wait_seconds):
        seen = work_once(home, settings_of, report)
        note_left(home, seen)
    # A hook that found the lock held has left its event to us.
    while rest(home) - seen:
        try:
            with index_lock(home, 0):
                seen |= work_once(home, settings_of, report)
                note_left(home, seen)
        except IndexBusyError:  # another worker was quicker, and finds the same
            break
    return report


def note_left(home: Home, seen: set[str]) -> None:
    """Note what was left for later, and when to try it again; `seen` is what `work_once` returned."""
    try:
        launch.note_left(home, seen)
    except OSError as error:  # costs a process that tries in vain
        logger.warning("what is left for later is not noted: %s", error)


def work_once(
    home: Home,
    settings_of: Callable[[Project], Settings],
    report: WorkReport,
    index: Index | None = None,
) -> set[str]:
    """Take in all there is; return the names of events and the roots that are left for later.

    The caller holds the index lock. `index` is `sync_project` if none is given.
    """
    from memkit.settings import load

    load.publish_hook_settings(home)
    if home.root not in _cleaned:
        _cleaned.add(home.root)
        _remove_left_behind(home)
    spool.recover(home)
    return _take_events(home, settings_of, report) | _index(home, settings_of, report, index)


def take_in(home: Home, settings_of: Callable[[Project], Settings], wait_seconds: float) -> None:
    """Take in the events that are due, and index nothing. Raises `IndexBusyError` as `work` does."""
    with index_lock(home, wait_seconds):
        spool.recover(home)
        _take_events(home, settings_of, WorkReport())


_cleaned: set[str] = set()
"""The homes in which this process has looked for what killed writers left."""


def _remove_left_behind(home: Home) -> None:
    """Remove the temporary files of writers that were killed. Memories are cleaned by their journals."""
    places = (home.root, home.sessions, home.summaries, home.archive, home.projects, home.run)
    for place in places:
        try:
            for path in stale_temporary_files(place, time.time() - LEFTOVER_SECONDS):
                os.unlink(path)
        except OSError as error:  # it costs room, and `memkit audit` still sees it
            logger.warning("cannot clean %s: %s", place, error)


def rest(home: Home) -> set[str]:
    """The names of events and the roots that wait."""
    names = {name for name in spool.waiting(home) if spool.PROMPT_EVENT not in name}
    return names | set(unindexed.roots(home))


def _take_events(
    home: Home, settings_of: Callable[[Project], Settings], report: WorkReport
) -> set[str]:
    """Handle every event that is due; return the names of those left for later."""
    from memkit.capture.capture import Capture, NotYet

    later: set[str] = set()
    first_seen: dict[str, float] = {}
    while True:
        behind = False
        names = [name for name in spool.waiting(home) if name not in later]
        for name in names:
            now = time.time()
            item = spool.claim(home, name, now)
            if item is None:
                later.add(name)
                continue
            try:
                project = Project(str(item.record.get("project", "")))
                # The clock may have been set back since the event: then our own wait tells how late it is.
                waited = time.monotonic() - first_seen.setdefault(name, time.monotonic())
                age = max(waited, now - spool.time_of(item.record))
                Capture(home, settings_of(project)).handle(
                    item.record, spool.time_of(item.record) + age
                )
            except NotYet:
                spool.put_back(home, item)
                behind = True
            except Exception as error:
                logger.exception("event %s failed", name)
                _postpone(home, item, error, now, report)
                later.add(name)
            else:
                spool.done(home, item)
                report.events += 1
        if behind:
            time.sleep(POLL_SECONDS)
        elif not names:
            return later


def _postpone(
    home: Home, item: spool.Item, error: Exception, now: float, report: WorkReport
) -> None:
    text = str(error) if isinstance(error, MemkitError) else f"{type(error).__name__}: {error}"
    text = " ".join(text.split())
    if spool.retry_later(home, item, text, now):
        report.retried += 1
    report.failures.append(f"event {item.name}: {text}")


def _index(
    home: Home,
    settings_of: Callable[[Project], Settings],
    report: WorkReport,
    index: Index | None,
) -> set[str]:
    """Bring the index of every changed project into step; return the roots where that failed."""
    failed: set[str] = set()
    roots = unindexed.roots(home)
    if not roots:
        return failed
    if index is None:
        from memkit.index import sync_project

        def index(project: Project, settings: Settings) -> SyncReport:
            return sync_project(project, home, settings)

    for root in roots:
        try:
            project = Project(root)
            report.indexed.append(index(project, settings_of(project)))
        except Exception as error:
            logger.exception("indexing %s failed", root)
            report.failures.append(f"indexing {root}: {' '.join(str(error).split())}")
            failed.add(root)
    return failed
