"""Accept connections, read one request from each, and send the reply.

A bad connection harms no other. The kinds of error replies:

- `malformed`: not a frame, not a JSON object, or a field of the wrong type;
- `token`: the token of a TCP connection is missing or wrong;
- `version`: the request is of another protocol or a newer memkit; only `drain`, `ping`, and `status` may be;
- `elsewhere`: the client can do it better itself, as it has other settings or more time;
- the name of a class in `memkit.errors`: the operation failed with that error;
- `internal`: the operation failed otherwise; the log has the traceback;
- `late`: the deadline passed, and the operation was canceled;
- `large`: the result does not fit into a reply.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import math
import os
import socket
import struct
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from memkit import errors
from memkit.errors import MemkitError
from memkit.ipc.address import BACKLOG
from memkit.ipc.client import (
    DRAIN,
    HEADER_BYTES,
    MAX_REQUEST_BYTES,
    PING,
    PROTOCOL,
    FrameError,
    FrameTooLargeError,
    body_length,
    decode_frame,
    encode_frame,
)
from memkit.state import release
from memkit.text import one_line

STATUS = "status"

OPEN_OPERATIONS = (DRAIN, PING, STATUS)
"""The operations that clients of every protocol and version may ask for."""

REQUEST_SECONDS = 5.0
"""The time limit for receiving a request."""

REPLY_SECONDS = 5.0
"""The time limit for sending a reply."""

GRACE_SECONDS = 10.0
"""The time limit for requests in progress after `stop`. Then they are canceled."""

MAX_CONNECTIONS = 256
"""The number of connections served at once. Up to `BACKLOG` more wait for their turn; others are closed."""

MAX_ID_CHARACTERS, MAX_MESSAGE_CHARACTERS = 64, 1000

_PEER_CREDENTIALS = struct.Struct("3i")  # struct ucred of unix(7): pid, uid, gid

logger = logging.getLogger(__name__)


class NotHereError(MemkitError):
    """The client should do this itself, but can still ask the service for other things."""


class RequestError(Exception):
    """A request that no operation gets to see. `identity` is "" if unknown, `version` the service's."""

    def __init__(self, identity: str, kind: str, message: str, version: str = "") -> None:
        super().__init__(message)
        self.identity = identity
        self.kind = kind
        self.version = version


@dataclass(frozen=True)
class Request:
    """One request. `deadline` is by `time.monotonic`, infinite for a client that does not wait."""

    id: str
    operation: str
    arguments: dict[str, Any]
    deadline: float


