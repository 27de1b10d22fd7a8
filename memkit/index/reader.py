"""Read an index: immutable segments of chunks, and a manifest that says which of their chunks count.

The directory of a collection holds the manifest and the segments that it names. A segment is one
file and never changes. A pass writes the chunks of changed memory files into a new one, then replaces
the manifest, then removes the segments that it no longer names. So a reader keeps what it has opened, and
a killed pass leaves the state before it. All of it can be rebuilt.

Segments have checksums. To check 500 MB at each start takes 0.2 s, so the manifest has the stat of each
segment that was checked, or written by the same pass. A segment with another stat is checked again.

This module needs the standard library alone, for commands that show text and rank nothing: importing numpy
and the BM25 index takes 0.14 s of processor time, which is most of the time of such a command.
"""

from __future__ import annotations

import json
import logging
import mmap
import os
import sys
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

from memkit.errors import AmbiguousIdError, NotFoundError, StaleSnapshotError, raise_if_exhausted
from memkit.files import open_regular
from memkit.index.chunk import CHUNK_FIELDS, SHOWN_ID_CHARACTERS, Chunk, digest
from memkit.index.manifest import SUFFIX, Manifest, Stat, name_of, runs_of, stat_of
from memkit.state import parse_json

logger = logging.getLogger(__name__)

CHUNKS = "chunks"
"""The chunks of a segment as JSON lines."""

IDS = "ids"
"""The ids of all chunks, `ID_BYTES` each, without separators."""

ID_BYTES = 64

OFFSETS = "offsets"
"""The start of each chunk in `CHUNKS`, and the end of the last one: `OFFSET_TYPE`, native byte order."""

OFFSET_TYPE: Final = "q"

ALIGNMENT = 64
"""Each section of a segment starts at a multiple of this many bytes."""

FOOTER = "%010d %010d\n"
"""The end of a segment: length and checksum of the JSON object before it, which lists the sections."""

FOOTER_BYTES = len(FOOTER % (0, 0))

_MOST_TRIED = 300_000
"""Places to try for moved text with an old ID, in about half a second."""

_CHECKED_BYTES = 64 * 1024 * 1024
_DECODER = json.JSONDecoder()
_TURNS = '"turns": '

Opened = TypeVar("Opened")

class Section(NamedTuple):
    """A part of a segment: bytes, or an array of this type and shape."""

    start: int
    bytes: int
    checksum: int
    dtype: str = ""
    shape: tuple[int, ...] = ()


class ChunkSegment:
    """The chunks of one segment, in the order (source, start_line), with their ids."""

    checked: ClassVar[tuple[str, ...]] = (CHUNKS, IDS, OFFSETS)
    """The sections that are read, and so must not be damaged."""

    def __init__(self, path: Path, sound: Stat = ()) -> None:
        """Map the segment at `path`. A file with the stat `sound` is not damaged.

        Raise `OSError`, `ValueError`, `KeyError`, `TypeError`.
        """
        self.path = path
        # Kept open: the next writer may remove the file.
        self.stat, self.data = _map(path)
        length, checksum = map(int, bytes(self.data[-FOOTER_BYTES:]).split())
        footer = bytes(self.data[-FOOTER_BYTES - length : -FOOTER_BYTES])
        if zlib.crc32(footer) != checksum:
            raise ValueError(f"{path.name} is damaged")
        self.properties: dict[str, Any] = parse_json(footer)
        if self.properties["name"] != path.stem:
            raise ValueError(f"{path.name} is another segment")
        if self.properties["fields"] != list(CHUNK_FIELDS.values()):
            raise StaleSnapshotError(f"{path} is of another version of memkit")
        self.sections = {
            name: Section(start, size, crc, dtype, tuple(shape))
            for name, (start, size, crc, dtype, shape) in self.properties["sections"].items()
        }
        if self.stat != sound:
            self.check()
        self.ids = self.section(IDS)
        self.offsets = self.section(OFFSETS).cast(OFFSET_TYPE)
        if len(self.ids) != ID_BYTES * len(self):
            raise ValueError(f"{path.name} is damaged")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def check(self) -> None:
        """Read all of it. Raise `ValueError` if it is damaged."""
        for name in self.checked:
            if _checksum(self.section(name)) != self.sections[name].checksum:
                raise ValueError(f"{self.path.name} is damaged")
        self.release()

    @property
    def name(self) -> str:
        """The name by which a manifest lists it."""
        return self.path.stem

    def section(self, name: str) -> memoryview:
        """Return the bytes of a section."""
        found = self.sections[name]
        return self.data[found.start : found.start + found.bytes]

    def text(self, place: int) -> bytes:
        """Return the JSON line of a chunk."""
        return bytes(self.section(CHUNKS)[self.offsets[place] : self.offsets[place + 1]])

    def chunk(self, place: int) -> Chunk:
        """Return a chunk."""
        value = parse_json(self.text(place))
        value["citations"] = tuple(value.pop(CHUNK_FIELDS["citations"]))
        return Chunk(**{**value, "turns": tuple(value["turns"])})

    def id(self, place: int) -> str:
        """Return the full id of a chunk."""
        return str(self.ids[place * ID_BYTES : (place + 1) * ID_BYTES], "ascii")

    def release(self) -> None:
        """Return the memory of the mapped file to the system, for a reader of a very large one."""
        _release(self.data)


