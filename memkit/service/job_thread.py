"""The service's threads next to the writer: one runs jobs, one makes rounds of summaries and compactions."""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from memkit.capture.summary_queue import SummaryQueue
from memkit.errors import ConfigError
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.service.jobs import Job, JobContext, JobState, run_job
from memkit.settings.load import Settings, may_summarize

if TYPE_CHECKING:
    from memkit.summarize.summarizer import FindEmbedder

logger = logging.getLogger(__name__)

ROUND_SECONDS = 60.0
"""The least time between two rounds."""

COMPACT_SECONDS = 3600.0
"""The time after which a round starts even with an empty queue: a compaction may be due."""

BUDGET_SECONDS = 900.0
"""The pause after a round that ended with today's budget: the next one would read the whole queue again."""

REST_FACTOR = 20
"""The pause after a round, as a multiple of its CPU time: a long queue takes long to read."""


class JobThread:
    """Runs jobs one at a time, while the writer goes on."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(1, "jobs")
        self._guard = threading.Lock()
        self._futures: dict[str, Future[JobState]] = {}

    @property
    def is_busy(self) -> bool:
        """Whether a job runs or waits."""
        return not all(future.done() for future in list(self._futures.values()))

    def start(self, job: Job, context: JobContext) -> Future[JobState]:
        """Run a job. If it runs or waits already, return its future."""
        with self._guard:
            found = self._futures.get(job.name)
            if found is None or found.done():
                found = self._futures[job.name] = self._threads.submit(run_job, job, context)
            return found

    def stop(self) -> None:
        """Begin no further job. A running one ends by itself, or with the process."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class Summaries:
    """Starts a round of summaries and compactions when something is queued, and once an hour.

    A round has its own thread: a model call takes seconds and needs no lock of the index.
    """

    def __init__(
        self, home: Home, settings_of: Callable[[Project], Settings], index: Callable[[str], object],
        note_error: Callable[[str], None], find_embedder: FindEmbedder,
    ) -> None:  # fmt: skip
        """Call `index` for each project that got bullets or facts, and `note_error` for each failure."""
        self._find_embedder = find_embedder
        self._home = home
        self._settings_of = settings_of
        self._index = index
        self._note_error = note_error
        self._thread: threading.Thread | None = None
        self._next_round = 0.0
        self._next_compaction = 0.0
        self._is_stopping = False

    @property
    def is_busy(self) -> bool:
        """Whether a round is running."""
        return self._thread is not None and self._thread.is_alive()

    def look(self) -> None:
        """Start a round if it is time for one and something is queued or may be due."""
        now = time.monotonic()
        if self.is_busy or self._is_stopping or now < self._next_round:
            return
        is_waiting = bool(SummaryQueue(self._home))
        if is_waiting:
            self._next_round = now + ROUND_SECONDS
        may_compact = now >= self._next_compaction
        if may_compact:
            self._next_compaction = now + COMPACT_SECONDS
        if may_compact or is_waiting:
            self._thread = threading.Thread(target=self._run, name="summaries", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Begin no further call. A running one ends by itself, or with the process."""
        self._is_stopping = True

    def _run(self) -> None:
        from memkit.llm import find_provider
        from memkit.summarize.compaction import run_compactions
        from memkit.summarize.summarizer import run_summaries

        try:
            if not may_summarize(self._home, self._settings_of(Project(self._home.root, self._home))):
                return
        except ConfigError as error:
            logger.warning("no round of summaries: %s", error)  # the doctor reports it
            return
        began, pause = time.thread_time(), 0.0
        summarize = functools.partial(run_summaries, find_embedder=self._find_embedder)
        for what, run in (("summaries", summarize), ("compaction", run_compactions)):
            try:
                report = run(
                    self._home, self._settings_of, find_provider, should_stop=lambda: self._is_stopping
                )
            except Exception as error:  # the next round tries again
                logger.exception("a round of %s failed", what)
                self._note_error(f"{what}: {error}")
                continue
            if report.is_out_of_budget:
                pause = BUDGET_SECONDS
            for line in report.failures:
                self._note_error(f"{what}: {line}")
            for root in sorted(report.projects):
                self._index(root)
        pause = max(pause, (time.thread_time() - began) * REST_FACTOR)
        self._next_round = max(self._next_round, time.monotonic() + pause)
