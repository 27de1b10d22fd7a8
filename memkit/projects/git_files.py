"""Read a git repository's own files. Hooks have no time to run git; `memkit.projects.git` runs it.

Standard library only, Python 3.9 syntax.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from typing import NamedTuple

from memkit.files import read_head

SHORT_HASH = 12
"""Characters kept of a commit's hash."""

_HEADS = "refs/heads"
_MOST_BRANCHES = 10_000
_PACKED_BYTES = 8 * 1024 * 1024
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?$")
_REFERENCE = re.compile(r"refs(?:/[^/\0-\x20]+)+$")
_CORE_WORKTREE = re.compile(r"^\s*worktree\s*=\s*(.+?)\s*$", re.MULTILINE)


class Head(NamedTuple):
    """The branch and the start of the commit hash that are checked out; "" if unknown."""

    branch: str = ""
    commit: str = ""


def worktree_root(directory: str, ignored: Collection[str] = ()) -> str | None:
    """Return the main worktree of the repository around `directory` (a real path), or None.

    Skip repositories whose root is in `ignored`. A submodule is a repository of its own.
    """
    current = _worktree(directory, ignored)
    if current is None:
        return None
    main = _main_worktree(current)
    return current if main is None or main in ignored else main


def worktrees_around(directory: str) -> list[str]:
    """Return all worktrees that contain `directory` (a real path). A submodule lies in another worktree."""
    found: list[str] = []
    current = _worktree(directory, ())
    while current is not None:
        found.append(current)
        current = _worktree(current, found)
    return found


def head(directory: str) -> Head:
    """Return what is checked out around `directory`."""
    worktree = _worktree(os.path.realpath(directory), ())
    git_directory = None if worktree is None else git_directory_of(worktree)
    if git_directory is None:
        return Head()
    content = read_git_file(os.path.join(git_directory, "HEAD")).strip()
    if _HASH.match(content):
        return Head("", content[:SHORT_HASH])
    reference = content.partition("ref:")[2].strip()
    # It becomes a path, so accept only names that git allows.
    if not _REFERENCE.match(reference) or ".." in reference:
        return Head()
    commit = _commit(git_directory, reference)
    branch = reference[11:] if reference.startswith("refs/heads/") else ""
    return Head("" if branch == ".invalid" else branch, commit[:SHORT_HASH])


def branches(directory: str) -> set[str] | None:
    """Return all local branches of the repository around `directory`; None if there are none, or unknown."""
    worktree = _worktree(os.path.realpath(directory), ())
    git_directory = None if worktree is None else git_directory_of(worktree)
    if git_directory is None:
        return None
    common = common_directory_of(git_directory) or git_directory
    top = os.path.join(common, *_HEADS.split("/"))
    if not os.path.isdir(top) or os.path.isdir(os.path.join(common, "reftable")):
        return None
    packed = read_git_file(os.path.join(common, "packed-refs"), _PACKED_BYTES)
    names = (line.partition(" ")[2] for line in packed.split("\n") if line[:1] not in ("#", "^"))
    found = {name[len(_HEADS) + 1 :] for name in names if name.startswith(_HEADS + "/")}
    for place, _, files in os.walk(top):
        below = os.path.relpath(place, top).replace(os.sep, "/")
        found.update(name if below == "." else f"{below}/{name}" for name in files)
        if len(found) > _MOST_BRANCHES:
            return None
    return found or None


def git_directory_of(worktree: str) -> str | None:
    """Return the directory with the worktree's HEAD: `.git`, or the directory that a `.git` file names."""
    marker = os.path.join(worktree, ".git")
    if os.path.isdir(marker):
        return marker
    target = read_git_file(marker).partition("gitdir:")[2].strip()
    try:
        path = os.path.join(worktree, target)
        return path if target and os.path.isdir(path) else None
    except ValueError:  # not a path
        return None


