"""The front door: what a program does with a memory, in one class.

    from memkit import Memory

    memory = Memory("~/src/shop")
    answer = memory.search("which port does the staging gateway use")
    for result in answer.results:
        print(result.id, result.chunk.date, result.chunk.content)

Markdown is the source of truth: hooks in Claude Code write it, you edit it, the index is derived from it.
The background service answers searches if it is up; otherwise this process does the work.
"""

from __future__ import annotations

import functools
import logging
import os
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memkit.errors import (
    AmbiguousIdError,
    IndexBusyError,
    IndexStoreError,
    MemkitError,
    NotFoundError,
    OtherProjectsError,
)
from memkit.hook.events import DISABLE_VARIABLE
from memkit.ipc.client import ServiceUnavailable
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.questions.caller import Caller
from memkit.typed import typed

if TYPE_CHECKING:
    from datetime import date, datetime

    from typing_extensions import Self

    from memkit.browse.citation import Citation
    from memkit.browse.expand import Section
    from memkit.browse.file_history import FileHistory
    from memkit.browse.names import Entry
    from memkit.browse.session_view import SessionView
    from memkit.browse.transcript import Exchange
    from memkit.capture.ingest import Ingested
    from memkit.forget.locations import Locations
    from memkit.forget.selection import ForgetSelection
    from memkit.index import SyncReport
    from memkit.index.chunk import Chunk
    from memkit.index.update import Progress
    from memkit.journal.digest import Note
    from memkit.journal.journal import Journal
    from memkit.maintenance.share import ShareReport, UnshareReport
    from memkit.pointers.failures import Fix, Invocation
    from memkit.questions.client import SearchClient
    from memkit.search.overview import PastSession, TopicCount
    from memkit.search.results import Answer, Filters
    from memkit.settings.load import Settings
    from memkit.summarize.compaction import CompactionReport
    from memkit.timeline.events import Events, NodeMatches
    from memkit.timeline.tree import Timeline
    from memkit.timeline.view import TimelineView
    from memkit.topics.topic_list import Topic, TopicList

logger = logging.getLogger(__name__)

LOCK_SECONDS = 600.0
"""The longest wait for another process that writes the index."""

TOPIC_RESULTS = 50
"""The results of a search whose topics count."""

_COMPUTING = threading.Lock()
"""Held while topics are computed."""


