"""Search the memory: through the service if it runs, else in this process."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING, Any

import msgspec

from memkit import errors
from memkit.errors import MemkitError
from memkit.index.catalog import also_searched, index_key
from memkit.ipc import launch, spool, unindexed
from memkit.ipc.client import RequestRefused, ServiceUnavailable, request
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.questions.caller import SESSION_VARIABLE, Caller, answer_for
from memkit.search import usage
from memkit.search.overview import FindTopics
from memkit.search.results import Answer, SearchRequest
from memkit.settings import load
from memkit.settings.load import Settings
from memkit.text import plural
from memkit.typed import typed

if TYPE_CHECKING:
    from memkit.search.ranking import Searcher

logger = logging.getLogger(__name__)

ANSWER_SECONDS = 20.0
"""The time limit for an answer: the service may have to load the model and index edited files first."""

CAPTURE_SECONDS = 10.0
"""The time limit for capturing waiting events when a search found nothing."""


def ask_service(
    project: Project, home: Home, settings: Settings, operation: str, arguments: dict[str, Any],
    seconds: float = ANSWER_SECONDS, announce: Callable[[str], None] = logger.warning,
) -> Any:
    """Return the service's reply about the project.

    Stop a service that hangs, and report that to `announce` in one line. Raise `ServiceUnavailable` if
    this process must do the work itself, and `MemkitError` if the operation failed.
    """
    if not settings.service.enabled:
        raise ServiceUnavailable("absent", "the service is switched off")
    own = {"root": project.root, "index": index_key(project, home, settings)}
    try:
        return request(home, operation, {**own, **arguments}, seconds)
    except ServiceUnavailable as unavailable:
        if unavailable.reason == "hung":
            from memkit.ipc.stop import stop_hung_service

            stop_hung_service(home, announce)
        raise
    except RequestRefused as refused:
        if error := getattr(errors, refused.kind, None):
            raise error(str(refused)) from refused
        if refused.kind != "elsewhere":
            logger.warning("the service refused %s: %s", operation, refused)
        raise ServiceUnavailable("broken", str(refused)) from refused


class SearchClient:
    """Searches one project, or all. Reuse it: it keeps open what it had to open itself."""

    def __init__(
        self, project: Project, home: Home, settings: Settings, announce: Callable[[str], None], *,
        find_topics: FindTopics, all_projects: bool = False, caller: Caller | None = None,
    ) -> None:
        """`announce` gets one line for each thing that the user may have to wait for."""
        self._find_topics = find_topics
        self._caller = caller or Caller()
        self._project = project
        self._home = home
        self._settings = settings
        self._announce = announce
        self._all_projects = all_projects
        self._searcher: Searcher | None = None

    def answer(self, asked: SearchRequest) -> Answer:
        """Return the answer, and count the search. Raise `MemkitError`."""
        waiting = self._waiting_work()
        answer = self._find(asked)
        if waiting and not answer.results:
            # The answer may be in events that are not captured yet, as after the installation.
            waiting = self.catch_up()
            answer = self._find(asked)
            if waiting and not answer.results and not (waiting := self._waiting_work()):
                self._searcher = None  # another process finished during the search, which may have missed it
                answer = self._find(asked)
        if waiting and (not answer.results or self._waiting_work()):
            degraded = "; ".join(filter(None, (answer.degraded, waiting)))
            answer = dataclasses.replace(answer, degraded=degraded)
        try:
            usage.note(self._home, "search", session=os.environ.get(SESSION_VARIABLE, ""))
        except OSError as error:
            logger.warning("cannot count this search: %s", error)
        return answer

    def catch_up(self) -> str:
        """Capture the waiting events for a limited time; return a line on what still waits, or ""."""
        self._searcher = None  # it has the memory from before these events
        if launch.work_is_due(self._home):
            self._capture_events()
        return self._waiting_work()

    def _find(self, asked: SearchRequest) -> Answer:
        asked = dataclasses.replace(asked, today=asked.today or date.today())
        if self._searcher is None:
            arguments = {
                "request": msgspec.to_builtins(asked),
                "search": msgspec.to_builtins(self._settings.search),
                "all_projects": self._all_projects,
                "caller": dataclasses.asdict(self._caller),
            }
            try:
                reply = ask_service(
                    self._project, self._home, self._settings, "search", arguments, announce=self._announce
                )
                return typed(reply, Answer)
            except (ServiceUnavailable, msgspec.ValidationError) as reason:  # the latter: a newer memkit
                logger.debug("searching without the service: %s", reason)
        from memkit.questions.answering import answer

        def ask(one: SearchRequest) -> Answer:
            return answer(one, self._open, self._projects, self._home, self._find_topics, self._announce)

        return answer_for(self._caller, ask, asked, self._home, self._project.root)

    def _projects(self) -> list[Project]:
        search = self._settings.search
        others = also_searched(self._project, self._home, search, all_projects=self._all_projects)
        return [self._project, *others]

    def _open(self) -> Searcher:
        if self._searcher is not None:
            return self._searcher
        from memkit.embedding import start_loading

        find_model = None
        if self._settings.search.mode != "lexical":
            find_model = start_loading(self._home, self._settings.embedding, self._announce)
        from memkit.search.ranking import open_searcher  # while the model loads

        if self._settings.service.enabled:
            try:
                launch.start_service(self._home)  # for the next search
            except OSError as error:
                logger.warning("cannot start the service: %s", error)
        self._searcher = open_searcher(
            self._project, self._home, self._settings, announce=self._announce,
            all_projects=self._all_projects, find_model=find_model,
        )
        return self._searcher

    def _capture_events(self) -> None:
        if self._settings.service.enabled:
            try:
                request(self._home, "work", {"wait": True}, CAPTURE_SECONDS)
                return
            except (ServiceUnavailable, RequestRefused) as reason:
                logger.debug("capturing without the service: %s", reason)
                if isinstance(reason, ServiceUnavailable) and reason.reason == "late":
                    return
        from memkit.capture.worker import WorkReport, apply_events
        from memkit.locks import capture_lock

        def settings_of(project: Project) -> Settings:
            return load.load(self._home, project).settings

        try:
            with capture_lock(self._home, CAPTURE_SECONDS):
                apply_events(self._home, settings_of, WorkReport())
        except (MemkitError, OSError) as error:  # the answer's note shows what still waits
            logger.warning("cannot capture waiting events: %s", error)

    def _waiting_work(self) -> str:
        count = len(spool.work(self._home))
        if count:
            waits = "waits" if count == 1 else "wait"
            events = plural(count, "event")
            return f"{events} {waits} and may hold the answer; search again soon, or run `memkit work --wait`"
        if self._project.root in unindexed.roots(self._home):
            return "the newest entries are not indexed yet; search again soon, or run `memkit index`"
        return ""
