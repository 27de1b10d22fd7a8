"""Find the Markdown files that are the memory."""

from __future__ import annotations

import errno
import functools
import logging
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from memkit.hook.entries import is_copy
from memkit.paths import TEAM_DIRECTORY
from memkit.projects import team_files

logger = logging.getLogger(__name__)

SUFFIXES = (".md", ".markdown")

Unreadable = dict[str, str]
"""The reason why a source (a file, or a directory with everything below it) cannot be read now."""

_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


def is_markdown(name: str | Path) -> bool:
    """Return whether a file with this name or path is Markdown."""
    return os.path.splitext(name)[1].lower() in SUFFIXES


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A Markdown file and its name in the index.

    `source` is the POSIX path relative to the project root, or absolute for a file outside it. `real` is the
    path that links lead to. Paths are strings here: a memory may have thousands of files, and a `Path` takes
    20 µs.
    """

    name: str
    source: str
    real: str

    @property
    def path(self) -> Path:
        """The path by which it was found."""
        return Path(self.name)


def is_gone(error: OSError) -> bool:
    """Return whether the error means that there is no such file, not that it cannot be read now."""
    return error.errno in _GONE


def scan(
    root: Path, paths: Sequence[str], *, exclude: Sequence[str] = (), unreadable: Unreadable | None = None
) -> Iterator[SourceFile]:
    """Yield the Markdown files under `paths`, each once, sorted by source.

    `paths` are files or directories, absolute or relative to `root`; missing ones are skipped. What cannot be
    listed is logged and added to `unreadable`. Hidden files and directories below a path are skipped. A
    symlink is followed only to a target inside the same configured path; a file that is also found under its
    own name does not appear under the link's. A configured path may itself be hidden or a link. But a link
    below `root` must lead to a target below `root`: it may have come with the repository.

    The team's folder is found only where it is a configured path itself, and there only the files that
    `team_files.is_readable` accepts.

    `exclude` has globs as in gitignore. One without a slash matches the name of any file or directory, one
    with a slash the whole source. A trailing slash matches directories only, and `*` also matches slashes.
    Nothing below an excluded directory is found.
    """
    found: dict[str, SourceFile] = {}
    real_root = os.path.realpath(root)
    folder = os.path.join(real_root, TEAM_DIRECTORY, "").casefold()
    noted: Unreadable = {} if unreadable is None else unreadable
    for configured in paths:
        base = _absolute(root / configured)
        source = _source(root, base)
        mode = _mode(base, source, noted)
        is_directory = stat.S_ISDIR(mode)
        if not is_directory and not stat.S_ISREG(mode):
            logger.info("nothing to index at %r: not a file or directory", str(base))
            continue
        if base.is_relative_to(_absolute(root)) and not _leads_inside(base, _real(root)):
            logger.warning("not indexed, it leads out of the project: %r", str(base))
            continue
        if source and _is_excluded(source, exclude, is_directory):
            continue
        for file in _walk(base, source, exclude, noted) if is_directory else _files([(base, source)]):
            if _may_be_found(file, source, real_root, folder):
                found.setdefault(file.real, file)
    shared = [one.source for one in found.values() if team_files.is_team(one.source)]
    shared.sort(key=team_files.by_day)
    left_out = frozenset(shared[: -team_files.MOST_FILES])
    ordered = sorted(found.values(), key=lambda file: file.source)
    yield from (file for file in ordered if file.source not in left_out)


def _may_be_found(file: SourceFile, configured: str, real_root: str, folder: str) -> bool:
    leads_there = file.real.casefold().startswith(folder)  # a link may
    if not team_files.is_team(file.source) and not leads_there:
        return True
    return configured == team_files.TEAM and team_files.is_readable(real_root, file.source, file.real)


def _absolute(path: Path) -> Path:
    return Path(os.path.normpath(path.absolute()))


def _real(path: Path) -> Path:
    # Unlike Path.resolve, this raises no error for a loop of links.
    return Path(os.path.realpath(path))


def _mode(path: Path, source: str, unreadable: Unreadable) -> int:
    """Return the file type at `path`, 0 if nothing is there or it cannot be read."""
    try:
        return os.stat(path).st_mode
    except ValueError:  # a null character
        return 0
    except OSError as error:
        _note(path, source, error, unreadable)
        return 0


def _mode_of_entry(
    entry: os.DirEntry[str], source: str, is_link: bool, boundary: Path, unreadable: Unreadable
) -> int:
    """Return the file type of a directory entry as `_mode` does, mostly without a system call."""
    if is_link:
        is_followed = _leads_inside(Path(entry), boundary)
        return _mode(Path(entry), source, unreadable if is_followed else {})
    try:
        if entry.is_dir(follow_symlinks=False):
            return stat.S_IFDIR
        return stat.S_IFREG if entry.is_file(follow_symlinks=False) else 0
    except OSError as error:
        _note(Path(entry), source, error, unreadable)
        return 0


def _note(path: Path, source: str, error: OSError, unreadable: Unreadable) -> None:
    if is_gone(error):
        return
    if source not in unreadable:
        logger.warning("cannot read %r: %s", str(path), error)
    unreadable[source] = error.strerror or str(error)


def is_excluded(source: str, exclude: Sequence[str]) -> bool:
    """Return whether a file's source, or a directory above it, is excluded."""
    parts = source.split("/")
    above = ("/".join(parts[:count]) for count in range(1, len(parts)))
    return _is_excluded(source, exclude, False) or any(
        one and _is_excluded(one, exclude, True) for one in above
    )


