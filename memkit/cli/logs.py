"""The log of the command line, and `memkit logs`."""

from __future__ import annotations

import faulthandler
import io
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import click

from memkit.cli.context import Context, command
from memkit.cli.output import echo
from memkit.files import make_private_directory
from memkit.paths import Home

LOG_BYTES = 1_000_000
LOG_FILES = 3
"""The number of older files next to `memkit.log`: `memkit.log.1` and so on."""

RECORD_CHARACTERS = 20_000
"""A longer record, such as one that quotes an error of a library, is cut."""

SHOWN_LINES = 50
POLL_SECONDS = 0.3
"""The pause between two reads of a followed log."""


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


@command("logs")
@click.option(
    "--lines", "-n", type=click.IntRange(min=0), default=SHOWN_LINES, show_default=True,
    help="The number of lines of each log.",
)  # fmt: skip
@click.option("--follow", "-f", is_flag=True, help="Print new lines until Ctrl-C.")
def logs_command(context: Context, lines: int, follow: bool) -> None:
    """Show the last lines of the logs: of memkit, of its hooks, and of the processes these started.

    \b
      memkit logs
      memkit logs --lines 200
      memkit logs --follow
    """
    if follow and context.as_json:
        raise click.UsageError("--follow prints lines, not one JSON object")
    follower = _Follower(context.home) if follow else None
    show_logs(context, lines)
    while follower is not None:
        for name, line in follower.new_lines():
            echo(f"{name}: {line}")
        time.sleep(POLL_SECONDS)


def show_logs(context: Context, count: int = SHOWN_LINES) -> None:
    """Print the last `count` lines of each log."""
    found = {path.name: _last_lines(path, count) for path in _logs(context.home)}
    found = {name: lines for name, lines in found.items() if lines}
    blocks = ["\n".join([f"==> {name} <==", *lines]) for name, lines in found.items()]
    context.report(found, *(blocks or ["The logs are empty."]))


def _logs(home: Home) -> list[Path]:
    return [Path(home.hook_log), Path(home.worker_log), Path(home.log_file)]


def _last_lines(path: Path, count: int) -> list[str]:
    lines: list[str] = []
    older = [path.with_name(f"{path.name}.{number}") for number in range(1, LOG_FILES + 1)]
    for one in (path, *older):
        if len(lines) >= count or not one.exists():
            break
        lines = one.read_text(encoding="utf-8", errors="replace").splitlines() + lines
    return lines[-count:] if count else []


class _Follower:
    """Reads new lines of the logs, which other processes may create, rotate, or empty."""

    def __init__(self, home: Home) -> None:
        self._paths = _logs(home)
        self._open = {path: path.open("rb") for path in self._paths if path.exists()}
        for file in self._open.values():
            file.seek(0, os.SEEK_END)

    def new_lines(self) -> Iterator[tuple[str, str]]:
        """Yield each complete line added since the last call, with the name of its log."""
        for path in self._paths:
            file = self._open.get(path)
            if file is not None:
                yield from _read_lines(path, file)
            if path.exists() and (
                file is None or not os.path.samestat(os.fstat(file.fileno()), path.stat())
            ):
                if file is not None:
                    file.close()
                self._open[path] = path.open("rb")
                yield from _read_lines(path, self._open[path])


def _read_lines(path: Path, file: BinaryIO) -> Iterator[tuple[str, str]]:
    if os.fstat(file.fileno()).st_size < file.tell():
        file.seek(0)
    while line := file.readline():
        if not line.endswith(b"\n"):  # not complete yet
            file.seek(-len(line), os.SEEK_CUR)
            return
        yield path.name, line.decode("utf-8", "replace").rstrip("\n")
