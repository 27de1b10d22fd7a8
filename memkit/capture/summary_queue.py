"""The queue of sessions with turns to summarize, and their attempts: one small file for each session.

Only live sessions and `memkit summarize` add to it: an import never starts a model call. Losing the files
loses only pending summaries, which `memkit summarize` makes.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from memkit.errors import NewerFileError
from memkit.files import PRIVATE_FILE, make_private_directory, write_durably
from memkit.paths import Home
from memkit.state import FIELD, check_version, parse_json

logger = logging.getLogger(__name__)

VERSION = 1
"""Version of the files' format."""

LOCK_SECONDS = 30.0


@dataclass(slots=True)
class Attempt:
    """The failed calls for a segment.

    Attributes:
        count: how many calls failed.
        since: when the first one failed, in seconds since the epoch.
        again: when to try again, in seconds since the epoch.
        reason: why the last one failed.
        given_up: whether there is no further attempt.
        is_suspect: whether the segment, and not the provider, may be the cause.
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

    `changed` is when a turn was added last; `tries` are by segment.
    """

    root: str
    session: str
    days: list[str] = field(default_factory=list)
    changed: float = 0.0
    tries: dict[str, Attempt] = field(default_factory=dict)


class SummaryQueue:
    """The queued sessions of one memory home."""

    def __init__(self, home: Home) -> None:
        self.directory = Path(home.summaries)

    def add(self, root: str, session: str, days: Iterable[str], now: float) -> None:
        """Queue, durably, the turns of these days. Raise `OSError`, `NewerFileError`."""
        with self._locked():
            waiting = self._read(self._path(root, session)) or QueuedSession(root, session)
            waiting.days = sorted({*waiting.days, *days})
            waiting.changed = now
            self._write(waiting)

    def note(self, waiting: QueuedSession, finished: Iterable[str]) -> None:
        """Store the attempts of a session and drop its `finished` days; without days, drop the session.

        Keep the days if turns were added since `waiting` was read. Raise `OSError`.
        """
        path = self._path(waiting.root, waiting.session)
        with self._locked():
            present = self._read(path)
            if present is None:
                return
            if present.changed == waiting.changed:
                present.days = [day for day in present.days if day not in set(finished)]
            present.tries = waiting.tries
            if present.days:
                self._write(present)
            else:
                path.unlink()

    def __iter__(self) -> Iterator[QueuedSession]:
        for path in sorted(self.directory.glob("*.json")):
            try:
                waiting = self._read(path)
            except NewerFileError as error:
                logger.warning("%s", error)
                continue
            if waiting is not None:
                yield waiting

    def __bool__(self) -> bool:
        return any(True for _ in self.directory.glob("*.json"))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        from filelock import FileLock  # 0.05 s, only where something is written

        make_private_directory(str(self.directory))
        with FileLock(self.directory / "waiting.lock", LOCK_SECONDS, mode=PRIVATE_FILE):
            yield

    def _path(self, root: str, session: str) -> Path:
        key = f"{root}\0{session}".encode("utf-8", "surrogateescape")
        return self.directory / f"{hashlib.sha256(key).hexdigest()[:24]}.json"

    def _write(self, waiting: QueuedSession) -> None:
        data = json.dumps({FIELD: VERSION, **msgspec.to_builtins(waiting)}).encode("ascii")
        write_durably(str(self._path(waiting.root, waiting.session)), data)

    def _read(self, path: Path) -> QueuedSession | None:
        try:
            value = parse_json(path.read_bytes())
            check_version(path, value, VERSION)
            return msgspec.convert(value, QueuedSession)
        except FileNotFoundError:
            return None
        except (ValueError, AttributeError, msgspec.ValidationError) as error:
            logger.warning("%s is damaged and read as empty: %s", path, error)
            return None
