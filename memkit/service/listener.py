"""The service's end of its connections: takes requests, hands them on, sends the replies.

Whatever a connection brings harms that connection alone. Errors are answered with one of these
kinds, where the other side can still be told:

- `malformed`: no frame, no JSON object, or fields of the wrong type;
- `token`: the token of a TCP connection is missing or wrong;
- `version`: of another protocol or of a newer memkit; only `drain`, `ping` and `status` may be;
- `elsewhere`: who asks does it better alone, having other settings or more patience;
- `failed`: the operation failed with a `MemkitError`, whose line is the message;
- `internal`: it failed otherwise; the traceback is in the log;
- `late`: the request's deadline passed; the operation was cancelled;
- `large`: the result does not fit into a reply.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import struct
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from memkit.errors import MemkitError
from memkit.ipc import frames
from memkit.ipc.requests import NotHereError, Refusal, Request, parse_request

HEADER_SECONDS = 5.0
"""A connection delivers its whole request in this time, or is closed."""

REPLY_SECONDS = 5.0
"""A connection takes its whole reply in this time, or is closed."""

GRACE_SECONDS = 10.0
"""After `stop` the requests in hand have this long to finish; then they are cancelled."""

MAX_CONNECTIONS = 256
"""Further connections wait in the system's backlog."""

ACCEPT_PAUSE_SECONDS = 0.2
"""How long no connection is accepted after the system had no descriptor or memory for one."""

READ_BYTES = 65536
MAX_MESSAGE_CHARACTERS = 1000

_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_PEER_CREDENTIALS = struct.Struct("3i")  # struct ucred of unix(7): pid, uid, gid

logger = logging.getLogger(__name__)


