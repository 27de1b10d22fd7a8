"""Who may ask: the keys of requests, and their roles."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, HTTPException, Request, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from memkit.capture.project_list import projects_with_memory
from memkit.errors import MemkitError, OtherProjectsError
from memkit.index.catalog import project_names
from memkit.interface import InterfaceMemory as Memory
from memkit.projects.project import Project
from memkit.questions.caller import Caller
from memkit.serve import link
from memkit.serve.answers import Answer, problem_of, published
from memkit.serve.guard import HEADERS, KEY_ID, secret_in
from memkit.serve.keys import ApiKey, Keys
from memkit.serve.limits import KeptAnswers, Question, RateLimits
from memkit.serve.link import Link
from memkit.serve.shapes import OneProject

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

logger = logging.getLogger(__name__)

OF_OTHERS = {"project", "all_projects"}
"""The parameters that ask about other projects."""

_bearer = HTTPBearer(auto_error=False, description="A key from `memkit serve key`.")

Ask = Callable[[Question], Awaitable[Response]]
"""Makes a response of the memory in a thread: `await ask(lambda memory: memory.overview())`."""


class Auth:
    """The stored keys, and those of the page."""

    def __init__(self, keys: Keys, links: Sequence[Link] = ()) -> None:
        self._keys = keys
        self.links = links

    def find_key(self, secret: str) -> ApiKey | None:
        """Return the stored key or the page's, or None. Raise 503 if the keys cannot be read."""
        page = self.link_of(secret)
        if page is not None:
            return page.find(secret)
        try:
            return self._keys.find(secret)
        except (MemkitError, OSError) as error:
            # The client may be anybody, and the error names files.
            logger.warning("no key can be checked: %s", error)
            raise HTTPException(503, "no key can be checked; you can run `memkit serve keys`") from error

    def link_of(self, secret: str) -> Link | None:
        """Return the link whose key has this secret; None for a stored key."""
        return next((one for one in self.links if one.find(secret)), None)

    def is_known(self, secret: str) -> bool:
        """Return whether a valid key has this secret."""
        try:
            return self.find_key(secret) is not None
        except HTTPException:
            return False


def with_kept_answers(app: ASGIApp, auth: Auth, rates: RateLimits, kept: KeptAnswers) -> ASGIApp:
    """Return an app that gives kept answers itself. The key and its rate count as ever."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        is_get = scope["type"] == "http" and scope["method"] == "GET"
        secret = secret_in(scope) if is_get else ""
        response = app
        try:
            key = auth.find_key(secret) if secret else None
            found = kept.find(scope) if key else None
            if found and key:
                response, scope["route"], scope[KEY_ID] = Answer(found[0]), found[1], key.id
                scope[HEADERS] = rates.count(key.id)
        except HTTPException as error:
            response = problem_of(error)
        await response(scope, receive, send)

    return answer


Given = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


def _for(role: str, *, or_page: bool = False, keeps: bool = False) -> Callable[..., Awaitable[Ask]]:
    async def authorized(request: Request, given: Given) -> Ask:
        state = request.app.state
        key = state.auth.find_key(given.credentials) if given is not None else None
        if key is None:
            state.rates.count_failure(request)
            raise HTTPException(
                401, "this needs a key: `Authorization: Bearer memkit_key_…`", {"WWW-Authenticate": "Bearer"}
            )
        request.scope[KEY_ID] = key.id
        request.scope[HEADERS] = state.rates.count(key.id)
        if not key.may(role) and not (or_page and key.id == link.KEY_ID):
            raise HTTPException(403, f"this needs a key with the role {role}; this one has {key.role}")
        # What a key may read of other projects is its own, and their files may change unseen.
        kept_as = None if OF_OTHERS & request.query_params.keys() or not keeps else request.scope
        return partial(state.threads.ask, key=key.id, is_change=role != "read", kept_as=kept_as)

    return authorized


def _reading(role: str = "read", **options: bool) -> Callable[..., Awaitable[Ask]]:
    read = _for(role, **options)

    async def authorized(request: Request, given: Given, project: OneProject = "") -> Ask:
        ask = await read(request, given)

        def about(question: Question, memory: Memory) -> Any:
            # A person opened the page from a terminal, which may read every project.
            memory.other_projects |= request.scope[KEY_ID] == link.KEY_ID
            if not project:
                return question(memory)
            other = memory_of(memory, project)
            other.wait_seconds = memory.wait_seconds
            return published(question(other), other.project.root)

        return lambda question: ask(partial(about, question))

    return authorized


Listening = Annotated[Ask, Depends(_for("read"))]
Reading = Annotated[Ask, Depends(_reading())]
ReadingTimeline = Annotated[Ask, Depends(_reading(keeps=True))]
"""For an answer that depends on the files of the timeline alone."""

ReadingAsPage = Annotated[Ask, Depends(_reading("admin", or_page=True))]
Writing = Annotated[Ask, Depends(_for("write"))]
Administering = Annotated[Ask, Depends(_for("admin"))]
AdministeringOrPage = Annotated[Ask, Depends(_for("admin", or_page=True))]


def memory_of(memory: Memory, name: str) -> Memory:
    """Return the memory of the project with this name. Raise `MemkitError`."""
    if not memory.other_projects:
        raise OtherProjectsError("this key reads one project; the setting recall.other_projects allows all")
    project = by_name(memory).get(name)
    if project is None:
        raise MemkitError(f"there is no project {name!r} with a memory; `memkit projects` lists them")
    home, settings_of, caller = memory.home, memory.settings_of, Caller(project.root)
    return Memory(project, home=home, settings_of=settings_of, announce=memory.announce, caller=caller)


def by_name(memory: Memory) -> dict[str, Project]:
    """Return the projects by the names that users see; a further one of the same name by its root."""
    found: dict[str, Project] = {}
    projects = projects_with_memory(memory.home, [memory.project])
    names = project_names(memory.home, (one.root for one in projects))
    for one in projects:
        found[one.root if names[one.root] in found else names[one.root]] = one
    return found
