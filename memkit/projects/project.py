"""Find the project of a directory, and read the registry of projects.

Standard library only, Python 3.9 syntax: hooks import this module.
"""

from __future__ import annotations

import os
import re
from functools import cached_property, lru_cache
from typing import Any, Callable

from memkit.errors import DamagedFileError, NewerFileError
from memkit.files import RefusedFileError, inside, make_private_directory, read_head, write_durably
from memkit.paths import MEMORY_DIRECTORY, OFF_MARKER, OFF_TIMES, OPENCLAW_DAYS, Home
from memkit.projects.git_files import worktree_root
from memkit.state import read_state

_TIMES_BYTES = 1024 * 1024
"""The most bytes to read of a file of times; a line takes about 40."""

_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,9})?$")

_SYSTEM_DIRECTORIES = (
    "etc bin sbin lib lib32 lib64 boot dev proc sys run usr/bin usr/sbin usr/lib usr/share var/spool "
    "var/run var/log var/cache System Library Applications private/etc private/var/db"
).split()

REGISTRY_VERSION = 1
REGISTRY_MAPS = ("links", "names", "moves", "folders", "trusted")

OWN_FOLDER = ".memkit/memory"
"""The folder of new days, unless the user chooses `OPENCLAW_DAYS` for a project."""

OPENCLAW = ".openclaw"
"""Ends the name of a day in OpenClaw's folder: `2026-11-20.openclaw` is `memory/2026-11-20.md`."""

_OPENCLAW_NAME = re.compile(r"\d{4}-\d\d-\d\d\.openclaw", re.ASCII)
_OPENCLAW_FILE = re.compile(r"\d{4}-\d\d-\d\d\.md", re.ASCII)


class Registry:
    """The user's choices for projects, and where they moved: `MEMKIT_HOME/projects/registry.json`.

    Five tables by a project's root: the root whose memory it shares, its name, where it moved, the folder of
    its new days, and the token of a clone whose team's memory the user trusts (see `team_files`).
    `problem` says why the file could not be read; then all tables are empty. Losing the file loses no memory:
    directories are then projects of their own again, with their own names, days in OpenClaw's folder are
    files that are only searched, and no clone is trusted. `memkit.projects.registry.changing` writes it.
    """

    def __init__(self) -> None:
        self.links: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.moves: dict[str, str] = {}
        self.folders: dict[str, str] = {}
        self.trusted: dict[str, str] = {}
        self.problem = ""

    @classmethod
    def read(cls, home: Home) -> Registry:
        """Read the file. Do not raise for one that is damaged or from a newer memkit: see `problem`."""
        registry = cls()
        try:
            tables = read_state(registry_path(home), REGISTRY_VERSION, _tables)
        except NewerFileError as error:
            registry.problem = str(error)
        except (DamagedFileError, OSError) as error:
            registry.problem = (
                f"{error}; restore it from a backup, or move it away, which loses links and names of "
                "projects, but no memory"
            )
        else:
            registry.__dict__.update(tables or {})
        return registry

    def shared_root(self, root: str) -> str:
        """Return the root whose memory the project at `root` shares: usually its own."""
        return self.links.get(root, root)

    def name_of(self, root: str) -> str:
        """Return the name that users see: the one they gave the project, else its directory's."""
        return self.names.get(root) or os.path.basename(root) or root

    def present_root(self, root: str) -> str:
        """Return where the project that was at `root` is now, as far as is known."""
        seen = {root}
        while root in self.moves and self.moves[root] not in seen:
            root = self.moves[root]
            seen.add(root)
        return root

    def folder_of(self, root: str) -> str:
        """Return the folder that the user chose for new days of the project at `root`; see `Project`."""
        chosen = self.folders.get(root, "")
        return chosen if chosen in (OPENCLAW_DAYS, OWN_FOLDER) else ""

    def earlier_roots(self, root: str) -> list[str]:
        """Return where the project at `root` was before, sorted."""
        return sorted(old for old in self.moves if old != root and self.present_root(old) == root)

    def link(self, root: str, target: str) -> None:
        """Let `root`, and the roots that shared its memory, share the memory of `target`."""
        for linked, shared in self.links.items():
            if shared == root:
                self.links[linked] = target
        self.links[root] = target

    def move(self, old: str, new: str) -> None:
        """Record that the project at `old` is at `new` now."""
        self.moves.pop(new, None)  # it came back
        self.moves[old] = new
        # Another clone at `new` does not have the token of `trusted`.
        for table in (self.names, self.links, self.folders, self.trusted):
            if old in table:
                table.setdefault(new, table.pop(old))
        for linked, shared in self.links.items():
            if shared == old:
                self.links[linked] = new


