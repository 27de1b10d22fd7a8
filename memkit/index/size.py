"""Keeps the size of the index within what its content explains.

Chroma reclaims nothing by itself: deleted rows leave free pages and words behind, and deleted vectors stay in
their files for ever. The first is undone by a vacuum, the second only by making the index anew.
"""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

from memkit.errors import IndexStoreError
from memkit.files import make_private_directory
from memkit.index.erasure import erase_deleted
from memkit.index.purge import COLLECTION_PREFIX, IndexUsage, usage_of
from memkit.index.store import BATCH_ROWS, Row, Store, directory
from memkit.index.swap import made_aside, swap
from memkit.paths import Home

FREE_SHARE = 0.25
"""Of the database's pages; if more are free, they are given back."""

# Measured: fresh indexes of 1,500 to 5,000 rows, vectors of 8 to 1,536 numbers and texts of 60 to 1,500
# characters take 0.60 to 0.82 of this.
_FIXED_BYTES = 1_000_000
_ROW_BYTES = 3_000
_NUMBER_BYTES = 8
_TEXT_FACTOR = 8

BOUND_FACTOR = 1.5
"""An index of more than so many times what it usually takes is made anew."""


def bound(usage: IndexUsage) -> int:
    """The bytes beyond which an index of this content is made anew."""
    numbers = sum(one.rows * one.dimensions for one in usage.collections)
    usual = _ROW_BYTES * usage.rows + _NUMBER_BYTES * numbers + _TEXT_FACTOR * usage.text_bytes
    return int(BOUND_FACTOR * (_FIXED_BYTES + usual))


def keep_small(home: Home, uri: str, *, erase: bool = False) -> int:
    """Give back what the index at `uri` (the setting) takes beyond its content; how many bytes that were.

    `erase` says that text was deleted which no file may hold any more. The caller holds the index lock and
    has no `Store` open. Can be killed and done again. Raises `IndexStoreError`.
    """
    path = directory(home, uri)
    before = None if path is None else _usage(path)
    if path is None or before is None:
        return 0
    after = before
    if erase or before.free_share > FREE_SHARE or before.bytes > bound(before):
        erase_deleted(home, uri)
        after = _usage(path) or after
    if after.bytes > bound(after) and all(
        one.name.startswith(COLLECTION_PREFIX) for one in after.collections
    ):
        _make_anew(home, uri, path, after)
        after = _usage(path) or after
    return max(0, before.bytes - after.bytes)


def _usage(path: Path) -> IndexUsage | None:
    try:
        return usage_of(path)
    except (OSError, sqlite3.Error) as error:
        raise IndexStoreError(
            f"the index {path} cannot be measured ({error}); `memkit doctor` says more"
        ) from error


def _make_anew(home: Home, uri: str, path: Path, usage: IndexUsage) -> None:
    """Copy what is in the index into one made aside, embedding nothing, and put that in its place."""
    aside = made_aside(path)
    try:
        shutil.rmtree(aside, ignore_errors=True)  # by one that was killed
        make_private_directory(str(aside))
        for one in usage.collections:
            if one.rows:
                with (
                    Store.open(home, uri, one.name) as old,
                    Store.open(home, str(aside), one.name) as new,
                ):
                    _copy(old, new)
        swap(path)
    except OSError as error:
        raise IndexStoreError(f"the index {path} cannot be made anew: {error.strerror}") from error


def _copy(old: Store, new: Store) -> None:
    batch: list[Row] = []
    waiting: list[Row] = []
    for row in old.rows():
        # The first vector decides on the length, and one that stands for none yet should not.
        (waiting if row.vectors is None else batch).append(row)
        if len(batch) == BATCH_ROWS:
            new.put(batch)
            batch = []
    new.put(batch)
    new.put(waiting)
