"""Many sessions at once, and workers that are killed: nothing is lost, nothing is doubled."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from memkit.paths import Home

REPOSITORY = Path(__file__).resolve().parents[2]
SESSIONS = 8
TURNS = 25
KILLS = 10
DEADLINE_SECONDS = 240.0


def processes_of(home: Path) -> Iterator[int]:
    """The live processes of this memory home, but for this one."""
    mark = f"MEMKIT_HOME={home}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                variables = (entry / "environ").read_bytes().split(b"\0")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if mark in variables and state != "Z":
                yield int(entry.name)


def workers_of(home: Path) -> list[int]:
    found = []
    for pid in processes_of(home):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"work" in words:
            found.append(pid)
    return found


def wait_for(condition: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


@pytest.fixture
def stage(tmp_path: Path, model_home: Home) -> Path:
    root = tmp_path.resolve()
    (root / "project").mkdir()
    (root / "home").mkdir()
    (root / "home" / "models").symlink_to(model_home.models)
    return root


def environment(stage: Path) -> dict[str, str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("CLAUDE", "MEMKIT"))}
    return {**inherited, "MEMKIT_HOME": str(stage / "home"), "MEMKIT_PYTHON": sys.executable,
            "MEMKIT_SERVICE_ENABLED": "false"}


def session_id(session: int) -> str:
    return f"{session:08x}-1111-4222-8333-444455556666"


def prompt_id(session: int, turn: int) -> str:
    return f"{session:08x}-{turn:04x}-4aaa-8bbb-ccccddddeeee"


def text(session: int, turn: int) -> tuple[str, str]:
    return (
        f"Question s{session}t{turn} of this storm?",
        f"Answer s{session}t{turn} is {session * turn}.",
    )


def entries(session: int, turn: int) -> str:
    """A turn as the client writes it."""
    question, answer = text(session, turn)
    common = {
        "sessionId": session_id(session),
        "timestamp": f"2026-03-{1 + session % 2:02d}T{8 + turn // 60:02d}:{turn % 60:02d}:00.000Z",
        "isSidechain": False,
    }
    asked = {
        **common,
        "type": "user",
        "uuid": f"{session:08x}-{turn:04x}-4000-8000-000000000001",
        "promptId": prompt_id(session, turn),
        "message": {"role": "user", "content": question},
    }
    answered = {
        **common,
        "type": "assistant",
        "uuid": f"{session:08x}-{turn:04x}-4000-8000-000000000002",
        "message": {"role": "assistant", "content": [{"type": "text", "text": answer}]},
    }
    return json.dumps(asked) + "\n" + json.dumps(answered) + "\n"


def play(stage: Path, session: int) -> None:
    """One client: it writes its transcript and fires Stop after each turn; some transcripts stay behind."""
    transcript = stage / f"{session_id(session)}.jsonl"
    for turn in range(TURNS):
        question, answer = text(session, turn)
        lines = entries(session, turn)
        if session == 0:
            pass  # this client's transcript never appears: the events alone must do
        else:
            with transcript.open("a") as file:
                file.write(lines)
        common = {
            "session_id": session_id(session),
            "transcript_path": str(transcript),
            "cwd": str(stage / "project"),
            "prompt_id": prompt_id(session, turn),
        }
        if session == 0:
            hook(stage, "prompt_submit", {**common, "prompt": question})
        hook(stage, "stop", {**common, "last_assistant_message": answer})


def hook(stage: Path, script: str, event: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "hooks" / f"{script}.py")],
        input=json.dumps(event).encode(),
        env=environment(stage),
        capture_output=True,
        check=True,
    )
    assert isinstance(json.loads(done.stdout), dict)


def kill_workers(stage: Path, done: threading.Event, killed: list[int]) -> None:
    choice = random.Random(7)
    while not done.is_set() and len(killed) < KILLS:
        alive = workers_of(stage / "home")
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


def memkit(stage: Path, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "bin" / "memkit"), *arguments, "--json"],
        env=environment(stage),
        cwd=stage / "project",
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    value = json.loads(done.stdout)
    assert isinstance(value, dict)
    return value


def test_two_hundred_stops_and_ten_killed_workers(stage: Path) -> None:
    done, killed = threading.Event(), list[int]()
    killer = threading.Thread(target=kill_workers, args=(stage, done, killed))
    killer.start()
    try:
        with ThreadPoolExecutor(SESSIONS) as clients:
            list(clients.map(lambda session: play(stage, session), range(SESSIONS)))
        # The storm may be over before the tenth kill: go on starting what a hook would start.
        while len(killed) < KILLS:
            hook(stage, "stop", _repeated(stage))
            time.sleep(0.05)
    finally:
        done.set()
        killer.join()
    assert len(killed) == KILLS

    memkit(stage, "work", "--wait")
    wait_for(lambda: not list(processes_of(stage / "home")), "the last worker to leave")

    status = memkit(stage, "status")
    assert (status["waiting"], status["failed"], status["hook_errors"]) == (0, [], 0)
    assert not list((stage / "home" / "spool" / "claimed").iterdir())
    assert not list((stage / "home" / "run" / "unindexed").iterdir())
    assert status["index"]["in_step"]
    assert status["index"]["missing"] == 0

    journal = "".join(
        path.read_text() for path in (stage / "project" / ".memkit" / "memory").glob("*.md")
    )
    anchors = Counter(re.findall(r"<!-- turn:(\w{8}) -->", journal))
    assert len(anchors) == SESSIONS * TURNS
    assert set(anchors.values()) == {1}
    for session in range(SESSIONS):
        for turn in range(TURNS):
            question, answer = text(session, turn)
            assert journal.count(f"**Asked** {question}\n") == 1
            assert journal.count(f"**Answered** {answer}\n") == 1

    indexed = Counter(
        turn for chunk in _chunks(stage) if chunk["kind"] == "turn" for turn in chunk["turns"]
    )
    assert indexed == anchors
    found = memkit(stage, "search", "Question s3t17", "-k", "1")["results"][0]
    assert "Answer s3t17 is 51." in found["content"]
    assert not list(processes_of(stage / "home"))


def _repeated(stage: Path) -> dict[str, str]:
    """The Stop of a turn that was already told: it changes nothing, but it is work."""
    _, answer = text(1, TURNS - 1)
    return {
        "session_id": session_id(1),
        "transcript_path": str(stage / f"{session_id(1)}.jsonl"),
        "cwd": str(stage / "project"),
        "prompt_id": prompt_id(1, TURNS - 1),
        "last_assistant_message": answer,
    }


def _chunks(stage: Path) -> list[dict[str, Any]]:
    (pointer,) = (stage / "home" / "index" / "snapshots").glob("*/current")
    lines = (pointer.parent / pointer.read_text() / "chunks.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]
