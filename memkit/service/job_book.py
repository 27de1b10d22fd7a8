"""What `run/jobs.json` records of each job: its last run, an unfinished run, and whether it is paused."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec

from memkit.errors import MemkitError
from memkit.files import PRIVATE_FILE, make_private_directory
from memkit.paths import Home
from memkit.state import read_state_or_none, write_state
from memkit.text import one_line
from memkit.typed import typed

logger = logging.getLogger(__name__)

VERSION = 1
"""The format version of `run/jobs.json`."""

CHECKPOINT_SECONDS = 24 * 3600.0
"""The age at which an unfinished run starts over: too much has changed since."""

LOCK_SECONDS = 30.0


Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e11)]
"""What `time` can show as a date."""


class JobPaused(MemkitError):
    """The job was paused while it ran."""


@dataclass(frozen=True, slots=True)
class JobState:
    """The state of a job. All times are seconds since the epoch, 0 for never.

    Attributes:
        last: when the last run that ended had begun.
        seconds: how long it took.
        result: one line on what it did, or its error.
        failed: whether it failed.
        paused: whether the user paused the job.
        begun: when the unfinished run began.
        checkpoint: the last step that the unfinished run has done.
        progress: how far it came: "3 of 12".
        error: the last error of any run.
        error_time: when it happened.
    """

    last: Seconds = 0.0
    seconds: Seconds = 0.0
    result: str = ""
    failed: bool = False
    paused: bool = False
    begun: Seconds = 0.0
    checkpoint: str = ""
    progress: str = ""
    error: str = ""
    error_time: Seconds = 0.0


class JobBook:
    """The states of all jobs. If the file is lost, all jobs are due."""

    def __init__(self, home: Home) -> None:
        self._path = Path(home.run, "jobs.json")

    def states(self) -> dict[str, JobState]:
        """Return the known states by name. Raise `NewerFileError`."""

        def convert(value: dict[str, Any]) -> dict[str, JobState]:
            return {name: _checked(JobState(**one)) for name, one in value.items() if name != "version"}

        return read_state_or_none(self._path, VERSION, convert) or {}

    def state(self, name: str) -> JobState:
        """Return the state of one job. Raise `NewerFileError`."""
        return self.states().get(name, JobState())

    def update(self, name: str, **changes: Any) -> JobState:
        """Change some attributes of a job's state, and return it. Raise `OSError`, `NewerFileError`."""
        with self._locked():
            states = self.states()
            states[name] = replace(states.get(name, JobState()), **changes)
            write_state(self._path, VERSION, {one: asdict(state) for one, state in states.items()})
            return states[name]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        from filelock import FileLock  # takes 0.05 s to import, and only writers need it

        make_private_directory(str(self._path.parent))
        with FileLock(self._path.with_suffix(".lock"), LOCK_SECONDS, mode=PRIVATE_FILE):
            yield


def _checked(state: JobState) -> JobState:
    """Return a state as it was read. Raise `ValueError` for values that none can have."""
    try:
        return typed(asdict(state), JobState)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error


class JobRun:
    """One run of a job. If it is killed or paused, the next run continues after its last step."""

    def __init__(self, book: JobBook, name: str) -> None:
        self._book = book
        self._name = name
        state = book.state(name)
        self._was_paused = state.paused  # the user runs it all the same
        self._started = time.time()
        is_continued = 0 <= self._started - state.begun < CHECKPOINT_SECONDS
        self._checkpoint = state.checkpoint if is_continued else ""
        if not is_continued:
            book.update(name, begun=self._started, checkpoint="", progress="")

    def steps(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the names of the steps after the last one that was done.

        Record each step when the next one is asked for. Raise `JobPaused` between two if the user has paused
        the job meanwhile.
        """
        ordered = list(dict.fromkeys(names))
        done = ordered.index(self._checkpoint) + 1 if self._checkpoint in ordered else 0
        for number, name in enumerate(ordered[done:], start=done + 1):
            if not self._was_paused and self._book.state(self._name).paused:
                raise JobPaused(f"paused after {number - 1} of {len(ordered)}")
            yield name
            self._book.update(self._name, checkpoint=name, progress=f"{number} of {len(ordered)}")

    def perform(self, run: Callable[[JobRun], str]) -> JobState:
        """Call `run`, which returns one line on what it did, and record how it ended. Return the state."""
        finished = {"begun": 0.0, "checkpoint": "", "progress": ""}
        try:
            result = {"result": run(self), "failed": False, **finished}
        except JobPaused as error:
            return self._book.update(self._name, result=str(error), failed=False)
        except Exception as error:
            line = one_line(str(error))
            if not isinstance(error, (MemkitError, OSError)):
                logger.exception("job %s failed", self._name)  # and is not due again at once
                line = f"unexpected error ({type(error).__name__}: {line})"
            result = {"result": line, "failed": True, **finished}
            result |= {"error": line, "error_time": self._started}
        seconds = round(time.time() - self._started, 3)
        return self._book.update(self._name, last=self._started, seconds=seconds, **result)
