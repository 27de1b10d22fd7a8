"""A memory as memkit's own interfaces need it: also pages for a browser, locks, jobs, and single steps."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from memkit import locks
from memkit.memory import Memory
from memkit.projects.project import Project

if TYPE_CHECKING:
    from memkit.browse.history import SessionPage
    from memkit.browse.resume import FoundSession, Resumable
    from memkit.questions.client import SearchClient
    from memkit.service.jobs import JobView
    from memkit.stats import MemoryOverview
    from memkit.timeline.events import ChildrenMatches
    from memkit.timeline.tree import Timeline
    from memkit.timeline.view import Calendar
    from memkit.topics.file_map import FileMap
    from memkit.topics.graph import Graph


class InterfaceMemory(Memory):
    """The memory of one project, for the command line, HTTP, and MCP."""

    def search_client(self, all_projects: bool = False, mode: str = "") -> SearchClient:
        """Return an object that answers many requests from the memory as it is now."""
        return self._search_client(all_projects, mode)

    def capture_lock(self) -> AbstractContextManager[None]:
        """Hold the lock of capture. Raise `IndexBusyError` after `wait_seconds`."""
        return locks.capture_lock(self.home, self.wait_seconds, self.announce)

    def index_lock(self) -> AbstractContextManager[None]:
        """Hold the lock of the index. Raise as `capture_lock` does."""
        return locks.index_lock(self.home, self.wait_seconds, self.announce)

    def session_list(
        self, *, since: str = "", until: str = "", branch: str = "", file: str = "", limit: int = 50,
        after: str = "", all_projects: bool = False,
    ) -> SessionPage:  # fmt: skip
        """Return a page of `sessions`. With `until`, a session has only its days in the period."""
        from memkit.browse.history import SessionFilters, list_sessions

        filters = SessionFilters(since, branch, file, until)
        return list_sessions(self._timelines(all_projects), filters, limit, after)

    def calendar(self, year: int) -> Calendar:
        """Return how much each day of a year holds."""
        from memkit.timeline.view import calendar

        return calendar(self._timeline, year)

    def overview(self) -> MemoryOverview:
        """Return sizes, the last turn, costs, and health."""
        from memkit.stats import overview

        return overview(self._timeline, self.home, self.settings, self.index_status())

    def scan_children(self, words: str, node: str = "", *, limit: int = 20) -> ChildrenMatches:
        """Return the children of a node in which something has all words, with their first matches."""
        from memkit.timeline.events import find_in_children

        timeline = self._timeline
        return find_in_children(timeline, timeline.node(node), words, limit, self.announce)

    def changes(self, since: Timeline | None = None) -> tuple[Timeline, list[str], list[str]]:
        """Return the timeline as it is now, the changed days, and what is new in them."""
        found = self._timeline
        return found, *found.changes_since(since or found)

    def graph(self, around: str, *, limit: int = 200) -> Graph:
        """Return the topics, turns, and files around `topic:ID`, `file:PATH`, or `entry:TURN`.

        They are nodes and edges of a graph. This computes no topics.
        """
        from memkit.topics.graph import graph
        from memkit.topics.topic_list import read_topics

        topics = read_topics(self.project, self.home, self.settings)
        return graph(self._timeline, topics, around, limit, self.announce)

    def files(self, limit: int = 40) -> FileMap:
        """Return the files that were edited most, by topic and week, without computing topics."""
        from memkit.topics.file_map import file_map
        from memkit.topics.topic_list import read_topics

        topics = read_topics(self.project, self.home, self.settings)
        return file_map(self._timeline, topics, limit, self.announce)

    def find_sessions(self, *words: str, all_projects: bool = False) -> list[FoundSession]:
        """Return the sessions on a subject, best first, or the one with an ID."""
        from memkit.browse.resume import MOST_RESULTS, named_session, sessions_of
        from memkit.journal.journal import Journal

        for project in self._projects(all_projects):
            if named := named_session(Journal(project, home=self.home), words):
                return [named]
        answer = self.search(" ".join(words), MOST_RESULTS, all_projects=all_projects, excerpts=True)
        return sessions_of(answer)

    def resumable(self, session: FoundSession) -> Resumable:
        """Return the command and the directory that resume a session in Claude Code."""
        from memkit.browse.resume import resumable

        chunks = functools.cache(self._chunks)
        return resumable(self.home, session, chunks, other_projects=self.other_projects)

    def trust_team(self, *, is_trusted: bool = True) -> list[str]:
        """Search what people share in this clone, or no longer. Return the authors.

        Only what the default branch of the upstream has counts.
        """
        from memkit.hook.notices import not_said_yet
        from memkit.projects.team import distrust, trust, update_copy
        from memkit.projects.team_files import people, read_copied

        root = self.project.root
        update_copy(self.home, root)
        names = people(read_copied(self.home, root))
        if is_trusted:
            not_said_yet(self.home, root, names)
        (trust if is_trusted else distrust)(self.home, root)
        self.index()
        return names

    def index_soon(self) -> None:
        """Have the service index what was added; without it, the next search does."""
        from memkit.ipc import launch

        if self.settings.service.enabled:
            launch.start_service(self.home)

    def index_status(self) -> dict[str, Any]:
        """Return what the index holds; `missing` chunks have no vector yet."""
        from memkit.index import is_up_to_date, open_manifest, read_files

        state = open_manifest(self.project, self.home, self.settings)
        files = read_files(self.project, self.home, self.settings, state)
        return {
            "files": len(files),
            "chunks": 0 if state is None else state.chunks,
            "missing": 0 if state is None else state.missing,
            "in_step": not files if state is None else is_up_to_date(state, files, self.settings),
            "model": self.settings.embedding.model,
        }

    def jobs(self) -> dict[str, JobView]:
        """Return the recurring jobs of this memory home by name: purpose, interval, next and last run."""
        from memkit.service.jobs import JOBS, JobBook, JobState

        states, settings = JobBook(self.home).states(), self.settings_of(Project(self.home.root, self.home))
        return {job.name: job.as_dict(states.get(job.name, JobState()), settings) for job in JOBS}
