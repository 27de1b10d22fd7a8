"""A searcher over memories as they are on disk at this moment."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from memkit.errors import EmbeddingError, IndexStoreError, MemkitError, NoDescriptorsError
from memkit.hook.project import Project
from memkit.index import index_lock, is_up_to_date, open_snapshot, read_files, sync_project
from memkit.index.catalog import also_searched, project_names
from memkit.index.memory_files import CurrentFiles
from memkit.index.snapshot import Snapshot
from memkit.paths import Home
from memkit.recall.search import Searcher
from memkit.settings import load
from memkit.settings.load import Settings

if TYPE_CHECKING:
    from memkit.embedding import Embedder

logger = logging.getLogger(__name__)

WAIT_SECONDS = 5.0
"""How long a search waits for another process that writes the index, if it has an older one to read."""

FIRST_WAIT_SECONDS = 120.0
"""How long it waits if there is no index at all yet."""


def open_searcher(
    project: Project,
    home: Home,
    settings: Settings,
    announce: Callable[[str], None] = logger.info,
    *,
    all_projects: bool = False,
) -> Searcher:
    """A searcher over the memory of the project and the user, or over all, as it is on disk now.

    Edited files are indexed first. If that fails, or another process holds the index for too long, or
    the model is not to be had, the searcher answers from what there is and its `notes` say so. Raises
    `IndexStoreError` or `EmbeddingError` if there is nothing yet.
    """
    opening = _Opening(home, settings, announce)
    snapshots = [opening.open(project, settings)]
    for other in also_searched(project, home, settings.search, all_projects=all_projects):
        try:
            snapshots.append(opening.open(other, load.load(home, other).settings))
        except NoDescriptorsError:  # nothing more can be opened: the answer would be a part, or empty
            raise
        except MemkitError as error:  # one project's trouble is not another's
            logger.warning("%s", error)
            opening.notes.append(f"without {other.root}: {error}")
    there = [snapshot for snapshot in snapshots if snapshot is not None]
    if not there:
        return Searcher([], settings.search, None)
    missing = sum(snapshot.missing for snapshot in there)
    if missing and opening.embedder is not None:
        opening.notes.append(f"searched {missing} chunks by words alone: not embedded yet")
    names = project_names(home, (snapshot.root for snapshot in there))
    return Searcher(there, settings.search, opening.embedder, opening.notes, names)


class _Opening:
    """Brings the snapshots of projects into step; `notes` say what could not be done."""

    def __init__(self, home: Home, settings: Settings, announce: Callable[[str], None]) -> None:
        self.home = home
        self.settings = settings
        self.announce = announce
        self.notes: list[str] = []

    @functools.cached_property
    def embedder(self) -> Embedder | None:
        chosen = self.settings.embedding
        if self.settings.search.mode == "lexical" or chosen.provider == "none":
            return None
        from memkit.embedding import find_embedder

        embedder, reason = find_embedder(self.home, chosen, self.announce)
        if embedder is None:
            self.notes.append(f"searched by words alone: {reason}")
        return embedder

    def open(self, project: Project, settings: Settings) -> Snapshot | None:
        """The snapshot of `project`, in step with its files; None if it has no memory."""
        home = self.home
        files = read_files(project, home, settings)
        snapshot = open_snapshot(project, home, settings)
        if files.problems and snapshot is not None:
            self.notes += [f"{line}; searched as it was" for line in files.problems]
        if snapshot is None and not files:
            return None
        if not _has_work(project, snapshot, files, settings, self.embedder):
            return snapshot
        try:
            with index_lock(
                home, FIRST_WAIT_SECONDS if snapshot is None else WAIT_SECONDS, self.announce
            ):
                # What another process did while we waited counts, not what we read before.
                files = read_files(project, home, settings)
                newest = open_snapshot(project, home, settings)
                if _has_work(project, newest, files, settings, self.embedder):
                    report = sync_project(
                        project,
                        home,
                        settings,
                        files=files,
                        embedder=self.embedder,
                        announce=self.announce,
                    )
                    if report.degraded and self.embedder is not None:
                        self.notes.append(report.degraded)
        except (IndexStoreError, EmbeddingError) as error:
            if snapshot is None or isinstance(error, NoDescriptorsError):
                raise
            logger.warning("%s", error)
            self.notes.append(f"the newest entries may be missing: {error}")
        newest = open_snapshot(project, home, settings)
        return snapshot if newest is None else newest  # an empty one is false


def _has_work(
    project: Project,
    snapshot: Snapshot | None,
    files: CurrentFiles,
    settings: Settings,
    embedder: Embedder | None,
) -> bool:
    """Whether the index is behind the files, from before a move, or lacks vectors that could be had."""
    if snapshot is None or not is_up_to_date(snapshot, files, settings):
        return True
    if snapshot.root != project.root:
        return True
    return snapshot.missing > 0 and embedder is not None
