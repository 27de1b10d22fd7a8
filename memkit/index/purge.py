"""Keep the files of an embedded Chroma index free of deleted text, and no larger than its content explains.

Rows hold no text of conversations, but names of files, branches, and sessions; those of older versions held
their text. Chroma reclaims nothing by itself: what is deleted stays for long in the SQLite file, in the queue
of vectors to write, in the words of the full-text table, and in free pages. Deleted vectors stay until the
collection is rewritten. The vector files also hold the memory that Chroma had allocated for future vectors,
with whatever the process had read before (chroma-core/chroma#7688).
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

from memkit.errors import IndexStoreError
from memkit.files import open_replacement
from memkit.index.catalog import COLLECTION_PREFIX, snapshot_directory, snapshots_of
from memkit.index.damage import DATABASE, damaged_copy, remove_path
from memkit.index.merge import erase_dead
from memkit.index.store import Store, directory
from memkit.paths import Home

logger = logging.getLogger(__name__)

FREE_SHARE = 0.25
"""The share of the database's pages that may be free before a vacuum."""

BOUND_FACTOR = 1.5
"""An index larger than its usual size by this factor is rewritten."""

# Measured: fresh indexes of 1,500 to 5,000 rows with vectors of 8 to 1,536 numbers take 0.38 to 0.89 of
# this. With texts of 60 to 1,500 characters, as older versions and other programs write, it is 0.72 to 0.87.
_FIXED_BYTES = 1_000_000
_ROW_BYTES = 1_500
_NUMBER_BYTES = 6
_TEXT_FACTOR = 8

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
class IndexUsage:
    """The bytes of all files of an index, what its collections hold, and the share of free pages.

    `numbers` counts the elements of all vectors, `text_bytes` the text of all rows.
    """

    bytes: int
    names: tuple[str, ...]
    rows: int
    numbers: int
    text_bytes: int
    free_share: float


def bound(usage: IndexUsage) -> int:
    """Return the size in bytes above which an index with this content is rewritten."""
    usual = _ROW_BYTES * usage.rows + _NUMBER_BYTES * usage.numbers + _TEXT_FACTOR * usage.text_bytes
    return int(BOUND_FACTOR * (_FIXED_BYTES + usual))


def usage_of(path: Path) -> IndexUsage | None:
    """Measure the index in the directory `path`; None if there is none. Raise `IndexStoreError`."""
    try:
        if not (path / DATABASE).is_file():
            return None
        with contextlib.closing(_connect(path, "ro")) as connection:
            collections = connection.execute(_COLLECTIONS).fetchall()
            (text,) = connection.execute(_TEXT_BYTES).fetchone()
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            (free,) = connection.execute("PRAGMA freelist_count").fetchone()
        size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    except (OSError, sqlite3.Error) as error:
        raise IndexStoreError(
            f"the index {path} cannot be measured ({error}); run `memkit doctor --deep`"
        ) from error
    names = tuple(name for name, _, _ in collections)
    rows = sum(count for _, _, count in collections)
    numbers = sum(dimensions * count for _, dimensions, count in collections)
    return IndexUsage(size, names, rows, numbers, text, free / max(1, pages))


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
    for segment in path.iterdir():
        if _SEGMENT.fullmatch(segment.name) and segment.name not in known:
            shutil.rmtree(segment)
    for (name,) in own:
        _trim_segment(path / name)


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{(path / DATABASE).absolute().as_uri()}?mode={mode}", uri=True)


def _trim_segment(segment: Path) -> None:
    try:
        data = (segment / "header.bin").read_bytes()[: _HEADER.size]
    except FileNotFoundError:  # it has no vectors yet
        return
    version, _, _, count, size = _HEADER.unpack(data) if len(data) == _HEADER.size else (0,) * 5
    if version != _HEADER_VERSION:
        logger.warning("%s has another version and stays as it is", segment / "header.bin")
        return
    # Chroma stores the lengths of vectors that it scales, which it does not with the inner product.
    for name, used in (("data_level0.bin", count * size), ("length.bin", 0)):
        if (segment / name).stat().st_size > used:
            os.truncate(segment / name, used)


def delete_collection(home: Home, uri: str, name: str) -> None:
    """Remove a collection and its snapshots. The caller holds the index lock. Raise `IndexStoreError`."""
    with Store(home, uri, name) as store:
        store.drop(name)
    shutil.rmtree(snapshot_directory(home, name), ignore_errors=True)


def erase_deleted(home: Home, uri: str) -> bool:
    """Remove deleted text from all of Chroma's files; return False if they are on a server.

    `uri` is the setting `index.uri`. The caller holds the index lock and has no `Store` open. A killed
    call can be repeated. Raise `IndexStoreError`.
    """
    path = directory(home, uri)
    if path is None:
        return False
    try:
        remove_path(damaged_copy(path))
        for suffix in ("new", "old"):  # memkit 0.1.0 left them when it was killed during a rewrite
            remove_path(path.with_name(f"{path.name}.{suffix}"))
        erase_files(path)
    except (OSError, sqlite3.Error) as error:
        raise IndexStoreError(
            f"the index {path} still holds deleted text ({error}); try again, or, in a terminal of "
            "your own, delete that directory and run `memkit index` in each project"
        ) from error
    return True


def erase_files(path: Path) -> None:
    """Remove deleted text from Chroma's files in the directory `path`, which no process has open.

    Raise `OSError`, `sqlite3.Error`.
    """
    database = path / DATABASE
    if database.is_file():
        # Not VACUUM, which takes twice as long: it writes pages into a journal, too, and copies all back.
        with open_replacement(str(database)) as file, contextlib.closing(_connect(path, "rw")) as connection:
            with connection:
                for statement in (_FORGET_QUEUE, _FORGET_COLLECTIONS, _FORGET_WORDS):
                    connection.execute(statement)
            connection.execute("VACUUM INTO ?", (file.name,))
    trim_vector_files(path)


def keep_small(home: Home, uri: str, *, erase: bool = False) -> int:
    """Rewrite an index that is larger than its content explains; return the bytes freed of the store.

    Remove deleted text from the segments of all snapshots.

    `uri` is the setting `index.uri`. `erase` removes deleted text from its files in any case. The caller
    holds the index lock and has no `Store` open. A killed call can be repeated. Raise `IndexStoreError`.
    """
    for snapshots in snapshots_of(home, None):
        erase_dead(snapshots)
    path = directory(home, uri)
    before = None if path is None else usage_of(path)
    if path is None or before is None:
        return 0
    after = before
    if erase or before.free_share > FREE_SHARE or before.bytes > bound(before):
        erase_deleted(home, uri)
        after = usage_of(path) or after
    # The vectors of foreign collections stay, and with them the size may.
    if after.bytes > bound(after) and all(name.startswith(COLLECTION_PREFIX) for name in after.names):
        for name in after.names:
            with Store(home, uri, name) as store:
                store.rewrite()
        erase_deleted(home, uri)
        after = usage_of(path) or after
    return max(0, before.bytes - after.bytes)
