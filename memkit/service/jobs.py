"""Recurring jobs, which the service starts on its own. Without a service, `memkit work` runs them.

Every job can be interrupted and run again. A killed one is due again, and goes on after its last step.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from memkit.archive import Archive
from memkit.capture.capture import Capture
from memkit.capture.sessions import LiveSessions, Sessions
from memkit.errors import MemkitError, MissingPackageError, NotFoundError
from memkit.home_files import HOME_FILES
from memkit.index import known_projects
from memkit.ipc import spool
from memkit.locks import capture_lock, index_lock
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.service.job_book import JobBook, JobRun, JobState
from memkit.service.schedule import next_run
from memkit.settings.load import Settings, may_summarize
from memkit.settings.validate import describe
from memkit.text import plural

logger = logging.getLogger(__name__)

DAY = 86400.0

LOCK_SECONDS = 60.0
"""The time that a job waits for another process that holds a lock."""

RETRY_DAYS = 7
"""`memkit work --retry` is for events that failed longer ago."""

SESSION_DAYS = 30
"""The age at which the state of a session without a transcript is removed."""

POINTER_DAYS = 14
"""The age at which the pointer history of a session is removed."""


@dataclass(frozen=True, slots=True)
class JobContext:
    """The home, settings, and index access of a job. `index` takes the lock and updates a project."""

    home: Home
    settings_of: Callable[[Project], Settings]
    index: Callable[[Project], object]


@dataclass(frozen=True, slots=True)
class Job:
    """A recurring job. `run` returns one line on what it did. The setting `jobs.NAME` says when it runs.

    It takes the locks that it needs, for as long as it needs them.
    """

    name: str
    run: Callable[[JobContext, JobRun], str]

    @property
    def purpose(self) -> str:
        """What it is for, in one line."""
        return describe(("jobs", self.name))

    def next_run(self, state: JobState, settings: Settings, now: float) -> float | None:
        """Return when it runs next, in seconds since the epoch; None for never."""
        if state.paused:
            return None
        return next_run(self.schedule(settings), state.last, now)

    def schedule(self, settings: Settings) -> str:
        """Return the value of its setting."""
        return str(getattr(settings.jobs, self.name))

    def as_dict(self, state: JobState, settings: Settings) -> dict[str, Any]:
        """Return the job as `memkit jobs --json` prints it."""
        return {
            "purpose": self.purpose,
            "schedule": self.schedule(settings),
            "next": self.next_run(state, settings, time.time()),
            **asdict(state),
        }


def _retry(context: JobContext, run: JobRun) -> str:
    oldest = time.time() - RETRY_DAYS * DAY
    count = spool.retry_failed(context.home, since=oldest)
    return f"{plural(count, 'failed event')} queued again"


def _reconcile(context: JobContext, run: JobRun) -> str:
    live = {one.session for one in LiveSessions(context.home)}
    capture = Capture(context.home, context.settings_of(Project(context.home.root, context.home)))
    with capture_lock(context.home, LOCK_SECONDS):
        return f"{plural(capture.catch_up(live), 'session')} caught up"


def _index(context: JobContext, run: JobRun) -> str:
    roots = sorted(project.root for project in known_projects(context.home))
    for root in run.steps(roots):
        context.index(Project(root, context.home))
    return f"{plural(len(roots), 'project')} up to date"


def _tidy(context: JobContext, run: JobRun) -> str:
    from memkit.capture.lost import separate_commands
    from memkit.forget import remove_old_text
    from memkit.index.catalog import left_behind, snapshots_of
    from memkit.index.merge import erase_dead
    from memkit.index.mirror import delete_collection, remove_strays, start_again
    from memkit.maintenance import remove_old_days, remove_old_replaced
    from memkit.topics.kept import drop_outdated_topics

    home, settings = context.home, context.settings_of(Project(context.home.root, context.home))
    removed_files = _remove_old_files(home.pointer_history, "*.json", POINTER_DAYS * DAY)
    for folder in {os.path.dirname(kind.pattern) for kind in HOME_FILES}:
        pattern = os.path.join(folder, f".{'[a-z0-9_]' * 8}.tmp")  # of killed writers
        removed_files += _remove_old_files(home.root, pattern, spool.LEFTOVER_SECONDS)
    days = settings.archive.keep_days
    archive = Archive(home)
    with capture_lock(home, LOCK_SECONDS):
        archives = archive.remove_older(time.time() - days * DAY) if days else 0
        if not days:  # else the state is all that is left of a session
            oldest = time.time() - SESSION_DAYS * DAY
            removed_files += Sessions(home).remove_old(oldest, lambda one: archive.path(one).is_file())
        shortest = min(filter(None, (days, settings.memory.keep_days)), default=0)
        remove_old_replaced(home, shortest, time.time())
        removed = remove_old_days(home, context.settings_of, date.today())
    for root in removed:
        context.index(Project(root, context.home))
    with index_lock(home, LOCK_SECONDS):
        drop_outdated_topics(home, removed)
        for directory in snapshots_of(home, None):
            erase_dead(directory)
        for directory in snapshots_of(home, removed):
            start_again(home, settings.index.uri, directory.name)
        remove_strays(home)
        for directory, own in left_behind(home, context.settings_of):  # late, because a server may be away
            delete_collection(home, own.index.uri, directory.name)
    with capture_lock(home, LOCK_SECONDS):  # at the end: a file that it cannot read must stop nothing else
        remove_old_text(home)
        separated = separate_commands(home, context.settings_of)
    for root in separated:
        context.index(Project(root, context.home))
    return (
        f"{plural(removed_files, 'old state file')}, {plural(archives, 'archived session')} and "
        f"{plural(sum(removed.values()), 'day')} removed"
    )


def _rollup(context: JobContext, run: JobRun) -> str:
    from memkit.llm import find_provider
    from memkit.summarize.rollup import run_rollups

    home = context.home
    if not may_summarize(home, context.settings_of(Project(home.root, home))):
        return "no session has announced summaries yet"
    report = run_rollups(home, context.settings_of, find_provider, run.steps)
    for root in sorted(report.projects):
        context.index(Project(root, context.home))
    if report.failures and not report.is_out_of_budget:
        raise MemkitError("; ".join(report.failures))
    return "; ".join([plural(report.calls, "model call"), *report.failures])


def _health(context: JobContext, run: JobRun) -> str:
    from memkit.doctor.checks import notify_next_session

    return f"{plural(notify_next_session(context.home), 'finding')} for the next session"


def _topics(context: JobContext, run: JobRun) -> str:
    from memkit.llm import find_provider
    from memkit.topics.background import refresh_due
    from memkit.topics.clusters import check_packages

    try:
        check_packages()
    except MissingPackageError as error:  # topics are optional
        return f"left out: {error}"
    projects = known_projects(context.home)
    return refresh_due(projects, context.home, context.settings_of, find_provider, run.steps)


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
    Job("reconcile", _reconcile),
    Job("retry", _retry),
    Job("health", _health),
    Job("index", _index),
    Job("tidy", _tidy),
    Job("rollup", _rollup),
    Job("topics", _topics),
)


def due_jobs(home: Home, settings: Settings, now: float) -> list[Job]:
    """Return the jobs that are due. Raise `NewerFileError`."""
    states = JobBook(home).states()
    due = []
    for job in JOBS:
        following = job.next_run(states.get(job.name, JobState()), settings, now)
        if following is not None and following <= now:
            due.append(job)
    return due


def job_named(name: str) -> Job:
    """Return the job of that name. Raise `NotFoundError`."""
    for job in JOBS:
        if job.name == name:
            return job
    known = ", ".join(job.name for job in JOBS)
    raise NotFoundError(f"there is no job {name!r}; there are {known}")


def run_job(job: Job, context: JobContext) -> JobState:
    """Run a job; save and return its state."""
    state = JobRun(JobBook(context.home), job.name).perform(lambda run: job.run(context, run))
    if state.failed:
        logger.warning("job %s failed: %s", job.name, state.result)
    return state
