"""Maintenance of a memory home. This module deletes what is older than the user wants to keep it; others back
up, restore, merge, and uninstall.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

from memkit.capture.project_list import projects_with_memory
from memkit.errors import MemkitError
from memkit.files import RefusedFileError
from memkit.ipc import unindexed
from memkit.journal.facts import is_fact_file
from memkit.journal.journal import Journal
from memkit.paths import OPENCLAW_DAYS, Home
from memkit.projects.git import tracked_below
from memkit.projects.project import OWN_FOLDER, Project
from memkit.projects.registry import changing
from memkit.settings.load import Settings
from memkit.timeline.nodes import parse_span

# Choose the folder of a project's new days: memkit's own, or OpenClaw's `memory/`.
#
# Nothing is moved: a day stays where it began, and both folders are remembered. The choice is in the registry
# of projects, in the memory home, so no repository can make it. There are no other folders to choose: memkit
# writes to no `src/` or `.git/hooks`.

def choose_folder(project: Project, folder: str, home: Home, *, shared: bool) -> Project:
    """Have new days of `project` go to `folder`, `OPENCLAW_DAYS` or `OWN_FOLDER`. Return the changed project.

    Have git ignore the folder before the first day is written, unless the memory is `shared`. Doing this
    twice changes nothing more. Raise `MemkitError` with the reason if memkit cannot use the folder;
    then nothing is changed.
    """
    if folder not in (OPENCLAW_DAYS, OWN_FOLDER):
        raise MemkitError(f"days can be in {OWN_FOLDER} or in {OPENCLAW_DAYS}, not in {folder}")
    chosen = Project(project.root, home)
    if not has_folders(project, home):
        raise MemkitError(f"{project.memory} belongs to no directory of yours, so it has no other folder")
    if folder == OWN_FOLDER and not chosen.folder:
        return chosen
    chosen.folder = folder
    if folder == OPENCLAW_DAYS:
        _check(chosen, shared=shared)
    with changing(home) as registry:
        registry.folders[project.root] = folder
    unindexed.mark(home, project.root)
    Journal(chosen, shared=shared, home=home).prepare()
    return chosen


def has_folders(project: Project, home: Home) -> bool:
    """Return whether the project has a directory of its own: its memory is not in the memory home."""
    under_home = (home.projects, os.path.realpath(home.projects))
    return project.memory != home.memory and os.path.dirname(project.root) not in under_home


def _check(project: Project, *, shared: bool) -> None:
    tracked = [] if shared else tracked_below(project.root, project.openclaw)
    if tracked:
        raise MemkitError(
            f"git tracks {tracked[0]}, and memory.shared is off: git would commit private text; in "
            f"a terminal of your own, take the folder out of git with `git rm -r --cached {OPENCLAW_DAYS}`, "
            "or share the memories of all projects with `memkit config set memory.shared true`"
        )
    try:
        project.real_file(os.path.join(project.openclaw, "0000-00-00.md"))
    except RefusedFileError as error:
        raise MemkitError(f"{project.openclaw} cannot be used: {error.strerror}") from error
    if os.path.lexists(project.openclaw) and not os.path.isdir(project.openclaw):
        raise MemkitError(f"cannot create the folder {project.openclaw}: a file with that name exists")


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
