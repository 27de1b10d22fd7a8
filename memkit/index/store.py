"""The vector index, in Chroma. Only this module and `damage` know Chroma's collections.

One collection holds the chunks of one project for one model. A chunk is a row with the vector of its first
window, and with the metadata that filters need. Further windows of a long chunk are rows of their own
(`<id>#1`, `<id>#2`, …) that carry only a vector. They are written before it and deleted after it, so a
chunk that exists is whole. A chunk that is not embedded yet has a placeholder vector and a mark in its
metadata.

An embedded store holds no text: the Markdown and the segments have it. On a server, where others can query
them, rows carry their text and all that a result shows.

Several memory homes may share one Chroma server, and even one collection there: two clones of a repository
have the same one. So on a server each row carries the id of its home (`owner`), in its metadata and before
its own id, and the name of the person (`author`). A home changes its own rows only, and never deletes a
collection: another home may be writing to it. `memkit.index.colleagues` reads the rows of others. An embedded
store belongs to one home.
"""

from __future__ import annotations

import os
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from memkit.embedding import import_chroma
from memkit.errors import IndexStoreError
from memkit.files import PRIVATE_FILE, make_private_directory, write_durably
from memkit.index.chunk import SHOWN_ID_CHARACTERS, Chunk, number_of_text
from memkit.index.damage import PAGE_ROWS, in_use_marker
from memkit.index.quotas import MOST_ROWS, fit_document, fit_list, fit_metadata
from memkit.paths import Home
from memkit.settings import CLOUD, is_server
from memkit.text import one_line, shorten

if TYPE_CHECKING:
    import numpy as np
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection
    from chromadb.config import Settings as ChromaSettings
    from numpy.typing import NDArray

BATCH_ROWS = 1000
"""Rows to write or read in one call; Chroma's own limit is above 5,000."""

PLACEHOLDER_DIMENSIONS = 384
"""The length of placeholder vectors in a new collection, as of the default model."""

_EMBEDDED_GRAPH = {"max_neighbors": 4, "ef_construction": 8}
"""The graph of an embedded Chroma: as small as possible.

Searches read vectors from the segments, so nothing asks an embedded Chroma for neighbors. The default graph
costs a first build three times the processor time, and each new vector changes more of its files.
"""

SERVER_GRAPH = {"ef_search": 5000}
"""How many neighbors a server looks at. Among a million rows of random vectors, the nearest row is found for
97 % of questions, in 63 ms, and with Chroma's default of 100 for 15 %, in 23 ms.
"""

_LIST_FIELDS = {"turns": "turns", "citations": "grips"}  # field: name in Chroma
_FILTER_FIELDS = ("source", "session", "kind", "branch")
_PLAIN_FIELDS = tuple(
    field.name for field in fields(Chunk) if field.name not in ("content", "source_hash", *_LIST_FIELDS)
)
"""The fields of a chunk that rows carry on a server; an embedded store has `_FILTER_FIELDS` alone."""

_OLD_FIELD = "breadcrumb"
"""A field of embedded rows with text, as older versions wrote them."""

_OWNER = re.compile(r"[0-9a-f]{32}")


Metadata = dict[str, Any]

@dataclass(frozen=True, slots=True)
class Row:
    """One stored chunk and its vectors (windows, dimensions), None if it is not embedded."""

    id: str
    chunk: Chunk
    vectors: NDArray[np.float32] | None

    @property
    def windows(self) -> int:
        """The number of its rows in the collection."""
        return 1 if self.vectors is None else len(self.vectors)


class _Batch:
    def __init__(self) -> None:
        self.ids: list[str] = []
        self.vectors: list[Any] = []
        self.metadatas: list[Metadata] = []
        self.texts: list[str] = []

    def add(self, name: str, vector: Any, metadata: Metadata, text: str) -> None:
        self.ids.append(name)
        self.vectors.append(vector)
        self.metadatas.append(metadata)
        self.texts.append(text)


