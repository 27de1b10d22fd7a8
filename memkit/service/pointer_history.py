"""Which pointers a session has been shown: none is shown twice."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path

from memkit.files import make_private_directory, write_durably
from memkit.index.chunk import digest
from memkit.paths import Home
from memkit.state import parse_json

logger = logging.getLogger(__name__)

KEEP_SECONDS = 14 * 86400.0
"""After so long without a new one the note of a session is removed."""


class PointerHistory:
    """One small file a session under `run/shown`; losing one costs a repetition."""

    def __init__(self, home: Home) -> None:
        self._directory = Path(home.run, "shown")

    def of(self, session: str) -> set[str]:
        """The ids shown in `session`."""
        try:
            value = parse_json(self._path(session).read_bytes())
            return {name for name in value if isinstance(name, str)}
        except FileNotFoundError:
            return set()
        except (OSError, ValueError, TypeError) as error:
            logger.warning("%s is damaged and read as empty: %s", self._path(session), error)
            return set()

    def add(self, session: str, ids: list[str]) -> None:
        """Note that `ids` are shown in `session`. Raises `OSError`."""
        make_private_directory(str(self._directory))
        known = sorted(self.of(session) | set(ids))
        write_durably(str(self._path(session)), json.dumps(known).encode("ascii"))

    def tidy(self) -> int:
        """Remove the notes of sessions long past; how many those were."""
        removed = 0
        for path in self._directory.glob("*.json") if self._directory.is_dir() else ():
            try:
                if time.time() - path.stat().st_mtime > KEEP_SECONDS:
                    path.unlink()
                    removed += 1
            except FileNotFoundError:
                continue
        return removed

    def _path(self, session: str) -> Path:
        return self._directory / f"{digest(session)[:24]}.json"
