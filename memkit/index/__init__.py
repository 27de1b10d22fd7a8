"""The index: it makes the Markdown of a project searchable.

The pipeline is scan → chunk → embed → segment → snapshot, and Chroma:

1. `scanner` finds the memory files, and `memory_files` reads them.
2. `chunker` cuts them into chunks along headings (`sections`) and blocks (`blocks`).
3. `update` embeds the chunks that have no vector yet, and writes what has changed as
4. a `segment` with chunks, vectors, and terms (`lexical`: BM25), and the manifest that names it;
5. then, or later, `mirror` copies the vectors to a `store`, which is Chroma.

A `snapshot` is what searches see of all segments; `reader` reads their text alone. `sync` runs this for one
project, under the index lock, and `merge` keeps the segments few. `catalog` names the index of each project
and opens its current snapshot.

The names in `__all__` are the front for other packages. Most load their modules on first use.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memkit.locks import index_lock

if TYPE_CHECKING:
    from memkit.index.catalog import known_projects, open_chunks, open_manifest, open_snapshot
    from memkit.index.memory_files import is_up_to_date, read_files
    from memkit.index.scanner import scan
    from memkit.index.sync import Indexer, sync_project

__all__ = [
    "Indexer", "SyncReport", "index_lock", "is_up_to_date", "known_projects", "open_chunks", "open_manifest",
    "open_snapshot", "read_files", "scan", "sync_project",
]  # fmt: skip

_MODULES = {
    **dict.fromkeys(("known_projects", "open_chunks", "open_manifest", "open_snapshot"), "catalog"),
    **dict.fromkeys(("is_up_to_date", "read_files"), "memory_files"),
    **dict.fromkeys(("Indexer", "sync_project"), "sync"),
    "scan": "scanner",
}


@dataclass(slots=True)
class SyncReport:
    """The changes of one pass over a project's memory files.

    `missing` chunks have no vector yet, for the reason in `degraded`. `unsent` ones are not on the server
    yet, for the reason in `away`. `replaced` counts by source the bytes that were not UTF-8. `unreadable` has
    one line for each path that could not be read; the index keeps its text.
    """

    root: str
    files: int = 0
    chunks: int = 0
    added: int = 0
    deleted: int = 0
    embedded: int = 0
    missing: int = 0
    degraded: str = ""
    unsent: int = 0
    away: str = ""
    replaced: dict[str, int] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)


def __getattr__(name: str) -> Any:
    # Chroma, numpy, and BM25 take most of a command's start-up time, so import them on first use.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
