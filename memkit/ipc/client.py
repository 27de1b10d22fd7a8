"""Asks the service of a memory home, if one is running.

Every call opens a connection, sends one request and is back at its deadline at the latest. Whoever
gets `ServiceUnavailable` does the work itself.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import os
import socket
import time
from typing import Any

from memkit import __version__
from memkit.errors import MemkitError
from memkit.ipc import address, frames
from memkit.paths import Home
from memkit.state import release

DRAIN = "drain"
"""The operation that asks a service to finish what it has in hand and to end."""

DRAIN_SECONDS = 0.02

PING = "ping"
"""The operation that asks for a sign of life. The listener itself answers, whatever else is in hand."""

SIGN_SECONDS = 1.0
"""Who has waited so long for a reply asks for a sign of life; the time doubles with each further one."""

LONGEST_SIGN_SECONDS = 16.0

ALIVE_SECONDS = 1.0
"""A service that gives no sign of life in so long hangs."""

SEND_SECONDS = 5.0
"""A service takes a whole request in this time, or may hang."""

READ_BYTES = 65536


class ServiceUnavailable(MemkitError):
    """The service gave no answer.

    `reason` is `absent` (nobody listens), `late` (not before the deadline), `hung` (it gives no sign
    of life), `version` (it is of another version) or `broken` (the connection was lost, or what came is
    no reply).
    """

    def __init__(self, reason: str, message: str, is_older: bool = False) -> None:
        """`is_older` says that the service's version is older than ours."""
        super().__init__(message)
        self.reason = reason
        self.is_older = is_older


class RequestRefused(MemkitError):
    """The service answered that it cannot do this. `kind` is one of those `listener` names."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def request(
    home: Home, operation: str, arguments: dict[str, Any], seconds: float
) -> dict[str, Any]:
    """What the service answers to `operation`, within `seconds` in all.

    Raises `ServiceUnavailable`, or `RequestRefused` if the service answers with an error or the
    request cannot be sent as a frame. Who waits longer than `SIGN_SECONDS` asks for a sign of life, and
    waits no longer if there is none. A service of an older version is asked to drain, which takes up to
    `DRAIN_SECONDS` more.
    """
    try:
        return _ask(home, operation, arguments, seconds)
    except ServiceUnavailable as unavailable:
        if unavailable.reason == "version" and unavailable.is_older:
            _ask_to_drain(home)
        if unavailable.reason == "late" and seconds > SIGN_SECONDS and not is_alive(home):
            raise _hung() from unavailable
        raise


def notify(home: Home, operation: str, arguments: dict[str, Any], seconds: float) -> None:
    """Send `operation` within `seconds` and do not wait for what becomes of it; raises as `request`.

    Returning says that the request is on its way, not that it was accepted.
    """
    _send(home, operation, arguments, time.monotonic() + seconds, awaited=False)[0].close()


def _ask(
    home: Home,
    operation: str,
    arguments: dict[str, Any],
    seconds: float,
    may_hang: bool = True,
) -> dict[str, Any]:
    deadline = time.monotonic() + seconds
    connection, identity = _send(home, operation, arguments, deadline, awaited=True)
    with connection:
        if may_hang:
            _await_reply(home, connection, deadline)
        return _result(_receive(connection, deadline), identity)


def _await_reply(home: Home, connection: socket.socket, deadline: float) -> None:
    """Wait for the first byte of the reply. Raises `ServiceUnavailable` if the service hangs meanwhile."""
    pause = SIGN_SECONDS
    while _seconds_left(deadline) > pause:
        connection.settimeout(pause)
        try:
            connection.recv(1, socket.MSG_PEEK)
            return
        except socket.timeout:
            if not is_alive(home):
                raise _hung() from None
        except OSError as error:
            raise _unavailable(error) from error
        pause = min(2 * pause, LONGEST_SIGN_SECONDS)


def is_alive(home: Home, seconds: float = ALIVE_SECONDS) -> bool:
    """Whether the service gives a sign of life, which it does whatever else keeps it busy."""
    try:
        _ask(home, PING, {}, seconds, may_hang=False)
    except ServiceUnavailable as unavailable:
        return unavailable.reason != "late"
    except RequestRefused:  # any answer will do
        pass
    return True


def _ask_to_drain(home: Home) -> None:
    try:
        notify(home, DRAIN, {}, DRAIN_SECONDS)
    except ServiceUnavailable:  # it is gone already, or hangs; nobody waits for it any more
        pass


def _send(
    home: Home, operation: str, arguments: dict[str, Any], deadline: float, awaited: bool
) -> tuple[socket.socket, str]:
    """A connection over which the request has been sent, and the request's id."""
    identity = os.urandom(8).hex()
    message = {
        "protocol": frames.PROTOCOL,
        "version": __version__,
        "id": identity,
        "operation": operation,
        "arguments": arguments,
    }
    connection: socket.socket | None = None
    try:
        connection, token = address.connect(home, _seconds_left(deadline))
        if token is not None:
            message["token"] = token
        message["deadline"] = _seconds_left(deadline) if awaited else None
        frame = frames.encode(message, frames.MAX_REQUEST_BYTES)
        connection.settimeout(min(_seconds_left(deadline), SEND_SECONDS))
        connection.sendall(frame)  # the timeout is one for all of it
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, frames.FrameError):
            large = isinstance(error, frames.FrameTooLargeError)
            raise RequestRefused("large" if large else "malformed", str(error)) from error
        if isinstance(error, OSError):
            raise _unavailable(error) from error
        raise
    return connection, identity


