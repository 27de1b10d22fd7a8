"""A service that cannot listen: its work is still done, and the doctor says why."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memkit.doctor import open_subject
from memkit.doctor.processes import check_listening
from memkit.ipc import launch, spool
from tests.builders import spool_turn
from tests.memory import Memory
from tests.service.running import RunningService

SCRIPT = """
import errno, sys
from memkit import cli
from memkit.ipc import address

def refuse(home):
    raise OSError(errno.EOPNOTSUPP, "Operation not supported", home.service_socket)

if {fails}:
    address.listen = refuse
sys.argv = ["memkit", "service", "run"]
cli.main()
"""


@pytest.fixture
def service(memory: Memory) -> Iterator[RunningService]:
    yield RunningService(memory)


def run_service(service: RunningService, fails: bool) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(fails=fails)],
        env={**service.environment, "MEMKIT_SERVICE_IDLE_MINUTES": "0"},
        cwd=service.memory.project.root,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stderr


def test_waiting_events_are_captured(service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    home, root = service.memory.home, service.memory.project.root
    turn = {"session": "5e55aaaa", "prompt_id": "p1", "project": root, "cwd": root, "time": 1e9}
    spool_turn(home, root, "The lion eats a zebra.")
    said = run_service(service, fails=True)
    assert "Operation not supported" in said and "working without a service" in said
    assert "Traceback" not in said
    assert not launch.waiting_names(home)
    assert any("The lion" in path.read_text() for path in Path(root, ".memkit/memory").glob("*.md"))
    # The doctor names the cause, and hooks start workers instead for a while.
    (finding,) = check_listening(open_subject(home, service.memory.project))
    assert "Operation not supported" in finding.what
    assert home.service_socket in finding.what
    started = []
    monkeypatch.setattr(launch, "start", lambda home, *arguments: started.append(arguments))
    monkeypatch.setenv("MEMKIT_PYTHON", "/usr/bin/true")
    spool.put(home, {**turn, "event": "SessionEnd"})
    launch.hand_over(home, with_service=True)
    launch.start_service(home)
    assert started == [("work",)]
    # When it can listen again, all of that ends.
    run_service(service, fails=False)
    assert not os.path.exists(home.service_problem)
    assert not list(check_listening(open_subject(home, service.memory.project)))
