"""The log of the command line. A module of its own: commands that log nothing do without `logging`."""

from __future__ import annotations

import logging
from pathlib import Path

from memkit.paths import Home, make_private_directory

LOG_BYTES = 1_000_000
LOG_FILES = 3


class _LogFile(logging.Handler):
    """A rotating log that makes its directory only when there is something to write."""

    def __init__(self, home: Home) -> None:
        super().__init__(logging.INFO)
        self.home = home
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
        self._file: logging.Handler | None = None

    def emit(self, record: logging.LogRecord) -> None:
        from logging.handlers import RotatingFileHandler  # 20 ms, mostly of its network handlers

        try:
            if self._file is None:
                make_private_directory(self.home.log)
                Path(self.home.log_file).touch(0o600)
                self._file = RotatingFileHandler(
                    self.home.log_file, maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8"
                )
                self._file.setFormatter(self.formatter)
            self._file.emit(record)
        except OSError:  # a read-only home: the command itself says what it could not do
            pass


def log_to_file(home: Home) -> None:
    """Send memkit's log to `MEMKIT_HOME/log/memkit.log`."""
    logging.raiseExceptions = False  # a full disk is no reason to print tracebacks
    logger = logging.getLogger("memkit")
    if not any(isinstance(handler, _LogFile) for handler in logger.handlers):
        logger.addHandler(_LogFile(home))
        logger.setLevel(logging.INFO)
        logger.propagate = False
