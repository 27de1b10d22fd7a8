"""Which project a directory belongs to.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import json
import os
import re
from typing import Optional

from memkit.paths import (
    MEMORY_DIRECTORY,
    OFF_MARKER,
    OFF_TIMES,
    Home,
    make_private_directory,
    write_durably,
)

_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,9})?$")


class Project:
    """A project: its root directory and the places memkit uses in it."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.memory = os.path.join(root, MEMORY_DIRECTORY)

    def __repr__(self) -> str:
        return "Project({!r})".format(self.root)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Project) and other.root == self.root

    def __hash__(self) -> int:
        return hash(self.root)

    @classmethod
    def containing(cls, directory: str) -> Project:
        """The project of `directory`: the main worktree of its git repository, else the directory itself.

        All worktrees of a repository share one memory. A submodule is a project of its own.
        """
        directory = os.path.realpath(directory)
        return cls(_git_root(directory) or directory)

    @classmethod
    def at_root(cls, root: str, home: Home) -> Project:
        """The project whose root was `root`; its memory is under the memory home if that is gone."""
        if os.path.isdir(root):
            return cls(root)
        name = re.sub(r"[^\w.-]+", "-", os.path.basename(root))[:40] or "project"
        return cls(os.path.join(home.projects, "{}-{}".format(name, _digest(root)[:8])))

    @property
    def is_off(self) -> bool:
        """Whether the user switched memkit off here (`memkit off`)."""
        return os.path.exists(os.path.join(self.root, OFF_MARKER))

    def switch_off(self, now: float) -> None:
        """Remember nothing from now on, in seconds since the epoch. Raises `OSError`."""
        if not self.is_off:
            marker = os.path.join(self.root, OFF_MARKER)
            make_private_directory(os.path.dirname(marker))
            write_durably(marker, "{}\n".format(now).encode("ascii"))

    def switch_on(self, now: float) -> None:
        """Remember again what is said from now on; what was said while it was off stays out.

        Raises `OSError`.
        """
        marker = os.path.join(self.root, OFF_MARKER)
        try:
            with open(marker, encoding="utf-8", errors="replace") as file:
                words = file.read().split()
            since = os.path.getmtime(marker)
        except FileNotFoundError:
            return
        if words and _NUMBER.match(words[0]):  # else an older memkit, or a person, made it
            since = float(words[0])
        times = os.path.join(self.root, OFF_TIMES)
        line = "{} {}\n".format(since, now)
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
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return ""


def _git_root(directory: str) -> Optional[str]:
    """The main worktree above `directory`, found without running git (hooks have no time for that)."""
    current = directory
    while True:
        marker = os.path.join(current, ".git")
        if os.path.isdir(marker):
            return current
        if os.path.isfile(marker):
            return _main_worktree(current, marker) or current
        parent = os.path.dirname(current)
        if parent == current:
            return None
        current = parent


def _main_worktree(worktree: str, marker: str) -> Optional[str]:
    """The main worktree a linked one belongs to; None for a submodule or an unreadable link.

    A linked worktree's `.git` file says `gitdir: <main>/.git/worktrees/<name>`, and the file
    `commondir` there leads to `<main>/.git` (gitrepository-layout(5)).
    """
    try:
        with open(marker, encoding="utf-8") as file:
            git_directory = file.read(4096).partition("gitdir:")[2].strip()
        git_directory = os.path.join(worktree, git_directory)
        with open(os.path.join(git_directory, "commondir"), encoding="utf-8") as file:
            common = os.path.realpath(os.path.join(git_directory, file.read(4096).strip()))
    except (OSError, ValueError):  # ValueError: no text, or no path
        return None
    return os.path.dirname(common) if os.path.basename(common) == ".git" else None


def normalise_remote(url: str) -> str:
    """A git remote without protocol, user, port, `.git` and letter case of the host.

    `git@Host:Team/app.git` and `https://host/Team/app` are the same project: `host/Team/app`.
    """
    url = url.strip()
    match = re.match(
        r"^[a-z][a-z0-9+.-]*://(?:[^/]*@)?([^/:@]+)(?::\d+)?/(.*)$", url, re.IGNORECASE
    )
    if not match:
        match = re.match(r"^(?:[^@/]+@)?([^/:@]+):(?!\\)(.*)$", url)
    if not match:
        return _without_git(url.rstrip("/")).rstrip("/")
    host, path = match.groups()
    return "{}/{}".format(host.lower(), _without_git(path.strip("/"))).rstrip("/")


def _without_git(path: str) -> str:
    return path[:-4] if path.endswith(".git") else path


def identity(project: Project, home: Home) -> str:
    """A name for the project's index, 16 hex characters.

    It comes from the normalised git remote, so that a moved project keeps its index, else from the
    root's path. A second clone on the same machine gets a name of its own: `MEMKIT_HOME/projects`
    records which root holds which name, and a name passes on only when its root is gone.
    """
    remote = _remote(project.root)
    if remote:
        name = _digest("remote:" + normalise_remote(remote))
        if _claim(home, name, project.root):
            return name
    return _digest("path:" + project.root)


def _digest(text: str) -> str:
    import hashlib  # not needed by hooks, which count milliseconds

    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _remote(root: str) -> Optional[str]:
    if not os.path.exists(os.path.join(root, ".git")):
        return None
    import subprocess  # not needed by hooks, which count milliseconds

    try:
        answer = subprocess.run(
            ["git", "-C", root, "config", "--get", "remote.origin.url"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=5,
            check=False,
        )
    except (
        OSError,
        subprocess.TimeoutExpired,
    ):  # no git on this machine: the path names the project
        return None
    return answer.stdout.decode("utf-8", "replace").strip() or None


def _claim(home: Home, name: str, root: str) -> bool:
    """Whether `root` holds `name`, taking it if no existing directory does."""
    record = os.path.join(home.projects, name + ".json")
    try:
        with open(record, encoding="utf-8") as file:
            holder = json.load(file)["root"]
    except (OSError, ValueError, KeyError, TypeError):
        holder = None
    if holder == root:
        return True
    if isinstance(holder, str) and os.path.exists(os.path.join(holder, ".git")):
        return False
    make_private_directory(home.projects)
    write_durably(record, json.dumps({"root": root}).encode())
    return True
