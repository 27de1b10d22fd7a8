"""The projects that have a memory on this machine."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable
from pathlib import Path

from memkit.capture.sessions import Sessions
from memkit.index.current import known_roots
from memkit.paths import Home
from memkit.project import Project

logger = logging.getLogger(__name__)


def projects_with_memory(home: Home, also: Iterable[Project] = ()) -> list[Project]:
    """Every project known to this home, or named in `also`, that has a memory, sorted by root.

    Those whose directory is gone have theirs under the home.
    """
    roots = {*known_roots(home), *(session.project for session in Sessions(home))}
    roots |= set(_recorded_roots(home))
    projects = {Project.at_root(root, home) for root in roots if os.path.isabs(root)}
    projects |= {Project(str(path)) for path in Path(home.projects).glob("*") if path.is_dir()}
    projects |= set(also)
    found = (project for project in projects if os.path.isdir(project.memory))
    return sorted(found, key=lambda project: project.root)


def _recorded_roots(home: Home) -> Iterable[str]:
    """The roots that the records under `MEMKIT_HOME/projects` name."""
    for path in sorted(Path(home.projects).glob("*.json")):
        try:
            root = json.loads(path.read_bytes())["root"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            logger.warning("%s names no project: %s", path, error)
            continue
        if isinstance(root, str):
            yield root
