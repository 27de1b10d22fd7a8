"""How memkit starts and ends other processes, which Windows does in its own way.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from subprocess import Popen

# In `subprocess` only Windows has these names. With DETACHED_PROCESS instead, each console program
# that such a process runs (git, claude) would open a window of its own.
_CREATE_NEW_PROCESS_GROUP = 0x00000200
_CREATE_NO_WINDOW = 0x08000000


def no_window() -> dict[str, Any]:
    """Arguments for `subprocess` that keep a child from opening a console window."""
    return {"creationflags": _CREATE_NO_WINDOW} if sys.platform == "win32" else {}


def find_program(name: str, path: str | None = None) -> str | None:
    """The absolute path of a program on `PATH`, or on `path`; None if there is none.

    Never one in the current directory, where Windows looks first: that may be a stranger's repository.
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
    """Arguments for `subprocess`, for a child that no Ctrl-C and no end of our terminal reaches.

    It leads a group of its own, which `kill_group` ends, and may outlive us.
    """
    if sys.platform == "win32":
        return {"creationflags": _CREATE_NO_WINDOW | _CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}


def kill_group(process: Popen[Any]) -> None:
    """Kill a child that was started `detached`, with all it started, and wait for its end."""
    if sys.platform == "win32":
        if process.poll() is None:  # its number may be another's by now
            _kill_tree(process.pid)
    else:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # all gone; macOS says the latter of zombies
            pass
    process.kill()
    process.wait()


def _system_program(name: str) -> str:
    return "{}\\System32\\{}".format(os.environ.get("SYSTEMROOT") or "C:\\Windows", name)


def _kill_tree(number: int) -> None:
    """Kill a process of Windows and its children; without `taskkill` the children stay."""
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
