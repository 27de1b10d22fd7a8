"""What searches read: the chunks, their vectors and the BM25 index as files, derived from Chroma.

A search maps these files into memory and needs neither Chroma nor the index lock. A snapshot is
written whole into a directory of its own, then the file `current` is pointed at it; it carries the
hashes of the memory files it stands for, the fingerprint of its ids, and checksums of its own files, so
one that is stale or damaged is noticed and never trusted.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import shutil
import uuid
import zlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from memkit.errors import AmbiguousIdError, IndexStoreError, NotFoundError
from memkit.index.chunk import Chunk
from memkit.index.columns import Names, make_columns
from memkit.index.lexical import LexicalIndex, StaleSnapshotError, fingerprint
from memkit.index.store import Row
from memkit.paths import PRIVATE_FILE, make_private_directory, write_durably

logger = logging.getLogger(__name__)

FORMAT = 4
SHOWN_ID_CHARACTERS = 12
"""How much of an id people see; any unique prefix is accepted, like git's."""

_ARRAYS = ("ids", "columns", "offsets", "vectors", "owners")
_CHUNKS = "chunks.jsonl"
_CHUNK_FIELDS = tuple(field.name for field in dataclasses.fields(Chunk))
_NAMES = "names.json"
_FILES = (_CHUNKS, _NAMES, *(f"{name}.npy" for name in _ARRAYS), "lexical/manifest.json")


class Snapshot:
    """One readable state of a project's index.

    Arrays are aligned to the chunks, which stand in the order (source, start_line): `columns`, see
    there, and `owners`, which maps each row of `vectors` to its chunk: a chunk has one vector a
    window, or none if it is not embedded.
    """

    def __init__(self, path: Path, language: str) -> None:
        """Open the snapshot at `path`. Raises `StaleSnapshotError`."""
        self.path = path
        try:
            self.manifest = _read_manifest(path)
            files = {name: _map(path / name) for name in _FILES}
            if self.manifest["checksums"] != {n: zlib.crc32(data) for n, data in files.items()}:
                raise ValueError("its files are damaged")
            # Kept open: the next writer removes the files of this snapshot.
            self._lines = files[_CHUNKS]
            self.ids = _load(path, "ids")
            self.columns = _load(path, "columns")
            self._names = files[_NAMES]
            self.vectors = _load(path, "vectors")
            self.owners = _load(path, "owners")
            self._offsets = _load(path, "offsets")
            self.lexical = LexicalIndex.load(str(path / "lexical"), language=language)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StaleSnapshotError(f"snapshot {path} cannot be used: {error}") from error

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def names(self) -> Names:
        """The names that the numbers of `columns` stand for."""
        names: Names = json.loads(bytes(self._names))
        return names

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
        start, end = int(self._offsets[position]), int(self._offsets[position + 1])
        return _from_json(self._lines[start:end])

    def chunks(self) -> list[Chunk]:
        """All chunks, in order."""
        bounds = [int(offset) for offset in self._offsets]
        return [_from_json(self._lines[a:b]) for a, b in pairwise(bounds)]

    def id(self, position: int) -> str:
        """The full id of the chunk at `position`."""
        return str(self.ids[position].decode("ascii"))

    def find(self, prefix: str) -> int:
        """The position of the chunk whose id begins with `prefix`.

        Raises `NotFoundError` or `AmbiguousIdError`.
        """
        wanted = prefix.lower().encode("ascii", "replace")
        found: list[int] = []
        if len(self.ids) and wanted:
            found = np.flatnonzero(np.char.startswith(self.ids, wanted)).tolist()
        if not found:
            raise NotFoundError(f"no chunk of this project has the id {prefix!r}")
        if len(found) > 1:
            shown = ", ".join(
                self.id(n)[: max(SHOWN_ID_CHARACTERS, len(prefix) + 2)] for n in found[:5]
            )
            raise AmbiguousIdError(f"the id {prefix!r} fits {len(found)} chunks: {shown}")
        return found[0]

    def rows(self) -> list[Row]:
        """Everything, as it stands in the store."""
        vectors: dict[int, list[Any]] = {}
        for vector, owner in zip(self.vectors, self.owners, strict=True):
            vectors.setdefault(int(owner), []).append(vector)
        return [
            Row(self.id(n), chunk, np.asarray(vectors[n]) if n in vectors else None)
            for n, chunk in enumerate(self.chunks())
        ]


