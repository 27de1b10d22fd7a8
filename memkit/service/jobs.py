"""Recurring jobs, which the service starts on its own. Without a service, `memkit work` runs them.

Every job can be interrupted and run again: what is done already costs it next to nothing. A killed one is due
again. A run that was missed, because no service was running, is made up as soon as one is.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any, TypedDict

import msgspec

from memkit.archive.archive import Archive
from memkit.capture.capture import Capture
from memkit.capture.sessions import LiveSessions, Sessions
from memkit.errors import MemkitError, MissingPackageError, NotFoundError
from memkit.files import PRIVATE_FILE, make_private_directory
from memkit.home_files import HOME_FILES
from memkit.index import known_projects
from memkit.ipc import spool
from memkit.locks import capture_lock, index_lock
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.settings.load import Settings, may_summarize
from memkit.settings.validate import describe
from memkit.state import read_state_or_none, write_state
from memkit.text import one_line, plural
from memkit.typed import typed

logger = logging.getLogger(__name__)

VERSION = 1
"""The format version of `run/jobs.json`."""

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0

LOCK_SECONDS = 60.0
"""The time that a job waits for another process that holds a lock."""

RETRY_DAYS = 7
"""`memkit work --retry` is for events that failed longer ago."""

SESSION_DAYS = 30
"""The age at which the state of a session without a transcript is removed."""

POINTER_DAYS = 14
"""The age at which the pointer history of a session is removed."""


Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e11)]
"""What `time` can show as a date."""


@dataclass(frozen=True, slots=True)
class JobState:
    """The last run of a job that ended.

    Attributes:
        last: when it began, in seconds since the epoch; 0 for never.
        seconds: how long it took.
        result: one line on what it did, or its error.
        failed: whether it failed.
    """

    last: Seconds = 0.0
    seconds: Seconds = 0.0
    result: str = ""
    failed: bool = False


class JobBook:
    """What `run/jobs.json` records of all jobs. If the file is lost, all jobs are due."""

    def __init__(self, home: Home) -> None:
        self._path = Path(home.run, "jobs.json")

    def states(self) -> dict[str, JobState]:
        """Return the known states by name. Raise `NewerFileError`."""

        def convert(value: dict[str, Any]) -> dict[str, JobState]:
            value.pop("version", None)
            return typed(value, dict[str, JobState])

        return read_state_or_none(self._path, VERSION, convert) or {}

    def state(self, name: str) -> JobState:
        """Return the state of one job. Raise `NewerFileError`."""
        return self.states().get(name, JobState())

    def update(self, name: str, **changes: Any) -> JobState:
        """Change some attributes of a job's state, and return it. Raise `OSError`, `NewerFileError`."""
        from filelock import FileLock  # takes 0.05 s to import, and only writers need it

        make_private_directory(str(self._path.parent))
        with FileLock(self._path.with_suffix(".lock"), LOCK_SECONDS, mode=PRIVATE_FILE):
            states = self.states()
            states[name] = replace(states.get(name, JobState()), **changes)
            write_state(self._path, VERSION, {one: asdict(state) for one, state in states.items()})
            return states[name]


@dataclass(frozen=True, slots=True)
class JobContext:
    """The home, settings, and index access of a job. `index` takes the lock and updates a project."""

    home: Home
    settings_of: Callable[[Project], Settings]
    index: Callable[[Project], object]


class JobView(TypedDict):
    """A recurring job and its last run. Times are seconds since the epoch, 0 for never."""

    purpose: str
    every_seconds: float
    next: float | None
    last: float
    seconds: float
    result: str
    failed: bool


@dataclass(frozen=True, slots=True)
class Job:
    """A recurring job. `run` returns one line on what it did. The setting `jobs.NAME` turns it off.

    It takes the locks that it needs, for as long as it needs them.
    """

    name: str
    every_seconds: float
    run: Callable[[JobContext], str]

    @property
    def purpose(self) -> str:
        """Its purpose and its interval, in one line."""
        return describe(("jobs", self.name))

    def next_run(self, state: JobState, settings: Settings, now: float) -> float | None:
        """Return when it runs next, in seconds since the epoch; None for never.

        A time before `now` means now. A last run in the future (the clock was set back) counts as none.
        """
        if getattr(settings.jobs, self.name) == "off":
            return None
        return state.last + self.every_seconds if 0 < state.last <= now else now

    def as_dict(self, state: JobState, settings: Settings) -> JobView:
        """Return the job as `memkit jobs --json` prints it."""
        return {
            "purpose": self.purpose, "every_seconds": self.every_seconds,
            "next": self.next_run(state, settings, time.time()), "last": state.last,
            "seconds": state.seconds, "result": state.result, "failed": state.failed,
        }  # fmt: skip


def _retry(context: JobContext) -> str:
    oldest = time.time() - RETRY_DAYS * DAY
    count = spool.retry_failed(context.home, since=oldest)
    return f"{plural(count, 'failed event')} queued again"


