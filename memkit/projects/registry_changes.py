"""Change the registry of projects, one process at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from memkit.errors import MemkitError
from memkit.files import PRIVATE_FILE, make_private_directory
from memkit.hook.registry import Registry, path_of
from memkit.paths import Home

LOCK_SECONDS = 30.0
"""The longest wait for another process."""


@contextmanager
def changing(home: Home) -> Iterator[Registry]:
    """Yield the registry to be changed, and write it at the end. Raise `MemkitError`."""
    from filelock import FileLock, Timeout  # 0.05 s, only where something is written

    path = path_of(home)
    try:
        make_private_directory(home.projects)
        with FileLock(f"{path}.lock", LOCK_SECONDS, mode=PRIVATE_FILE):
            registry = Registry.read(home)
            if registry.problem:
                raise MemkitError(registry.problem)
            yield registry
            registry.write(home)
    except Timeout as error:
        raise MemkitError(f"{path} was busy for {LOCK_SECONDS:.0f} s; try again") from error
    except OSError as error:
        raise MemkitError(f"cannot change {path}: {error.strerror or error}") from error
