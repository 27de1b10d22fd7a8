"""Erases what is to be forgotten from every place. Each step can be done twice."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from memkit.archive.archive import Archive
from memkit.archive.turn import ArchivedTurn
from memkit.capture.sessions import Sessions
from memkit.capture.summary_queue import SummaryQueue
from memkit.embedding.models import space
from memkit.errors import MemkitError
from memkit.files import sync_directory
from memkit.forget.locations import Locations, find_locations
from memkit.forget.selection import ForgetSelection
from memkit.hook.project import Project
from memkit.index.chunk_reader import ChunkReader, open_in_force
from memkit.index.current import collection_name, other_collections, snapshots_of
from memkit.index.erasure import erase_deleted, forget_collection
from memkit.index.snapshot_writer import remove_others
from memkit.index.sync import sync_project
from memkit.ipc import spool, unindexed
from memkit.journal.day_removal import Removal
from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.privacy.tombstones import Forgotten, Tombstones
from memkit.settings.load import Settings
from memkit.state import parse_json

logger = logging.getLogger(__name__)


def forget(
    home: Home,
    project: Project,
    selection: ForgetSelection,
    settings_of: Callable[[Project], Settings],
    announce: Callable[[str], None] = logger.info,
) -> list[str]:
    """Forget `selection`, and what an earlier run that was killed has left of its own.

    `project` is the one in hand. Returns, in lines for people, what could not be done; then the next call
    tries it again. The caller holds the index lock and that of the summaries: a model that is being asked
    may know what is to go. Raises `MemkitError`, `OSError`.
    """
    tombstones = Tombstones(home)
    spool.recover(home)
    # Found once more: what came in while a person was asked is of it too.
    found = find_locations(home, project, selection)
    unfinished = tombstones.begin(found.forgotten)
    found = find_locations(home, project, ForgetSelection(unfinished, selection.passages))
    uri = settings_of(project).index.uri
    problems = _Eraser(home, found, settings_of, uri, announce).run()
    if not problems:
        tombstones.finish()
    return problems


class _Eraser:
    def __init__(
        self,
        home: Home,
        found: Locations,
        settings_of: Callable[[Project], Settings],
        uri: str,
        announce: Callable[[str], None],
    ) -> None:
        self._home = home
        self._uri = uri
        self._found = found
        self._forgotten: Forgotten = found.forgotten
        self._settings_of = settings_of
        self._announce = announce
        self._problems: list[str] = []

    def run(self) -> list[str]:
        for root in sorted(self._forgotten.roots):
            unindexed.mark(self._home, root)  # a kill leaves the index to whoever comes next
        for step in (self._old_versions, self._markdown, self._days, self._facts, self._archive,
                     self._states, self._spool, self._waiting, self._index):  # fmt: skip
            try:
                step()
            except (MemkitError, OSError) as error:  # what one place refuses goes from the others
                self._problems.append(" ".join(str(error).split()))
        return self._problems

    def _journal(self, project: Project) -> Journal:
        return Journal(project, shared=self._settings_of(project).memory.shared)

    @property
    def _projects(self) -> list[Project]:
        """Those of which something goes."""
        roots = sorted(self._forgotten.roots)
        return list(dict.fromkeys(Project.at_root(root, self._home) for root in roots))

    def _old_versions(self) -> None:
        for path in self._found.old_versions:
            path.unlink(missing_ok=True)
            sync_directory(str(path.parent))

    def _days(self) -> None:
        for one in self._found.days:
            journal = self._journal(one.project)
            gone = self._forgotten.within(one.project.root)
            removal = Removal(gone.turns, gone.grips, gone.notes)
            if one.whole:
                journal.remove_file(journal.path(one.day))
            else:
                journal.remove(one.day, removal)
        for project in self._projects:
            if Path(project.memory).is_dir():
                self._journal(project).remove_left_behind()

    def _facts(self) -> None:
        for one in self._found.facts:
            self._journal(one.project).remove_facts(one.path, one.facts)

    def _markdown(self) -> None:
        for project, path in self._found.files:
            self._journal(project).remove_file(path)
        # From the last one on, so that the lines of the others stay where they are.
        for passage in sorted(self._found.passages, key=lambda one: (one.path, -one.start)):
            self._journal(passage.project).remove_lines(passage.path, passage.start, passage.end)

    def _archive(self) -> None:
        archive = Archive(self._home)
        for session in sorted(self._found.archived.keys() | self._found.owners.keys()):
            gone = self._found.archived.get(session, frozenset())
            owners = self._found.owners.get(session, {})
            archive.rewrite(session, partial(_kept, gone, owners))
        archive.remove_left_behind()

    def _states(self) -> None:
        sessions = Sessions(self._home)
        sessions.drop_text()
        sessions.remove_unreadable([*self._found.sessions, *self._forgotten.turns])

    def _spool(self) -> None:
        """Remove text that an older memkit spooled, and its damaged events of these sessions."""
        spool.drop_text(self._home)
        names = [name.encode("utf-8", "surrogateescape") for name in self._found.sessions]
        for path in Path(self._home.spool).glob("*/*.json"):
            try:
                data = path.read_bytes()
                record = parse_json(data)
            except FileNotFoundError:
                continue
            except ValueError:
                record = None
            if not isinstance(record, dict) and any(name in data for name in names):
                path.unlink(missing_ok=True)

    def _waiting(self) -> None:
        """Nothing of what is gone waits to be summarized."""
        sessions = SummaryQueue(self._home)
        for waiting in list(sessions):
            is_shared = waiting.root in self._forgotten.only
            if waiting.session not in self._found.sessions and not is_shared:
                continue
            for turn in self._forgotten.within(waiting.root).turns & waiting.tries.keys():
                del waiting.tries[turn]
            journal = Journal(Project.at_root(waiting.root, self._home))
            done = [day for day in waiting.days if not journal.day(day).turns_of(waiting.session)]
            sessions.note(waiting, done)

    def _index(self) -> None:
        """Bring the index into step, and leave nothing in its files that is not in it."""
        for project in self._projects:
            settings = self._settings_of(project)
            name = collection_name(project, self._home, space(settings.embedding))
            if Path(project.root).is_dir():
                sync_project(project, self._home, settings, announce=self._announce)
            for other in other_collections(project, self._home, name):
                forget_collection(self._home, self._uri, other)
        for directory in snapshots_of(self._home, None):
            chunks = open_in_force(directory, ChunkReader)
            if chunks is not None:
                remove_others(directory, chunks.path.name)
                if not Path(chunks.root).is_dir() and self._is_in(chunks):
                    forget_collection(self._home, self._uri, directory.name)
        if not erase_deleted(self._home, self._uri):
            self._announce(
                f"the Chroma server {self._uri} may keep what was deleted in its own files; run "
                "`chroma vacuum` there"
            )

    def _is_in(self, chunks: ChunkReader) -> bool:
        """Whether the index of a project that is gone, which nobody brings into step, holds some of it."""
        gone = self._forgotten.within(chunks.root)
        return any(
            gone.turns.intersection(chunk.turns)
            or gone.grips.intersection(chunk.grips)
            or any(period.project == chunks.root for period in gone.periods)
            for chunk in chunks.chunks()
        )


def _kept(
    gone: Collection[str], owners: Mapping[str, str], turn: ArchivedTurn
) -> ArchivedTurn | None:
    """What stays of an archived turn: nothing, or all of it as that of another project."""
    if turn.id in gone:
        return None
    return replace(turn, project=owners[turn.id]) if turn.id in owners else turn
