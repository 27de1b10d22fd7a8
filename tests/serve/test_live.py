"""Server-sent events: what changes, for whom, how many, and until when."""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import psutil
import pytest

from memkit.serve.answers import BusyError
from memkit.serve.keys import Keys
from memkit.serve.live import MOST_LISTENERS, Live
from tests.memory import DAYS, Memory, day, make_memory
from tests.serve.running import RunningServer
from tests.service.running import wait_until


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    memory = make_memory(tmp_path, DAYS, watch={"debounce_ms": 50})
    Keys(memory.home).create("", "read")
    running = RunningServer(memory, "--rate", "1000000", MEMKIT_WATCH_DEBOUNCE_MS="50")
    yield running
    running.stop(signal.SIGKILL)


class Listener:
    """A client of `/live`, in a thread of its own."""

    def __init__(self, client: httpx.Client) -> None:
        self.lines: list[str] = []
        self.status = 0
        self.has_ended = threading.Event()
        self._client = client
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        wait_until(lambda: self.lines or self.has_ended.is_set(), "the listener to begin")

    def _listen(self) -> None:
        try:
            with self._client.stream("GET", "/live") as response:
                self.status = response.status_code
                self._socket: socket.socket = response.extensions["network_stream"].get_extra_info("socket")
                for line in response.iter_lines():
                    self.lines.append(line)
        except httpx.HTTPError:
            pass
        finally:
            self.has_ended.set()

    def leave(self) -> None:
        """End the connection. Closing the client does not, while the thread waits for more."""
        self._socket.shutdown(socket.SHUT_RDWR)
        assert self.has_ended.wait(60)

    @property
    def events(self) -> list[dict[str, list[str]]]:
        return [json.loads(line.removeprefix("data: ")) for line in self.lines if line.startswith("data: ")]

    def wait(self, entry: str) -> dict[str, list[str]]:
        """The event with a new entry."""
        found: dict[str, list[str]] = wait_until(
            lambda: next((one for one in self.events if entry in one["entries"]), None), f"the event of {entry}"
        )
        return found


def test_a_new_turn_is_told_until_the_server_ends(server: RunningServer) -> None:
    with server.client("write") as client:
        listener = Listener(client)
        assert (listener.status, listener.lines[0]) == (200, ": listening")
        server.memory.write("2026-12-01.md", day("2026-12-01", ("Is it live?", "Yes.")).replace("turn:", "turn:a1"))
        turn = server.memory.path("2026-12-01.md").read_text().partition("turn:")[2].split()[0]
        assert listener.wait(turn) == {"days": ["2026-12-01"], "entries": [turn]}
        with server.client("write") as other:
            note = other.post("/memory/store", json={"text": "The numbat is new."}).json()
        assert listener.wait(note["id"])["days"] == [note["day"]]
        server.memory.path("2026-12-01.md").unlink()
        wait_until(lambda: {"days": ["2026-12-01"], "entries": []} in listener.events, "the event of the day that is gone")
        assert "event: changed" in listener.lines
    with server.client("read") as client:
        listener = Listener(client)
        assert server.stop(signal.SIGTERM) == 0
        assert listener.has_ended.wait(30)
    assert "Traceback" not in server.output
    assert "GET /live 200" in server.output


def test_many_pages_listen_but_not_too_many(server: RunningServer) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(server.client("read")) for _ in range(MOST_LISTENERS)]
        listeners = [Listener(one) for one in clients]
        assert {one.status for one in listeners} == {200}
        with server.client("read") as late:
            refused = late.get("/live")
            assert refused.status_code == 503
            assert refused.headers["content-type"] == "application/problem+json"
        server.memory.write("2026-12-01.md", day("2026-12-01", ("Is it live?", "Yes.")))
        for one in listeners:
            wait_until(lambda one=one: one.events, "the event")
        for one in listeners:
            one.leave()
    with server.client("read") as again:
        wait_until(lambda: Listener(again).status == 200, "a place")


def test_without_listeners_nothing_watches_and_a_revoked_key_hears_no_more(server: RunningServer) -> None:
    process = psutil.Process(server.process.pid)
    before = process.num_threads()
    with server.client("read") as client:
        listener = Listener(client)
        assert process.num_threads() > before
        listener.leave()
    wait_until(lambda: _inotify(process) == 0, "the watching to end")
    made, secret = Keys(server.memory.home).create("", "read")
    headers = {"Authorization": f"Bearer {secret}"}
    with httpx.Client(base_url=server.address, headers=headers, timeout=60) as client:
        listener = Listener(client)
        Keys(server.memory.home).revoke(made.id)
        server.memory.write("2026-12-01.md", day("2026-12-01", ("Is it live?", "Yes.")))
        assert listener.has_ended.wait(60)
        assert listener.events == []


def _inotify(process: psutil.Process) -> int:
    return sum("inotify" in str(path.readlink()) for path in Path(f"/proc/{process.pid}/fd").iterdir())


def test_memory_tells_changes(tmp_path: Path) -> None:
    from tests.serve.conftest import front_door

    memory: Memory = make_memory(tmp_path, DAYS)
    front = front_door(memory)
    seen, days, entries = front.changes()
    assert (days, entries) == ([], [])
    text = memory.path("2026-11-18.md").read_text()
    memory.write("2026-11-18.md", text + "\n### 09:30 And why? <!-- turn:0a0a0a0a -->\n**Answered** So.\n")
    memory.write("2026-10-01.md", "# 2026-10-01\n\n## 10:00 Note: A <!-- note:0b0b0b0b -->\n\nText\n")
    memory.path("2026-11-20.md").unlink()
    again, days, entries = front.changes(seen)
    assert days == ["2026-10-01", "2026-11-18", "2026-11-20"]
    assert entries == ["0b0b0b0b", "0a0a0a0a"]
    assert front.changes(again)[1:] == ([], [])


def test_a_client_that_leaves_before_its_first_event_keeps_no_place() -> None:
    async def join() -> None:
        live = Live(lambda: pytest.fail("nobody listens"))
        for _ in range(2):
            for _ in range(MOST_LISTENERS):
                live.events(live.join(), lambda: True)  # the response is never sent
            gc.collect()  # once per round: it takes a second in a process that has run many tests
        kept = [live.join() for _ in range(MOST_LISTENERS)]
        with pytest.raises(BusyError):
            live.join()
        assert kept

    asyncio.run(join())
