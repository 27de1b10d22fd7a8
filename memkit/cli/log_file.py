"""The log file of the command line and the service."""

from __future__ import annotations

import faulthandler
import io
import logging
from pathlib import Path

from memkit.files import make_private_directory
from memkit.paths import Home

LOG_BYTES = 1_000_000
LOG_FILES = 3
"""The number of older files next to `memkit.log`: `memkit.log.1` and so on."""

RECORD_CHARACTERS = 20_000
"""A longer record, such as one that quotes an error of a library, is cut."""


def log_to_file(home: Home) -> None:
    """Send memkit's log to `MEMKIT_HOME/log/memkit.log`."""
    logging.raiseExceptions = False  # a full disk must not print tracebacks
    logger = logging.getLogger("memkit")
    if not any(isinstance(handler, _LogFile) for handler in logger.handlers):
        logger.addHandler(_LogFile(home))
        logger.setLevel(logging.INFO)
        logger.propagate = False


def stop_logging() -> None:
    """Stop logging before the log directory is removed; the next line would create it again."""
    logger = logging.getLogger("memkit")
    logger.handlers.clear()
    logger.addHandler(logging.NullHandler())


class _LogFile(logging.Handler):
    """A rotating log that creates its directory with the first record."""

    def __init__(self, home: Home) -> None:
        super().__init__(logging.INFO)
        self.home = home
        self._file: logging.Handler | None = None

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if self._file is None:
                make_private_directory(self.home.log)
                self._file = _rotating_file(self.home)
            self._file.emit(record)
        except OSError:  # a read-only home: the command reports its own errors
            pass


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return text if len(text) <= RECORD_CHARACTERS else f"{text[:RECORD_CHARACTERS]} …"


def _rotating_file(home: Home) -> logging.Handler:
    from logging.handlers import RotatingFileHandler  # 20 ms, mostly of its network handlers

    class PrivateFile(RotatingFileHandler):
        def _open(self) -> io.TextIOWrapper:  # also after each rotation
            Path(self.baseFilename).touch(0o600)
            file = super()._open()
            faulthandler.enable(file)
            return file

    file = PrivateFile(home.log_file, maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8")
    file.setFormatter(_Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    return file
