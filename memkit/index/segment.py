"""Segments with all that a search needs: chunks, columns, vectors, and postings. Write and merge them.

A segment holds the chunks of some memory files, in the order (source, start_line). `reader` describes the
file.
"""

from __future__ import annotations

import functools
import json
import os
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memkit.files import create_private
from memkit.index.chunk import CHUNK_FIELDS, Chunk
from memkit.index.lexical import ARRAYS, Arrays, Postings, join_arrays, make_arrays
from memkit.index.lexical import signature as signature_of
from memkit.index.manifest import SUFFIX, Run, Stat
from memkit.index.reader import ALIGNMENT, CHUNKS, FOOTER, ID_BYTES, IDS, OFFSET_TYPE, OFFSETS, ChunkSegment
from memkit.index.store import Row
from memkit.state import parse_json

NAMES = "names"

NAMED = ("session", "kind", "branch", "source", "domain")
"""The columns that hold numbers instead of names: equal numbers mean equal names, -1 means ""."""

DTYPE = np.dtype([*((name, np.int32) for name in ("length", "entry", "day", *NAMED)), ("text", np.int64)])
"""One row per chunk, so that a search need not parse 100,000 chunks to rank them.

`length` is the content's in characters. `entry` numbers the turns; any other chunk is its own entry.
`day` is the proleptic ordinal of the date, 0 without one. `text` is `Chunk.text_number`.
"""

ROWS_AT_ONCE = 4
"""The number of vectors is padded with zeros to a multiple of this.

OpenBLAS multiplies four rows at once, and those that are left over in another order of additions. Without a
rest, a vector has the same cosine in every segment, to the bit.
"""

Names = dict[str, list[str]]
"""For each column of `NAMED`, the names by number."""

Columns = tuple[NDArray[Any], Names]
"""An array of `DTYPE`, and the names of its numbers."""

_OWN_ARRAYS = ("columns", "vectors", "owners")


