"""Run jobs one at a time, in a thread of their own: the writer goes on meanwhile."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor

from memkit.service.job_book import JobState
from memkit.service.jobs import Job, JobContext, run_job


class ApartJobs:
    """The jobs that run, or wait."""

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
