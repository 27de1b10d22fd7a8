"""Read colleagues' rows in a collection on a server: those near a question, and one by its id.

Their text is untrusted, like everything in a memory: it is shown as data, with the author's name, and none of
its values becomes a path or a filter. The rows of this home are left out: the segments have them, and rank
them exactly.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memkit.embedding.models import space
from memkit.errors import IndexStoreError
from memkit.files import read_head
from memkit.index.catalog import COLLECTION_PREFIX, collection_name, holder_of
from memkit.index.chunk import CHUNK_FIELDS, KINDS, SHOWN_ID_CHARACTERS, Chunk, harmless_id
from memkit.index.lexical import LexicalIndex
from memkit.index.segment import Columns, make_columns
from memkit.index.snapshot import Snapshot
from memkit.index.store import fit_document, fit_metadata
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.settings import is_server
from memkit.settings.load import Settings
from memkit.text import one_line, shorten

NEAREST_ROWS = 100
"""Rows to ask for at once. The windows of a long chunk are rows of their own."""

ENOUGH_ROWS = 20
"""With fewer that pass a filter, the server applies it."""

UNNAMED = "a colleague"
"""The author of a row without a name."""

_AUTHOR_CHARACTERS = 80
_ROW = re.compile(r"(?P<owner>[0-9a-f]{32}):(?P<chunk>[0-9a-f]{64})(?:#[0-9]+)?")
_TEXTS = (
    "source", "heading", "breadcrumb", "content_hash", "kind", "date", "session", "branch", "domain",
    "entry_id",
)  # fmt: skip
_NUMBERS = ("level", "start_line", "end_line")
_INCLUDED = ["metadatas", "documents"]


@dataclass(frozen=True, slots=True)
class ColleagueRow:
    """A chunk of another home, its full id, the name of its author, and its cosine with the question."""

    id: str
    author: str
    chunk: Chunk
    cosine: float = 0.0
    text: int | None = None


@dataclass(frozen=True, slots=True)
class Conditions:
    """The filters of a search, as far as a server can apply them. Days are ordinals; empty ones are none."""

    since: int = 0
    until: int = 0
    kind: str = ""
    branch: str = ""
    session: str = ""

    def where(self, owner: str = "") -> dict[str, Any]:
        """Return Chroma's filter, for the rows of all homes but `owner`; {} for all rows."""
        terms: list[dict[str, Any]] = [{"owner": {"$ne": owner}}] if owner else []
        terms += [{"day": {"$gte": max(1, self.since)}}] if self.since or self.until else []
        terms += [{"day": {"$lte": self.until}}] if self.until else []
        named = {"kind": self.kind, "branch": self.branch, "session": self.session}
        terms += [{name: {"$eq": value}} for name, value in named.items() if value]
        return {"$and": terms} if len(terms) > 1 else (terms[0] if terms else {})

    def meets(self, metadata: Any) -> bool:
        """Return whether a row with this metadata passes the filter."""
        if not isinstance(metadata, Mapping):
            return False
        day = _of_type(metadata, "day", int, 0)
        in_time = not (self.since or self.until) or max(1, self.since) <= day <= (self.until or day)
        named = {"kind": self.kind, "branch": self.branch, "session": self.session}
        return in_time and all(metadata.get(name) == value for name, value in named.items() if value)


