"""Purge deleted data from the files of an embedded Chroma index, and measure them.

Deleted text stays for long in the SQLite file: in the queue of vectors to write, in the words of the
full-text table, and in free pages. The vector files also hold the memory that Chroma had allocated for
future vectors, with whatever the process had read before (chroma-core/chroma#7688).
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import sqlite3
import struct
from dataclasses import dataclass
from pathlib import Path

from memkit.index.damage import DATABASE

logger = logging.getLogger(__name__)

COLLECTION_PREFIX = "memkit-"
"""The prefix of memkit's collections; the user's own directory may hold others."""

# Chroma reads the metadata in the queue once; only vectors are read from it again.
_FORGET_QUEUE = """
UPDATE embeddings_queue SET metadata = NULL WHERE metadata IS NOT NULL AND seq_id <= (
    SELECT max(done.seq_id) FROM max_seq_id AS done JOIN segments ON segments.id = done.segment_id
    WHERE segments.scope = 'METADATA' AND embeddings_queue.topic LIKE '%' || segments.collection
)
"""
_FORGET_COLLECTIONS = """
DELETE FROM embeddings_queue WHERE NOT EXISTS (
    SELECT 1 FROM collections WHERE embeddings_queue.topic LIKE '%' || collections.id
)
"""
_FORGET_WORDS = (
    "INSERT INTO embedding_fulltext_search (embedding_fulltext_search) VALUES ('rebuild')"
)
_OWN_SEGMENTS = """
SELECT segments.id FROM segments JOIN collections ON collections.id = segments.collection
WHERE segments.scope = 'VECTOR' AND substr(collections.name, 1, ?) = ?
"""

_COLLECTIONS = """
SELECT collections.name, coalesce(collections.dimension, 0), count(embeddings.id)
FROM collections LEFT JOIN segments ON segments.collection = collections.id AND segments.scope = 'METADATA'
LEFT JOIN embeddings ON embeddings.segment_id = segments.id GROUP BY collections.id
"""
_TEXT_BYTES = "SELECT coalesce(sum(length(CAST(string_value AS BLOB))), 0) FROM embedding_metadata"

_SEGMENT = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The name of a directory of vectors."""

_HEADER = struct.Struct("<iQQQQ")
"""The start of `header.bin`: version, offset, capacity, number of vectors, bytes per vector."""

_HEADER_VERSION = 1


@dataclass(frozen=True, slots=True)
class CollectionUsage:
    """The rows of a collection, and the length of its vectors (0: not known yet)."""

    name: str
    dimensions: int
    rows: int


@dataclass(frozen=True, slots=True)
class IndexUsage:
    """The bytes of all files of an index, the bytes of text in its rows, and the share of free pages."""

    bytes: int
    text_bytes: int
    free_share: float
    collections: tuple[CollectionUsage, ...]

    @property
    def rows(self) -> int:
        """The rows of all collections."""
        return sum(one.rows for one in self.collections)


def usage_of(path: Path) -> IndexUsage | None:
    """Measure the index in the directory `path`; None if there is none. Raise `OSError`, `sqlite3.Error`."""
    if not (path / DATABASE).is_file():
        return None
    with contextlib.closing(_connect(path, "ro")) as connection:
        collections = connection.execute(_COLLECTIONS).fetchall()
        (text,) = connection.execute(_TEXT_BYTES).fetchone()
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    found = tuple(CollectionUsage(*one) for one in collections)
    return IndexUsage(size, text, free / max(1, pages), found)


def purge_deleted_rows(path: Path) -> None:
    """Remove all deleted text from the files in the directory `path`, which no process has open.

    It rewrites the SQLite file. Raise `OSError`, `sqlite3.Error`.
    """
    if not (path / DATABASE).is_file():
        return
    with contextlib.closing(_connect(path, "rw")) as connection:
        with connection:
            for statement in (_FORGET_QUEUE, _FORGET_COLLECTIONS, _FORGET_WORDS):
                connection.execute(statement)
        connection.execute("VACUUM")
    trim_vector_files(path)


def trim_vector_files(path: Path) -> None:
    """Cut the vector files in the directory `path`, which no process has open, after the last vector.

    Remove those of deleted collections, which Chroma leaves. Raise `OSError`, `sqlite3.Error`.
    """
    if not (path / DATABASE).is_file():
        return
    with contextlib.closing(_connect(path, "ro")) as connection:
        prefix = COLLECTION_PREFIX
        own = connection.execute(_OWN_SEGMENTS, (len(prefix), prefix)).fetchall()
        known = {segment for (segment,) in connection.execute("SELECT id FROM segments")}
    for directory in path.iterdir():
        if _SEGMENT.fullmatch(directory.name) and directory.name not in known:
            shutil.rmtree(directory)
    for (segment,) in own:
        _trim_segment(path / segment)


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{(path / DATABASE).absolute().as_uri()}?mode={mode}", uri=True)


def _trim_segment(directory: Path) -> None:
    try:
        data = (directory / "header.bin").read_bytes()[: _HEADER.size]
    except FileNotFoundError:  # it has no vectors yet
        return
    version, _, _, count, size = _HEADER.unpack(data) if len(data) == _HEADER.size else (0,) * 5
    if version != _HEADER_VERSION:
        logger.warning("%s has another version and stays as it is", directory / "header.bin")
        return
    # Chroma stores lengths only of vectors that it scales. With the inner product it does not.
    for name, used in (("data_level0.bin", count * size), ("length.bin", 0)):
        if (directory / name).stat().st_size > used:
            os.truncate(directory / name, used)
