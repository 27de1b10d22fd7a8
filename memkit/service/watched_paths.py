"""Where a project's memory lies: the directories to watch, and which events in them are about it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memkit.index.scanner import is_hidden, is_markdown, scan


@dataclass(frozen=True, slots=True)
class WatchedPaths:
    """What has to be watched to see every change of a memory, as the directories are now.

    All paths are absolute and without links, but for the last part of a waypoint.
    """

    directories: dict[str, bool] = field(default_factory=dict)
    """The directories to watch, and whether with all below them; none of those lies below another."""
    trees: frozenset[str] = frozenset()
    """The directories of markdown."""
    waypoints: frozenset[str] = frozenset()
    """What may appear, vanish or be replaced on the way: directories, links, a configured file."""

    def concern(self, path: str, is_directory: bool) -> bool:
        """Whether a change of `path` may be one of the memory, as far as names tell."""
        if path in self.waypoints:
            return True
        for tree in self.trees:
            if _is_below(path, tree):
                if any(map(is_hidden, path[len(tree) :].split(os.sep))):
                    continue
                return is_directory or is_markdown(path)
        return False


def places(root: str, paths: Sequence[Path]) -> WatchedPaths:
    """The places of the memory of the project at `root`; `paths` are absolute or relative to it."""
    trees: set[str] = set()
    shallow: set[str] = set()
    waypoints: set[str] = set()
    root = os.path.abspath(root)
    for path in paths:
        absolute = os.path.normpath(os.path.join(root, path))
        real = os.path.realpath(absolute)
        is_led_out = _is_below(absolute, root) and not _is_below(real, os.path.realpath(root))
        ways = [(root, absolute)]
        if not is_led_out:  # the scanner refuses what lies there, too
            ways.append((os.path.realpath(root), real))
        for above, way in ways:
            for directory, name in _way(above, way):
                shallow.add(os.path.realpath(directory))
                waypoints.add(os.path.join(os.path.realpath(directory), name))
        if os.path.isdir(real) and not is_led_out:
            trees.add(real)
    directories = {
        path: path in trees
        for path in sorted(shallow | trees)
        if not any(_is_below(path, tree) for tree in trees)
    }
    return WatchedPaths(directories, frozenset(trees), frozenset(waypoints | trees))


def _way(root: str, path: str) -> Iterator[tuple[str, str]]:
    """Each directory that is on the way to `path`, with the name of the next part.

    The way begins at the project's root, or for a path outside at its nearest directory.
    """
    inside = _is_below(path, root)
    while path != root:
        above, name = os.path.split(path)
        if above == path:
            return
        if os.path.isdir(above):
            yield above, name
            if not inside:
                return
        path = above


def _is_below(path: str, directory: str) -> bool:
    return path != directory and path.startswith(directory.rstrip(os.sep) + os.sep)


@dataclass(frozen=True, slots=True)
class WatchedContents:
    """The memory's files at one moment, told apart by what the file system says of them."""

    files: dict[str, tuple[int, int, int, int]] = field(default_factory=dict)
    """By source: time of modification, of change (which no tool can set back), size, inode."""
    linked: frozenset[str] = field(default=frozenset(), compare=False)
    """Real paths of files that are links, real directories of files reached through a link."""

    def concern(self, path: str) -> bool:
        """Whether `path` is one that is known by another name, through a link."""
        return path in self.linked or os.path.dirname(path) in self.linked


def contents(root: str, paths: Sequence[Path], exclude: Sequence[str]) -> WatchedContents:
    """What the scanner finds, by its own rules."""
    files: dict[str, tuple[int, int, int, int]] = {}
    linked: set[str] = set()
    directories: set[Path] = set()
    # What is missing is passed over here: the scanner would log it at every look.
    present = [str(path) for path in paths if os.path.exists(os.path.join(root, path))]
    for file in scan(Path(root), present, exclude=exclude):
        try:
            status = os.stat(file.path)
        except OSError:  # gone since; its event is under way
            continue
        files[file.source] = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
        if os.path.islink(file.path):
            linked.add(os.path.realpath(file.path))
        directories.add(file.path.parent)
    for directory in directories:
        real = os.path.realpath(directory)
        if real != str(directory):
            linked.add(real)
    return WatchedContents(files, frozenset(linked))
