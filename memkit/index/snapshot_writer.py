"""Writes the snapshots that searches read, each whole into a directory of its own."""

from __future__ import annotations

import json
import shutil
import uuid
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from memkit.errors import IndexStoreError
from memkit.files import create_private, make_private_directory, write_durably
from memkit.index.chunk_reader import (
    CHUNK_FIELDS,
    CHUNKS,
    FORMAT,
    IDS,
    MANIFEST,
    OFFSET_TYPE,
    OFFSETS,
    map_file,
)
from memkit.index.columns import join
from memkit.index.lexical import LexicalIndex, fingerprint
from memkit.index.segment import ChunkSegment, segment_of
from memkit.index.snapshot import NAMES, Snapshot
from memkit.index.store import Row


@dataclass(frozen=True, slots=True)
class Kept:
    """The sources of `snapshot` whose chunks go over as they are."""

    snapshot: Snapshot
    sources: frozenset[str]

    @classmethod
    def unchanged(cls, snapshot: Snapshot, state: dict[str, str]) -> Kept:
        """The sources that are as `state` says, and whose chunks are all embedded."""
        known = snapshot.sources
        same = {source for source, found in state.items() if known.get(source) == found}
        waiting = np.ones(len(snapshot), bool)
        waiting[snapshot.owners] = False
        for source, (start, stop) in snapshot.ranges.items() if snapshot.missing else ():
            if waiting[start:stop].any():
                same.discard(source)
        return cls(snapshot, frozenset(same))

    @property
    def chunks(self) -> int:
        """How many chunks are kept."""
        ranges = self.snapshot.ranges
        return sum(ranges[name][1] - ranges[name][0] for name in self.sources & ranges.keys())

    def other_rows(self) -> Iterator[Row]:
        """The chunks of the other sources."""
        for source, (start, stop) in self.snapshot.ranges.items():
            if source not in self.sources:
                yield from self.snapshot.rows(start, stop)


@dataclass(frozen=True, slots=True)
class _Run:
    """Chunks that follow each other: places of the kept snapshot, or rows."""

    start: int
    stop: int
    rows: list[Row]


def write(
    directory: Path,
    rows: Sequence[Row],
    lexical: LexicalIndex,
    sources: dict[str, str],
    dimensions: int,
    root: str,
    kept: Kept | None = None,
) -> None:
    """Write a snapshot of `rows` and of what is `kept`, and put it in force.

    No source is in both. `lexical` holds the same ids; `sources` and `root` are as the properties of
    `Snapshot` give them back; `dimensions` is the length of the vectors.

    Nothing but the file that puts it in force is forced to the disk: a power cut that damages the rest
    is noticed by the checksums, and all of it can be made anew. Raises `IndexStoreError`.
    """
    known = fingerprint(lexical.ids)
    path = directory / f"{known[:12]}-{uuid.uuid4().hex[:8]}"
    try:
        # All of this is derived: a file in the place of a directory is in the way, and nobody's.
        for place in (directory.parent, directory):
            if place.is_file() or (place.is_symlink() and not place.is_dir()):
                place.unlink()
        make_private_directory(str(path))
        segments = [
            segment_of(run.rows, dimensions)
            if kept is None or run.rows
            else kept.snapshot.segment(run.start, run.stop)
            for run in _runs(rows, kept)
        ]
        missing = _write_files(path, segments, dimensions)
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
        write_durably(str(directory / "current"), path.name.encode("ascii"))
    except OSError as error:
        shutil.rmtree(path, ignore_errors=True)
        raise IndexStoreError(
            f"cannot write the index in {directory}: {error.strerror or error}"
        ) from error
    remove_others(directory, path.name)


def remove_others(directory: Path, name: str) -> None:
    """Remove all snapshots of a collection but `name`, and what killed writers left."""
    for other in directory.iterdir():
        if other.is_dir() and other.name != name:
            shutil.rmtree(other, ignore_errors=True)
        elif other.name.endswith(".tmp"):
            other.unlink(missing_ok=True)


def _runs(rows: Sequence[Row], kept: Kept | None) -> list[_Run]:
    """All chunks in the order (source, start_line); what stood together in the old snapshot is one run."""
    found: list[tuple[str, _Run]] = []
    for source, own in groupby(sorted(rows, key=_order), key=lambda row: row.chunk.source):
        found.append((source, _Run(0, 0, list(own))))
    if kept is not None:
        ranges = kept.snapshot.ranges
        for source in kept.sources & ranges.keys():
            start, stop = ranges[source]
            found.append((source, _Run(start, stop, [])))
    return list(_joined(run for _, run in sorted(found, key=lambda pair: pair[0])))


def _joined(runs: Iterator[_Run]) -> Iterator[_Run]:
    """The same with neighbours joined, where both are rows, or one goes on where the other ends."""
    last: _Run | None = None
    for run in runs:
        if last is None:
            last = run
        elif run.rows and last.rows:
            last = _Run(0, 0, last.rows + run.rows)
        elif not run.rows and not last.rows and last.stop == run.start:
            last = _Run(last.start, run.stop, [])
        else:
            yield last
            last = run
    if last is not None:
        yield last


def _order(row: Row) -> tuple[str, int, int, str]:
    return (row.chunk.source, row.chunk.start_line, row.chunk.end_line, row.id)


def _write_files(path: Path, segments: Sequence[ChunkSegment], dimensions: int) -> int:
    """Write all but the BM25 index and the manifest; return how many chunks are not embedded."""
    columns, names = join([segment.columns for segment in segments])
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
