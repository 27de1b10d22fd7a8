"""Recurring jobs and rounds of summaries, which the service starts on its own.

Without a service, `memkit work` runs the jobs. Every job can be interrupted and run again. `run/jobs.json`
records when it last ended, so a killed one is due again.
"""

from __future__ import annotations

import functools
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memkit.archive import Archive
from memkit.capture.capture import Capture
from memkit.capture.sessions import LiveSessions, Sessions
from memkit.capture.summary_queue import SummaryQueue
from memkit.errors import ConfigError, MemkitError, NotFoundError
from memkit.files import make_private_directory
from memkit.home_files import HOME_FILES
from memkit.hook.project import Project
from memkit.index import known_projects
from memkit.index.purge import keep_small
from memkit.ipc import spool
from memkit.maintenance import remove_old_days, remove_old_replaced
from memkit.paths import Home
from memkit.settings.load import Settings, may_summarize
from memkit.state import read_state_or_none, write_state
from memkit.text import one_line, plural
from memkit.topics.files import drop_outdated_topics

if TYPE_CHECKING:
    from memkit.summarize.summarizer import FindEmbedder

logger = logging.getLogger(__name__)

VERSION = 1
"""The format version of `run/jobs.json`."""

_SAVING = threading.Lock()

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0

RETRY_DAYS = 7
"""`memkit work --retry` is for events that failed longer ago."""

SESSION_DAYS = 30
"""The age at which the state of a session without a transcript is removed."""

POINTER_DAYS = 14
"""The age at which the pointer history of a session is removed."""

ROUND_SECONDS = 60.0
"""The least time between two rounds."""

COMPACT_SECONDS = 3600.0
"""The time after which a round starts even with an empty queue: a compaction may be due."""

BUDGET_SECONDS = 900.0
"""The pause after a round that ended with today's budget: the next one would read the whole queue again."""

REST_FACTOR = 20
"""The pause after a round, as a multiple of its CPU time: a long queue takes long to read."""


@dataclass(frozen=True, slots=True)
class JobContext:
    """The home, settings, and index access of a job.

    `index` updates the index of a project and may leave it open; `close_index` closes it.
    """

    home: Home
    settings_of: Callable[[Project], Settings]
    index: Callable[[Project], object]
    close_index: Callable[[], object] = lambda: None


@dataclass(frozen=True, slots=True)
class Job:
    """A recurring job. `run` returns one line on what it did.

    It runs under the index lock, and nothing is indexed meanwhile, unless `is_apart`.
    """

    name: str
    purpose: str
    every_seconds: float
    run: Callable[[JobContext], str]
    is_apart: bool = False


@dataclass(frozen=True, slots=True)
class JobState:
    """When a job last ran (0: never), for how long, with what result, and whether it is paused."""

    last: float = 0.0
    seconds: float = 0.0
    result: str = ""
    failed: bool = False
    paused: bool = False


def _retry(context: JobContext) -> str:
    oldest = time.time() - RETRY_DAYS * DAY
    count = spool.retry_failed(context.home, since=oldest)
    return f"{plural(count, 'failed event')} queued again"


def _reconcile(context: JobContext) -> str:
    live = {one.session for one in LiveSessions(context.home)}
    capture = Capture(context.home, context.settings_of(Project(context.home.root)))
    return f"{plural(capture.catch_up(live), 'session')} caught up"


def _index(context: JobContext) -> str:
    projects = known_projects(context.home)
    for project in projects:
        context.index(project)
    return f"{plural(len(projects), 'project')} up to date"


def _tidy(context: JobContext) -> str:
    from memkit.forget import remove_old_text

    home, settings = context.home, context.settings_of(Project(context.home.root))
    removed_files = _remove_old_files(home.pointer_history, "*.json", POINTER_DAYS * DAY)
    for folder in {os.path.dirname(kind.pattern) for kind in HOME_FILES}:
        pattern = os.path.join(folder, f".{'[a-z0-9_]' * 8}.tmp")  # of killed writers
        removed_files += _remove_old_files(home.root, pattern, spool.LEFTOVER_SECONDS)
    days = settings.archive.keep_days
    archive = Archive(home)
    archives = archive.remove_older(time.time() - days * DAY) if days else 0
    if not days:  # else the state is all that is left of a session
        oldest = time.time() - SESSION_DAYS * DAY
        removed_files += Sessions(home).remove_old(oldest, lambda one: archive.path(one).is_file())
    shortest = min(filter(None, (days, settings.memory.keep_days)), default=0)
    remove_old_replaced(home, shortest, time.time())
    removed = remove_old_days(home, context.settings_of, date.today())
    for root in removed:
        context.index(Project(root))
    drop_outdated_topics(home, removed)
    context.close_index()
    freed = keep_small(home, settings.index.uri, erase=bool(removed))
    remove_old_text(home)  # at the end: an unreadable file must not keep anything else from being deleted
    return (
        f"{plural(removed_files, 'old state file')}, {plural(archives, 'archived session')} and "
        f"{plural(sum(removed.values()), 'day')} removed, {freed / 1e6:.1f} MB of the index freed"
    )


