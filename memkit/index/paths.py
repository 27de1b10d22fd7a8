"""Paths a person added to one project's memory with `memkit index PATH`, beside the setting memory.paths.

Kept under the memory home, not in the project: a repository from strangers cannot add any.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from pathlib import Path

from memkit.paths import Home, make_private_directory, write_durably
from memkit.project import Project

logger = logging.getLogger(__name__)


def _record(home: Home, project: Project) -> Path:
    name = hashlib.sha256(project.root.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return Path(home.projects) / f"{name}.paths.json"


def added_paths(home: Home, project: Project) -> list[str]:
    """The added paths, absolute or relative to the project's root; gone ones left out."""
    try:
        paths = json.loads(_record(home, project).read_bytes())["paths"]
        return [path for path in paths if (Path(project.root) / path).exists()]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        logger.warning("%s is damaged and ignored: %s", _record(home, project), error)
        return []


def change_paths(
    home: Home, project: Project, *, add: Sequence[str] = (), drop: Sequence[str] = ()
) -> list[str]:
    """Add and drop paths (relative to the working directory or absolute); return those now in force."""
    dropped = {_relative(project, path) for path in drop}
    wanted = [*added_paths(home, project), *(_relative(project, path) for path in add)]
    paths = [path for path in dict.fromkeys(wanted) if path not in dropped]
    make_private_directory(home.projects)
    data = json.dumps({"root": project.root, "paths": paths}).encode("ascii")
    write_durably(str(_record(home, project)), data)
    return paths


def _relative(project: Project, path: str) -> str:
    absolute = Path(path).resolve()
    try:
        return absolute.relative_to(project.root).as_posix()
    except ValueError:
        return str(absolute)
