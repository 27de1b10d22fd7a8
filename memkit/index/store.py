"""A collection in Chroma. Only this module, `server`, and `colleagues` know Chroma.

One collection holds the chunks of one project for one model. A chunk is a row with the vector of its first
window, and with the metadata that filters need. Further windows of a long chunk are rows of their own
(`<id>#1`, `<id>#2`, …). They are written before it and deleted after it, so a chunk that exists is whole.

A collection on this machine has a directory of its own and holds no text: the Markdown and the segments have
it. On a server, where others can query them, rows carry their text and all that a result shows.

Several memory homes may share one Chroma server, and even one collection there: two clones of a repository
have the same one. So on a server each row carries the id of its home (`owner`), in its metadata and before
its own id, and the name of the person (`author`). A home changes its own rows only, and never deletes a
collection: another home may be writing to it. `memkit.index.colleagues` reads the rows of others.
"""

from __future__ import annotations

import os
import re
import struct
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memkit.errors import IndexStoreError
from memkit.files import make_private_directory, write_durably
from memkit.index.chunk import SHOWN_ID_CHARACTERS, Chunk
from memkit.paths import Home
from memkit.settings import CLOUD, is_server
from memkit.text import one_line, shorten

if TYPE_CHECKING:
    import numpy as np
    from chromadb.api.models.Collection import Collection
    from numpy.typing import NDArray

BATCH_ROWS = 1000
"""Rows to write or read in one call; Chroma's own limit is above 5,000."""

PAGE_ROWS = 5000
"""Rows to read in one call. Chroma fails on a read of more than 32,766 rows ("too many SQL variables")."""

MOST_ROWS, MOST_DOCUMENT_BYTES, MOST_KEYS, MOST_VALUE_BYTES = 300, 16_384, 32, 4_096
"""Limits of Chroma Cloud, on any server: rows of a call, bytes of a document, keys and bytes of a value of
metadata. It refuses a call that exceeds one. Source: https://docs.trychroma.com/cloud/quotas-limits.
"""

SERVER_GRAPH = {"ef_search": 5000}
"""The number of neighbors that a server looks at. Among a million random vectors, it finds the nearest for
97 % of questions, in 63 ms, and with Chroma's default of 100 for 15 %, in 23 ms.
"""

_LIST_FIELDS = {"turns": "turns", "citations": "grips"}  # field: name in Chroma
_FILTER_FIELDS = ("source", "session", "kind", "branch")
_PLAIN_FIELDS = tuple(
    field.name for field in fields(Chunk) if field.name not in ("content", "source_hash", *_LIST_FIELDS)
)
"""The fields of a chunk that rows carry on a server; on this machine they have `_FILTER_FIELDS` alone."""

_OWNER = re.compile(r"[0-9a-f]{32}")

_HEADER = struct.Struct("<i16xQQ")
_HEADER_VERSION = 1
_CLOCK_NS = 2_000_000_000  # file systems may round times down by two seconds


Metadata = dict[str, Any]

@dataclass(frozen=True, slots=True)
class Row:
    """One stored chunk and its vectors (windows, dimensions), None if it is not embedded."""

    id: str
    chunk: Chunk
    vectors: NDArray[np.float32] | None


