"""Marks for projects whose memory changed and whose index is out of date.

Write a mark before the memory file and remove it when the index is up to date. A process that is killed in
between leaves the mark, and the next worker finds it. A pass claims the mark before it reads the files and
clears what it claimed: a mark that was set meanwhile stays.
"""

from __future__ import annotations

import contextlib
import json
import os

from memkit.files import make_private_directory, write_durably
from memkit.paths import Home
from memkit.state import parse_json

CLAIMED = ".claimed"
"""Suffix of a mark whose project is being indexed."""


def mark(home: Home, root: str) -> None:
    """Record, durably, that the project at `root` needs indexing."""
    path = _path(home, name_of(root))
    if not os.path.exists(path):
        make_private_directory(os.path.dirname(path))
        write_durably(path, json.dumps({"root": root}).encode("ascii"))


def claim(home: Home, root: str) -> None:
    """Claim the mark of `root`, if there is one, for a pass that begins. The caller holds the index lock."""
    path = _path(home, name_of(root))
    with contextlib.suppress(FileNotFoundError):
        os.replace(path, path + CLAIMED)


def clear(home: Home, root: str) -> None:
    """Remove the mark that was claimed."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_path(home, name_of(root)) + CLAIMED)


def roots(home: Home) -> list[str]:
    """Return the marked roots, sorted. Delete damaged marks: a search still notices the change."""
    found = set()
    for name in _files(home):
        path = _path(home, name)
        try:
            with open(path, encoding="ascii") as file:
                root = parse_json(file.read())["root"]
            if not isinstance(root, str):
                raise TypeError("the root is not a string")
            found.add(root)
        except FileNotFoundError:  # claimed or cleared since the listing
            continue
        except (OSError, ValueError, KeyError, TypeError):
            os.unlink(path)
    return sorted(found)


def names(home: Home) -> list[str]:
    """Return the names of the marks, claimed ones too. Costs one directory listing."""
    return sorted({name.removesuffix(CLAIMED) for name in _files(home)})


def _files(home: Home) -> list[str]:
    try:
        listed = os.listdir(_path(home))
    except OSError:
        return []
    return sorted(name for name in listed if name.endswith((".json", CLAIMED)))


def name_of(root: str) -> str:
    """Return the name of the mark of `root`."""
    import hashlib  # hooks only list the marks

    return hashlib.sha256(root.encode("utf-8", "surrogateescape")).hexdigest()[:16] + ".json"


def _path(home: Home, name: str = "") -> str:
    return os.path.join(home.run, "unindexed", name)
