"""Each event handled twice, and a kill at every write: the same journal in the end."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memkit import files
from memkit.capture.sessions import Session, Sessions
from memkit.ipc import unindexed
from tests.builders import Lines
from tests.capture.stage import Stage, prompt_id
from tests.ci import every


def flow(stage: Stage, run: Callable[..., None]) -> None:
    """A transcript that appears late, late answers, a turn that grows, and a compaction."""
    run("SessionStart")
    run("Stop", prompt_id=prompt_id(1), late=True)
    lines = Lines().prompt("One", prompt_id(1)).answer("1").prompt("Two", prompt_id(2))
    stage.write(lines.call("Bash", "t", command="make"))
    run("PreCompact", prompt_id=prompt_id(2))
    stage.write(lines.result("t", "ok"))
    run("Stop", prompt_id=prompt_id(2), late=True)
    stage.write(lines.answer("2, late").prompt("Three", prompt_id(3)).answer("3"))
    run("Stop", prompt_id=prompt_id(3))
    run("SessionEnd", reason="other")


FLOW = [("One", "1"), ("Two", "2, late"), ("Three", "3")]


def test_killed_at_every_write_of_a_whole_flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill before and after each file that reaches the disk, each event run again: always the same."""

    class Killed(BaseException):
        pass

    left = [0]
    replace = os.replace

    def counting(source: str, target: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        replace(source, target)
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    monkeypatch.setattr(files.os, "replace", counting)
    for kill in every(3, range(1, 200)):
        (tmp_path / str(kill)).mkdir()
        stage = Stage(tmp_path / str(kill))
        left[0] = kill

        def run(name: str, stage: Stage = stage, **fields: Any) -> None:
            try:
                stage.handle(name, **fields)
            except Killed:
                stage.handle(name, **fields)

        flow(stage, run)
        assert stage.turns == FLOW, f"killed at {kill}"
        assert unindexed.roots(stage.home) == [stage.project.root]
        if left[0] > 0:
            assert kill > 20
            return
    pytest.fail("the flow never ended without a kill")


@pytest.mark.parametrize("kill", range(1, 12))
def test_killed_while_a_turn_grows(stage: Stage, monkeypatch: pytest.MonkeyPatch, kill: int) -> None:
    """What was written before the kill is known for memkit's own, and completed by the next event."""

    class Killed(BaseException):
        pass

    left = [kill]
    replace = os.replace

    def counting(source: str, target: str) -> None:
        if left[0] == 0:
            raise Killed
        left[0] -= 1
        replace(source, target)

    lines = Lines().prompt("One", prompt_id(1)).call("Bash", "t", command="make")
    for said in ("", "Half.", "Whole."):
        stage.write(lines.answer(said) if said else lines)
        with monkeypatch.context() as patch:
            patch.setattr(files.os, "replace", counting)
            try:
                stage.handle("PreCompact")
            except Killed:
                left[0] = -1  # once is enough
    stage.write(lines.answer("The end."))
    stage.handle("SessionEnd")
    assert stage.turns == [("One", "Half.\n\nWhole.\n\nThe end.")]


def test_repeated_events_change_nothing(stage: Stage) -> None:
    def twice(name: str, **fields: Any) -> None:
        for _ in range(2):
            stage.handle(name, **fields)

    flow(stage, twice)
    assert stage.turns == FLOW


def test_session_state_survives_damage_and_keeps_to_its_bounds(stage: Stage) -> None:
    sessions = Sessions(stage.home)
    session = Session("ü/../x")
    session.has_read([str(number) for number in range(200)])
    assert session.recent[-1] == "199"
    assert len(session.recent) == 50
    sessions.save(session)
    assert sessions.load("ü/../x") == session
    assert list(sessions) == [session]
    (path,) = Path(stage.home.sessions).glob("*.json")
    assert path.stat().st_mode & 0o077 == 0
    good = json.loads(path.read_text())
    for damage in ({"offset": "5"}, {"growing": []}, {"id": 5}, {"id": ""}, {"written": "x"}, {"recent": None}):
        path.write_text(json.dumps({**good, **damage}))
        assert sessions.load("ü/../x") == Session("ü/../x")
    path.write_text(json.dumps({**good, "of a later version": 1}))
    assert sessions.load("ü/../x") == session
    path.write_text("[" * 100_000)
    assert list(sessions) == []
