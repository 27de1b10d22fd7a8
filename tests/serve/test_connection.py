"""Clients that are slow, or many, or that say one thing in two ways."""

from __future__ import annotations

import resource
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import uvicorn

from memkit.serve import asking, connection, guard
from memkit.serve.app import make_app
from memkit.serve.keys import Keys
from memkit.serve.running import configured, listening
from memkit.serve.server import LOOPBACK
from tests.memory import Memory
from tests.serve.conftest import front_door
from tests.service.running import wait_until

LIMIT = 0.3
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"

Connect = Callable[[], socket.socket]


@pytest.fixture
def connect(memory: Memory, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connect]:
    """Connects to a server with short limits."""
    for module, name in (
        (connection, "HEAD_SECONDS"), (connection, "WRITE_SECONDS"), (guard, "BODY_SECONDS")
    ):  # fmt: skip
        monkeypatch.setattr(module, name, LIMIT)
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


@contextmanager
def alive(connect: Connect) -> Iterator[None]:
    """Check that others are still answered."""
    yield
    assert b" 200 " in ask(connect(), HEALTH)


def ends(client: socket.socket) -> bool:
    """Wait until the server has ended a connection."""
    try:
        while client.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return True


@pytest.mark.parametrize("sent", [b"", b"GET /health HTTP/1.1\r\n", b"GET /health HTTP/1.1\r\nHost: loc"])
def test_a_head_that_does_not_end(connect: Connect, sent: bytes) -> None:
    with alive(connect):
        client = connect()
        client.sendall(sent)
        assert ends(client)


def test_a_second_head_that_does_not_end(connect: Connect) -> None:
    client = connect()
    assert b" 200 " in ask(client, HEALTH)
    client.sendall(HEALTH[:20])
    with alive(connect):
        assert ends(client)


def test_a_body_that_does_not_end(connect: Connect) -> None:
    client = connect()
    found = ask(client, b"POST /memory/store HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
    assert found.startswith(b"HTTP/1.1 408 ")
    assert b"application/problem+json" in found
    with alive(connect):
        assert ends(client)


def test_the_rest_of_a_refused_body_is_not_waited_for(connect: Connect) -> None:
    client = connect()
    found = ask(client, b"POST /memory/store HTTP/1.1\r\nHost: evil\r\nContent-Length: 9000\r\n\r\n{")
    assert found.startswith(b"HTTP/1.1 421 ")
    assert ends(client)


def test_half_a_body_is_no_note(connect: Connect, memory: Memory, keys: Keys) -> None:
    _, key = keys.create("", "write")
    head = "POST /memory/store HTTP/1.1", "Host: localhost", f"Authorization: Bearer {key}"
    body = ("Content-Type: application/json", "Content-Length: 900", "", '{"text": "a wombat"}')
    client = connect()
    client.sendall("\r\n".join([*head, *body]).encode())
    client.close()
    with alive(connect):
        assert "wombat" not in "".join(front_door(memory).day(day) for day in front_door(memory).days)


def test_a_client_that_reads_nothing(connect: Connect, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    from memkit.memory import Memory as FrontDoor

    monkeypatch.setattr(FrontDoor, "timeline", lambda *_, **__: {"much": "a" * 50_000_000})
    _, key = keys.create("", "read")
    client = connect()
    client.sendall(f"GET /timeline HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
    ended = threading.Event()
    monkeypatch.setattr(connection.Connection, "connection_lost", lambda *_: ended.set())
    assert ended.wait(60)


def test_a_head_of_any_size_is_not_kept(connect: Connect) -> None:
    for sent in (b"GET /health?" + b"a" * 100_000, b"GET /health HTTP/1.1\r\n" + b"A: b\r\n" * 20_000):
        client = connect()
        with alive(connect):
            client.sendall(sent)
            assert ends(client)


def test_too_many_connections_are_closed(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    first = connect()
    assert b" 200 " in ask(first, HEALTH)
    monkeypatch.setattr(connection, "MOST_CONNECTIONS", 1)
    assert ends(connect())
    monkeypatch.setattr(connection, "MOST_CONNECTIONS", 1000)
    assert b" 200 " in ask(connect(), HEALTH)


def test_the_limit_of_open_files_bounds_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    endless = resource.RLIM_INFINITY
    for limit, most in ((300, 44), (2256, 2000), (10, 1), (endless, 2000)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limit=limit: (limit, limit))
        assert connection.most_connections() == most
    changed: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, limit: changed.append(limit))
    for limit in ((256, 4096), (256, 1000), (256, endless), (5000, 5000)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limit=limit: limit)
        connection.allow_connections()
    assert changed == [(2256, 4096), (1000, 1000), (2256, endless)]


def test_work_for_clients_that_have_gone(connect: Connect, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their requests neither run nor count for the key."""
    from memkit.memory import Memory as FrontDoor

    gate, begun = threading.Event(), []
    monkeypatch.setattr(FrontDoor, "timeline", lambda *_, **__: [begun.append(1), gate.wait(60), {}][-1])
    waiting: list[asking.Desk] = []
    real = asking.Desk.ask
    monkeypatch.setattr(asking.Desk, "ask", lambda desk, *a, **k: [waiting.append(desk), real(desk, *a, **k)][1])
    _, key = keys.create("", "read")
    request = f"GET /timeline HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
    clients = [connect() for _ in range(asking.MOST_AT_ONCE)]
    for one in clients:
        one.sendall(request)
    wait_until(lambda: len(waiting) == len(clients) and len(begun) == asking.THREADS, "all to wait")
    assert ask(connect(), request).startswith(b"HTTP/1.1 429 ")
    for one in clients:
        one.close()
    wait_until(lambda: not waiting[0]._waiting, "the server to notice")
    last = connect()
    last.sendall(request)
    wait_until(lambda: waiting[0]._waiting, "the request to wait")
    gate.set()
    assert last.recv(65536).startswith(b"HTTP/1.1 200 ")
    assert len(begun) == asking.THREADS + 1


def test_two_lengths_are_refused(connect: Connect) -> None:
    client = connect()
    head = b"POST /page/key HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    found = ask(client, head + b"2\r\n{}\r\n0\r\n\r\n")
    assert found.startswith(b"HTTP/1.1 400 ")
    assert b"\r\nconnection: close\r\n" in found.lower()
    assert ends(client)


@pytest.mark.parametrize(
    "lines",
    [
        ["Content-Length: 2", "Content-Length: 3"],
        ["Content-Length: 2", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: identity, chunked"],
        ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
        ["Content-Length : 2"],
        ["Content-Length: +2"],
        ["Content-Length: 2,3"],
        ["Authorization: Bearer a", "Authorization: Bearer b"],
        ["Content-Type: text/plain", "Content-Type: application/json"],
        ["X: a\rY: b"],
        ["Host: localhost"],
    ],
)
def test_a_request_that_can_be_read_in_two_ways(connect: Connect, lines: list[str]) -> None:
    text = "\r\n".join(["POST /memory/store HTTP/1.1", "Host: localhost", *lines, "", "{}"])
    found = ask(connect(), f"{text}GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert found[9:12] in (b"400", b"421", b"501")
    assert b" 200 " not in found