class Colleagues:
    """The rows of other homes in the collection of a project. Every method may raise `IndexStoreError`."""

    def __init__(self, home: Home, uri: str, name: str) -> None:
        self._home = home
        self._uri = uri
        self._name = name

    def nearest(self, vector: NDArray[np.float32], conditions: Conditions) -> list[ColleagueRow]:
        """Return the chunks that are nearest to a question's `vector`, without duplicates."""
        collection = self._collection()
        if collection is None:
            return []
        cosines: dict[str, float] = {}
        rows: dict[str, tuple[Any, Any]] = {}
        # A filter that most rows pass costs Chroma far more than the search: at 100,000 rows, on a busy
        # machine, 2.2 s instead of 0.14. So ask without one first, and again only if too few rows are of use.
        asked, owned = self._query(collection, vector, {})
        found = [one for one in asked if conditions.meets(one[1])]
        if len(found) < ENOUGH_ROWS and len(asked) + owned == NEAREST_ROWS:
            where = conditions.where(self._owner if owned >= NEAREST_ROWS // 2 else "")
            # Among a million rows, that takes longer than a search waits. What came back is of use, too.
            with contextlib.suppress(IndexStoreError):
                found = self._query(collection, vector, where, is_needed=False)[0]
        for name, metadata, text, cosine in found:
            main = name.partition("#")[0]
            cosines[main] = max(cosines.get(main, -1.0), cosine)
            if main == name:
                rows[main] = metadata, text
        if others := [name for name in cosines if name not in rows]:
            more = self._ask(collection.get, ids=others, limit=len(others), include=_INCLUDED)
            rows |= {
                name: row
                for name, *row in zip(more["ids"], more["metadatas"], more["documents"], strict=True)
            }
        best: dict[str, ColleagueRow] = {}
        for name in sorted(cosines, key=lambda one: -cosines[one]):
            row = _row(name, *rows.get(name, (None, None)), cosine=cosines[name])
            if row is not None:
                best.setdefault(row.id, row)
        return list(best.values())

    def _query(
        self, collection: Any, vector: NDArray[np.float32], where: dict[str, Any], *, is_needed: bool = True
    ) -> tuple[list[tuple[str, Any, Any, float]], int]:
        """Return the nearest rows of others (id, metadata, text, cosine), and how many were of this home."""
        got = self._ask(
            collection.query, is_needed=is_needed, query_embeddings=[vector], n_results=NEAREST_ROWS,
            where=where or None, include=[*_INCLUDED, "distances"],
        )  # fmt: skip
        columns = (got[name][0] for name in ("ids", *_INCLUDED, "distances"))
        rows = [
            (str(name), metadata, text, 1.0 - float(distance))
            for name, metadata, text, distance in zip(*columns, strict=True)
        ]
        others = [row for row in rows if not self._owner or not row[0].startswith(f"{self._owner}:")]
        return others, len(rows) - len(others)

    def named(self, prefix: str) -> ColleagueRow | None:
        """Return the chunk with an id as results show it."""
        collection = self._collection()
        key = "entry_id" if harmless_id(prefix) else "short"
        if collection is None or not re.fullmatch("[0-9a-f]{8,64}", prefix):
            return None
        got = self._ask(
            collection.get, where={key: prefix[:SHOWN_ID_CHARACTERS]}, limit=10, include=_INCLUDED
        )
        found = (_row(*one) for one in zip(got["ids"], got["metadatas"], got["documents"], strict=True))
        return next((one for one in found if one and (key != "short" or one.id.startswith(prefix))), None)

    @functools.cached_property
    def _owner(self) -> str:
        try:
            return read_head(self._home.owner, 100).decode("ascii", "replace").strip()
        except OSError:  # this home has not written anything yet
            return ""

    def _collection(self) -> Any:
        from memkit.index.server import connect

        client = connect(self._home, self._uri, for_search=True)
        from chromadb.errors import NotFoundError

        try:
            return self._ask(client.get_collection, name=self._name)
        except IndexStoreError as error:
            if isinstance(error.__cause__, NotFoundError):
                return None
            raise

    def _ask(self, function: Any, *, is_needed: bool = True, **arguments: Any) -> Any:
        """Call the server. If that fails and `is_needed`, leave the server alone for a moment."""
        from chromadb.errors import NotFoundError

        try:
            return function(**arguments)
        except Exception as error:
            reason = shorten(one_line(f"{type(error).__name__}: {error}"), 300)
            problem = f"the Chroma server {self._uri} did not answer a search: {reason}"
            if is_needed and not isinstance(error, NotFoundError):
                from memkit.index.server import note_away

                note_away(self._home, self._uri, problem)
            raise IndexStoreError(problem) from error


def colleagues_of(project: Project, home: Home, settings: Settings) -> Colleagues | None:
    """Return where to ask for the rows of others, or None if the project shares none.

    Only a remote of git makes two clones one project: a path such as `/workspace` is that of many.
    """
    uri = settings.index.uri
    if not is_server(uri) or project.root == home.root:
        return None
    name = collection_name(project, home, space(settings.embedding))
    if holder_of(home, name.removeprefix(COLLECTION_PREFIX).partition("-")[0]) != project.root:
        return None
    return Colleagues(home, uri, name)


class ColleagueRows(Snapshot):
    """Rows of colleagues as a search ranks them: like a snapshot, but in memory."""

    def __init__(self, rows: Sequence[ColleagueRow], root: str, language: str) -> None:
        self.segments = []
        self.runs = []
        self.entries = {}
        self.language = language
        self._rows = sorted(rows, key=lambda one: (one.chunk.source, one.chunk.start_line, one.id))
        self._root = root

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def root(self) -> str:
        """As for `Snapshot`."""
        return self._root

    @functools.cached_property
    def _joined(self) -> Columns:
        return make_columns([one.chunk for one in self._rows])

    @functools.cached_property
    def owners(self) -> NDArray[np.int32]:
        """As for `Snapshot`: one vector for each chunk."""
        return np.arange(len(self._rows), dtype=np.int32)

    def similarities(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the cosines with the question, as the server gave them."""
        return np.array([one.cosine for one in self._rows], np.float32)

    def vectors_at(self, position: int) -> NDArray[np.float32]:
        """Return no direction: vectors are not asked for."""
        return np.zeros((1, 1), np.float32)

    @functools.cached_property
    def lexical(self) -> LexicalIndex:
        """As for `Snapshot`."""
        return LexicalIndex.of((one.chunk.lexical_text for one in self._rows), self.language)

    def chunk(self, position: int) -> Chunk:
        """As for `Snapshot`."""
        return self._rows[position].chunk

    def turns(self, position: int) -> list[str]:
        """As for `Snapshot`."""
        return list(self._rows[position].chunk.turns)

    def id(self, position: int) -> str:
        """As for `Snapshot`."""
        return self._rows[position].id

    def author(self, position: int) -> str:
        """As for `Snapshot`."""
        return self._rows[position].author


def _row(name: str, metadata: Any, text: Any, cosine: float = 0.0) -> ColleagueRow | None:
    match = _ROW.fullmatch(name)
    if match is None or not isinstance(metadata, Mapping) or not isinstance(text, str) or not text:
        return None
    # A server of one's own keeps no quotas: whoever writes there may write anything.
    values = fit_metadata({one: _of_type(metadata, one, str, "") for one in _TEXTS})
    values |= {one: max(0, _of_type(metadata, one, int, 0)) for one in _NUMBERS}
    values |= {one: _of_type(metadata, one, bool, False) for one in ("whole", "instruction")}
    values["entry_id"] = harmless_id(values["entry_id"])
    if values["kind"] not in KINDS:
        return None
    try:
        date.fromisoformat(values["date"] or "2026-01-01")
    except ValueError:
        return None
    values |= {
        one: tuple(filter(None, _of_type(metadata, CHUNK_FIELDS.get(one, one), str, "").split(",")))
        for one in ("turns", "citations")
    }
    number = metadata.get("text")
    return ColleagueRow(
        match["chunk"],
        one_line(_of_type(metadata, "author", str, ""), _AUTHOR_CHARACTERS) or UNNAMED,
        Chunk(content=fit_document(text), source_hash="", **values),
        cosine,
        number if isinstance(number, int) else None,
    )


def _of_type(metadata: Mapping[str, Any], name: str, wanted: type, otherwise: Any) -> Any:
    value = metadata.get(name)
    return value if type(value) is wanted else otherwise
