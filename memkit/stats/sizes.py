"""The room that memkit takes on the disk."""

from __future__ import annotations

import os
from collections.abc import Iterable

from memkit.hook.project import Project
from memkit.paths import Home


def sizes(home: Home, projects: Iterable[Project]) -> dict[str, int]:
    """Bytes of the memory of `projects`, and of what the memory home holds for all projects."""
    return {
        "memory": sum(directory_bytes(project.memory) for project in projects),
        "archive": directory_bytes(home.archive),
        "index": directory_bytes(home.index),
        "models": directory_bytes(home.models),
        "environment": directory_bytes(home.environments),
    }


def directory_bytes(directory: str) -> int:
    """The lengths of all files below `directory`, 0 if there is none; links below it are not followed.

    What cannot be looked into, or is removed meanwhile, counts nothing.
    """
    total = 0
    waiting = [directory]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue
    return total
