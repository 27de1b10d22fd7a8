"""Update the index of a project to match its Markdown.

A pass adds missing chunks and deletes stale ones. Unchanged files cost nothing, and moved text keeps its
vectors. The segments that searches read are written first, then Chroma; see `mirror`. A pass that is killed
at any moment can be repeated, and ends in the same state.

To open Chroma takes longer than all else in the pass of one turn, and no search reads this machine's. So such
passes leave it for later.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable

from memkit import embedding
from memkit.embedding import Embedder
from memkit.errors import IndexStoreError, StaleSnapshotError
from memkit.index import SyncReport
from memkit.index.catalog import other_collections
from memkit.index.manifest import MANIFEST
from memkit.index.memory_files import CurrentFiles, read_files
from memkit.index.merge import due, merge
from memkit.index.mirror import copy, delete_collection, start_again, waiting_chunks
from memkit.index.reader import open_current
from memkit.index.snapshot import Snapshot
from memkit.index.update import OtherLengthError, Progress, Target, Update, Vectors
from memkit.ipc import unindexed
from memkit.paths import Home
from memkit.projects.git import author_of
from memkit.projects.project import Project
from memkit.settings import is_server
from memkit.settings.load import Settings
from memkit.text import plural

logger = logging.getLogger(__name__)


def sync_project(
    project: Project, home: Home, settings: Settings, *, rebuild: bool = False, keep_vectors: bool = False,
    compare: bool = False, later: bool = False, files: CurrentFiles | None = None,
    embedder: Embedder | None = None, announce: Callable[[str], None] = logger.info,
    progress: Progress | None = None,
) -> SyncReport:
    """Update the project's index once. The caller holds the index lock.

    `rebuild` starts from nothing, or with `keep_vectors` embeds only what is new; `compare` checks all
    segments; both have Chroma written again. `later` leaves this machine's Chroma for a later pass. Without
    `files` and `embedder`, read and load them when needed. Who gives `files` claims the mark of the project
    before reading them; see `memkit.ipc.unindexed`. Raise `IndexStoreError`, `EmbeddingError`.
    """

    @functools.cache
    def find() -> tuple[Embedder | None, str]:
        return (embedder, "") if embedder else embedding.find_embedder(home, settings.embedding, announce)

    indexer = Indexer(project, home, settings, find_embedder=find)
    report = indexer.sync(
        files, rebuild=rebuild, keep_vectors=keep_vectors, compare=compare, later=later, progress=progress
    )
    indexer.merge()
    return report


class Indexer:
    """Updates one project repeatedly. The caller holds the index lock."""

    def __init__(
        self, project: Project, home: Home, settings: Settings, *,
        find_embedder: Callable[[], tuple[Embedder | None, str]],
    ) -> None:  # fmt: skip
        """`find_embedder` returns the embedder, or None and the reason."""
        self.target = Target(project, home, settings, find_embedder)
        self.directory = self.target.directory
        self._snapshot: Snapshot | None = None

    def snapshot(self) -> Snapshot | None:
        """Return the current snapshot; None if there is no usable one."""
        if self._snapshot is None or not self._snapshot.is_current():
            earlier, language = self._snapshot, self.target.settings.search.language
            self._snapshot = open_current(self.directory, lambda path: Snapshot(path, language, earlier))
        return self._snapshot

    def sync(
        self, files: CurrentFiles | None = None, *, rebuild: bool = False, keep_vectors: bool = False,
        compare: bool = False, later: bool = False, progress: Progress | None = None,
    ) -> SyncReport:  # fmt: skip
        """Update the index to match `files`, by default those of now. See `sync_project` for the rest."""
        project, home, settings = self.target.project, self.target.home, self.target.settings
        if compare:
            self._drop_if_damaged()
        if compare or rebuild:
            start_again(home, settings.index.uri, self.target.name)
        if files is None:
            unindexed.claim(home, project.root)
            files = read_files(project, home, settings, self.snapshot())
        made: Vectors = {}
        current = self.snapshot()
        last = current or open_current(self.directory, Snapshot)
        kept = (None if rebuild else current, None if rebuild and not keep_vectors else last)
        try:
            report = Update(self.target, files, made, last, *kept).run(progress)
        except OtherLengthError:
            embedded = len(made)
            report = Update(self.target, files, made, last).run(progress)
            report.embedded += embedded
        if not later or is_server(settings.index.uri):
            self.copy(report)
        return report

    def copy(self, report: SyncReport | None = None) -> None:
        """Bring Chroma in sync. If that fails, the `report` has the reason; or raise `IndexStoreError`."""
        snapshot = self.snapshot()
        if snapshot is None:
            return
        project, home = self.target.project, self.target.home
        uri = self.target.settings.index.uri
        try:
            copy(home, uri, snapshot, author_of(project.root) if is_server(uri) else "")
            if report is not None and report.chunks and not report.missing and not report.unreadable:
                # All chunks are in this collection: remove those made with other settings.
                for other in other_collections(project, home, self.target.name):
                    delete_collection(home, uri, other)
        except IndexStoreError as error:
            if report is None:
                raise
            logger.warning("%s", error)
            report.unsent = waiting_chunks(snapshot.directory, snapshot.entries)
            if report.unsent:
                report.away = f"{error}; {plural(report.unsent, 'chunk')} will be sent later"

    def _drop_if_damaged(self) -> None:
        snapshot = self.snapshot()
        try:
            if snapshot is not None:
                snapshot.check()
        except StaleSnapshotError as error:
            logger.warning("%s; it is rebuilt", error)
            (self.directory / MANIFEST).unlink(missing_ok=True)

    def is_merge_due(self) -> bool:
        """Return whether there are segments to merge."""
        snapshot = self.snapshot()
        return snapshot is not None and bool(due(snapshot))

    def merge(self) -> None:
        """Do the merge that is due, if there is one. Raise `IndexStoreError`."""
        snapshot = self.snapshot()
        chosen = [] if snapshot is None else due(snapshot)
        if snapshot is not None and chosen:
            merge(snapshot, chosen)
