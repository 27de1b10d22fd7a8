"""The operations of the service, one method each.

Each takes the arguments of a request (plain JSON values) and returns the `result` of the reply. They run in
the service's reader threads. What writes goes to the writer and returns a future.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from concurrent.futures import Future, wait
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import psutil

import memkit
from memkit.agents.claude_code.agents import starting_task
from memkit.agents.omitted import asks_memory
from memkit.agents.tools import SHELL
from memkit.capture.sessions import LiveSessions
from memkit.errors import MemkitError, NewerFileError
from memkit.files import make_private_directory
from memkit.hook.entries import OwnEntries
from memkit.hook.tally import history_file
from memkit.index import SyncReport
from memkit.index.catalog import also_searched, index_key
from memkit.ipc import spool
from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.pointers.failures import error_met
from memkit.pointers.moments import Moments
from memkit.pointers.prompts import Pointer, find_pointers, lay_out, written_by
from memkit.privacy.exclusion import Exclusion
from memkit.privacy.redact import redact, skips, without_private, without_unopened
from memkit.projects.project import Project
from memkit.questions.answering import answer
from memkit.questions.caller import Caller, answer_for, expand_entries
from memkit.search import usage
from memkit.search.overview import TopicCount
from memkit.search.results import Answer, SearchRequest
from memkit.service.agent_watch import AgentWatch
from memkit.service.job_thread import JobThread, Summaries
from memkit.service.jobs import Job, JobContext, JobState, job_named
from memkit.service.listener import NotHereError
from memkit.service.open_projects import Models, OpenProjects
from memkit.service.watcher import Watcher
from memkit.service.writer import Writer
from memkit.settings import load
from memkit.settings.load import SearchSettings, Settings
from memkit.state import read_state_or_none, write_state
from memkit.summarize.extract import session_so_far
from memkit.text import encodable
from memkit.typed import typed

Arguments = dict[str, Any]

MOST_EDITED = 10_000
"""Edited files to remember, of all sessions."""

MOST_LATE = 100
"""Sessions whose last prompt's pointers are kept for their next tool call."""

RECENT_SECONDS = 7 * 24 * 3600

PROMPT_CHARACTERS = 2000
"""Characters of a prompt or a task to look up: the embedding model reads no more."""


logger = logging.getLogger(__name__)

OPERATIONS = frozenset("search expand index work pointers moment shown status job reload drain".split())
"""The methods of `Operations` that a request may name."""

MAX_ERRORS = 5

FRESH_SECONDS = 1.0
"""The longest wait of a search for a pass that was postponed."""


