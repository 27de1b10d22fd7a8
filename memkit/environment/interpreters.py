"""Find a Python on this machine for which memkit has locked packages.

Standard library only, Python 3.9 syntax: runs in the user's `python3`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

from memkit.errors import MemkitError
from memkit.processes import find_program, no_window

MINIMUM = (3, 10)
"""The oldest Python that memkit itself runs on."""

NEWEST_MINOR = 14
"""The newest 3.x with locked packages."""

_PROBE = """
import importlib.util, sys
has_venv = all(map(importlib.util.find_spec, ("venv", "ensurepip")))
print(*sys.version_info[:3], int(has_venv))
"""


class EnvironmentBuildError(MemkitError):
    """A private Python environment cannot be built."""


class StillBuildingError(EnvironmentBuildError):
    """Another process is still building the environment."""


class Interpreter(NamedTuple):
    """A Python on this machine."""

    path: str
    version: tuple[int, int, int]
    has_venv: bool
    """Whether it can create environments; some distributions have that in another package."""


def find_interpreter(may_be_managed: bool = False) -> Interpreter | None:
    """Return the running Python if the lock has packages for it, else the newest on PATH.

    Prefer one that has venv. If there is none, return None if uv may install one (`may_be_managed`), else
    raise `EnvironmentBuildError`.
    """
    usable, refused = [], []
    for path in _candidates():
        found = _probe(path)
        if found is None:
            continue
        if not MINIMUM <= found.version[:2] <= (3, NEWEST_MINOR):
            refused.append("{}.{}.{} ({})".format(*found.version, found.path))
        elif found.has_venv:
            return found
        else:
            usable.append(found)
    if usable:
        return usable[0]
    if may_be_managed:
        return None
    raise EnvironmentBuildError(
        "memkit needs Python {}.{} to 3.{}; found {}. Install one, or set MEMKIT_PYTHON to one that "
        "has memkit's dependencies.".format(*MINIMUM, NEWEST_MINOR, ", ".join(refused) or "none")
    )


def _candidates() -> Iterator[str]:
    if sys.executable:
        yield sys.executable
    for minor in range(NEWEST_MINOR, MINIMUM[1] - 1, -1):
        path = find_program(f"python3.{minor}")
        if path is not None:
            yield path
    if sys.platform == "win32":
        yield from _windows_candidates()


def _windows_candidates() -> Iterator[str]:
    """Yield `python` on PATH and the newest Python of the launcher `py`: Windows names have no version."""
    python, launcher = find_program("python"), find_program("py")
    if python is not None:
        yield python
    if launcher is not None:
        answer = _ask([launcher, "-3", "-I", "-c", "import sys; print(sys.executable)"])
        if answer:
            yield answer


def _probe(path: str) -> Interpreter | None:
    """Return the Python at `path`, or None if it does not work, like a version manager's empty launcher."""
    try:
        major, minor, micro, has_venv = map(int, _ask([path, "-I", "-c", _PROBE]).split())
    except ValueError:
        return None
    return Interpreter(path, (major, minor, micro), bool(has_venv))


def _ask(command: list[str]) -> str:
    try:
        answer: subprocess.CompletedProcess[bytes] = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=20,
            check=True,
            **no_window(),
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return os.fsdecode(answer.stdout).strip()
