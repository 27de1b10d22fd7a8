"""A round of summaries: what is due now, for all projects of a memory home."""

from __future__ import annotations

import time
from collections.abc import Callable

from memkit.capture.summary_queue import SummaryQueue
from memkit.hook.project import Project
from memkit.llm.calls import BusyError, Calls, calls_lock
from memkit.llm.model import Provider
from memkit.paths import Home
from memkit.settings import SummarizeSettings
from memkit.settings.load import Settings
from memkit.summarize.summarizer import Summarizer, SummaryReport


def run_due(
    home: Home,
    settings_of: Callable[[Project], Settings],
    find_provider: Callable[[SummarizeSettings], Provider],
    *,
    should_stop: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.time,
) -> SummaryReport:
    """Make the model calls that are due; nothing if another process is making some.

    The caller brings the index of the report's projects into step.
    """
    report = SummaryReport()
    if not SummaryQueue(home):
        return report
    try:
        with calls_lock(home):
            Summarizer(home, settings_of, Calls(home, find_provider, clock), clock).run_due(
                report, should_stop
            )
    except BusyError:  # it finds the same
        pass
    return report
