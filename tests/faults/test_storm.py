"""Many sessions at once, and workers that are killed: nothing is lost, nothing is doubled."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memkit.paths import Home
from tests.ci import only_in_ci, sized
from tests.faults.stage import QUICK, Stage, entries, wait_for

SESSIONS = sized(4, 4, 8)
TURNS = sized(5, 5, 25)
KILLS = sized(3, 3, 10)


@pytest.fixture
def stage(tmp_path: Path, model_home: Home) -> Stage:
    return Stage(tmp_path, model_home.models, MEMKIT_SERVICE_ENABLED="false", **QUICK)


def play(stage: Stage, session: int) -> None:
    """One session: Claude Code writes the transcript and fires Stop after each turn.

    Session 0 writes each turn late: its Stop event fires first, and the next turn's event catches up.
    """
    for turn in range(TURNS):
        if session == 0:
            stage.hook("stop", stage.stopped(session, turn))
        with stage.transcript(session).open("a") as file:
            file.write(entries(session, turn))
        if session:
            stage.hook("stop", stage.stopped(session, turn))
    stage.hook("session_end", {**stage.event(session, TURNS - 1), "reason": "other"})


def kill_workers(stage: Stage, done: threading.Event, killed: list[int]) -> None:
    choice = random.Random(7)
    while not done.is_set() and len(killed) < KILLS:
        alive = stage.processes_with("work")
        if alive:
            # Somewhere in its life, not always at its birth.
            done.wait(choice.uniform(0.0, 1.5))
            victim = choice.choice(alive)
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                continue
            killed.append(victim)
        else:
            done.wait(0.01)


@only_in_ci
def test_many_stops_and_killed_workers(stage: Stage) -> None:
    done, killed = threading.Event(), list[int]()
    killer = threading.Thread(target=kill_workers, args=(stage, done, killed))
    killer.start()
    try:
        with ThreadPoolExecutor(SESSIONS) as clients:
            list(clients.map(lambda session: play(stage, session), range(SESSIONS)))
        # The storm may be over before the last kill: go on starting what a hook would start. A turn
        # that was already told changes nothing, but it is work.
        while len(killed) < KILLS:
            stage.hook("stop", stage.stopped(1, TURNS - 1))
            time.sleep(0.05)
    finally:
        done.set()
        killer.join()
    assert len(killed) == KILLS

    stage.memkit("work", "--wait")
    wait_for(lambda: not list(stage.processes()), "the last worker to leave")
    stage.check_nothing_waits()
    stage.check_turns(SESSIONS, TURNS)
    found = stage.memkit("search", "Question s3t4", "-k", "1")["results"][0]
    assert "Answer s3t4 is 12." in found["content"]
    assert not list(stage.processes())
