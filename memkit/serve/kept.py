"""Answers as they were sent: an equal request costs no reading while no file of the memory changes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING, Any

from memkit.projects.project import Project

if TYPE_CHECKING:
    from starlette.types import Scope

MOST_BYTES = 8_000_000

LIST_SECONDS = 0.2
"""The files are listed again after this time. A file that was added or replaced counts at once."""


class KeptAnswers:
    """The answers to requests about the timeline, each with its route."""

    def __init__(self) -> None:
        self._answers: dict[str, tuple[bytes, Any]] = {}
        self._directories: dict[str, int] = {}
        self._files: object = None
        self._listed = 0.0
        self._size = 0
        self._lock = threading.Lock()

    def find(self, scope: Scope) -> tuple[bytes, Any] | None:
        """Return the answer to an equal request, without a listing of the files. For the event loop.

        None has the request list the files; meanwhile, others still get what is kept.
        """
        now, directories = time.monotonic(), self._directories
        is_current = directories == _changes(directories)  # before the answer, which may be newer
        found = self._answers.get(_name_of(scope)) if is_current else None
        if found is not None and now - self._listed > LIST_SECONDS:
            self._listed = now
            return None
        return found

    def answer(self, scope: Scope, project: Project, make: Callable[[], bytes]) -> bytes:
        """Return the answer to an equal request, or that of `make` if a file has changed."""
        now, name, project = time.monotonic(), _name_of(scope), project.for_counting()
        directories = _changes(filter(None, (project.memory, project.openclaw)))
        files = [one for directory in directories for one in _files_in(directory)]
        with self._lock:
            if files != self._files:
                self._answers, self._files, self._size = {}, files, 0
            self._directories, self._listed = directories, now
            answers = self._answers
            found = answers.get(name)
        if found is not None:
            return found[0]
        made = make()
        with self._lock:  # if a file has changed meanwhile, `answers` are no longer in use
            if answers is self._answers:
                self._size += len(name) + len(made)
                if self._size > MOST_BYTES:
                    answers.clear()
                    self._size = len(name) + len(made)
            answers[name] = made, scope.get("route")
        return made


def _changes(directories: Iterable[str]) -> dict[str, int]:
    found = dict.fromkeys(directories, 0)
    for path in found:
        with suppress(OSError):
            found[path] = os.stat(path).st_mtime_ns
    return found


def _files_in(directory: str) -> Iterator[tuple[str, int, int, int]]:
    with suppress(OSError), os.scandir(directory) as entries:
        for one in entries:
            with suppress(OSError):  # removed since, or a link to nothing
                status = one.stat()
                yield one.path, status.st_mtime_ns, status.st_size, status.st_ino


def _name_of(scope: Scope) -> str:
    return f"{date.today()} {scope['path']}?{scope['query_string'].decode('latin-1')}"
