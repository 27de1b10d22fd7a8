"""Answers as they were sent: an equal request costs no reading while no file of the memory changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from memkit.memory import Memory
from memkit.projects.project import Project
from memkit.timeline.cache import FilesState, state_of_files

if TYPE_CHECKING:
    from starlette.types import Scope

MOST_BYTES = 8_000_000

LIST_SECONDS = 0.5
"""The files are listed again after this time. A file that was added or replaced counts at once."""


class Kept(NamedTuple):
    """An answer, and the route that it is from."""

    body: bytes
    route: Any


class KeptAnswers:
    """The answers to requests about the timeline, by path and query. Any thread may call it."""

    def __init__(self, open_memory: Callable[[], Memory]) -> None:
        self._open = open_memory
        self._project: Project | None = None
        self._answers: dict[str, Kept] = {}
        self._state: FilesState | None = None
        self._listed = 0.0
        self._lock = threading.Lock()

    def find(self, scope: Scope) -> Kept | None:
        """Return the kept answer to a request, without a listing of the files: the event loop may call it."""
        state = self._state  # before the answer, which then is of it, or newer
        is_fresh = time.monotonic() - self._listed < LIST_SECONDS
        return self._answers.get(_name_of(scope)) if state and is_fresh and state.is_current() else None

    def expire(self) -> None:
        """Have the files listed before the next answer."""
        self._listed = 0.0

    def answer(self, scope: Scope, make: Callable[[Memory], bytes]) -> bytes:
        """Return the kept answer to a request, or that of `make` if a file has changed."""
        name = _name_of(scope)
        self._project = self._project or self._open().project  # opening reads the settings
        now, state = time.monotonic(), state_of_files(self._project)
        with self._lock:
            if state != self._state:
                self._answers = {}
            self._state, self._listed = state, now
            found = self._answers.get(name)
        if found is not None:
            return found.body
        made = make(self._open())
        with self._lock:
            if state == self._state:
                size = sum(len(one.body) for one in self._answers.values()) + len(made)
                kept = self._answers if size <= MOST_BYTES else {}
                self._answers = {**kept, name: Kept(made, scope.get("route"))}
        return made


def _name_of(scope: Scope) -> str:
    return f"{scope['path']}?{scope['query_string'].decode('latin-1')}"
