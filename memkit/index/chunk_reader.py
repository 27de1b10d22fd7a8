"""The chunks of a snapshot, found by id: all that commands need which show text and rank nothing.

Reads with the standard library alone; numpy and the BM25 index would take most of such a command's time.
"""

from __future__ import annotations

import dataclasses
import logging
import mmap
import sys
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from memkit.errors import (
    AmbiguousIdError,
    ForeignSnapshotError,
    NotFoundError,
    StaleSnapshotError,
    raise_if_exhausted,
)
from memkit.index.chunk import Chunk
from memkit.state import parse_json

logger = logging.getLogger(__name__)

FORMAT = 6
SHOWN_ID_CHARACTERS = 12
"""How much of an id people see; any unique prefix is accepted, like git's."""

MANIFEST = "manifest"
CHUNKS = "chunks.jsonl"
IDS = "ids"
"""The ids of all chunks, each `ID_BYTES` long, without anything between them."""

ID_BYTES = 64

OFFSETS = "offsets"
"""Where each chunk begins in `CHUNKS`, and where the last one ends: `OFFSET_TYPE`, as the machine has it."""

OFFSET_TYPE: Final = "q"

CHUNK_FIELDS = {field.name: field.name for field in dataclasses.fields(Chunk)} | {"citations": "grips"}
"""The fields of a chunk, each with its name on disk. A snapshot with other fields cannot be read."""

Opened = TypeVar("Opened")


class ChunkReader:
    """The chunks of a snapshot, in the order (source, start_line), with their ids."""

    files: ClassVar[tuple[str, ...]] = (CHUNKS, IDS, OFFSETS)
    """The files that are read; the manifest has their checksums."""

    def __init__(self, path: Path) -> None:
        """Open the snapshot at `path`. Raises `StaleSnapshotError`."""
        self.path = path
        try:
            self.manifest = _read_manifest(path)
            # Kept open: the next writer removes the files of this snapshot.
            self._data = {name: map_file(path / name) for name in self.files}
            checksums = {name: zlib.crc32(data) for name, data in self._data.items()}
            release(self._data[CHUNKS])  # read to be checked; of the text little is shown
            if checksums.items() - self.manifest["checksums"].items():
                raise ValueError("its files are damaged")
            self._ids = bytes(self._data[IDS])
            self._offsets = self._data[OFFSETS].cast(OFFSET_TYPE)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise_if_exhausted(error)
            raise StaleSnapshotError(f"snapshot {path} cannot be used: {error}") from error

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def is_in_force(self) -> bool:
        """Whether no other has taken the place of this one."""
        return _current(self.path.parent) == self.path.name

    @property
    def root(self) -> str:
        """The root directory of the project."""
        return str(self.manifest["root"])

    @property
    def sources(self) -> dict[str, str]:
        """The memory files this snapshot stands for: source to SHA-256 of its bytes."""
        return dict(self.manifest["sources"])

    @property
    def missing(self) -> int:
        """How many chunks are not embedded."""
        return int(self.manifest["missing"])

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the set of ids."""
        return str(self.manifest["fingerprint"])

    def chunk(self, position: int) -> Chunk:
        """The chunk at `position`."""
        return self._chunk(self._offsets[position], self._offsets[position + 1])

    def chunks(self) -> list[Chunk]:
        """All chunks, in order."""
        return [self._chunk(start, end) for start, end in pairwise(self._offsets)]

    def _chunk(self, start: int, end: int) -> Chunk:
        value = parse_json(bytes(self._data[CHUNKS][start:end]))
        value["citations"] = tuple(value.pop(CHUNK_FIELDS["citations"]))
        return Chunk(**{**value, "turns": tuple(value["turns"])})

    def id(self, position: int) -> str:
        """The full id of the chunk at `position`."""
        return self._ids[position * ID_BYTES : (position + 1) * ID_BYTES].decode("ascii")

    def find(self, prefix: str) -> int:
        """The position of the chunk whose id begins with `prefix`.

        Raises `NotFoundError` or `AmbiguousIdError`.
        """
        wanted = prefix.lower().encode("ascii", "replace")
        found: list[int] = []
        if 0 < len(wanted) <= ID_BYTES:
            starts = range(0, len(self._ids), ID_BYTES)
            found = [n for n, start in enumerate(starts) if self._ids.startswith(wanted, start)]
        if not found:
            raise NotFoundError(f"no chunk of this project has the id {prefix!r}")
        if len(found) > 1:
            shown = ", ".join(
                self.id(n)[: max(SHOWN_ID_CHARACTERS, len(prefix) + 2)] for n in found[:5]
            )
            raise AmbiguousIdError(f"the id {prefix!r} fits {len(found)} chunks: {shown}")
        return found[0]


def open_in_force(directory: Path, open_at: Callable[[Path], Opened]) -> Opened | None:
    """What `open_at` makes of the snapshot in force in `directory`; None if none can be trusted."""
    try:
        return open_trusted(directory, open_at)
    except StaleSnapshotError as error:
        logger.warning("%s; it is made anew", error)
        return None


def open_trusted(directory: Path, open_at: Callable[[Path], Opened]) -> Opened | None:
    """The same, but None only if none is in force. Raises `StaleSnapshotError`, which says why."""
    name = _current(directory)
    while name:
        try:
            return open_at(directory / name)
        except StaleSnapshotError:
            before, name = name, _current(directory)
            if name == before:  # else a writer has put another one in force meanwhile
                raise
    return None


def root_of(directory: Path) -> str:
    """The root of the project whose snapshots lie in `directory`; "" if there is none in force.

    Raises `NoDescriptorsError`.
    """
    name = _current(directory)
    try:
        return str(_read_manifest(directory / name)["root"]) if name else ""
    except (OSError, ValueError, KeyError, StaleSnapshotError) as error:
        raise_if_exhausted(error)
        logger.info("snapshot %s cannot be read: %s", directory, error)
        return ""


def release(data: memoryview) -> None:
    """Let the system take back the memory of a mapped file; what is asked for is read again."""
    if sys.platform != "win32" and isinstance(data.obj, mmap.mmap):
        data.obj.madvise(mmap.MADV_DONTNEED)


def map_file(path: Path) -> memoryview:
    """The bytes of a file, mapped into memory."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:  # cannot be mapped
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _current(directory: Path) -> str:
    try:
        return (directory / "current").read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise_if_exhausted(error)
        return ""


def _read_manifest(path: Path) -> dict[str, Any]:
    checksum, _, data = (path / MANIFEST).read_bytes().partition(b"\n")
    manifest: dict[str, Any] = parse_json(data)
    if int(checksum) != zlib.crc32(data):
        raise ValueError("its manifest is damaged")
    if (manifest["format"], manifest["fields"]) != (FORMAT, list(CHUNK_FIELDS.values())):
        raise ForeignSnapshotError(f"snapshot {path} is of another version of memkit")
    return manifest
