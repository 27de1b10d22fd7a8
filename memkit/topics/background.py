"""Keep topics up to date: decide which projects need it, and compute each in a process of its own.

A process of its own, with the lowest priority and one thread, delays no search, and its memory is gone
afterwards. A model is asked for labels here: what starts in that process asks none.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from memkit.environment import PYTHON_VARIABLE
from memkit.errors import MemkitError
from memkit.index import open_snapshot
from memkit.ipc import launch
from memkit.paths import Home
from memkit.processes import TooMuchOutputError, run_to_end
from memkit.projects.project import Project
from memkit.settings.load import Settings
from memkit.text import one_line, plural
from memkit.topics.clusters import count_points
from memkit.topics.files import derived_path, read_derived

if TYPE_CHECKING:
    from memkit.llm import Provider
    from memkit.settings import SummarizeSettings

logger = logging.getLogger(__name__)

ENOUGH_SHARE = 0.1
ENOUGH_ENTRIES = 50
"""Topics are computed again when their number of entries has changed by this share, or by this number."""

MOST_SECONDS = 1800.0

_THREADS = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "VECLIB", "LOKY")}


def changed_entries(project: Project, home: Home, settings: Settings) -> tuple[int, int]:
    """Return by how many entries a project has changed since its topics were computed, and how many it has.

    A project without an index has no entries. Raise `NewerFileError`.
    """
    snapshot = open_snapshot(project, home, settings)
    if snapshot is None:
        return 0, 0
    stored = read_derived(derived_path(project, home, settings))
    if stored is not None and stored.fingerprint == snapshot.fingerprint:
        return 0, stored.entries
    count = count_points(snapshot)
    return abs(count - (stored.entries if stored else 0)), count


def is_due(changed: int, entries: int) -> bool:
    """Return whether topics of a project should be computed again."""
    return changed >= ENOUGH_ENTRIES or (changed > 0 and changed >= ENOUGH_SHARE * entries)


def refresh_due(
    projects: list[Project], home: Home, settings_of: Callable[[Project], Settings],
    find_provider: Callable[[SummarizeSettings], Provider],
) -> str:
    """Compute the topics of the projects that need it, and have a model name those without a label.

    Return one line on what was done. Raise `MemkitError`.
    """
    from memkit.llm.calls import ROUND_SECONDS
    from memkit.topics.names import TopicNames  # slow to import; `memkit topics` needs none of it

    known = {project.root: project for project in projects}
    names = TopicNames(home, find_provider)
    done, failures = 0, []
    for root in sorted(known):
        settings = settings_of(known[root])
        if is_due(*changed_entries(known[root], home, settings)):
            failure = _refresh_in_child(known[root], home)
            failures += [failure] if failure else []
            done += not failure
        names.name(known[root], settings, ROUND_SECONDS)
    if failures:
        raise MemkitError("; ".join(failures))
    return "; ".join(filter(None, (f"the topics of {plural(done, 'project')} computed", names.summary)))


def _refresh_in_child(project: Project, home: Home) -> str:
    command = [*launch.memkit_command(), "topics", "--refresh", "--background", "--json"]
    command += ["--user"] if project == Project.of_user(home) else ["--project", project.root]
    # In the environment of this process, which has the package.
    environ = {**launch.worker_environment(home), **_THREADS, PYTHON_VARIABLE: sys.executable}
    try:
        done = run_to_end(command, environ, home.root, MOST_SECONDS)
    except (OSError, subprocess.TimeoutExpired, TooMuchOutputError) as error:
        return f"{project.root}: {one_line(str(error), 200)}"
    if done.returncode:
        logger.warning("topics of %s: %s", project.root, done.stderr)
        return f"{project.root}: {one_line(done.stderr, 200)}"
    return ""