def _health(context: JobContext) -> str:
    from memkit.doctor.checks import notify_next_session

    return f"{plural(notify_next_session(context.home), 'finding')} for the next session"


def _topics(context: JobContext) -> str:
    from memkit.topics.background import refresh_due
    from memkit.topics.clusters import MissingPackageError, check_packages

    try:
        check_packages()
    except MissingPackageError as error:  # they are optional
        return f"left out: {error}"
    return refresh_due(known_projects(context.home), context.home, context.settings_of)


def _remove_old_files(directory: str, pattern: str, seconds: float) -> int:
    removed = 0
    for path in Path(directory).glob(pattern):
        try:
            if time.time() - path.stat().st_mtime > seconds:
                path.unlink()
                removed += 1
        except FileNotFoundError:  # removed or renamed since
            continue
    return removed


JOBS = (
    Job("reconcile", "capture what crashed sessions left in transcripts", 10 * MINUTE, _reconcile),
    Job("retry", "try failed events again", 6 * HOUR, _retry),
    Job("health", "look for problems to report to the user", HOUR, _health),
    Job("index", "update the index of every project", DAY, _index),
    Job("tidy", "clean up what has expired, and free disk space", DAY, _tidy),
    Job("topics", "find the topics of projects with many new entries", 6 * HOUR, _topics, is_apart=True),
)


class JobBook:
    """The states of all jobs in `run/jobs.json`. If it is lost, all jobs are due."""

    def __init__(self, home: Home) -> None:
        self._path = Path(home.run, "jobs.json")

    def states(self) -> dict[str, JobState]:
        """Return the states by name. Raise `NewerFileError`."""

        def convert(value: dict[str, Any]) -> dict[str, JobState]:
            return {job.name: JobState(**value.get(job.name, {})) for job in JOBS}

        return read_state_or_none(self._path, VERSION, convert) or convert({})

    def save(self, name: str, state: JobState) -> None:
        """Save one state. Raise `OSError`, `NewerFileError`."""
        with _SAVING:
            states = self.states() | {name: state}
            make_private_directory(str(self._path.parent))
            write_state(self._path, VERSION, {one: asdict(state) for one, state in states.items()})

    def due(self, now: float) -> list[Job]:
        """Return the due jobs; a job whose last run is in the future is due. Raise `NewerFileError`."""
        states = self.states()
        return [
            job
            for job in JOBS
            if not states[job.name].paused
            and not 0 <= now - states[job.name].last < job.every_seconds
        ]

    def pause(self, name: str, paused: bool) -> None:
        """Pause a job, or resume it. Raise `NotFoundError`, `OSError`, `NewerFileError`."""
        state = self.states()[job_named(name).name]
        self.save(name, replace(state, paused=paused))


def job_named(name: str) -> Job:
    """Return the job of that name. Raise `NotFoundError`."""
    for job in JOBS:
        if job.name == name:
            return job
    known = ", ".join(job.name for job in JOBS)
    raise NotFoundError(f"there is no job {name!r}; there are {known}")


def run_job(job: Job, context: JobContext) -> JobState:
    """Run a job; save and return its state. The caller holds the index lock unless the job `is_apart`."""
    started = time.time()
    try:
        result, failed = job.run(context), False
    except (MemkitError, OSError) as error:
        logger.warning("job %s failed: %s", job.name, error)
        result, failed = one_line(str(error)), True
    book = JobBook(context.home)
    paused = book.states()[job.name].paused
    state = JobState(started, round(time.time() - started, 3), result, failed, paused)
    book.save(job.name, state)
    return state


class ApartJobs:
    """Runs jobs that need no index lock one at a time, in a thread of its own."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(1, "jobs")
        self._guard = threading.Lock()
        self._running: dict[str, Future[JobState]] = {}

    @property
    def is_busy(self) -> bool:
        """Whether a job runs or waits."""
        return not all(future.done() for future in list(self._running.values()))

    def start(self, job: Job, context: JobContext) -> Future[JobState]:
        """Run a job. If it runs or waits, return its future instead."""
        with self._guard:
            found = self._running.get(job.name)
            if found is None or found.done():
                found = self._running[job.name] = self._threads.submit(run_job, job, context)
            return found

    def stop(self) -> None:
        """Begin no further job. A running one ends by itself, or with the process."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class Summaries:
    """Starts a round of summaries and compactions when something is queued, and once an hour.

    A round has its own thread: a model call takes seconds and needs no lock of the index.
    """

    def __init__(
        self,
        home: Home,
        settings_of: Callable[[Project], Settings],
        index: Callable[[str], object],
        note_error: Callable[[str], None],
        find_embedder: FindEmbedder,
    ) -> None:
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
            if not may_summarize(self._home, self._settings_of(Project(self._home.root))):
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
