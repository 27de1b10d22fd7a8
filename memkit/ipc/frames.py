"""The format of messages between the service and its clients: a length, then a JSON object.

A frame is the number of bytes of its body (4 bytes, big-endian), then the body: a JSON object in UTF-8. One
connection carries one request and its reply:

- a request is `{"protocol": 1, "version": str, "id": str, "operation": str, "arguments": {...},
  "deadline": seconds left, or null if the client does not wait}`, and over TCP also `"token": str`;
- a reply is `{"id": the request's, "result": {...}}` or
  `{"id": the request's, "error": {"kind": str, "message": one line}}`. An error of the kind `version` also
  has the service's `"version"`.

Standard library only, Python 3.9 syntax: hooks import this module.
"""

from __future__ import annotations

import json
from typing import Any

from memkit.state import parse_json

PROTOCOL = 1
"""The version of this format. `drain`, `ping`, and `status` keep theirs in every later protocol.

Raise it when an older client can no longer use the replies of a newer service.
"""

HEADER_BYTES = 4
MAX_REQUEST_BYTES = 1024 * 1024
MAX_REPLY_BYTES = 16 * 1024 * 1024


class FrameError(ValueError):
    """A message is not a frame with a JSON object, or cannot become one."""


class FrameTooLargeError(FrameError):
    """A body is longer than allowed."""


def encode(message: dict[str, Any], limit: int = MAX_REPLY_BYTES) -> bytes:
    """Return the frame of `message`.

    Raise `FrameError` if it cannot be written as JSON, `FrameTooLargeError` if the body has more than
    `limit` bytes.
    """
    try:
        body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode("ascii")
    except (ValueError, TypeError, RecursionError) as error:
        raise FrameError(f"the message cannot be written as JSON: {error}") from error
    return _check_length(len(body), limit).to_bytes(HEADER_BYTES, "big") + body


def body_length(header: bytes, limit: int) -> int:
    """Return the length of the body after `header`. Raise `FrameTooLargeError` above `limit` bytes."""
    return _check_length(int.from_bytes(header, "big"), limit)


def decode(body: bytes) -> dict[str, Any]:
    """Return the JSON object in `body`. Raise `FrameError` if it holds anything else."""
    try:
        message = parse_json(
            body.decode("utf-8"), parse_constant=_no_constant, parse_float=_finite_number
        )
    except ValueError as error:
        raise FrameError(f"the message is not JSON: {error}") from error
    if not isinstance(message, dict):
        raise FrameError("the message is not a JSON object")
    return message


def _check_length(length: int, limit: int) -> int:
    if length > limit:
        raise FrameTooLargeError(f"the message has {length} bytes; the limit is {limit}")
    return length


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _finite_number(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{text:.20} is too large")
    return number
