"""What the files of a git repository tell, read without running git: hooks have no time for that.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import os
import re
from typing import Collection, NamedTuple, Optional

from memkit.processes import find_program, quiet

SHORT_HASH = 12
"""Characters kept of a commit's hash."""

_PACKED_BYTES = 8 * 1024 * 1024
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?$")
_REFERENCE = re.compile(r"refs(?:/[^/\0-\x20]+)+$")
_WORKTREE = re.compile(r"^\s*worktree\s*=\s*(.+?)\s*$", re.MULTILINE)


class Head(NamedTuple):
    """What is checked out: the branch and the start of the commit's hash; "" for what is not known."""

    branch: str = ""
    commit: str = ""


def worktree_root(directory: str, ignored: Collection[str] = ()) -> Optional[str]:
    """The main worktree of the repository around `directory`, which is a real path; None if there is none.

    A repository whose root is one of `ignored` counts as none. A submodule is a repository of its own.
    """
    current = _worktree(directory, ignored)
    if current is None:
        return None
    main = _main_worktree(current)
    return current if main is None or main in ignored else main


def head(directory: str) -> Head:
    """What is checked out in the worktree around `directory`; empty where git's files do not tell."""
    worktree = _worktree(os.path.realpath(directory), ())
    git_directory = None if worktree is None else _git_directory(worktree)
    if git_directory is None:
        return Head()
    said = _read(os.path.join(git_directory, "HEAD")).strip()
    if _HASH.match(said):
        return Head("", said[:SHORT_HASH])
    reference = said.partition("ref:")[2].strip()
    # It becomes a path, so it must be a name as git allows them.
    if not _REFERENCE.match(reference) or ".." in reference:
        return Head()
    commit = _commit(git_directory, reference) or ""
    branch = reference[11:] if reference.startswith("refs/heads/") else ""
    return Head("" if branch == ".invalid" else branch, commit[:SHORT_HASH])


def _worktree(directory: str, ignored: Collection[str]) -> Optional[str]:
    """The nearest directory with a `.git`, `directory` or one above it."""
    current = directory
    while True:
        if os.path.exists(os.path.join(current, ".git")) and current not in ignored:
            return current
        parent = os.path.dirname(current)
        if parent == current:
            return None
        current = parent


def _git_directory(worktree: str) -> Optional[str]:
    """The directory with the worktree's HEAD: its `.git`, or where the file of that name leads."""
    marker = os.path.join(worktree, ".git")
    if os.path.isdir(marker):
        return marker
    found = _read(marker).partition("gitdir:")[2].strip()
    try:
        path = os.path.join(worktree, found)
        return path if found and os.path.isdir(path) else None
    except ValueError:  # no path
        return None


def _common_directory(git_directory: str) -> Optional[str]:
    """The directory that all worktrees share; None for a repository that has no linked ones.

    A linked worktree's `.git` file says `gitdir: <main>/.git/worktrees/<name>`, and the file
    `commondir` there leads to `<main>/.git` (gitrepository-layout(5)).
    """
    said = _read(os.path.join(git_directory, "commondir")).strip()
    try:
        return os.path.realpath(os.path.join(git_directory, said)) if said else None
    except ValueError:  # no path
        return None


def _main_worktree(worktree: str) -> Optional[str]:
    """The main worktree that a linked one belongs to; None if it is none, or nobody knows.

    A bare repository has none, but where it lies hidden in a directory of worktrees, that directory
    has a `.git` that leads to it. That of a submodule stands in the repository's configuration.
    """
    git_directory = _git_directory(worktree)
    common = None if git_directory is None else _common_directory(git_directory)
    if common is None:
        return None
    above = os.path.dirname(common)
    if os.path.basename(common) == ".git":
        return above
    around = _git_directory(above)
    if around is not None and os.path.realpath(around) == common:
        return above
    configured = _WORKTREE.search(_read(os.path.join(common, "config")))
    if configured is None:
        return None
    main = os.path.realpath(os.path.join(common, configured[1].strip('"')))
    return main if os.path.exists(os.path.join(main, ".git")) else None


def _commit(git_directory: str, reference: str) -> Optional[str]:
    """The hash of the commit that a reference names."""
    places = [git_directory]
    common = _common_directory(git_directory)
    if common is not None:
        places.append(common)
    for place in places:
        said = _read(os.path.join(place, *reference.split("/"))).strip()
        if _HASH.match(said):
            return said
    ending = " {}\n".format(reference)
    packed = _read(os.path.join(places[-1], "packed-refs"), _PACKED_BYTES)
    end = packed.find(ending)
    said = packed[packed.rfind("\n", 0, end) + 1 : end] if end >= 0 else ""
    return said if _HASH.match(said) else None


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


def remote_of(root: str) -> Optional[str]:
    """The remote `origin` of the repository at `root`, as git's configuration, includes and all, has it."""
    if not os.path.exists(os.path.join(root, ".git")):
        return None
    import subprocess  # not needed by hooks, which count milliseconds

    git = find_program("git")
    if git is None:  # the path names the project
        return None
    try:
        answer = subprocess.run(
            [git, "-C", root, "config", "--get", "remote.origin.url"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=5,
            check=False,
            **quiet(),
        )
    except (OSError, subprocess.TimeoutExpired):  # the path names the project
        return None
    return answer.stdout.decode("utf-8", "replace").strip() or None


def _read(path: str, most: int = 4096) -> str:
    """The start of a file; empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(most)
    except (OSError, ValueError):  # ValueError: no path
        return ""
