"""Which files are memkit's own, to be removed when it is; whatever else lies beside them is not touched."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from memkit.embedding.weights import MODEL
from memkit.environment.launcher import installed_launcher
from memkit.errors import MemkitError
from memkit.hook.project import Project
from memkit.paths import Home

FOREIGN = "not memkit's"

_STAMP = "[0-9a-f]" * 16
_TEMPORARY = ".*.tmp"

# Each top-level name under the home with the patterns of what memkit puts there; none: it is a file.
_DERIVED: Final[dict[str, tuple[str, ...]]] = {
    "journal.lock": (),
    "index": ("chroma", "chroma.damaged", "chroma.new", "chroma.old", "snapshots"),
    "models": (MODEL,),
    "log": ("*.log", "*.log.[0-9]", "events.jsonl", "events.jsonl.1"),
    "spool": ("tmp", "new", "claimed", "failed"),
    "env": (_STAMP, f"*-{_STAMP}", ".building-*", ".lock", "failed.json", _TEMPORARY),
    "run": (
        "index.lock", "index.holder", "service.*", "hooks.json", "live", "shown", "unindexed", "notices",
        "jobs.json", "left.json", "checked", "nowhere", "environment-notice", "python-notice", "import.jsonl",
        "import-offered", "off-said", _TEMPORARY,
    ),
}  # fmt: skip
_KEPT: Final[dict[str, tuple[str, ...]]] = {
    "config.toml": (),
    "ledger.jsonl": (),
    "owner": (),
    "forgotten.json": (),
    "archive": ("*.jsonl.zst", "replaced", "before-restore", _TEMPORARY),
    "sessions": ("*.json", _TEMPORARY),
    "summaries": ("*.json", "*.lock", _TEMPORARY),
    "projects": ("*.json", "*.own", "*.adopted", "*.identity", "registry.json.lock", _TEMPORARY),
}
_OF_A_PROJECT = ("memory", "off", "off-times", ".gitignore", "journal.lock", _TEMPORARY)


@dataclass(frozen=True, slots=True)
class OwnedFiles:
    """What is to be removed, in this order; the directories that are, once they are empty; and what is left:
    a path, and why.
    """

    removed: list[Path] = field(default_factory=list)
    directories: list[Path] = field(default_factory=list)
    left: list[tuple[Path, str]] = field(default_factory=list)

    def take(self, directory: Path, patterns: Sequence[str]) -> None:
        """Note what fits `patterns` in `directory`, and all else there as left."""
        if directory.is_symlink():
            self._take_one(directory)
        elif directory.is_dir():
            for path in sorted(directory.iterdir()):
                if any(fnmatchcase(path.name, pattern) for pattern in patterns):
                    self._take_one(path)
                else:
                    self.left.append((path, FOREIGN))
            self.directories.append(directory)
        elif os.path.lexists(directory):
            self.left.append((directory, FOREIGN))

    def _take_one(self, path: Path) -> None:
        self.removed.append(path)
        if path.is_symlink():
            self.left.append((Path(os.path.realpath(path)), f"{path} led there"))


def check_home(home: Home) -> None:
    """Raise `MemkitError` unless the home is a directory that memkit made, and nobody's home directory."""
    root = os.path.realpath(home.root)
    for user in map(os.path.realpath, _user_directories()):
        if os.path.commonpath([root, user]) == root:
            raise MemkitError(f"MEMKIT_HOME is {root}, which holds more than memkit; nothing is removed")
    names = (*_DERIVED, *_KEPT, "memory")
    if not any(os.path.lexists(os.path.join(root, name)) for name in names):
        raise MemkitError(f"there is no memory home at {root}; nothing is removed")


def _user_directories() -> list[str]:
    """The user's home directory, as the environment and as the system says."""
    found = [os.path.expanduser("~")]
    if sys.platform == "win32":
        return found
    with contextlib.suppress(KeyError):  # a user whom the system does not know
        import pwd

        found.append(pwd.getpwuid(os.getuid()).pw_dir)
    return found


def belongings(
    home: Home, projects: Sequence[Project], *, keep_memory: bool, everything: bool
) -> OwnedFiles:
    """What memkit has on this machine.

    By default that is all under the home but the user's memory, and those of projects whose directory is
    gone; with `keep_memory` only what is derived; with `everything` also the memories of all `projects`.
    """
    found = OwnedFiles()
    wanted = _DERIVED if keep_memory else {**_KEPT, **_DERIVED}
    memories = {Path(project.memory) for project in projects}
    for project in projects:
        directory = Path(project.root, ".memkit")
        if everything and project.memory == home.memory:
            found.removed.append(Path(home.memory))
        elif everything:
            found.take(directory, _OF_A_PROJECT)
            if Path(project.root).parent == Path(home.projects):  # its own directory is gone
                found.directories.append(Path(project.root))
        else:
            found.left.append((Path(project.memory), "the memory"))
    for path in sorted(Path(home.root).iterdir()):
        if path.name in _KEPT and keep_memory:
            found.left.append((path, "kept"))
        elif fnmatchcase(path.name, _TEMPORARY) or fnmatchcase(path.name, ".restore-*"):
            found.removed.append(path)
        elif path.name not in wanted and path not in memories:
            found.left.append((path, FOREIGN))
    for name, patterns in wanted.items():  # the environment and the locks in use come last
        path = Path(home.root, name)
        if not patterns and path.is_file():
            found.removed.append(path)
        else:
            found.take(path, patterns)
    found.removed.extend(installed_launcher())
    roots = {Path(project.root) for project in projects}
    found.left[:] = [one for one in found.left if one[0] not in roots]
    return found
