"""Summaries and compactions in the background: a thread of its own, for a model call takes seconds and
holds no lock of the index.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from memkit.capture.summary_queue import SummaryQueue
from memkit.hook.project import Project
from memkit.paths import Home
from memkit.settings.load import Settings

logger = logging.getLogger(__name__)

HOUR = 3600.0

LOOK_SECONDS = 60.0
"""How often it looks whether something is due, at most."""

BUDGET_SECONDS = 900.0
"""How long it does not look after the day's budget ended a round: all that waits would be read again."""

REST_FACTOR = 20
"""How many times the time that a round worked (calls are waiting, not work) it does not look afterwards: the
days and archives of very many sessions may have to be read.
"""


class Summaries:
    """Starts a round of summaries when something waits, and of compactions now and then."""

    def __init__(
        self,
        home: Home,
        settings_of: Callable[[Project], Settings],
        index: Callable[[str], object],
        note_error: Callable[[str], None],
    ) -> None:
        """`index` brings a project into step that got bullets or facts; `note_error` is told what failed."""
        self._home = home
        self._settings_of = settings_of
        self._index = index
        self._note_error = note_error
        self._thread: threading.Thread | None = None
        self._looked = 0.0
        self._rests_until = 0.0
        self._looked_to_compact = 0.0
        self._is_stopping = False

    @property
    def is_busy(self) -> bool:
        """Whether a round is under way."""
        return self._thread is not None and self._thread.is_alive()

    def look(self, idle_seconds: float) -> None:
        """Start a round if it is time and something waits, or once an hour for what is to be condensed.

        `idle_seconds` is how long the service stays without a request: it looks once in that time, too.
        """
        now = time.monotonic()
        pause = min(LOOK_SECONDS, idle_seconds)
        if self.is_busy or self._is_stopping or now - self._looked < pause or now < self._rests_until:
            return
        self._looked = now
        is_time = not self._looked_to_compact or now - self._looked_to_compact >= HOUR
        if is_time:
            self._looked_to_compact = now
        if SummaryQueue(self._home) or is_time:
            self._thread = threading.Thread(target=self._run, name="summaries", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Begin no further call. The one in hand is left to end by itself, or with the process."""
        self._is_stopping = True

    def _run(self) -> None:
        from memkit.llm.providers import find_provider
        from memkit.summarize.compact_due import compact_due
        from memkit.summarize.run import run_due

        began, least = time.thread_time(), 0.0
        for what, run in (("summaries", run_due), ("compaction", compact_due)):
            try:
                report = run(
                    self._home, self._settings_of, find_provider, should_stop=lambda: self._is_stopping
                )
            except Exception as error:  # the next round tries again
                logger.exception("a round of %s failed", what)
                self._note_error(f"{what}: {error}")
                continue
            if report.is_out_of_budget:
                least = BUDGET_SECONDS
            for line in report.failures:
                self._note_error(f"{what}: {line}")
            for root in sorted(report.projects):
                self._index(root)
        rest = (time.thread_time() - began) * REST_FACTOR
        self._rests_until = time.monotonic() + max(rest, least)
