"""Snapshots of given rows, as a full index pass writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from memkit.index.manifest import Entry
from memkit.index.segment import Row, write_rows
from memkit.index.snapshot import entries_of, order, prepare, write_manifest


def write_snapshot(
    directory: Path, rows: Sequence[Row], sources: Mapping[str, str], dimensions: int, root: str,
    language: str = "english",
) -> None:  # fmt: skip
    """Write a snapshot of `rows` alone, and make it the current one."""
    ordered = sorted(rows, key=order)
    prepare(directory)
    names = [write_rows(directory, ordered, dimensions, language, {})] if ordered else []
    entries = {source: Entry(state) for source, state in sources.items()}
    write_manifest(directory, root, names, entries | entries_of(ordered, sources, 0), {})
