"""Takes deleted text out of the files of the index.

What is deleted from Chroma stays in its SQLite file for long: in the queue that its vectors are written
from, in the words of its full-text table, and in free pages. Beside the index lie copies that were damaged.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path

from memkit.errors import IndexStoreError
from memkit.index.current import snapshot_directory
from memkit.index.damage import DATABASE, damaged_copy
from memkit.index.store import Store, directory
from memkit.paths import Home

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


def forget_collection(home: Home, uri: str, name: str) -> None:
    """Remove a collection and its snapshots. The caller holds the index lock. Raises `IndexStoreError`."""
    with Store.open(home, uri, name) as store:
        store.drop(name)
    shutil.rmtree(snapshot_directory(home, name), ignore_errors=True)


def erase_deleted(home: Home, uri: str) -> bool:
    """Have no file of the index hold what was deleted from it; False if it lies on a server.

    `uri` is the setting `index.uri`. The caller holds the index lock and has no `Store` open. All files
    of the index are written anew, with what is in it. Can be killed and done again. Raises
    `IndexStoreError`.
    """
    path = directory(home, uri)
    if path is None:
        return False
    try:
        copy = damaged_copy(path)
        if copy.is_dir() and not copy.is_symlink():
            shutil.rmtree(copy)
        else:
            copy.unlink(missing_ok=True)
        if (path / DATABASE).is_file():
            _erase(path / DATABASE)
    except (OSError, sqlite3.Error) as error:
        raise IndexStoreError(
            f"deleted text is not erased from the index {path} ({error}); remove that directory and run "
            "`memkit index`"
        ) from error
    return True


def _erase(database: Path) -> None:
    connection = sqlite3.connect(f"{database.absolute().as_uri()}?mode=rw", uri=True)
    with contextlib.closing(connection):
        with connection:
            for statement in (_FORGET_QUEUE, _FORGET_COLLECTIONS, _FORGET_WORDS):
                connection.execute(statement)
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # where another version keeps a WAL
