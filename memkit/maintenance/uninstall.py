"""Remove memkit from this machine, and nothing that memkit did not make.

This runs inside the environment that it removes, so the environment goes last. Everything it needs is
imported at its start: Claude Code may remove the plugin's files, and this module the packages.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from memkit import environment
from memkit.agents.claude_code.installation import PLUGIN, ClaudeCode, ClaudeCodeError, installed_names
from memkit.agents.codex import installation as codex
from memkit.environment import installed_launcher
from memkit.errors import MemkitError
from memkit.home_files import HOME_FILES, PROJECT_FILES, TEMPORARY, FileKind, top_names
from memkit.ipc import address
from memkit.ipc.stop import stop
from memkit.locks import capture_lock, index_lock, lock_files
from memkit.paths import TEAM_DIRECTORY, Home
from memkit.processes import is_locked
from memkit.projects.git_files import own_git_directory
from memkit.projects.project import Project
from memkit.projects.team_files import TOKEN_FILE

LOCK_SECONDS = 120.0

FOREIGN = "memkit did not make it"

_MEMORY = "memories"
_LAUNCHER = "launcher"
_OTHER = "logs and temporary files"

_GROUPS = {
    **dict.fromkeys(
        ("config.toml", "ledger.jsonl", "forgotten.json", "owner", "projects"), "settings and records"
    ),
    **dict.fromkeys(("sessions", "summaries"), "state of sessions"),
    "archive": "original exchanges",
    "memory": _MEMORY,
    "index": "search index",
    "models": "model",
    "env": "Python environment",
}
"""Names for users, by the first part of a path in the home."""


@dataclass(frozen=True, slots=True)
class OwnedFiles:
    """The files that an uninstall removes.

    `removed` are files and directories, in the order of removal; `directories` are removed if they are empty
    then. `kept` are the paths (or the address of a server) that stay, each with the reason.
    """

    removed: list[Path] = field(default_factory=list)
    directories: list[Path] = field(default_factory=list)
    kept: list[tuple[Path | str, str]] = field(default_factory=list)

    def add(self, path: Path, kinds: Sequence[FileKind]) -> None:
        """Add a file, or the entries of a directory that match a row of `kinds`; all others are `kept`."""
        patterns = [kind.pattern.partition("/")[2].partition("/")[0] for kind in kinds]
        if path.is_symlink() or (path.is_file() and not any(patterns)):
            self._add_one(path)
        elif path.is_dir() and any(patterns):
            for below in sorted(path.iterdir()):
                if any(fnmatchcase(below.name, pattern) for pattern in [*patterns, TEMPORARY]):
                    self._add_one(below)
                else:
                    self.kept.append((below, FOREIGN))
            self.directories.append(path)
        elif os.path.lexists(path):
            self.kept.append((path, FOREIGN))

    def _add_one(self, path: Path) -> None:
        self.removed.append(path)
        if path.is_symlink():
            self.kept.append((Path(os.path.realpath(path)), f"{path} is a link to it"))


class FileGroup(NamedTuple):
    """Files of one kind: what they are, how many, and their bytes."""

    name: str
    files: int
    bytes: int


@dataclass(slots=True)
class UninstallReport:
    """The removed paths, and one line for each thing that could not be removed."""

    removed: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def check_home(home: Home) -> None:
    """Raise `MemkitError` unless memkit made the home, and it holds no user's home directory."""
    root = os.path.realpath(home.root)
    for user in map(os.path.realpath, _user_directories()):
        if os.path.commonpath([root, user]) == root:
            raise MemkitError(f"MEMKIT_HOME is {root}, which holds more than memkit; nothing is removed")
    if not any(os.path.lexists(os.path.join(root, name)) for name in (*top_names(), "memory")):
        raise MemkitError(f"there is no memory home at {root}; nothing is removed")


def _user_directories() -> list[str]:
    found = [os.path.expanduser("~")]
    if sys.platform == "win32":
        return found
    with contextlib.suppress(KeyError):  # the system does not know this user
        import pwd

        found.append(pwd.getpwuid(os.getuid()).pw_dir)
    return found


def find_owned_files(
    home: Home, projects: Sequence[Project], *, keep_memory: bool, everything: bool
) -> OwnedFiles:
    """Return the files of memkit on this machine.

    By default, these are the home without memories (also without those of projects whose directory is
    gone). With `keep_memory`, only derived files. With `everything`, also the memories of `projects`.
    """
    found = OwnedFiles()
    _add_memories(found, home, projects, everything)
    memories = {Path(project.memory) for project in projects}
    table = top_names(HOME_FILES)
    for path in sorted(Path(home.root).iterdir()):
        if fnmatchcase(path.name, TEMPORARY) or fnmatchcase(path.name, ".restore-*"):
            found.removed.append(path)
        elif path.name not in table and path not in memories:
            found.kept.append((path, FOREIGN))
    for name, kinds in table.items():
        path = Path(home.root, name)
        if not keep_memory or all(kind.is_derived for kind in kinds):
            found.add(path, kinds)
        elif path.exists():
            found.kept.append((path, "kept"))
    found.removed.extend(installed_launcher())
    roots = {Path(project.root) for project in projects}
    found.kept[:] = [one for one in found.kept if one[0] not in roots]
    return found


