"""Who may ask: the keys of requests, and their roles."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated

from fastapi import Depends, HTTPException, Request, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from memkit.errors import MemkitError
from memkit.memory import Memory
from memkit.serve import link
from memkit.serve.guard import KEY_ID
from memkit.serve.keys import ApiKey, Keys
from memkit.serve.link import Link
from memkit.serve.projects import memory_of
from memkit.serve.shapes import OneProject

logger = logging.getLogger(__name__)

_bearer = HTTPBearer(auto_error=False, description="A key from `memkit serve key`.")

Ask = Callable[[Callable[[Memory], Response]], Awaitable[Response]]
"""Makes a response of the memory in a thread: `await ask(lambda memory: Answer(memory.overview()))`."""


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


def secret_of(request: Request) -> str:
    """Return the secret of an authorized request."""
    return request.headers["authorization"].partition(" ")[2].strip()


Given = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


def _for(role: str, *, or_page: bool = False) -> Callable[..., Awaitable[Ask]]:
    async def authorized(request: Request, given: Given) -> Ask:
        state = request.app.state
        key = state.auth.find_key(given.credentials) if given is not None else None
        if key is None:
            state.rates.count_failure(request.client.host if request.client else "")
            raise HTTPException(
                401, "this needs a key: `Authorization: Bearer memkit_key_…`", {"WWW-Authenticate": "Bearer"}
            )
        request.scope[KEY_ID] = key.id
        state.rates.count(key.id)
        if not key.may(role) and not (or_page and key.id == link.KEY_ID):
            raise HTTPException(403, f"this needs a key with the role {role}; this one has {key.role}")
        return partial(state.threads.ask, key=key.id, is_change=role != "read")

    return authorized


_read = _for("read")


async def _read_project(request: Request, given: Given, project: OneProject = "") -> Ask:
    ask, is_page = await _read(request, given), request.scope[KEY_ID] == link.KEY_ID

    async def ask_project(question: Callable[[Memory], Response]) -> Response:
        def about(memory: Memory) -> Response:
            # A person opened the page from a terminal, which may read every project. Keys are for programs.
            memory.other_projects = memory.other_projects or is_page
            return question(memory_of(memory, project) if project else memory)

        return await ask(about)

    return ask_project


Listening = Annotated[Ask, Depends(_read)]
Reading = Annotated[Ask, Depends(_read_project)]
Writing = Annotated[Ask, Depends(_for("write"))]
Administering = Annotated[Ask, Depends(_for("admin"))]
AdministeringOrPage = Annotated[Ask, Depends(_for("admin", or_page=True))]
