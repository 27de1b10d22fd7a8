"""Which sessions are under way.

A session is live from its SessionStart to its SessionEnd, as long as the process of its client exists:
a client that crashed, or ran with `-p`, says no goodbye. One small file a session under `run/live`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from memkit.files import make_private_directory, write_durably
from memkit.index.chunk import digest
from memkit.paths import Home
from memkit.state import parse_json

SAME_SECONDS = 2.0
"""Times of creation are told by the clock of the day, which is set now and then."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LiveSession:
    """A session under way: its project's root, and its client's process by id and time of creation."""

    session: str
    root: str
    client: int
    created: float

    @property
    def is_alive(self) -> bool:
        """Whether its client's process exists; ids are used again, times of creation are not."""
        created = _created(self.client)
        return created is not None and abs(created - self.created) < SAME_SECONDS


class LiveSessions:
    """The sessions under way in one memory home."""

    def __init__(self, home: Home) -> None:
        self.directory = Path(home.live)

    def begin(self, session: str, root: str, client: int) -> None:
        """Note that a session has started; without effect if its client is gone. Raises `OSError`."""
        created = _created(client)
        if created is None:
            return
        make_private_directory(str(self.directory))
        value = asdict(LiveSession(session, root, client, created))
        write_durably(str(self._path(session)), json.dumps(value).encode("ascii"))

    def end(self, session: str) -> None:
        """Note that a session has ended."""
        self._path(session).unlink(missing_ok=True)

    def __iter__(self) -> Iterator[LiveSession]:
        for path in sorted(self.directory.glob("*.json")) if self.directory.is_dir() else ():
            try:
                found = LiveSession(**parse_json(path.read_bytes()))
                is_alive = found.is_alive
            except FileNotFoundError:  # ended since the listing
                continue
            except (OSError, ValueError, TypeError) as error:
                logger.warning("%s is damaged and forgotten: %s", path, error)
                is_alive = False
            if is_alive:
                yield found
            else:
                path.unlink(missing_ok=True)

    def _path(self, session: str) -> Path:
        return self.directory / f"{digest(session)[:24]}.json"


def _created(process: int) -> float | None:
    """When a process was created, in seconds since the epoch; None if there is none of that id."""
    try:
        found = psutil.Process(process)
        return None if found.status() == psutil.STATUS_ZOMBIE else found.create_time()
    except (psutil.Error, ValueError, OverflowError):
        return None
