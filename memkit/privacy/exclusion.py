"""The setting `capture.exclude`: files and directories that memkit must not remember."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from fnmatch import translate
from re import Pattern

_GLOB = re.compile(r"[*?\[]")


class Exclusion:
    """The patterns of one project: paths and globs, absolute, with `~`, or relative to its root.

    A pattern also covers everything below what it matches. One without a slash matches the name of any file
    or directory, inside and outside the project. `*` also matches slashes, and `**/` also matches the empty
    string.
    """

    def __init__(self, patterns: Iterable[str], root: str) -> None:
        self._root = root
        self._names: list[Pattern[str]] = []
        self._paths: list[Pattern[str]] = []
        for given in patterns:
            pattern = os.path.expanduser(given.strip()).rstrip("/") or given.strip()
            if not pattern:
                continue
            if "/" not in pattern:
                self._names.append(re.compile(translate(pattern)))
                continue
            path = os.path.join(root, pattern[2:] if pattern.startswith("./") else pattern)
            for one in {path, _real_start(path)}:
                for glob in {one, one.replace("/**/", "/")}:
                    self._paths.append(re.compile(translate(glob)))
                    self._paths.append(re.compile(translate(glob.rstrip("/") + "/*")))

    def __bool__(self) -> bool:
        return bool(self._names or self._paths)

    def covers(self, path: str, directory: str) -> bool:
        """Return whether `path`, as written in `directory`, is excluded, by its name or by its symlink's
        target.
        """
        if not self or "\0" in path:
            return False
        named = os.path.normpath(os.path.join(directory, os.path.expanduser(path)))
        return any(self._fits(one) for one in {named, os.path.realpath(named)})

    def covers_session(self, directory: str) -> bool:
        """Return whether a session in `directory` is excluded, alone or with the whole project."""
        return self.covers(directory, self._root) or self.covers(self._root, self._root)

    def _fits(self, path: str) -> bool:
        if any(pattern.match(path) for pattern in self._paths):
            return True
        inside = os.path.join(self._root, "")
        below = path[len(inside) :] if path.startswith(inside) else path
        if path == self._root:
            below = os.path.basename(path)
        names = below.split("/")
        return any(pattern.match(name) for pattern in self._names for name in names)


def _real_start(path: str) -> str:
    match = _GLOB.search(path)
    if match is None:
        return os.path.realpath(path)
    start, slash, rest = path[: match.start()].rpartition("/")
    return os.path.realpath(start) + slash + rest + path[match.start() :]