class ChunkReader:
    """The chunks of a project as a search sees them, in the order (source, start_line), with their ids."""

    segments: Sequence[ChunkSegment]
    kind: ClassVar[type[ChunkSegment]] = ChunkSegment
    model = ""

    def __init__(self, directory: Path, earlier: ChunkReader | None = None) -> None:
        """Open the current state in `directory`; take open segments from `earlier`.

        Raise `StaleSnapshotError`.
        """
        self.directory = directory
        known = {} if earlier is None else {one.name: one for one in earlier.segments}
        self.manifest = Manifest.read(directory)
        self.entries = self.manifest.entries
        self.runs = runs_of(self.entries)
        self._starts = [run.start for run in self.runs]
        try:
            self.segments = [
                known.get(name) or self.kind(directory / f"{name}{SUFFIX}", stat)
                for name, stat in self.manifest.segments.items()
            ]
            if any(run.last > len(self.segments[run.segment]) for run in self.runs):
                raise ValueError("its segments are too short")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
            raise_if_exhausted(error)
            raise StaleSnapshotError(f"the snapshot in {directory} cannot be used: {error}") from error

    def __len__(self) -> int:
        return self.runs[-1].start + self.runs[-1].last - self.runs[-1].first if self.runs else 0

    def __bool__(self) -> bool:
        return True  # an empty snapshot is still one: only None means that there is none

    @property
    def name(self) -> str:
        """The name of this state. No other one of any directory has it."""
        return self.manifest.name

    def release(self) -> None:
        """Return the memory of the mapped files to the system, for a reader of very large ones."""
        for segment in self.segments:
            segment.release()

    def check(self) -> None:
        """Read all segments, also those that were checked before. Raise `StaleSnapshotError` for damage."""
        try:
            for segment in self.segments:
                segment.check()
        except ValueError as error:
            raise StaleSnapshotError(f"the snapshot in {self.directory} cannot be used: {error}") from error

    def is_current(self) -> bool:
        """Return whether no newer state has replaced this one."""
        return name_of(self.directory) == self.name

    @property
    def root(self) -> str:
        """The root directory of the project."""
        return self.manifest.root

    @property
    def sources(self) -> dict[str, str]:
        """The state of each indexed memory file by source, see `memory_files.state_of`."""
        return self.manifest.sources

    @property
    def missing(self) -> int:
        """The number of chunks that are not embedded."""
        return self.manifest.missing

    @property
    def fingerprint(self) -> str:
        """A digest of the indexed memory files: another one means other chunks."""
        return digest(json.dumps(sorted(self.sources.items())))

    def place(self, position: int) -> tuple[int, int]:
        """Return the number of the chunk's segment, and the place there. Raise `IndexError`."""
        if not 0 <= position < len(self):
            raise IndexError(position)
        run = self.runs[bisect_right(self._starts, position) - 1]
        return run.segment, run.first + position - run.start

    def chunk(self, position: int) -> Chunk:
        """Return the chunk at `position`."""
        number, place = self.place(position)
        return self.segments[number].chunk(place)

    def turns(self, position: int) -> list[str]:
        """Return the turns of the chunk at `position`, ten times as fast as by reading all of it."""
        number, place = self.place(position)
        text = str(self.segments[number].text(place), "ascii")
        # The quotes of the key cannot occur inside a JSON string.
        found: list[str] = _DECODER.raw_decode(text, text.index(_TURNS) + len(_TURNS))[0]
        return found

    def chunks(self) -> list[Chunk]:
        """Return all chunks, in order."""
        return [self.segments[run.segment].chunk(n) for run in self.runs for n in range(run.first, run.last)]

    def stored_chunks(self) -> Iterator[Chunk]:
        """Yield all chunks in the files, also those that no search finds any more."""
        for segment in self.segments:
            yield from map(segment.chunk, range(len(segment)))

    def id(self, position: int) -> str:
        """Return the full id of the chunk at `position`."""
        number, place = self.place(position)
        return self.segments[number].id(place)

    def find(self, prefix: str) -> int:
        """Return a chunk's position by the start of its id. Raise `NotFoundError`, `AmbiguousIdError`."""
        wanted = prefix.lower().encode("ascii", "replace")
        found: list[int] = []
        if 0 < len(wanted) <= ID_BYTES:
            for run in self.runs:
                ids = bytes(self.segments[run.segment].ids[run.first * ID_BYTES : run.last * ID_BYTES])
                starts = range(0, len(ids), ID_BYTES)
                found += [run.start + n for n, at in enumerate(starts) if ids.startswith(wanted, at)]
        if not found:
            hint = "`memkit search` prints IDs, and finds text that has changed since"
            raise NotFoundError(f"nothing in this project has the ID {prefix!r}; {hint}")
        if len(found) > 1:
            shown = ", ".join(self.id(n)[: max(SHOWN_ID_CHARACTERS, len(prefix) + 2)] for n in found[:5])
            raise AmbiguousIdError(f"the ID {prefix!r} matches {len(found)} entries: {shown}")
        return found[0]

    def known(self, prefix: str) -> tuple[str, Chunk]:
        """Return the full ID and the chunk whose ID starts with `prefix`.

        Else return one of the entry with this ID, or text that had this ID on other lines of its file. Raise
        `NotFoundError` or `AmbiguousIdError`.
        """
        try:
            position = self.find(prefix)
        except NotFoundError:
            left = _MOST_TRIED if len(prefix) >= 8 else 0  # no ID is printed shorter
            for position in reversed(range(len(self))):
                chunk = self.chunk(position)
                moves = range(1 - chunk.start_line, 100)
                left -= len(moves)
                was_moved = left > 0 and any(chunk.id(self.model, by).startswith(prefix) for by in moves)
                if chunk.entry_id == prefix or was_moved:
                    return self.id(position), chunk
            raise
        return self.id(position), self.chunk(position)


def open_current(
    directory: Path, open_at: Callable[[Path], Opened], *, strict: bool = False
) -> Opened | None:
    """Open the current state with `open_at`, or return None; if `strict`, raise `StaleSnapshotError`."""
    name = name_of(directory)
    while name:
        try:
            return open_at(directory)
        except StaleSnapshotError as error:
            before, name = name, name_of(directory)
            if name != before:  # a writer has replaced it meanwhile
                continue
            if strict:
                raise
            logger.warning("%s; it is rebuilt", error)
            return None
    return None


def _checksum(data: memoryview) -> int:
    found = 0
    for start in range(0, len(data), _CHECKED_BYTES):
        found = zlib.crc32(data[start : start + _CHECKED_BYTES], found)
        if len(data) > _CHECKED_BYTES:
            _release(data)
    return found


def _release(data: memoryview) -> None:
    if sys.platform != "win32" and isinstance(data.obj, mmap.mmap):
        data.obj.madvise(mmap.MADV_DONTNEED)


def _map(path: Path) -> tuple[Stat, memoryview]:
    with os.fdopen(open_regular(str(path)), "rb") as file:
        stat = stat_of(os.fstat(file.fileno()))
        return stat, memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
