"""The one way to write JSON, and how the OpenAPI document describes it."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
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
        return dumped(content)


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
