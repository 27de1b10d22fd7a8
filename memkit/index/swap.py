"""Puts a directory that was made aside in the place of the index, so that a kill leaves a whole one."""

from __future__ import annotations

import shutil
from pathlib import Path


def made_aside(path: Path) -> Path:
    """Where the next index is made that is to lie at `path`."""
    return path.with_name(f"{path.name}.new")


def swap(path: Path) -> None:
    """Put what was made aside in the place of `path`. The caller holds the index lock. Raises `OSError`."""
    path.rename(_replaced(path))
    made_aside(path).rename(path)
    finish_swap(path)


def finish_swap(path: Path) -> None:
    """Bring a swap to an end during which a process was killed; what it replaced is in force again, or gone.

    The caller holds the index lock. Raises `OSError`.
    """
    replaced = _replaced(path)
    if not replaced.is_dir():
        return
    if path.exists():
        shutil.rmtree(replaced)
    else:
        replaced.rename(path)


def _replaced(path: Path) -> Path:
    return path.with_name(f"{path.name}.old")