class Operations:
    """All operations, and what they work with: open projects, writer, watcher, summaries."""

    def __init__(self, home: Home, exit_soon: Callable[[], None]) -> None:
        """`exit_soon` makes the service exit after the requests in progress."""
        self._home = home
        self._exit_soon = exit_soon
        self._started = time.time()
        self._models = Models(home)
        self._pointers = PointerHistory(home)
        self._edited: OrderedDict[tuple[str, str], str] = OrderedDict()
        """The id of the pointer for each file that a session edited, or ""."""
        self._late: OrderedDict[str, list[Pointer]] = OrderedDict()
        """The pointers of each session's last prompt, until it got some."""
        self._opening: dict[str, threading.Thread] = {}
        self.errors: list[str] = []
        self.live = LiveSessions(home)
        self.writer = Writer(home, self.settings_of, self._models.find)
        self.jobs = JobThread()
        self.agents = AgentWatch(home, self.settings_of, self.writer)
        self.watcher = Watcher(self.writer.index)
        self.summaries = Summaries(
            home, self.settings_of, self.writer.index, self._note_error, self._models.find
        )
        self._projects = OpenProjects(
            home, self._models, self.settings_of, functools.partial(self.writer.index, soon=True),
            self.watcher,
        )  # fmt: skip

    def settings_of(self, project: Project) -> Settings:
        """Return the settings of a project, as they are in its files now."""
        return load.load(self._home, project).settings

    def named(self, operation: str) -> Callable[[Arguments], Any]:
        """Return the method of an operation. Raise `MemkitError`."""
        if operation not in OPERATIONS:
            raise MemkitError(f"the service knows no operation {operation!r}")
        method: Callable[[Arguments], Any] = getattr(self, operation)
        return method

    def search(self, arguments: Arguments) -> Any:
        """Return the `Answer` to `request` about the project at `root`, or about `all_projects`.

        `search` holds the settings to rank by, `index` the `index_key` of the client, `caller` who asks.
        Raise `NotHereError` if the service has another index.
        """
        project, settings = self._project(arguments)
        search = typed(arguments["search"], SearchSettings)
        everywhere = bool(arguments.get("all_projects"))
        self._end_postponed(project)
        request = typed(arguments["request"], SearchRequest)
        caller = typed(arguments.get("caller", {}), Caller)

        def ask(one: SearchRequest) -> Answer:
            return answer(
                one, lambda: self._projects.searcher(project, settings, search, all_projects=everywhere),
                lambda: [project, *also_searched(project, self._home, search, all_projects=everywhere)],
                self._home, self._find_topics, logger.warning,
            )  # fmt: skip

        return msgspec.to_builtins(answer_for(caller, ask, request, self._home, project.root))

    def _end_postponed(self, project: Project) -> None:
        """Index now what would have been indexed in a moment, so that this search finds it."""
        passes = [self.writer.postponed(root) for root in {project.root, self._home.root}]
        wait([future for future in passes if future is not None], FRESH_SECONDS)

    def _find_topics(self, project: Project, since: str, until: str) -> list[TopicCount] | None:
        from memkit.topics.topic_list import topics_in

        return topics_in(project, self._home, self.settings_of(project), since, until)

    def expand(self, arguments: Arguments) -> Any:
        """Return the sections around the chunks in `ids`, as `memkit expand --json` prints them."""
        project, _ = self._project(arguments)
        ids, directory = map(str, arguments["ids"]), str(arguments.get("directory", ""))
        everywhere = bool(arguments.get("other_projects", True))
        sections = expand_entries(
            project, self._home, self.settings_of, ids, directory, other_projects=everywhere
        )
        return {"sections": sections}

    def index(self, arguments: Arguments) -> Future[SyncReport]:
        """Update the index of the project at `root`."""
        project, settings = self._project(arguments)
        if self._projects.is_open(project):  # paths may have been added
            self.watcher.watch_memory(project, self._home, settings)
        return self.writer.index(project.root, soon=True)

    def work(self, arguments: Arguments) -> Any:
        """Capture the spooled events. Return the `WorkReport` only if `wait` is set."""
        if arguments.get("retry"):
            spool.retry_failed(self._home)
        future = self.writer.work(soon=bool(arguments.get("wait")))
        future.add_done_callback(self._after_work)
        return future if arguments.get("wait") else {}

    def pointers(self, arguments: Arguments) -> Any:
        """Return pointers for a `prompt` in `directory`; `warm` says if it could be looked up.

        The prompt is redacted before it is looked up, since an embedding provider may see it. Nothing of it
        is kept or logged.
        """
        project, settings = self._project(arguments)
        prompt = encodable(str(arguments["prompt"]))
        directory = str(arguments.get("directory") or project.root)
        if skips(prompt) or Exclusion(settings.capture.exclude, project.root).covers_session(directory):
            return {"warm": True, "text": "", "ids": []}
        if not self._projects.is_open(project):
            self.open_soon(project)
            return {"warm": False, "text": ""}
        session = str(arguments["session"])
        searcher = self._projects.searcher(project, settings, settings.search)
        earlier = self._pointers.of(session)
        prompt = without_private(without_unopened(prompt))
        prompt = redact(prompt, settings.capture.compiled_patterns())[:PROMPT_CHARACTERS]
        recent = self._pointers.recent(project.root)
        found = find_pointers(searcher, prompt, session, earlier, written_by(self._home), recent)
        self._late[session] = found
        while len(self._late) > MOST_LATE:
            self._late.popitem(last=False)
        return {"warm": True, "text": lay_out(found), "ids": [pointer.id for pointer in found]}

    def moment(self, arguments: Arguments) -> Any:
        """Return a pointer for an event of a session in `directory`; `warm` says if it could be looked up.

        `kind` is `failure` (of a `command` with its `error`), `edit` (of a `file`), `agent` (a sub-agent
        whose call is in the `transcript`), or `compact`. `task` says whether that agent has one. Text of the
        session is redacted before it is looked up. Nothing of it is kept or logged.
        """
        project, settings = self._project(arguments)
        kind, session = str(arguments["kind"]), str(arguments["session"])
        directory = str(arguments.get("directory") or project.root)
        hide = partial(redact, patterns=settings.capture.compiled_patterns())
        task = ""
        if kind == "agent":
            task = encodable(starting_task(Path(encodable(str(arguments["transcript"])))))
        nothing = {"warm": True, "text": "", "ids": [], "task": bool(task)}
        if Exclusion(settings.capture.exclude, project.root).covers_session(directory):
            return nothing
        if kind == "compact":
            own = OwnEntries(self._home, project.root)
            return {**nothing, "text": session_so_far(Journal(project, home=self._home), session, own, hide)}
        if not self._projects.is_open(project):
            self.open_soon(project)
            return {**nothing, "warm": False}
        searcher = self._projects.searcher(project, settings, settings.search)
        shown = self._pointers.of(session, kind)
        moments = Moments(searcher.corpus, project, self._home)
        found: list[Pointer] = []
        if kind == "failure":
            if not asks_memory(SHELL, {"command": encodable(str(arguments["command"]))}):
                met = error_met(encodable(str(arguments["error"])), hide)
                found += filter(None, [moments.past_failure(met, session, shown)])
        elif kind == "edit":
            found += self._before_edit(moments, project, arguments, shown)
        elif kind == "agent":  # it has seen nothing of the session's
            task = hide(task)[:PROMPT_CHARACTERS]
            found = find_pointers(searcher, task, "", (), written_by(self._home))
        else:
            raise MemkitError(f"there are no pointers for {kind!r}")
        if kind != "agent":  # a prompt's pointers that its hook did not wait for
            found = [*found, *(one for one in self._late.get(session, ()) if one not in found)]
        return {**nothing, "text": lay_out(found), "ids": [pointer.id for pointer in found]}

    def _before_edit(
        self, moments: Moments, project: Project, asked: Arguments, shown: Collection[str]
    ) -> list[Pointer]:
        """Return a decision about `file`, an absolute path, when a session first edits it."""
        file, session = encodable(str(asked["file"])), str(asked["session"])
        offered = self._edited.get((session, file))
        if offered is not None and (not offered or offered in shown):  # else it came too late
            return []
        # A linked worktree is outside the project; its paths are shown relative to the session's directory.
        places = (project.root, encodable(str(asked.get("directory", ""))))
        paths = {os.path.relpath(file, one) for one in places if one and file.startswith(one + os.sep)}
        if not paths:
            return []
        found = moments.decision(paths, session, shown)
        self._edited[session, file] = found.id if found else ""
        while len(self._edited) > MOST_EDITED:
            self._edited.popitem(last=False)
        return [found] if found else []

    def shown(self, arguments: Arguments) -> Any:
        """Note that the pointers with these `ids` reached `session`. A reply may come too late.

        `kind` is that of `moment`, or missing for those of a prompt. A sub-agent's are not its session's.
        """
        ids, session = arguments["ids"], str(arguments["session"])
        if not isinstance(ids, list) or not all(isinstance(one, str) for one in ids):
            raise MemkitError("the ids of pointers are not a list of strings")
        kind = str(arguments.get("kind", usage.PROMPT))
        if kind != "agent":
            self._late.pop(session, None)
            self._pointers.add(session, ids, str(arguments.get("root", "")), kind)
        usage.note(self._home, "pointers", ids, kind=kind, session=session)
        return {}

    def status(self, arguments: Arguments) -> Any:
        """Return what the service is and does."""
        process = psutil.Process()
        return {
            "pid": os.getpid(), "version": memkit.__version__, "started": self._started,
            "uptime_seconds": round(time.time() - self._started, 1),
            "memory_mb": round(process.memory_info().rss / 1e6, 1), "threads": process.num_threads(),
            "sessions": [{"session": one.session, "root": one.root} for one in self.live],
            "queue": self.writer.length, "waiting": len(spool.waiting(self._home)),
            "projects": self._projects.sizes(), "errors": self.errors,
        }

    def job(self, arguments: Arguments) -> Future[JobState]:
        """Run the job `name` now. Return its state."""
        return self.start_job(job_named(str(arguments["name"])))

    def start_job(self, job: Job) -> Future[JobState]:
        """Run a job on the background thread."""

        def index(project: Project) -> object:
            return self.writer.index(project.root).result()

        return self.jobs.start(job, JobContext(self._home, self.settings_of, index))

    def reload(self, arguments: Arguments) -> Any:
        """Close all projects and models: settings have changed."""
        self._projects.clear()
        self._models.clear()
        return {}

    def drain(self, arguments: Arguments) -> Any:
        """Exit after the requests in progress."""
        self._exit_soon()
        return {}

    def open_soon(self, project: Project) -> None:
        """Open a project in the background, so that its next search is fast."""
        thread = self._opening.get(project.root)
        if thread is not None and thread.is_alive():
            return

        def run() -> None:
            try:
                settings = self.settings_of(project)
                searcher = self._projects.searcher(project, settings, settings.search)
                if searcher.embedder is not None:
                    searcher.embedder.embed_query("")
            except Exception as error:  # noqa: BLE001 - a search that fails like this reports it
                self._note_error(f"opening {project.root}: {error}")

        self._opening[project.root] = threading.Thread(target=run, name="opening", daemon=True)
        self._opening[project.root].start()

    def close(self) -> None:
        """Stop what runs in the background, but not the writer."""
        self.summaries.stop()
        self.jobs.stop()
        self.agents.stop()
        self.watcher.close()

    def _project(self, arguments: Arguments) -> tuple[Project, Settings]:
        project = Project(str(arguments["root"]), self._home)
        settings = self.settings_of(project)
        asked = arguments.get("index")
        if asked is not None and asked != index_key(project, self._home, settings):
            raise NotHereError("the service has different settings for embedding or index")
        return project, settings

    def _after_work(self, future: Future[Any]) -> None:
        """Keep errors, and open the projects of sessions that have just started."""
        if future.cancelled():
            return
        error = future.exception()
        if error is not None:
            self._note_error(str(error))
            return
        for failure in future.result().failures:
            self._note_error(failure)
        for session in self.live:
            project = Project(session.root, self._home)
            if not self._projects.is_open(project):
                self.open_soon(project)

    def _note_error(self, line: str) -> None:
        logger.warning("%s", line)
        self.errors.append(line)
        del self.errors[:-MAX_ERRORS]


