"""The vector index, in Chroma. The one module that knows Chroma.

One collection holds the chunks of one project for one model. A chunk is a row with its text, its
metadata and the vector of its first window; further windows of a long chunk are rows of their own
(`<id>#1`, `<id>#2`, …) that carry only a vector. A chunk that could not be embedded yet has a
placeholder vector and says so in its metadata.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from memkit.errors import IndexStoreError
from memkit.index.chunk import Chunk
from memkit.paths import Home, make_private_directory

if TYPE_CHECKING:
    import numpy as np
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection
    from numpy.typing import NDArray

logger = logging.getLogger(__name__)

BATCH_ROWS = 1000
"""Rows written or read in one call; Chroma's own limit is above 5,000."""

PLACEHOLDER_DIMENSIONS = 384
"""The length of placeholder vectors: the default model's."""

CLOUD = "cloud"
_DAMAGED_SUFFIX = ".damaged"


@dataclass(frozen=True, slots=True)
class Row:
    """One stored chunk: its id, the chunk, and its vectors (windows, dimensions); None if not embedded."""

    id: str
    chunk: Chunk
    vectors: NDArray[np.float32] | None

    @property
    def dimensions(self) -> int:
        """The length of the stored vectors; a placeholder's too."""
        return PLACEHOLDER_DIMENSIONS if self.vectors is None else int(self.vectors.shape[1])

    @property
    def windows(self) -> int:
        """How many rows of the collection it takes."""
        return 1 if self.vectors is None else len(self.vectors)


