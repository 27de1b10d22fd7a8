"""Write a backup, and unpack one: the only module that knows the format.

A backup is a tar archive in one zstd frame, so that `tar --zstd -xf` unpacks it too. The first member states
the version and the projects, the last one the SHA-256 of each other member, which a truncated backup lacks.
All members are regular files:

    memkit-backup.json
    home/config.toml, home/archive/…                    the files of the home that belong in a backup
    projects/0/memory/2026-11-20.md, projects/0/off     those of the first project in memkit-backup.json
    checksums.json
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import re
import shutil
import stat
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import msgspec
import zstandard

import memkit
from memkit.errors import MemkitError
from memkit.files import PRIVATE_FILE, create_private, inside, open_replacement
from memkit.home_files import HOME_FILES, PROJECT_FILES, find_files, kind_of
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.state import FIELD, check_version, parse_json
from memkit.text import one_line

VERSION = 1
"""The version of the format. memkit does not read a newer one."""

PROJECT_MEMBERS = {
    kind.pattern.removeprefix(".memkit/"): kind.pattern
    for kind in PROJECT_FILES
    if kind.in_backup and not kind.pattern.endswith("**")
}
"""The files of a project outside of its memory, by their names in a backup."""

_FORMAT = "memkit backup"
_HEADER = "memkit-backup.json"
_CHECKSUMS = "checksums.json"
_LEVEL = 9

_MAX_RATIO = 100
_ALWAYS_BYTES = 256 * 1024 * 1024
"""A backup may unpack to this much, or to `_MAX_RATIO` times its size if that is more."""

_MAX_MEMBERS = 200_000
_MAX_JSON_BYTES = 64 * 1024 * 1024
_SLACK_BYTES = 1024 * 1024
"""Bytes to read beyond the announced sizes: headers, padding, and the blocks of the tar reader."""



@dataclass(frozen=True, slots=True)
class BackedUpProject:
    """A project in a backup.

    `under_home` is the name of its directory in `projects/` of the home, if it was there. `is_user` marks
    the user's own memory. `folder` is where the user had new days go, see `Project`.
    """

    root: str
    under_home: str = ""
    is_user: bool = False
    folder: str = ""


@dataclass(frozen=True, slots=True)
class Header:
    """The first member: when the backup was made (seconds since the epoch), by which memkit, of what."""

    created: float
    memkit: str
    projects: tuple[BackedUpProject, ...]


@dataclass(frozen=True, slots=True)
class BackupReport:
    """The number of files in a backup, their bytes, its own bytes, and the projects' roots."""

    files: int
    bytes: int
    size: int
    projects: list[str]


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A checked backup: the path of each unpacked member, by name."""

    header: Header
    members: dict[str, Path]


def back_up(home: Home, projects: Sequence[Project], path: Path) -> BackupReport:
    """Write the backup `path` of a home and of the memories of `projects`.

    The caller holds the capture lock, so that the parts fit together. Raise `MemkitError`.
    """
    named = tuple(_named(home, project) for project in projects)
    with create(path, Header(time.time(), memkit.__version__, named)) as writer:
        for kind in HOME_FILES:
            for file in find_files(home.root, kind) if kind.in_backup else ():
                writer.add(f"home/{Path(file).relative_to(home.root).as_posix()}", Path(file))
        for number, project in enumerate(projects):
            for name, source in _project_files(project):
                writer.add(f"projects/{number}/{name}", source)
    roots = [project.root for project in projects]
    return BackupReport(len(writer.checksums), writer.bytes, path.stat().st_size, roots)


def _named(home: Home, project: Project) -> BackedUpProject:
    if project.memory == home.memory:
        return BackedUpProject(project.root, is_user=True)
    directory, name = os.path.split(project.root)
    return BackedUpProject(
        project.root, name if directory == home.projects else "", folder=project.folder
    )


def _project_files(project: Project) -> Iterator[tuple[str, Path]]:
    for name, marker in PROJECT_MEMBERS.items():
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
    for day in project.openclaw_days():
        yield f"memory/{day}.md", Path(project.real_file(project.day_file(day)))


class BackupWriter:
    """A backup while `create` writes it."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self.checksums: dict[str, str] = {}
        self.bytes = 0

    def add(self, name: str, path: Path) -> None:
        """Add the current content of the file at `path`. Raise `OSError`."""
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            reader = _HashingReader(file)
            self._tar.addfile(_info(name, found.st_size, found.st_mtime), reader)
        self.checksums[name] = reader.hash.hexdigest()
        self.bytes += found.st_size

    def add_json(self, name: str, value: dict[str, Any], created: float) -> None:
        """Add a member that has no checksum."""
        data = json.dumps(value, indent=1).encode("ascii")
        self._tar.addfile(_info(name, len(data), created), io.BytesIO(data))


class _HashingReader:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.hash.update(data)
        return data


@contextmanager
def create(path: Path, header: Header) -> Iterator[BackupWriter]:
    """Write a backup that replaces `path`, complete and on disk, when the block ends.

    If that fails, `path` is as it was. Raise `MemkitError`.
    """
    try:
        with open_replacement(str(path)) as file:
            compressor = zstandard.ZstdCompressor(_LEVEL, write_checksum=True)
            with (
                compressor.stream_writer(file, closefd=False) as stream,
                tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar,
            ):
                writer = BackupWriter(tar)
                first = {"format": _FORMAT, FIELD: VERSION, **dataclasses.asdict(header)}
                writer.add_json(_HEADER, first, header.created)
                yield writer
                writer.add_json(_CHECKSUMS, writer.checksums, header.created)
    except OSError as error:
        raise MemkitError(
            f"cannot write the backup {path}: {error.strerror or error}; no backup was made"
        ) from error