class Listener:
    """Serves the connections of one listening socket, and closes it at the end.

    `requests` counts the calls of `handle`. Call all methods in the thread of the event loop.
    """

    def __init__(
        self, sock: socket.socket, token: str | None, handle: Callable[[Request], Awaitable[dict[str, Any]]],
        *, version: str,
    ) -> None:  # fmt: skip
        self._socket = sock
        self._token = token
        self._handle = handle
        self._version = version
        self._stopping = asyncio.Event()
        self._slots = asyncio.Semaphore(MAX_CONNECTIONS)
        self._connections: set[asyncio.Task[None]] = set()
        self._in_progress: set[asyncio.Task[None]] = set()
        self.requests = 0

    async def run(self) -> None:
        """Serve until `stop` and the last reply. Raise `OSError` if the socket does not listen."""
        if sys.platform != "win32" and self._socket.family == socket.AF_UNIX:
            server = await asyncio.start_unix_server(self._accept, sock=self._socket, backlog=BACKLOG)
        else:
            server = await asyncio.start_server(self._accept, sock=self._socket, backlog=BACKLOG)
        try:
            await self._stopping.wait()
        finally:
            server.close()
            await self._finish()

    def stop(self) -> None:
        """Accept no more connections. `run` returns when the requests in progress are answered."""
        self._stopping.set()

    async def _finish(self) -> None:
        """Close connections without a request. Wait for the others up to `GRACE_SECONDS`."""
        for task in self._connections - self._in_progress:
            task.cancel()
        if self._in_progress:
            _, overdue = await asyncio.wait(self._in_progress, timeout=GRACE_SECONDS)
            for task in overdue:
                logger.warning("a request was not finished when the service ended")
                task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= MAX_CONNECTIONS + BACKLOG or self._stopping.is_set():
            writer.transport.abort()
            return
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(partial(self._close, writer))

    def _close(self, writer: asyncio.StreamWriter, task: asyncio.Task[None]) -> None:
        writer.transport.abort()  # here: a task canceled before its first step runs no `finally`
        self._connections.discard(task)
        self._in_progress.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            if isinstance(error, OSError):
                logger.debug("a connection was lost: %s", error)
            else:
                logger.error("a connection failed", exc_info=error)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one request and answer it. Raise `OSError` if the connection is lost."""
        if not is_own_peer(writer.get_extra_info("socket")):
            logger.warning("a connection of another user was closed")
            return
        async with self._slots:
            try:
                request = await asyncio.wait_for(self._read_request(reader), REQUEST_SECONDS)
            except asyncio.TimeoutError:
                logger.debug("a connection did not deliver its request in time")
                return
            except RequestError as error:
                reply = error_frame(error.identity, error.kind, str(error), error.version)
            else:
                if request is None:
                    return
                task = asyncio.current_task()
                assert task is not None
                self._in_progress.add(task)
                reply = await self._answer(request)
            writer.write(reply)
            writer.close()
            try:
                await asyncio.wait_for(writer.wait_closed(), REPLY_SECONDS)
            except asyncio.TimeoutError:
                logger.debug("a connection did not receive its reply in time")

    async def _read_request(self, reader: asyncio.StreamReader) -> Request | None:
        try:
            header = await reader.readexactly(HEADER_BYTES)
            length = body_length(header, MAX_REQUEST_BYTES)
            message = decode_frame(await reader.readexactly(length))
        except asyncio.IncompleteReadError as error:
            if not error.partial and error.expected == HEADER_BYTES:
                return None
            raise RequestError("", "malformed", "the message ends too early") from error
        except FrameError as error:
            raise RequestError("", "malformed", str(error)) from error
        return parse_request(message, token=self._token, version=self._version)

    async def _answer(self, request: Request) -> bytes:
        self.requests += 1
        seconds = max(0.0, request.deadline - time.monotonic())
        try:
            result = await asyncio.wait_for(self._operate(request), seconds)
            if not isinstance(result, dict):
                raise TypeError(f"the result is of type {type(result).__name__}, not a dict")
            return encode_frame({"id": request.id, "result": result})
        except asyncio.TimeoutError:
            return error_frame(request.id, "late", "the deadline of the request passed")
        except MemkitError as error:
            known = (one.__name__ for one in type(error).__mro__ if one.__module__ == errors.__name__)
            kind = "elsewhere" if isinstance(error, NotHereError) else next(known)
            return error_frame(request.id, kind, str(error))
        except FrameTooLargeError as error:
            return error_frame(request.id, "large", str(error))
        except Exception as error:
            logger.exception("the operation %r failed", request.operation)
            message = f"the service failed ({type(error).__name__}), see its log"
            return error_frame(request.id, "internal", message)

    async def _operate(self, request: Request) -> dict[str, Any]:
        """Return the result of a request. Only the deadline shall raise `TimeoutError`."""
        try:
            return await self._handle(request)
        except asyncio.TimeoutError as error:
            raise RuntimeError("a step of the operation timed out") from error


def is_own_peer(connection: Any) -> bool:
    """Return whether the other end of a socket belongs to this user.

    True where the system does not know: there the token or the mode of the directory protects.
    """
    if sys.platform == "win32":
        return True
    if connection.family != socket.AF_UNIX or not hasattr(socket, "SO_PEERCRED"):
        return True
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER_CREDENTIALS.size)
    return bool(_PEER_CREDENTIALS.unpack(data)[1] == os.getuid())


def error_frame(identity: str, kind: str, message: str, version: str = "") -> bytes:
    """Return the frame of an error reply, with the service's `version` if given."""
    error = {"kind": kind, "message": one_line(message)[:MAX_MESSAGE_CHARACTERS]}
    if version:
        error["version"] = version
    return encode_frame({"id": identity, "error": error})


def parse_request(message: dict[str, Any], *, token: str | None, version: str) -> Request:
    """Return `message` as a request. Raise `RequestError` if it is none.

    `token` is the one it must carry, if any. `version` is the service's. A client of an older version is
    answered too, if it speaks the same protocol. Otherwise two versions would end each other's service
    in turn.
    """
    identity = message.get("id")
    if not isinstance(identity, str) or len(identity) > MAX_ID_CHARACTERS:
        raise RequestError("", "malformed", "the request has no id")
    if token is not None and not _is_same(token, message.get("token")):
        raise RequestError(identity, "token", "the request has not the token of this service")
    operation = message.get("operation")
    if not isinstance(operation, str):
        raise RequestError(identity, "malformed", "the request names no operation")
    if not _is_understood(message, version) and operation not in OPEN_OPERATIONS:
        raise RequestError(identity, "version", f"the service has version {version}", version)
    arguments = message.get("arguments")
    if not isinstance(arguments, dict):
        raise RequestError(identity, "malformed", "the arguments of the request are no object")
    seconds = message.get("deadline")
    if seconds is None:
        return Request(identity, operation, arguments, math.inf)
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise RequestError(identity, "malformed", "the deadline of the request is not a number")
    try:
        return Request(identity, operation, arguments, time.monotonic() + seconds)
    except OverflowError as error:
        raise RequestError(identity, "malformed", "the deadline of the request is too far") from error


def _is_understood(message: dict[str, Any], version: str) -> bool:
    theirs = message.get("version")
    if message.get("protocol") != PROTOCOL or not isinstance(theirs, str):
        return False
    return len(theirs) <= MAX_ID_CHARACTERS and release(theirs) <= release(version)


def _is_same(token: str, given: object) -> bool:
    # JSON may hold lone surrogates.
    return isinstance(given, str) and hmac.compare_digest(
        token.encode("ascii"), given.encode("utf-8", "surrogatepass")
    )