def registry_path(home: Home) -> str:
    """The path of the registry."""
    return os.path.join(home.projects, "registry.json")


def _tables(value: dict[str, Any]) -> dict[str, dict[str, str]]:
    required = {name: value[name] for name in ("links", "names", "moves")}
    found = {name: value.get(name, {}) for name in REGISTRY_MAPS} | required
    for table in found.values():
        if not isinstance(table, dict):
            raise TypeError("a table is something else")
        if not all(isinstance(text, str) for pair in table.items() for text in pair):
            raise TypeError("a table contains something other than names")
    return found


class Project:
    """A project: its root directory, and where memkit keeps its memory.

    `memory` is memkit's own folder. Days can also be in OpenClaw's: `day_file` is the one place that knows
    where a day is, and `name_at` knows the way back.
    """

    def __init__(self, root: str, home: Home | None = None) -> None:
        """Without `home`, all days are in memkit's own folder."""
        self.root = root
        self.memory = os.path.join(root, MEMORY_DIRECTORY)
        self._home = home

    def __repr__(self) -> str:
        return f"Project({self.root!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Project) and other.root == self.root

    def __hash__(self) -> int:
        return hash(self.root)

    @classmethod
    def containing(cls, directory: str) -> Project:
        """Return the project of `directory`: the main worktree of its repository, else the directory.

        All worktrees of a repository share one memory. A submodule is a project of its own. A repository
        at a bare place (dotfiles in the user's home) does not make a project of what lies below it.
        """
        directory = _as_stored(os.path.realpath(directory))
        return cls(worktree_root(directory, _bare_places()) or directory)

    @classmethod
    def remembering(cls, directory: str, home: Home) -> Project:
        """Return the project that remembers what is done in `directory`.

        Usually the project that contains it, or the one whose memory that shares (`memkit projects link`).
        A bare place (the user's home, `/`, a directory of temporary files, the memory home) has its memory
        under the memory home: nothing is written or indexed in the place itself.
        """
        real = os.path.realpath(directory)
        own = os.path.realpath(home.root)
        if _is_at_or_below(real, own):
            return cls(real if _is_kept_place(real, home) else _kept_place(own, home))
        project, registry = cls.containing(real), Registry.read(home)
        shared = registry.shared_root(project.root)
        if shared == project.root and project.root in _bare_places():
            return cls(_kept_place(project.root, home))
        found = cls.at_root(shared, home)
        found.folder = registry.folder_of(found.root)  # hooks need not read the file again
        return found

    @classmethod
    def at_root(cls, root: str, home: Home) -> Project:
        """Return the project whose root is or was `root`, wherever it is now.

        Its memory is under the memory home if the directory is gone.
        """
        if root == home.root:
            return cls.of_user(home)
        if os.path.isdir(root) or _is_kept_place(root, home):
            return cls(root, home)
        present = Registry.read(home).present_root(root)
        return cls(present if os.path.isdir(present) else _kept_place(root, home), home)

    @classmethod
    def of_user(cls, home: Home) -> Project:
        """Return the user's own memory in `MEMKIT_HOME/memory`, for what holds across projects."""
        project = cls(home.root)
        project.memory = home.memory
        return project

    @classmethod
    def kept(cls, root: str, home: Home) -> Project:
        """Return the project at `root` with its memory under the memory home."""
        return cls(_kept_place(root, home))

    @cached_property
    def folder(self) -> str:
        """The folder of new days if the user ever chose one, `OPENCLAW_DAYS` or `OWN_FOLDER`; else "".

        It comes from the registry alone, which is in the memory home: a repository cannot choose a folder.
        """
        return "" if self._home is None else Registry.read(self._home).folder_of(self.root)

    @property
    def openclaw(self) -> str:
        """OpenClaw's folder of days if new ones go there, or once did; else ""."""
        return os.path.join(self.root, OPENCLAW_DAYS) if self.folder else ""

    def day_file(self, day: str) -> str:
        """Return the path of the file of a day, by its name as in `memkit.hook.entries.days`.

        Where OpenClaw's folder is not used, a day of it, say from a backup, is a file of another name.
        """
        if _OPENCLAW_NAME.fullmatch(day):
            if self.openclaw:
                return os.path.join(self.openclaw, day[: -len(OPENCLAW)] + ".md")
            day = day.replace(".", "-")
        return os.path.join(self.memory, *day.split("/")) + ".md"

    def name_at(self, path: str) -> str:
        """Return the name of the memory file at `path` (absolute, or relative to the root), without suffix.

        "" if it is neither in memkit's own folder nor a day in OpenClaw's.
        """
        path = os.path.join(self.root, path)
        directory, name = os.path.split(path)
        if self.openclaw and directory == self.openclaw:
            return name[:-3] + OPENCLAW if _OPENCLAW_FILE.fullmatch(name) else ""
        own = os.path.join(self.memory, "")
        if not (path.startswith(own) and path.endswith(".md")):
            return ""
        return path[len(own) : -3].replace(os.sep, "/")

    def real_file(self, path: str) -> str:
        """Return the real path of a memory file. Raise `RefusedFileError` if it lies outside of the memory.

        In OpenClaw's folder, refuse every link: a repository may have made it, and made it lead to its code.
        """
        if self.openclaw and os.path.dirname(path) == self.openclaw:
            real = os.path.join(os.path.realpath(self.root), OPENCLAW_DAYS, os.path.basename(path))
            if os.path.realpath(path) != real:
                raise RefusedFileError(path, "it is a link, or behind one")
            return real
        return inside(path, inside(self.memory, self.root), is_real=True)

    def openclaw_days(self) -> list[str]:
        """Return the names of the days in OpenClaw's folder, sorted; [] if that was never chosen."""
        if not self.openclaw:
            return []
        try:
            folder = os.path.dirname(self.real_file(os.path.join(self.openclaw, "0000-00-00.md")))
            with os.scandir(folder) as entries:
                found = [one for one in entries if _OPENCLAW_FILE.fullmatch(one.name)]
            return sorted(one.name[:-3] + OPENCLAW for one in found if one.is_file(follow_symlinks=False))
        except OSError:  # there is none, or it is a link; the doctor reports that
            return []

    def for_counting(self) -> Project:
        """Return the project as readers see it, with OpenClaw's days. Never write with it."""
        if self.folder or self.memory == os.path.join(self.root, OPENCLAW_DAYS):  # as in the memory home
            return self
        found = Project(self.root, self._home)
        found.memory, found.folder = self.memory, OWN_FOLDER
        return found

    @property
    def is_off(self) -> bool:
        """Whether the user turned memkit off here (`memkit off`)."""
        return os.path.lexists(os.path.join(self.root, OFF_MARKER))

    def switch_off(self, now: float) -> None:
        """Remember nothing from `now` on, in seconds since the epoch. Raise `OSError`."""
        if not self.is_off:
            marker = inside(os.path.join(self.root, OFF_MARKER), self.root)
            make_private_directory(os.path.dirname(marker))
            write_durably(marker, f"{now}\n".encode("ascii"))

    def switch_on(self, now: float) -> None:
        """Remember again from `now` on; what was said while memkit was off stays out. Raise `OSError`."""
        inside(os.path.dirname(os.path.join(self.root, OFF_MARKER)), self.root)
        marker = os.path.join(self.root, OFF_MARKER)
        try:
            since = os.lstat(marker).st_mtime
        except FileNotFoundError:
            return
        try:
            words = read_head(marker, _TIMES_BYTES).decode("utf-8", "replace").split()
        except OSError:  # a link or a device: removed all the same
            words = []
        if words and _NUMBER.match(words[0]):  # else the user made it
            since = float(words[0])
        times = inside(os.path.join(self.root, OFF_TIMES), self.root)
        line = f"{since} {now}\n"
        write_durably(times, (_read(times) + line).encode("ascii", "replace"))
        os.unlink(marker)

    def off_periods(self) -> list[tuple[float, float]]:
        """Return when memkit was off here, in seconds since the epoch; all time if it is off now."""
        if self.is_off:
            return [(float("-inf"), float("inf"))]
        lines = map(str.split, _read(os.path.join(self.root, OFF_TIMES)).splitlines())
        whole = [words for words in lines if len(words) == 2 and all(map(_NUMBER.match, words))]
        return [(float(start), float(end)) for start, end in whole]