def _info(name: str, size: int, modified: float) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = size, int(modified), PRIVATE_FILE
    return info


class _BoundedStream:
    """A decompressed stream that yields at most what the members announce, and at most `limit` bytes."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self._stream = stream
        self._limit = limit
        self._allowed = _SLACK_BYTES
        self._read = 0
        self.announced = 0

    def announce(self, size: int) -> None:
        """Allow a member of `size` bytes. Raise `ValueError`."""
        self.announced += size
        if self.announced > self._limit:
            raise ValueError(f"it unpacks to more than {self._limit} bytes")
        self._allowed = self._read + size + _SLACK_BYTES

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._read += len(data)
        if self._read > self._allowed:
            raise ValueError("it holds more than its members announce")
        return data


def unpack(path: Path, directory: Path) -> Unpacked:
    """Check the backup at `path` and unpack it into the empty, private `directory`.

    The unpacked files have numbers for names: the backup names no path. If the backup is refused, the
    directory is empty again. Raise `MemkitError` or `NewerFileError`; `OSError` if the disk is full.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait
            raise MemkitError(f"cannot read the backup {path}: it is not a regular file")
        file = path.open("rb")
    except OSError as error:
        raise MemkitError(f"cannot read the backup {path}: {error.strerror}") from error
    free = shutil.disk_usage(directory).free
    limit = max(_ALWAYS_BYTES, _MAX_RATIO * path.stat().st_size)
    try:
        with file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
            bounded = _BoundedStream(stream, limit)
            with tarfile.open(fileobj=cast("IO[bytes]", bounded), mode="r|") as tar:
                return _unpack(path, tar, bounded, directory, free)
    except BaseException as error:
        for unpacked in directory.iterdir():
            unpacked.unlink()
        if isinstance(error, (zstandard.ZstdError, tarfile.TarError, EOFError, ValueError)):
            reason = one_line(str(error)) or type(error).__name__
            raise MemkitError(f"{path} is damaged, or not a backup of memkit ({reason})") from error
        raise


def _unpack(
    path: Path, tar: tarfile.TarFile, stream: _BoundedStream, directory: Path, free: int
) -> Unpacked:
    header: Header | None = None
    checksums: dict[str, Any] | None = None
    members: dict[str, Path] = {}
    found: dict[str, str] = {}
    for number, info in enumerate(tar):
        stream.announce(info.size)
        if stream.announced > free:
            raise MemkitError(f"{path} unpacks to more than the free space of {directory}; make room")
        if not info.isreg() or info.issparse():
            raise ValueError(f"{info.name!r} is not a regular file")
        if number >= _MAX_MEMBERS:
            raise ValueError(f"it holds more than {_MAX_MEMBERS} files")
        if header is None:
            header = _header(path, _json_member(tar, info) if info.name == _HEADER else None)
        elif checksums is not None:
            raise ValueError(f"{info.name!r} is after its end")
        elif info.name == _CHECKSUMS:
            checksums = _json_member(tar, info)
        else:
            if info.name in members:
                raise ValueError(f"it holds {info.name!r} twice")
            _check_name(info.name, len(header.projects))
            members[info.name] = directory / str(number)
            found[info.name] = _extract(tar, info, members[info.name])
    if header is None or checksums is None:
        raise ValueError("its end is missing")
    if found != checksums:
        raise ValueError("its checksums do not match")
    return Unpacked(header, members)


def _json_member(tar: tarfile.TarFile, info: tarfile.TarInfo) -> Any:
    if info.size > _MAX_JSON_BYTES:
        raise ValueError(f"{info.name!r} is too large")
    return parse_json(_reader(tar, info).read())


def _extract(tar: tarfile.TarFile, info: tarfile.TarInfo, path: Path) -> str:
    """Write the content of a member, and nothing else that it states, to `path`. Return its SHA-256."""
    reader = _reader(tar, info)
    with create_private(str(path)) as file:
        shutil.copyfileobj(reader, file)
    return reader.hash.hexdigest()


def _reader(tar: tarfile.TarFile, info: tarfile.TarInfo) -> _HashingReader:
    source = tar.extractfile(info)
    if source is None:
        raise ValueError(f"{info.name!r} is not a regular file")
    return _HashingReader(source)


def _header(path: Path, value: Any) -> Header:
    if not isinstance(value, dict) or value.get("format") != _FORMAT:
        raise ValueError("it does not begin as a backup")
    check_version(path, value, VERSION)
    header = msgspec.convert(value, Header)
    for one in header.projects:
        if one.under_home in (os.curdir, os.pardir) or re.search(r"[/\\\0]", one.under_home):
            raise ValueError(f"{one.under_home!r} is not the name of a project's directory")
    return header


def _check_name(name: str, projects: int) -> None:
    is_plain = not any(part[:1] in ("", ".") or re.search(r"[\\\0]", part) for part in name.split("/"))
    top, _, rest = name.partition("/")
    kind = kind_of(rest) if top == "home" else None
    if top == "projects":
        number, _, rest = rest.partition("/")
        if re.fullmatch(r"[0-9]{1,6}", number) and int(number) < projects:
            kind = kind_of(f".memkit/{rest}", PROJECT_FILES)
    if not is_plain or kind is None or not kind.in_backup:
        raise ValueError(f"memkit puts no {name!r} into a backup")
