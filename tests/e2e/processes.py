"""Processes recognised by their environment, so that a test can prove that none is left.

It reads `/proc`, which only Linux has.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """A live process; `command` is its command line as one string."""

    pid: int
    command: str


def processes_with(variable: str) -> list[Process]:
    """The live processes whose environment holds `variable`, written `NAME=value`.

    A process is known by the environment it was started with; a zombie has none.
    """
    if not Path("/proc/self/environ").exists():
        raise RuntimeError("The e2e tests need Linux: they look for processes in /proc.")
    wanted = variable.encode()
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            environment = (directory / "environ").read_bytes().split(b"\0")
            command = (directory / "cmdline").read_bytes()
        except OSError:  # gone meanwhile, or another user's
            continue
        if wanted in environment:
            words = command.rstrip(b"\0").split(b"\0")
            found.append(Process(int(directory.name), b" ".join(words).decode(errors="replace")))
    return found


def kill(process: Process) -> None:
    """Kill `process` if it still lives."""
    try:
        os.kill(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
