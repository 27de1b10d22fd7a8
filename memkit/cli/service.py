"""`memkit service`."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from pathlib import Path
from typing import Any

import click

from memkit.cli.context import Context, command, counted, plain
from memkit.errors import MemkitError

STATUS_SECONDS = 5.0
START_SECONDS = 30.0
STOP_SECONDS = 10.0
"""How long a service that answers may take to end."""

TERM_SECONDS = 3.0
"""How long one that does not may take after SIGTERM, before it is killed, which loses nothing."""

POLL_SECONDS = 0.05
SHOWN_LINES = 50


@command("service")
@click.argument("action", type=click.Choice(["start", "stop", "restart", "status", "logs", "run"]))
def service_command(context: Context, action: str) -> None:
    """The process that keeps index and model warm: start, stop, restart, status, logs.

    It starts by itself when a session or a search wants it, and ends by itself when nobody does
    (setting service.idle_minutes). `run` is that process, in the foreground.

    \b
      memkit service status
      memkit service restart
    """
    if action == "run":
        _run(context)
        return
    if action == "logs":
        _logs(context)
        return
    if action in ("stop", "restart"):
        _stop(context)
    if action in ("start", "restart"):
        _start(context)
    value = _status(context)
    if context.as_json:
        context.print_json(value)
    else:
        _show(value)


def _run(context: Context) -> None:
    from memkit.cli.log import log_to_file
    from memkit.service.server import run

    if not os.path.isdir(context.home.root):
        return  # the home is gone since somebody started this; do not bring it back
    os.umask(0o077)
    log_to_file(context.home)
    if not run(context.home):
        context.say("there is a service already")
        return
    logging.shutdown()
    os._exit(0)  # without waiting for threads that read for somebody who has left


def _status(context: Context) -> dict[str, Any]:
    from memkit.capture import launch
    from memkit.service.client import ServiceUnavailable, request

    try:
        found: dict[str, Any] = request(context.home, "status", {}, STATUS_SECONDS)
    except ServiceUnavailable as error:
        hangs = launch.service_is_running(context.home)
        return {"running": hangs, "answers": False, "reason": str(error)}
    return {"running": True, "answers": True, **found}


def _start(context: Context) -> None:
    from memkit.capture import launch

    launch.start(context.home, "service", "run")
    _wait(lambda: _status(context)["answers"], START_SECONDS, "the service has not started")


def _stop(context: Context) -> None:
    from memkit.capture import launch
    from memkit.service.client import request

    def has_ended() -> bool:
        return not launch.service_is_running(context.home)

    if has_ended():
        return
    try:
        request(context.home, "drain", {}, STATUS_SECONDS)
        _wait(has_ended, STOP_SECONDS, "the service has not ended")
    except MemkitError:  # it is not there to be asked, or does not end
        process = _holder(context)
        for number in (signal.SIGTERM, signal.SIGKILL):
            # The lock is held, so who wrote its number when it took it is alive, and is the one.
            if not has_ended():
                os.kill(process, number)
                with contextlib.suppress(MemkitError):
                    _wait(has_ended, TERM_SECONDS, "")
        _wait(has_ended, TERM_SECONDS, f"the service, process {process}, does not end")


def _holder(context: Context) -> int:
    """The process that holds the service's lock. Raises `MemkitError` if it has not said which it is."""
    try:
        return int(Path(context.home.service_process).read_text())
    except (OSError, ValueError) as error:
        raise MemkitError(
            "the service does not answer, and does not say which process it is"
        ) from error


def _wait(is_done: Any, seconds: float, problem: str) -> None:
    import time

    deadline = time.monotonic() + seconds
    while not is_done():
        if time.monotonic() > deadline:
            raise MemkitError(
                f"{problem} within {seconds:.0f} s; `memkit service logs` may say why"
            )
        time.sleep(POLL_SECONDS)


def _show(value: dict[str, Any]) -> None:
    if not value["running"]:
        click.echo("The service is not running.")
        return
    if not value["answers"]:
        click.echo(f"The service is running, but does not answer ({value['reason']}).")
        return
    chunks = sum(value["projects"].values())
    lines = {
        "process": f"{value['pid']}, version {value['version']}, up {_span(value['uptime_seconds'])}",
        "memory": f"{value['memory_mb']:.0f} MB, {counted(value['threads'], 'thread')}",
        "sessions": counted(len(value["sessions"]), "live session"),
        "queue": f"{counted(value['queue'], 'task')}, {counted(value['waiting'], 'event')} waiting",
        "index": f"{counted(len(value['projects']), 'project')} open, {counted(chunks, 'chunk')}",
    }
    for name, text in lines.items():
        click.echo(f"{name:<10}{plain(text)}")
    for root, size in value["projects"].items():
        click.echo(plain(f"          {root}: {counted(size, 'chunk')}"))
    for line in value["errors"]:
        click.echo(plain(f"error     {line}"))


def _span(seconds: float) -> str:
    minutes = int(seconds // 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"


def _logs(context: Context) -> None:
    paths = [Path(context.home.log_file), Path(context.home.log, "worker.log")]
    found = [path for path in paths if path.exists()]
    if not found:
        click.echo("There is no log yet.")
    for path in found:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        for line in lines[-SHOWN_LINES:]:
            click.echo(plain(line))
