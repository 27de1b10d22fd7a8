"""Copilot CLI's `events.jsonl`, in the shape of versions 1.0.64 to 1.0.68."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkit.agents.registry import agent_at, agent_of
from memkit.agents.turns import read_turns
from tests.agents.reading import turns_of

ID = "8f6a7c10-0d3b-4c57-9a53-2f1f7f3c0a11"


_NUMBERS = count(1)


def event(kind: str, number: int, **data: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "data": data,
        "id": str(UUID(int=next(_NUMBERS))),
        "timestamp": f"2026-07-03T08:{number // 60 % 60:02}:{number % 60:02}.000Z",
        "parentId": None,
    }


def start(call: str, tool: str, number: int = 5, **arguments: Any) -> dict[str, Any]:
    return event("tool.execution_start", number, toolCallId=call, toolName=tool, arguments=arguments)


def done(call: str, text: str, number: int = 6, *, success: bool = True, **more: Any) -> dict[str, Any]:
    output = {"result": {"content": text}} if success else {"error": {"message": text, "code": "failure"}}
    return event("tool.execution_complete", number, toolCallId=call, success=success, **output, **more)


def prompt(text: str, number: int, **more: Any) -> dict[str, Any]:
    sent = f"<current_datetime>2026</current_datetime>\n\n{text}\n\n<system_reminder>x</system_reminder>"
    own = {"interactionId": str(UUID(int=1000 + number)), "attachments": []} | more
    return event("user.message", number, content=text, transformedContent=sent, **own)


def says(text: str, number: int, *tools: str) -> dict[str, Any]:
    requests = [{"toolCallId": tool, "name": tool} for tool in tools]
    return event("assistant.message", number, content=text, toolRequests=requests, model="m")


SESSION = [
    event("session.start", 0, sessionId=ID, version=1, producer="copilot-agent",
          context={"cwd": "/home/shop", "branch": "main"}),
    event("system.message", 1, role="system", content="You are the GitHub Copilot CLI"),
    event("hook.start", 2, hookType="userPromptSubmitted", input={"prompt": "Fix it"}),
    prompt("Fix it", 3, attachments=[{"type": "file", "path": "/tmp/shot.png"}]),
    event("assistant.turn_start", 4, turnId="0"),
    says("I look.", 5, "a"),
    start("a", "bash", command="make test", description="Run"),
    done("a", "1 failed\n<shellId: 3 completed with exit code 2>", toolTelemetry={"metrics": {"exit_code": 2}}),
    start("b", "view", path="/home/shop/a.py"),
    done("b", "Path does not exist", success=False),
    start("c", "edit", path="/home/shop/b.py", old_str="1", new_str="2"),
    done("c", "File updated"),
    start("d", "create", path="/home/shop/c.py", file_text="x = 1\n"),
    done("d", "Created"),
    start("e", "apply_patch", input="*** Begin Patch\n*** Update File: d.py\n*** Add File: /e.py\n*** End Patch"),
    done("e", "Done"),
    says("Fixed.", 9),
    event("session.context_changed", 10, cwd="/home/lib", branch="dev"),
    prompt("And then?", 11),
    start("f", "bash", 12, command="sleep 99"),
    done("f", "<command with shellId: 9 is still running after 30 seconds. Use read_bash.>", 13),
    start("g", "read_bash", 14, shellId="9", delay=5),
    done("g", "out\n<shellId: 9 completed with exit code 1>", 15),
    prompt("Use make", 16, delivery="steering"),
    prompt("# Skill text", 17, source="skill-pdf"),
    event("assistant.message", 18, content="Sub-agent text", toolRequests=[], parentToolCallId="t"),
    event("session.compaction_complete", 19, success=True, summaryContent="All so far."),
    event("abort", 20, reason="user_initiated"),
    event("session.shutdown", 21, shutdownType="routine"),
]  # fmt: skip


def write(path: Path, events: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(one)}\n" for one in events), encoding="utf-8")
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "session-state" / ID / "events.jsonl", SESSION)


def test_turns_have_prompts_answers_calls_and_places(path: Path) -> None:
    first, second = turns_of(path)
    assert (first.session, first.prompt, first.answer) == (f"{ID}@copilot", "Fix it\n\n[image]", "Fixed.")
    assert (first.cwd, first.branch, second.cwd, second.branch) == ("/home/shop", "main", "/home/lib", "dev")
    found = [(one.name, one.input.get("file_path"), one.is_error) for one in first.tools]
    assert found == [
        ("bash", None, True), ("view", "/home/shop/a.py", True), ("edit", "/home/shop/b.py", False),
        ("create", "/home/shop/c.py", False), ("apply_patch", "/home/shop/d.py", False),
        ("apply_patch", "/e.py", False),
    ]  # fmt: skip
    assert [one.result for one in first.tools[:2]] == ["1 failed", "Path does not exist"]
    assert second.prompt == "And then?\n\nUse make"
    assert second.interrupted and second.is_compacted and second.answer == ""


def test_a_command_that_goes_on_running_ends_in_a_call_of_its_own(path: Path) -> None:
    tools = turns_of(path)[1].tools
    assert [(one.input["command"], one.is_error) for one in tools] == [("sleep 99", False), ("sleep 99", True)]


def test_the_files_and_ids_of_copilot_are_known(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COPILOT_HOME", str(tmp_path))
    copilot = agent_of(f"{ID}@copilot")
    assert list(copilot.transcripts()) == [path]
    assert agent_at(write(tmp_path / "saved.jsonl", SESSION)) is copilot
    assert agent_at(write(tmp_path / "other.jsonl", SESSION[3:])) is not copilot
    assert copilot.resume_command(f"{ID}@copilot") == ("copilot", "--resume", ID)
    assert copilot.resume_command("--help@copilot") == ()


def test_a_session_that_grew_gives_the_same_turns(path: Path, tmp_path: Path) -> None:
    data, whole = path.read_bytes(), turns_of(path)
    for cut in range(0, len(data), 97):
        part = tmp_path / "session-state" / f"{ID}.jsonl"
        part.write_bytes(data[:cut])
        found = turns_of(part)
        assert [turn.id for turn in found] == [turn.id for turn in whole[: len(found)]]
        part.write_bytes(data)
        if found:
            begun = found[-1].start
            later = [turn for turn in whole if turn.start >= begun]
            assert turns_of(part, begun) == later


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["bash", ID]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["content", "message", "context", "cwd", "path", "command"]), inner),
    max_leaves=6,
)


@given(st.data())
def test_odd_events_in_any_order_never_crash(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    events: list[Any] = data.draw(st.permutations(SESSION))
    for _ in range(data.draw(st.integers(0, 6))):
        one = json.loads(json.dumps(data.draw(st.sampled_from(SESSION))))
        inside = data.draw(st.sampled_from([one, one["data"]]))
        inside[data.draw(st.sampled_from([*inside, "agentId", "new"]))] = data.draw(VALUES)
        events.insert(data.draw(st.integers(0, len(events))), one)
    path = tmp_path_factory.mktemp("odd") / f"{ID}.jsonl"
    lines = "\n".join(json.dumps(one) for one in events).encode("utf-8", "surrogatepass")
    path.write_bytes(b'{"type":"session.start"}\n' + lines[: data.draw(st.integers(0, len(lines)))])
    reader = agent_of("x@copilot").reader
    assert all(turn.session.endswith("@copilot") for turn in read_turns(reader(path)))