class Store:
    """One open collection, and a context manager that closes it.

    Open it under the index lock only: one directory must never have two clients. Every method may raise
    `IndexStoreError`.
    """

    def __init__(self, home: Home, uri: str, name: str, author: str = "") -> None:
        """Open or create the collection `name`. Rows on a server name `author`.

        `uri` is empty for a directory under the memory home, or another path, or the
        `http(s)://host:port` of a Chroma server, or `cloud`.
        """
        path = self._directory = directory(home, uri, name)
        self._opened = time.time_ns() - _CLOCK_NS
        self._owner = owner_of(home) if path is None else ""
        self._author = author
        self._prefix = f"{self._owner}:" if self._owner else ""
        # Vectors have length 1, so the inner product is the cosine. With the cosine metric, Chroma would
        # scale them again and return others than it was given.
        graph: dict[str, Any] = {"space": "ip"}
        if self._owner and uri != CLOUD:  # which has another kind of index
            graph |= SERVER_GRAPH
        try:
            self._client: Any = _remote_client(home, uri) if path is None else _local_client(path)
            self._collection: Collection = _call(
                self._client.get_or_create_collection, name=name, embedding_function=None,
                configuration={"hnsw": graph},
            )  # fmt: skip
        except IndexStoreError:
            from chromadb.api.shared_system_client import SharedSystemClient

            SharedSystemClient.clear_system_cache()  # it has also those that could not be opened
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exception: object) -> None:
        _call(self._client.close)
        if self._directory is not None:
            _call(_clear_unused, directory=self._directory, since=self._opened)

    @property
    def identity(self) -> str:
        """The id of the collection. One that is made again has another."""
        return str(self._collection.id)

    def stored(self, source: str = "") -> dict[str, Metadata]:
        """Return the metadata of all chunks by id, or of those of a file; remove what a killed run left.

        Rows that memkit did not write count as chunks, so that the caller deletes them.
        """
        found: dict[str, Metadata] = {}
        windows: list[str] = []
        for own, metadata in _call(
            _all_metadata, collection=self._collection, owner=self._owner, source=source
        ):
            name = own.removeprefix(self._prefix)
            if "#" in name:
                windows.append(name)
            else:
                found[name] = dict(metadata or {})
        self._delete([name for name in windows if name.partition("#")[0] not in found])
        have = Counter(name.partition("#")[0] for name in windows)
        for name, metadata in found.items():
            count = metadata.get("windows")
            if isinstance(count, int) and have[name] < count - 1:
                metadata["text"] = None  # so that it is written again
        return found

    def describe(self, row: Row) -> Metadata:
        """Return the metadata of a chunk."""
        chunk = row.chunk
        names = _PLAIN_FIELDS if self._owner else _FILTER_FIELDS
        found: Metadata = {name: getattr(chunk, name) for name in names}
        if self._owner:
            found |= {stored: fit_list(getattr(chunk, name)) for name, stored in _LIST_FIELDS.items()}
            found |= {"owner": self._owner, "author": self._author, "short": row.id[:SHOWN_ID_CHARACTERS]}
            found = fit_metadata(found)
        return {
            **found,
            "day": date.fromisoformat(chunk.date).toordinal() if chunk.date else 0,
            "text": chunk.text_number,
            "windows": 0 if row.vectors is None else len(row.vectors),
            "window": 0,
        }

    def put(self, rows: Iterable[Row]) -> None:
        """Write embedded chunks, none of which Chroma has with more windows."""
        batch: list[tuple[str, Any, Metadata, str]] = []
        for row in rows:
            vectors = () if row.vectors is None else row.vectors
            for number in reversed(range(len(vectors))):
                metadata = self.describe(row)
                if number:  # what filters need
                    names = (*_FILTER_FIELDS, "day", *(["owner"] if self._owner else []))
                    metadata = {name: metadata[name] for name in names} | {"window": number}
                text = fit_document(row.chunk.content) if self._owner and not number else ""
                name = f"{self._prefix}{_window(row.id, number)}"
                batch.append((name, vectors[number], metadata, text))
                if len(batch) == self._batch_rows:
                    self._upsert(batch)
                    batch = []
        self._upsert(batch)

    def _upsert(self, batch: Sequence[tuple[str, Any, Metadata, str]]) -> None:
        if batch:
            ids, vectors, metadatas, texts = map(list, zip(*batch, strict=True))
            given = {"documents": texts} if self._owner else {}
            _call(self._collection.upsert, ids=ids, embeddings=vectors, metadatas=metadatas, **given)

    def delete(self, chunks: Mapping[str, Metadata]) -> None:
        """Remove chunks, given with their metadata."""
        windows = (
            _window(chunk, number)
            for chunk, metadata in chunks.items()
            for number in range(1, int(metadata.get("windows") or 1))
        )
        self._delete([*chunks, *windows])

    def drop(self) -> None:
        """Remove this home's rows."""
        rows = _call(_all_metadata, collection=self._collection, owner=self._owner)
        self._delete([row.removeprefix(self._prefix) for row, _ in rows])

    def _delete(self, ids: Sequence[str]) -> None:
        for start in range(0, len(ids), self._batch_rows):
            batch = ids[start : start + self._batch_rows]
            _call(self._collection.delete, ids=[f"{self._prefix}{row}" for row in batch])

    @property
    def _batch_rows(self) -> int:
        return MOST_ROWS if self._owner else BATCH_ROWS


def directory(home: Home, uri: str, name: str) -> Path | None:
    """Return the directory of a collection; None for one on a server or in the cloud."""
    if is_server(uri):
        return None
    return (Path(uri).expanduser() if uri else Path(home.index) / "chroma") / name


