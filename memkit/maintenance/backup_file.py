"""The format of a backup. The one module that knows it.

A tar in one zstd frame, so that `tar --zstd -xf` unpacks it too. Its first member says version and projects,
the last one the SHA-256 of each other one: a file that was cut short has none. Members are plain files:

    memkit-backup.json
    home/config.toml, home/ledger.jsonl, home/forgotten.json, home/{archive,sessions,summaries,projects}/…
    projects/0/memory/2026-11-20.md, projects/0/off, …     of the first project that is named
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
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import msgspec
import zstandard

from memkit.errors import BackupError
from memkit.files import PRIVATE_FILE, create_private, open_replacement
from memkit.state import FIELD, check_version, parse_json

VERSION = 1
"""Of the format; a file of a newer one is not read."""

_FORMAT = "memkit backup"
_HEADER = "memkit-backup.json"
_CHECKSUMS = "checksums.json"
_LEVEL = 9
_READ_BYTES = 1024 * 1024

_MOST_RATIO = 100
_ALWAYS_BYTES = 256 * 1024 * 1024
"""A backup may hold this much, or `_MOST_RATIO` times its own size: memories compress to a tenth."""

_MOST_MEMBERS = 200_000
_MOST_JSON_BYTES = 64 * 1024 * 1024
_SLACK_BYTES = 1024 * 1024
"""What may be read beyond the announced members: headers, padding, and the reader's blocks."""

_HOME = re.compile(
    r"home/(?:config\.toml|ledger\.jsonl|forgotten\.json|(?:archive|sessions|summaries)/[^/]+|projects/[^/]+\.json"
    r"|archive/replaced/[^/]+/[^/]+\.md)"
)
_PROJECT = re.compile(r"projects/(\d{1,6})/(?:off|off-times|memory/.+)")
_REGULAR = (tarfile.REGTYPE, tarfile.AREGTYPE)


@dataclass(frozen=True, slots=True)
class BackedUpProject:
    """A project in a backup: its root, and, if its memory was under the home, the name it has there.

    `is_user` says that it is the user's own memory.
    """

    root: str
    under_home: str = ""
    is_user: bool = False


@dataclass(frozen=True, slots=True)
class Header:
    """What a backup says of itself: when it was made (seconds since the epoch), by which memkit, of what."""

    created: float
    memkit: str
    projects: tuple[BackedUpProject, ...]


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A backup whose every member has been checked: where each of them lies, by name."""

    header: Header
    members: dict[str, Path]


class BackupWriter:
    """A backup that is being written; see `create`."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self.checksums: dict[str, str] = {}
        self.bytes = 0

    def add(self, name: str, path: Path) -> None:
        """Put the file at `path` in, as it is now. Raises `OSError`."""
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            info = _info(name, found.st_size, found.st_mtime)
            read = _Hashing(file)
            self._tar.addfile(info, read)
        self.checksums[name] = read.hash.hexdigest()
        self.bytes += found.st_size

    def _add_json(self, name: str, value: dict[str, Any], time: float) -> None:
        data = json.dumps(value, indent=1).encode("ascii")
        self._tar.addfile(_info(name, len(data), time), io.BytesIO(data))


class _Hashing:
    """A file that is hashed while it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.hash.update(data)
        return data


@contextmanager
def create(path: Path, header: Header) -> Iterator[BackupWriter]:
    """Write a backup: it stands at `path`, whole and on the disk, when the block has ended.

    If that fails, nothing stands there that did not before. Raises `BackupError`.
    """
    try:
        with open_replacement(str(path)) as file:
            compressor = zstandard.ZstdCompressor(_LEVEL, write_checksum=True)
            with (
                compressor.stream_writer(file, closefd=False) as stream,
                tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar,
            ):
                writer = BackupWriter(tar)
                said = {"format": _FORMAT, FIELD: VERSION, **dataclasses.asdict(header)}
                writer._add_json(_HEADER, said, header.created)
                yield writer
                writer._add_json(_CHECKSUMS, writer.checksums, header.created)
    except OSError as error:
        raise BackupError(
            f"cannot write the backup {path}: {error.strerror or error}; no backup was made"
        ) from error


def _info(name: str, size: int, time: float) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = size, int(time), PRIVATE_FILE
    return info


class _Bounded:
    """A decompressed stream that yields no more than what its members announce, and a limit in all."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self._stream = stream
        self._limit = limit
        self._allowed = _SLACK_BYTES
        self._read = 0
        self.announced = 0

    def announce(self, size: int) -> None:
        """Allow a member of `size` bytes. Raises `ValueError`."""
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
    """Read the backup at `path` to its end, check it, and put its members into the empty `directory`.

    All of it is checked before anything is written. Members get numbers for names: nothing there is named
    by the backup. Raises `BackupError`, `NewerFileError`; `OSError` if `directory` takes no more.
    """
    needed = _read(path, None)[1]
    if needed > shutil.disk_usage(directory).free:
        raise BackupError(f"{path} unpacks to {needed} bytes, more than {directory} has room for; make room")
    return _read(path, directory)[0]


