"""Clients that leave before they have an answer."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest
import uvicorn

from memkit.memory import Memory as FrontDoor
from memkit.serve import limits
from memkit.serve.app import make_app
from memkit.serve.keys import Keys
from memkit.serve.running import configured, listening
from memkit.serve.server import LOOPBACK
from tests.memory import Memory
from tests.serve.conftest import front_door
from tests.service.running import wait_until

HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"

Connect = Callable[[], socket.socket]


@pytest.fixture
def connect(memory: Memory, keys: Keys) -> Iterator[Connect]:
    """Connects to a server."""
    app = make_app(lambda: front_door(memory), keys, LOOPBACK, 1000)
    opened: list[socket.socket] = []
    with listening("127.0.0.1", 0) as bound:
        server = uvicorn.Server(configured(app))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()

        def make() -> socket.socket:
            opened.append(socket.create_connection(bound.getsockname()[:2], timeout=30))
            return opened[-1]

        wait_until(lambda: b" 200 " in ask(make(), HEALTH), "the server to be ready")
        yield make
        for one in opened:
            one.close()
        server.should_exit = True
        thread.join(60)


def ask(client: socket.socket, sent: bytes) -> bytes:
    """Send bytes, and return the start of the response."""
    client.sendall(sent)
    return client.recv(65536)


def test_half_a_body_is_no_note(connect: Connect, memory: Memory, keys: Keys) -> None:
    _, key = keys.create("", "write")
    head = "POST /memory/store HTTP/1.1", "Host: localhost", f"Authorization: Bearer {key}"
    body = ("Content-Type: application/json", "Content-Length: 900", "", '{"text": "a wombat"}')
    client = connect()
    client.sendall("\r\n".join([*head, *body]).encode())
    client.close()
    assert b" 200 " in ask(connect(), HEALTH)
    assert "wombat" not in "".join(front_door(memory).day(day) for day in front_door(memory).days)


def test_work_for_clients_that_have_gone(connect: Connect, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their requests neither run nor count for the key."""
    gate, begun = threading.Event(), []
    monkeypatch.setattr(FrontDoor, "timeline", lambda *_, **__: [begun.append(1), gate.wait(60), {}][-1])
    waiting: list[limits.Threads] = []
    real = limits.Threads.ask
    monkeypatch.setattr(limits.Threads, "ask", lambda own, *a, **k: [waiting.append(own), real(own, *a, **k)][1])
    _, key = keys.create("", "read")
    request = f"GET /timeline HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
    clients = [connect() for _ in range(limits.MOST_AT_ONCE)]
    for one in clients:
        one.sendall(request)
    wait_until(lambda: len(waiting) == len(clients) and len(begun) == limits.THREADS, "all to wait")
    assert ask(connect(), request).startswith(b"HTTP/1.1 429 ")
    for one in clients:
        one.close()
    wait_until(lambda: not waiting[0]._waiting, "the server to notice")
    last = connect()
    last.sendall(request)
    wait_until(lambda: waiting[0]._waiting, "the request to wait")
    gate.set()
    assert last.recv(65536).startswith(b"HTTP/1.1 200 ")
    assert len(begun) == limits.THREADS + 1
