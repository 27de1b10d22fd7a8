"""Brings the index into step with the markdown.

Missing chunks are added, stale ones deleted, unchanged ones cost nothing; text that only moved keeps its
vector. Chroma is written first; the snapshot that searches read is derived from it. Whatever instant
this is killed at, the next run ends in the same state.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from memkit.embedding.models import space
from memkit.errors import IndexStoreError
from memkit.hook.project import Project
from memkit.index.current import (
    CurrentFiles,
    collection_name,
    open_snapshot,
    read_files,
    snapshot_directory,
)
from memkit.index.damage import in_use_marker, set_aside_if_damaged
from memkit.index.index_pass import IndexPass, OtherLengthError, Progress
from memkit.index.snapshot import Snapshot, open_current
from memkit.index.store import ForeignRowsError, Row, Store, directory
from memkit.index.sync_report import SyncReport
from memkit.paths import Home
from memkit.settings.load import Settings

if TYPE_CHECKING:
    from memkit.embedding import Embedder

__all__ = ["Indexer", "SyncReport", "open_snapshot", "sync_project"]

logger = logging.getLogger(__name__)


def sync_project(
    project: Project,
    home: Home,
    settings: Settings,
    *,
    rebuild: bool = False,
    files: CurrentFiles | None = None,
    embedder: Embedder | None = None,
    announce: Callable[[str], None] = logger.info,
    progress: Progress | None = None,
) -> SyncReport:
    """Bring the project's index into step. The caller holds the index lock.

    `rebuild` starts from nothing. `files` and `embedder` are used if given, else read and loaded when
    needed. Raises `IndexStoreError`, `EmbeddingError`.
    """

    def given() -> tuple[Embedder | None, str]:
        return embedder, ""

    find = None if embedder is None else given
    with Indexer(project, home, settings, find_embedder=find, announce=announce) as indexer:
        return indexer.sync(files, rebuild=rebuild, progress=progress)


class Indexer:
    """Brings the index of one project into step, as often as asked, and keeps it open in between.

    A context manager, which closes it. Whoever has one holds the index lock.
    """

    def __init__(
        self,
        project: Project,
        home: Home,
        settings: Settings,
        *,
        find_embedder: Callable[[], tuple[Embedder | None, str]] | None = None,
        announce: Callable[[str], None] = logger.info,
    ) -> None:
        """Opens nothing yet.

        `find_embedder` is asked when there is something to embed, for the embedder, or None and the
        reason; by default one is loaded, once.
        """
        self._project = project
        self._home = home
        self._settings = settings
        self._embedder: Embedder | None = None
        self._find_embedder = find_embedder or self._load_embedder
        self._announce = announce
        self._path = directory(home, settings.index.uri)
        self._name = collection_name(project, home, space(settings.embedding))
        self._store: Store | None = None
        self._snapshot: Snapshot | None = None

    def __enter__(self) -> Indexer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close Chroma; the next `sync` opens it again."""
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def snapshot(self) -> Snapshot | None:
        """The snapshot in force; None if there is none that can be trusted."""
        if self._snapshot is None or not self._snapshot.is_in_force():
            directory = snapshot_directory(self._home, self._name)
            self._snapshot = open_current(directory, self._settings.search.language)
        return self._snapshot

    def sync(
        self,
        files: CurrentFiles | None = None,
        *,
        rebuild: bool = False,
        progress: Progress | None = None,
    ) -> SyncReport:
        """Bring the index into step with `files`, by default with all there are now.

        `rebuild` starts from nothing. Raises `IndexStoreError`, `EmbeddingError`.
        """
        if files is None:
            files = read_files(self._project, self._home, self._settings)
        made: dict[str, Row] = {}

        def run(*, rebuild: bool, reuse: bool = False) -> SyncReport:
            try:
                return self._run(files, rebuild, made, progress, reuse)
            except OtherLengthError:
                return self._run(files, True, made, progress, False)

        path = self._path
        if self._store is None and path is not None and in_use_marker(path).exists():
            self._set_aside_if_damaged(path)  # opening it may have killed the one who left that
        try:
            return run(rebuild=rebuild)
        except ForeignRowsError as error:
            self._announce(f"{error}; it is made anew")
            return run(rebuild=True, reuse=True)
        except IndexStoreError:
            if path is None or not self._set_aside_if_damaged(path):
                raise
            return run(rebuild=rebuild)

    def _run(
        self,
        files: CurrentFiles,
        rebuild: bool,
        made: dict[str, Row],
        progress: Progress | None,
        reuse: bool,
    ) -> SyncReport:
        """Make one pass; `reuse` lets one that starts from nothing take vectors from the snapshot."""
        one = IndexPass(
            self._project, self._home, self._settings, self._find_embedder, made, progress
        )
        one.last = self.snapshot()
        if reuse:
            one.donor = one.last
        if rebuild:
            self.close()
        try:
            if self._store is None:
                uri = self._settings.index.uri
                self._store = Store.open(self._home, uri, self._name, anew=rebuild)
            return one.run(self._store, self._name, None if rebuild else self.snapshot(), files)
        except BaseException:
            self.close()
            raise
        finally:
            if self._snapshot is not None and not self._snapshot.is_in_force():
                self._snapshot = None  # it is of no more use, and large

    def _set_aside_if_damaged(self, path: Path) -> bool:
        return set_aside_if_damaged(path, not self._settings.index.uri, self._announce)

    def _load_embedder(self) -> tuple[Embedder | None, str]:
        """The embedder; None, with the reason, if there is none to be had."""
        if self._embedder is None:
            from memkit.embedding import find_embedder

            self._embedder, reason = find_embedder(
                self._home, self._settings.embedding, self._announce
            )
            return self._embedder, reason
        return self._embedder, ""
