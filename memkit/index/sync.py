"""Update the index of a project to match its Markdown.

A pass adds missing chunks and deletes stale ones. Unchanged files cost nothing, and moved text keeps its
vectors. Chroma is written first, then the snapshot that searches read. A pass that is killed at any moment
can be repeated, and ends in the same state.

Chroma holds the chunks of the snapshot. To compare all of them takes long, so a pass does that only if it
must: if the mark of a killed pass exists, or if the collection is not the one that the snapshot names or has
another number of rows.

To open Chroma takes longer than all else in the pass of one turn, and it writes some of its files whole. So
such passes leave it for later, and one pass brings the changes of many turns there; see `outbox`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from memkit.embedding.models import space
from memkit.errors import IndexStoreError, StaleSnapshotError
from memkit.hook.project import Project
from memkit.index import SyncReport
from memkit.index.catalog import collection_name, snapshot_directory
from memkit.index.damage import in_use_marker, set_aside_if_damaged
from memkit.index.manifest import MANIFEST
from memkit.index.memory_files import CurrentFiles, read_files
from memkit.index.merge import due, merge
from memkit.index.outbox import MOST_CHANGES, Outbox, Unsent, read_unsent
from memkit.index.reader import open_current
from memkit.index.snapshot import STARTED, Snapshot
from memkit.index.store import Store, directory
from memkit.index.update import (
    OtherLengthError,
    Progress,
    StoreNeededError,
    Update,
    Vectors,
    rows_in_store,
)
from memkit.ipc import unindexed
from memkit.paths import Home
from memkit.projects.git import author_of
from memkit.settings.load import Settings

if TYPE_CHECKING:
    from memkit.embedding import Embedder

logger = logging.getLogger(__name__)


def sync_project(
    project: Project,
    home: Home,
    settings: Settings,
    *,
    rebuild: bool = False,
    compare: bool = False,
    later: bool = False,
    files: CurrentFiles | None = None,
    embedder: Embedder | None = None,
    announce: Callable[[str], None] = logger.info,
    progress: Progress | None = None,
) -> SyncReport:
    """Update the project's index once. The caller holds the index lock.

    `rebuild` starts from nothing; `compare` reads the whole snapshot and compares it with the store. `later`
    leaves small changes of an embedded store for a later pass: searches do not need them there. Without
    `files` and `embedder`, read and load them when needed. Who gives `files` claims the mark of the project
    before reading them; see `memkit.ipc.unindexed`. Raise `IndexStoreError`, `EmbeddingError`.
    """
    find = None if embedder is None else lambda: (embedder, "")
    with Indexer(project, home, settings, find_embedder=find, announce=announce) as indexer:
        report = indexer.sync(files, rebuild=rebuild, compare=compare, later=later, progress=progress)
        if indexer.is_merge_due():
            indexer.merge()
        if indexer.is_store_due():
            indexer.sync()
        return report


class Indexer:
    """Keeps Chroma open to update one project repeatedly. The caller holds the index lock all the time."""

    def __init__(
        self,
        project: Project,
        home: Home,
        settings: Settings,
        *,
        find_embedder: Callable[[], tuple[Embedder | None, str]] | None = None,
        announce: Callable[[str], None] = logger.info,
    ) -> None:
        """`find_embedder` returns the embedder, or None and the reason. By default, load one when needed."""
        self.project = project
        self.home = home
        self.settings = settings
        self.find_embedder = find_embedder or self._load_embedder
        self.name = collection_name(project, home, space(settings.embedding))
        self._embedder: Embedder | None = None
        self._announce = announce
        self._path = directory(home, settings.index.uri)
        self._store: Store | None = None
        self._snapshot: Snapshot | None = None
        self._compares = False
        self._checked = ""  # the name of the snapshot whose chunks the open store is known to hold

    def __enter__(self) -> Indexer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close Chroma; the next `sync` that needs it opens it again."""
        store, self._store, self._checked = self._store, None, ""
        if store is not None:
            store.close()

    def snapshot(self) -> Snapshot | None:
        """Return the current snapshot; None if there is no usable one."""
        if self._snapshot is None or not self._snapshot.is_current():
            self._reopen()
        return self._snapshot

    def _reopen(self) -> None:
        earlier, language = self._snapshot, self.settings.search.language
        place = snapshot_directory(self.home, self.name)
        self._snapshot = open_current(place, lambda path: Snapshot(path, language, earlier))

    def sync(
        self,
        files: CurrentFiles | None = None,
        *,
        rebuild: bool = False,
        compare: bool = False,
        later: bool = False,
        progress: Progress | None = None,
    ) -> SyncReport:
        """Update the index to match `files`, by default those of now. See `sync_project` for the rest."""
        self._compares = compare
        if compare:
            self._drop_if_damaged()
        if files is None:
            unindexed.claim(self.home, self.project.root)
            files = read_files(self.project, self.home, self.settings, self.snapshot())
        made: Vectors = {}

        def run(*, rebuild: bool, reuse: bool) -> SyncReport:
            try:
                return self._run(files, made, progress, rebuild, reuse)
            except OtherLengthError:
                return self._run(files, made, progress, rebuild=True, reuse=False)

        if later and not (rebuild or compare) and self._may_leave_store():
            try:
                return self._run(files, made, progress, rebuild=False, reuse=True, later=True)
            except (StoreNeededError, OtherLengthError):
                pass
        path = self._path
        if self._store is None and path is not None and in_use_marker(path).exists():
            self._set_aside_if_damaged()  # opening it may have crashed the process that left the marker
        try:
            return run(rebuild=rebuild, reuse=not rebuild)
        except IndexStoreError:
            if not self._set_aside_if_damaged():
                raise
            return run(rebuild=rebuild, reuse=not rebuild)

    def _drop_if_damaged(self) -> None:
        snapshot = self.snapshot()
        try:
            if snapshot is not None:
                snapshot.check()
        except StaleSnapshotError as error:
            logger.warning("%s; it is rebuilt", error)
            (snapshot_directory(self.home, self.name) / MANIFEST).unlink(missing_ok=True)

    def _may_leave_store(self) -> bool:
        """Return whether a pass can do without the store: it is embedded, and what it lacks is known."""
        last = self.snapshot()
        if self._path is None or last is None or not last.manifest.collection:
            return False
        return self._unsent(last).sources is not None

    def is_store_due(self) -> bool:
        """Return whether much waits for the embedded store."""
        last = self.snapshot()
        return self._path is not None and last is not None and (
            read_unsent(last.directory).changes > MOST_CHANGES
        )

    def is_merge_due(self) -> bool:
        """Return whether there are segments to merge."""
        snapshot = self.snapshot()
        return snapshot is not None and bool(due(snapshot))

    def merge(self) -> None:
        """Do the merge that is due, if there is one. Raise `IndexStoreError`."""
        snapshot = self.snapshot()
        chosen = [] if snapshot is None else due(snapshot)
        if snapshot is not None and chosen:
            is_in_step = self._checked == snapshot.name
            merge(snapshot, chosen)
            self._reopen()
            if is_in_step and self._snapshot is not None:
                self._checked = self._snapshot.name

    def _run(
        self,
        files: CurrentFiles,
        made: Vectors,
        progress: Progress | None,
        rebuild: bool,
        reuse: bool,
        later: bool = False,
    ) -> SyncReport:
        last = self.snapshot()
        if rebuild:
            self.close()
        try:
            if later:
                store: Store = Outbox(None)
            else:
                store = self._store = self._store or self._open_store(rebuild)
            unsent = self._unsent(last)
            in_step = last is not None and reuse and self._is_in_step(store, last, unsent)
            update = Update(
                self, store, files, made, last, reuse=reuse, is_in_step=in_step, unsent=unsent
            )
            report = update.run(progress)
            self._reopen()
            if not later:
                self._checked = "" if self._snapshot is None else self._snapshot.name
            if store.problem:  # the next pass tries again
                self.close()
            return report
        except BaseException:
            self.close()
            raise

    def _open_store(self, rebuild: bool) -> Store:
        uri, author = self.settings.index.uri, ""
        if self._path is None:
            author = author_of(self.project.root)

        def open_store() -> Store:
            return Store(self.home, uri, self.name, rebuild=rebuild, author=author)

        return Outbox(open_store) if self._path is None else open_store()

    def _unsent(self, last: Snapshot | None) -> Unsent:
        if last is None or (last.directory / STARTED).exists():
            return Unsent(None)
        return read_unsent(last.directory)

    def _is_in_step(self, store: Store, last: Snapshot, unsent: Unsent) -> bool:
        """Return whether the store holds exactly the chunks of the snapshot, but for those that wait."""
        if self._compares or store.is_away:  # what a store that is away holds is compared later
            return not self._compares
        if unsent.sources is None or last.manifest.collection != store.identity:
            return False
        if self._path is None or self._checked == last.name:
            return True
        return store.count() == (unsent.rows if unsent.sources else rows_in_store(last))

    def _set_aside_if_damaged(self) -> bool:
        is_ours = not self.settings.index.uri
        return self._path is not None and set_aside_if_damaged(self._path, is_ours, self._announce)

    def _load_embedder(self) -> tuple[Embedder | None, str]:
        if self._embedder is not None:
            return self._embedder, ""
        from memkit.embedding import find_embedder

        self._embedder, reason = find_embedder(self.home, self.settings.embedding, self._announce)
        return self._embedder, reason
