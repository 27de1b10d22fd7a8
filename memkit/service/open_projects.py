"""Memories held open for searching: snapshots, what is made of them, and the models."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, TimeoutError
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from memkit.errors import MemkitError, NoDescriptorsError
from memkit.hook.project import Project
from memkit.index import open_snapshot
from memkit.index.catalog import also_searched, index_key, project_names
from memkit.index.snapshot import Snapshot
from memkit.ipc.requests import NotHereError
from memkit.paths import Home
from memkit.recall.corpus import Corpus
from memkit.recall.search import Searcher
from memkit.settings.load import SearchSettings, Settings

if TYPE_CHECKING:
    from memkit.embedding import Embedder
    from memkit.index import SyncReport
    from memkit.settings import EmbeddingSettings

logger = logging.getLogger(__name__)

MOST_JOINED = 2
"""So many combinations of projects stay joined: joining them anew would cost every search."""

MOST_PROJECTS = 8
"""Projects held open at once; the one that was not asked for longest is closed for another."""

FIRST_WAIT_SECONDS = 5.0
"""How long the first search of a project waits until its index is in step."""

RETRY_SECONDS = 300.0
"""How long after a pass that left chunks without vectors the next one is tried."""


@dataclass(slots=True)
class _Held:
    """What is open of a project: `key` says with which settings; `checked` is when it was last indexed."""

    key: str
    snapshot: Snapshot | None
    corpus: Corpus | None
    checked: float
    reading: threading.Lock = field(default_factory=threading.Lock)


class Models:
    """The embedders, loaded once each."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._loaded: dict[EmbeddingSettings, tuple[Embedder | None, str]] = {}
        self._guard = threading.Lock()

    def find(self, chosen: EmbeddingSettings) -> tuple[Embedder | None, str]:
        """The embedder; None and the reason if there is none to be had. That is asked anew each time."""
        from memkit.embedding import find_embedder

        if chosen.provider == "none":
            return None, ""
        with self._guard:
            found = self._loaded.get(chosen)
            if found is None or found[0] is None:
                found = self._loaded[chosen] = find_embedder(self._home, chosen, logger.info)
            return found

    def clear(self) -> None:
        """Forget all; the next one who wants one loads it."""
        with self._guard:
            self._loaded.clear()


