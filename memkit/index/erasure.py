"""Keep the files of the index free of deleted text, and no larger than its content explains.

Chroma reclaims nothing by itself. Deleted rows leave free pages and words; a vacuum removes them. Deleted
vectors stay in their files until the collection is rewritten.
"""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

from memkit.errors import IndexStoreError
from memkit.index.catalog import snapshot_directory
from memkit.index.damage import damaged_copy
from memkit.index.purge import COLLECTION_PREFIX, IndexUsage, purge_deleted_rows, usage_of
from memkit.index.store import Store, directory
from memkit.paths import Home

FREE_SHARE = 0.25
"""The share of the database's pages that may be free before a vacuum."""

# Measured: fresh indexes of 1,500 to 5,000 rows, vectors of 8 to 1,536 numbers, and texts of 60 to 1,500
# characters take 0.60 to 0.82 of this.
_FIXED_BYTES = 1_000_000
_ROW_BYTES = 3_000
_NUMBER_BYTES = 8
_TEXT_FACTOR = 8

BOUND_FACTOR = 1.5
"""An index larger than its usual size by this factor is rewritten."""


def delete_collection(home: Home, uri: str, name: str) -> None:
    """Remove a collection and its snapshots. The caller holds the index lock. Raise `IndexStoreError`."""
    with Store.open(home, uri, name) as store:
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
        for copy in (damaged_copy(path), *_left_by_swaps(path)):
            if copy.is_dir() and not copy.is_symlink():
                shutil.rmtree(copy)
            else:
                copy.unlink(missing_ok=True)
        purge_deleted_rows(path)
    except (OSError, sqlite3.Error) as error:
        raise IndexStoreError(
            f"deleted text is not erased from the index {path} ({error}); remove that directory and run "
            "`memkit index`"
        ) from error
    return True


def _left_by_swaps(path: Path) -> list[Path]:
    """The copies of the index that memkit 0.1.0 left if it was killed while it rewrote the index."""
    return [path.with_name(f"{path.name}.{suffix}") for suffix in ("new", "old")]


def bound(usage: IndexUsage) -> int:
    """Return the size in bytes above which an index with this content is rewritten."""
    numbers = sum(one.rows * one.dimensions for one in usage.collections)
    usual = _ROW_BYTES * usage.rows + _NUMBER_BYTES * numbers + _TEXT_FACTOR * usage.text_bytes
    return int(BOUND_FACTOR * (_FIXED_BYTES + usual))


def keep_small(home: Home, uri: str, *, erase: bool = False) -> int:
    """Shrink the index at `uri` (the setting) to what its content explains; return the bytes freed.

    `erase` removes deleted text from its files in any case. The caller holds the index lock and has no
    `Store` open. A killed call can be repeated. Raise `IndexStoreError`.
    """
    path = directory(home, uri)
    before = None if path is None else _usage(path)
    if path is None or before is None:
        return 0
    after = before
    if erase or before.free_share > FREE_SHARE or before.bytes > bound(before):
        erase_deleted(home, uri)
        after = _usage(path) or after
    names = [one.name for one in after.collections]
    # The vectors of foreign collections stay, and with them the size may.
    if after.bytes > bound(after) and all(name.startswith(COLLECTION_PREFIX) for name in names):
        for name in names:
            _rewrite(home, uri, name)
        erase_deleted(home, uri)
        after = _usage(path) or after
    return max(0, before.bytes - after.bytes)


def _usage(path: Path) -> IndexUsage | None:
    try:
        return usage_of(path)
    except (OSError, sqlite3.Error) as error:
        raise IndexStoreError(
            f"the index {path} cannot be measured ({error}); run `memkit doctor`"
        ) from error


def _rewrite(home: Home, uri: str, name: str) -> None:
    """Write a collection again without deleted vectors, embedding nothing.

    If this is killed, the next pass takes the vectors from the snapshot.
    """
    with Store.open(home, uri, name) as store:
        rows = list(store.rows())
    with Store.open(home, uri, name, rebuild=True) as store:
        # The first vector decides on the length. A placeholder for a missing one should not.
        store.put([row for row in rows if row.vectors is not None])
        store.put([row for row in rows if row.vectors is None])