def _read_manifest(path: Path) -> dict[str, Any]:
    checksum, _, data = (path / "manifest").read_bytes().partition(b"\n")
    manifest: dict[str, Any] = json.loads(data)
    is_ours = (manifest["format"], manifest["fields"]) == (FORMAT, list(_CHUNK_FIELDS))
    if int(checksum) != zlib.crc32(data) or not is_ours:
        raise ValueError("its manifest is damaged or of another version")
    return manifest


def _map(path: Path) -> memoryview:
    """The bytes of a file, mapped into memory."""
    if path.stat().st_size == 0:  # cannot be mapped
        return memoryview(b"")
    return np.memmap(path, np.uint8, mode="r").data


def _load(path: Path, name: str) -> Any:
    return np.load(path / f"{name}.npy", mmap_mode="r", allow_pickle=False)


def _to_json(chunk: Chunk) -> bytes:
    # `dataclasses.asdict` copies deeply, which takes five times as long.
    fields = {name: getattr(chunk, name) for name in _CHUNK_FIELDS}
    return json.dumps(fields).encode("ascii") + b"\n"


def _from_json(line: memoryview) -> Chunk:
    value = json.loads(bytes(line))
    return Chunk(**{**value, "turns": tuple(value["turns"])})


def open_current(directory: Path, language: str) -> Snapshot | None:
    """The snapshot in force in `directory`; None if there is none that can be trusted."""
    name = _current(directory)
    while name:
        try:
            return Snapshot(directory / name, language)
        except StaleSnapshotError as error:
            before, name = name, _current(directory)
            if name == before:  # else a writer has put another one in force meanwhile
                logger.warning("%s; it is made anew", error)
                break
    return None


def root_of(directory: Path) -> str:
    """The root of the project whose snapshots lie in `directory`; "" if there is none in force."""
    name = _current(directory)
    try:
        return str(_read_manifest(directory / name)["root"]) if name else ""
    except (OSError, ValueError, KeyError) as error:
        logger.info("snapshot %s cannot be read: %s", directory, error)
        return ""


def _current(directory: Path) -> str:
    try:
        return (directory / "current").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


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
        "ids": np.array([row.id for row in rows], dtype="S64"),
        "columns": columns,
        "offsets": np.cumsum([0, *map(len, lines)], dtype=np.int64),
        "vectors": np.concatenate(vectors).astype(np.float32)
        if vectors
        else np.zeros((0, dimensions), dtype=np.float32),
        "owners": np.repeat(np.array([n for n, _ in embedded], dtype=np.int32), counts),
    }
    for name, array in arrays.items():
        with _create(path / f"{name}.npy") as file:
            np.save(file, array, allow_pickle=False)
            _sync(file)
    with _create(path / _CHUNKS) as file:
        file.writelines(lines)
        _sync(file)
    with _create(path / _NAMES) as file:
        file.write(json.dumps(names).encode("ascii"))
        _sync(file)
    lexical.save(str(path / "lexical"))
    manifest = {
        "format": FORMAT,
        "fields": _CHUNK_FIELDS,
        "fingerprint": fingerprint(row.id for row in rows),
        "missing": len(rows) - len(embedded),
        "root": root,
        "sources": sources,
        "checksums": {name: zlib.crc32(_map(path / name)) for name in _FILES},
    }
    data = json.dumps(manifest).encode("ascii")
    write_durably(str(path / "manifest"), b"%d\n%s" % (zlib.crc32(data), data))


def _create(path: Path) -> Any:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE), "wb")


def _sync(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())
