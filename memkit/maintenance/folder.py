"""Choose the folder of a project's new days: memkit's own, or OpenClaw's `memory/`.

Nothing is moved: a day stays where it began, and both folders are remembered. The choice is in the registry
of projects, in the memory home, so no repository can make it. There are no other folders to choose: memkit
writes to no `src/` or `.git/hooks`.
"""

from __future__ import annotations

import os

from memkit.errors import MemkitError
from memkit.files import RefusedFileError
from memkit.ipc import unindexed
from memkit.journal.journal import Journal
from memkit.paths import OPENCLAW_DAYS, Home
from memkit.projects.git import tracked_below
from memkit.projects.project import OWN_FOLDER, Project
from memkit.projects.registry import changing


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
        raise MemkitError(f"{project.openclaw} is a file; the folder of days would have its name")
