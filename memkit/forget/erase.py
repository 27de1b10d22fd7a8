"""Forget: erase text from every place where memkit keeps it. Each step can run again after a kill."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec

from memkit.archive.archive import Archive
from memkit.archive.turn import ArchivedTurn
from memkit.capture.project_list import remembered_projects
from memkit.capture.summary_queue import SummaryQueue
from memkit.embedding.models import space
from memkit.errors import IndexStoreError, MemkitError
from memkit.files import sync_directory
from memkit.forget.locations import Locations, find_locations
from memkit.forget.selection import ForgetSelection
from memkit.index import sync_project
from memkit.index.catalog import collection_name, snapshots_of
from memkit.index.merge import erase_dead
from memkit.index.mirror import delete_collection, remove_strays, start_again
from memkit.index.reader import ChunkReader, open_current
from memkit.ipc import spool, unindexed
from memkit.journal.day_edits import Removal
from memkit.journal.day_summaries import turns_of
from memkit.journal.journal import Journal
from memkit.journal.team import TeamFolder
from memkit.paths import Home
from memkit.privacy.tombstones import Forgotten, Tombstones
from memkit.projects.project import Project
from memkit.projects.team import author_folder
from memkit.settings import is_server
from memkit.settings.load import Settings
from memkit.text import one_line
from memkit.timeline.cache import erase_timelines
from memkit.topics import topic_store

logger = logging.getLogger(__name__)

def forget(
    home: Home, project: Project, selection: ForgetSelection, settings_of: Callable[[Project], Settings],
    announce: Callable[[str], None] = logger.info,
) -> tuple[Locations, list[str]]:
    """Erase `selection`, and what an earlier, killed run did not finish.

    Return what it was, and the problems, one line each; the next call tries those again. The caller holds the
    locks of the index and of model calls, because a call in progress may return what is to be erased. Raise
    `MemkitError`, `OSError`.
    """
    tombstones = Tombstones(home)
    spool.recover(home)
    found = find_locations(home, project, selection)
    unfinished = tombstones.begin(found.forgotten)
    if selection.everywhere or _named(unfinished) != _named(selection.forgotten):
        found = find_locations(home, project, replace(selection, forgotten=unfinished, everywhere=False))
    else:
        found.forgotten |= unfinished  # a place that an earlier run emptied is not found again
    problems = _Eraser(home, found, settings_of, settings_of(project).index.uri, announce).run()
    if not problems:
        tombstones.finish()
    return found, problems


def _named(forgotten: Forgotten) -> Forgotten:
    """Return what decides where to search: not where something was found, and when."""
    return msgspec.structs.replace(forgotten, minutes=frozenset(), roots=frozenset())


class _Eraser:
    def __init__(
        self, home: Home, found: Locations, settings_of: Callable[[Project], Settings], uri: str,
        announce: Callable[[str], None],
    ) -> None:
        self._home = home
        self._uri = uri
        self._found = found
        self._forgotten = found.forgotten
        self._settings_of = settings_of
        self._announce = announce
        roots = sorted(self._forgotten.roots)
        self._projects = list(dict.fromkeys(Project.at_root(root, home) for root in roots))

    def run(self) -> list[str]:
        problems = []
        for root in sorted(self._forgotten.roots):
            unindexed.mark(self._home, root)  # after a kill, the next process updates the index
        for step in (self._team, self._old_versions, self._markdown, self._titles, self._days,
                     self._facts, self._archive, self._summary_queue, self._index, self._topics):  # fmt: skip
            try:
                step()
            except (MemkitError, OSError) as error:  # continue with the other places
                problems.append(one_line(str(error)))
        return problems

    def _journal(self, project: Project) -> Journal:
        return Journal(project, shared=self._settings_of(project).memory.shared)

    def _team(self) -> None:
        """Remove the user's own copies from the working trees. What is committed stays in git."""
        for project in dict.fromkeys(project for project, _ in self._found.team):
            keys = {one.key for other, one in self._found.team if other == project}
            shared = self._settings_of(project).memory.shared
            TeamFolder(project, author_folder(project.root), shared=shared).remove(keys, self._home)

    def _old_versions(self) -> None:
        repository = Path(self._home.sync_repository)  # the next sync fetches it again, if it has no HEAD
        (repository / "HEAD").unlink(missing_ok=True)
        shutil.rmtree(repository, ignore_errors=True)
        for path in self._found.old_versions:
            path.unlink(missing_ok=True)
            sync_directory(str(path.parent))

    def _markdown(self) -> None:
        for project, path in self._found.files:
            self._journal(project).remove_file(path)
        # From the end of each file, so that the lines of the other passages stay valid.
        for passage in sorted(self._found.passages, key=lambda one: (one.path, -one.start)):
            self._journal(passage.project).remove_lines(passage.path, passage.start, passage.end)

    def _titles(self) -> None:
        """Remove the titles of the rollups that rest on a day. This comes before the day loses anything."""
        for one in self._found.days:
            for name in one.rollups:
                path = Path(one.project.memory, name)
                if path.is_file() and not path.is_symlink():
                    self._journal(one.project).drop_title(name)

    def _days(self) -> None:
        for one in self._found.days:
            journal = self._journal(one.project)
            gone = self._forgotten.within(one.project.root)
            if one.whole:
                journal.remove_day(one.day)
            else:
                journal.remove(one.day, Removal(gone.turns, gone.grips, gone.notes))
        for project in self._projects:
            if Path(project.memory).is_dir():
                self._journal(project).remove_left_behind()

    def _facts(self) -> None:
        for one in self._found.facts:
            self._journal(one.project).remove_facts(one.path, one.facts)

    def _archive(self) -> None:
        archive = Archive(self._home)
        for session in sorted(self._found.archived.keys() | self._found.owners.keys()):
            gone = self._found.archived.get(session, frozenset())
            owners = self._found.owners.get(session, {})
            archive.rewrite(session, partial(_kept_turn, gone, owners))
        archive.remove_left_behind()

    def _summary_queue(self) -> None:
        queue = SummaryQueue(self._home)
        for waiting in list(queue):
            is_shared = waiting.root in self._forgotten.only
            if waiting.session not in self._found.sessions and not is_shared:
                continue
            for turn in self._forgotten.within(waiting.root).turns & waiting.tries.keys():
                del waiting.tries[turn]
            journal = Journal(Project.at_root(waiting.root, self._home))
            done = [day for day in waiting.days if not turns_of(journal.day(day), waiting.session)]
            queue.update(waiting, done)

    def _index(self) -> None:
        projects = [(project, self._settings_of(project)) for project in self._projects]
        purge_index(self._home, projects, self._uri, None, self._is_in, self._announce)

    def _topics(self) -> None:
        def gone_from(root: str) -> frozenset[str]:
            gone = self._forgotten.within(root)
            return gone.turns | gone.grips

        topic_store.drop_members(self._home, self._forgotten.roots, gone_from)

    def _is_in(self, chunks: ChunkReader) -> bool:
        if chunks.root in self._forgotten.roots:
            return True
        gone = self._forgotten.within(chunks.root)
        return any(
            gone.turns.intersection(chunk.turns)
            or gone.grips.intersection(chunk.citations)
            or any(period.project == chunks.root for period in gone.periods)
            for chunk in chunks.stored_chunks()
        )