def _reconcile(context: JobContext) -> str:
    live = {one.session for one in LiveSessions(context.home)}
    capture = Capture(context.home, context.settings_of(Project(context.home.root, context.home)))
    with capture_lock(context.home, LOCK_SECONDS):
        return f"{plural(capture.catch_up(live), 'session')} caught up"


def _index(context: JobContext) -> str:
    roots = sorted(project.root for project in known_projects(context.home))
    for root in roots:
        context.index(Project(root, context.home))
    return f"{plural(len(roots), 'project')} up to date"


def _tidy(context: JobContext) -> str:
    from memkit.index.catalog import left_behind, snapshots_of
    from memkit.index.merge import erase_dead
    from memkit.index.mirror import delete_collection, remove_strays, start_again
    from memkit.maintenance import remove_old_days, remove_old_replaced
    from memkit.topics import topic_store

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
        topic_store.drop_outdated_topics(home, removed)
        for directory in snapshots_of(home, None):
            erase_dead(directory)
        for directory in snapshots_of(home, removed):
            start_again(home, settings.index.uri, directory.name)
        remove_strays(home)
        for directory, own in left_behind(home, context.settings_of):  # late, because a server may be away
            delete_collection(home, own.index.uri, directory.name)
    return (
        f"{plural(removed_files, 'old state file')}, {plural(archives, 'archived session')} and "
        f"{plural(sum(removed.values()), 'day')} removed"
    )


def _rollup(context: JobContext) -> str:
    from memkit.llm import find_provider
    from memkit.summarize.rollup import run_rollups

    home = context.home
    if not may_summarize(home, context.settings_of(Project(home.root, home))):
        return "no session has announced summaries yet"
    report = run_rollups(home, context.settings_of, find_provider)
    for root in sorted(report.projects):
        context.index(Project(root, context.home))
    if report.failures and not report.is_out_of_budget:
        raise MemkitError("; ".join(report.failures))
    return "; ".join([plural(report.calls, "model call"), *report.failures])


def _health(context: JobContext) -> str:
    from memkit.doctor.checks import notify_next_session

    return f"{plural(notify_next_session(context.home), 'finding')} for the next session"


def _topics(context: JobContext) -> str:
    from memkit.llm import find_provider
    from memkit.topics.background import refresh_due
    from memkit.topics.clusters import check_packages

    try:
        check_packages()
    except MissingPackageError as error:  # topics are optional
        return f"left out: {error}"
    projects = known_projects(context.home)
    return refresh_due(projects, context.home, context.settings_of, find_provider)


def _sync(context: JobContext) -> str:
    from memkit.maintenance.sync import sync

    if not context.settings_of(Project.of_user(context.home)).sync.place:
        return "no place is set; see `memkit sync --help`"
    report = sync(context.home, context.settings_of, logger.info)
    for root in sorted(report.roots):
        context.index(Project.at_root(root, context.home))
    if report.problems:
        raise MemkitError("; ".join(report.problems))
    others = plural(len(report.machines), "other machine")
    did = f"{plural(report.sent, 'file')} sent, {report.taken} taken; {others}"
    waiting = ", ".join(sorted(report.elsewhere))
    return f"{did}; projects that memkit does not know here yet: {waiting}" if waiting else did


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
    Job("reconcile", 10 * MINUTE, _reconcile),
    Job("retry", 6 * HOUR, _retry),
    Job("health", HOUR, _health),
    Job("index", DAY, _index),
    Job("tidy", DAY, _tidy),
    Job("rollup", DAY, _rollup),
    Job("sync", HOUR, _sync),
    Job("topics", 6 * HOUR, _topics),
)


def due_jobs(home: Home, settings: Settings, now: float) -> list[Job]:
    """Return the jobs that are due. Raise `NewerFileError`."""
    states = JobBook(home).states()
    runs = [(job, job.next_run(states.get(job.name, JobState()), settings, now)) for job in JOBS]
    return [job for job, following in runs if following is not None and following <= now]


def job_named(name: str) -> Job:
    """Return the job of that name. Raise `NotFoundError`."""
    for job in JOBS:
        if job.name == name:
            return job
    known = ", ".join(job.name for job in JOBS)
    raise NotFoundError(f"there is no job {name!r}; there are {known}")


def run_job(job: Job, context: JobContext) -> JobState:
    """Run a job; save and return its state."""
    started, failed = time.time(), True
    try:
        result, failed = job.run(context), False
    except (MemkitError, OSError) as error:
        result = one_line(str(error))
        logger.warning("job %s failed: %s", job.name, result)
    except Exception as error:  # recorded, or the job would be due again at once
        result = f"unexpected error ({type(error).__name__}: {one_line(str(error))})"
        logger.exception("job %s failed", job.name)
    seconds = round(time.time() - started, 3)
    return JobBook(context.home).update(job.name, last=started, seconds=seconds, result=result, failed=failed)
