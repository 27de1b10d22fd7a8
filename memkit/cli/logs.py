"""`memkit logs`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import click

from memkit.cli.context import Context, command
from memkit.cli.log_file import LOG_FILES
from memkit.cli.output import echo
from memkit.paths import Home

SHOWN_LINES = 50
POLL_SECONDS = 0.3
"""The pause between two reads of a followed log."""


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