class Listener:
    """Serves the connections of one listening socket, which it closes at the end.

    `connections` are open now, `requests` were handed to `handle` since the start. All methods are
    for the thread of the event loop.
    """

    def __init__(
        self,
        sock: socket.socket,
        token: str | None,
        handle: Callable[[Request], Awaitable[dict[str, Any]]],
        *,
        version: str,
    ) -> None:
        self._socket = sock
        self._token = token
        self._handle = handle
        self._version = version
        self._stopping = asyncio.Event()
        self._places = asyncio.Semaphore(MAX_CONNECTIONS)
        self._connections: set[asyncio.Task[None]] = set()
        self._in_hand: set[asyncio.Task[None]] = set()
        self._abandoned: set[asyncio.Task[bytes]] = set()
        self.requests = 0

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    async def run(self) -> None:
        """Serve until `stop`, and until the requests in hand are answered.

        Raises `OSError` if the socket can accept no more.
        """
        self._socket.setblocking(False)
        accepting = asyncio.create_task(self._accept())
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({accepting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            accepting.cancel()
            stopping.cancel()
            ends = await asyncio.gather(accepting, stopping, return_exceptions=True)
            self._socket.close()
            await self._finish()
        if isinstance(ends[0], Exception):  # `CancelledError` is none
            raise ends[0]

    def stop(self) -> None:
        """Accept no more connections; `run` returns when the requests in hand are answered."""
        self._stopping.set()

    async def _finish(self) -> None:
        """Close what has sent no request yet; wait for the others, but not for ever."""
        for task in self._connections - self._in_hand:
            task.cancel()
        if self._in_hand:
            _, overdue = await asyncio.wait(self._in_hand, timeout=GRACE_SECONDS)
            for task in overdue:
                logger.warning("a request was not finished when the service ended")
                task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._places.acquire()
            connection = None
            try:
                connection, _ = await loop.sock_accept(self._socket)
            except ConnectionAbortedError:  # it left while it waited
                pass
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                logger.warning("no connection can be accepted for a moment: %s", error)
                await asyncio.sleep(ACCEPT_PAUSE_SECONDS)
            if connection is None:
                self._places.release()
                continue
            task = asyncio.create_task(self._serve(connection))
            self._connections.add(task)
            task.add_done_callback(partial(self._ended, connection))

    def _ended(self, connection: socket.socket, task: asyncio.Task[None]) -> None:
        connection.close()  # here, because a task cancelled before its first step runs no `finally`
        self._connections.discard(task)
        self._in_hand.discard(task)
        self._places.release()
        if not task.cancelled() and (error := task.exception()) is not None:
            if isinstance(error, OSError):
                logger.debug("a connection was lost: %s", error)
            else:
                logger.error("a connection failed", exc_info=error)

    async def _serve(self, connection: socket.socket) -> None:
        """Read one request and answer it; raises `OSError` if the connection is lost."""
        connection.setblocking(False)
        if not is_own_peer(connection):
            logger.warning("a connection of another user was closed")
            return
        try:
            request = await asyncio.wait_for(self._read_request(connection), HEADER_SECONDS)
        except asyncio.TimeoutError:
            logger.debug("a connection did not deliver its request in time")
            return
        except Refusal as refusal:
            reply = error_frame(refusal.identity, refusal.kind, str(refusal), refusal.version)
        else:
            if request is None:
                return
            task = asyncio.current_task()
            assert task is not None
            self._in_hand.add(task)
            reply = await self._answer(request)
        loop = asyncio.get_running_loop()
        try:
            await asyncio.wait_for(loop.sock_sendall(connection, reply), REPLY_SECONDS)
        except asyncio.TimeoutError:
            logger.debug("a connection did not take its reply in time")

    async def _read_request(self, connection: socket.socket) -> Request | None:
        """The request of `connection`, None if it closes without one; raises `Refusal`."""
        header = await _read(connection, frames.HEADER_BYTES)
        if not header:
            return None
        try:
            if len(header) < frames.HEADER_BYTES:
                raise frames.FrameError("the message ends within its length")
            length = frames.body_length(header, frames.MAX_REQUEST_BYTES)
            body = await _read(connection, length)
            if len(body) < length:
                raise frames.FrameError("the message ends before its length")
            message = frames.decode(body)
        except frames.FrameError as error:
            raise Refusal("", "malformed", str(error)) from error
        return parse_request(message, token=self._token, version=self._version)

    async def _answer(self, request: Request) -> bytes:
        """The frame of the reply to `request`, whatever becomes of it."""
        self.requests += 1
        seconds = request.deadline - asyncio.get_running_loop().time()
        task = asyncio.create_task(self._operate(request))
        try:
            await asyncio.wait({task}, timeout=max(0.0, seconds))
        finally:
            if not task.done():  # not waited for: what does not heed the cancelling delays nobody
                task.cancel()
                self._abandoned.add(task)
                task.add_done_callback(self._forget)
        if not task.done():
            return error_frame(request.id, "late", "the deadline of the request passed")
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is None:
            return task.result()
        if isinstance(error, MemkitError):
            kind = "elsewhere" if isinstance(error, NotHereError) else "failed"
            return error_frame(request.id, kind, str(error))
        if isinstance(error, frames.FrameTooLargeError):
            return error_frame(request.id, "large", str(error))
        logger.error("the operation %r failed", request.operation, exc_info=error)
        return error_frame(
            request.id, "internal", f"the service failed ({type(error).__name__}), see its log"
        )

    async def _operate(self, request: Request) -> bytes:
        """The frame of the result of `request`; raises whatever goes wrong."""
        result = await self._handle(request)
        if not isinstance(result, dict):
            raise TypeError(f"the result is of type {type(result).__name__}, not a dict")
        return frames.encode({"id": request.id, "result": result})

    def _forget(self, task: asyncio.Task[bytes]) -> None:
        self._abandoned.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("an operation failed after its deadline", exc_info=error)


def is_own_peer(connection: socket.socket) -> bool:
    """Whether the other end belongs to our user.

    True where the system cannot say; then the token or the mode of the directory decides.
    """
    if sys.platform == "win32":
        return True
    if connection.family != socket.AF_UNIX or not hasattr(socket, "SO_PEERCRED"):
        return True
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER_CREDENTIALS.size)
    return bool(_PEER_CREDENTIALS.unpack(data)[1] == os.getuid())


def error_frame(identity: str, kind: str, message: str, version: str = "") -> bytes:
    """The frame of a reply that says in one line what went wrong, with the service's `version` if given."""
    error = {"kind": kind, "message": " ".join(message.split())[:MAX_MESSAGE_CHARACTERS]}
    if version:
        error["version"] = version
    return frames.encode({"id": identity, "error": error})


async def _read(connection: socket.socket, count: int) -> bytes:
    """The next `count` bytes, fewer if the other side closes before."""
    loop = asyncio.get_running_loop()
    data = bytearray()
    while len(data) < count:
        part = await loop.sock_recv(connection, min(READ_BYTES, count - len(data)))
        if not part:
            break
        data += part
    return bytes(data)