class Store:
    """One open collection. Opened under the index lock only: never two clients on one directory."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    @classmethod
    def open(cls, home: Home, uri: str, name: str, *, anew: bool = False) -> Store:
        """Open or create the collection `name`; `anew` empties it first.

        `uri` is empty for the directory under the memory home, another path, `http(s)://host:port`
        of a Chroma server, or `cloud`. An embedded index that cannot be read is moved aside and a new
        one begun: it is derived, so everything comes back. Raises `IndexStoreError`.
        """
        path = directory(home, uri)
        if path is None:
            return cls(_collection(_remote_client(uri), name, anew))
        try:
            return cls(_collection(_embedded_client(path), name, anew))
        except IndexStoreError as error:
            aside = move_aside(path)
            logger.warning("the index %s cannot be read (%s); kept as %s", path, error, aside)
            return cls(_collection(_embedded_client(path), name, anew))

    def ids(self) -> list[str]:
        """The ids of all chunks, in no particular order."""
        found = self._call(self._collection.get, include=[])["ids"]
        return [row for row in found if "#" not in row]

    def rows(self) -> Iterator[Row]:
        """All chunks with their vectors, in the order of their ids."""
        import numpy as np

        windows: dict[str, list[tuple[int, Any]]] = {}
        owners: list[str] = []
        for row in self._call(self._collection.get, include=[])["ids"]:
            owner, _, number = row.partition("#")
            windows.setdefault(owner, [])
            if number:
                windows[owner].append((int(number), row))
            else:
                owners.append(owner)
        owners.sort()
        for start in range(0, len(owners), BATCH_ROWS):
            batch = owners[start : start + BATCH_ROWS]
            extra = [row for owner in batch for _, row in sorted(windows[owner])]
            got = self._call(
                self._collection.get,
                ids=batch + extra,
                include=["metadatas", "documents", "embeddings"],
            )
            columns = zip(got["metadatas"], got["documents"], got["embeddings"], strict=True)
            by_id = dict(zip(got["ids"], columns, strict=True))
            for owner in batch:
                metadata, document, vector = by_id[owner]
                vectors = [vector, *(by_id[row][2] for _, row in sorted(windows[owner]))]
                stacked = np.asarray(vectors, dtype=np.float32) if metadata["embedded"] else None
                yield Row(owner, _chunk(metadata, document), stacked)

    def put(self, rows: Sequence[Row]) -> None:
        """Write rows, replacing those with the same ids. Raises `IndexStoreError`."""
        for start in range(0, len(rows), BATCH_ROWS):
            self._put_batch(rows[start : start + BATCH_ROWS])

    def _put_batch(self, rows: Sequence[Row]) -> None:
        ids: list[str] = []
        vectors: list[Any] = []
        documents: list[str] = []
        metadatas: list[dict[str, Any]] = []
        for row in rows:
            placeholder = [1.0] + [0.0] * (PLACEHOLDER_DIMENSIONS - 1)
            own = [placeholder] if row.vectors is None else list(row.vectors)
            for number, vector in enumerate(own):
                ids.append(f"{row.id}#{number}" if number else row.id)
                vectors.append(vector)
                documents.append("" if number else row.chunk.content)
                metadatas.append({"window": number} if number else _metadata(row))
        self._call(
            self._collection.upsert,
            ids=ids,
            embeddings=vectors,
            documents=documents,
            metadatas=metadatas,
        )

    def note_source_hash(self, ids: Sequence[str], source_hash: str) -> None:
        """Say that these chunks stand unchanged in a file that now has `source_hash`."""
        for start in range(0, len(ids), BATCH_ROWS):
            batch = list(ids[start : start + BATCH_ROWS])
            self._call(
                self._collection.update,
                ids=batch,
                metadatas=[{"source_hash": source_hash}] * len(batch),
            )

    def delete(self, chunks: Mapping[str, int]) -> None:
        """Remove chunks; the values say how many windows each has."""
        ids = [
            f"{chunk}#{number}" if number else chunk
            for chunk, windows in chunks.items()
            for number in range(max(1, windows))
        ]
        for start in range(0, len(ids), BATCH_ROWS):
            self._call(self._collection.delete, ids=ids[start : start + BATCH_ROWS])

    def _call(self, function: Any, **arguments: Any) -> Any:
        try:
            return function(**arguments)
        except Exception as error:
            raise IndexStoreError(_one_line(error)) from error


def directory(home: Home, uri: str) -> Path | None:
    """Where an embedded index lies; None for a server or the cloud."""
    if uri == CLOUD or urlsplit(uri).scheme in ("http", "https"):
        return None
    return Path(uri).expanduser() if uri else Path(home.index) / "chroma"


def move_aside(path: Path) -> Path:
    """Rename a directory that cannot be used; only the latest such copy is kept. Returns its new path."""
    import shutil

    aside = path.with_name(path.name + _DAMAGED_SUFFIX)
    if aside.exists():
        shutil.rmtree(aside)
    path.rename(aside)
    return aside


def _embedded_client(path: Path) -> ClientAPI:
    import chromadb  # one second, only where the index is written
    from chromadb.config import Settings

    try:
        make_private_directory(str(path))
        return chromadb.PersistentClient(str(path), settings=Settings(anonymized_telemetry=False))
    except OSError as error:
        raise IndexStoreError(f"cannot open the index {path}: {error}") from error
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        raise IndexStoreError(f"cannot open the index {path}: {_one_line(error)}") from error


def _remote_client(uri: str) -> ClientAPI:
    import chromadb
    from chromadb.config import Settings

    settings = Settings(anonymized_telemetry=False)
    try:
        if uri == CLOUD:
            return chromadb.CloudClient(settings=settings)
        parts = urlsplit(uri)
        return chromadb.HttpClient(
            host=parts.hostname or "localhost",
            port=parts.port or (443 if parts.scheme == "https" else 8000),
            ssl=parts.scheme == "https",
            settings=settings,
        )
    except Exception as error:
        raise IndexStoreError(
            f"cannot reach the Chroma server of index.uri = {uri!r}: {_one_line(error)}"
        ) from error


def _collection(client: ClientAPI, name: str, anew: bool) -> Collection:
    try:
        if anew and name in (collection.name for collection in client.list_collections()):
            client.delete_collection(name)
        return client.get_or_create_collection(
            name, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        raise IndexStoreError(f"collection {name}: {_one_line(error)}") from error


def _one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _metadata(row: Row) -> dict[str, Any]:
    chunk = row.chunk
    return {
        "source": chunk.source,
        "heading": chunk.heading,
        "breadcrumb": chunk.breadcrumb,
        "level": chunk.level,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "content_hash": chunk.content_hash,
        "kind": chunk.kind,
        "date": chunk.date,
        "session": chunk.session,
        "turns": ",".join(chunk.turns),
        "branch": chunk.branch,
        "domain": chunk.domain,
        "instruction": chunk.instruction,
        "source_hash": chunk.source_hash,
        "embedded": row.vectors is not None,
        "window": 0,
    }


def _chunk(metadata: dict[str, Any], document: str) -> Chunk:
    fields = {k: v for k, v in metadata.items() if k not in ("embedded", "window", "turns")}
    turns = tuple(turn for turn in metadata["turns"].split(",") if turn)
    return Chunk(content=document, turns=turns, **fields)
