"""The sessions that are live: between SessionStart and SessionEnd, while their Claude Code process exists.

Claude Code fires no SessionEnd after a crash or with `-p`. One small file for each session in `run/live`.
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
"""Tolerance for a process's creation time: the clock may be set in between."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LiveSession:
    """A live session: its project's root, and its Claude Code process by id and creation time."""

    session: str
    root: str
    client: int
    created: float

    @property
    def is_alive(self) -> bool:
        """Whether its process exists; the system reuses ids, but not creation times."""
        created = _created(self.client)
        return created is not None and abs(created - self.created) < SAME_SECONDS


class LiveSessions:
    """The live sessions of one memory home."""

    def __init__(self, home: Home) -> None:
        self.directory = Path(home.live)

    def begin(self, session: str, root: str, process: int) -> None:
        """Record that a session has started, unless its process is gone. Raise `OSError`."""
        created = _created(process)
        if created is None:
            return
        make_private_directory(str(self.directory))
        value = asdict(LiveSession(session, root, process, created))
        write_durably(str(self._path(session)), json.dumps(value).encode("ascii"))

    def end(self, session: str) -> None:
        """Record that a session has ended."""
        self._path(session).unlink(missing_ok=True)

    def __iter__(self) -> Iterator[LiveSession]:
        for path in sorted(self.directory.glob("*.json")):
            try:
                found = LiveSession(**parse_json(path.read_bytes()))
                is_alive = found.is_alive
            except FileNotFoundError:  # ended since the listing
                continue
            except (OSError, ValueError, TypeError) as error:
                logger.warning("%s is damaged and removed: %s", path, error)
                is_alive = False
            if is_alive:
                yield found
            else:
                path.unlink(missing_ok=True)

    def _path(self, session: str) -> Path:
        return self.directory / f"{digest(session)[:24]}.json"


def _created(process: int) -> float | None:
    """Return when a process was created, in seconds since the epoch; None if it does not exist."""
    try:
        found = psutil.Process(process)
        return None if found.status() == psutil.STATUS_ZOMBIE else found.create_time()
    except (psutil.Error, ValueError, OverflowError):
        return None
