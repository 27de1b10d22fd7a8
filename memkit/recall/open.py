"""Open a searcher over the memory of a project, as it is on disk now.

`open_searcher` does it in one process. The service keeps snapshots open and shares `combine`, which decides
what is searched together and what the answers lack.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from memkit.errors import EmbeddingError, IndexStoreError, MemkitError, NoDescriptorsError
from memkit.hook.project import Project
from memkit.index import index_lock, is_up_to_date, open_snapshot, read_files, sync_project
from memkit.index.catalog import also_searched, project_names
from memkit.index.memory_files import CurrentFiles
from memkit.index.snapshot import Snapshot
from memkit.paths import Home
from memkit.recall.corpus import Corpus
from memkit.recall.search import Searcher
from memkit.settings import load
from memkit.settings.load import SearchSettings, Settings

if TYPE_CHECKING:
    from memkit.embedding import Embedder

    FindModel = Callable[[], tuple[Embedder | None, str]]

logger = logging.getLogger(__name__)

WAIT_SECONDS = 5.0
"""The wait for another process that writes the index, if there is an older index to read."""

FIRST_WAIT_SECONDS = 120.0
"""The same wait if there is no index yet."""


def open_searcher(
    project: Project,
    home: Home,
    settings: Settings,
    announce: Callable[[str], None] = logger.info,
    *,
    all_projects: bool = False,
) -> Searcher:
    """Return a searcher over the project and the user's memory, or over all projects.

    Index edited files first. If that fails, if another process holds the index for too long, or if the
    model is not available, search the existing index and explain it in the searcher's `notes`. Raise
    `IndexStoreError` or `EmbeddingError` if there is nothing yet.
    """
    notes: list[str] = []

    @functools.cache
    def find_model() -> tuple[Embedder | None, str]:
        if settings.search.mode == "lexical" or settings.embedding.provider == "none":
            return None, ""
        from memkit.embedding import find_embedder

        return find_embedder(home, settings.embedding, announce)

    def open_one(one: Project) -> Snapshot | None:
        own = settings if one == project else load.load(home, one).settings
        return _open_updated(one, home, own, find_model, announce, notes)

    return combine(
        project, home, settings.search, open_one, find_model, notes, all_projects=all_projects
    )


def combine(
    project: Project,
    home: Home,
    search: SearchSettings,
    open_one: Callable[[Project], Snapshot | None],
    find_model: FindModel,
    notes: list[str],
    *,
    all_projects: bool = False,
    make_corpus: Callable[[Sequence[Snapshot]], Corpus] = Corpus,
) -> Searcher:
    """Return a searcher over all that a search of `project` looks into.

    `open_one` brings a project up to date and returns its snapshot, None if it has no memory. A problem
    with another project than `project` becomes one of the `notes`. `find_model` returns the embedder, or
    None with the reason. Raise what `open_one` raises for `project`.
    """
    snapshots = [open_one(project)]
    for other in also_searched(project, home, search, all_projects=all_projects):
        try:
            snapshots.append(open_one(other))
        except NoDescriptorsError:  # nothing more can be opened: the answer would be partial or empty
            raise
        except (MemkitError, OSError) as error:
            logger.warning("%s", error)
            notes.append(f"without {other.root}: {error}")
    found = [snapshot for snapshot in snapshots if snapshot is not None]
    if not found:
        return Searcher([], search, None)
    embedder, problem = find_model() if search.mode != "lexical" else (None, "")
    missing = sum(snapshot.missing for snapshot in found)
    if problem:
        notes.append(f"searched by words alone: {problem}")
    elif missing and embedder is not None:
        notes.append(f"searched {missing} chunks by words alone: not embedded yet")
    names = project_names(home, (snapshot.root for snapshot in found))
    return Searcher(make_corpus(found), search, embedder, notes, names)


def _open_updated(
    project: Project,
    home: Home,
    settings: Settings,
    find_model: FindModel,
    announce: Callable[[str], None],
    notes: list[str],
) -> Snapshot | None:
    """Return the up-to-date snapshot of `project`, None if it has no memory."""
    files = read_files(project, home, settings)
    snapshot = open_snapshot(project, home, settings)
    if files.problems and snapshot is not None:
        notes += [f"{line}; searched as it was" for line in files.problems]
    if snapshot is None and not files:
        return None
    embedder, _ = find_model()
    if _is_current(project, snapshot, files, settings, embedder):
        return snapshot
    seconds = FIRST_WAIT_SECONDS if snapshot is None else WAIT_SECONDS
    try:
        with index_lock(home, seconds, announce):
            # Another process may have written meanwhile.
            files = read_files(project, home, settings)
            newest = open_snapshot(project, home, settings)
            if not _is_current(project, newest, files, settings, embedder):
                report = sync_project(
                    project, home, settings, files=files, embedder=embedder, announce=announce
                )
                if report.degraded and embedder is not None:
                    notes.append(report.degraded)
    except (IndexStoreError, EmbeddingError) as error:
        if snapshot is None or isinstance(error, NoDescriptorsError):
            raise
        logger.warning("%s", error)
        notes.append(f"the newest entries may be missing: {error}")
    newest = open_snapshot(project, home, settings)
    return snapshot if newest is None else newest  # an empty snapshot is false


def _is_current(
    project: Project,
    snapshot: Snapshot | None,
    files: CurrentFiles,
    settings: Settings,
    embedder: Embedder | None,
) -> bool:
    """Return whether the index matches the files and the root, and has all vectors it could have."""
    if snapshot is None or not is_up_to_date(snapshot, files, settings):
        return False
    return snapshot.root == project.root and (snapshot.missing == 0 or embedder is None)
