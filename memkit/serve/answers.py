"""The one way to write JSON, and how the OpenAPI document describes it."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi.responses import JSONResponse

from memkit.text import encodable

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