def _read(path: str) -> str:
    try:
        return read_head(path, _TIMES_BYTES).decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError, RefusedFileError):
        return ""


def is_bare_place(root: str) -> bool:
    """Return whether `root` is a bare place, a system directory, or a hidden directory in the home."""
    real = os.path.realpath(root)
    home = os.path.realpath(os.path.expanduser("~"))
    system = ["/" + name for name in _SYSTEM_DIRECTORIES]
    system += filter(None, map(os.environ.get, ("SystemRoot", "ProgramFiles", "ProgramData")))
    if real in _bare_places() or any(_is_at_or_below(real, os.path.realpath(one)) for one in system):
        return True
    if real in ("/usr", "/var", "/opt", "/srv", "/mnt", "/media", "/usr/local", "/var/lib"):
        return True
    hidden = _is_at_or_below(real, home) and os.path.relpath(real, home).startswith(".")
    return hidden and not os.path.exists(os.path.join(real, ".git"))


def _bare_places() -> frozenset[str]:
    """Return the real paths of the user's home, all directories above it, and those of temporary files."""
    places = {"/tmp", "/var/tmp"}
    places.update(filter(None, map(os.environ.get, ("TMPDIR", "TEMP", "TMP"))))  # the last two: Windows
    found = {os.path.realpath(place) for place in places}
    current = os.path.realpath(os.path.expanduser("~"))
    found.add(current)
    while os.path.dirname(current) != current:
        current = os.path.dirname(current)
        found.add(current)
    return frozenset(found)


