"""What a person, or a move, said about projects: `MEMKIT_HOME/projects/registry.json`.

Losing the file loses no memory: directories are then projects of their own again, with their own names.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import json
import os
from typing import Any

from memkit.errors import NewerFileError
from memkit.files import write_durably
from memkit.paths import Home
from memkit.state import FIELD, check_version, parse_json

VERSION = 1

_MAPS = ("links", "names", "moves")


class Registry:
    """Three tables by a project's root: the root it shares the memory of, its name, where it moved.

    `problem` says why the file could not be read; then all tables are empty.
    """

    def __init__(self) -> None:
        self.links: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.moves: dict[str, str] = {}
        self.problem = ""

    @classmethod
    def read(cls, home: Home) -> Registry:
        """As it is on disk; a file that is damaged or a newer memkit's is no error here."""
        registry = cls()
        path = path_of(home)
        try:
            with open(path, encoding="utf-8") as file:
                value = parse_json(file.read())
            check_version(path, value, VERSION)
            tables = {name: _table(value[name]) for name in _MAPS}
        except NewerFileError as error:
            registry.problem = str(error)
            return registry
        except FileNotFoundError:
            return registry
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            registry.problem = "{} cannot be read ({}); delete it to begin anew".format(
                path, " ".join(str(error).split())
            )
            return registry
        registry.links, registry.names, registry.moves = (tables[name] for name in _MAPS)
        return registry

    def shared_root(self, root: str) -> str:
        """The root whose memory the project at `root` shares: mostly its own."""
        return self.links.get(root, root)

    def name_of(self, root: str) -> str:
        """The name that people see of the project at `root`: the one it was given, else its directory's."""
        return self.names.get(root) or os.path.basename(root) or root

    def present_root(self, root: str) -> str:
        """Where the project that was at `root` is now, as far as is known."""
        seen = {root}
        while root in self.moves and self.moves[root] not in seen:
            root = self.moves[root]
            seen.add(root)
        return root

    def earlier_roots(self, root: str) -> list[str]:
        """Where the project at `root` was before, as far as is known, sorted."""
        return sorted(old for old in self.moves if old != root and self.present_root(old) == root)

    def link(self, root: str, target: str) -> None:
        """Have `root`, and the roots that shared its memory, share the memory of `target`."""
        for linked, shared in self.links.items():
            if shared == root:
                self.links[linked] = target
        self.links[root] = target

    def move(self, old: str, new: str) -> None:
        """The project at `old` is at `new` now."""
        self.moves.pop(new, None)  # it came back
        self.moves[old] = new
        if old in self.names:
            self.names.setdefault(new, self.names.pop(old))
        if old in self.links:
            self.links.setdefault(new, self.links.pop(old))
        for linked, shared in self.links.items():
            if shared == old:
                self.links[linked] = new

    def write(self, home: Home) -> None:
        """Replace the file on disk; for `memkit.projects.registry_changes`. Raises `OSError`."""
        value = {FIELD: VERSION, **{name: getattr(self, name) for name in _MAPS}}
        write_durably(path_of(home), json.dumps(value, indent=1).encode("ascii"))


def path_of(home: Home) -> str:
    """Where the file is."""
    return os.path.join(home.projects, "registry.json")


def _table(value: Any) -> dict[str, str]:
    if not all(isinstance(text, str) for pair in value.items() for text in pair):
        raise TypeError("it holds something else than names")
    return dict(value)
