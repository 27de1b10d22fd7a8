"""Keep Chroma in sync with the segments: a directory of this machine, or the rows of this home on a server.

No search reads this machine's directory: it is there for other programs. So it may lag behind, and is never
repaired: in doubt, and when something is forgotten, it is removed and written again. A server may be away.

The file `copied` next to the segments names the collection that had all chunks, and the memory files that
have changed since. Without it, all are compared. The segments have the vectors, so nothing is embedded.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from memkit.errors import IndexStoreError, NewerFileError
from memkit.files import remove_path
from memkit.index.catalog import snapshot_directory
from memkit.index.manifest import Entry
from memkit.index.snapshot import Snapshot, unwritable
from memkit.index.store import BATCH_ROWS, Metadata, Row, Store, directory
from memkit.paths import Home
from memkit.state import read_state_or_none, write_state

logger = logging.getLogger(__name__)

COPIED = "copied"
VERSION = 1

LEAST_CHANGES = 1000
"""After so many changes, and as many as it has chunks, this machine's directory is written again: Chroma
keeps deleted vectors in its files.
"""


class Copied(NamedTuple):
    """The id of a collection, and the memory files whose chunks may differ there.

    `changes` counts the chunks written and deleted since this machine's directory was written whole.
    """

    collection: str
    waiting: frozenset[str] = frozenset()
    changes: int = 0

    def write(self, place: Path) -> None:
        """Record this durably. Raise `IndexStoreError`."""
        try:
            write_state(place / COPIED, VERSION, {**self._asdict(), "waiting": sorted(self.waiting)})
        except OSError as error:
            raise unwritable(place, error) from error


def read_copied(place: Path) -> Copied | None:
    """Return what Chroma has of the index in `place`; None if that is unknown: it gets everything again."""

    def convert(value: dict[str, Any]) -> Copied:
        waiting = frozenset(map(str, value["waiting"]))
        return Copied(str(value["collection"]), waiting, int(value["changes"]))

    with suppress(NewerFileError):
        return read_state_or_none(place / COPIED, VERSION, convert)
    return None


def note_changed(place: Path, sources: Collection[str]) -> None:
    """Record durably that the chunks of these memory files change. Raise `IndexStoreError`."""
    copied = read_copied(place)
    if copied is not None and not copied.waiting.issuperset(sources):
        copied._replace(waiting=copied.waiting.union(sources)).write(place)


def waiting_chunks(place: Path, entries: Mapping[str, Entry]) -> int:
    """Return how many chunks of an index may wait for Chroma. A file that is gone counts as one."""
    copied = read_copied(place)
    sources = entries.keys() if copied is None else copied.waiting
    return sum(entries[one].last - entries[one].first if one in entries else 1 for one in sources)


def copy(home: Home, uri: str, snapshot: Snapshot, author: str = "") -> None:
    """Bring Chroma in sync with a snapshot. The caller holds the index lock. Raise `IndexStoreError`.

    `uri` is the setting `index.uri`. On a server, rows name the `author`.
    """
    place = snapshot.directory
    local = directory(home, uri, place.name)
    copied = read_copied(place)
    if local is None:
        _copy(home, uri, snapshot, copied, author)
        return
    if copied is not None and local.is_dir():
        if not copied.waiting:
            return
        # Chroma maps its files into memory: damaged ones can end this process. Then the record is gone.
        _remove(place / COPIED)
        if copied.changes <= max(LEAST_CHANGES, len(snapshot)):
            try:
                _copy(home, uri, snapshot, copied, author)
            except IndexStoreError as error:
                logger.warning("%s; %s is written again", error, local)
            else:
                return
    start_again(home, uri, place.name)
    _copy(home, uri, snapshot, None, author)


def start_again(home: Home, uri: str, name: str) -> None:
    """Remove this machine's directory of a collection, or have all rows on a server compared, by `copy`.

    The caller holds the index lock. Raise `IndexStoreError`.
    """
    _remove(snapshot_directory(home, name) / COPIED)
    local = directory(home, uri, name)
    if local is not None:
        _remove(local)


def delete_collection(home: Home, uri: str, name: str) -> None:
    """Remove a collection and its segments. The caller holds the index lock. Raise `IndexStoreError`."""
    if directory(home, uri, name) is None:
        with Store(home, uri, name) as store:
            store.drop()
    start_again(home, uri, name)
    shutil.rmtree(snapshot_directory(home, name), ignore_errors=True)


def remove_strays(home: Home) -> None:
    """Remove from memkit's own directory what no collection with segments has. Raise `IndexStoreError`."""
    for path in Path(home.index, "chroma").glob("*"):
        if not snapshot_directory(home, path.name).is_dir():
            _remove(path)


def _remove(path: Path) -> None:
    try:
        remove_path(path)
    except OSError as error:
        raise IndexStoreError(f"cannot remove {path}: {error.strerror or error}") from error


def _copy(home: Home, uri: str, snapshot: Snapshot, copied: Copied | None, author: str) -> None:
    with Store(home, uri, snapshot.directory.name, author) as store:
        changes = 0
        if copied is not None and copied.collection == store.identity:
            if not copied.waiting:
                return
            changes = copied.changes
            sources: Collection[str] = copied.waiting
            have = {id: found for source in sources for id, found in store.stored(source).items()}
        else:
            sources, have = snapshot.entries.keys(), store.stored()
        seen: set[str] = set()
        batch: list[Row] = []
        for source in sorted(snapshot.entries.keys() & sources):
            for row in snapshot.rows_of(source):
                if row.vectors is not None:  # one without is of no use to others
                    seen.add(row.id)
                    batch.append(row)
            if len(batch) >= BATCH_ROWS:
                changes += _write(store, batch, have)
                batch = []
        changes += _write(store, batch, have)
        gone = {id: have[id] for id in have.keys() - seen}
        store.delete(gone)
        done = Copied(store.identity, changes=changes + len(gone) if have else 0)
    done.write(snapshot.directory)


def _write(store: Store, rows: list[Row], have: Mapping[str, Metadata]) -> int:
    differing = [row for row in rows if have.get(row.id) != store.describe(row)]
    # A chunk is written window by window. Delete a replaced one first, or a kill would mix the two.
    store.delete({row.id: have[row.id] for row in differing if row.id in have})
    store.put(differing)
    return len(differing)
