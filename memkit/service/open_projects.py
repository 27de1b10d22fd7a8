"""Memories that stay open for searches: snapshots, the corpora made of them, and the models."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, TimeoutError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memkit.errors import MemkitError
from memkit.index import open_snapshot
from memkit.index.catalog import index_key
from memkit.index.mirror import waiting_chunks
from memkit.index.snapshot import Snapshot
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.search.corpus import Corpus
from memkit.search.ranking import Searcher, combine
from memkit.service.listener import NotHereError
from memkit.service.watcher import Watcher
from memkit.settings import is_server
from memkit.settings.load import SearchSettings, Settings

if TYPE_CHECKING:
    from memkit.embedding import Embedder
    from memkit.index import SyncReport
    from memkit.settings import EmbeddingSettings

logger = logging.getLogger(__name__)

MAX_PROJECTS = 8
"""The number of projects that stay open. For one more, close the one whose last search is oldest."""

MAX_CORPORA = MAX_PROJECTS + 2
"""Room for one of each project and two of several projects: building one takes time."""

FIRST_WAIT_SECONDS = 5.0
"""The time that the first search of a project waits for its index."""

RETRY_SECONDS = 300.0
"""The time between two passes over a project with chunks that have no vectors, or are not on the server."""


class Models:
    """The embedders. Each is loaded once."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._loaded: dict[EmbeddingSettings, Embedder] = {}
        self._guard = threading.Lock()

    def find(self, chosen: EmbeddingSettings) -> tuple[Embedder | None, str]:
        """Return the embedder, or None and the reason. Look again each time for a missing one."""
        from memkit.embedding import find_embedder

        if chosen.provider == "none":
            return None, ""
        with self._guard:
            if chosen in self._loaded:
                return self._loaded[chosen], ""
            embedder, problem = find_embedder(self._home, chosen, logger.info)
            if embedder is not None:
                self._loaded[chosen] = embedder
            return embedder, problem

    def clear(self) -> None:
        """Forget all. The next search loads what it needs."""
        with self._guard:
            self._loaded.clear()


def _has_gaps(snapshot: Snapshot | None, settings: Settings) -> bool:
    if snapshot is None:
        return False
    is_remote = is_server(settings.index.uri)
    return bool(snapshot.missing or (is_remote and waiting_chunks(snapshot.directory, snapshot.entries)))


@dataclass(slots=True)
class _OpenProject:
    """`key` identifies its settings; `checked` is when it was last indexed."""

    key: str
    snapshot: Snapshot | None
    checked: float
    reading: threading.Lock = field(default_factory=threading.Lock)