class Store:
    """One open collection, and a context manager that closes it.

    Open it under the index lock only: one directory must never have two clients. Every method may raise
    `IndexStoreError`.
    """

    problem = ""
    """Why nothing is written any more, see `memkit.index.outbox`."""

    def __init__(
        self, home: Home, uri: str, name: str, *, rebuild: bool = False, author: str = ""
    ) -> None:
        """Open or create the collection `name`; `rebuild` empties it first. Rows on a server name `author`.

        `uri` is empty for the directory under the memory home, or another path, or the
        `http(s)://host:port` of a Chroma server, or `cloud`.
        """
        self._path = path = directory(home, uri)
        self._owner = owner_of(home) if path is None else ""
        self._author = author
        self._prefix = f"{self._owner}:" if self._owner else ""
        # Vectors have length 1, so the inner product is the cosine. With the cosine metric, Chroma would
        # scale them again and return others than it was given.
        self._graph: dict[str, Any] = {"space": "ip"}
        if uri != CLOUD:  # which has another kind of index
            self._graph |= SERVER_GRAPH if self._owner else _EMBEDDED_GRAPH
        self._had_text = False  # whether an older version wrote rows of an embedded store, with their text
        try:
            self._client = _embedded_client(path) if path is not None else _remote_client(home, uri)
            self._collection: Collection = _call(
                _collection, client=self._client, name=name, owner=self._owner, graph=self._graph,
                rebuild=rebuild,
            )  # fmt: skip
        except IndexStoreError:
            _forget_clients()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close Chroma's client."""
        _call(self._client.close)  # type: ignore[attr-defined]  # Chroma's protocol lacks it
        if self._path is not None:
            from memkit.index import purge  # which imports this module

            _call(purge.erase_files if self._had_text else purge.trim_vector_files, path=self._path)
            in_use_marker(self._path).unlink(missing_ok=True)

    @property
    def dimensions(self) -> int | None:
        """The length of all vectors, also of placeholders; None if there are none."""
        found = _call(self._collection.get, limit=1, include=["embeddings"])["embeddings"]
        return len(found[0]) if len(found) else None

    @property
    def is_away(self) -> bool:
        """Whether nothing is read or written now; see `memkit.index.outbox`."""
        return False

    @property
    def identity(self) -> str:
        """The id of the collection. One that is made again has another."""
        return str(self._collection.id)

    def count(self) -> int:
        """Return the number of all rows, those of other homes too."""
        return int(_call(self._collection.count))

    def stored(self, source: str = "") -> dict[str, Metadata]:
        """Return the metadata of all chunks by id, or of those of a file; remove what a killed run left.

        A chunk that lost a window counts as not embedded. Rows that memkit did not write count as chunks, so
        that the caller deletes them.
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
                self._had_text |= not self._owner and _OLD_FIELD in found[name]
        self._delete([name for name in windows if name.partition("#")[0] not in found])
        have = Counter(name.partition("#")[0] for name in windows)
        for name, metadata in found.items():
            count = metadata.get("windows")
            if isinstance(count, int) and count > 1 and have[name] < count - 1:
                metadata |= {"windows": 0, "held": count}
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

    def vectors(self, windows: Mapping[str, int]) -> dict[str, NDArray[np.float32]]:
        """Return the vectors of chunks, given with the number of their windows; leave out incomplete ones."""
        import numpy as np

        names = [_window(chunk, n) for chunk, count in windows.items() for n in range(count)]
        rows: dict[str, Any] = {}
        for batch in self._batches(names):
            got = _call(self._collection.get, ids=batch, limit=len(batch), include=["embeddings"])
            own = (row.removeprefix(self._prefix) for row in got["ids"])
            rows |= zip(own, got["embeddings"], strict=True)
        found = {}
        for chunk, count in windows.items():
            parts = [rows.get(_window(chunk, n)) for n in range(count)]
            if parts and all(part is not None for part in parts):
                found[chunk] = np.asarray(parts, np.float32)
        return found

    def _batches(self, ids: Sequence[str]) -> Iterator[list[str]]:
        for start in range(0, len(ids), self._batch_rows):
            yield [f"{self._prefix}{row}" for row in ids[start : start + self._batch_rows]]

    @property
    def _batch_rows(self) -> int:
        return MOST_ROWS if self._owner else BATCH_ROWS

    def put(self, rows: Sequence[Row]) -> None:
        """Write rows. A row must not have fewer windows than the one with the same id that it replaces."""
        import numpy as np

        if not rows:
            return
        dimensions = next((r.vectors.shape[1] for r in rows if r.vectors is not None), None)
        dimensions = dimensions or self.dimensions or PLACEHOLDER_DIMENSIONS
        placeholder = np.eye(1, dimensions, dtype=np.float32)
        batch = _Batch()
        for row in rows:
            own = placeholder if row.vectors is None else row.vectors
            for number in reversed(range(len(own))):
                metadata = self.describe(row)
                if number and self._owner:  # what the filters of others' searches need
                    metadata = {name: metadata[name] for name in (*_FILTER_FIELDS, "day", "owner")}
                if number:
                    metadata = {**(metadata if self._owner else {}), "window": number}
                text = fit_document(row.chunk.content) if self._owner and not number else ""
                batch.add(f"{self._prefix}{_window(row.id, number)}", own[number], metadata, text)
                if len(batch.ids) == self._batch_rows:
                    self._upsert(batch)
                    batch = _Batch()
        self._upsert(batch)

    def _upsert(self, batch: _Batch) -> None:
        if batch.ids:
            texts = {"documents": batch.texts} if self._owner else {}
            _call(
                self._collection.upsert,
                ids=batch.ids,
                embeddings=batch.vectors,
                metadatas=batch.metadatas,
                **texts,
            )

    def rewrite(self) -> None:
        """Write the collection again, without deleted vectors. If this is killed, the next pass fills it."""
        pages = _call(_all_rows, collection=self._collection, owner=self._owner)
        self._collection = _call(
            _collection, client=self._client, name=self._collection.name, owner=self._owner,
            graph=self._graph, rebuild=True,
        )  # fmt: skip
        # The first vector decides on the length. A placeholder for a missing one should not.
        for with_vectors in (True, False):
            batch = _Batch()
            for name, vector, metadata, text in pages:
                if (metadata.get("windows", 1) > 0) is with_vectors:
                    batch.add(name, vector, metadata, text)
                    if len(batch.ids) == BATCH_ROWS:
                        self._upsert(batch)
                        batch = _Batch()
            self._upsert(batch)

    def delete(self, chunks: Mapping[str, int]) -> None:
        """Remove chunks, given with the number of their windows."""
        windows = (_window(c, number) for c, count in chunks.items() for number in range(1, count))
        self._delete([*chunks, *windows])

    def drop(self, name: str) -> None:
        """Remove another collection if it exists; on a server, only this home's rows of it."""
        _call(_drop, client=self._client, name=name, owner=self._owner)

    def _delete(self, ids: Sequence[str]) -> None:
        for batch in self._batches(ids):
            _call(self._collection.delete, ids=batch)


