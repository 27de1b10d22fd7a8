"""Marks that a project's memory changed and its index has not yet.

A mark is written before the memory file and removed after the index is in step, so a process killed
in between leaves the mark and the next worker finds it.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import json
import os

from memkit.files import make_private_directory, write_durably
from memkit.paths import Home
from memkit.state import parse_json


def _directory(home: Home) -> str:
    return os.path.join(home.run, "unindexed")


def _path(home: Home, root: str) -> str:
    import hashlib  # not needed by hooks, which only look whether there is a mark

    name = hashlib.sha256(root.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return os.path.join(_directory(home), name + ".json")


def mark(home: Home, root: str) -> None:
    """Remember, durably, that the project at `root` needs indexing."""
    path = _path(home, root)
    if not os.path.exists(path):
        make_private_directory(_directory(home))
        write_durably(path, json.dumps({"root": root}).encode("ascii"))


def clear(home: Home, root: str) -> None:
    """Remove the mark of `root`, if there is one."""
    try:
        os.unlink(_path(home, root))
    except FileNotFoundError:
        pass


def exists(home: Home) -> bool:
    """Whether any project waits. Costs one directory listing."""
    return bool(names(home))


def roots(home: Home) -> list[str]:
    """The roots that wait, sorted."""
    found = []
    for name in names(home):
        path = os.path.join(_directory(home), name)
        try:
            with open(path, encoding="ascii") as file:
                root = parse_json(file.read())["root"]
        except FileNotFoundError:  # cleared since the listing
            continue
        except (OSError, ValueError, KeyError, TypeError):
            root = None
        if isinstance(root, str):
            found.append(root)
        else:  # damaged: a search still sees the change
            os.unlink(path)
    return sorted(found)


def name_of(home: Home, root: str) -> str:
    """The name of the mark of `root`."""
    return os.path.basename(_path(home, root))


def names(home: Home) -> list[str]:
    """The names of the marks; a file a killed process left half-written is none."""
    try:
        return [name for name in os.listdir(_directory(home)) if name.endswith(".json")]
    except OSError:
        return []