def _kept_place(root: str, home: Home) -> str:
    name = re.sub(r"[^\w.-]+", "-", os.path.basename(root))[:40] or "project"
    return os.path.join(home.projects, f"{name}-{digest16(root)[:8]}")


def _is_kept_place(root: str, home: Home) -> bool:
    return os.path.dirname(root) in (home.projects, os.path.realpath(home.projects))


def _is_at_or_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)


def _as_stored(path: str) -> str:
    """Return `path` in the file system's letter case. Costs a system call for each part of the path."""
    names = []
    stored, name = os.path.split(path)
    while name:
        names.append(name)
        stored, name = os.path.split(stored)
    for name in reversed(names):
        stored = os.path.join(stored, _stored_name(stored, name))
    return stored


def _stored_name(directory: str, name: str) -> str:
    given, swapped = os.path.join(directory, name), os.path.join(directory, name.swapcase())
    try:
        if given == swapped or not os.path.exists(swapped) or not os.path.samefile(given, swapped):
            return name
        names = os.listdir(directory)
    except OSError:  # deleted meanwhile, or not listable
        return name
    alike = [one for one in names if one.lower() == name.lower()]
    return name if name in names or not alike else alike[0]


def digest16(text: str) -> str:
    """Return 16 hex characters of the SHA-256 of `text`, which may be a path of any bytes."""
    return str(sha256()(text.encode("utf-8", "surrogateescape")).hexdigest()[:16])


@lru_cache(1)
def sha256() -> Callable[[bytes], Any]:
    """Return the interpreter's own SHA-256: `hashlib` loads OpenSSL, which costs hooks milliseconds."""
    for name in ("_sha2", "_sha256", "hashlib"):
        try:
            found: Callable[[bytes], Any] = __import__(name).sha256
            return found
        except (ImportError, AttributeError):
            continue
    raise ImportError("this Python has no SHA-256")
