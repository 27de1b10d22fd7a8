"""What the index of a project is called."""

from __future__ import annotations

import glob
import json
import logging
import os
import re

from memkit.errors import RegistryError
from memkit.files import make_private_directory, read_head, write_durably
from memkit.hook.project import Project, digest16, registry_path
from memkit.paths import Home
from memkit.projects.git import normalize_remote, remote_of
from memkit.projects.registry import changing
from memkit.state import parse_json

logger = logging.getLogger(__name__)

LAST_SUFFIX = ".identity"
"""Ends the files that note the last name of a project, each named after its root."""

_NAME = re.compile(r"[0-9a-f]{16}")


def identity(project: Project, home: Home) -> str:
    """A name for the project's index, 16 hex characters.

    It comes from the normalised git remote, so that a moved project keeps its index, else from the
    root's path. A second clone on the same machine gets a name of its own: `MEMKIT_HOME/projects`
    records which root holds which name, and a name passes on only when its root is gone.

    If git cannot tell the remote now, the last name stays: with another one, all would be embedded again.
    """
    by_path = digest16("path:" + project.root)
    last = os.path.join(home.projects, by_path + LAST_SUFFIX)
    remote = remote_of(project.root)
    if remote is None:
        name = _read_last(last)
        if holder_of(home, name) != project.root:  # another one has taken it over
            name = by_path
        logger.warning("git cannot tell the remote of %s; its index stays %s", project.root, name)
        return name
    name = by_path
    if remote:
        by_remote = digest16("remote:" + normalize_remote(remote))
        if _claim(home, by_remote, project.root):
            name = by_remote
    if name != (_read_last(last) or by_path):
        _note_last(home, last, name)
    return name


def _read_last(path: str) -> str:
    """Return the name that was noted last; "" if none was."""
    try:
        name = read_head(path, 100).decode("ascii", "replace").strip()
    except OSError:
        return ""
    return name if _NAME.fullmatch(name) else ""


def _note_last(home: Home, path: str, name: str) -> None:
    try:
        make_private_directory(home.projects)
        write_durably(path, name.encode("ascii"))
    except OSError as error:  # the name is known now; only a later failure of git would miss it
        logger.warning("cannot note the name of an index in %s: %s", path, error)


def _claim(home: Home, name: str, root: str) -> bool:
    """Whether `root` holds `name`, taking it if no existing directory does."""
    record = os.path.join(home.projects, name + ".json")
    holder = holder_of(home, name)
    if holder == root:
        return True
    if holder is not None and os.path.exists(os.path.join(holder, ".git")):
        return False
    if holder is not None:
        try:
            with changing(home) as registry:
                registry.move(holder, root)
        except RegistryError as error:  # `memkit projects` says so too; the index is found all the same
            logger.warning("it is not noted that %s is at %s now: %s", holder, root, error)
    make_private_directory(home.projects)
    write_durably(record, json.dumps({"root": root}).encode())
    return True


def holder_of(home: Home, name: str) -> str | None:
    """The root of the project that holds the identity `name` by its remote; None if none does."""
    return _root_in(os.path.join(home.projects, name + ".json"))


def recorded_roots(home: Home) -> list[str]:
    """The roots that the records of identities and of added paths name, sorted."""
    paths = glob.glob(os.path.join(glob.escape(home.projects), "*.json"))
    roots = {_root_in(path) for path in paths if path != registry_path(home)}
    return sorted(root for root in roots if root and os.path.isabs(root))


def _root_in(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            root = parse_json(file.read())["root"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return root if isinstance(root, str) else None