class Segment(ChunkSegment):
    """One segment with its arrays, all mapped.

    `columns` is aligned to the chunks. `owners` maps each row of `vectors` to its chunk: a chunk has one
    vector per window, or none if it is not embedded. `signature` is that of its postings, see
    `lexical.signature`.
    """

    checked = (*ChunkSegment.checked, NAMES, *_OWN_ARRAYS, *ARRAYS)

    def __init__(self, path: Path, sound: Stat = ()) -> None:
        """Map the segment at `path`, see `ChunkSegment`."""
        super().__init__(path, sound)
        arrays = {name: self._array(name) for name in (*_OWN_ARRAYS, *ARRAYS)}
        self.columns = arrays["columns"]
        self.owners = arrays["owners"]
        self._padded = arrays["vectors"]
        self.vectors: NDArray[np.float32] = self._padded[: len(self.owners)]
        self.arrays: Arrays = {name: arrays[name] for name in ARRAYS}
        self.postings = Postings(self.arrays)
        self.signature = str(self.properties["lexical"])
        self.names: Names = parse_json(bytes(self.section(NAMES)))
        if {len(self.columns), len(arrays["lengths"])} != {len(self)}:
            raise ValueError(f"{path.name} is damaged")

    def similarities(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the inner product of each vector with `vector`."""
        found: NDArray[np.float32] = (self._padded @ vector)[: len(self.owners)]
        return found

    def vector_bounds(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first row in `vectors` of each place."""
        return np.searchsorted(self.owners, places)

    def vectors_of(self, place: int) -> NDArray[np.float32]:
        """Return the vectors of the chunk at `place`: (windows, dimensions)."""
        first, last = self.vector_bounds(np.array([place, place + 1])).tolist()
        return self.vectors[first:last]

    @functools.cached_property
    def by_text(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The text numbers of all embedded chunks, sorted, and the place of each."""
        places = np.unique(self.owners).astype(np.int64)
        numbers = self.columns["text"][places]
        order = np.argsort(numbers, kind="stable")
        return numbers[order], places[order]

    def _array(self, name: str) -> Any:
        section = self.sections[name]
        dtype = DTYPE if section.dtype == "columns" else np.dtype(section.dtype)
        kinds = {"columns": "V", "vectors": "f"}.get(name, "iu")
        if dtype.kind not in kinds or dtype.hasobject:
            raise ValueError(f"{self.path.name} has {name} of another type")
        return np.frombuffer(self.section(name), dtype).reshape(section.shape)


def write_rows(
    directory: Path, rows: Sequence[Row], dimensions: int, language: str,
    known: Mapping[str, tuple[Segment, int]],
) -> str:  # fmt: skip
    """Write a segment of sorted `rows`, whose vectors have `dimensions`; return its name. Raise `OSError`.

    `known` says by id which chunks have the same terms as a chunk of another segment, and its place there:
    those are not tokenized again.
    """
    lines = [_to_json(row.chunk) for row in rows]
    vectors = [row.vectors for row in rows if row.vectors is not None]
    return _write(
        directory, lines, np.array([len(line) for line in lines], np.int64),
        [row.id.encode("ascii") for row in rows], make_columns([row.chunk for row in rows]), vectors,
        np.array([0 if row.vectors is None else len(row.vectors) for row in rows], np.int64),
        dimensions, _postings(rows, language, known), signature_of(language),
    )


def _postings(rows: Sequence[Row], language: str, known: Mapping[str, tuple[Segment, int]]) -> Arrays:
    new = [slot for slot, row in enumerate(rows) if row.id not in known]
    arrays = make_arrays((rows[slot].chunk.lexical_text for slot in new), language)
    if len(new) == len(rows):
        return arrays
    parts = [(arrays, np.array(new, np.int32))]
    places: dict[str, tuple[Segment, NDArray[np.int32]]] = {}
    for slot, row in enumerate(rows):
        if row.id in known:
            segment, place = known[row.id]
            if segment.name not in places:
                places[segment.name] = (segment, np.full(len(segment), -1, np.int32))
            places[segment.name][1][place] = slot
    parts += [(segment.arrays, own) for segment, own in places.values()]
    return join_arrays(parts)


def write_merged(directory: Path, segments: Sequence[Segment], runs: Sequence[Run]) -> str:
    """Write a segment of these `runs` of `segments`, in order; return its name. Raise `OSError`.

    Chunks are copied as bytes, in 1 µs each. Parsing and writing them takes 30 µs.
    """
    lines, lengths, ids, columns, vectors, windows = [], [], [], [], [], []
    places = {run.segment: np.full(len(segments[run.segment]), -1, np.int32) for run in runs}
    start = 0
    for run in runs:
        segment = segments[run.segment]
        offsets = np.asarray(segment.offsets[run.first : run.last + 1])
        bounds = segment.vector_bounds(np.arange(run.first, run.last + 1))
        lines.append(segment.section(CHUNKS)[offsets[0] : offsets[-1]])
        lengths.append(np.diff(offsets))
        ids.append(segment.ids[run.first * ID_BYTES : run.last * ID_BYTES])
        columns.append((segment.columns[run.first : run.last], segment.names))
        vectors.append(segment.vectors[bounds[0] : bounds[-1]])
        windows.append(np.diff(bounds))
        size = run.last - run.first
        places[run.segment][run.first : run.last] = np.arange(start, start + size)
        start += size
    held = [one.shape[1] for one in vectors if len(one)]
    return _write(
        directory, lines, np.concatenate(lengths), ids, join_columns(columns), vectors,
        np.concatenate(windows), held[0] if held else vectors[0].shape[1],
        join_arrays([(segments[number].arrays, own) for number, own in places.items()]),
        segments[runs[0].segment].signature,
    )


def _write(
    directory: Path, lines: Sequence[bytes | memoryview], lengths: NDArray[np.int64],
    ids: Sequence[bytes | memoryview], columns: Columns, vectors: Sequence[NDArray[np.float32]],
    windows: NDArray[np.int64], dimensions: int, postings: Arrays, signature: str,
) -> str:  # fmt: skip
    """Write a segment; return its name. `lengths` are bytes of lines, `windows` vectors of chunks."""
    name = uuid.uuid4().hex
    count = int(windows.sum())
    padding = np.zeros((-count % ROWS_AT_ONCE, dimensions), np.float32)
    owners = np.repeat(np.arange(len(windows), dtype=np.int32), windows)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(OFFSET_TYPE)
    rows, names = columns
    parts: list[tuple[str, Sequence[Any], str, tuple[int, ...]]] = [
        (CHUNKS, lines, "", ()),
        (IDS, ids, "", ()),
        (OFFSETS, [offsets], "", ()),
        (NAMES, [json.dumps(names).encode("ascii")], "", ()),
        ("columns", [rows], "columns", rows.shape),
        ("vectors", [*vectors, padding], "<f4", (count + len(padding), dimensions)),
        ("owners", [owners], owners.dtype.str, owners.shape),
        *((one, [postings[one]], postings[one].dtype.str, postings[one].shape) for one in ARRAYS),
    ]
    properties = {"name": name, "fields": list(CHUNK_FIELDS.values()), "lexical": signature}
    path = directory / f"{name}{SUFFIX}"
    try:
        _write_sections(path, parts, properties)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return name


def _write_sections(
    path: Path, parts: Sequence[tuple[str, Sequence[Any], str, tuple[int, ...]]], properties: dict[str, Any]
) -> None:
    sections: dict[str, tuple[int, int, int, str, tuple[int, ...]]] = {}
    with create_private(str(path)) as file:
        for name, buffers, dtype, shape in parts:
            file.write(bytes(-file.tell() % ALIGNMENT))
            start, checksum = file.tell(), 0
            for data in _bytes_of(buffers):
                checksum = zlib.crc32(data, checksum)
                file.write(data)
            sections[name] = (start, file.tell() - start, checksum, dtype, shape)
        footer = json.dumps({**properties, "sections": sections}).encode("ascii")
        file.write(footer)
        file.write((FOOTER % (len(footer), zlib.crc32(footer))).encode("ascii"))
        file.flush()
        os.fsync(file.fileno())  # the manifest will record it as checked


def _bytes_of(buffers: Sequence[Any]) -> Iterator[Any]:
    for one in buffers:
        if isinstance(one, np.ndarray):
            if one.size:
                yield np.ascontiguousarray(one).reshape(-1).view(np.uint8).data
        elif len(one):
            yield one


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
        entry = entries.setdefault(turn if chunk.kind == "turn" else number, len(entries))
        day = date.fromisoformat(chunk.date).toordinal() if chunk.date else 0
        named = (codes[name].setdefault(getattr(chunk, name), len(codes[name]) - 1) for name in NAMED)
        rows.append((len(chunk.content), entry, day, *named, chunk.text_number))
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
            own[name] = _renumbered(own[name], names[name], known)
    return columns, {name: list(known) for name, known in codes.items()}


def _renumbered(numbers: NDArray[np.int32], names: Sequence[str], known: dict[str, int]) -> NDArray[np.int32]:
    first = np.full(len(names) + 1, len(numbers))
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]  # of several, the last assignment stays
    used = np.flatnonzero(first[:-1] < len(numbers))
    new = np.full(len(names) + 1, -1, np.int32)  # the last one is the empty name
    for number in used[np.argsort(first[used], kind="stable")].tolist():
        new[number] = known.setdefault(names[number], len(known))
    return new[numbers]
