"""Send requests to the service of a memory home, if one runs.

Every call opens a connection, sends one request, and returns by its deadline. A caller that gets
`ServiceUnavailable` does the work itself.

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

import contextlib
import json
import math
import os
import socket
import time
from typing import Any

from memkit import __version__
from memkit.errors import MemkitError
from memkit.ipc import address
from memkit.paths import Home
from memkit.state import parse_json, release

PROTOCOL = 1
"""The version of this format. `drain`, `ping`, and `status` keep theirs in every later protocol.

Raise it when an older client can no longer use the replies of a newer service.
"""

HEADER_BYTES = 4
MAX_REQUEST_BYTES = 1024 * 1024
MAX_REPLY_BYTES = 16 * 1024 * 1024

DRAIN = "drain"
"""The operation that asks a service to finish its requests and exit."""

DRAIN_SECONDS = 0.02

PING = "ping"
"""The operation that the service answers at once, whatever else it does."""

PING_AFTER_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 16.0
"""The first and the longest pause before a waiting client sends `ping`. It doubles each time."""

PING_SECONDS = 1.0
"""The time limit for an answer to `ping`."""

SEND_SECONDS = 5.0
"""The time limit for sending a whole request."""

READ_BYTES = 65536

HUNG = "the service does not respond"


class FrameError(ValueError):
    """A message is not a frame with a JSON object, or cannot become one."""


class FrameTooLargeError(FrameError):
    """A body is longer than allowed."""


class ServiceUnavailable(MemkitError):
    """The service gave no answer.

    `reason` is `absent` (no service listens), `late` (the deadline passed), `hung` (it does not answer
    `ping`), `version` (it has another version, `is_older` or not), or `broken` (a lost connection, or a
    malformed reply).
    """

    def __init__(self, reason: str, message: str, is_older: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.is_older = is_older


class RequestRefused(MemkitError):
    """The service answered with an error. `memkit.service.listener` lists the values of `kind`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def request(home: Home, operation: str, arguments: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Return the service's reply to `operation`, within `seconds` in all.

    Raise `RequestRefused` if the service answers with an error, or the request cannot be sent as a frame.
    Raise `ServiceUnavailable` otherwise: a long wait ends early if the service does not answer `ping`. Ask
    a service of an older version to drain, which takes up to `DRAIN_SECONDS` more.
    """
    try:
        return _exchange(home, operation, arguments, seconds)
    except ServiceUnavailable as unavailable:
        if unavailable.reason == "version" and unavailable.is_older:
            with contextlib.suppress(ServiceUnavailable):  # it has exited or hangs
                notify(home, DRAIN, {}, DRAIN_SECONDS)
        if unavailable.reason == "late" and seconds > PING_AFTER_SECONDS and not is_alive(home):
            raise ServiceUnavailable("hung", HUNG) from unavailable
        raise


def notify(home: Home, operation: str, arguments: dict[str, Any], seconds: float) -> None:
    """Send `operation` within `seconds` and do not wait for the reply. Raise as `request` does.

    When this returns, the request is on its way, but not yet accepted.
    """
    _send(home, operation, arguments, time.monotonic() + seconds, awaited=False)[0].close()


def is_alive(home: Home, seconds: float = PING_SECONDS) -> bool:
    """Return whether the service answers `ping`, which it does even while it is busy."""
    try:
        _exchange(home, PING, {}, seconds, pings=False)
    except ServiceUnavailable as unavailable:
        return unavailable.reason != "late"
    except RequestRefused:  # any answer is a sign of life
        pass
    return True


def _exchange(
    home: Home, operation: str, arguments: dict[str, Any], seconds: float, pings: bool = True
) -> dict[str, Any]:
    deadline = time.monotonic() + seconds
    connection, identity = _send(home, operation, arguments, deadline, awaited=True)
    with connection:
        if pings:
            _wait_for_reply(home, connection, deadline)
        return _result(_receive(connection, deadline), identity)


def _wait_for_reply(home: Home, connection: socket.socket, deadline: float) -> None:
    """Wait for the first byte of the reply. Raise `ServiceUnavailable` if the service hangs meanwhile."""
    pause = PING_AFTER_SECONDS
    while _seconds_left(deadline) > pause:
        connection.settimeout(pause)
        try:
            connection.recv(1, socket.MSG_PEEK)
            return
        except socket.timeout:
            if not is_alive(home):
                raise ServiceUnavailable("hung", HUNG) from None
        except OSError as error:
            raise _unavailable(error) from error
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def _send(
    home: Home, operation: str, arguments: dict[str, Any], deadline: float, awaited: bool
) -> tuple[socket.socket, str]:
    identity = os.urandom(8).hex()
    message = {
        "protocol": PROTOCOL, "version": __version__, "id": identity, "operation": operation,
        "arguments": arguments,
    }
    connection: socket.socket | None = None
    try:
        connection, token = address.connect(home, _seconds_left(deadline))
        if token is not None:
            message["token"] = token
        message["deadline"] = _seconds_left(deadline) if awaited else None
        frame = encode_frame(message, MAX_REQUEST_BYTES)
        connection.settimeout(min(_seconds_left(deadline), SEND_SECONDS))
        connection.sendall(frame)  # the timeout applies to the whole frame
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, FrameError):
            is_large = isinstance(error, FrameTooLargeError)
            raise RequestRefused("large" if is_large else "malformed", str(error)) from error
        if isinstance(error, OSError):
            raise _unavailable(error) from error
        raise
    return connection, identity


def _receive(connection: socket.socket, deadline: float) -> dict[str, Any]:
    try:
        header = _read(connection, HEADER_BYTES, deadline)
        length = body_length(header, MAX_REPLY_BYTES)
        return decode_frame(_read(connection, length, deadline))
    except FrameError as error:
        raise _broken(str(error)) from error
    except OSError as error:
        raise _unavailable(error) from error


def _read(connection: socket.socket, count: int, deadline: float) -> bytes:
    data = bytearray()
    while len(data) < count:
        connection.settimeout(_seconds_left(deadline))
        part = connection.recv(min(READ_BYTES, count - len(data)))
        if not part:
            raise _broken("it closed the connection")
        data += part
    return bytes(data)


def _seconds_left(deadline: float) -> float:
    """Return the seconds until `deadline`, never 0: to a socket that means not to wait at all."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise _late()
    return left


def _result(reply: dict[str, Any], identity: str) -> dict[str, Any]:
    error = reply.get("error")
    if isinstance(error, dict):
        kind, message = error.get("kind"), error.get("message")
        if isinstance(kind, str) and isinstance(message, str):
            if kind == "version":
                theirs = error.get("version")
                is_older = isinstance(theirs, str) and release(theirs) < release(__version__)
                raise ServiceUnavailable("version", message, is_older)
            if kind == "late":
                raise _late()
            if kind == "token":
                raise _broken(message)
            raise RequestRefused(kind, message)
    result = reply.get("result")
    if reply.get("id") != identity or not isinstance(result, dict):
        raise _broken("its reply is malformed")
    return result


def _unavailable(error: OSError) -> ServiceUnavailable:
    if isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
        return ServiceUnavailable("absent", "the service is not running")
    if isinstance(error, (socket.timeout, BlockingIOError)):  # the latter: its backlog is full
        return _late()
    return _broken(str(error))


def _late() -> ServiceUnavailable:
    return ServiceUnavailable("late", "the service did not answer in time")


def _broken(what: str) -> ServiceUnavailable:
    return ServiceUnavailable("broken", f"the service gave no answer: {what}")


def encode_frame(message: dict[str, Any], limit: int = MAX_REPLY_BYTES) -> bytes:
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


def decode_frame(body: bytes) -> dict[str, Any]:
    """Return the JSON object in `body`. Raise `FrameError` if it holds anything else."""
    try:
        message = parse_json(body.decode("utf-8"), parse_constant=_finite_number, parse_float=_finite_number)
    except ValueError as error:
        raise FrameError(f"the message is not JSON: {error}") from error
    if not isinstance(message, dict):
        raise FrameError("the message is not a JSON object")
    return message


def _check_length(length: int, limit: int) -> int:
    if length > limit:
        raise FrameTooLargeError(f"the message has {length} bytes; the limit is {limit}")
    return length


def _finite_number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text:.20} is not a JSON number")
    return number
