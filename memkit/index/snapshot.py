"""The files that searches read: chunks, vectors, and the BM25 index, derived from Chroma.

A search maps these files into memory and needs neither Chroma nor the index lock. A snapshot is written
whole into its own directory, then the file `current` names it. It carries the
hashes of the memory files, the fingerprint of its ids, and checksums of its files, so a stale or damaged
snapshot is noticed and never used.
"""

from __future__ import annotations

import functools
import io
import json
import shutil
import uuid
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memkit.errors import IndexStoreError, StaleSnapshotError, raise_if_exhausted
from memkit.files import create_private, make_private_directory, write_durably
from memkit.index.chunk import (
    CHUNK_FIELDS,
    CHUNKS,
    CURRENT,
    FORMAT,
    ID_BYTES,
    IDS,
    MANIFEST,
    OFFSET_TYPE,
    OFFSETS,
    Chunk,
    ChunkReader,
    map_file,
)
from memkit.index.damage import remove_path
from memkit.index.lexical import ARRAYS, LexicalIndex, fingerprint
from memkit.index.store import Row
from memkit.state import parse_json

NAMES = "names.json"
HEADER_BYTES = 1024
"""An upper bound for the header of our `.npy` files."""

NAMED = ("session", "kind", "branch", "source", "domain")
"""The columns that hold numbers instead of names: equal numbers mean equal names, -1 means ""."""

DTYPE = np.dtype(
    [*((name, np.int32) for name in ("length", "entry", "day", *NAMED)), ("text", np.int64)]
)
"""One row per chunk, so that a search need not parse 100,000 chunks to rank them.

`length` is the content's in characters. `entry` numbers the turns; any other chunk is its own entry.
`day` is the proleptic ordinal of the date, 0 without one. `text` is `Chunk.text_number`.
"""

Names = dict[str, list[str]]
"""For each column of `NAMED`, the names by number."""

Columns = tuple[NDArray[Any], Names]
"""An array of `DTYPE`, and the names of its numbers."""

_ARRAYS = ("columns", "vectors", "owners", *ARRAYS)


@dataclass(frozen=True, slots=True)
class ChunkSegment:
    """Neighboring chunks as files hold them. `lengths`, `windows`, and the columns are aligned to them.

    Unchanged chunks go from one snapshot into the next as bytes, in 1 µs per chunk. Parsing and writing
    them again takes 30 µs.
    `lines` are the chunks as JSON lines, `lengths` the bytes of each; `ids` have no separators;
    `vectors` (sum of windows, dimensions) are those of the windows, `windows` the number per chunk.
    """

    lines: bytes | memoryview
    lengths: NDArray[np.int64]
    ids: bytes | memoryview
    columns: Columns
    vectors: NDArray[np.float32]
    windows: NDArray[np.int64]


def _sorted_ids(ids: NDArray[np.bytes_]) -> list[str]:
    joined = np.sort(ids).tobytes().decode("ascii")
    return [joined[start : start + ID_BYTES] for start in range(0, len(joined), ID_BYTES)]


