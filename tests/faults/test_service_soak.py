"""Many sessions, edits and searches on a service that is killed: nothing is lost, nothing is doubled."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from memkit.ipc import launch, spool
from memkit.ipc.client import RequestRefused, ServiceUnavailable, request
from memkit.paths import Home
from tests.ci import only_at_night, sized
from tests.faults.stage import QUICK, Stage, entries, session_id, text, wait_for

SESSIONS = sized(4, 4, 6)
TURNS = int(os.environ.get("MEMKIT_TEST_SOAK_TURNS") or sized(4, 4, 14))
"""A session has so many; 200 are a day's work, and take ten minutes."""

KILLS = min(12, TURNS)
IDLE_MINUTES = 0.05
REAL_HOOKS = 10
"""One turn in so many is told by real hooks; of the others the spool is written as hooks write it."""

_EDITOR = """
import os, pathlib, sys
path = pathlib.Path(sys.argv[1])
for number in sys.stdin:
    new = path.with_name(".notes.md.swp")
    new.write_text(f"# Notes\\n\\nThe newest note is number{number.strip()} of the soak.\\n")
    os.replace(new, path)
    print("saved", flush=True)
"""
"""Saves a note at each line that it reads, as editors save."""


@pytest.fixture
def stage(tmp_path: Path, model_home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    stage = Stage(tmp_path, model_home.models, MEMKIT_SERVICE_IDLE_MINUTES=str(IDLE_MINUTES), **QUICK)
    for name in [name for name in os.environ if name.startswith("MEMKIT_SERVICE")]:
        monkeypatch.delenv(name)
    for name, value in stage.variables.items():
        monkeypatch.setenv(name, value)  # what this process starts is as what hooks start
    yield stage
    for process in stage.processes_with("run"):
        os.kill(process, signal.SIGKILL)


def tell(stage: Stage, session: int, event: str, **told: str) -> None:
    """Write the spool and hand over as a hook does, without the start of an interpreter."""
    record = {
        "event": event,
        "time": time.time(),
        "project": str(stage.project),
        "cwd": str(stage.project),
        "session": session_id(session),
        "transcript": str(stage.transcript(session)),
        **told,
    }
    spool.put(stage.home, record)
    launch.hand_over(stage.home, with_service=True)


def play(stage: Stage, session: int, killed: list[int]) -> None:
    """One session from start to end. Session 0 writes each turn of its transcript after the Stop event."""
    stage.hook("session_start", {**stage.event(session, 0), "source": "startup"})
    for turn in range(TURNS):
        # The kills are spread over the whole of it.
        wait_for(lambda turn=turn: len(killed) >= KILLS * turn // TURNS - 1, "the next kill")
        question, _ = text(session, turn)

        def write(turn: int = turn) -> None:
            with stage.transcript(session).open("a") as file:
                file.write(entries(session, turn))

        if session:
            write()
        if turn % REAL_HOOKS == session:
            stage.hook("prompt_submit", {**stage.event(session, turn), "prompt": question})
            stage.hook("stop", stage.stopped(session, turn))
        else:
            prompt = stage.event(session, turn)["prompt_id"]
            tell(stage, session, "Stop", prompt_id=prompt)
        if not session:
            write()
    stage.hook("session_end", {**stage.event(session, TURNS), "reason": "other"})


def service_of(stage: Stage) -> int | None:
    """The process that is the service now."""
    try:
        said = int(Path(stage.home.service_process).read_text())
    except (FileNotFoundError, ValueError):
        return None
    # What a killed one wrote stands there until the next one has written.
    is_it = launch.service_is_running(stage.home) and said in stage.processes_with("service")
    return said if is_it else None


def kill_services(stage: Stage, done: threading.Event, killed: list[int], answered: list[int]) -> None:
    """Kill one after the other: some at their birth, some soon after, some when they have answered."""
    choice = random.Random(11)
    while not done.is_set() and len(killed) < KILLS:
        victim = service_of(stage)
        if victim is None:
            done.wait(0.05)
            continue
        done.wait(choice.choice((0.0, 0.3, 1.0)) * choice.random())
        if len(killed) % 2:
            enough = len(answered) + choice.randrange(1, 30)
            while len(answered) < enough and service_of(stage) == victim and not done.is_set():
                done.wait(0.05)
        if service_of(stage) == victim:
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)


def search(stage: Stage, query: str) -> dict[str, Any] | None:
    """What the service finds; None if there is none, and then the next one is started."""
    arguments = {"root": str(stage.project), "request": {"query": query, "minimum": 0.0}, "search": {}}
    try:
        return request(stage.home, "search", arguments, 20.0)
    except ServiceUnavailable:
        launch.start_service(stage.home)
    except RequestRefused as refused:
        assert refused.kind == "elsewhere", refused  # there is no index yet
    return None


@contextmanager
def editing(stage: Stage, done: threading.Event, saved: list[int]) -> Iterator[None]:
    """A second process saves a note again and again."""
    notes = stage.project / ".memkit" / "memory" / "notes.md"
    notes.parent.mkdir(parents=True, exist_ok=True)
    with subprocess.Popen(
        [sys.executable, "-c", _EDITOR, str(notes)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as editor:  # fmt: skip

        def edit() -> None:
            assert editor.stdin is not None
            assert editor.stdout is not None
            while not done.wait(0.2):
                saved.append(len(saved))
                print(saved[-1], file=editor.stdin, flush=True)
                assert editor.stdout.readline() == "saved\n"
            editor.stdin.close()

        with in_background(edit, done):
            yield


@contextmanager
def in_background(function: Any, done: threading.Event) -> Iterator[None]:
    """`function` in a thread, which must end well once `done` is set."""
    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(function)
        try:
            yield
        finally:
            done.set()
        future.result()


def search_on(stage: Stage, done: threading.Event, answered: list[int]) -> None:
    choice = random.Random(5)
    while not done.wait(0.02):
        query = text(choice.randrange(SESSIONS), choice.randrange(TURNS))[0]
        answer = search(stage, query)
        if answer is None:
            done.wait(0.1)  # each search may have started a process
            continue
        assert answer["query"] == query
        ids = [result["id"] for result in answer["results"]]
        assert len(set(ids)) == len(ids)
        answered.append(len(ids))


@only_at_night
def test_sessions_edits_and_searches_while_services_are_killed(stage: Stage) -> None:
    done = threading.Event()
    killed, saved, answered = list[int](), list[int](), list[int]()
    with ExitStack() as background:
        background.enter_context(in_background(lambda: kill_services(stage, done, killed, answered), done))
        background.enter_context(in_background(lambda: search_on(stage, done, answered), done))
        background.enter_context(editing(stage, done, saved))
        with ThreadPoolExecutor(SESSIONS) as clients:
            list(clients.map(lambda session: play(stage, session, killed), range(SESSIONS)))
        wait_for(lambda: len(killed) >= KILLS, "the last kill")
    assert answered
    assert max(answered) > 0

    stage.memkit("work", "--wait")
    newest = f"number{saved[-1]} "
    wait_for(
        lambda: newest in str((search(stage, "the newest note of the soak") or {}).get("results")),
        "the newest edit to be found",
    )
    wait_for(lambda: len(stage.processes_with("service")) == 1, "there to be one service")
    assert service_of(stage) not in (None, *killed)
    stage.check_nothing_waits()
    stage.check_turns(SESSIONS, TURNS)
    notes = [chunk["content"] for chunk in stage.chunks() if chunk["source"].endswith("notes.md")]
    assert len(notes) == 1
    assert newest in notes[0]
    turn = TURNS // 2
    found = stage.memkit("search", f"Question s3t{turn}", "-k", "1")["results"][0]
    assert text(3, turn)[1] in found["content"]
    # All sessions have said goodbye, and nobody asks any more.
    wait_for(lambda: not list(stage.processes()), "the service to leave")
    assert not Path(stage.home.service_socket).exists()