def _read(path: Path, directory: Path | None) -> tuple[Unpacked, int]:
    """What the backup holds, and how many bytes; nothing is written without `directory`."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait
            raise BackupError(f"cannot read the backup {path}: it is not a regular file")
        file = path.open("rb")
    except OSError as error:
        raise BackupError(f"cannot read the backup {path}: {error.strerror}") from error
    try:
        with file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
            limit = max(_ALWAYS_BYTES, _MOST_RATIO * os.fstat(file.fileno()).st_size)
            bounded = _Bounded(stream, limit)
            with tarfile.open(fileobj=cast("IO[bytes]", bounded), mode="r|") as tar:
                return _unpack(path, tar, bounded, directory), bounded.announced
    except (zstandard.ZstdError, tarfile.TarError, EOFError, ValueError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise BackupError(f"{path} is damaged, or no backup of memkit's ({reason})") from error


def _unpack(path: Path, tar: tarfile.TarFile, bounded: _Bounded, directory: Path | None) -> Unpacked:
    header: Header | None = None
    checksums: dict[str, Any] | None = None
    members: dict[str, Path] = {}
    found: dict[str, str] = {}
    for number, info in enumerate(tar):
        bounded.announce(info.size)
        is_regular = info.type in _REGULAR and info.sparse is None
        source = tar.extractfile(info) if is_regular else None
        if source is None:
            raise ValueError(f"{info.name!r} is no plain file")
        if number >= _MOST_MEMBERS:
            raise ValueError(f"it holds more than {_MOST_MEMBERS} files")
        is_json = header is None or info.name == _CHECKSUMS
        if is_json and info.size > _MOST_JSON_BYTES:
            raise ValueError(f"{info.name!r} is too large")
        if header is None:
            header = _header(path, info.name, source)
        elif checksums is not None:
            raise ValueError(f"{info.name!r} stands behind its end")
        elif info.name == _CHECKSUMS:
            checksums = parse_json(source.read())
        else:
            if info.name in members:
                raise ValueError(f"{info.name!r} is there twice")
            _check_name(info.name, len(header.projects))
            members[info.name] = Path(directory or "", str(number))
            found[info.name] = _copy(source, directory and members[info.name])
    if header is None or checksums is None:
        raise ValueError("its end is missing")
    if found != checksums:
        raise ValueError("its checksums do not fit")
    return Unpacked(header, members)


def _header(path: Path, name: str, source: IO[bytes]) -> Header:
    value = parse_json(source.read()) if name == _HEADER else {}
    if not isinstance(value, dict) or value.get("format") != _FORMAT:
        raise ValueError("it does not begin as one")
    check_version(path, value, VERSION)
    header = msgspec.convert(value, Header)
    for one in header.projects:
        if one.under_home in (os.curdir, os.pardir) or re.search(r"[/\\\0]", one.under_home):
            raise ValueError(f"{one.under_home!r} is no name of a project's directory")
    return header


def _check_name(name: str, projects: int) -> None:
    """Whether `name` is one that this format has; none of them leads anywhere else."""
    parts = name.split("/")
    is_plain = not any(part[:1] in ("", ".") or re.search(r"[\\\0]", part) for part in parts)
    project = _PROJECT.fullmatch(name)
    if not is_plain or not (_HOME.fullmatch(name) or (project and int(project[1]) < projects)):
        raise ValueError(f"{name!r} is no name of memkit's")


def _copy(source: IO[bytes], target: Path | None) -> str:
    """Write `source` to `target`, if there is one; the SHA-256 of it."""
    read = hashlib.sha256()
    with nullcontext() if target is None else create_private(str(target)) as file:
        while data := source.read(_READ_BYTES):
            read.update(data)
            if file is not None:
                file.write(data)
    return read.hexdigest()
