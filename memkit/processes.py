"""Find, start, and kill other processes, on Windows too.

Standard library only, Python 3.9 syntax: hooks import this module.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from subprocess import Popen

# `subprocess` has these names on Windows only. With DETACHED_PROCESS instead, each console program that such
# a process runs (git, claude) would open a window.
_CREATE_NEW_PROCESS_GROUP = 0x00000200
_CREATE_NO_WINDOW = 0x08000000


def no_window() -> dict[str, Any]:
    """Return the `subprocess` arguments that keep a child from opening a console window."""
    return {"creationflags": _CREATE_NO_WINDOW} if sys.platform == "win32" else {}


def find_program(name: str, path: str | None = None) -> str | None:
    """Return the absolute path of a program on `PATH`, or on `path`, None if there is none.

    Ignore the current directory, where Windows looks first: it may be a stranger's repository.
    """
    endings = [""]
    if sys.platform == "win32":
        endings = os.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(";")
    given = os.environ.get("PATH", os.defpath) if path is None else path
    for directory in filter(os.path.isabs, given.split(os.pathsep)):
        for ending in endings:
            found = os.path.join(directory, name + ending)
            if os.path.isfile(found) and os.access(found, os.X_OK):
                return found
    return None


def detached() -> dict[str, Any]:
    """Return the `subprocess` arguments for a child that survives Ctrl-C and the end of the terminal.

    It leads a process group, which `kill_group` kills, and may outlive this process.
    """
    if sys.platform == "win32":
        return {"creationflags": _CREATE_NO_WINDOW | _CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}


def kill_group(process: Popen[Any]) -> None:
    """Kill a child that was started with `detached`, and all that it started. Wait for its end."""
    if sys.platform == "win32":
        if process.poll() is None:  # its id may belong to another process by now
            _kill_tree(process.pid)
    else:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # all gone; macOS raises the latter for zombies
            pass
    process.kill()
    process.wait()


def _system_program(name: str) -> str:
    return "{}\\System32\\{}".format(os.environ.get("SYSTEMROOT") or "C:\\Windows", name)


def _kill_tree(number: int) -> None:
    """Kill a Windows process and its children. Without `taskkill` the children survive."""
    import subprocess

    try:
        subprocess.run(
            [_system_program("taskkill.exe"), "/F", "/T", "/PID", str(number)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            **no_window(),
        )
    except OSError:  # not on PATH
        pass