def _kept_turn(gone: Collection[str], owners: Mapping[str, str], turn: ArchivedTurn) -> ArchivedTurn | None:
    if turn.id in gone:
        return None
    return replace(turn, project=owners[turn.id]) if turn.id in owners else turn


def purge_index(
    home: Home, projects: Sequence[tuple[Project, Settings]], uri: str, roots: Collection[str] | None,
    holds_text: Callable[[ChunkReader], bool], announce: Callable[[str], None],
) -> None:  # fmt: skip
    """Update the indexes of `projects`, and erase deleted text from the files of every index and timeline.

    An index that no project reads, because of another model or a missing directory, is dropped if
    `holds_text`. `roots` limits this to some projects. Raise `IndexStoreError`, `EmbeddingError`.
    """
    from memkit.topics.compute import recount  # numpy

    current, away = {}, ""
    for project, settings in projects:
        if Path(project.root).is_dir():
            announce(f"updating the index of {project.root}")
            report = sync_project(project, home, settings, later=True, announce=announce)
            if report.away:  # what waits there is deleted with the next contact; until then this is not done
                away = report.away
            current[collection_name(project, home, space(settings.embedding))] = project, settings
    for directory in snapshots_of(home, roots):
        chunks = open_current(directory, ChunkReader)
        if chunks is None or not erase_dead(directory):  # it cannot be read
            shutil.rmtree(directory, ignore_errors=True)
            continue
        if directory.name in current:
            project, settings = current[directory.name]
            recount(project, home, settings)
            if not is_server(uri):  # Chroma keeps deleted vectors in its files
                start_again(home, uri, directory.name)
        elif holds_text(chunks):
            delete_collection(home, uri, directory.name)
    erase_timelines(home, remembered_projects(home))
    if away:
        raise IndexStoreError(f"forgotten text may still be on the server: {away}")
    remove_strays(home)
    if is_server(uri):
        announce(f"the Chroma server {uri} may keep deleted text in its own files; run `chroma vacuum` there")
