"""Takes out of the files of the index what is not in it any more."""

from __future__ import annotations

import shutil
import sqlite3

from memkit.errors import IndexStoreError
from memkit.index.current import snapshot_directory
from memkit.index.damage import damaged_copy
from memkit.index.purge import cut_off_unused_memory, erase_deleted_rows
from memkit.index.store import Store, directory
from memkit.paths import Home


def forget_collection(home: Home, uri: str, name: str) -> None:
    """Remove a collection and its snapshots. The caller holds the index lock. Raises `IndexStoreError`."""
    with Store.open(home, uri, name) as store:
        store.drop(name)
    shutil.rmtree(snapshot_directory(home, name), ignore_errors=True)


def erase_deleted(home: Home, uri: str) -> bool:
    """Have no file of Chroma's hold what was deleted from the index; False if it lies on a server.

    `uri` is the setting `index.uri`. The caller holds the index lock and has no `Store` open. Can be
    killed and done again. Raises `IndexStoreError`.
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
        erase_deleted_rows(path)
        cut_off_unused_memory(path)
    except (OSError, sqlite3.Error) as error:
        raise IndexStoreError(
            f"deleted text is not erased from the index {path} ({error}); remove that directory and run "
            "`memkit index`"
        ) from error
    return True
