"""Write the snapshots that searches read, each whole into its own directory."""

from __future__ import annotations

import json
import shutil
import uuid
import zlib
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from memkit.errors import IndexStoreError
from memkit.files import create_private, make_private_directory, write_durably
from memkit.index.chunk import Chunk
from memkit.index.chunk_reader import (
    CHUNK_FIELDS,
    CHUNKS,
    CURRENT,
    FORMAT,
    IDS,
    MANIFEST,
    OFFSET_TYPE,
    OFFSETS,
    map_file,
)
from memkit.index.lexical import LexicalIndex, fingerprint
from memkit.index.snapshot import DTYPE, NAMED, NAMES, ChunkSegment, Columns, Snapshot
from memkit.index.store import Row


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
            if place.is_file() or (place.is_symlink() and not place.is_dir()):
                place.unlink()
        make_private_directory(str(path))
        missing = _write_files(path, list(_segments(rows, dimensions, old, kept)), dimensions)
        lexical.save(str(path / "lexical"))
        manifest = {
            "format": FORMAT,
            "fields": list(CHUNK_FIELDS.values()),
            "fingerprint": known,
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
    """Remove all snapshots of a collection except `name`, and the leftovers of killed writers."""
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


def _write_files(path: Path, segments: Sequence[ChunkSegment], dimensions: int) -> int:
    """Write all but the BM25 index and the manifest; return the number of chunks not embedded."""
    columns, names = join_columns([segment.columns for segment in segments])
    nothing = np.zeros(0, OFFSET_TYPE)
    lengths = np.concatenate([nothing, *(segment.lengths for segment in segments)])
    windows = np.concatenate([nothing, *(segment.windows for segment in segments)])
    no_vector = np.zeros((0, dimensions), np.float32)
    arrays = {
        "columns": columns,
        "vectors": np.concatenate([no_vector, *(s.vectors for s in segments)], dtype=np.float32),
        "owners": np.repeat(np.arange(len(windows), dtype=np.int32), windows),
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
