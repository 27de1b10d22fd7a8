"""Which project a directory belongs to.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import os
import re

from memkit.files import RefusedFileError, inside, make_private_directory, read_head, write_durably
from memkit.hook.git import worktree_root
from memkit.hook.registry import Registry
from memkit.paths import MEMORY_DIRECTORY, OFF_MARKER, OFF_TIMES, Home

_TIMES_BYTES = 1024 * 1024
"""How much of a file of times is read; a line takes about forty bytes."""

_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,9})?$")


_SYSTEM_DIRECTORIES = (
    "etc bin sbin lib lib32 lib64 boot dev proc sys run usr/bin usr/sbin usr/lib usr/share var/spool "
    "var/run var/log var/cache System Library Applications private/etc private/var/db"
).split()


class Project:
    """A project: its root directory and the places memkit uses in it."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.memory = os.path.join(root, MEMORY_DIRECTORY)

    def __repr__(self) -> str:
        return f"Project({self.root!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Project) and other.root == self.root

    def __hash__(self) -> int:
        return hash(self.root)

    @classmethod
    def containing(cls, directory: str) -> Project:
        """The project of `directory`: the main worktree of its git repository, else the directory itself.

        All worktrees of a repository share one memory. A submodule is a project of its own. A repository
        at a place like the user's home (of dotfiles) is none for what lies below it.
        """
        directory = _as_stored(os.path.realpath(directory))
        return cls(worktree_root(directory, _bare_places()) or directory)

    @classmethod
    def remembering(cls, directory: str, home: Home) -> Project:
        """The project that remembers what is done in `directory`.

        Mostly the one containing it, or that whose memory this shares (`memkit projects link`). What is
        done at a bare place (the user's home, `/`, where temporary files are, the memory home) is
        remembered under the memory home, and nothing is written or indexed there.
        """
        real = os.path.realpath(directory)
        own = os.path.realpath(home.root)
        if _is_at_or_below(real, own):
            return cls(real if _is_kept_place(real, home) else _kept_place(own, home))
        project = cls.containing(real)
        shared = Registry.read(home).shared_root(project.root)
        if shared != project.root:
            return cls.at_root(shared, home)
        if project.root in _bare_places():
            return cls(_kept_place(project.root, home))
        return cls.at_root(project.root, home)

    @classmethod
    def at_root(cls, root: str, home: Home) -> Project:
        """The project whose root was `root`, wherever it has moved.

        Its memory is under the memory home if that directory is gone.
        """
        if root == home.root:
            return cls.of_user(home)
        if os.path.isdir(root) or _is_kept_place(root, home):
            return cls(root)
        present = Registry.read(home).present_root(root)
        return cls(present if os.path.isdir(present) else _kept_place(root, home))

    @classmethod
    def of_user(cls, home: Home) -> Project:
        """What is true across projects: the memory in `MEMKIT_HOME/memory`, as a project of its own."""
        project = cls(home.root)
        project.memory = home.memory
        return project

    @classmethod
    def kept(cls, root: str, home: Home) -> Project:
        """The project that remembers what was done in `root`, with its memory under the memory home."""
        return cls(_kept_place(root, home))

    @property
    def is_off(self) -> bool:
        """Whether the user switched memkit off here (`memkit off`)."""
        return os.path.lexists(os.path.join(self.root, OFF_MARKER))

    def switch_off(self, now: float) -> None:
        """Remember nothing from now on, in seconds since the epoch. Raises `OSError`."""
        if not self.is_off:
            marker = inside(os.path.join(self.root, OFF_MARKER), self.root)
            make_private_directory(os.path.dirname(marker))
            write_durably(marker, f"{now}\n".encode("ascii"))

    def switch_on(self, now: float) -> None:
        """Remember again what is said from now on; what was said while it was off stays out.

        Raises `OSError`.
        """
        inside(os.path.dirname(os.path.join(self.root, OFF_MARKER)), self.root)
        marker = os.path.join(self.root, OFF_MARKER)
        try:
            since = os.lstat(marker).st_mtime
        except FileNotFoundError:
            return
        try:
            words = read_head(marker, _TIMES_BYTES).decode("utf-8", "replace").split()
        except OSError:  # a link or a device: it goes all the same
            words = []
        if words and _NUMBER.match(words[0]):  # else an older memkit, or a person, made it
            since = float(words[0])
        times = inside(os.path.join(self.root, OFF_TIMES), self.root)
        line = f"{since} {now}\n"
        write_durably(times, (_read(times) + line).encode("ascii", "replace"))
        os.unlink(marker)

    def was_off(self, time: float) -> bool:
        """Whether the project was switched off at `time`, in seconds since the epoch, and is on again."""
        for line in _read(os.path.join(self.root, OFF_TIMES)).splitlines():
            words = line.split()
            is_whole = len(words) == 2 and all(map(_NUMBER.match, words))
            if is_whole and float(words[0]) <= time < float(words[1]):
                return True
        return False


def _read(path: str) -> str:
    """The file of times; empty if there is none, or it is no regular file."""
    try:
        return read_head(path, _TIMES_BYTES).decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError, RefusedFileError):
        return ""


def is_bare_place(root: str) -> bool:
    """Whether `root` is nobody's project: a bare place, the system's, or a hidden directory of the home."""
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
    """Real paths of what is nobody's project: the user's home, all above it, the root, temporary files'."""
    places = {"/tmp", "/var/tmp"}
    places.update(filter(None, map(os.environ.get, ("TMPDIR", "TEMP", "TMP"))))  # the latter two: Windows
    found = {os.path.realpath(place) for place in places}
    current = os.path.realpath(os.path.expanduser("~"))
    found.add(current)
    while os.path.dirname(current) != current:
        current = os.path.dirname(current)
        found.add(current)
    return frozenset(found)


def _kept_place(root: str, home: Home) -> str:
    """Where the memory of a project is kept whose own directory is gone, or is none to write to."""
    name = re.sub(r"[^\w.-]+", "-", os.path.basename(root))[:40] or "project"
    return os.path.join(home.projects, f"{name}-{digest16(root)[:8]}")


def _is_kept_place(root: str, home: Home) -> bool:
    return os.path.dirname(root) in (home.projects, os.path.realpath(home.projects))


def _is_at_or_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)


def _as_stored(path: str) -> str:
    """`path` in the letter case in which the file system has it: `/Users/me/shop` may be `/users/me/Shop`.

    Where case matters this is `path`. Costs a question to the system for each part of the path.
    """
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
    except OSError:  # gone meanwhile, or it may be entered, but not listed
        return name
    alike = [one for one in names if one.lower() == name.lower()]
    return name if name in names or not alike else alike[0]


def digest16(text: str) -> str:
    """16 hex characters of the SHA-256 of `text`, which may be a path of any bytes."""
    for name in ("_sha2", "_sha256", "hashlib"):  # the last one loads OpenSSL: hooks count milliseconds
        try:
            sha256 = __import__(name).sha256
            break
        except (ImportError, AttributeError):
            continue
    return str(sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16])
