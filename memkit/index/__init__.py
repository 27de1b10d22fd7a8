"""The index: it makes the Markdown of a project searchable.

The pipeline is scan → chunk → embed → store and lexical → snapshot:

1. `scanner` finds the memory files, and `memory_files` reads them.
2. `chunker` cuts them into chunks along headings (`sections`) and blocks (`blocks`).
3. `update` embeds the chunks that have no vector yet, and writes what has changed:
4. the vectors to `store`, which is Chroma;
5. then a `segment` with chunks, vectors, and terms (`lexical`: BM25), and the manifest that names it.

A `snapshot` is what searches see of all segments; `reader` reads their text alone. `sync` runs this for one
project, under the index lock, and `merge` keeps the segments few. `catalog` names the index of each project
and opens its current snapshot. `damage` and `purge` look after Chroma's files.

The names in `__all__` are the front for other packages. Most load their modules on first use.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from memkit.errors import IndexBusyError, IndexStoreError
from memkit.files import PRIVATE_FILE, create_private, make_private_directory, read_head
from memkit.paths import Home
from memkit.processes import is_locked

if TYPE_CHECKING:
    from filelock import FileLock

    from memkit.index.catalog import known_projects, open_chunks, open_snapshot
    from memkit.index.memory_files import is_up_to_date, read_files
    from memkit.index.scanner import scan
    from memkit.index.sync import Indexer, sync_project

logger = logging.getLogger(__name__)

__all__ = [
    "Holder",
    "Indexer",
    "SyncReport",
    "holder",
    "index_lock",
    "is_up_to_date",
    "known_projects",
    "open_chunks",
    "open_snapshot",
    "read_files",
    "scan",
    "sync_project",
]

_MODULES = {
    "Indexer": "sync",
    "is_up_to_date": "memory_files",
    "known_projects": "catalog",
    "open_chunks": "catalog",
    "open_snapshot": "catalog",
    "read_files": "memory_files",
    "scan": "scanner",
    "sync_project": "sync",
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


@contextmanager
def index_lock(
    home: Home, wait_seconds: float, announce: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Hold the index lock. Raise `IndexBusyError` if another process keeps it for `wait_seconds`.

    Before a wait, kill the service if it holds the lock and hangs. `announce` gets a line about a kill and
    about a wait.
    """
    # 0.05 s, which a search of an up-to-date index need not pay
    from filelock import FileLock, Timeout

    try:
        make_private_directory(home.run)
        lock = FileLock(home.index_lock, mode=PRIVATE_FILE)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if wait_seconds <= 0:
                raise
            _wait(home, lock, wait_seconds, announce)
    except Timeout as error:
        raise IndexBusyError(
            "another memkit process is working on the index; try again in a moment"
        ) from error
    except OSError as error:
        raise IndexStoreError(
            f"cannot lock the index in {home.run}: {error.strerror or error}"
        ) from error
    try:
        _note_holder(home)
        yield
    finally:
        with contextlib.suppress(OSError):  # `holder` ignores a leftover without a lock
            os.unlink(home.index_holder)
        lock.release()


def _wait(
    home: Home, lock: FileLock, wait_seconds: float, announce: Callable[[str], None] | None
) -> None:
    from filelock import Timeout

    from memkit.ipc.stop import process_of, stop_hung_service

    found = holder(home)
    if found is None or found.process == process_of(home):
        stop_hung_service(home, announce or logger.warning)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if announce is not None:
            announce("waiting for another memkit process that is working on the index")
        lock.acquire(timeout=wait_seconds)


def _note_holder(home: Home) -> None:
    """Record for the doctor which process holds the lock. Every attempt truncates the lock file itself."""
    try:
        with create_private(home.index_holder) as file:
            file.write(f"{os.getpid()} {time.time():.0f}\n".encode("ascii"))
    except OSError as error:
        logger.warning("cannot record the holder of the index lock: %s", error)


class Holder(NamedTuple):
    """The process that holds the index lock, and the start in seconds since the epoch."""

    process: int
    since: float


def holder(home: Home) -> Holder | None:
    """Return the current holder of the index lock as it recorded itself; None if unknown."""
    if not is_locked(home.index_lock):
        return None
    try:
        process, since = read_head(home.index_holder, 100).split()
        return Holder(int(process), float(since))
    except (OSError, ValueError):  # just taken, or by an older memkit
        return None
