"""What Chroma's files hold beside what is in the index, and how it is taken out of them.

Deleted text stays for long in the SQLite file: in the queue that vectors are written from, in the words of
the full-text table, and in free pages. And the files of vectors are written with the memory that was
allocated for vectors to come, whatever was in it before (chroma-core/chroma#7688): pieces of any text that
the process has read.
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
"""How the names of memkit's collections begin; a directory of the user's own may hold others."""

# What the queue says of a row is read once, into the metadata; only vectors are read from it again.
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
"""Of `header.bin`: version, offset, how many vectors there is room for, how many there are, bytes of each."""

_HEADER_VERSION = 1


@dataclass(frozen=True, slots=True)
class CollectionUsage:
    """A collection: how many rows it has, and the length of its vectors (0: not known yet)."""

    name: str
    dimensions: int
    rows: int


@dataclass(frozen=True, slots=True)
class IndexUsage:
    """What an index takes, and what it holds: bytes of all files, bytes of text in its rows, and the share of
    the database's pages that are free.
    """

    bytes: int
    text_bytes: int
    free_share: float
    collections: tuple[CollectionUsage, ...]

    @property
    def rows(self) -> int:
        """The rows of all collections."""
        return sum(one.rows for one in self.collections)


def usage_of(path: Path) -> IndexUsage | None:
    """What the index in the directory `path` takes and holds; None if there is none.

    Raises `OSError`, `sqlite3.Error`.
    """
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


def erase_deleted_rows(path: Path) -> None:
    """Have the files in the directory `path`, which nobody has open, hold no text but what is in the index.

    The SQLite file is written anew; vectors of collections that are gone go. Raises `OSError` and
    `sqlite3.Error`.
    """
    if not (path / DATABASE).is_file():
        return
    with contextlib.closing(_connect(path, "rw")) as connection:
        with connection:
            for statement in (_FORGET_QUEUE, _FORGET_COLLECTIONS, _FORGET_WORDS):
                connection.execute(statement)
        connection.execute("VACUUM")
        _remove_orphans(path, connection)


def _remove_orphans(path: Path, connection: sqlite3.Connection) -> None:
    """Remove the vectors of collections that are gone: Chroma leaves their directories."""
    known = {segment for (segment,) in connection.execute("SELECT id FROM segments")}
    for directory in path.iterdir():
        if _SEGMENT.fullmatch(directory.name) and directory.name not in known:
            shutil.rmtree(directory)


def cut_off_unused_memory(path: Path) -> None:
    """Cut the files of vectors in the directory `path`, which nobody has open, after the last vector.

    Those of collections that are gone go. Raises `OSError`, `sqlite3.Error`.
    """
    if not (path / DATABASE).is_file():
        return
    with contextlib.closing(_connect(path, "ro")) as connection:
        prefix = COLLECTION_PREFIX
        found = connection.execute(_OWN_SEGMENTS, (len(prefix), prefix)).fetchall()
        _remove_orphans(path, connection)
    for (segment,) in found:
        _cut_segment(path / segment)


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{(path / DATABASE).absolute().as_uri()}?mode={mode}", uri=True)


def _cut_segment(directory: Path) -> None:
    try:
        data = (directory / "header.bin").read_bytes()[: _HEADER.size]
    except FileNotFoundError:  # it has no vectors yet
        return
    version, _, _, count, size = _HEADER.unpack(data) if len(data) == _HEADER.size else (0,) * 5
    if version != _HEADER_VERSION:
        logger.warning("%s is of another version and stays as it is", directory / "header.bin")
        return
    # The lengths are of vectors that Chroma scales, which it does not for the inner product.
    for name, used in (("data_level0.bin", count * size), ("length.bin", 0)):
        if (directory / name).stat().st_size > used:
            os.truncate(directory / name, used)
