"""The service under load: many clients at once while the index changes, and a long life."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psutil
import pytest

from memkit.embedding import Embedder
from memkit.index import index_lock
from memkit.ipc import client, launch
from memkit.ipc.client import ServiceUnavailable, request
from memkit.paths import Home
from tests.builders import spool_turn
from tests.ci import only_in_ci, sized
from tests.memory import CountingEmbedder, day, make_memory, real_embedder
from tests.service.running import RunningService, wait_until

__all__ = ["real_embedder"]

CLIENTS = 64
REQUESTS = sized(300, 300, 1000)
DAYS, TURNS = 20, 5
NOTES = "notes.md"
SPARE_MB = 60.0
"""What a process may hold more at the end: arenas of the allocator, and garbage not yet collected."""


def word(number: int) -> str:
    """What one turn of the memory alone is about."""
    return f"quagga{number:03d}zebra"


@pytest.fixture
def service(tmp_path: Any, model_home: Home, real_embedder: Embedder) -> Iterator[RunningService]:
    files = {
        f"2026-10-{1 + number:02d}.md": day(
            f"2026-10-{1 + number:02d}",
            *(
                (f"What is {word(number * TURNS + turn)}?", f"It is beast {turn} of day {number}.")
                for turn in range(TURNS)
            ),
            session=f"5e55{number:04d}",
        )
        for number in range(DAYS)
    }
    memory = make_memory(tmp_path, files, embedder=CountingEmbedder(real_embedder), models=model_home.models)
    running = RunningService(memory).start()
    running.found(word(0))  # on a busy machine the first index takes long
    yield running
    running.stop()


@contextmanager
def meanwhile(function: Callable[[], Any]) -> Iterator[None]:
    """`function` again and again in a thread; what it raises is raised at the end."""
    done = threading.Event()

    def run() -> None:
        while not done.is_set():
            function()

    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(run)
        try:
            yield
        finally:
            done.set()
        future.result()


def ask(service: RunningService, number: int) -> dict[str, Any]:
    """The answer to the question of one turn, which must be whole and its own."""
    query = f"What is {word(number)}?"
    answer = service.ask("search", request={"query": query, "k": 3}, search={})
    assert answer["query"] == query
    assert answer["degraded"] == ""
    results = answer["results"]
    assert word(number) in results[0]["chunk"]["content"]
    assert len({result["id"] for result in results}) == len(results)
    return answer


def use_at_rest(service: RunningService, process: psutil.Process) -> tuple[int, int, int]:
    """Return the memory in bytes, the descriptors, and the threads of `process` once its queue is empty."""
    # The watcher may still queue an update for the last edit.
    wait_until(lambda: service.status()["queue"] == 0, "the queue to empty")
    return process.memory_info().rss, process.num_fds(), process.num_threads()


def assert_no_leak(
    service: RunningService, process: psutil.Process, before: tuple[int, int, int], spare_files: int
) -> None:
    """Check that `process` uses little more than `before`, and reports no errors."""
    assert use_at_rest(service, process)[0] - before[0] < SPARE_MB * 1e6
    wait_until(lambda: process.num_fds() <= before[1] + spare_files, "files to close")
    # Chroma ends its threads for files when they are idle.
    wait_until(lambda: process.num_threads() <= before[2] + 3, "threads to end")
    assert service.status()["errors"] == []


@only_in_ci
def test_many_clients_while_the_index_changes(service: RunningService) -> None:
    process = psutil.Process(service.status()["pid"])
    edits = list[int]()

    def edit() -> None:
        edits.append(len(edits))
        text = "".join(f"\n## Note {n}\n\nNote number {n} of {edits[-1]}.\n" for n in range(20))
        service.memory.write(NOTES, text)
        service.ask("index")

    def load(requests: int) -> list[dict[str, Any]]:
        with meanwhile(edit), ThreadPoolExecutor(CLIENTS) as clients:
            return list(clients.map(lambda n: ask(service, n % (DAYS * TURNS)), range(requests)))

    load(2 * CLIENTS)
    before = use_at_rest(service, process)
    answers = load(REQUESTS)
    assert len(edits) > 2
    rows = {row.id: row.chunk for row in service.memory.snapshot.rows()}
    known = {name[:12]: chunk for name, chunk in rows.items()}
    known |= {turn: chunk for chunk in rows.values() for turn in chunk.turns}
    for answer in answers:
        for result in answer["results"]:
            if not result["chunk"]["source"].endswith(NOTES):  # those have changed since
                assert known[result["id"]].content == result["chunk"]["content"]
    # A search may still read the last snapshot.
    assert_no_leak(service, process, before, spare_files=5 + len(service.memory.snapshot.segments))


@only_in_ci
def test_a_long_life_costs_no_more_than_a_short_one(service: RunningService) -> None:
    memory, process = service.memory, psutil.Process(service.status()["pid"])

    def live(first: int, turns: int) -> None:
        for number in range(first, first + turns):
            said = f"The beast {word(number)} is new."
            name = f"p{number}"
            spool_turn(memory.home, memory.project.root, said, session="5e55ffff", prompt_id=name, time=1e9 + number)
            memory.write(NOTES, f"# Notes\n\nThe newest beast is {number}.\n")
            assert not launch.hand_over(memory.home, with_service=True)
            service.ask("work", wait=True)
            service.ask("index")
            service.ask("pointers", session="5e55eeee", prompt=f"What is {word(number)}?")
            ask(service, number)

    live(200, 10)
    before = use_at_rest(service, process)
    live(300, 20)
    assert_no_leak(service, process, before, spare_files=5)
    assert not any("torch" in one.path for one in process.memory_maps())


@only_in_ci
def test_it_answers_while_many_wait_for_an_index(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A late request does not cancel the task of others, and busy is not hung: the service is not ended."""
    home, asked = service.memory.home, {"root": service.memory.project.root}
    before = service.status()["pid"]
    ask(service, 0)
    with ThreadPoolExecutor(CLIENTS) as clients:
        with index_lock(home, 60.0):  # another process has the index: nothing can be written
            waiting = [clients.submit(service.ask, "index") for _ in range(16)]
            wait_until(lambda: service.status().get("queue"), "the requests to wait")
            ask(service, 1)
            with monkeypatch.context() as patch, pytest.raises(ServiceUnavailable, match="in time") as caught:
                patch.setattr(client, "PING_AFTER_SECONDS", 0.2)
                request(home, "index", asked, 1.0)
            assert caught.value.reason == "late"
            assert not any(future.done() for future in waiting)
        for future in waiting:
            assert future.result()["chunks"] == DAYS * TURNS
    assert service.status()["pid"] == before


@only_in_ci
def test_an_event_without_a_notification_is_captured(service: RunningService) -> None:
    """A hook that could not reach the service, because it was too busy, has spooled all the same."""
    home, root = service.memory.home, service.memory.project.root
    service.stop()
    service.environment["MEMKIT_SERVICE_IDLE_MINUTES"] = "0.2"
    service.start()
    wait_until(lambda: not service.status().get("queue"), "its first look into the spool")
    service.ask("index")  # on a busy machine, a search does not wait for a whole pass
    ask(service, 0)
    spool_turn(home, root, "Nobody mentioned the aardvark.", session="5e55dddd")
    wait_until(lambda: not launch.waiting_names(home), "it to be taken in")