def is_below(source: str, directory: str) -> bool:
    """Return whether `source` is `directory` or below it; "" is the project's root."""
    if not directory:
        return not os.path.isabs(source)
    return source == directory or source.startswith(f"{directory}/")


def sources_of(root: Path, paths: Sequence[str]) -> list[str]:
    """Return the sources of configured paths, whether they exist or not."""
    return [_source(root, _absolute(root / path)) for path in paths]


def _source(root: Path, base: Path) -> str:
    # The root and the path may lead to the same place through different links.
    for normal in (_absolute, _real):
        if normal(base).is_relative_to(normal(root)):
            source = normal(base).relative_to(normal(root)).as_posix()
            return "" if source == "." else source
    return base.as_posix()


def _walk(base: Path, source: str, exclude: Sequence[str], unreadable: Unreadable) -> Iterator[SourceFile]:
    boundary = _real(base)
    directories = [(base, source)]
    visited: set[Path] = set()
    while directories:
        links: list[tuple[Path, str]] = []
        while directories:
            path, source = directories.pop()
            real = _real(path)
            if real in visited:
                continue
            visited.add(real)
            for entry in _entries(path, source, unreadable):
                name = f"{source}/{entry.name}" if source else entry.name
                is_link = entry.is_symlink()
                mode = _mode_of_entry(entry, name, is_link, boundary, unreadable)
                is_directory = stat.S_ISDIR(mode)
                if _is_excluded(name, exclude, is_directory):
                    continue
                if is_link:
                    links.append((Path(entry), name))
                elif is_directory:
                    directories.append((Path(entry), name))
                elif stat.S_ISREG(mode) and is_markdown(entry.name) and not is_copy(entry.name):
                    # A regular file has the real path of its directory. Resolving each path takes 50 µs.
                    yield SourceFile(entry.path, name, os.path.join(real, entry.name))
        inside = [link for link in sorted(links) if _leads_inside(link[0], boundary)]
        directories = [link for link in reversed(inside) if os.path.isdir(link[0])]
        yield from _files(link for link in inside if os.path.isfile(link[0]))


def _entries(path: Path, source: str, unreadable: Unreadable) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as found:
            entries = [entry for entry in found if not entry.name.startswith(".")]
    except OSError as error:
        _note(path, source, error, unreadable)
        return []
    named = []
    for entry in entries:
        try:
            entry.name.encode("utf-8")
            named.append(entry)
        except UnicodeEncodeError:
            _report_name(entry.path)
    return named


@functools.lru_cache(maxsize=1000)  # once: the service lists the files every few seconds
def _report_name(path: str) -> None:
    logger.warning("cannot index %r: its name is not UTF-8", path)


def _files(candidates: Iterable[tuple[Path, str]]) -> Iterator[SourceFile]:
    for path, source in candidates:
        if is_markdown(path):
            yield SourceFile(str(path), source, str(_real(path)))


def _leads_inside(link: Path, boundary: Path) -> bool:
    inside = _real(link).is_relative_to(boundary)
    if not inside:
        logger.debug("not followed, leads outside of %r: %r", str(boundary), str(link))
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
            # `**/` also matches no directory at all.
            globs = (glob.removeprefix("/"), glob.removeprefix("**/"))
            matches = any(fnmatchcase(source.removeprefix("/"), glob) for glob in globs)
        if matches:
            return True
    return False
