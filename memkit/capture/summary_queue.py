"""The queue of sessions with turns to summarize, and the failed attempts: one small file per session.

Only a live session or a user adds to it: an import alone never starts a model call. If the files are
lost, `memkit summarize` still finds their turns.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from memkit.errors import NewerFileError
from memkit.files import PRIVATE_FILE, make_private_directory
from memkit.paths import Home
from memkit.state import read_state_or_none, write_state
from memkit.typed import typed

logger = logging.getLogger(__name__)

VERSION = 1
"""The format version of the files."""

LOCK_SECONDS = 30.0


@dataclass(slots=True)
class Attempt:
    """The failed calls for a segment.

    Attributes:
        count: how many calls failed.
        since: the time of the first failure, in seconds since the epoch.
        again: the earliest time of the next call, in seconds since the epoch.
        reason: the error of the last call.
        given_up: whether there is no next call.
        is_suspect: whether the segment itself, not its provider, may be at fault.
    """

    count: int = 0
    since: float = 0.0
    again: float = 0.0
    reason: str = ""
    given_up: bool = False
    is_suspect: bool = False


@dataclass(slots=True)
class QueuedSession:
    """A session of the project at `root` with turns to summarize on `days`.

    `changed` is the time at which a turn was last added. `tries` maps segments to their failed calls. `look`
    is the earliest time of a call for nothing but its bullets that are not checked yet.
    """

    root: str
    session: str
    days: list[str] = field(default_factory=list)
    changed: float = 0.0
    tries: dict[str, Attempt] = field(default_factory=dict)
    look: float = 0.0


class SummaryQueue:
    """The queued sessions of one memory home."""

    def __init__(self, home: Home) -> None:
        self.directory = Path(home.summaries)

    def add(self, root: str, session: str, days: Iterable[str], now: float) -> None:
        """Queue the turns of these days durably. Raise `OSError`, `NewerFileError`."""
        path = self._path(root, session)
        with self._locked():
            queued = _read(path) or QueuedSession(root, session)
            queued.days = sorted({*queued.days, *days})
            queued.changed = now
            _write(path, queued)

    def update(self, queued: QueuedSession, finished: Iterable[str] = ()) -> None:
        """Store the attempts of a session and drop its `finished` days, or the file with the last day.

        Days stay if turns were added since `queued` was read. Raise `OSError`.
        """
        path = self._path(queued.root, queued.session)
        with self._locked():
            present = _read(path)
            if present is None:
                return
            if present.changed == queued.changed:
                present.days = [day for day in present.days if day not in set(finished)]
            present.tries = queued.tries
            if present.days:
                _write(path, present)
            else:
                path.unlink()

    def postpone_look(self, root: str, session: str, until: float) -> None:
        """Store the earliest time of a call for nothing but unchecked bullets. Raise `OSError`."""
        path = self._path(root, session)
        with self._locked():
            queued = _read(path)
            if queued is not None:
                queued.look = until
                _write(path, queued)

    def __iter__(self) -> Iterator[QueuedSession]:
        for path in sorted(self.directory.glob("*.json")):
            try:
                queued = _read(path)
            except NewerFileError as error:
                logger.warning("%s", error)
                continue
            if queued is not None:
                yield queued

    def __bool__(self) -> bool:
        return any(True for _ in self.directory.glob("*.json"))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        from filelock import FileLock  # takes 0.05 s to import, and only writers need it

        make_private_directory(str(self.directory))
        with FileLock(self.directory / "waiting.lock", LOCK_SECONDS, mode=PRIVATE_FILE):
            yield

    def _path(self, root: str, session: str) -> Path:
        key = f"{root}\0{session}".encode("utf-8", "surrogateescape")
        return self.directory / f"{hashlib.sha256(key).hexdigest()[:24]}.json"


def _write(path: Path, queued: QueuedSession) -> None:
    write_state(path, VERSION, msgspec.to_builtins(queued))


def _read(path: Path) -> QueuedSession | None:
    return read_state_or_none(path, VERSION, lambda value: typed(value, QueuedSession))