def common_directory_of(git_directory: str) -> str | None:
    """Return the directory that all worktrees share; None for a repository without linked worktrees.

    A linked worktree's `.git` file says `gitdir: <main>/.git/worktrees/<name>`, and the file
    `commondir` there leads to `<main>/.git` (gitrepository-layout(5)).
    """
    target = read_git_file(os.path.join(git_directory, "commondir")).strip()
    try:
        return os.path.realpath(os.path.join(git_directory, target)) if target else None
    except ValueError:  # not a path
        return None


def is_linked_worktree(worktree: str, git_directory: str, common: str) -> bool:
    """Return whether the repository at `common` knows `worktree` as one of its own.

    Anybody can write a `.git` file that leads to another repository. Git records in the repository where
    each worktree is. So that record must name this `.git` file, and both must belong to the same user.
    """
    real = os.path.realpath(git_directory)
    if os.path.dirname(real) != os.path.join(common, "worktrees"):
        return False
    marker = os.path.join(worktree, ".git")
    recorded = read_git_file(os.path.join(real, "gitdir")).strip()
    try:
        return (
            bool(recorded)
            and os.path.samefile(os.path.join(real, recorded), marker)
            and not os.path.islink(marker)
            and os.stat(marker).st_uid == os.stat(real).st_uid
        )
    except (OSError, ValueError):  # moved by hand; ValueError: not a path
        return False


def configured_worktree(git_directory: str) -> str | None:
    """Return `core.worktree` of a git directory as an absolute path, or None. Submodules set it."""
    match = _CORE_WORKTREE.search(read_git_file(os.path.join(git_directory, "config")))
    return None if match is None else os.path.join(git_directory, match[1].strip('"'))


def own_git_directory(root: str) -> str | None:
    """Return the git directory that the worktrees of `root` share; None if it may be another repository's."""
    marker = os.path.join(root, ".git")
    git_directory = git_directory_of(root)
    if git_directory is None or os.path.islink(marker):
        return None
    common = common_directory_of(git_directory)
    if os.path.isdir(marker):
        return marker if common is None and os.path.isfile(os.path.join(marker, "HEAD")) else None
    if common is not None:
        return common if is_linked_worktree(root, git_directory, common) else None
    worktree = configured_worktree(git_directory)  # a submodule
    try:
        is_own = worktree is not None and os.path.samefile(worktree, root)
        is_same_user = os.stat(marker).st_uid == os.stat(git_directory).st_uid
    except (OSError, ValueError):
        return None
    return git_directory if is_own and is_same_user else None


def read_git_file(path: str, most: int = 4096) -> str:
    """Return the start of a file; "" if it cannot be read."""
    try:
        # Very old versions of git made HEAD a link.
        return read_head(os.path.realpath(path), most).decode("utf-8", "replace")
    except (OSError, ValueError):  # ValueError: not a path
        return ""


def _worktree(directory: str, ignored: Collection[str]) -> str | None:
    while not os.path.exists(os.path.join(directory, ".git")) or directory in ignored:
        parent = os.path.dirname(directory)
        if parent == directory:
            return None
        directory = parent
    return directory


def _main_worktree(worktree: str) -> str | None:
    git_directory = git_directory_of(worktree)
    common = None if git_directory is None else common_directory_of(git_directory)
    if git_directory is None or common is None or not is_linked_worktree(worktree, git_directory, common):
        return None
    parent = os.path.dirname(common)
    if os.path.basename(common) == ".git":
        return parent
    configured = configured_worktree(common)
    for candidate in (parent, None if configured is None else os.path.realpath(configured)):
        target = None if candidate is None else git_directory_of(candidate)
        if target is not None and os.path.realpath(target) == common:
            return candidate
    return None


def _commit(git_directory: str, reference: str) -> str:
    common = common_directory_of(git_directory) or git_directory
    for directory in (git_directory, common):
        found = read_git_file(os.path.join(directory, *reference.split("/"))).strip()
        if _HASH.match(found):
            return found
    packed = read_git_file(os.path.join(common, "packed-refs"), _PACKED_BYTES)
    end = packed.find(f" {reference}\n")
    found = packed[packed.rfind("\n", 0, end) + 1 : end] if end >= 0 else ""
    return found if _HASH.match(found) else ""