def _receive(connection: socket.socket, deadline: float) -> dict[str, Any]:
    """The reply that comes over `connection`."""
    try:
        header = _read(connection, frames.HEADER_BYTES, deadline)
        length = frames.body_length(header, frames.MAX_REPLY_BYTES)
        return frames.decode(_read(connection, length, deadline))
    except frames.FrameError as error:
        raise _broken(str(error)) from error
    except OSError as error:
        raise _unavailable(error) from error


def _read(connection: socket.socket, count: int, deadline: float) -> bytes:
    """Exactly `count` bytes; each that comes leaves less time for the next."""
    data = bytearray()
    while len(data) < count:
        connection.settimeout(_seconds_left(deadline))
        part = connection.recv(min(READ_BYTES, count - len(data)))
        if not part:
            raise _broken("it closed the connection")
        data += part
    return bytes(data)


def _seconds_left(deadline: float) -> float:
    """The seconds until `deadline`, never 0, which a socket would take for "do not wait at all"."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise _late()
    return left


def _result(reply: dict[str, Any], identity: str) -> dict[str, Any]:
    """What `reply` brings; raises what it says."""
    error = reply.get("error")
    if isinstance(error, dict):
        kind, message = error.get("kind"), error.get("message")
        if isinstance(kind, str) and isinstance(message, str):
            if kind == "version":
                # One that does not say its version is older than this rule.
                theirs = error.get("version")
                is_older = not isinstance(theirs, str) or release(theirs) < release(__version__)
                raise ServiceUnavailable("version", message, is_older)
            if kind == "late":
                raise _late()
            if kind == "token":
                raise _broken(message)
            raise RequestRefused(kind, message)
    result = reply.get("result")
    if reply.get("id") != identity or not isinstance(result, dict):
        raise _broken("what it sent is no reply to the request")
    return result


def _unavailable(error: OSError) -> ServiceUnavailable:
    if isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
        return ServiceUnavailable("absent", "the service is not running")
    if isinstance(error, (socket.timeout, BlockingIOError)):  # the latter: its backlog is full
        return _late()
    return _broken(str(error))


def _hung() -> ServiceUnavailable:
    return ServiceUnavailable("hung", "the service gives no sign of life")


def _late() -> ServiceUnavailable:
    return ServiceUnavailable("late", "the service did not answer in time")


def _broken(what: str) -> ServiceUnavailable:
    return ServiceUnavailable("broken", f"the service gave no answer: {what}")
