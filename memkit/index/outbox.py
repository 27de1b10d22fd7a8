"""Rows on their way to a Chroma server that may be away.

A pass writes the segments that this machine searches in any case. What the server did not take waits: the
file `unsent` names the memory files whose rows may differ there. A later pass reads what the server has of
those files, and writes the rest. The rows are in the segments, so nothing is embedded for that.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

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

Value = TypeVar("Value")


class Outbox(Store):
    """A store on a server. From its first failure on, it holds nothing and takes nothing.

    `problem` is the reason then, in one line, else "".
    """

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._store: Store | None = None
        self._store = self._ask(open_store, None)

    @property
    def is_shared(self) -> bool:
        """As for `Store`."""
        return True

    @property
    def is_away(self) -> bool:
        """Whether the server did not answer at first."""
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


def read_unsent(directory: Path) -> frozenset[str] | None:
    """Return the memory files whose rows wait for the server; None if all may: the record is unreadable."""
    try:
        value = parse_json((directory / UNSENT).read_bytes())
        return frozenset(map(str, value["sources"])) if value["version"] == VERSION else None
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_sent(snapshot: ChunkReader) -> bool:
    """Return whether the server is known to have all rows of a snapshot."""
    return bool(snapshot.manifest.collection) and not (snapshot.directory / UNSENT).exists()


def write_unsent(directory: Path, sources: Collection[str]) -> None:
    """Record durably which memory files wait. Raise `OSError`."""
    if sources:
        data = json.dumps({"version": VERSION, "sources": sorted(sources)}).encode("ascii")
        write_durably(str(directory / UNSENT), data)
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
