"""`memkit service` and `memkit logs`."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click

from memkit.cli.context import Context, command
from memkit.cli.log_file import LOG_FILES, log_to_file
from memkit.cli.output import echo, format_duration, print_fields
from memkit.errors import IndexBusyError, MemkitError
from memkit.ipc import launch
from memkit.ipc.client import ServiceUnavailable, request
from memkit.paths import Home
from memkit.text import plural

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
            if path.exists() and (file is None or not os.path.samestat(os.fstat(file.fileno()), path.stat())):
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


STATUS_SECONDS = 5.0
START_SECONDS = 30.0


@command("service")
@click.argument(
    "action", type=click.Choice(["status", "start", "stop", "restart", "logs", "run"]), default="status"
)
def service_command(context: Context, action: str) -> None:
    """Show or control the process that keeps the index and the model in memory.

    It starts when a session or a search needs it, and exits when it is idle (setting
    service.idle_minutes). `run` is that process, in the foreground.

    \b
      memkit service
      memkit service restart
    """
    if action == "run":
        _run(context)
        return
    if action == "logs":
        show_logs(context)
        return
    stopped = False
    if action in ("stop", "restart"):
        from memkit.ipc.stop import stop

        with context.progress("stopping the service", is_counted=False):
            stopped = stop(context.home)
    if action in ("start", "restart"):
        with context.progress("starting the service", is_counted=False):
            _start(context)
    value = _status(context)
    if context.as_json:
        context.print_json(value)
    elif action == "stop" and not value["running"]:
        echo("The service has stopped." if stopped else "No service was running.")
    else:
        _show(value)


def _run(context: Context) -> None:
    from memkit.service.server import CannotListenError, run

    if not os.path.isdir(context.home.root):
        return  # the home was removed since this was started; do not bring it back
    os.umask(0o077)
    log_to_file(context.home)
    try:
        if not run(context.home):
            context.say("the service is already running")
            return
    except CannotListenError as error:
        from memkit.cli.jobs import work_here

        logging.getLogger(__name__).warning("%s", error)
        context.say(f"{error}; working without a service")
        with contextlib.suppress(IndexBusyError):  # another worker does it
            for line in work_here(context).failures:
                context.say(line)
        return
    logging.shutdown()
    os._exit(0)  # without waiting for threads whose clients have gone


def _status(context: Context) -> dict[str, Any]:
    try:
        found: dict[str, Any] = request(context.home, "status", {}, STATUS_SECONDS)
    except ServiceUnavailable as error:
        hangs = launch.service_is_running(context.home)
        return {"running": hangs, "answers": False, "reason": str(error)}
    return {"running": True, "answers": True, **found}


def _start(context: Context) -> None:
    from memkit.ipc.stop import problem_of, wait_for

    problem = Path(context.home.service_problem)
    problem.unlink(missing_ok=True)
    launch.start(context.home, "service", "run")

    def has_started() -> bool:
        return bool(_status(context)["answers"]) or problem.exists()

    wait_for(has_started, START_SECONDS, "the service has not started")
    if problem.exists():
        reason = problem_of(context.home)
        raise MemkitError(f"the service cannot listen: {reason}; memkit works without it")


def _show(value: dict[str, Any]) -> None:
    if not value["running"]:
        echo("The service is not running.")
        return
    if not value["answers"]:
        reason = value["reason"]
        echo(f"The service is running, but does not answer ({reason}); run `memkit service restart`.")
        return
    chunks = sum(value["projects"].values())
    print_fields(
        {
            "process": f"{value['pid']}, version {value['version']}, "
            f"up {format_duration(value['uptime_seconds'])}",
            "memory": f"{value['memory_mb']:.0f} MB, {plural(value['threads'], 'thread')}",
            "sessions": plural(len(value["sessions"]), "live session"),
            "queue": f"{plural(value['queue'], 'task')}, {plural(value['waiting'], 'event')} waiting",
            "index": f"{plural(len(value['projects']), 'project')} open, {plural(chunks, 'chunk')}",
        }
    )
    for root, size in value["projects"].items():
        echo(f"          {root}: {plural(size, 'chunk')}")
    for line in value["errors"]:
        echo(f"error     {line}")