class OpenProjects:
    """Searchers over what is held open. Several threads may ask at once."""

    def __init__(
        self,
        home: Home,
        models: Models,
        settings_of: Callable[[Project], Settings],
        index: Callable[[str], Future[SyncReport]],
        watch: Callable[[Project, Settings], None],
        unwatch: Callable[[str], None],
    ) -> None:
        """`index` brings a project into step, `watch` sees to it that it stays so."""
        self._home = home
        self._models = models
        self._settings_of = settings_of
        self._index = index
        self._watch = watch
        self._unwatch = unwatch
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._joined: OrderedDict[tuple[Path, ...], Corpus] = OrderedDict()
        self._guard = threading.RLock()

    def sizes(self) -> dict[str, int]:
        """By root the number of chunks held open."""
        with self._guard:
            held = list(self._held.items())
        return {root: 0 if one.snapshot is None else len(one.snapshot) for root, one in held}

    def is_warm(self, project: Project) -> bool:
        """Whether a search of the project would find it open."""
        return project.root in self._held

    def clear(self) -> None:
        """Close all; the next search of a project opens it again."""
        with self._guard:
            for root in self._held:
                self._unwatch(root)
            self._held.clear()
            self._joined.clear()

    def searcher(
        self,
        project: Project,
        settings: Settings,
        search: SearchSettings,
        *,
        all_projects: bool = False,
        wait_seconds: float = FIRST_WAIT_SECONDS,
    ) -> Searcher:
        """A searcher over the project and the user's memory, or over all, that ranks as `search` says.

        Raises `MemkitError` if there is no index and none can be made.
        """
        notes: list[str] = []
        held = [self._open(project, settings, wait_seconds, notes)]
        for other in also_searched(project, self._home, search, all_projects=all_projects):
            try:
                held.append(self._open(other, self._settings_of(other), wait_seconds, notes))
            except NoDescriptorsError:  # nothing more can be opened
                raise
            except (MemkitError, OSError) as error:  # one project's trouble is not another's
                notes.append(f"without {other.root}: {error}")
        open_ones = [one for one in held if one.snapshot is not None]
        if not open_ones:
            return Searcher([], search, None)
        embedder: Embedder | None = None
        if search.mode != "lexical":
            embedder, problem = self._models.find(settings.embedding)
            if problem:
                notes.append(f"searched by words alone: {problem}")
        missing = sum(one.snapshot.missing for one in open_ones if one.snapshot is not None)
        if missing and embedder is not None:
            notes.append(f"searched {missing} chunks by words alone: not embedded yet")
        corpus = self._corpus_of(open_ones)
        names = project_names(self._home, (one.root for one in corpus.snapshots))
        return Searcher(corpus, search, embedder, notes, names)

    def _corpus_of(self, held: Sequence[_Held]) -> Corpus:
        """The chunks of all that is `held` as one corpus; the latest few are kept."""
        if len(held) == 1 and held[0].corpus is not None:
            return held[0].corpus
        snapshots = [one.snapshot for one in held if one.snapshot is not None]
        key = tuple(snapshot.path for snapshot in snapshots)
        with self._guard:
            found = self._joined.get(key)
            if found is None:
                found = self._joined[key] = Corpus(snapshots)
                while len(self._joined) > MOST_JOINED:
                    self._joined.popitem(last=False)
            self._joined.move_to_end(key)
            return found

    def _open(
        self, project: Project, settings: Settings, wait_seconds: float, notes: list[str]
    ) -> _Held:
        """What is held of a project, as it is now; opened and brought into step if it was not."""
        key, now = index_key(project, self._home, settings), time.monotonic()
        with self._guard:
            held = self._held.get(project.root)
            if held is not None and held.key == key:
                self._held.move_to_end(project.root)
                is_whole = held.snapshot is None or not held.snapshot.missing
                if not is_whole and now - held.checked > RETRY_SECONDS:
                    held.checked = now
                    self._index(project.root)
        if held is not None and held.key == key:
            self._refresh(held, project, settings)
            return _Held(key, held.snapshot, held.corpus, held.checked)
        self._watch(project, settings)
        self._bring_into_step(project, settings, wait_seconds, notes)
        with self._guard:
            held = self._held[project.root] = _Held(key, *self._read(project, settings), now)
            while len(self._held) > MOST_PROJECTS:
                self._unwatch(self._held.popitem(last=False)[0])
            return held

    def _refresh(self, held: _Held, project: Project, settings: Settings) -> None:
        """Read the snapshot that has taken the place of the one held.

        One thread does; the others answer from what they have meanwhile.
        """
        if held.snapshot is not None and held.snapshot.is_current():
            return
        if held.reading.acquire(blocking=held.snapshot is None):
            try:
                if held.snapshot is None or not held.snapshot.is_current():
                    held.snapshot, held.corpus = self._read(project, settings)
            finally:
                held.reading.release()

    def _bring_into_step(
        self, project: Project, settings: Settings, wait_seconds: float, notes: list[str]
    ) -> None:
        has_older = open_snapshot(project, self._home, settings) is not None
        started = time.monotonic()
        future = self._index(project.root)
        try:
            report = future.result(wait_seconds)
        except TimeoutError as error:
            if not has_older:
                raise NotHereError(f"{project.root} is being indexed for the first time") from error
            waited = time.monotonic() - started
            notes.append(
                f"the newest entries may be missing: indexing has not ended in {waited:.0f} s"
            )
        except (MemkitError, OSError) as error:
            if not has_older:
                raise
            notes.append(f"the newest entries may be missing: {error}")
        else:
            notes += filter(None, [report.degraded])
            notes += [f"{line}; searched as it was" for line in report.unreadable]

    def _read(
        self, project: Project, settings: Settings
    ) -> tuple[Snapshot | None, Corpus | None]:
        snapshot = open_snapshot(project, self._home, settings)
        return snapshot, None if snapshot is None else Corpus([snapshot])
