"""How often a key may ask, and how many may ask at once."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import pytest
import uvicorn

from memkit.interface import InterfaceMemory as FrontDoor
from memkit.locks import capture_lock
from memkit.serve import limits
from memkit.serve.answers import RETRY_SECONDS
from memkit.serve.app import make_app
from memkit.serve.keys import Keys
from memkit.serve.limits import THREADS, Threads
from memkit.serve.running import configured, listening
from memkit.serve.server import LOOPBACK
from tests.memory import Memory
from tests.serve.conftest import Client, front_door
from tests.service.running import wait_until


def test_too_many_requests_of_a_key(connect: Client, keys: Keys) -> None:
    client = connect(rate=3)
    asked = [client.get("/timeline") for _ in range(4)]
    assert [one.status_code for one in asked] == [200, 200, 200, 429]
    assert [one.headers["ratelimit-remaining"] for one in asked] == ["2", "1", "0", "0"]
    assert {one.headers["ratelimit-limit"] for one in asked} == {"3"}
    assert all(1 <= int(one.headers["ratelimit-reset"]) <= 60 for one in asked)
    refused = client.get("/timeline")
    assert refused.headers["content-type"] == "application/problem+json"
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    _, other = keys.create("", "read")
    assert client.get("/timeline", headers={"Authorization": f"Bearer {other}"}).status_code == 200
    assert client.get("/health").status_code == 200


def test_the_window_slides(connect: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    start = time.time()
    passed = 0.0
    monkeypatch.setattr(time, "time", lambda: start + passed)
    client = connect(rate=2)
    assert client.get("/timeline").status_code == 200
    passed = 50.0
    assert client.get("/timeline").status_code == 200
    passed = 59.0
    assert client.get("/timeline").status_code == 429
    passed = 61.0  # the first one has left the window, the second has not
    assert client.get("/timeline").status_code == 200
    assert client.get("/timeline").status_code == 429
    passed = 111.0
    assert client.get("/timeline").status_code == 200


def test_a_bound_of_threads(memory: Memory) -> None:
    release = threading.Event()
    running: list[int] = []
    most = 0

    def question(_: FrontDoor) -> None:
        nonlocal most
        running.append(1)
        most = max(most, len(running))
        release.wait(60)
        running.pop()

    async def ask() -> None:
        threads = Threads(lambda: front_door(memory))
        async with anyio.create_task_group() as group:
            for _ in range(THREADS + 2):
                group.start_soon(threads.ask, question)
            while len(running) < THREADS:
                await anyio.sleep(0.001)
            release.set()

    anyio.run(ask)
    assert most == THREADS


def test_one_key_does_not_keep_others_waiting(
    connect: Client, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_AT_ONCE", 3)
    client = connect("read")
    _, other = keys.create("", "read")
    release, running = threading.Event(), threading.Semaphore(0)
    real = FrontDoor.timeline

    def slowly(*arguments: Any, **options: Any) -> Any:
        running.release()
        release.wait(60)
        return real(*arguments, **options)

    monkeypatch.setattr(FrontDoor, "timeline", slowly)
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(client.get, "/timeline") for _ in range(3)]
        for _ in range(3):
            assert running.acquire(timeout=60)
        refused = client.get("/memory/2026-11-18")
        assert (refused.status_code, refused.headers["retry-after"]) == (429, str(RETRY_SECONDS))
        headers = {"Authorization": f"Bearer {other}"}
        assert client.get("/memory/2026-11-18", headers=headers).status_code == 200
        release.set()
        assert [one.result().status_code for one in asked] == [200] * 3
    assert client.get("/memory/2026-11-18").status_code == 200


def test_changes_that_wait_leave_threads_for_reading(connect: Client, memory: Memory) -> None:
    client = connect("write")
    event = {"session": "a", "role": "user", "text": "Where is it?", "time": "2026-11-20T14:02:00Z"}
    with ThreadPoolExecutor(THREADS) as pool:
        with capture_lock(memory.home, 5.0):
            asked = [pool.submit(client.post, "/events", json=event) for _ in range(THREADS)]
            assert client.get("/timeline").status_code == 200
            assert not any(one.done() for one in asked)
        assert sorted(one.result().status_code for one in asked) == [*[200] * (THREADS - 1), 201]


def test_a_busy_memory_is_said_to_be_busy(
    connect: Client, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connect()
    monkeypatch.setattr(limits, "WAIT_SECONDS", 0.05)
    with capture_lock(memory.home, 5.0), ThreadPoolExecutor(1) as pool:  # a lock of another thread
        event = {"session": "a", "role": "user", "text": "What about the dugong?"}
        refused = pool.submit(lambda: client.post("/events", json=event)).result()
    assert refused.status_code == 503
    assert int(refused.headers["retry-after"]) >= 1
    assert client.post("/events", json=event).status_code == 201


def test_the_same_note_at_once_is_one_note(connect: Client, memory: Memory) -> None:
    client = connect("write")

    def store(_: int) -> Any:
        return client.post("/memory/store", json={"text": "The numbat sleeps.", "tags": ["numbat"]})

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(store, range(16)))
    assert sorted(one.status_code for one in found) == [200] * 15 + [201]
    assert len({one.json()["id"] for one in found}) == 1


# Clients that leave before they have an answer


HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"

Raw = Callable[[], socket.socket]


@pytest.fixture
def raw(memory: Memory, keys: Keys) -> Iterator[Raw]:
    app = make_app(lambda: front_door(memory), keys, LOOPBACK, 1000)
    opened: list[socket.socket] = []
    with listening("127.0.0.1", 0) as bound:
        server = uvicorn.Server(configured(app))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()

        def make() -> socket.socket:
            opened.append(socket.create_connection(bound.getsockname()[:2], timeout=30))
            return opened[-1]

        wait_until(lambda: b" 200 " in ask_raw(make(), HEALTH), "the server to be ready")
        yield make
        for one in opened:
            one.close()
        server.should_exit = True
        thread.join(60)


def ask_raw(client: socket.socket, sent: bytes) -> bytes:
    client.sendall(sent)
    return client.recv(65536)


def test_half_a_body_is_no_note(raw: Raw, memory: Memory, keys: Keys) -> None:
    _, key = keys.create("", "write")
    head = "POST /memory/store HTTP/1.1", "Host: localhost", f"Authorization: Bearer {key}"
    body = ("Content-Type: application/json", "Content-Length: 900", "", '{"text": "a wombat"}')
    client = raw()
    client.sendall("\r\n".join([*head, *body]).encode())
    client.close()
    assert b" 200 " in ask_raw(raw(), HEALTH)
    assert "wombat" not in "".join(front_door(memory).journal.day(day).render() for day in front_door(memory).days)


def test_work_for_clients_that_have_gone(raw: Raw, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their requests neither run nor count for the key."""
    gate, begun = threading.Event(), []
    monkeypatch.setattr(FrontDoor, "timeline", lambda *_, **__: [begun.append(1), gate.wait(60), {}][-1])
    waiting: list[limits.Threads] = []
    real = limits.Threads.ask
    monkeypatch.setattr(limits.Threads, "ask", lambda own, *a, **k: [waiting.append(own), real(own, *a, **k)][1])
    _, key = keys.create("", "read")
    request = f"GET /timeline HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
    clients = [raw() for _ in range(limits.MOST_AT_ONCE)]
    for one in clients:
        one.sendall(request)
    wait_until(lambda: len(waiting) == len(clients) and len(begun) == limits.THREADS, "all to wait")
    assert ask_raw(raw(), request).startswith(b"HTTP/1.1 429 ")
    for one in clients:
        one.close()
    wait_until(lambda: not waiting[0]._waiting, "the server to notice")
    last = raw()
    last.sendall(request.replace(b"/timeline", b"/timeline?limit=9"))  # the answer to the others is kept
    wait_until(lambda: waiting[0]._waiting, "the request to wait")
    gate.set()
    assert last.recv(65536).startswith(b"HTTP/1.1 200 ")
    assert len(begun) == limits.THREADS + 1
