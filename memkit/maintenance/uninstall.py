"""Removes memkit from this machine, from inside the environment that it removes: that comes last.

What is imported while it runs is imported at its start: the client may take the plugin's files away, and this
the packages.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memkit import environment
from memkit.errors import MemkitError
from memkit.index import index_lock
from memkit.ipc import address
from memkit.ipc.stop import stop
from memkit.locks import is_locked
from memkit.maintenance.owned_files import OwnedFiles
from memkit.maintenance.plugin import uninstall_plugin
from memkit.paths import Home

LOCK_SECONDS = 120.0


@dataclass(slots=True)
class Uninstalled:
    """What was removed (paths), and what could not be: a line each."""

    removed: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def uninstall(home: Home, plugins: Sequence[str], own: OwnedFiles) -> Uninstalled:
    """Stop the service, have the client uninstall `plugins`, and remove `own`.

    Can be killed and done again. Raises `MemkitError` if a process of memkit's does not end; then no file
    is removed.
    """
    if is_locked(environment.lock_file(home.root)):
        raise MemkitError("memkit's environment is being made; try again when that has ended")
    stop(home)
    report = Uninstalled(problems=uninstall_plugin(plugins))
    stop(home)  # a hook may have started it anew meanwhile
    with index_lock(home, LOCK_SECONDS):
        for path in own.removed:
            _remove(path, report)
        _remove_socket(home, report)
        Path(home.index_holder).unlink(missing_ok=True)  # made when this took the lock
        for directory in (*own.directories, Path(home.root)):
            with contextlib.suppress(OSError):  # it holds something else, which has been named
                directory.rmdir()
    return report


def _remove(path: Path, report: Uninstalled) -> None:
    """Remove a file or link, or a directory with all that is in it."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        report.problems.append(f"{path}: {error.strerror or error}")
    else:
        report.removed.append(str(path))


def _remove_socket(home: Home, report: Uninstalled) -> None:
    try:
        address.remove(home)
    except OSError as error:
        report.problems.append(f"the socket of the service: {error.strerror or error}")
