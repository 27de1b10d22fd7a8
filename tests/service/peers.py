"""The other ends of connections, for tests: a real listener in a thread, and hand-written peers."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import memkit
from memkit.errors import MemkitError, NotFoundError
from memkit.ipc import address, client
from memkit.paths import Home
from memkit.service.listener import Listener, Request

PATIENCE_SECONDS = 60.0
"""Longer than anything here takes; reached only if something hangs."""


async def operate(request: Request) -> dict[str, Any]:
    """What the listener of the tests does for a request."""
    if request.operation == "echo":
        return {"echo": request.arguments}
    if request.operation == "drain":
        return {}
    if request.operation == "fail":
        raise MemkitError("the index\nis gone: run `memkit index`")
    if request.operation == "break":
        raise ZeroDivisionError("secret detail")
    if request.operation == "time out":
        raise TimeoutError("secret detail")
    if request.operation == "large":
        return {"text": "x" * client.MAX_REPLY_BYTES}
    if request.operation == "list":
        return []  # type: ignore[return-value]
    if request.operation == "nan":
        return {"value": float("nan")}
    if request.operation == "wait":
        await asyncio.Event().wait()
    raise NotFoundError("there is no such operation")


class Serving:
    """A listener that runs in a thread."""

    def __init__(self, listener: Listener, loop: asyncio.AbstractEventLoop, thread: threading.Thread):
        self.listener = listener
        self.thread = thread
        self._loop = loop

    def stop(self) -> None:
        """Ask the listener to stop; return when it has heard it."""
        heard = threading.Event()

        def stop() -> None:
            self.listener.stop()
            heard.set()

        try:
            self._loop.call_soon_threadsafe(stop)
        except RuntimeError:  # the loop is closed: it has stopped already
            return
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not heard.wait(0.05) and self.thread.is_alive():  # a loop that has just stopped hears nothing
            assert time.monotonic() < deadline

    def ended(self) -> None:
        self.thread.join(PATIENCE_SECONDS)
        assert not self.thread.is_alive()


@contextmanager
def serving(
    home: Home, handle: Callable[[Request], Awaitable[dict[str, Any]]] = operate,
    version: str = memkit.__version__,
) -> Iterator[Serving]:  # fmt: skip
    """A real listener for `home`, in a thread of its own."""
    sock, token = address.listen(home)
    found: list[tuple[Listener, asyncio.AbstractEventLoop]] = []
    started = threading.Event()

    async def main() -> None:
        listener = Listener(sock, token, handle, version=version)
        found.append((listener, asyncio.get_running_loop()))
        started.set()
        await listener.run()

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    assert started.wait(PATIENCE_SECONDS)
    server = Serving(*found[0], thread)
    try:
        yield server
    finally:
        if thread.is_alive():
            server.stop()
        server.ended()
        address.remove(home)


@contextmanager
def scripted(home: Home, *scripts: Callable[[socket.socket], None]) -> Iterator[None]:
    """A service that treats its first connection by the first script, the next by the next.

    Ends when all scripts have been used; what one raises is raised here.
    """
    sock, _ = address.listen(home)
    sock.settimeout(PATIENCE_SECONDS)
    failures: list[BaseException] = []

    def main() -> None:
        try:
            for script in scripts:
                connection, _ = sock.accept()
                with connection:
                    connection.settimeout(PATIENCE_SECONDS)
                    script(connection)
        except BaseException as error:  # noqa: BLE001 - raised again below
            failures.append(error)

    thread = threading.Thread(target=main)
    thread.start()
    try:
        yield
    finally:
        thread.join(PATIENCE_SECONDS)
        sock.close()
        address.remove(home)
    assert not thread.is_alive()
    if failures:
        raise failures[0]


def read_all(connection: socket.socket) -> bytes:
    """What comes until the other side closes."""
    data = bytearray()
    try:
        while part := connection.recv(65536):
            data += part
    except ConnectionError:  # it closed without having read all we sent
        pass
    return bytes(data)


def read_frame(connection: socket.socket) -> dict[str, Any]:
    with connection.makefile("rb") as file:
        length = client.body_length(file.read(client.HEADER_BYTES), client.MAX_REPLY_BYTES)
        return client.decode_frame(file.read(length))


def connected(home: Home) -> socket.socket:
    """Connect to the service, to send anything. Try again while its backlog is full."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return address.connect(home, PATIENCE_SECONDS)[0]
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def exchange(home: Home, data: bytes) -> bytes:
    """What the service answers to `data`, after which nothing comes."""
    with connected(home) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except OSError:  # it has closed already; what it said is there to be read
            pass
        return read_all(connection)


def good_message(**changes: Any) -> dict[str, Any]:
    message = {
        "protocol": client.PROTOCOL, "version": memkit.__version__, "id": "1", "operation": "echo",
        "arguments": {"a": 1}, "deadline": PATIENCE_SECONDS,
    }  # fmt: skip
    return {**message, **changes}


def answer(home: Home, **changes: Any) -> dict[str, Any]:
    reply = exchange(home, client.encode_frame(good_message(**changes)))
    return client.decode_frame(reply[client.HEADER_BYTES :])
