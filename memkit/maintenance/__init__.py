"""Maintenance of a memory home. This module deletes what is older than the user wants to keep it; others back
up, restore, merge, and uninstall.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

from memkit.capture.project_list import projects_with_memory
from memkit.ipc import unindexed
from memkit.journal.facts import is_fact_file
from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.settings.load import Settings
from memkit.timeline.nodes import parse_span

DAY_SECONDS = 86400.0


def remove_old_days(home: Home, settings_of: Callable[[Project], Settings], today: date) -> dict[str, int]:
    """Delete days older than `memory.keep_days`, and rollups that end before. Return the number of deleted
    days by project root.

    Keep all of the user's own memory. Mark a project as unindexed before its first deletion. The caller
    holds the capture lock. Raise `JournalError`, `OSError`.
    """
    removed = {}
    for project in projects_with_memory(home):
        settings = settings_of(project).memory
        if not settings.keep_days or project.memory == home.memory:
            continue
        journal = Journal(project, shared=settings.shared)
        first = today - timedelta(days=settings.keep_days)
        rollups = [path for path in journal.markdown() if _ends_before(path, journal.directory, first)]
        if rollups or any(day < first.isoformat() for day in journal.days()):
            unindexed.mark(home, project.root)
            for path in rollups:
                journal.remove_file(path)
            removed[project.root] = len(journal.remove_older(first.isoformat()))
    return removed


def _ends_before(path: Path, directory: Path, day: date) -> bool:
    if path.parent != directory or not is_fact_file(path.name):
        return False
    span = parse_span(path.stem.removesuffix(".local"))
    return span is not None and span.last < day


def remove_old_replaced(home: Home, keep_days: int, now: float) -> int:
    """Delete the copies of files that a restore or compaction replaced more than `keep_days` ago.

    0 days keeps them forever. `now` is in seconds since the epoch. Return the number of deleted copies.
    Raise `OSError`.
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
