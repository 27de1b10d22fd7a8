"""Codex's hooks, run as Codex runs them: a command of the shell with JSON on stdin."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from memkit.agents.codex.installation import hooks
from memkit.paths import Home
from memkit.projects.team import trust
from tests.agents.codex.rollouts import SESSION
from tests.hook.conftest import REPOSITORY, Answer, Stage

SCHEMA = {"systemMessage": str, "hookSpecificOutput": {"hookEventName": str, "additionalContext": str}}
"""What Codex 0.171 takes: its schemas forbid all other keys. It has more that memkit does not use."""


def run(stage: Stage, event: str, *, command: Path = REPOSITORY / "bin" / "memkit", **given: Any) -> Answer:
    value = {
        "session_id": SESSION, "turn_id": "t1", "cwd": str(stage.project), "hook_event_name": event,
        "model": "gpt-5", "permission_mode": "default", "transcript_path": None, **given,
    }  # fmt: skip
    line = hooks([str(command)])["Stop"]["hooks"][0]["command"]
    done = subprocess.run(
        line, shell=True, input=json.dumps(value).encode(), capture_output=True, cwd=stage.project,
        env=stage.environment, timeout=60, check=False,
    )  # fmt: skip
    return Answer(done.returncode, done.stdout, done.stderr)


def check(answer: Answer) -> dict[str, Any]:
    """Return an answer that Codex takes."""
    assert answer.status == 0
    assert set(answer.json) <= set(SCHEMA)
    assert set(answer.json.get("hookSpecificOutput", {})) <= set(SCHEMA["hookSpecificOutput"])
    return answer.json


def test_what_codex_gets(stage: Stage) -> None:
    stage.remember("2026-03-01", "The gateway listens on port 7443.")
    (stage.project / ".memkit" / "team").mkdir()
    subprocess.run(["git", "init", "-q"], cwd=stage.project, check=True)
    trust(Home(str(stage.home)), str(stage.project))  # Claude Code would get `watchPaths`
    started = check(run(stage, "SessionStart", source="startup"))
    assert "memkit:memory-recall" in started["hookSpecificOutput"]["additionalContext"]
    prompted = check(run(stage, "UserPromptSubmit", prompt="Which port?"))
    assert "since 2026-03-01" in prompted["hookSpecificOutput"]["additionalContext"]
    assert check(run(stage, "Stop", last_assistant_message="7443")) == {}
    assert check(run(stage, "SessionEnd", reason="other")) == {}
    events = [(one["event"], one["session"], one.get("prompt_id")) for one in stage.spooled()]
    name = f"{SESSION}@codex"
    assert events == [("SessionStart", name, "t1"), ("Stop", name, "t1"), ("SessionEnd", name, "t1")]
    assert "transcript" not in stage.spooled()[0]
    assert stage.errors() == ""


@pytest.mark.parametrize(
    "given", [{"agent_id": "a1"}, {"hook_event_name": "PreToolUse"}, {"hook_event_name": 7}, {"session_id": None}]
)
def test_what_is_left_alone(stage: Stage, given: dict[str, Any]) -> None:
    stage.remember("2026-03-01", "Port 7443.")
    answer = check(run(stage, "Stop", **given))
    assert answer == {}
    assert stage.spooled() == []


def test_memkit_that_is_off_or_gone_says_nothing(stage: Stage) -> None:
    stage.remember("2026-03-01", "Port 7443.")
    assert check(run(stage, "Stop", command=stage.root / "gone")) == {}
    stage.environment["MEMKIT_DISABLE"] = "1"
    assert check(run(stage, "SessionStart")) == {}
    del stage.environment["MEMKIT_DISABLE"]
    (stage.project / ".memkit" / "off").touch()
    assert set(check(run(stage, "SessionStart"))) == {"systemMessage"}
    assert stage.spooled() == []
