"""Snapshots of given chunks, made without a store."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from memkit.index.chunk import Chunk, digest
from memkit.index.reader import open_current
from memkit.index.snapshot import Snapshot, write_snapshot
from memkit.index.store import Row
from memkit.index.update import NO_DIMENSIONS
from tests.memory import FakeEmbedder


def snapshot_of(
    directory: Path,
    chunks: Iterable[Chunk],
    *,
    embedder: FakeEmbedder | None = None,
    language: str = "english",
    root: str = "/a/project",
) -> Snapshot:
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
