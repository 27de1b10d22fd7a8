"""Change the registry of projects, one process at a time. `memkit.projects.project` reads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from memkit.errors import MemkitError
from memkit.files import PRIVATE_FILE, make_private_directory
from memkit.paths import Home
from memkit.projects.project import REGISTRY_MAPS, REGISTRY_VERSION, Registry, registry_path
from memkit.state import write_state

LOCK_SECONDS = 30.0
"""Longest wait for another process that changes the registry."""


@contextmanager
def changing(home: Home) -> Iterator[Registry]:
    """Yield the registry to be changed, and write it at the end. Raise `MemkitError`."""
    from filelock import FileLock, Timeout  # 0.05 s, only where something is written

    path = registry_path(home)
    try:
        make_private_directory(home.projects)
        with FileLock(f"{path}.lock", LOCK_SECONDS, mode=PRIVATE_FILE):
            registry = Registry.read(home)
            if registry.problem:
                raise MemkitError(registry.problem)
            yield registry
            write_state(path, REGISTRY_VERSION, {name: getattr(registry, name) for name in REGISTRY_MAPS})
    except Timeout as error:
        raise MemkitError(f"{path} was busy for {LOCK_SECONDS:.0f} s; try again") from error
    except OSError as error:
        raise MemkitError(f"cannot change {path}: {error.strerror or error}") from error
