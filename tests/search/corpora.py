"""Memories and snapshots to search in."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from memkit.embedding import Embedder
from memkit.index.chunk import Chunk, digest
from memkit.index.reader import open_current
from memkit.index.snapshot import Snapshot
from memkit.index.store import Row
from memkit.index.update import NO_DIMENSIONS
from memkit.search.results import Result, SearchRequest
from tests.memory import CountingEmbedder, FakeEmbedder, Memory, make_memory
from tests.snapshots import write_snapshot


def snapshot_of(
    directory: Path, chunks: Iterable[Chunk], *, embedder: FakeEmbedder | None = None,
    language: str = "english", root: str = "/a/project",
) -> Snapshot:  # fmt: skip
    """A snapshot of `chunks`, whose sources or lines must differ; in vectors if there is an embedder."""
    rows = []
    for chunk in chunks:
        known = dataclasses.replace(chunk, content_hash=digest(chunk.content)[:16])
        vectors = embedder.embed(embedder.windows(chunk.text)) if embedder else None
        rows.append(Row(known.id("model"), known, vectors))
    dimensions = embedder.dimensions if embedder and rows else NO_DIMENSIONS
    write_snapshot(directory, rows, {}, dimensions, root, language)
    snapshot = open_current(directory, lambda path: Snapshot(path, language))
    assert snapshot is not None
    return snapshot


def embedded(root: Path, files: dict[str, str], embedder: Embedder) -> Memory:
    """An indexed memory of these files, with real vectors."""
    memory = make_memory(root, files, embedder=CountingEmbedder(embedder))
    memory.sync()
    return memory


def everything(memory: Memory, query: str, **options: object) -> list[Result]:
    """All results, whatever their relevance, unless the options say otherwise."""
    request = SearchRequest(query, **{"k": 50, "minimum": 0.0, **options})  # type: ignore[arg-type]
    return memory.searcher().answer(request).results
