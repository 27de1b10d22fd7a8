"""Finds the markdown files that are the memory."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

logger = logging.getLogger(__name__)

SUFFIXES = (".md", ".markdown")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A markdown file, and the name the index knows it by.

    `source` is the posix path relative to the project root, or absolute for a file outside it.
    """

    path: Path
    source: str


def scan(root: Path, paths: Sequence[str], *, exclude: Sequence[str] = ()) -> Iterator[SourceFile]:
    """The markdown files under `paths`, each once, sorted by source.

    `paths` are files or directories, absolute or relative to `root`. What does not exist or cannot
    be read is logged and passed over. Below them hidden files and directories are skipped, and a
    symlink leads to what lies inside the same configured path only; a file found there under its
    own name does not also appear under a link's. A configured path may itself be hidden or a link.

    `exclude` holds globs in the manner of gitignore: one without a slash fits the name of any file
    or directory, one with a slash the whole source; a slash at the end says directories only, and
    `*` fits slashes too. Nothing below an excluded directory is found.
    """
    found: dict[str, SourceFile] = {}
    for configured in paths:
        base = os.path.abspath(root / configured)
        if not os.path.exists(base):
            logger.info("nothing to index at %s: it does not exist", base)
            continue
        source = _source(root, base)
        if source and _is_excluded(source, exclude, os.path.isdir(base)):
            continue
        if os.path.isdir(base):
            files = _walk(base, source, exclude)
        else:
            files = _files([(base, source)])
        for real, file in files:
            found.setdefault(real, file)
    yield from sorted(found.values(), key=lambda file: file.source)


def _source(root: Path, base: str) -> str:
    """The name of a configured path, "" for the root itself."""
    # The second look is for a root and a path that reach the same place through different links.
    for normal in (os.path.abspath, os.path.realpath):
        path = PurePath(normal(base))
        if path.is_relative_to(normal(root)):
            source = path.relative_to(normal(root)).as_posix()
            return "" if source == "." else source
    return PurePath(base).as_posix()


def _walk(base: str, source: str, exclude: Sequence[str]) -> Iterator[tuple[str, SourceFile]]:
    """The files below a directory, each with its real path; those reached by links come last."""
    boundary = os.path.realpath(base)
    directories = [(base, source)]
    visited: set[str] = set()
    while directories:
        links: list[tuple[str, str]] = []
        while directories:
            path, source = directories.pop()
            real = os.path.realpath(path)
            if real in visited:
                continue
            visited.add(real)
            files: list[tuple[str, str]] = []
            for entry in _entries(path):
                name = f"{source}/{entry.name}" if source else entry.name
                is_link = entry.is_symlink()
                # DirEntry.is_dir raises where links form a loop.
                is_directory = os.path.isdir(entry.path) if is_link else entry.is_dir()
                if _is_excluded(name, exclude, is_directory):
                    continue
                kind = links if is_link else directories if is_directory else files
                kind.append((entry.path, name))
            yield from _files(files)
        inside = [link for link in sorted(links) if _leads_inside(link[0], boundary)]
        directories = [link for link in reversed(inside) if os.path.isdir(link[0])]
        yield from _files(inside)


def _entries(path: str) -> list[os.DirEntry[str]]:
    """What a directory holds that is not hidden and has a name that UTF-8 can tell."""
    try:
        with os.scandir(path) as found:
            entries = [entry for entry in found if not entry.name.startswith(".")]
    except OSError as error:
        logger.warning("cannot read the directory %r: %s", path, error)
        return []
    return [entry for entry in entries if _is_utf8(entry)]


def _is_utf8(entry: os.DirEntry[str]) -> bool:
    try:
        entry.name.encode("utf-8")
    except UnicodeEncodeError:
        logger.warning("cannot index %r: its name is not UTF-8", entry.path)
        return False
    return True


def _files(candidates: Iterable[tuple[str, str]]) -> Iterator[tuple[str, SourceFile]]:
    for path, source in candidates:
        if path.lower().endswith(SUFFIXES) and os.path.isfile(path):
            yield os.path.realpath(path), SourceFile(Path(path), source)


def _leads_inside(link: str, boundary: str) -> bool:
    inside = PurePath(os.path.realpath(link)).is_relative_to(boundary)
    if not inside:
        logger.debug("not followed, leads outside of %r: %r", boundary, link)
    return inside


def _is_excluded(source: str, patterns: Sequence[str], is_directory: bool) -> bool:
    name = source.rpartition("/")[2]
    for pattern in patterns:
        if pattern.endswith("/") and not is_directory:
            continue
        glob = pattern.rstrip("/")
        if "/" not in glob:
            matches = fnmatchcase(name, glob)
        else:
            # `**/` also stands for no directory at all.
            globs = (glob.removeprefix("/"), glob.removeprefix("**/"))
            matches = any(fnmatchcase(source.removeprefix("/"), glob) for glob in globs)
        if matches:
            return True
    return False
