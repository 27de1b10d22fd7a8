"""Marks for projects whose memory changed and whose index is out of date.

Write a mark before the memory file and remove it when the index is up to date. A process that is killed in
between leaves the mark, and the next worker finds it.
"""

from __future__ import annotations

import json
import os

from memkit.files import make_private_directory, write_durably
from memkit.paths import Home
from memkit.state import parse_json


def mark(home: Home, root: str) -> None:
    """Record, durably, that the project at `root` needs indexing."""
    path = _path(home, name_of(root))
    if not os.path.exists(path):
        make_private_directory(os.path.dirname(path))
        write_durably(path, json.dumps({"root": root}).encode("ascii"))


def clear(home: Home, root: str) -> None:
    """Remove the mark of `root`, if there is one."""
    try:
        os.unlink(_path(home, name_of(root)))
    except FileNotFoundError:
        pass


def roots(home: Home) -> list[str]:
    """Return the marked roots, sorted. Delete damaged marks: a search still notices the change."""
    found = []
    for name in names(home):
        path = _path(home, name)
        try:
            with open(path, encoding="ascii") as file:
                root = parse_json(file.read())["root"]
            if not isinstance(root, str):
                raise TypeError("the root is not a string")
            found.append(root)
        except FileNotFoundError:  # cleared since the listing
            continue
        except (OSError, ValueError, KeyError, TypeError):
            os.unlink(path)
    return sorted(found)


def names(home: Home) -> list[str]:
    """Return the names of the marks. Costs one directory listing."""
    try:
        return [name for name in os.listdir(_path(home)) if name.endswith(".json")]
    except OSError:
        return []


def name_of(root: str) -> str:
    """Return the name of the mark of `root`."""
    import hashlib  # hooks only list the marks

    return hashlib.sha256(root.encode("utf-8", "surrogateescape")).hexdigest()[:16] + ".json"


def _path(home: Home, name: str = "") -> str:
    return os.path.join(home.run, "unindexed", name)