class Snapshot(ChunkReader):
    """One readable state of a project's index: the chunks, and the arrays to rank them.

    `columns` is aligned to the chunks. `owners` maps each row of `vectors` to its chunk: a chunk has one
    vector per window, or none if it is not embedded.
    """

    files = (*ChunkReader.files, NAMES, *(f"{name}.npy" for name in _ARRAYS))

    def __init__(self, path: Path, language: str) -> None:
        """Open the snapshot at `path`. Raise `StaleSnapshotError`."""
        super().__init__(path)
        try:
            arrays = {name: _array(self._data[f"{name}.npy"]) for name in _ARRAYS}
            self.ids = np.frombuffer(self._ids, f"S{ID_BYTES}")
            self.columns = arrays["columns"]
            if self.columns.dtype != DTYPE:
                raise ValueError("its columns are of another version")
            self.vectors = arrays["vectors"]
            self.owners = arrays["owners"]
            # Not a method: a cycle of references would keep the files of old snapshots open.
            self.lexical = LexicalIndex(language, functools.partial(_sorted_ids, self.ids), arrays)
            if self.manifest["lexical"] != self.lexical.signature:
                raise ValueError("its terms are of another version or language")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise_if_exhausted(error)
            raise StaleSnapshotError(f"snapshot {path} cannot be used: {error}") from error

    @property
    def names(self) -> Names:
        """The names of the numbers in `columns`."""
        names: Names = parse_json(bytes(self._data[NAMES]))
        return names

    @functools.cached_property
    def ranges(self) -> dict[str, tuple[int, int]]:
        """The positions of each source's chunks: the first, and one past the last."""
        numbers = self.columns["source"]
        starts = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
        names = self.names["source"]
        ends = [*starts[1:], len(numbers)]
        return {
            names[numbers[start]]: (start, end) for start, end in zip(starts, ends, strict=False)
        }

    def unchanged(self, state: dict[str, str]) -> frozenset[str]:
        """Return the sources with the same value in `state` whose chunks are all embedded."""
        known = self.sources
        same = {source for source, found in state.items() if known.get(source) == found}
        waiting = np.ones(len(self), bool)
        waiting[self.owners] = False
        for source, (start, stop) in self.ranges.items() if self.missing else ():
            if waiting[start:stop].any():
                same.discard(source)
        return frozenset(same)

    def rows_outside(self, sources: frozenset[str]) -> Iterator[Row]:
        """Yield the chunks of all sources not in `sources`, as rows of the store."""
        for source, (start, stop) in self.ranges.items():
            if source not in sources:
                yield from self.rows(start, stop)

    def rows(self, start: int = 0, stop: int | None = None) -> list[Row]:
        """Return the chunks from `start` to before `stop`, by default all, as rows of the store."""
        places = range(len(self))[start:stop]
        bounds = self._vector_bounds(np.arange(places.start, places.stop + 1)).tolist()
        return [
            Row(self.id(n), self.chunk(n), self.vectors[begin:end] if begin < end else None)
            for n, begin, end in zip(places, bounds, bounds[1:], strict=False)
        ]

    def segment(self, start: int, stop: int) -> ChunkSegment:
        """Return the chunks from `start` to before `stop` for the next snapshot."""
        bounds = self._vector_bounds(np.arange(start, stop + 1))
        offsets = np.asarray(self._offsets[start : stop + 1])
        return ChunkSegment(
            lines=self._data[CHUNKS][offsets[0] : offsets[-1]],
            lengths=np.diff(offsets),
            ids=self._data[IDS][start * ID_BYTES : stop * ID_BYTES],
            columns=(self.columns[start:stop], self.names),
            vectors=self.vectors[bounds[0] : bounds[-1]],
            windows=np.diff(bounds),
        )

    def vectors_of_text(self, number: int) -> NDArray[np.float32] | None:
        """Return the vectors of an embedded chunk with this `text_number`, or None."""
        numbers, places = self._by_text
        first = int(np.searchsorted(numbers, number))
        if first == len(numbers) or numbers[first] != number:
            return None
        place = int(places[first])
        begin, end = self._vector_bounds(np.array([place, place + 1])).tolist()
        found: NDArray[np.float32] = self.vectors[begin:end]
        return found

    @functools.cached_property
    def _by_text(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The text numbers of all embedded chunks, sorted, and the position of each."""
        places = np.unique(self.owners).astype(np.int64)
        numbers = self.columns["text"][places]
        order = np.argsort(numbers, kind="stable")
        return numbers[order], places[order]

    def _vector_bounds(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first row in `vectors` of each position."""
        return np.searchsorted(self.owners, places)


def _array(data: memoryview) -> Any:
    """Return the array of a mapped `.npy` file; `np.load` would map it a second time."""
    header = io.BytesIO(data[:HEADER_BYTES])
    np.lib.format.read_magic(header)
    shape, _, dtype = np.lib.format.read_array_header_1_0(header)
    return np.frombuffer(data, dtype, offset=header.tell()).reshape(shape)


def write_snapshot(
    directory: Path,
    rows: Sequence[Row],
    lexical: LexicalIndex,
    sources: dict[str, str],
    dimensions: int,
    root: str,
    old: Snapshot | None = None,
    kept: frozenset[str] = frozenset(),
) -> None:
    """Write a snapshot of `rows` and of the chunks of the `kept` sources of `old`; make it the current one.

    No source is in both. `lexical` holds the same ids; `sources` and `root` are the properties of
    `Snapshot`; `dimensions` is the length of the vectors.

    Only the file `current` is synced to disk. The checksums reveal what a power cut damages, and all of it
    can be rebuilt. Raise `IndexStoreError`.
    """
    known = fingerprint(lexical.ids)
    path = directory / f"{known[:12]}-{uuid.uuid4().hex[:8]}"
    try:
        # All of this is derived: a file in the place of a directory can go.
        for place in (directory.parent, directory):
            if not place.is_dir():
                remove_path(place)
        make_private_directory(str(path))
        segments = list(_segments(rows, dimensions, old, kept))
        missing = _write_files(path, segments, dimensions, lexical)
        manifest = {
            "format": FORMAT,
            "fields": list(CHUNK_FIELDS.values()),
            "fingerprint": known,
            "lexical": lexical.signature,
            "missing": missing,
            "root": root,
            "sources": sources,
            "checksums": {name: zlib.crc32(map_file(path / name)) for name in Snapshot.files},
        }
        data = json.dumps(manifest).encode("ascii")
        with create_private(str(path / MANIFEST)) as file:
            file.write(b"%d\n%s" % (zlib.crc32(data), data))
        write_durably(str(directory / CURRENT), path.name.encode("ascii"))
    except OSError as error:
        shutil.rmtree(path, ignore_errors=True)
        raise IndexStoreError(
            f"cannot write the index in {directory}: {error.strerror or error}"
        ) from error
    remove_others(directory, path.name)


def remove_others(directory: Path, name: str) -> None:
    """Remove all snapshots of a collection except `name`, and what killed writers left."""
    for other in directory.iterdir():
        if other.is_dir() and other.name != name:
            shutil.rmtree(other, ignore_errors=True)
        elif other.name.endswith(".tmp"):
            other.unlink(missing_ok=True)


def _segments(
    rows: Sequence[Row], dimensions: int, old: Snapshot | None, kept: frozenset[str]
) -> Iterator[ChunkSegment]:
    """Yield all chunks in the order (source, start_line), neighbors in the old snapshot as one segment."""
    ordered = sorted(rows, key=_order)
    changed = {source: list(own) for source, own in groupby(ordered, lambda row: row.chunk.source)}
    ranges = {} if old is None else old.ranges
    waiting: list[Row] = []
    start = stop = 0
    for source in sorted(changed.keys() | (kept & ranges.keys())):
        first, last = ranges[source] if source not in changed else (0, 0)
        if old is not None and start < stop and first != stop:
            yield old.segment(start, stop)
            start = stop = 0
        if source in changed:
            waiting += changed[source]
            continue
        if waiting:
            yield make_segment(waiting, dimensions)
            waiting = []
        start, stop = (start if start < stop else first), last
    if old is not None and start < stop:
        yield old.segment(start, stop)
    if waiting:
        yield make_segment(waiting, dimensions)


def _order(row: Row) -> tuple[str, int, int, str]:
    return (row.chunk.source, row.chunk.start_line, row.chunk.end_line, row.id)


def _write_files(
    path: Path, segments: Sequence[ChunkSegment], dimensions: int, lexical: LexicalIndex
) -> int:
    """Write all files but the manifest; return the number of chunks not embedded."""
    columns, names = join_columns([segment.columns for segment in segments])
    nothing = np.zeros(0, OFFSET_TYPE)
    lengths = np.concatenate([nothing, *(segment.lengths for segment in segments)])
    windows = np.concatenate([nothing, *(segment.windows for segment in segments)])
    no_vector = np.zeros((0, dimensions), np.float32)
    arrays = {
        "columns": columns,
        "vectors": np.concatenate([no_vector, *(s.vectors for s in segments)], dtype=np.float32),
        "owners": np.repeat(np.arange(len(windows), dtype=np.int32), windows),
        **{name: lexical.arrays[name] for name in ARRAYS},
    }
    for name, array in arrays.items():
        with create_private(str(path / f"{name}.npy")) as file:
            np.save(file, array, allow_pickle=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(OFFSET_TYPE)
    plain: dict[str, list[bytes | memoryview]] = {
        CHUNKS: [segment.lines for segment in segments],
        IDS: [segment.ids for segment in segments],
        OFFSETS: [offsets.tobytes()],
        NAMES: [json.dumps(names).encode("ascii")],
    }
    for name, parts in plain.items():
        with create_private(str(path / name)) as file:
            file.writelines(parts)
    return int(np.count_nonzero(windows == 0))


def make_segment(rows: Sequence[Row], dimensions: int) -> ChunkSegment:
    """Return the segment of `rows`, whose vectors have `dimensions`."""
    lines = [_to_json(row.chunk) for row in rows]
    vectors = [row.vectors for row in rows if row.vectors is not None]
    return ChunkSegment(
        lines=b"".join(lines),
        lengths=np.array([len(line) for line in lines], OFFSET_TYPE),
        ids=b"".join(row.id.encode("ascii") for row in rows),
        columns=make_columns([row.chunk for row in rows]),
        vectors=np.concatenate([np.zeros((0, dimensions), np.float32), *vectors]),
        windows=np.array([0 if row.vectors is None else len(row.vectors) for row in rows], int),
    )


def _to_json(chunk: Chunk) -> bytes:
    # `dataclasses.asdict` copies deeply, which takes five times as long.
    fields: dict[str, Any] = {stored: getattr(chunk, name) for name, stored in CHUNK_FIELDS.items()}
    return json.dumps(fields).encode("ascii") + b"\n"


def make_columns(chunks: Sequence[Chunk]) -> Columns:
    """Return the columns of `chunks`, in order; names and entries are numbered as they occur."""
    codes: dict[str, dict[str, int]] = {name: {"": -1} for name in NAMED}
    entries: dict[object, int] = {}
    rows = []
    for number, chunk in enumerate(chunks):
        turn = (chunk.source, chunk.session, chunk.turns)
        entry: object = turn if chunk.kind == "turn" else number
        named = (
            codes[name].setdefault(getattr(chunk, name), len(codes[name]) - 1) for name in NAMED
        )
        rows.append(
            (
                len(chunk.content),
                entries.setdefault(entry, len(entries)),
                date.fromisoformat(chunk.date).toordinal() if chunk.date else 0,
                *named,
                chunk.text_number,
            )
        )
    names = {name: list(known)[1:] for name, known in codes.items()}
    return np.array(rows, dtype=DTYPE), names


def join_columns(parts: Sequence[Columns]) -> Columns:
    """Concatenate columns, numbered as if they had been made at once.

    No entry may span two parts. A part may be a slice of an array with the names of all of it; unused
    names are dropped.
    """
    columns = np.concatenate([np.zeros(0, DTYPE), *(rows for rows, _ in parts)])
    codes: dict[str, dict[str, int]] = {name: {} for name in NAMED}
    begin = entries = 0
    for rows, names in parts:
        own = columns[begin : begin + len(rows)]
        begin += len(rows)
        if not len(own):
            continue
        own["entry"] += entries - own["entry"].min()
        entries = int(own["entry"].max()) + 1
        for name, known in codes.items():
            used, first = np.unique(own[name], return_index=True)
            numbers = np.full(len(names[name]) + 1, -1, np.int32)  # the last one is the empty name
            for number in used[np.argsort(first)].tolist():
                if number >= 0:
                    numbers[number] = known.setdefault(names[name][number], len(known))
            own[name] = numbers[own[name]]
    return columns, {name: list(known) for name, known in codes.items()}