class PointerHistory:
    """The pointers that each session got, so that none is repeated: one small file for each session."""

    VERSION = 1

    def __init__(self, home: Home) -> None:
        self._home = home

    def of(self, session: str, kind: str = usage.PROMPT) -> set[str]:
        """Return the ids of the pointers that `session` got: of one kind, or those of all kinds for a prompt.

        At the moment of action, a pointer quotes more of an entry than next to a prompt.
        """
        pairs = (one.rpartition(":") for one in self._read(self._path(session))[1])
        return {name for of, _, name in pairs if kind in (of, usage.PROMPT)}

    def add(self, session: str, ids: list[str], root: str = "", kind: str = usage.PROMPT) -> None:
        """Note that `session`, of the project at `root`, got the pointers with these ids. Raise `OSError`."""
        make_private_directory(self._home.pointer_history)
        added = ids if kind == usage.PROMPT else [f"{kind}:{one}" for one in ids]
        path = self._path(session)
        known = sorted(self._read(path)[1].union(added))
        write_state(path, self.VERSION, {"ids": known, "root": root})

    def recent(self, root: str) -> list[str]:
        """Return the ids that sessions of a project got next to prompts in the last week."""
        found: list[str] = []
        for path in Path(self._home.pointer_history).glob("*.json"):
            with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                if path.stat().st_mtime >= time.time() - RECENT_SECONDS:
                    place, ids = self._read(path)
                    found += (name for name in ids if place == root and ":" not in name)
        return found

    def _read(self, path: Path) -> tuple[str, set[str]]:
        try:
            return read_state_or_none(path, self.VERSION, _root_and_ids) or ("", set())
        except NewerFileError:  # to lose it costs a repetition
            return "", set()

    def _path(self, session: str) -> Path:
        return Path(history_file(self._home, session))


def _root_and_ids(value: dict[str, Any]) -> tuple[str, set[str]]:
    return str(value.get("root", "")), {name for name in value["ids"] if isinstance(name, str)}