def directory(home: Home, uri: str) -> Path | None:
    """Return the directory of an embedded index; None for a server or the cloud."""
    if is_server(uri):
        return None
    return Path(uri).expanduser() if uri else Path(home.index) / "chroma"


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


def _chroma_settings() -> ChromaSettings:
    import_chroma()
    from chromadb.config import Settings

    return Settings(anonymized_telemetry=False, _env_file=None)  # type: ignore[call-arg]


def _embedded_client(path: Path) -> ClientAPI:
    settings = _chroma_settings()
    import chromadb

    try:
        make_private_directory(str(path))
        in_use_marker(path).touch(PRIVATE_FILE)
    except OSError as error:
        raise IndexStoreError(f"cannot open the index {path}: {error.strerror}") from error
    return cast("ClientAPI", _call(chromadb.PersistentClient, path=str(path), settings=settings))


def _remote_client(home: Home, uri: str) -> ClientAPI:
    from memkit.index.server import connect  # httpx, which an embedded store need not import

    return cast("ClientAPI", connect(home, uri))


def _forget_clients() -> None:
    """Clear the clients that Chroma caches by directory, even those that it could not open."""
    from chromadb.api.shared_system_client import SharedSystemClient

    SharedSystemClient.clear_system_cache()


def _collection(
    client: ClientAPI, name: str, owner: str, graph: dict[str, Any], rebuild: bool
) -> Collection:
    if rebuild:
        _drop(client, name, owner)
    old = None if owner else _find(client, name)  # another home may be about to write to one on a server
    # A collection that has held a vector accepts no other length, even when it is empty.
    if old is not None and not old.get(limit=1, include=[])["ids"]:  # much faster than counting
        client.delete_collection(name)
    settings: Any = {"hnsw": graph}
    found = client.get_or_create_collection(name, embedding_function=None, configuration=settings)
    searched = graph.get("ef_search")
    if searched and (found.configuration_json.get("hnsw") or {}).get("ef_search") != searched:
        found.modify(configuration={"hnsw": {"ef_search": searched}})  # an older memkit made it
    return found


def _find(client: ClientAPI, name: str) -> Collection | None:
    from chromadb.errors import NotFoundError

    try:
        return client.get_collection(name, embedding_function=None)
    except NotFoundError:
        return None


def _drop(client: ClientAPI, name: str, owner: str) -> None:
    old = _find(client, name)
    if old is None:
        return
    if owner:
        ids = [row for row, _ in _all_metadata(old, owner)]
        for start in range(0, len(ids), MOST_ROWS):
            old.delete(ids=ids[start : start + MOST_ROWS])
    else:
        client.delete_collection(name)


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


def _all_rows(collection: Collection, owner: str) -> list[tuple[str, Any, Metadata, str]]:
    options: dict[str, Any] = {"where": {"owner": owner}} if owner else {}
    options["include"] = ["embeddings", "metadatas", "documents"]
    found: list[tuple[str, Any, Metadata, str]] = []
    while True:
        page: Any = collection.get(limit=PAGE_ROWS, offset=len(found), **options)
        texts = (text or "" for text in page["documents"] or [])
        metadatas = (dict(one or {}) for one in page["metadatas"] or [])
        found += zip(page["ids"], page["embeddings"], metadatas, texts, strict=True)
        if len(page["ids"]) < PAGE_ROWS:
            return found


def _window(chunk: str, number: int) -> str:
    return f"{chunk}#{number}" if number else chunk


def text_number(metadata: Metadata) -> int | None:
    """Return the `text_number` of the chunk that a row was made of; None if it is not memkit's."""
    if "text" in metadata:
        return int(metadata["text"])
    try:  # of an earlier version
        return number_of_text(
            metadata["breadcrumb"], metadata["content_hash"], metadata["whole"], metadata["kind"]
        )
    except KeyError:
        return None


def _call(function: Callable[..., Any], **arguments: Any) -> Any:
    try:
        return function(**arguments)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Chroma's Rust code is not an Exception
        line = shorten(one_line(f"{type(error).__name__}: {error}"), 300)
        raise IndexStoreError(f"the index cannot be used: {line}") from error
