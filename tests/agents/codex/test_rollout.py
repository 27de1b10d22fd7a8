"""Turns of Codex's rollouts: whole, cut, of older versions, and hostile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.agents.exchange import messages_of
from memkit.agents.registry import agent_at, session_at
from tests.agents.codex.rollouts import PATCH, SESSION, Rollout, conversation
from tests.agents.reading import calls_of, check_growing, turns_of
from tests.ci import sized


def test_turns(tmp_path: Path) -> None:
    path = conversation().write(tmp_path)
    assert session_at(path) == f"{SESSION}@codex"
    first, second = turns_of(path)
    assert (first.prompt, first.answer) == ("Which port does the gateway use?", "It listens on 7443.")
    assert (first.session, first.cwd, first.branch) == (f"{SESSION}@codex", "/home/shop", "main")
    assert calls_of(first) == [
        ("exec_command", "pytest -q", "1 failed, 3 passed", True),
        ("apply_patch", "/home/shop/deploy/gateway.yaml", "Success. Updated the following files:\n", False),
        ("apply_patch", "/home/shop/docs/ports.md", "Success. Updated the following files:\n", False),
    ]
    assert second.prompt == "Start the server.\n\nOn port 7443!"
    assert calls_of(second) == [("exec_command", "make serve", "booting\nlistens on 7443", False)]
    assert (second.answer, first.is_memory, second.is_memory) == ("It runs.", True, True)
    assert [call.input["patch"].split("\n")[0] for call in first.tools[1:]] == [
        "*** Update File: deploy/gateway.yaml", "*** Add File: docs/ports.md",
    ]  # fmt: skip


def test_the_original_exchange(tmp_path: Path) -> None:
    path = conversation().write(tmp_path)
    shown = [(one.role, one.text, [t.name for t in one.tools]) for one in messages_of(turns_of(path)[0], path, str)]
    assert shown == [
        ("user", "Which port does the gateway use?", []),
        ("assistant", "I run the tests.", []),
        ("assistant", "", ["exec_command"]),
        ("tool", "", ["exec_command"]),
        ("assistant", "", ["apply_patch", "apply_patch"]),
        ("tool", "", ["apply_patch", "apply_patch"]),
        ("assistant", "It is written.", []),
        ("assistant", "It listens on 7443.", []),
    ]


def test_prompts_of_0_171(tmp_path: Path) -> None:
    """A prompt is an item; what Codex adds for the model begins without the directory."""
    rollout = Rollout().said("user", "# AGENTS.md instructions\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>")
    for prompt in ("Which port?", "And the host?"):
        rollout.said("user", prompt).item("UserMessage", {"type": "text", "text": prompt}, {"type": "local_image"})
        rollout.item("AgentMessage", {"type": "Text", "text": "7443."}).said("assistant", "7443.")
    turns = turns_of(rollout.add("token_usage_record", usage={}).write(tmp_path))
    assert [(turn.prompt, turn.answer) for turn in turns] == [
        ("Which port?\n\n[image]", "7443."), ("And the host?\n\n[image]", "7443."),
    ]  # fmt: skip


def test_a_turn_that_was_interrupted(tmp_path: Path) -> None:
    rollout = Rollout().prompt("Why?", 1).call("exec_command", "c", cmd="sleep 9").said("user", "<turn_aborted>")
    path = rollout.event("turn_aborted", reason="interrupted").write(tmp_path)
    (turn,) = turns_of(path)
    assert (turn.prompt, turn.interrupted, calls_of(turn)) == (
        "Why?", True, [("exec_command", "sleep 9", None, False)],
    )  # fmt: skip


def test_a_compaction(tmp_path: Path) -> None:
    rollout = conversation().prompt("Go on.", 3).add("compacted", message="The gateway uses 7443.", replacement_history=[])
    turns = turns_of(rollout.answer("Done.").write(tmp_path))
    assert [one.text for one in turns[-1].compactions] == ["The gateway uses 7443."]
    assert turns[-1].answer == "Done."


def test_prompts_with_images_and_with_what_an_editor_adds(tmp_path: Path) -> None:
    text = "# Context from my IDE setup:\n## Open tabs:\n- a.py\n## My request for Codex:\nRename it.\n"
    rollout = Rollout().prompt(text, 1).answer("Done.").event("task_started", turn_id="2")
    rollout.event("user_message", message="Look.", images=["data:"], local_images=["/tmp/a.png"])
    assert [turn.prompt for turn in turns_of(rollout.write(tmp_path))] == ["Rename it.", "Look.\n\n[image]\n\n[image]"]


def test_the_rollout_of_a_sub_agent_has_no_turns(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.lines[0] = rollout.lines[0].replace('"source": "cli"', '"source": {"subagent": "review"}')
    assert turns_of(rollout.prompt("Review it.", 1).answer("Fine.").write(tmp_path)) == []


@pytest.mark.parametrize(
    ("payload", "name", "command"),
    [
        ({"type": "function_call", "name": "shell", "arguments": '{"command": ["bash", "-lc", "ls -l"]}'}, "shell", "ls -l"),
        ({"type": "function_call", "name": "shell", "arguments": '{"command": ["ls", "a b"]}'}, "shell", "ls 'a b'"),
        ({"type": "local_shell_call", "action": {"type": "exec", "command": ["ls"]}}, "local_shell", "ls"),
        ({"type": "function_call", "name": "shell", "arguments": json.dumps({"command": ["apply_patch", PATCH]})}, "apply_patch", None),
    ],
)  # fmt: skip
def test_commands(tmp_path: Path, payload: dict[str, Any], name: str, command: str | None) -> None:
    rollout = Rollout().prompt("Do it.", 1).add("response_item", call_id="c", **payload)
    rollout.output("c", json.dumps({"output": "no such file", "metadata": {"exit_code": 2}}))
    (turn,) = turns_of(rollout.write(tmp_path))
    assert (turn.tools[0].name, turn.tools[0].input.get("command")) == (name, command)
    assert (turn.tools[0].result, turn.tools[0].is_error) == ("no such file", True)


def test_a_file_from_before_events(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"id": SESSION, "timestamp": "2025-06-01T10:00:00Z", "instructions": None, "git": {"branch": "old"}},
        {"record_type": "state"},
    ]
    for role, text in (
        ("user", "<environment_context>\n<cwd>/home/shop</cwd>\n</environment_context>"),
        ("user", "Which port?"),
        ("assistant", "7443."),
    ):
        lines.append({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]})
    path = tmp_path / f"rollout-2025-06-01T10-00-00-{SESSION}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (turn,) = turns_of(path)
    assert (turn.prompt, turn.answer, turn.cwd, turn.branch) == ("Which port?", "7443.", "/home/shop", "old")


def test_a_file_of_any_name_is_recognized_by_its_first_line(tmp_path: Path) -> None:
    path = tmp_path / "full.jsonl"
    path.write_text(conversation().text)
    assert agent_at(path).name == "codex"
    path.write_text('{"type": "user", "message": {"content": "session_meta"}}\n')
    assert agent_at(path).name == "claude-code"


@settings(max_examples=sized(20, 50, 200))
@given(cut=st.integers(0, 6000))
def test_a_growing_file_gives_the_same_turns(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = conversation().write(tmp_path_factory.mktemp("r"))
    check_growing(path, cut)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=8), lambda one: st.lists(one, max_size=3)
)  # fmt: skip
_KEYS = st.sampled_from(
    "type id role call_id name arguments input output content message turn_id cwd git source action images reason "
    "session_id phase namespace".split()
)
_KINDS = st.sampled_from(
    "session_meta turn_context response_item event_msg compacted x message function_call custom_tool_call "
    "function_call_output local_shell_call web_search_call user_message task_started task_complete".split()
)
_LINES = st.builds(
    lambda kind, inner, payload: json.dumps({"type": kind, "payload": {"type": inner, **payload}}),
    _KINDS, _KINDS | st.none(), st.dictionaries(_KEYS, _VALUES, max_size=5),
) | st.text(max_size=20)  # fmt: skip


@settings(max_examples=sized(20, 60, 300))
@given(lines=st.lists(_LINES, max_size=12), at=st.integers(0, 20))
def test_no_line_stops_the_reader(tmp_path_factory: pytest.TempPathFactory, lines: list[str], at: int) -> None:
    rollout = conversation()
    rollout.lines[at:at] = lines
    path = tmp_path_factory.mktemp("r") / f"rollout-{SESSION}.jsonl"
    path.write_bytes(rollout.text.encode("utf-8", "surrogatepass"))
    for turn in turns_of(path):
        messages_of(turn, path, str)
