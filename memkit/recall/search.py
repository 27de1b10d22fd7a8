"""Search: a question in, ranked chunks out, from a snapshot that is in step with the markdown."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from memkit.config import SearchSettings, Settings
from memkit.errors import EmbeddingError, IndexStoreError
from memkit.index.chunk import Chunk
from memkit.index.current import MemoryFile, is_in_step, open_snapshot, read_files
from memkit.index.lock import index_lock
from memkit.index.snapshot import SHOWN_ID_CHARACTERS, Snapshot
from memkit.index.sync import sync_project
from memkit.paths import Home
from memkit.project import Project
from memkit.recall import fusion

if TYPE_CHECKING:
    from memkit.index.embedding import Embedder

logger = logging.getLogger(__name__)

WAIT_SECONDS = 5.0
"""How long a search waits for another process that writes the index, if it has an older one to read."""

FIRST_WAIT_SECONDS = 120.0
"""How long it waits if there is no index at all yet."""


@dataclass(frozen=True, slots=True)
class Result:
    """One found chunk. `id` is shortened as shown; `dense` is None if the chunk has no vector."""

    id: str
    score: float
    chunk: Chunk
    lexical: float
    dense: float | None
    context: float

    def as_dict(self) -> dict[str, Any]:
        """As `memkit search --json` prints it."""
        fields = (
            "source", "start_line", "end_line", "heading", "breadcrumb", "kind", "date", "session",
            "turns", "branch", "content",
        )  # fmt: skip
        chosen = {name: getattr(self.chunk, name) for name in fields}
        return {
            "id": self.id,
            "score": self.score,
            **chosen,
            "turns": list(self.chunk.turns),
            "scores": {"lexical": self.lexical, "dense": self.dense, "context": self.context},
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """The results of one query, best first.

    `degraded` is empty, or one line that says what is missing from the answer and why.
    """

    query: str
    mode: str
    degraded: str
    took_ms: float
    results: list[Result]

    def as_dict(self) -> dict[str, Any]:
        """As `memkit search --json` prints it."""
        return {
            "query": self.query,
            "mode": self.mode,
            "degraded": bool(self.degraded),
            **({"degraded_reason": self.degraded} if self.degraded else {}),
            "took_ms": self.took_ms,
            "results": [result.as_dict() for result in self.results],
        }


class Searcher:
    """Answers queries about one project. Holds the snapshot and the model, so ask it often."""

    def __init__(
        self,
        snapshot: Snapshot | None,
        settings: SearchSettings,
        embedder: Embedder | None,
        notes: list[str],
    ) -> None:
        self.snapshot = snapshot
        self.settings = settings
        self.embedder = embedder
        self.notes = notes
        if snapshot is not None:
            self._layout = fusion.Layout(
                np.asarray(snapshot.lengths), np.asarray(snapshot.session_codes)
            )
            # BM25 keeps its ids sorted; positions are ours.
            self._by_id = np.argsort(snapshot.ids, kind="stable")

    def search(self, query: str, k: int | None = None) -> Answer:
        """The `k` best chunks (by default as the settings say) for `query`."""
        started = time.perf_counter()
        results = [] if self.snapshot is None else self._rank(query, k or self.settings.k)
        took = round((time.perf_counter() - started) * 1000, 3)
        return Answer(query, self.settings.mode, "; ".join(self.notes), took, results)

    def _rank(self, query: str, k: int) -> list[Result]:
        assert self.snapshot is not None
        size = len(self.snapshot)
        if size == 0 or not query.strip():
            return []
        lexical = np.empty(size)
        lexical[self._by_id] = self.snapshot.lexical.query(query).scores
        dense = self._similarities(query)
        context = fusion.context(lexical, dense, self._layout, self.settings)
        mode = self.settings.mode
        if mode == "lexical" or (mode == "dense" and dense is None):
            scores = lexical
        else:
            scores = dense if mode == "dense" and dense is not None else context
        best = np.argsort(-scores, kind="stable")[:k]
        return [
            self._result(int(n), scores, lexical, dense, context) for n in best if scores[n] > 0
        ]

    def _similarities(self, query: str) -> fusion.Scores | None:
        """The cosine of each chunk with the query; None without vectors or without a model."""
        if self.embedder is None or self.snapshot is None or not len(self.snapshot.vectors):
            return None
        vector = self.embedder.embed([query])[0]
        similarities = np.asarray(self.snapshot.vectors @ vector, dtype=np.float64)
        return fusion.best_window(
            similarities, np.asarray(self.snapshot.owners), len(self.snapshot)
        )

    def _result(
        self,
        position: int,
        scores: fusion.Scores,
        lexical: fusion.Scores,
        dense: fusion.Scores | None,
        context: fusion.Scores,
    ) -> Result:
        assert self.snapshot is not None
        return Result(
            id=self.snapshot.id(position)[:SHOWN_ID_CHARACTERS],
            score=round(float(scores[position]), 6),
            chunk=self.snapshot.chunk(position),
            lexical=round(float(lexical[position]), 6),
            dense=None if dense is None else round(float(dense[position]), 6),
            context=round(float(context[position]), 6),
        )


def open_searcher(
    project: Project,
    home: Home,
    settings: Settings,
    announce: Callable[[str], None] = logger.info,
) -> Searcher:
    """A searcher over the project's memory as it is on disk at this moment.

    Edited files are indexed first. If that fails, or another process holds the index for too long, or
    the model is not to be had, the searcher answers from what there is and its `notes` say so. Raises
    `IndexStoreError` or `EmbeddingError` if there is nothing yet.
    """
    notes: list[str] = []
    files = read_files(project, home, settings)
    snapshot = open_snapshot(project, home, settings)
    if snapshot is None and not files:
        return Searcher(None, settings.search, None, notes)
    embedder: Embedder | None = None
    if settings.search.mode != "lexical":
        embedder = _load_embedder(home, settings, announce, notes)
    if _has_work(snapshot, files, settings, embedder):
        wait = FIRST_WAIT_SECONDS if snapshot is None else WAIT_SECONDS
        try:
            with index_lock(home, wait, announce):
                # What another process did while we waited counts, not what we read before.
                files = read_files(project, home, settings)
                newest = open_snapshot(project, home, settings)
                if _has_work(newest, files, settings, embedder):
                    sync_project(
                        project, home, settings, files=files, embedder=embedder, announce=announce
                    )
        except (IndexStoreError, EmbeddingError) as error:
            if snapshot is None:
                raise
            logger.warning("%s", error)
            notes.append(f"the newest entries may be missing: {error}")
        snapshot = open_snapshot(project, home, settings) or snapshot
    if snapshot is not None and embedder is not None and snapshot.missing:
        notes.append(f"searched {snapshot.missing} chunks by words alone: not embedded yet")
    return Searcher(snapshot, settings.search, embedder, notes)


def _has_work(
    snapshot: Snapshot | None,
    files: dict[str, MemoryFile],
    settings: Settings,
    embedder: Embedder | None,
) -> bool:
    """Whether the index is behind the files, or lacks vectors that could be had."""
    if snapshot is None or not is_in_step(snapshot, files, settings):
        return True
    return snapshot.missing > 0 and embedder is not None


def _load_embedder(
    home: Home, settings: Settings, announce: Callable[[str], None], notes: list[str]
) -> Embedder | None:
    from memkit.index.embedding import load_embedder

    chosen = settings.embedding
    if chosen.provider == "none":
        return None
    try:
        return load_embedder(
            home,
            provider=chosen.provider,
            model=chosen.model,
            allow_download=chosen.download,
            announce=announce,
        )
    except EmbeddingError as error:
        notes.append(f"searched by words alone: {error}")
        return None


def shortened(result: Result, characters: int) -> str:
    """The content of a result, cut to `characters` at a word with ` …`."""
    text = result.chunk.content.strip()
    if len(text) <= characters:
        return text
    return text[:characters].rsplit(None, 1)[0] + " …"
