"""The task of a sub-agent that starts, from the session's transcript."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memkit.agents.claude_code import agents
from memkit.agents.claude_code.agents import starting_task
from tests.builders import Lines


class Session:
    def __init__(self, directory: Path) -> None:
        self.path = directory / "session.jsonl"
        self.lines = Lines().prompt("Compare the gateways.", "1")

    @property
    def task(self) -> str:
        self.path.write_text("".join(json.dumps(entry) + "\n" for entry in self.lines.entries))
        return starting_task(self.path)

    def started(self, call: str) -> None:
        directory = self.path.with_suffix("") / "subagents"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"agent-{call}.meta.json").write_text(json.dumps({"toolUseId": call}))


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def test_parallel_agents_start_in_order(session: Session) -> None:
    assert session.task == ""  # a skill in a context of its own
    session.lines.call("Agent", "a1", prompt="Read one").call("Task", "a2", prompt="Read two").call("Bash", "b", command="ls")
    assert session.task == "Read one"
    session.lines.result("a1", "Async agent launched successfully.")  # in the background, before it starts
    assert session.task == "Read one"
    session.started("a1")
    assert session.task == "Read two"
    session.started("a2")
    assert session.task == ""


def test_calls_that_never_start(session: Session) -> None:
    session.lines.call("Agent", "a1", prompt="Refused").result("a1", "The user doesn't want to", is_error=True)
    assert session.task == ""
    session.lines.call("Agent", "a2", prompt="Interrupted").prompt("Go on.", "2")
    assert session.task == ""


def test_damaged_files(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert starting_task(tmp_path / "none.jsonl") == ""
    session.lines.call("Agent", "a1", prompt="Read one")
    session.started("a1")
    for name, text in (("agent-x.meta.json", "{half"), ("agent-y.meta.json", "[]")):
        (session.path.with_suffix("") / "subagents" / name).write_text(text)
    session.lines.call("Agent", "a2", prompt="Read two")
    assert session.task == "Read two"
    monkeypatch.setattr(agents, "TAIL_BYTES", 500)  # from the middle of a line on
    assert session.task == ""  # the prompt, which may be private, is before it


@pytest.mark.parametrize("typed", ["#skip Compare them", "Compare <private>the layoffs</private> with them"])
def test_the_task_from_a_private_prompt_is_not_looked_up(session: Session, typed: str) -> None:
    session.lines.prompt(typed, "2").call("Agent", "a1", prompt="Read one")
    assert session.task == ""
    session.lines.prompt("Compare the others", "3").call("Agent", "a2", prompt="Read two")
    assert session.task == "Read two"
