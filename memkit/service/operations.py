"""What the service does when it is asked: one method an operation.

Each takes the arguments of a request, plain JSON values, and gives what the reply's `result` holds.
They run in the service's reader threads; what writes goes to its writer and gives a future.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import msgspec
import psutil

import memkit
from memkit.capture.live_sessions import LiveSessions
from memkit.errors import MemkitError
from memkit.hook.project import Project
from memkit.index.current import index_key
from memkit.index.sync_report import SyncReport
from memkit.ipc import spool
from memkit.ipc.requests import NotHereError
from memkit.paths import Home
from memkit.privacy.exclusion import Exclusion
from memkit.privacy.redact import redact, skips, without_private, without_unopened
from memkit.recall import usage
from memkit.recall.answers import SearchRequest
from memkit.recall.pointers import find_pointers, lay_out, written_by
from memkit.service.jobs import Job, JobState, Surroundings, job_named, run_job
from memkit.service.open_projects import Models, OpenProjects
from memkit.service.pointer_history import PointerHistory
from memkit.service.summaries import Summaries
from memkit.service.watching import Watching
from memkit.service.writer import Writer
from memkit.settings import load
from memkit.settings.load import SearchSettings, Settings
from memkit.text import encodable

logger = logging.getLogger(__name__)

MOST_IDS = 100
"""Of pointers in one acknowledgement; there are three at most."""

PROMPT_CHARACTERS = 2000
"""How much of a prompt to look up: the model that embeds it reads no more."""

Arguments = dict[str, Any]


class UnknownOperationError(MemkitError):
    """Nobody knows what was asked for."""


class Operations:
    """All that can be asked of the service."""

    def __init__(self, home: Home, drain: Callable[[], None]) -> None:
        """`drain` makes the service end when it has answered what it was asked."""
        self._home = home
        self.drain_service = drain
        self._started = time.time()
        self._models = Models(home)
        self.live = LiveSessions(home)
        self._shown = PointerHistory(home)
        self.writer = Writer(home, self.settings_of, self._models.find)
        self.watching = Watching(home, self.writer)
        self.summaries = Summaries(home, self.settings_of, self.writer.index, self._note_error)
        self._warm = OpenProjects(
            home,
            self._models,
            self.settings_of,
            self.writer.index,
            self.watching.watch,
            self.watching.unwatch,
        )
        self._opening: dict[str, threading.Thread] = {}
        self.errors: list[str] = []

    def settings_of(self, project: Project) -> Settings:
        """The settings of a project, as they are in its files now."""
        return load.load(self._home, project).settings

    def named(self, operation: str) -> Callable[[Arguments], Any]:
        """The method for an operation's name. Raises `UnknownOperationError`."""
        known = {
            "search": self.search,
            "expand": self.expand,
            "index": self.index,
            "work": self.work,
            "pointers": self.pointers,
            "shown": self.shown,
            "status": self.status,
            "job": self.job,
            "reload": self.reload,
            "drain": self.drain,
        }
        if operation not in known:
            raise UnknownOperationError(f"the service knows no operation {operation!r}")
        return known[operation]

    def search(self, arguments: Arguments) -> Any:
        """An `Answer` to `request`, about the project at `root` or `all_projects`, as `search` ranks.

        `index`, see `index_key`, says which index is meant. Raises `NotHereError` if not this one.
        """
        project, settings = self._project(arguments)
        search = msgspec.convert(arguments["search"], SearchSettings)
        searcher = self._warm.searcher(
            project, settings, search, all_projects=bool(arguments.get("all_projects"))
        )
        request = msgspec.convert(arguments["request"], SearchRequest)
        return msgspec.to_builtins(searcher.answer(request))

    def expand(self, arguments: Arguments) -> Any:
        """The sections around the chunks that `ids` name, as `memkit expand --json` prints them."""
        from memkit.recall.expand import expand_known

        project, _ = self._project(arguments)
        found = [
            expand_known(
                project,
                self._home,
                self.settings_of,
                str(name),
                other_projects=bool(arguments.get("other_projects", True)),
            )
            for name in arguments["ids"]
        ]
        return {"sections": [section.as_dict() for section in found]}

    def index(self, arguments: Arguments) -> Future[SyncReport]:
        """Bring the project at `root` into step; a `SyncReport`."""
        project, settings = self._project(arguments)
        if self._warm.is_warm(project):  # paths may have been added
            self.watching.watch(project, settings)
        return self.writer.index(project.root)

    def work(self, arguments: Arguments) -> Any:
        """Take in what the hooks spooled; `wait` gives the `WorkReport`, else nothing is waited for."""
        if arguments.get("retry"):
            spool.retry_failed(self._home)
        future = self.writer.work()
        future.add_done_callback(self._after_work)
        return future if arguments.get("wait") else {}

    def pointers(self, arguments: Arguments) -> Any:
        """Return pointers for a `prompt`, typed in `directory`; `warm` says if it could be looked up.

        The prompt is redacted before it is looked up, since an embedding provider may see it. Nothing of it
        is kept or logged.
        """
        project, settings = self._project(arguments)
        prompt = encodable(str(arguments["prompt"]))
        directory = str(arguments.get("directory") or project.root)
        if skips(prompt) or Exclusion(settings.capture.exclude, project.root).covers_session(directory):
            return {"warm": True, "text": "", "ids": []}
        if not self._warm.is_warm(project):
            self.open_soon(project)
            return {"warm": False, "text": ""}
        session = str(arguments["session"])
        searcher = self._warm.searcher(project, settings, settings.search)
        shown = self._shown.of(session)
        may_quote = written_by(self._home)
        prompt = without_private(without_unopened(prompt))
        prompt = redact(prompt, settings.capture.compiled_patterns())[:PROMPT_CHARACTERS]
        found = find_pointers(searcher, prompt, session, shown, may_quote)
        ids = [pointer.id for pointer in found]
        if found and not arguments.get("acknowledges"):  # a hook of an older memkit
            self._note_shown(session, ids)
        return {"warm": True, "text": lay_out(found), "ids": ids}

    def shown(self, arguments: Arguments) -> Any:
        """Note that the pointers with these `ids` reached `session`; a late reply does not."""
        ids = arguments["ids"]
        if not isinstance(ids, list) or not all(isinstance(one, str) for one in ids):
            raise MemkitError("the ids of pointers are no list of strings")
        self._note_shown(str(arguments["session"]), ids[:MOST_IDS])
        return {}

    def _note_shown(self, session: str, ids: list[str]) -> None:
        self._shown.add(session, ids)
        usage.note(self._home, "pointers", ids)

    def status(self, arguments: Arguments) -> Any:
        """What the service is and does."""
        process = psutil.Process()
        return {
            "pid": os.getpid(),
            "version": memkit.__version__,
            "started": self._started,
            "uptime_seconds": round(time.time() - self._started, 1),
            "memory_mb": round(process.memory_info().rss / 1e6, 1),
            "threads": process.num_threads(),
            "sessions": [{"session": one.session, "root": one.root} for one in self.live],
            "queue": self.writer.length,
            "waiting": len(spool.waiting(self._home)),
            "projects": self._warm.sizes(),
            "watched": self.watching.state(),
            "errors": self.errors[-5:],
        }

    def job(self, arguments: Arguments) -> Future[JobState]:
        """Run the job of that `name` now; the `JobState` in which it ended."""
        return self.start_job(job_named(str(arguments["name"])))

    def start_job(self, job: Job) -> Future[JobState]:
        """Have the writer run a job in its turn."""
        around = Surroundings(
            self._home, self.settings_of, self.writer.index_now, self.writer.close_index
        )
        return self.writer.submit(f"job {job.name}", lambda: run_job(job, around))

    def reload(self, arguments: Arguments) -> Any:
        """Forget what is held open, models included: settings have changed."""
        self._warm.clear()
        self._models.clear()
        return {}

    def drain(self, arguments: Arguments) -> Any:
        """End, once what was asked for before is answered."""
        self.drain_service()
        return {}

    def open_soon(self, project: Project) -> None:
        """Open a project in the background, so that the next search of it finds it warm."""
        thread = self._opening.get(project.root)
        if thread is not None and thread.is_alive():
            return

        def run() -> None:
            try:
                settings = self.settings_of(project)
                searcher = self._warm.searcher(project, settings, settings.search)
                if searcher.embedder is not None:
                    searcher.embedder.embed_query("")
            except Exception as error:  # noqa: BLE001 - the search that needs it tells the person
                self._note_error(f"opening {project.root}: {error}")

        self._opening[project.root] = threading.Thread(target=run, name="opening", daemon=True)
        self._opening[project.root].start()

    def close(self) -> None:
        """Stop what runs in the background; the writer is stopped by the server."""
        self.summaries.stop()
        self.watching.close()

    def _project(self, arguments: Arguments) -> tuple[Project, Settings]:
        """The project at `root`, and its settings. Raises `NotHereError`."""
        project = Project(str(arguments["root"]))
        settings = self.settings_of(project)
        asked = arguments.get("index")
        if asked is not None and asked != index_key(project, self._home, settings):
            raise NotHereError("the service has other settings of embedding or index")
        return project, settings

    def _after_work(self, future: Future[Any]) -> None:
        """Open the projects of sessions that have just started, and keep what went wrong."""
        if future.cancelled():
            return
        error = future.exception()
        if error is not None:
            self._note_error(str(error))
            return
        for failure in future.result().failures:
            self._note_error(failure)
        for session in self.live:
            project = Project(session.root)
            if not self._warm.is_warm(project):
                self.open_soon(project)

    def _note_error(self, line: str) -> None:
        logger.warning("%s", line)
        self.errors.append(line)
        del self.errors[:-50]
