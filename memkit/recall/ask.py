"""Questions to the memory: answered by the service if it is up, else in this process."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from memkit.errors import MemkitError
from memkit.hook.project import Project
from memkit.index.current import index_key
from memkit.ipc import launch, spool, unindexed
from memkit.ipc.client import RequestRefused, ServiceUnavailable, is_alive, request
from memkit.paths import Home
from memkit.recall import usage
from memkit.recall.results import Answer, SearchRequest
from memkit.settings import load
from memkit.settings.load import Settings

if TYPE_CHECKING:
    from memkit.recall.search import Searcher

logger = logging.getLogger(__name__)

ANSWER_SECONDS = 20.0
"""How long the service may take, which may have to load the model and index edited files first."""

TAKE_IN_SECONDS = 10.0
"""How long a search that found nothing waits until what the hooks told is taken in."""


def ask_service(
    project: Project,
    home: Home,
    settings: Settings,
    operation: str,
    arguments: dict[str, Any],
    seconds: float = ANSWER_SECONDS,
    announce: Callable[[str], None] = logger.warning,
) -> Any:
    """What the service answers on the project.

    A service that hangs is ended, which `announce` is told in one line. Raises `ServiceUnavailable` if this
    process must do it itself, and `MemkitError` with what went wrong there.
    """
    if not settings.service.enabled:
        raise ServiceUnavailable("absent", "the service is switched off")
    own = {"root": project.root, "index": index_key(project, home, settings)}
    try:
        return request(home, operation, {**own, **arguments}, seconds)
    except ServiceUnavailable as unavailable:
        if unavailable.reason == "hung":
            end_hung_service(home, announce)
        raise
    except RequestRefused as refused:
        if refused.kind == "failed":
            raise MemkitError(str(refused)) from refused
        if refused.kind != "elsewhere":
            logger.warning("the service refused %s: %s", operation, refused)
        raise ServiceUnavailable("broken", str(refused)) from refused


def end_hung_service(home: Home, announce: Callable[[str], None]) -> None:
    """End a service that gave no sign of life; `announce` is told in one line what became of it."""
    from memkit.ipc.stop import end_hung, process_of

    ended = end_hung(home)
    if ended is not None:
        announce(f"the service, process {ended}, hung; ended it and went on without it")
    else:
        announce(
            f"the service, process {process_of(home)}, gives no sign of life; went on without it. "
            "`memkit service restart` ends it"
        )


def end_if_hung(home: Home, announce: Callable[[str], None]) -> None:
    """End the service if it hangs, before waiting for a lock that it may hold."""
    if launch.service_is_running(home) and not is_alive(home):
        end_hung_service(home, announce)


class Asker:
    """Answers questions about one project, or all. Ask it often: what it opens stays open."""

    def __init__(
        self,
        project: Project,
        home: Home,
        settings: Settings,
        announce: Callable[[str], None],
        *,
        all_projects: bool = False,
    ) -> None:
        """`announce` is told, in one line each, what a person may have to wait for."""
        self._project = project
        self._home = home
        self._settings = settings
        self._announce = announce
        self._all_projects = all_projects
        self._searcher: Searcher | None = None

    def answer(self, asked: SearchRequest) -> Answer:
        """The answer; that something was asked is counted. Raises `MemkitError`."""
        answer = self._answer(asked)
        try:
            usage.note(self._home, "search")
        except OSError as error:  # the count is not worth the answer
            logger.warning("not counted: %s", error)
        return answer

    def _answer(self, asked: SearchRequest) -> Answer:
        answer = self._find(asked)
        if answer.results or not launch.work_waits(self._home):
            return answer
        # It may stand in what hooks told and nobody has taken in, as after the installation.
        if launch.work_is_due(self._home):
            self._take_in()
            answer = self._find(asked)
        note = self._what_waits()
        if answer.results or not note:
            return answer
        degraded = "; ".join(filter(None, (answer.degraded, note)))
        return dataclasses.replace(answer, degraded=degraded)

    def _what_waits(self) -> str:
        """One line on what is not in the memory yet, "" if nothing waits."""
        left = len(spool.work(self._home))
        if left:
            what = "1 event waits" if left == 1 else f"{left} events wait"
            return f"{what} and may hold it; `memkit work --wait` takes in what can be read"
        if self._project.root in unindexed.roots(self._home):
            return "the newest entries are not indexed yet; `memkit index` does it"
        return ""

    def _take_in(self) -> None:
        """Have what waits taken in, by the service or here, for a bounded time."""
        self._searcher = None  # it stands for the memory as it was
        if self._settings.service.enabled:
            try:
                request(self._home, "work", {"wait": True}, TAKE_IN_SECONDS)
                return
            except (ServiceUnavailable, RequestRefused) as reason:
                logger.debug("taken in without the service: %s", reason)
                if isinstance(reason, ServiceUnavailable) and reason.reason == "late":
                    return
        from memkit.capture.worker import take_in

        try:
            take_in(self._home, self._settings_of, TAKE_IN_SECONDS)
        except (MemkitError, OSError) as error:  # what is left is said below
            logger.warning("what waits is not taken in: %s", error)

    def _settings_of(self, project: Project) -> Settings:
        return load.load(self._home, project).settings

    def _find(self, asked: SearchRequest) -> Answer:
        if self._searcher is None:
            try:
                return self._ask(asked)
            except ServiceUnavailable as reason:
                logger.debug("answered without the service: %s", reason)
                self._searcher = self._open()
        return self._searcher.answer(asked)

    def _ask(self, asked: SearchRequest) -> Answer:
        arguments = {
            "request": msgspec.to_builtins(asked),
            "search": msgspec.to_builtins(self._settings.search),
            "all_projects": self._all_projects,
        }
        found = ask_service(
            self._project,
            self._home,
            self._settings,
            "search",
            arguments,
            announce=self._announce,
        )
        try:
            return msgspec.convert(found, Answer)
        except msgspec.ValidationError as error:  # of a newer memkit
            raise ServiceUnavailable("broken", str(error)) from error

    def _open(self) -> Searcher:
        from memkit.recall.open import open_searcher

        if self._settings.service.enabled:
            try:
                launch.start_service(self._home)  # for the next question
            except OSError as error:
                logger.warning("the service cannot be started: %s", error)
        return open_searcher(
            self._project,
            self._home,
            self._settings,
            announce=self._announce,
            all_projects=self._all_projects,
        )
