"""Paths a person added to one project's memory with `memkit index PATH`, beside the setting memory.paths.

Kept under the memory home, not in the project: a repository from strangers cannot add any.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from memkit.errors import DamagedFileError, NotFoundError
from memkit.files import make_private_directory, write_durably
from memkit.hook.project import Project, Registry
from memkit.index.scanner import SUFFIXES, is_markdown
from memkit.paths import Home
from memkit.state import FIELD, check_version, parse_json

RESTORE = (
    "restore that file from a backup; or remove it, which takes what the added paths hold out of the index "
    "until `memkit index PATH` adds them again"
)
"""What to do about a damaged file of added paths."""

VERSION = 1
"""Of the files' format."""


def _record(home: Home, project: Project) -> Path:
    name = hashlib.sha256(project.root.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return Path(home.projects) / f"{name}.paths.json"


def added_paths(home: Home, project: Project) -> list[str]:
    """The added paths, absolute or relative to the project's root; those of where it was before count.

    Raises `NewerFileError`, and `DamagedFileError`: taken as none, all that stands below them would be
    deleted from the index.
    """
    path = _record(home, project)
    try:
        if not path.exists():
            earlier = map(Project, Registry.read(home).earlier_roots(project.root))
            path = next(filter(Path.exists, (_record(home, one) for one in earlier)), path)
        value = parse_json(path.read_bytes())
        check_version(path, value, VERSION)
        return [str(added) for added in value["paths"]]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or "it is damaged"
        raise DamagedFileError(
            f"the added paths of {project.root} cannot be read from {path}: {reason}; {RESTORE}"
        ) from error


def change_paths(
    home: Home, project: Project, *, add: Sequence[str] = (), drop: Sequence[str] = ()
) -> list[str]:
    """Add and drop paths (relative to the working directory or absolute); return those now in force.

    Raises `NotFoundError` for a path to drop that was not added, and for a file to add that is no
    markdown; then nothing has changed. Raises `NewerFileError`, `DamagedFileError`.
    """
    before = added_paths(home, project)
    for path in add:
        if Path(path).is_file() and not is_markdown(path):
            raise NotFoundError(f"{path} is no markdown ({', '.join(SUFFIXES)})")
    for path in drop:
        if _relative(project, path) not in before:
            added = ", ".join(before) or "none"
            raise NotFoundError(f"{path} was not added to this memory; added are: {added}")
    dropped = {_relative(project, path) for path in drop}
    wanted = [*before, *(_relative(project, path) for path in add)]
    paths = [path for path in dict.fromkeys(wanted) if path not in dropped]
    _write(home, project, paths)
    return paths


def move_paths(home: Home, root: str, project: Project) -> None:
    """Let `project` also have the paths that were added to the memory of the one at `root`.

    Raises `OSError`, `NewerFileError`, `DamagedFileError`.
    """
    before = added_paths(home, project)
    paths = list(dict.fromkeys([*before, *added_paths(home, Project(root))]))
    if paths != before:
        _write(home, project, paths)


def _write(home: Home, project: Project, paths: list[str]) -> None:
    make_private_directory(home.projects)
    data = json.dumps({FIELD: VERSION, "root": project.root, "paths": paths}).encode("ascii")
    write_durably(str(_record(home, project)), data)


def _relative(project: Project, path: str) -> str:
    absolute = Path(path).resolve()
    try:
        return absolute.relative_to(project.root).as_posix()
    except ValueError:
        return str(absolute)
