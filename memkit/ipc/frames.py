"""Messages between the service and those who ask it: a length, then a JSON object.

A frame is the number of bytes of its body (4 bytes, big-endian) and the body, a JSON object in
UTF-8. One connection carries one request and its reply:

- a request is `{"protocol": 1, "version": str, "id": str, "operation": str, "arguments": {...},
  "deadline": seconds left, or null if nobody waits for the reply}`, with TCP also `"token": str`;
- a reply is `{"id": the request's, "result": {...}}` or
  `{"id": the request's, "error": {"kind": str, "message": one line}}`; if the kind is `version`, the
  error also has the service's `"version"`.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import json
from typing import Any

from memkit.state import parse_json

PROTOCOL = 1
"""The form of requests and replies. `drain`, `ping` and `status` keep theirs in every later protocol.

Raise it when an older client could no longer use what a newer service answers.
"""

HEADER_BYTES = 4
MAX_REQUEST_BYTES = 1024 * 1024
MAX_REPLY_BYTES = 16 * 1024 * 1024


class FrameError(ValueError):
    """What was sent or is to be sent is no frame with a JSON object in it."""


class FrameTooLargeError(FrameError):
    """A body is longer than allowed."""


def encode(message: dict[str, Any], limit: int = MAX_REPLY_BYTES) -> bytes:
    """The frame of `message`; raises `FrameError` if JSON cannot say it.

    Raises `FrameTooLargeError` if the body has more than `limit` bytes.
    """
    try:
        body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode("ascii")
    except (ValueError, TypeError, RecursionError) as error:
        raise FrameError(f"the message cannot be written as JSON: {error}") from error
    return checked_length(len(body), limit).to_bytes(HEADER_BYTES, "big") + body


def body_length(header: bytes, limit: int) -> int:
    """The length of the body that follows `header`; raises `FrameTooLargeError` above `limit`."""
    return checked_length(int.from_bytes(header, "big"), limit)


def checked_length(length: int, limit: int) -> int:
    """`length`, unless it is above `limit` bytes; then raises `FrameTooLargeError`."""
    if length > limit:
        raise FrameTooLargeError(
            f"the message has {length} bytes; at most {limit} are allowed"
        )
    return length


def decode(data: bytes) -> dict[str, Any]:
    """The JSON object that the body `data` holds; raises `FrameError` if it holds anything else."""
    try:
        message = parse_json(
            data.decode("utf-8"), parse_constant=_no_number, parse_float=_finite_number
        )
    except ValueError as error:
        raise FrameError(f"the message is no JSON: {error}") from error
    if not isinstance(message, dict):
        raise FrameError("the message is no JSON object")
    return message


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _finite_number(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{text:.20} is too large a number")
    return number
