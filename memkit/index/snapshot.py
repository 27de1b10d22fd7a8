"""What searches read: the chunks, their vectors and the BM25 index as files, derived from Chroma.

A search maps these files into memory and needs neither Chroma nor the index lock. A snapshot is
written whole into a directory of its own, then the file `current` is pointed at it; it carries the
hashes of the memory files it stands for, the fingerprint of its ids, and checksums of its own files, so
one that is stale or damaged is noticed and never trusted.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memkit.errors import IndexStoreError, StaleSnapshotError
from memkit.index.chunk import Chunk
from memkit.index.chunk_reader import (
    CHUNK_FIELDS,
    CHUNKS,
    FORMAT,
    ID_BYTES,
    IDS,
    MANIFEST,
    OFFSET_TYPE,
    OFFSETS,
    ChunkReader,
    map_file,
    open_in_force,
)
from memkit.index.columns import Names, make_columns
from memkit.index.lexical import LexicalIndex, fingerprint
from memkit.index.store import Row
from memkit.paths import PRIVATE_FILE, make_private_directory, write_durably

_ARRAYS = ("columns", "vectors", "owners")
_NAMES = "names.json"
_FILES = (*ChunkReader.files, _NAMES, *(f"{name}.npy" for name in _ARRAYS), "lexical/manifest.json")


class Snapshot(ChunkReader):
    """One readable state of a project's index: the chunks, and what a search needs to rank them.

    Arrays are aligned to the chunks: `columns`, see there, and `owners`, which maps each row of
    `vectors` to its chunk: a chunk has one vector a window, or none if it is not embedded.
    """

    files = _FILES

    def __init__(self, path: Path, language: str) -> None:
        """Open the snapshot at `path`. Raises `StaleSnapshotError`."""
        super().__init__(path)
        try:
            self.ids = np.frombuffer(self._ids, f"S{ID_BYTES}")
            self.columns = _load(path, "columns")
            self.vectors = _load(path, "vectors")
            self.owners = _load(path, "owners")
            self.lexical = LexicalIndex.load(str(path / "lexical"), language=language)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StaleSnapshotError(f"snapshot {path} cannot be used: {error}") from error

    @property
    def names(self) -> Names:
        """The names that the numbers of `columns` stand for."""
        names: Names = json.loads(bytes(self._data[_NAMES]))
        return names

    def rows(self) -> list[Row]:
        """Everything, as it stands in the store."""
        vectors: dict[int, list[Any]] = {}
        for vector, owner in zip(self.vectors, self.owners, strict=True):
            vectors.setdefault(int(owner), []).append(vector)
        return [
            Row(self.id(n), chunk, np.asarray(vectors[n]) if n in vectors else None)
            for n, chunk in enumerate(self.chunks())
        ]


def _load(path: Path, name: str) -> Any:
    return np.load(path / f"{name}.npy", mmap_mode="r", allow_pickle=False)


def _to_json(chunk: Chunk) -> bytes:
    # `dataclasses.asdict` copies deeply, which takes five times as long.
    fields = {name: getattr(chunk, name) for name in CHUNK_FIELDS}
    return json.dumps(fields).encode("ascii") + b"\n"


def open_current(directory: Path, language: str) -> Snapshot | None:
    """The snapshot in force in `directory`; None if there is none that can be trusted."""
    return open_in_force(directory, lambda path: Snapshot(path, language))


def write(
    directory: Path,
    rows: Sequence[Row],
    lexical: LexicalIndex,
    sources: dict[str, str],
    dimensions: int,
    root: str,
) -> None:
    """Write a snapshot of `rows` and put it in force; `lexical` holds the same ids.

    `sources` and `root` as the properties of `Snapshot` give them back.

    Raises `IndexStoreError`.
    """
    path = directory / f"{fingerprint(row.id for row in rows)[:12]}-{uuid.uuid4().hex[:8]}"
    try:
        make_private_directory(str(path))
        _write_files(path, sorted(rows, key=_order), lexical, sources, dimensions, root)
        write_durably(str(directory / "current"), path.name.encode("ascii"))
    except OSError as error:
        shutil.rmtree(path, ignore_errors=True)
        raise IndexStoreError(
            f"cannot write the index in {directory}: {error.strerror or error}"
        ) from error
    for other in directory.iterdir():
        if other.is_dir() and other != path:
            shutil.rmtree(other, ignore_errors=True)
        elif other.name.endswith(".tmp"):  # left by a killed writer
            other.unlink(missing_ok=True)


def _order(row: Row) -> tuple[str, int, int, str]:
    return (row.chunk.source, row.chunk.start_line, row.chunk.end_line, row.id)


def _write_files(
    path: Path,
    rows: Sequence[Row],
    lexical: LexicalIndex,
    sources: dict[str, str],
    dimensions: int,
    root: str,
) -> None:
    columns, names = make_columns([row.chunk for row in rows])
    lines = [_to_json(row.chunk) for row in rows]
    embedded = [(n, row.vectors) for n, row in enumerate(rows) if row.vectors is not None]
    vectors = [vectors for _, vectors in embedded]
    counts = [len(vectors) for vectors in vectors]
    arrays = {
        "columns": columns,
        "vectors": np.concatenate(vectors).astype(np.float32)
        if vectors
        else np.zeros((0, dimensions), dtype=np.float32),
        "owners": np.repeat(np.array([n for n, _ in embedded], dtype=np.int32), counts),
    }
    for name, array in arrays.items():
        with _create(path / f"{name}.npy") as file:
            np.save(file, array, allow_pickle=False)
            _sync(file)
    offsets = np.cumsum([0, *map(len, lines)], dtype=OFFSET_TYPE)
    plain = {
        CHUNKS: lines,
        IDS: [row.id.encode("ascii") for row in rows],
        OFFSETS: [offsets.tobytes()],
        _NAMES: [json.dumps(names).encode("ascii")],
    }
    for name, parts in plain.items():
        with _create(path / name) as file:
            file.writelines(parts)
            _sync(file)
    lexical.save(str(path / "lexical"))
    manifest = {
        "format": FORMAT,
        "fields": CHUNK_FIELDS,
        "fingerprint": fingerprint(row.id for row in rows),
        "missing": len(rows) - len(embedded),
        "root": root,
        "sources": sources,
        "checksums": {name: zlib.crc32(map_file(path / name)) for name in _FILES},
    }
    data = json.dumps(manifest).encode("ascii")
    write_durably(str(path / MANIFEST), b"%d\n%s" % (zlib.crc32(data), data))


def _create(path: Path) -> Any:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE), "wb")


def _sync(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())
