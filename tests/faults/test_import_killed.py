"""An import that is killed at random points and started again leaves what one undisturbed run leaves.

Meanwhile, live turns are captured.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memkit.archive.archive import Archive
from memkit.index.manifest import MANIFEST
from memkit.index.snapshot import Snapshot
from memkit.locks import capture_lock
from memkit.paths import Home
from tests.ci import AT_NIGHT, only_in_ci, sized
from tests.faults.stage import QUICK, REPOSITORY, Stage, entries, session_id, text, wait_for

SESSIONS = sized(4, 4, 8)
TURNS = 3
KILLS = sized(1, 1, 8)


@pytest.fixture
def stage(tmp_path: Path, model_home: Home) -> Stage:
    """Two projects, one of them gone, whose sessions the client has in `claude/projects`."""
    claude = tmp_path.resolve() / "claude"
    stage = Stage(
        tmp_path, model_home.models, CLAUDE_CONFIG_DIR=str(claude), MEMKIT_SERVICE_ENABLED="false",
        MEMKIT_EMBEDDING_DOWNLOAD="false", **QUICK,
    )  # fmt: skip
    for session in range(SESSIONS):
        cwd = str(stage.project if session % 3 else stage.root / "gone")
        folder = claude / "projects" / cwd.replace("/", "-")
        folder.mkdir(parents=True, exist_ok=True)
        lines = "".join(entries(session, turn) for turn in range(TURNS)).splitlines()
        told = [json.dumps({**json.loads(line), "cwd": cwd}) + "\n" for line in lines]
        (folder / f"{session_id(session)}.jsonl").write_text("".join(told))
    typed = {"display": "Swept?", "project": str(stage.project), "sessionId": session_id(99)}
    history = json.dumps({**typed, "timestamp": 1_770_000_000_000})
    (claude / "history.jsonl").write_text(history + "\n")
    return stage


def start(stage: Stage) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, str(REPOSITORY / "bin" / "memkit"), "import", "--all", "--json"],
        env=stage.environment, cwd=stage.project, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def wipe(stage: Stage) -> None:
    shutil.rmtree(stage.project / ".memkit", ignore_errors=True)
    for path in Path(stage.home.root).iterdir():
        if path.name != Path(stage.home.models).name:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def remembered(stage: Stage) -> dict[str, object]:
    """Every day file to the byte, every archived turn, every chunk of every index."""
    roots = [stage.project, *Path(stage.home.projects).glob("*/")]
    archive = Archive(stage.home)
    places = Path(stage.home.index).glob(f"snapshots/*/{MANIFEST}")
    snapshots = [Snapshot(path.parent) for path in places]
    assert snapshots
    return {
        "days": {
            # Not what a killed writer left unfinished, which the doctor removes.
            str(day): day.read_bytes()
            for root in roots
            for day in root.glob(".memkit/memory/*.md")
        },
        "archive": {name: archive.turns(name) for name in sorted(archive.sessions())},
        "chunks": sorted((chunk for one in snapshots for chunk in one.chunks()), key=repr),
        "vectors": sorted((one.owners.tolist(), one.dimensions) for one in snapshots),
    }


@only_in_ci
def test_killed_and_resumed_is_undisturbed(stage: Stage) -> None:
    began = time.monotonic()
    output, _ = start(stage).communicate()
    seconds = time.monotonic() - began
    assert json.loads(output)["turns"] == SESSIONS * TURNS + 1
    undisturbed = remembered(stage)
    assert len(undisturbed["archive"]) == SESSIONS + 1  # type: ignore[arg-type]
    wipe(stage)

    choice = random.Random(11)
    kills = resumed = 0
    is_first = True  # on this memory
    while True:
        began = time.monotonic()
        running = start(stage)
        try:
            output, _ = running.communicate(timeout=choice.uniform(0.1, seconds) if kills < KILLS else None)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGKILL)
            running.communicate()
            kills += 1
            is_first = False
            continue
        assert running.returncode == 0
        resumed += json.loads(output)["done_before"]
        wait_for(lambda: not list(stage.processes()), "the last process to leave")
        assert remembered(stage) == undisturbed
        assert not Path(stage.home.run, "import.jsonl").exists()
        if kills == KILLS:
            break
        if is_first:  # Other work slowed the run before: with its time, most kills would come too late.
            seconds = min(seconds, time.monotonic() - began)
        wipe(stage)
        is_first = True
    assert resumed or not AT_NIGHT  # few kills may all come before the first transcript is done


@pytest.mark.parametrize("with_service", [False, pytest.param(True, marks=only_in_ci)])
def test_a_live_turn_is_captured_between_two_sessions(stage: Stage, with_service: bool) -> None:
    """By the import, or by a service that waits for the lock."""
    if with_service:
        stage.environment["MEMKIT_SERVICE_ENABLED"] = "true"
        stage.memkit("service", "start")
    live, record = 98, Path(stage.home.run, "import.jsonl")
    with capture_lock(stage.home, 60):
        running = start(stage)
        wait_for(record.exists, "the import to begin")
        stage.transcript(live).write_text(entries(live, 0))
        stage.hook("stop", stage.stopped(live, 0))
    for _ in range(2):  # the service may get the lock first
        with capture_lock(stage.home, 60):  # between two sessions
            imported = record.read_text().count(".jsonl")
            assert running.poll() is None
            days = (stage.project / ".memkit" / "memory").glob("*.md")
            if not any(text(live, 0)[1] in day.read_text() for day in days):
                continue
            assert imported < SESSIONS
            break
    else:
        pytest.fail("the turn was not captured")
    output, _ = running.communicate()
    assert running.returncode == 0
    assert json.loads(output)["turns"] == SESSIONS * TURNS + 1
    if with_service:
        stage.memkit("service", "stop")
    wait_for(lambda: not list(stage.processes()), "the last process to leave")
    stage.check_nothing_waits()
