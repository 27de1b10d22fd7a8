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

_STATUS: tuple[tuple[type[MemkitError], int], ...] = (
    (NotFoundError, 404),
    (AmbiguousIdError, 409),
    (OtherProjectsError, 403),
    (IndexBusyError, 503),
    # The user must look after the server's files or settings.
    (IndexStoreError, 503),
    (ConfigError, 503),
    (NewerFileError, 503),
    (DamagedFileError, 503),
    (JournalError, 503),
    (ArchiveError, 503),
    (MemkitError, 422),
)


class BusyError(MemkitError):
    """Too many listeners already."""


def problem(
    status: int, detail: str, errors: list[Invalid] | None = None, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return the response of a problem."""
    detail = _DIRECTORIES.sub("", detail)
    content = Problem(HTTPStatus(status).phrase, status, detail, errors=errors or [])
    return Answer(content, status, headers=dict(headers or {}), media_type=PROBLEM_TYPE)


def handle_all(app: FastAPI) -> None:
    """Answer every failed request of `app` with a problem."""

    @app.exception_handler(HTTPException)
    async def of_http(request: Request, error: HTTPException) -> JSONResponse:
        return problem(error.status_code, str(error.detail), headers=error.headers)

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
        return of_error(error)

    @app.exception_handler(Exception)
    async def of_others(request: Request, error: Exception) -> JSONResponse:
        logger.error("a request failed", exc_info=error)
        return problem(500, f"memkit failed ({type(error).__name__}); `memkit logs` has more")


def of_error(error: MemkitError) -> JSONResponse:
    """Return the response for an error that memkit foresaw."""
    if isinstance(error, BusyError):
        return problem(503, str(error), headers={"Retry-After": str(RETRY_SECONDS)})
    status = next(status for kind, status in _STATUS if isinstance(error, kind))
    headers = {"Retry-After": str(RETRY_SECONDS)} if isinstance(error, IndexBusyError) else {}
    return problem(status, one_line(str(error), DETAIL_CHARACTERS), headers=headers)


def raw(status: int, detail: str) -> bytes:
    """Return the body of a problem, for code outside the app."""
    return dumped(Problem(HTTPStatus(status).phrase, status, detail))


PROBLEM_TYPE = "application/problem+json"

_REFERENCE = "#/components/schemas/{name}"
_kinds: set[Any] = set()


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


def dumped(value: Any) -> bytes:
    """Return a value as JSON in UTF-8. A file can hold any bytes, so text may be more than UTF-8 can hold."""
    text = json.dumps(
        value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=msgspec.to_builtins
    )
    return encodable(text).encode()


class Answer(JSONResponse):
    """A response of JSON."""

    def render(self, content: Any) -> bytes:
        """Return the body."""
        return content if isinstance(content, bytes) else dumped(content)


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
    if isinstance(value, Response):
        return value
    return Answer(_published(msgspec.to_builtins(value), root, "", ""))


def _published(value: Any, root: str, field: str, day: str) -> Any:
    if isinstance(value, dict):
        day = value.get("date") or value.get("day") or day
        found: dict[str, Any] = {}
        for name, one in value.items():
            shown = _relative(name, root) if field in _PATHS else name
            shown = f"{shown} ({len(found) + 1})" if shown in found else shown
            found[shown] = one if name in _DATA else _published(one, root, name, day)
        return found
    if isinstance(value, (list, tuple)):
        return [_published(one, root, field, day) for one in value]
    if not isinstance(value, str):
        return value
    if field in _TIMES and (local := _LOCAL_TIME.fullmatch(value)) and (local[1] or day):
        return _with_zone(f"{local[1] or day}T{local[2]}:00")
    if field in _PATHS:
        return _relative(value, root)
    return _DIRECTORIES.sub("", value) if field in _TEXTS else value


def _relative(path: str, root: str) -> str:
    if not os.path.isabs(path):
        return path
    return path[len(root) + 1 :] if path.startswith(f"{root}{os.sep}") else os.path.basename(path)


def _with_zone(local: str) -> str:
    try:
        return datetime.fromisoformat(local).astimezone().isoformat()
    except (OverflowError, OSError, ValueError):  # out of the reach of time zones
        return f"{local}-00:00"


def moment(seconds: float | None) -> str | None:
    """Return a time in seconds since the epoch as in RFC 3339; None for none and 0."""
    return datetime.fromtimestamp(round(seconds)).astimezone().isoformat() if seconds else None


def returns(kind: Any, *failures: int, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """Return how the OpenAPI document describes a route whose answer is a `kind`."""
    _kinds.add(kind)
    described = {
        "description": HTTPStatus(status).phrase,
        "content": {"application/json": {"schema": {"$ref": _REFERENCE.format(name=kind.__name__)}}},
    }
    return {status: described, **documented(*failures)}


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return how the OpenAPI document describes these failures."""
    schema = {"schema": {"$ref": _REFERENCE.format(name="Problem")}}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {PROBLEM_TYPE: schema}}
        for status in statuses
    }


def schemas() -> dict[str, Any]:
    """Return the JSON schemas of all answers by name."""
    _, found = msgspec.json.schema_components([Problem, *_kinds], ref_template=_REFERENCE)
    return found