def group_files(home: Home, own: OwnedFiles) -> list[FileGroup]:
    """Return what an uninstall removes, by kind, in the order of removal. Links are not followed."""
    counts: dict[str, list[int]] = {}
    launcher = installed_launcher()
    for path in own.removed:
        name = _LAUNCHER if path in launcher else _group_of(path, home)
        sizes = counts.setdefault(name, [])
        sizes.extend(_sizes(path))
    return [FileGroup(name, len(sizes), sum(sizes)) for name, sizes in counts.items()]


def _group_of(path: Path, home: Home) -> str:
    if not path.is_relative_to(home.root):
        return _MEMORY
    parts = path.relative_to(home.root).parts
    if parts[0] == "projects" and len(parts) > 2:  # a project whose directory is gone
        return _MEMORY
    return _GROUPS.get(parts[0], _OTHER)


def _sizes(path: Path) -> Iterator[int]:
    if path.is_symlink() or not path.is_dir():
        with contextlib.suppress(FileNotFoundError):  # a lock that its owner has just released
            yield path.lstat().st_size
        return
    for directory, _, files in os.walk(path):
        for name in files:
            with contextlib.suppress(FileNotFoundError):
                yield os.lstat(os.path.join(directory, name)).st_size


def _add_memories(found: OwnedFiles, home: Home, projects: Sequence[Project], everything: bool) -> None:
    for project in projects:
        if project.openclaw_days():
            found.kept.append((Path(project.openclaw), "its days may be OpenClaw's, too"))
        if not everything:
            found.kept.append((Path(project.memory), "the memory"))
        elif project.memory == home.memory:
            found.removed.append(Path(home.memory))
        else:
            found.add(Path(project.root, ".memkit"), PROJECT_FILES)
            _keep_team(found, project)
            if Path(project.root).parent == Path(home.projects):  # its own directory is gone
                found.directories.append(Path(project.root))


def _keep_team(found: OwnedFiles, project: Project) -> None:
    """Keep what people share: it is the repository's. The record of the user's trust goes."""
    shared, reason = Path(project.root, TEAM_DIRECTORY), "it belongs to the repository"
    found.kept[:] = [(path, reason if path == shared else why) for path, why in found.kept]
    directory = own_git_directory(project.root)
    if directory is not None and os.path.isfile(token := os.path.join(directory, TOKEN_FILE)):
        found.removed.append(Path(token))


def uninstall(
    home: Home,
    plugins: Sequence[str],
    own: OwnedFiles,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> UninstallReport:
    """Stop the service, uninstall `plugins` from Claude Code, and remove `own`.

    `progress` gets the number of removed paths, and of all. A killed uninstall can run again. Raise
    `MemkitError` if a process of memkit does not end; then no file is removed.
    """
    if is_locked(environment.lock_file(home.root)):
        raise MemkitError("memkit is building its environment; try again when it is done")
    stop(home)
    report = UninstallReport(problems=_uninstall_plugins(plugins))
    try:
        codex.uninstall()
    except MemkitError as error:
        report.problems.append(str(error))
    stop(home)  # a hook may have started it again
    with capture_lock(home, LOCK_SECONDS), index_lock(home, LOCK_SECONDS):
        for number, path in enumerate(own.removed):
            progress(number, len(own.removed))
            _remove(path, report)
        try:
            address.remove(home)
        except OSError as error:
            report.problems.append(f"the socket of the service: {error.strerror or error}")
        made = [*map(Path, lock_files(home)), *Path(home.run).glob("*.holder")]
        for path in made:  # by taking the locks
            with contextlib.suppress(OSError):
                path.unlink()
        for directory in (*own.directories, Path(home.root)):
            with contextlib.suppress(OSError):  # it is not empty; what stays was reported
                directory.rmdir()
    return report


def _uninstall_plugins(names: Sequence[str]) -> list[str]:
    client = ClaudeCode.find()
    if client is None:
        return [f"the plugin {name}: there is no `claude` to uninstall it" for name in names]
    problems = []
    for name in names:
        try:
            client.uninstall_plugin(name)
            if name == PLUGIN:  # another marketplace may hold other plugins
                client.remove_marketplace(name.partition("@")[2])
        except ClaudeCodeError as error:
            problems.append(f"the plugin {name}: {error}")
    return [*problems, *(f"the plugin {name} is still installed" for name in installed_names())]


def _remove(path: Path, report: UninstallReport) -> None:
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        report.problems.append(f"{path}: {error.strerror or error}")
    else:
        report.removed.append(str(path))