class OpenProjects:
    """Makes searchers over open projects. Several threads may call it at once."""

    def __init__(
        self, home: Home, models: Models, settings_of: Callable[[Project], Settings],
        index: Callable[[str], Future[SyncReport]], watcher: Watcher,
    ) -> None:  # fmt: skip
        """`index` updates the index of a project; the `watcher` has that done after a change."""
        self._home = home
        self._models = models
        self._settings_of = settings_of
        self._index = index
        self._watcher = watcher
        self._projects: OrderedDict[str, _OpenProject] = OrderedDict()
        self._corpora: OrderedDict[tuple[str, ...], Corpus] = OrderedDict()
        self._guard = threading.RLock()

    def sizes(self) -> dict[str, int]:
        """Return the number of chunks of each open project, by root."""
        with self._guard:
            projects = list(self._projects.items())
        return {root: 0 if one.snapshot is None else len(one.snapshot) for root, one in projects}

    def is_open(self, project: Project) -> bool:
        """Return whether a search of the project would find it open."""
        return project.root in self._projects

    def clear(self) -> None:
        """Close all. The next search of a project opens it again."""
        with self._guard:
            for root in list(self._projects):
                self._close(root)

    def searcher(
        self, project: Project, settings: Settings, search: SearchSettings, *, all_projects: bool = False,
        wait_seconds: float = FIRST_WAIT_SECONDS,
    ) -> Searcher:
        """Return a searcher over the project and the user's memory, or over all projects.

        `search` decides how it ranks. Raise `MemkitError` if there is no index and none can be made.
        """
        notes: list[str] = []

        def open_one(one: Project) -> Snapshot | None:
            own = settings if one == project else self._settings_of(one)
            return self._open(one, own, wait_seconds, notes)

        return combine(
            project, self._home, settings, search, open_one, lambda: self._models.find(settings.embedding),
            notes, all_projects=all_projects, make_corpus=self._corpus,
        )  # fmt: skip

    def _open(
        self, project: Project, settings: Settings, wait_seconds: float, notes: list[str]
    ) -> Snapshot | None:
        key, now = index_key(project, self._home, settings), time.monotonic()
        with self._guard:
            found = self._projects.get(project.root)
            if found is not None and found.key == key:
                self._projects.move_to_end(project.root)
                if now - found.checked > RETRY_SECONDS and _has_gaps(found.snapshot, settings):
                    found.checked = now
                    self._index(project.root)
        if found is not None and found.key == key:
            return self._refresh(found, project, settings)
        self._watcher.watch_memory(project, self._home, settings)
        self._update(project, settings, wait_seconds, notes)
        snapshot = self._read(project, settings)
        with self._guard:
            if found is not None:
                self._drop_corpora(found)
            self._projects[project.root] = _OpenProject(key, snapshot, now)
            while len(self._projects) > MAX_PROJECTS:
                self._close(next(iter(self._projects)))
        return snapshot

    def _refresh(self, found: _OpenProject, project: Project, settings: Settings) -> Snapshot | None:
        """Read a newer snapshot in one thread, if there is one. Others use the one before meanwhile."""
        if found.snapshot is not None and found.snapshot.is_current():
            return found.snapshot
        if found.reading.acquire(blocking=found.snapshot is None):
            try:
                if found.snapshot is None or not found.snapshot.is_current():
                    newest = self._read(project, settings, found.snapshot)
                    self._drop_corpora(found)
                    found.snapshot = newest
            finally:
                found.reading.release()
        return found.snapshot

    def _update(self, project: Project, settings: Settings, wait_seconds: float, notes: list[str]) -> None:
        has_older = open_snapshot(project, self._home, settings) is not None
        started = time.monotonic()
        try:
            report = self._index(project.root).result(wait_seconds)
        except TimeoutError as error:
            if not has_older:
                raise NotHereError(f"{project.root} is being indexed for the first time") from error
            waited = time.monotonic() - started
            notes.append(f"the newest entries may be missing: indexing has not finished after {waited:.0f} s")
        except (MemkitError, OSError) as error:
            if not has_older:
                raise
            notes.append(f"the newest entries may be missing: {error}")
        else:
            notes += filter(None, [report.degraded, report.away])
            notes += [f"{line}; searched its old text" for line in report.unreadable]

    def _read(self, project: Project, settings: Settings, earlier: Snapshot | None = None) -> Snapshot | None:
        snapshot = open_snapshot(project, self._home, settings, earlier=earlier)
        if snapshot is not None:
            self._corpus([snapshot])  # while other threads still use the one before
        return snapshot

    def _corpus(self, snapshots: Sequence[Snapshot]) -> Corpus:
        key = tuple(snapshot.name for snapshot in snapshots)
        with self._guard:
            found = self._corpora.get(key)
        corpus = Corpus(snapshots) if found is None else found
        with self._guard:
            # A search that began before the newest snapshot must not bring back a dropped corpus.
            if not all(snapshot.is_current() for snapshot in snapshots):
                return corpus
            corpus = self._corpora.setdefault(key, corpus)
            self._corpora.move_to_end(key)
            while len(self._corpora) > MAX_CORPORA:
                self._corpora.popitem(last=False)
        return corpus

    def _drop_corpora(self, closed: _OpenProject) -> None:
        with self._guard:
            for key in [*self._corpora]:
                if closed.snapshot is not None and closed.snapshot.name in key:
                    del self._corpora[key]

    def _close(self, root: str) -> None:
        self._watcher.unwatch(root)
        self._drop_corpora(self._projects.pop(root))
