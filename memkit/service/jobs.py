"""What recurs: small jobs with a period each, run by the service, or without one by `memkit work`.

Each can be run twice, or be cut short and run again. When a job last ended stands in `run/jobs.json`,
written after it, so one that was killed is due again. Five jobs with fixed periods and no concurrency need
no scheduler library: the largest part of one, its stores and triggers, would stand idle.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from memkit.archive.archive import Archive
from memkit.capture.capture import Capture
from memkit.capture.live_sessions import LiveSessions
from memkit.capture.sessions import Sessions
from memkit.errors import MemkitError, NotFoundError
from memkit.files import make_private_directory, write_durably
from memkit.hook.project import Project
from memkit.index import known_projects
from memkit.index.erasure import keep_small
from memkit.ipc import spool
from memkit.maintenance.retention import remove_old_days, remove_old_replaced
from memkit.paths import Home
from memkit.service.pointer_history import PointerHistory
from memkit.settings.load import Settings
from memkit.state import FIELD, check_version, parse_json

logger = logging.getLogger(__name__)

VERSION = 1
"""Of the format of `run/jobs.json`."""

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0

RETRY_DAYS = 7
"""Events given up longer ago are left to `memkit work --retry`."""


SESSION_DAYS = 30
"""How long the state of a session outlives its transcript."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a job works on. The index lock is held.

    `index` brings a project into step, and may leave the index open; `close_index` closes it.
    """

    home: Home
    settings_of: Callable[[Project], Settings]
    index: Callable[[Project], object]
    close_index: Callable[[], object] = lambda: None


@dataclass(frozen=True, slots=True)
class Job:
    """A job: its name, what it does in a few words, its period, and the function that says what it did."""

    name: str
    purpose: str
    every_seconds: float
    run: Callable[[Surroundings], str]


@dataclass(frozen=True, slots=True)
class JobState:
    """How a job stands: when it last ended (0: never), what came of it, and whether it is paused."""

    last: float = 0.0
    seconds: float = 0.0
    result: str = ""
    failed: bool = False
    paused: bool = False


def _retry(around: Surroundings) -> str:
    oldest = time.time() - RETRY_DAYS * DAY
    count = spool.retry_failed(around.home, since=oldest)
    return f"{count} given-up events tried again"


def _reconcile(around: Surroundings) -> str:
    live = {one.session for one in LiveSessions(around.home)}
    capture = Capture(around.home, around.settings_of(Project(around.home.root)))
    return f"{capture.catch_up(live)} sessions caught up"


def _index(around: Surroundings) -> str:
    projects = known_projects(around.home)
    for project in projects:
        around.index(project)
    return f"{len(projects)} projects in step"


def _tidy(around: Surroundings) -> str:
    home, settings = around.home, around.settings_of(Project(around.home.root))
    notes = PointerHistory(home).tidy() + _remove_leftovers(Path(home.run))
    days = settings.archive.keep_days
    archive = Archive(home)
    archives = archive.remove_older(time.time() - days * DAY) if days else 0
    if not days:  # else an archived session will be known by its state alone
        oldest = time.time() - SESSION_DAYS * DAY
        notes += Sessions(home).remove_old(oldest, lambda one: archive.path(one).is_file())
    shortest = min(filter(None, (days, settings.memory.keep_days)), default=0)
    remove_old_replaced(home, shortest, time.time())
    removed = remove_old_days(home, around.settings_of, date.today())
    for root in removed:
        around.index(Project(root))
    around.close_index()
    freed = keep_small(home, settings.index.uri, erase=bool(removed))
    return (
        f"{notes} old notes, {archives} archived sessions and {sum(removed.values())} days removed, "
        f"{freed / 1e6:.1f} MB of the index freed"
    )


def _health(around: Surroundings) -> str:
    from memkit.doctor.checks import notify_next_session

    return f"{notify_next_session(around.home)} findings for the next session"


def _remove_leftovers(directory: Path) -> int:
    """Remove what killed processes left half-written; how many files those were."""
    removed = 0
    for path in directory.rglob(".*.tmp"):
        try:
            if time.time() - path.stat().st_mtime > spool.LEFTOVER_SECONDS:
                path.unlink()
                removed += 1
        except FileNotFoundError:  # finished since the listing
            continue
    return removed


JOBS = (
    Job(
        "reconcile", "read what crashed sessions left in their transcripts", 10 * MINUTE, _reconcile
    ),
    Job("retry", "try the events again that were given up", 6 * HOUR, _retry),
    Job("health", "look for what a person should hear of", HOUR, _health),
    Job("index", "bring the index of every project into step", DAY, _index),
    Job("tidy", "remove what is past its time, and give back disk space", DAY, _tidy),
)


class JobBook:
    """How all jobs stand, kept in `run/jobs.json`; if that is lost, all are due."""

    def __init__(self, home: Home) -> None:
        self._path = Path(home.run, "jobs.json")

    def states(self) -> dict[str, JobState]:
        """By name. Raises `NewerFileError`."""
        found: dict[str, JobState] = {}
        try:
            value = parse_json(self._path.read_bytes())
            check_version(self._path, value, VERSION)
            found = {name: JobState(**state) for name, state in value.items() if name != FIELD}
        except FileNotFoundError:
            pass
        except (OSError, ValueError, TypeError, AttributeError) as error:
            logger.warning("%s is damaged and begun anew: %s", self._path, error)
        return {job.name: found.get(job.name, JobState()) for job in JOBS}

    def save(self, name: str, state: JobState) -> None:
        """Change one. Raises `OSError`, `NewerFileError`."""
        states = self.states() | {name: state}
        make_private_directory(str(self._path.parent))
        value = {FIELD: VERSION, **{one: asdict(state) for one, state in states.items()}}
        write_durably(str(self._path), json.dumps(value, indent=1).encode("ascii"))

    def due(self, now: float) -> list[Job]:
        """The jobs whose time has come; also where the clock was set back behind the last run.

        Raises `NewerFileError`.
        """
        states = self.states()
        return [
            job
            for job in JOBS
            if not states[job.name].paused
            and not 0 <= now - states[job.name].last < job.every_seconds
        ]

    def pause(self, name: str, paused: bool) -> None:
        """Leave a job out from now on, or no longer.

        Raises `NotFoundError`, `OSError`, `NewerFileError`.
        """
        state = self.states()[job_named(name).name]
        self.save(name, JobState(**{**asdict(state), "paused": paused}))


def job_named(name: str) -> Job:
    """The job of that name. Raises `NotFoundError`."""
    for job in JOBS:
        if job.name == name:
            return job
    known = ", ".join(job.name for job in JOBS)
    raise NotFoundError(f"there is no job {name!r}; there are {known}")


def run_job(job: Job, around: Surroundings) -> JobState:
    """Run one, note how it ended, and return that. The caller holds the index lock."""
    started = time.time()
    try:
        result, failed = job.run(around), False
    except (MemkitError, OSError) as error:
        logger.warning("job %s failed: %s", job.name, error)
        result, failed = " ".join(str(error).split()), True
    book = JobBook(around.home)
    paused = book.states()[job.name].paused
    state = JobState(started, round(time.time() - started, 3), result, failed, paused)
    book.save(job.name, state)
    return state
