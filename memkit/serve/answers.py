"""The one way to write JSON, and how the OpenAPI document describes it."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from memkit.errors import (
    AmbiguousIdError,
    ArchiveError,
    ConfigError,
    DamagedFileError,
    IndexBusyError,
    IndexStoreError,
    JournalError,
    MemkitError,
    NewerFileError,
    NotFoundError,
    OtherProjectsError,
)
from memkit.text import encodable, one_line

logger = logging.getLogger(__name__)

RETRY_SECONDS = 2
DETAIL_CHARACTERS = 1000

PROBLEM_TYPE = "application/problem+json"

_REFERENCE = "#/components/schemas/{name}"
_kinds: set[Any] = set()


class BusyError(MemkitError):
    """Too many listeners already."""


_RETRIED = (BusyError, IndexBusyError)
_STATUS: tuple[tuple[type[MemkitError] | tuple[type[MemkitError], ...], int], ...] = (
    (NotFoundError, 404),
    (AmbiguousIdError, 409),
    (OtherProjectsError, 403),
    (_RETRIED, 503),
    # The user must look after the server's files or settings.
    ((IndexStoreError, ConfigError, NewerFileError, DamagedFileError, JournalError, ArchiveError), 503),
    (MemkitError, 422),
)


class Invalid(msgspec.Struct, frozen=True):
    """A part of a request that is not as it must be."""

    where: str
    reason: str


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """A problem as RFC 9457 describes it."""

    title: str
    status: int
    detail: str
    type: str = msgspec.field(default_factory=lambda: "about:blank")
    errors: list[Invalid] = []


def problem(
    status: int, detail: str, errors: list[Invalid] | None = None, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return the response of a problem."""
    content = Problem(HTTPStatus(status).phrase, status, _DIRECTORIES.sub("", detail), errors=errors or [])
    return Answer(content, status, headers=dict(headers or {}), media_type=PROBLEM_TYPE)


def problem_of(error: HTTPException) -> JSONResponse:
    """Return the response of a problem that a route or a check has raised."""
    return problem(error.status_code, str(error.detail), headers=error.headers)


def handle_all(app: FastAPI) -> None:
    """Answer every failed request of `app` with a problem."""

    @app.exception_handler(HTTPException)
    async def of_http(request: Request, error: HTTPException) -> JSONResponse:
        return problem_of(error)

    @app.exception_handler(RequestValidationError)
    async def of_validation(request: Request, error: RequestValidationError) -> JSONResponse:
        found = [
            Invalid(where=".".join(map(str, one["loc"])), reason=str(one["msg"])) for one in error.errors()
        ]
        if any(one["type"] == "json_invalid" for one in error.errors()):
            return problem(400, "the body is not JSON", found)
        is_json = "json" in request.headers.get("content-type", "").lower()
        if not is_json and any(one["loc"] == ("body",) for one in error.errors()):
            return problem(415, "send the body as `Content-Type: application/json`")
        return problem(422, "the request is not as /openapi.json describes it", found)

    @app.exception_handler(MemkitError)
    async def of_memkit(request: Request, error: MemkitError) -> JSONResponse:
        status = next(status for kinds, status in _STATUS if isinstance(error, kinds))
        headers = {"Retry-After": str(RETRY_SECONDS)} if isinstance(error, _RETRIED) else {}
        return problem(status, one_line(str(error), DETAIL_CHARACTERS), headers=headers)

    @app.exception_handler(Exception)
    async def of_others(request: Request, error: Exception) -> JSONResponse:
        logger.error("a request failed", exc_info=error)
        return problem(500, f"memkit failed ({type(error).__name__}); `memkit logs` has more")


class Answer(JSONResponse):
    """A response of JSON. Bytes are JSON already."""

    def render(self, content: Any) -> bytes:
        """Return the body. A file can hold any bytes, so text may be more than UTF-8 can hold."""
        if isinstance(content, bytes):
            return content
        text = json.dumps(
            content, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=msgspec.to_builtins
        )
        return encodable(text).encode()


_TIMES = frozenset(("begins", "ends", "first", "last", "time"))
_PATHS = frozenset("files old_versions path project projects root shared transcript".split())
_TEXTS = frozenset(("degraded_reason", "meaning", "message", "problems", "what"))
_DATA = frozenset(("explanation", "input", "metadata"))
"""The fields of times, of paths, of memkit's own sentences, and of data, which stays as it is."""

_LOCAL_TIME = re.compile(r"(?:(\d{4}-\d\d-\d\d) )?(\d\d:\d\d)")
_DIRECTORIES = re.compile(r"""(?<![\w.:/\\~-])(?:[A-Z]:)?[\\/](?:[^\s\\/'"`]+[\\/])+(?=[^\s\\/])""")


def published(value: Any, root: str) -> Response:
    """Return the response of an answer, with times as in RFC 3339 and without absolute paths.

    The path of a file is from the `root` of the project on; elsewhere, and for projects, it is a name.
    """

    def walk(value: Any, field: str, day: str) -> Any:
        if isinstance(value, (list, tuple)):
            return [walk(one, field, day) for one in value]
        if isinstance(value, dict):
            day = value.get("date") or value.get("day") or day
            found: dict[str, Any] = {}
            for name, one in value.items():
                shown = relative(name) if field in _PATHS else name
                shown = f"{shown} ({len(found) + 1})" if shown in found else shown
                found[shown] = one if name in _DATA else walk(one, name, day)
            return found
        if not isinstance(value, str):
            return value
        if field in _TEXTS:
            return _DIRECTORIES.sub("", value)
        if field in _PATHS:
            return relative(value)
        return _with_zone(value, day) if field in _TIMES else value

    def relative(path: str) -> str:
        if not os.path.isabs(path):
            return path
        return path[len(root) + 1 :] if path.startswith(f"{root}{os.sep}") else os.path.basename(path)

    return value if isinstance(value, Response) else Answer(walk(msgspec.to_builtins(value), "", ""))


def _with_zone(time: str, day: str) -> str:
    local = _LOCAL_TIME.fullmatch(time)
    if local is None or not (local[1] or day):
        return time
    time = f"{local[1] or day}T{local[2]}:00"
    try:
        return datetime.fromisoformat(time).astimezone().isoformat()
    except (OverflowError, OSError, ValueError):  # out of the reach of time zones
        return f"{time}-00:00"


Responses = dict[int | str, dict[str, Any]]
"""How the OpenAPI document describes the responses of a route, by status."""


def returns(kind: Any, *failures: int, also: int = 200) -> Responses:
    """Describe a route whose answer is a `kind`, with the status 200, or `also` another one."""
    _kinds.add(kind)
    return {**_described("application/json", kind, 200, also), **documented(*failures)}


def documented(*failures: int) -> Responses:
    """Describe failures."""
    return _described(PROBLEM_TYPE, Problem, *failures)


def _described(media_type: str, kind: Any, *statuses: int) -> Responses:
    content = {media_type: {"schema": {"$ref": _REFERENCE.format(name=kind.__name__)}}}
    return {one: {"description": HTTPStatus(one).phrase, "content": content} for one in statuses}


def schemas() -> dict[str, Any]:
    """Return the JSON schemas of all answers by name."""
    _, found = msgspec.json.schema_components([Problem, *_kinds], ref_template=_REFERENCE)
    return found
