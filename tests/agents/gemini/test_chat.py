"""Turns of Gemini CLI's chats: as lines and as one object, changed afterwards, cut, and hostile."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.agents.exchange import messages_of
from memkit.agents.registry import agent_at, agent_of, session_at
from memkit.agents.sources import find_sources
from memkit.agents.tools import role_of
from memkit.errors import TranscriptError
from tests.agents.gemini.chats import SESSION, Chat, call, conversation, ran, uuid
from tests.agents.reading import as_read, calls_of, check_growing, turns_of
from tests.ci import sized


@pytest.mark.parametrize("is_object", [False, True])
def test_turns(tmp_path: Path, is_object: bool) -> None:
    path = conversation().write(tmp_path, is_object=is_object)
    assert session_at(path) == f"{SESSION}@gemini"
    first, second = turns_of(path)
    assert (first.prompt, first.answer) == ("Which port does the gateway use?", "It listens on 7443.")
    assert (first.session, first.cwd, first.uuid) == (f"{SESSION}@gemini", "/home/shop", uuid(2))
    assert calls_of(first) == [
        ("run_shell_command", "pytest -q", "1 failed, 3 passed", True),
        ("replace", "/home/shop/deploy/gateway.yaml", "Successfully modified file.", False),
        ("write_file", "/home/shop/docs/ports.md", "Successfully created file.", False),
    ]
    assert [role_of(one.name) for one in first.tools] == ["shell", "edit", "edit"]
    assert (second.prompt, second.answer, second.is_memory) == ("Thanks.", "You are welcome.", True)
    assert agent_of(first.session).resume_command(first.session) == ("gemini", "--resume", SESSION)
    assert agent_of("-x@gemini").resume_command("-x@gemini") == ()


def test_both_forms_give_the_same_turns(tmp_path: Path) -> None:
    lines, whole = conversation().write(tmp_path / "a"), conversation().write(tmp_path / "b", is_object=True)
    assert [turn.id for turn in turns_of(lines)] == [turn.id for turn in turns_of(whole)]


def test_the_original_exchange(tmp_path: Path) -> None:
    path = conversation().write(tmp_path)
    shown = [(one.role, one.text, [t.name for t in one.tools]) for one in messages_of(turns_of(path)[0], path, str)]
    assert shown == [
        ("user", "Which port does the gateway use?", []),
        ("assistant", "I run the tests.", ["run_shell_command", "run_shell_command"]),
        ("assistant", "It is written.", ["replace", "replace", "write_file", "write_file"]),
        ("assistant", "It listens on 7443.", []),
    ]


def test_a_prompt_that_was_taken_back(tmp_path: Path) -> None:
    chat = Chat().prompt("One.").said("1").prompt("Two?").said("2").rewind(3).prompt("Three.").said("3")
    assert [(one.prompt, one.answer) for one in turns_of(chat.write(tmp_path))] == [("One.", "1"), ("Three.", "3")]
    chat.rewind(99).prompt("New.")
    assert [one.prompt for one in turns_of(chat.write(tmp_path))] == ["New."]


def test_a_chat_that_was_resumed(tmp_path: Path) -> None:
    chat = conversation()
    before = turns_of(chat.write(tmp_path))
    first = chat.records[1]["$set"]["messages"][0]
    chat.records += [chat.records[0], {"$set": {"messages": [first]}}, {"$set": {"sessionId": SESSION}}]
    ids = dict.fromkeys(one["id"] for one in chat.records if "id" in one)
    parts = [{"functionCall": {"name": "run_shell_command", "args": {"command": "pytest -q"}}}]
    again = [{"id": one, "timestamp": Chat.time(99), "type": "gemini", "content": parts} for one in ids]
    turns = turns_of(chat.set(messages=[first, *again]).prompt("More.").said("Yes.").write(tmp_path))
    assert as_read(turns[:-1]) == as_read(before)
    assert [turn.time for turn in turns[:-1]] == [turn.time for turn in before]
    assert (turns[-1].prompt, turns[-1].answer) == ("More.", "Yes.")


def test_a_prompt_that_a_failure_took_back(tmp_path: Path) -> None:
    chat = Chat().prompt("One.").said("1").prompt("Two?").said("2")
    chat.set(messages=chat.records[1:3])
    assert [one.prompt for one in turns_of(chat.write(tmp_path))] == ["One."]


def test_a_compaction_keeps_what_was_said_before(tmp_path: Path) -> None:
    chat = Chat().prompt("One.").said("1", ran("ls", "a.py")).prompt("Two?").said("2")
    kept = [{**one, "content": [{"text": "[masked]"}]} for one in chat.records[3:5]]
    chat.prompt("<state_snapshot>\nPorts.\n</state_snapshot>").said("Got it. Thanks for the additional context!")
    new = [chat.records.pop(), chat.records.pop()][::-1]
    turns = turns_of(chat.set(messages=[*new, *kept]).prompt("Three.").said("3").write(tmp_path))
    assert [(one.prompt, one.answer) for one in turns] == [("One.", "1"), ("Two?", "2"), ("Three.", "3")]
    assert turns[0].tools[0].result == "a.py"
    assert [one.text for one in turns[1].compactions] == ["<state_snapshot>\nPorts.\n</state_snapshot>"]


def test_what_the_client_adds_is_no_prompt(tmp_path: Path) -> None:
    chat = Chat().message("user", "This is the Gemini CLI. We are setting up the context for our chat.")
    chat.message("user", [{"text": "Why?"}, {"text": "<hook_context>x</hook_context>"}]).said("So.")
    chat.message("user", "Look at @a.py\n--- Content from referenced files ---\nx = 1").said("One.")
    chat.message("user", [{"text": "a long text"}], displayContent=[{"text": "@b.py"}, {"inlineData": {}}]).said("Two.")
    chat.message("user", "Please continue.").said("Three.")
    turns = turns_of(chat.write(tmp_path))
    assert [one.prompt for one in turns] == ["Why?", "Look at @a.py", "@b.py\n\n[image]"]
    assert turns[-1].answer == "Two.\n\nThree."


def test_a_turn_that_was_interrupted_and_one_that_runs(tmp_path: Path) -> None:
    chat = Chat().prompt("Wait.").said("", call("run_shell_command", None, "cancelled", command="sleep 9"))
    chat.message("info", "Request cancelled.").prompt("Go on.")
    chat.said("", call("run_shell_command", None, "executing", command="make"))
    first, second = turns_of(chat.write(tmp_path))
    assert (first.interrupted, calls_of(first)) == (True, [("run_shell_command", "sleep 9", "", True)])
    assert (second.interrupted, calls_of(second)) == (False, [("run_shell_command", "make", None, False)])


@pytest.mark.parametrize(
    ("text", "shown", "has_failed"),
    [
        ("Command: ls\nDirectory: (root)\nOutput: a\nb\nError: (none)\nExit Code: 0\nSignal: 0\nBackground PIDs: (none)", "a\nb", False),
        ("Command: ls\nDirectory: x\nStdout: (empty)\nStderr: no such file\nError: (none)\nExit Code: 2\nSignal: (none)", "no such file", True),
        ("Output: Exit Code: 1\nError: 1\n2 errors", "Exit Code: 1\nError: 1\n2 errors", False),
        ("Command was cancelled by user before it could start.", "Command was cancelled by user before it could start.", False),
    ],
)  # fmt: skip
def test_what_a_command_printed(tmp_path: Path, text: str, shown: str, has_failed: bool) -> None:
    (turn,) = turns_of(Chat().prompt("Do it.").said("", call("run_shell_command", text, command="ls")).write(tmp_path))
    assert calls_of(turn) == [("run_shell_command", "ls", shown, has_failed)]


def test_a_call_that_failed(tmp_path: Path) -> None:
    edit = call("replace", "Failed to edit, 0 occurrences found.", "error", file_path="a.py")
    (turn,) = turns_of(Chat().prompt("Do it.").said("", edit).write(tmp_path))
    assert calls_of(turn) == [("replace", "/home/shop/a.py", "Failed to edit, 0 occurrences found.", True)]


def test_an_older_chat_has_the_hash_of_its_directory(tmp_path: Path) -> None:
    chat = Chat(projectHash=hashlib.sha256(b"/home/shop").hexdigest()).prompt("Do it.")
    chat.said("", call("write_file", "Successfully overwrote file: /home/shop/docs/a.md.", file_path="docs/a.md"))
    path = tmp_path / "session-1.json"
    path.write_text(chat.as_object)
    (turn,) = turns_of(path)
    assert (agent_at(path).name, turn.cwd, turn.tools[0].input["file_path"]) == (
        "gemini", "/home/shop", "/home/shop/docs/a.md",
    )  # fmt: skip


def test_the_chats_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path))
    gemini = agent_of("1@gemini")
    assert list(gemini.transcripts()) == []
    conversation().write(tmp_path, is_object=True)
    lines = conversation().write(tmp_path)
    (lines.parent / SESSION).mkdir()
    part = lines.parent / SESSION / f"{uuid(1)}.jsonl"
    part.write_text(Chat(session=uuid(1), kind="subagent").prompt("Look.").said("Seen.").text)
    assert list(gemini.transcripts()) == [lines]
    assert (agent_at(part).name, turns_of(part)) == ("gemini", [])
    other = Chat(session=uuid(2)).prompt("Why?").write(tmp_path, is_object=True)
    assert {source.path for source in find_sources([tmp_path])} == {lines, part, other}


def test_a_chat_that_is_too_large_or_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = conversation().write(tmp_path)
    monkeypatch.setattr("memkit.agents.gemini.chat.MOST_BYTES", 10)
    with pytest.raises(TranscriptError, match="larger than 10 bytes"):
        turns_of(path)
    path.unlink()
    with pytest.raises(TranscriptError, match="cannot read"):
        turns_of(path)


@settings(max_examples=sized(20, 50, 200))
@given(cut=st.integers(0, 6000))
def test_a_growing_file_gives_the_same_turns(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = conversation().write(tmp_path_factory.mktemp("r"))
    check_growing(path, cut)


_KEYS = st.sampled_from(
    "id type content text toolCalls args result status functionResponse response output error name sessionId messages "
    "projectHash kind timestamp displayContent $set $rewindTo resultDisplay thought".split()
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=8) | st.sampled_from(["user", "gemini", uuid(2)]),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(_KEYS, one, max_size=3),
)
_LINES = st.dictionaries(_KEYS, _VALUES, max_size=5).map(json.dumps) | st.text(max_size=20)


@settings(max_examples=sized(20, 60, 300))
@given(lines=st.lists(_LINES, max_size=8), order=st.randoms(use_true_random=False), cut=st.integers(1, 4000))
def test_no_line_stops_the_reader(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], order: Any, cut: int
) -> None:
    lines += conversation().text.splitlines()
    order.shuffle(lines)
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    path = tmp_path_factory.mktemp("r") / "chats" / "session-1.jsonl"
    path.parent.mkdir()
    for content in (data, data[:cut], b'{\n"messages": [' + data.replace(b"\n", b",") + b"]}"):
        path.write_bytes(content)
        for turn in turns_of(path):
            messages_of(turn, path, str)