def owner_of(home: Home) -> str:
    """Return the id of the home on shared servers, created on first use: 32 random hex characters.

    The caller holds the index lock. Raise `IndexStoreError`, also for a damaged file: with a new id, the
    rows of the old one would stay on the server forever.
    """
    path = home.owner
    try:
        with open(path, encoding="ascii") as file:
            found = file.read(100).strip()
    except FileNotFoundError:
        found = uuid.uuid4().hex
        try:
            make_private_directory(os.path.dirname(path))
            write_durably(path, found.encode("ascii"))
        except OSError as error:
            raise IndexStoreError(f"cannot write {path}: {error.strerror or error}") from error
    except (OSError, ValueError) as error:
        raise IndexStoreError(f"cannot read the ID of this memory home in {path}: {error}") from error
    if not _OWNER.fullmatch(found):
        raise IndexStoreError(
            f"{path} does not hold the ID of this memory home (32 hex characters); restore it from a backup, "
            "or move it away: memkit then adds new rows to the Chroma server and leaves the old ones there"
        )
    return found


def _clear_unused(directory: Path, since: int) -> None:
    """Overwrite what no vector uses in the files of graphs that were written after `since` (nanoseconds).

    Chroma writes the room that it reserves for more vectors, and lengths that it never sets, with what the
    memory happened to hold: text of other turns, even forgotten ones. `header.bin` has the number of vectors,
    and the bytes of one: `saveIndex` in https://github.com/chroma-core/hnswlib.
    """
    for header in directory.glob("*/header.bin"):
        data = header.read_bytes()
        if len(data) < _HEADER.size:  # damaged: Chroma will say so
            continue
        version, count, size = _HEADER.unpack_from(data)
        if version != _HEADER_VERSION:
            continue
        for name, start in (("data_level0.bin", count * size), ("length.bin", 0)):
            file = header.with_name(name)
            status = file.stat()
            if status.st_mtime_ns >= since and status.st_size > start:
                with file.open("r+b") as opened:
                    opened.seek(start)
                    opened.write(bytes(status.st_size - start))


def _local_client(path: Path) -> Any:
    from memkit.index.server import chroma_settings

    settings = chroma_settings()
    import chromadb

    try:
        make_private_directory(str(path))
    except OSError as error:
        raise IndexStoreError(f"cannot open the index {path}: {error.strerror}") from error
    return _call(chromadb.PersistentClient, path=str(path), settings=settings)


def _remote_client(home: Home, uri: str) -> Any:
    from memkit.index.server import connect  # httpx, which an embedded store need not import

    return connect(home, uri)


def _all_metadata(collection: Collection, owner: str, source: str = "") -> list[tuple[str, Any]]:
    named = [{name: one} for name, one in (("owner", owner), ("source", source)) if one]
    where: dict[str, Any] = {"$and": named} if len(named) > 1 else (named[0] if named else {})
    rows = MOST_ROWS if owner else PAGE_ROWS
    found: list[tuple[str, Any]] = []
    while True:
        page = collection.get(limit=rows, offset=len(found), include=["metadatas"], where=where or None)
        found += zip(page["ids"], page["metadatas"] or [], strict=True)
        if len(page["ids"]) < rows:
            return found


def _window(chunk: str, number: int) -> str:
    return f"{chunk}#{number}" if number else chunk


def _call(function: Callable[..., Any], **arguments: Any) -> Any:
    try:
        return function(**arguments)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Chroma's Rust code is not an Exception
        line = shorten(one_line(f"{type(error).__name__}: {error}"), 300)
        raise IndexStoreError(f"the index cannot be used: {line}") from error


def fit_document(text: str) -> str:
    """Return as much of `text` as a record takes."""
    return _cut(text, MOST_DOCUMENT_BYTES)


def fit_metadata(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata whose texts, of any length, are cut to fit. Raise `ValueError` for too many keys."""
    if len(values) > MOST_KEYS:
        raise ValueError(f"a row has {len(values)} keys, and a server takes {MOST_KEYS}")
    return {
        name: _cut(value, MOST_VALUE_BYTES) if isinstance(value, str) else value
        for name, value in values.items()
    }


def fit_list(names: tuple[str, ...]) -> str:
    """Return the first of `names`, joined by commas, that a value takes."""
    joined = ",".join(names)
    if len(joined.encode("utf-8", "replace")) <= MOST_VALUE_BYTES:
        return joined
    return _cut(joined, MOST_VALUE_BYTES).rpartition(",")[0]


def _cut(text: str, most: int) -> str:
    # A lone surrogate has no UTF-8, and no server takes it.
    data = text.encode("utf-8", "replace")
    return data[:most].decode("utf-8", "ignore")
