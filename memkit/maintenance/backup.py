"""Puts what cannot be made again into one file: memory, archive, settings, ledger, states of sessions."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import memkit
from memkit.files import inside
from memkit.hook.project import Project
from memkit.maintenance.backup_file import BackedUpProject, Header, create
from memkit.paths import OFF_MARKER, OFF_TIMES, Home

_FILES = ("config.toml", "ledger.jsonl", "forgotten.json")
_DIRECTORIES = {
    "archive": "*.jsonl.zst",
    "archive/replaced": "*/*.md",
    "sessions": "*.json",
    "summaries": "*.json",
    "projects": "*.json",
}


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What a backup holds: files, the bytes of these, those of the backup itself, and the projects' roots."""

    files: int
    bytes: int
    size: int
    projects: list[str]


def back_up(home: Home, projects: Sequence[Project], path: Path) -> BackupReport:
    """Write the backup `path` of a home and the memories of `projects`.

    The caller holds the index lock, so that the parts fit together. Derived data (index, models,
    environment) is not in it, nor is indexed markdown outside of the projects' `.memkit`. Raises
    `BackupError`.
    """
    named = tuple(_named(home, project) for project in projects)
    with create(path, Header(time.time(), memkit.__version__, named)) as writer:
        for name, file in _files_of_home(home):
            writer.add(f"home/{name}", file)
        for number, project in enumerate(projects):
            for name, file in _files_of(project):
                writer.add(f"projects/{number}/{name}", file)
    return BackupReport(
        len(writer.checksums), writer.bytes, path.stat().st_size, [one.root for one in projects]
    )


def _named(home: Home, project: Project) -> BackedUpProject:
    if project.memory == home.memory:
        return BackedUpProject(project.root, is_user=True)
    under_home = os.path.relpath(project.root, home.projects)
    is_under_home = os.sep not in under_home and under_home not in (os.curdir, os.pardir)
    return BackedUpProject(project.root, under_home if is_under_home else "")


def _files_of_home(home: Home) -> Iterator[tuple[str, Path]]:
    for name in _FILES:
        path = Path(home.root, name)
        if path.is_file():
            yield name, path
    for directory, pattern in _DIRECTORIES.items():
        for path in sorted(Path(home.root, directory).glob(pattern)):
            if path.is_file():
                yield path.relative_to(home.root).as_posix(), path


def _files_of(project: Project) -> Iterator[tuple[str, Path]]:
    """All files of a memory but hidden ones; what a link leads to inside it is there under its own name."""
    for name, marker in (("off", OFF_MARKER), ("off-times", OFF_TIMES)):
        path = Path(project.root, marker)
        if path.is_file() and not path.is_symlink():
            yield name, path
    top = inside(project.memory, project.root)
    for directory, below, files in os.walk(top):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in sorted(files):
            path = Path(directory, name)
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield f"memory/{path.relative_to(top).as_posix()}", path