class Memory:
    """The memory of one project.

        memory = Memory()    # the project of the working directory

    All methods raise `MemkitError` with one line for the user. They block; threads may share a memory. As a
    context manager it ends what `watch` still does.
    """

    def __init__(
        self, directory: str | Project = ".", *, home: Home | None = None,
        settings_of: Callable[[Project], Settings] | None = None,
        announce: Callable[[str], None] = logger.info, other_projects: bool = True,
        caller: Caller | None = None,
    ) -> None:  # fmt: skip
        """Read only this project and the user's memory unless `other_projects`.

        `caller` is who asks, and where: entries are compared with the worktree there.

        `announce` takes a line about anything the user may have to wait for. The attribute `wait_seconds`
        is the longest wait for another process that writes the index.
        """
        self.home = home or Home.from_environment()
        if not isinstance(directory, Project):
            directory = Project.remembering(os.path.expanduser(directory), self.home)
        self.project = directory
        self.settings_of = settings_of or (lambda project: _load_settings(self.home, project))
        self.announce = announce
        self.other_projects = other_projects
        self.caller = caller or Caller()
        self.wait_seconds = LOCK_SECONDS
        self._open = ExitStack()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.project.root!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def search(
        self, query: str, k: int | None = None, *, budget: int | None = None, filters: Filters | None = None,
        file: str = "", minimum: float | None = None, explain: bool = False, excerpts: bool = False,
        lookups: bool = True, today: date | None = None, all_projects: bool = False, mode: str = "",
    ) -> Answer:  # fmt: skip
        """Return what the memory holds on a question, best first. L1: ranked results.

            memory.search("why is the nightly build slow", k=3, filters=Filters(branch="main"))

        `mode` ranks otherwise than the setting `search.mode`; the rest is as in `SearchRequest`. Edited files
        are indexed first. Results are marked if the repository has changed since.
        """
        from memkit.search.results import Filters, SearchRequest

        request = SearchRequest(
            query, k, budget, filters or Filters(), file, minimum, explain, excerpts, today, lookups
        )
        return self._search_client(all_projects, mode).answer(request)

    def _search_client(self, all_projects: bool = False, mode: str = "") -> SearchClient:
        """Return an object that answers many requests from the memory as it is now."""
        from memkit.questions.client import SearchClient
        from memkit.settings import SearchSettings

        if all_projects and not self.other_projects:
            raise OtherProjectsError("this memory may not read other projects")
        settings = self.settings
        if mode:
            import msgspec

            try:
                asked = {**msgspec.to_builtins(settings.search), "mode": mode}
                search = typed(asked, SearchSettings)
            except msgspec.ValidationError as error:
                raise MemkitError(f"there is no mode {mode!r} of search; {error}") from error
            settings = msgspec.structs.replace(settings, search=search)
        return SearchClient(
            self.project, self.home, settings, self.announce,
            find_topics=self._find_topics, all_projects=all_projects, caller=self.caller,
        )  # fmt: skip

    def _find_topics(self, project: Project, since: str, until: str) -> list[TopicCount] | None:
        from memkit.topics.topic_list import topics_in

        return topics_in(project, self.home, self.settings_of(project), since, until)

    def expand(self, *ids: str) -> list[Section]:
        """Return the whole Markdown sections around results, by their ids. L2: the context.

            (section,) = memory.expand("8b52f4fb")
            print(section["content"], section["turns"])
        """
        from memkit.questions.client import ask_service
        from memkit.search import usage

        may_leave = {"other_projects": self.other_projects}
        place = {"directory": self.caller.directory}
        try:
            sections: list[Section] = ask_service(
                self.project, self.home, self.settings, "expand",
                {"ids": list(ids), **place, **may_leave},
                announce=self.announce,
            )["sections"]  # fmt: skip
        except ServiceUnavailable:
            from memkit.questions.caller import expand_entries

            sections = expand_entries(
                self.project, self.home, self.settings_of, ids, self.caller.directory, **may_leave
            )
        try:
            usage.note(self.home, "expand", [section["id"] for section in sections])
        except OSError as error:  # the sections matter more than the count
            logger.warning("not counted: %s", error)
        return sections

    def transcript(
        self, session: str | None = None, turn: str | None = None, context: int = 3
    ) -> Exchange:
        """Return the original exchange, redacted, even after Claude Code deleted it. L3: every word.

            memory.transcript()                               # the latest session
            memory.transcript("8bb06550", turn="8b52f4fb")    # one turn and the messages around it
        """
        from memkit.browse.transcript import locate, read_exchange
        from memkit.settings import is_server

        chunks = functools.cache(self._chunks)
        if turn and session is None and (entry := self._entry(turn)) and entry.kind not in ("day", "session"):
            turn = next(iter(entry.turns), turn)  # of a bullet, the first one that it cites
        try:
            original = locate(
                self.home, self.project, session, turn, chunks, other_projects=self.other_projects
            )
        except NotFoundError as error:
            if not is_server(self.settings.index.uri):
                raise
            raise NotFoundError(f"{error}; a colleague's is on the colleague's machine") from error
        return read_exchange(self.home, original, turn, context, self._redact, chunks)

    def _entry(self, name: str) -> Entry | None:
        try:
            return self.show(name)
        except (NotFoundError, AmbiguousIdError):
            return None

    def cite(self, citation: str, context: int = 3) -> Citation:
        """Return the proof of a summary's bullet: `memory.cite("82c57f55").excerpt`."""
        from memkit.browse.citation import find_citation

        if (found := self._entry(citation)) and found.kind == "citation":  # by the ID of its chunk
            citation = found.id
        return find_citation(
            self.project, self.home, citation, context, self._redact,
            other_projects=self.other_projects,
        )  # fmt: skip

    def sessions(
        self, *, since: str = "", branch: str = "", file: str = "", agent: str = "",
        all_projects: bool = False,
    ) -> Iterator[PastSession]:  # fmt: skip
        """Yield the sessions of the memory, the last active first: `next(memory.sessions(branch="main"))`.

        `since` is an ISO day. `file` is the path of a file that a session read or edited.
        """
        from memkit.browse.history import SessionFilters, past_sessions

        timelines = self._timelines(all_projects)
        return past_sessions(timelines, SessionFilters(since, branch, file, agent=agent))

    def _timelines(self, all_projects: bool) -> list[Timeline]:
        from memkit.timeline.tree import open_timeline

        return [open_timeline(one, self.home, self.announce) for one in self._projects(all_projects)]

    def _projects(self, all_projects: bool) -> list[Project]:
        from memkit.capture.project_list import projects_with_memory

        if not all_projects:
            return [self.project]
        if not self.other_projects:
            raise OtherProjectsError("this memory may not read other projects")
        return projects_with_memory(self.home, [self.project])

    def session(self, name: str, *, limit: int = 50, offset: int | None = None) -> SessionView:
        """Return a session with its summaries and turns, their parts, files, and marks.

            memory.session("5e550001").entries[0]["answer"]

        `name` may also be a turn of it. `limit` and `offset` are as for
        `memkit.browse.session_view.view_session`.
        """
        from memkit.browse.session_view import view_session

        return view_session(self._timeline, name, limit, offset, self._redact, self.caller.directory)

    def timeline(
        self, node: str = "", *, depth: int = 0, limit: int = 100, after: str = "", as_rows: bool = False
    ) -> TimelineView:
        """Return a year, month, week, day, or segment with what it holds, and the nodes below it.

            memory.timeline()["children"]            # the years with their months
            memory.timeline("2026-W47")["overview"]  # words, titles, files, failures, decisions, questions

        `depth`, `after`, and `as_rows` are as for `memkit.timeline.view.view`.
        """
        from memkit.timeline.view import view

        return view(self._timeline, node, depth, limit, after, as_rows=as_rows)

    def scan(self, words: str, node: str = "", *, limit: int = 100, after: str = "") -> NodeMatches:
        """Return the turns, notes, and bullets of a node with all words: `memory.scan("7443", "2026-11")`."""
        from memkit.timeline.events import find_words

        timeline = self._timeline
        return find_words(timeline, timeline.node(node), words, limit, after, self.announce)

    def events(
        self, node: str = "", *, limit: int = 100, after: str = "",
        since: datetime | None = None, until: datetime | None = None,
    ) -> Events:  # fmt: skip
        """Return the original messages of a node, page by page: `memory.events("2026-11-20")["events"]`.

        `since` and `until` (excluded) leave out what was said before or after.
        """
        from memkit.timeline.events import events

        timeline = self._timeline
        return events(
            timeline, timeline.node(node), self.home, limit, after, self._redact,
            other_projects=self.other_projects, since=since, until=until,
        )  # fmt: skip

    @property
    def _timeline(self) -> Timeline:
        from memkit.timeline.tree import open_timeline

        return open_timeline(self.project, self.home, self.announce)

    def topics(self, *, refresh: bool = False, compute: bool = True) -> TopicList:
        """Return what the memory is about, the most important topic first.

            for topic in memory.topics().topics[:5]:
                print(topic.id, topic.label, topic.importance, topic.weeks)

        Compute them if that was never done, or raise `NotFoundError` unless `compute`. With `refresh`,
        compute them again, and have a model name those that have no label yet if summaries are on. The result
        also finds a topic by id (`find`), related ones, and those of search results (`holding`). Raise
        `MemkitError` without memory or scikit-learn.
        """
        from memkit.topics.topic_list import read_topics

        found = None if refresh else read_topics(self.project, self.home, self.settings)
        if found is None and not (compute or refresh):
            raise NotFoundError(f"{self.project.root} has no topics yet; `memkit topics` finds them")
        if found is None:
            with _COMPUTING:
                # Another thread may have computed them meanwhile.
                found = None if refresh else read_topics(self.project, self.home, self.settings)
                if found is None:
                    self._compute_topics(by_model=refresh)
                    found = read_topics(self.project, self.home, self.settings)
        if found is None:
            raise MemkitError(f"{self.project.root} has no memory to find topics in")
        return found

    def topics_about(self, query: str, *, compute: bool = True) -> list[tuple[Topic, float]]:
        """Return the topics of what a search finds, best first, each with its score.

        `compute` is as for `topics`.
        """
        from memkit.topics import files

        topics, answer = self.topics(compute=compute), self.search(query, TOPIC_RESULTS)
        found = [(one.chunk.turns or (files.key_of(one.chunk),), one.relevance) for one in answer.results]
        return topics.holding(found)

    def rename_topic(self, topic: str, label: str) -> str:
        """Give a topic your own label, or "" for none: `memory.rename_topic("5f0c0e0a", "Invoices")`.

        `topic` is its id, or the start of it. Return the label that it has now: yours, redacted and cut at 50
        characters, or the made one.
        """
        from memkit.topics.labels import clean
        from memkit.topics.topic_list import rename

        found, own = self.topics().find(topic), clean(self._redact(label))
        rename(self.project, self.home, found.id, own)
        return own or found.made_label

    def _compute_topics(self, *, by_model: bool) -> None:
        from memkit.llm import find_provider
        from memkit.topics.clusters import check_packages
        from memkit.topics.compute import refresh
        from memkit.topics.names import TopicNames

        check_packages()  # before the index is updated for nothing
        self.index()
        refresh(self.project, self.home, self.settings)
        if not by_model:
            return
        names = TopicNames(self.home, find_provider)
        names.name(self.project, self.settings)
        for line in names.failures:
            self.announce(f"no model has named these topics: {line}")

    def why(self, file: str) -> FileHistory:
        """Return what turns, decisions, and commits did with a file: `memory.why("src/money.py").events`.

        `file` is a path from the root of the project.
        """
        from memkit.browse.file_history import file_history

        return file_history(self.journal, file, self.caller.directory, self.announce)

    def fix(self, error: str) -> list[Fix]:
        """Return what was run after an error, newest first, unsolved ones last."""
        from memkit.pointers.failures import find_fixes

        return find_fixes(self.project, self.home, error, self._redact)

    def how(self, tool: str) -> list[Invocation]:
        """Return the commands with a tool that worked, the most frequent first: `memory.how("pytest")`."""
        from memkit.pointers.failures import find_invocations

        return find_invocations(self.project, self.home, tool)

    def show(self, name: str) -> Entry:
        """Return a day, or whatever has an id that is or begins with `name`: `memory.show("yesterday")`.

        Only the id of text that is not an entry needs the index.
        """
        from datetime import date

        from memkit.browse.names import Entry, find_day, find_entry

        found = find_day(self.journal, name, date.today()) or self._find_period(name)
        found = found or find_entry(self.journal, name)
        if found is not None:
            return found
        try:
            section = self.expand(name)[0]
        except NotFoundError as error:
            raise NotFoundError(
                f"{self.project.root} has no day, session, turn, or result {name!r}; "
                "`memkit sessions` and `memkit search` list them, also what has changed since"
            ) from error
        if (found := find_entry(self.journal, section["id"])) is not None:
            return found
        author, text = section.get("author", ""), section["content"]
        return Entry(
            "result", section["id"], section["path"], section["start_line"], section["session"],
            tuple(section["turns"]), f"From {author}:\n\n{text}" if author else text,
        )  # fmt: skip

    def _find_period(self, name: str) -> Entry | None:
        from memkit.timeline.nodes import parse_span

        if not name or parse_span(name) is None or not self._timeline.has_period(name):
            return None
        from memkit.browse.names import Entry
        from memkit.timeline.view import markdown

        found = self.timeline(name, as_rows=True)
        return Entry(found["node"]["kind"], name, self.project.memory, 0, "", (), markdown(found))

    def remember(
        self, text: str, *tags: str, metadata: Mapping[str, Any] | None = None, once: bool = False
    ) -> Note:
        """Write a note into today's Markdown: `memory.remember("Staging moves to port 7444.", "gateway")`.

        `metadata` is any JSON object. With `once`, a note that already says exactly this is returned instead;
        its `is_new` is False.
        """
        from datetime import datetime, timezone

        from memkit.ipc import unindexed
        from memkit.journal.digest import note_text
        from memkit.privacy.redact import without_private

        self._check_remembers("to add a note")
        said = note_text(without_private(text), tags, self._redact, metadata)
        if once and (known := self.journal.find_note(said)) is not None:
            return known
        note = said.note(datetime.now(timezone.utc))
        unindexed.mark(self.home, self.project.root)
        is_new = self.journal.add_note(note)
        return replace(note, is_new=is_new)

    def edit_note(self, name: str, text: str, tags: Sequence[str] | None = None) -> Entry:
        """Give a note new text: `memory.edit_note("2e599251", "No.")`. It keeps its ID and metadata.

        It also keeps its tags, unless `tags` are given.
        """
        from memkit.ipc import unindexed
        from memkit.journal.digest import note_text, read_note
        from memkit.privacy.redact import without_private

        self._check_remembers("to edit a note")
        found = self.show(name)
        if found.kind != "note":
            raise MemkitError(f"{found.id} is a {found.kind}; only notes can be edited")
        known, metadata = read_note(found.markdown)
        said = note_text(without_private(text), known if tags is None else tags, self._redact, metadata)
        unindexed.mark(self.home, self.project.root)
        self.journal.edit_note(self.project.name_at(found.path), found.id, said)
        return self.show(found.id)

    def ingest(
        self, session: str, role: str, text: str, *, time: datetime | None = None, tool: str = ""
    ) -> Ingested:
        """Remember one message of a session of another agent: `memory.ingest("42", "user", "Why 7443?")`.

        A message of the `user` begins a turn. Those of the `assistant`, and results of a `tool`, continue it.
        The same message at the same time counts once. `session` is the agent's own name for it.
        """
        from memkit.capture.ingest import Event, ingest
        from memkit.locks import capture_lock

        self._check_remembers("to add to a session")
        event = Event(session, role, text, time, tool)
        with capture_lock(self.home, self.wait_seconds, self.announce):
            return ingest(self.home, self.project, self.settings, event)

    def _check_remembers(self, purpose: str) -> None:
        if os.environ.get(DISABLE_VARIABLE):
            raise MemkitError(
                f"{DISABLE_VARIABLE} is set, so memkit remembers nothing; unset it {purpose}"
            )
        if self.project.is_off:
            raise MemkitError(
                f"memkit is off for {self.project.root}; you can turn it on with `memkit on`"
            )

    def forget(
        self, *ids: str, dry_run: bool = False, selection: ForgetSelection | None = None
    ) -> Locations:
        """Erase results, turns, bullets, or notes for good: `memory.forget("8b52f4fb")`.

        Return what was erased; with `dry_run`, what would be. A `selection` takes the place of the ids. An
        earlier run that was killed is finished, too.
        """
        from memkit.forget.locations import find_locations
        from memkit.forget.selection import SelectionFinder

        if selection is None:
            finder = SelectionFinder(
                self.project, self.home, self.settings, other_projects=self.other_projects
            )
            selection = finder.select(ids)
        if dry_run:
            return find_locations(self.home, self.project, selection)
        from memkit.forget.erase import forget
        from memkit.llm.calls import exclusive_lock

        settings_of = functools.cache(self.settings_of)
        with exclusive_lock(self.home, self.wait_seconds, self.announce):
            found, problems = forget(self.home, self.project, selection, settings_of, self.announce)
        if problems:
            raise MemkitError(
                f"not everything was erased: {'; '.join(problems)}; "
                "fix these problems; then run `memkit forget` in a terminal of your own"
            )
        return found

    def share(self, *ids: str, dry_run: bool = False) -> ShareReport:
        """Add entries to what you share in the repository: `memory.share("82c57f55", dry_run=True).text`.

        Each id names a search result, a session, a turn, a bullet, a note, or a fact. All are refused if one
        holds a secret, an e-mail address, a path in a home, a private host, or a random string. Sharing an
        entry twice changes nothing. With `dry_run`, return what would be added.
        """
        from memkit.hook.notices import OWN, not_said_yet
        from memkit.index import open_chunks
        from memkit.ipc import unindexed
        from memkit.maintenance.share import share

        if not dry_run:
            unindexed.mark(self.home, self.project.root)
        report = share(
            self.journal, open_chunks(self.project, self.home, self.settings), ids,
            self.settings.capture.compiled_patterns(), shared=self.settings.memory.shared, dry_run=dry_run,
        )  # fmt: skip
        if not dry_run:
            not_said_yet(self.home, self.project.root, [OWN + report.author])
        return report

    def unshare(self, *ids: str, dry_run: bool = False) -> UnshareReport:
        """Remove entries from what you share: `memory.unshare("82c57f55")`. Git's history keeps them.

        `ids` are as for `share`, or those of the shared entries.
        """
        from memkit.index import open_chunks
        from memkit.ipc import unindexed
        from memkit.maintenance.share import unshare

        if not dry_run:
            unindexed.mark(self.home, self.project.root)
        chunks = open_chunks(self.project, self.home, self.settings)
        shared = self.settings.memory.shared
        return unshare(self.journal, chunks, ids, self.home, shared=shared, dry_run=dry_run)

    def index(self, *, rebuild: bool = False, progress: Progress | None = None) -> SyncReport:
        """Update the search index from the Markdown: `memory.index().added` counts the new chunks.

        The service does it if it is running. Wait at most `wait_seconds` for another process.
        """
        from memkit.index import SyncReport
        from memkit.questions.client import ask_service

        if not rebuild:
            try:
                found = ask_service(
                    self.project, self.home, self.settings, "index", {}, self.wait_seconds, self.announce
                )
                return typed(found, SyncReport)
            except ServiceUnavailable as reason:
                if reason.reason == "late":
                    raise IndexBusyError("the service is still indexing; try again in a moment") from reason
                logger.debug("indexing without the service: %s", reason)
        # Slow to import; the service needs none of it here.
        from memkit.index import sync_project
        from memkit.locks import index_lock

        with index_lock(self.home, self.wait_seconds, self.announce):
            try:
                return sync_project(
                    self.project, self.home, self.settings,
                    rebuild=rebuild, announce=self.announce, progress=progress,
                )  # fmt: skip
            except IndexStoreError as error:
                if self.home.root in str(error):
                    raise
                # The database reports a full disk without naming it.
                raise IndexStoreError(f"{self.home.index}: {error}") from error

    def watch(self) -> Generator[SyncReport, None, None]:
        """Index now, and again after each change of the files; yield the report of each pass, without end.

            for report in memory.watch():
                print(report.added, report.deleted)

        `announce` gets the reason of a pass that failed; the next change starts another one. Leaving the
        loop stops the watching.
        """
        reports = self._passes()
        self._open.callback(reports.close)
        return reports

    def _passes(self) -> Generator[SyncReport, None, None]:
        from memkit.service.watcher import memory_changes

        with closing(memory_changes(self.project, self.home, self.settings)) as changes:
            for _ in changes:
                try:
                    report = self.index()
                except MemkitError as error:
                    self.announce(f"not indexed: {error}")
                else:
                    yield report

    def compact(
        self, *, since: str = "", until: str = "", path: str = "", dry_run: bool = False
    ) -> CompactionReport:
        """Condense the memory into lasting facts in `MEMORY.md`, with the model that the user chose.

            memory.compact(dry_run=True).plan        # the number of calls, tokens, and the price
            memory.compact(since="2026-11-01").added

        Read everything since the last compaction, or the days (ISO) and the file, directory, or pattern
        given. This sends redacted memory to the model and costs what `plan` says, within the daily budget.
        Nothing is asked; the old text is kept, and `memkit compact --undo` brings it back. Raise
        `MemkitError` if too little is left of the budget, or, unless it is a `dry_run`, without a model.
        """
        from datetime import date

        from memkit.llm import find_provider
        from memkit.llm.calls import Calls
        from memkit.summarize.compaction import Compaction
        from memkit.summarize.facts import EntrySelection

        selection, calls = EntrySelection(since, until, path), Calls(self.home, find_provider)
        compaction = Compaction(
            self.project, self.home, self.settings, calls, date.today(), selection
        )
        report = compaction.run(self.wait_seconds, dry_run=dry_run)
        if report.is_written:
            self.index()
        return report

    @property
    def name(self) -> str:
        """The name of the project: the one that the user gave it, else its directory's."""
        from memkit.projects.project import Registry

        return Registry.read(self.home).name_of(self.project.root)

    @property
    def days(self) -> list[str]:
        """The days of the memory, oldest first: `["2026-11-19", "2026-11-20"]`."""
        return self.journal.days()

    @functools.cached_property
    def settings(self) -> Settings:
        """The settings of the project."""
        return self.settings_of(self.project)

    @functools.cached_property
    def journal(self) -> Journal:
        """The project's Markdown files."""
        from memkit.journal.journal import Journal

        return Journal(self.project, shared=self.settings.memory.shared, home=self.home)

    def _chunks(self) -> list[Chunk]:
        from memkit.index import open_chunks

        chunks = open_chunks(self.project, self.home, self.settings)
        return chunks.chunks() if chunks is not None else []

    @functools.cached_property
    def _redact(self) -> Callable[[str], str]:
        from memkit.privacy.redact import redact

        patterns = self.settings.capture.compiled_patterns()
        return lambda text: redact(text, patterns)


def _load_settings(home: Home, project: Project) -> Settings:
    from memkit.settings import load

    return load.load(home, project).settings
