"""Takes out of the memory what is older than a person wants to keep, and what stands in the archive of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

from memkit.capture.project_list import projects_with_memory
from memkit.hook.project import Project
from memkit.ipc import unindexed
from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.settings.load import Settings

DAY_SECONDS = 86400.0


def remove_old_days(home: Home, settings_of: Callable[[Project], Settings], today: date) -> dict[str, int]:
    """Delete the days older than `memory.keep_days` from the projects' memories; how many by their roots.

    The user's own memory holds what was to last: nothing goes from it by its age. Where something goes, the
    project is marked as changed before. The caller holds the index lock. Raises `JournalError`, `OSError`.
    """
    removed = {}
    for project in projects_with_memory(home):
        settings = settings_of(project).memory
        if not settings.keep_days or project.memory == home.memory:
            continue
        journal = Journal(project, shared=settings.shared)
        first = (today - timedelta(days=settings.keep_days)).isoformat()
        if any(day < first for day in journal.days()):
            unindexed.mark(home, project.root)
            removed[project.root] = len(journal.remove_older(first))
    return removed


def remove_old_replaced(home: Home, keep_days: int, now: float) -> int:
    """Delete what restores and compactions replaced more than `keep_days` ago; how many those were.

    0 days keep it for ever. `now` is in seconds since the epoch. Raises `OSError`.
    """
    kept = [*Path(home.before_restore).glob("*"), *Path(home.replaced).glob("*/*.md")]
    old = [
        path
        for path in kept
        if keep_days and now - path.stat().st_mtime > keep_days * DAY_SECONDS
    ]
    for path in old:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return len(old)
