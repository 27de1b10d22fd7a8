"""Compactions by themselves, every `summarize.compact_days`; never, unless the user set that.

When one was tried stands in the ledger, so nothing else has to be kept: after one that was answered the
next is due in so many days, after one that failed on the next day.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from memkit.errors import MemkitError
from memkit.hook.project import Project
from memkit.index import known_projects
from memkit.journal.facts import MEMORY_FILE
from memkit.llm.calls import BusyError, Calls, calls_lock
from memkit.llm.ledger import OK, Ledger
from memkit.llm.model import Provider
from memkit.paths import Home
from memkit.settings import SummarizeSettings
from memkit.settings.load import Settings
from memkit.summarize.compaction import PURPOSE, Compaction
from memkit.summarize.entries import EntrySelection
from memkit.summarize.summarizer import SummaryReport

logger = logging.getLogger(__name__)

DAY = 86_400.0


def compact_due(
    home: Home,
    settings_of: Callable[[Project], Settings],
    find_provider: Callable[[SummarizeSettings], Provider],
    *,
    should_stop: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.time,
) -> SummaryReport:
    """Condense the memory of each project whose time has come into its `MEMORY.md`; the old text is kept.

    The first time that is the memory of the last `summarize.compact_days`: an imported year waits for
    `memkit compact`. The caller brings the index of the report's projects into step.
    """
    report = SummaryReport()
    for project in known_projects(home):
        if should_stop():
            break
        try:
            settings = settings_of(project)
            if not project.is_off and is_due(project, home, settings.summarize, clock()):
                with calls_lock(home):
                    _compact(project, home, settings, find_provider, clock, report)
        except BusyError:  # at the next look
            break
        except (MemkitError, OSError) as error:  # one project's trouble is not another's
            logger.warning("%s is not condensed: %s", project.root, error)
            report.failures.append(f"{project.root}: {error}")
    return report


def is_due(project: Project, home: Home, settings: SummarizeSettings, now: float) -> bool:
    """Whether the memory of `project` is to be condensed now."""
    if not settings.compact_days or not settings.is_on:
        return False
    since = datetime.fromtimestamp(now) - timedelta(days=settings.compact_days)
    for call in Ledger(home).calls(since.date().isoformat()):
        if call.purpose == PURPOSE and call.project == project.root:
            wait = settings.compact_days if call.outcome == OK else 1
            if 0 <= now - call.time < wait * DAY:  # a later one is of a clock that was wrong
                return False
    return True


def _compact(
    project: Project,
    home: Home,
    settings: Settings,
    find_provider: Callable[[SummarizeSettings], Provider],
    clock: Callable[[], float],
    report: SummaryReport,
) -> None:
    """Condense the memory of one project. Raises `MemkitError`; then its files are as they were."""
    today = datetime.fromtimestamp(clock()).date()
    first = (today - timedelta(days=settings.summarize.compact_days)).isoformat()
    compaction = Compaction(project, home, settings, Calls(home, find_provider, clock), today)
    work = compaction.find_work(MEMORY_FILE, EntrySelection(), since=first)
    compaction.plan(work, find_provider(settings.summarize)).check_budget()
    change = compaction.condense(work)
    report.calls += compaction.asked
    if change:
        compaction.write(work, change)
        report.projects.add(project.root)
