"""Rows on their way to Chroma: a server may be away, and an embedded store is brought up to date in batches.

A pass writes the segments that this machine searches in any case. What Chroma did not take waits: the file
`unsent` names the memory files whose rows may differ there. A later pass reads what Chroma has of those
files, and writes the rest. The rows are in the segments, so nothing is embedded for that.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from memkit.errors import IndexStoreError
from memkit.files import write_durably
from memkit.index.manifest import Entry
from memkit.index.reader import ChunkReader
from memkit.index.store import Metadata, Row, Store
from memkit.state import parse_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

logger = logging.getLogger(__name__)

UNSENT = "unsent"
VERSION = 1

MOST_CHANGES = 1000
"""With more chunks added and deleted since, an embedded store is brought up to date."""

Value = TypeVar("Value")


class Unsent(NamedTuple):
    """What Chroma lacks: the rows of some memory files may differ there, or of all (None).

    An embedded store had `rows` rows when it was up to date. Since then, passes have added and deleted
    `changes` chunks.
    """

    sources: frozenset[str] | None = frozenset()
    changes: int = 0
    rows: int = 0


class Outbox(Store):
    """A store on a server, or None. From its first failure on (`problem`, one line) it takes nothing."""

    def __init__(self, open_store: Callable[[], Store] | None) -> None:
        self._store: Store | None = None
        if open_store is not None:
            self._store = self._ask(open_store, None)

    @property
    def is_away(self) -> bool:
        """Whether nothing is read or written: the server did not answer at first, or there is no store."""
        return self._store is None

    @property
    def dimensions(self) -> int | None:
        """As for `Store`."""
        return self._of_store(lambda store: store.dimensions, None)

    @property
    def identity(self) -> str:
        """As for `Store`."""
        return self._of_store(lambda store: store.identity, "")

    def stored(self, source: str = "") -> dict[str, Metadata]:
        """As for `Store`."""
        return self._of_store(lambda store: store.stored(source), {})

    def describe(self, row: Row) -> Metadata:
        """As for `Store`."""
        return {} if self._store is None else self._store.describe(row)

    def vectors(self, windows: Mapping[str, int]) -> dict[str, NDArray[np.float32]]:
        """As for `Store`."""
        return self._of_store(lambda store: store.vectors(windows), {})

    def put(self, rows: Sequence[Row]) -> None:
        """As for `Store`."""
        # A row without a vector is of no use to others. In a new collection it would decide on the length.
        sent = [row for row in rows if row.vectors is not None]
        self._of_store(lambda store: store.put(sent), None)

    def delete(self, chunks: Mapping[str, int]) -> None:
        """As for `Store`."""
        self._of_store(lambda store: store.delete(chunks), None)

    def drop(self, name: str) -> None:
        """As for `Store`."""
        self._of_store(lambda store: store.drop(name), None)

    def close(self) -> None:
        """As for `Store`."""
        if self._store is not None:
            self._store.close()

    def _of_store(self, function: Callable[[Store], Value], otherwise: Value) -> Value:
        store = self._store
        return otherwise if store is None else self._ask(lambda: function(store), otherwise)

    def _ask(self, function: Callable[[], Value], otherwise: Value) -> Value:
        if self.problem:
            return otherwise
        try:
            return function()
        except IndexStoreError as error:
            logger.warning("%s", error)
            self.problem = str(error)
            return otherwise


def read_unsent(directory: Path) -> Unsent:
    """Return what waits for Chroma; all of it if the record is unreadable."""
    try:
        value = parse_json((directory / UNSENT).read_bytes())
        if value["version"] == VERSION:
            return Unsent(
                frozenset(map(str, value["sources"])), int(value["changes"]), int(value["rows"])
            )
    except FileNotFoundError:
        return Unsent()
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        logger.warning("cannot read %s (%r); Chroma is compared with the index", directory / UNSENT, error)
    return Unsent(None)


def is_sent(snapshot: ChunkReader) -> bool:
    """Return whether the server is known to have all rows of a snapshot."""
    return bool(snapshot.manifest.collection) and not (snapshot.directory / UNSENT).exists()


def write_unsent(directory: Path, unsent: Unsent) -> None:
    """Record durably what waits, if not all does. Raise `OSError`."""
    if unsent.sources:
        record = {"version": VERSION, **unsent._asdict(), "sources": sorted(unsent.sources)}
        write_durably(str(directory / UNSENT), json.dumps(record).encode("ascii"))
    else:
        with contextlib.suppress(FileNotFoundError):
            (directory / UNSENT).unlink()


def waiting_chunks(entries: Mapping[str, Entry], collection: str, unsent: Collection[str]) -> int:
    """Return how many chunks of these entries wait for the server: all if no collection has been compared.

    A file that is gone counts as one.
    """
    sources = unsent if collection else entries.keys()
    sizes = (entries[one].last - entries[one].first if one in entries else 1 for one in sources)
    return sum(sizes)
