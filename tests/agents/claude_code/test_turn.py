"""Transcripts into turns: what people really have, and what can go wrong with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.agents.claude_code.files import transcripts_in
from memkit.agents.claude_code.transcript import Transcript
from memkit.agents.turns import read_turns
from memkit.conversation.turn import ToolCall, Turn
from tests.builders import Lines
from tests.ci import IN_CI


def turns_of(path: Path, offset: int = 0) -> list[Turn]:
    return list(read_turns(Transcript(path, offset)))


def remembered(path: Path) -> list[Turn]:
    return [turn for turn in turns_of(path) if turn.is_memory]


def test_a_turn_is_a_prompt_and_all_that_followed(tmp_path: Path) -> None:
    lines = Lines().prompt("Which port?", "p1").answer("Let me look.")
    lines.call("Read", "t1", file_path="/home/shop/gateway.yaml")
    notice = "[This command modified 1 file you've previously read: a.py. Call Read before editing.]"
    lines.result("t1", f"port: 443\n\n{notice}")
    lines.call("Edit", "t2", file_path="/home/shop/gateway.yaml", old_string="a", new_string="b")
    lines.result("t2", "String not found", is_error=True).answer("7443,").answer("because 443 is taken.")
    path = lines.prompt("Thanks", "p2").answer("Welcome.").write(tmp_path)
    first, second = turns_of(path)
    assert (first.prompt, first.answer) == ("Which port?", "7443,\n\nbecause 443 is taken.")
    called = [(call.name, call.result, call.is_error) for call in first.tools]
    assert called == [("Read", "port: 443", False), ("Edit", "String not found", True)]
    assert (first.branch, first.cwd, first.prompt_id) == ("main", "/home/shop", "p1")
    assert first.end == second.start
    assert second.end == path.stat().st_size


def test_entries_that_are_not_memory(tmp_path: Path) -> None:
    lines = Lines().prompt("taken back").interrupt()
    lines.prompt("<command-name>/context</command-name>\n<command-args></command-args>")
    lines.prompt("<local-command-stdout>lots</local-command-stdout>").prompt("meta", isMeta=True)
    lines.prompt("secret plans #skip").answer("Fine.").prompt("/memory-recall what's the port?")
    lines.prompt("<local-command-stdout>7443</local-command-stdout>").prompt("/memkit:memory-recall what's the port?")
    lines.prompt("<task-notification>done</task-notification>")
    lines.prompt("This session is being continued from a previous conversation", isCompactSummary=True)
    lines.prompt("real <system-reminder>not said</system-reminder> question")
    lines.add("assistant", [{"type": "text", "text": "API Error: 529"}], isApiErrorMessage=True)
    reviewed = "<command-message>review</command-message><command-name>/review</command-name><command-args>42</command-args>"
    found = remembered(lines.prompt(reviewed).answer("Reviewed.").write(tmp_path))
    assert [(turn.prompt, turn.answer) for turn in found] == [("real  question", ""), ("/review 42", "Reviewed.")]


def test_a_skill_that_ran_in_a_sub_agent_answers_like_a_command(tmp_path: Path) -> None:
    answer = "<local-command-stdout>\nAll green.\n</local-command-stdout>"
    older = Lines().prompt("/deploy-check staging").prompt(answer)
    newer = Lines().prompt("/deploy-check staging").add("system", subtype="local_command")
    newer.entries[-1]["content"] = answer
    for lines in (older, newer):
        (turn,) = remembered(lines.write(tmp_path))
        assert turn.answer == "All green."


def test_an_interrupted_turn_keeps_what_was_done(tmp_path: Path) -> None:
    path = Lines().prompt("go").call("Bash", "t", command="make").interrupt().write(tmp_path)
    (turn,) = remembered(path)
    assert turn.interrupted
    assert turn.tools[0].result is None


def bash(lines: Lines, command: str, output: str, errors: str = "", prompt_id: str = "") -> Lines:
    """A command after `!` as 2.1.330 writes it: output is escaped, and that of a failed command all in stderr."""
    lines.prompt(f"<bash-input>{command}</bash-input>", prompt_id)
    return lines.prompt(f"<bash-stdout>{output}</bash-stdout><bash-stderr>{errors}</bash-stderr>", prompt_id)


def test_a_command_after_an_exclamation_mark_is_a_turn_of_its_own(tmp_path: Path) -> None:
    lines = Lines().prompt("Which port?", "p1").answer("7443.")
    bash(lines, "npm test", "a &lt;b&gt; &amp;lt;\n12 passed\n", prompt_id="p2").answer("All 12 pass.")
    bash(lines, "false", "", "one\ntwo\n", prompt_id="p3")
    lines.prompt("Thanks", "p4").answer("Welcome.")
    asked, passed, failed, thanks = remembered(lines.write(tmp_path))
    assert (asked.answer, thanks.answer) == ("7443.", "Welcome.")
    assert (passed.prompt, passed.answer) == ("! npm test", "All 12 pass.")
    assert passed.tools == [ToolCall("Bash", {"command": "npm test"}, "a <b> &lt;\n12 passed")]
    assert failed.tools == [ToolCall("Bash", {"command": "false"}, "one\ntwo", is_error=True)]
    assert (failed.prompt, failed.answer) == ("! false", "")


def test_a_command_after_an_exclamation_mark_is_private_or_asks_the_memory_like_others(tmp_path: Path) -> None:
    lines = bash(Lines(), "memkit search port", "7443")
    bash(lines, "bin/memkit status | head -3", "index ready", prompt_id="p1").answer("Understood.")
    bash(lines, "deploy # #skip", "ok")
    bash(lines, "deploy <private>key</private>", "ok")
    (turn,) = remembered(lines.write(tmp_path))
    assert "key" not in turn.prompt + str(turn.tools)
    assert turn.prompt.startswith("! deploy")
    # What else the command or the model did is remembered.
    lines = bash(Lines(), "memkit search port && make deploy", "7443", prompt_id="p1")
    bash(lines, "memkit status", "ok", prompt_id="p2").call("Edit", "e", file_path="a.py").result("e", "ok")
    assert len(remembered(lines.write(tmp_path))) == 2
    # Output without its command is left out.
    lines = Lines().prompt("<bash-stdout>x</bash-stdout><bash-stderr></bash-stderr>").prompt("Hi").answer("Hello.")
    lines.prompt("<bash-stdout>not closed").prompt("<bash-input>not closed").prompt("So?")
    assert [turn.prompt for turn in remembered(lines.write(tmp_path))] == ["Hi", "! not closed", "So?"]


def test_text_typed_while_the_assistant_works_joins_the_turn(tmp_path: Path) -> None:
    queued = {"type": "queued_command", "prompt": "and the tests", "commandMode": "prompt"}
    machine = {**queued, "prompt": "task done", "commandMode": "task-notification"}
    lines = Lines().prompt("Fix it", "p1").call("Bash", "t", command="make").add("attachment", attachment=queued)
    lines.add("attachment", attachment=machine).result("t", "ok").answer("Done.")
    (turn,) = turns_of(lines.write(tmp_path))
    assert (turn.prompt, turn.answer) == ("Fix it\n\nand the tests", "Done.")


def test_sub_agents_belong_to_the_turn_that_started_them(tmp_path: Path) -> None:
    lines = Lines().prompt("Look into it", "p1").call("Agent", "t1", description="search")
    lines.result("t1", "Found it.", toolUseResult={"agentId": "abc123"}).prompt("inline", isSidechain=True)
    path = lines.answer("inline answer", isSidechain=True).answer("Here it is.").write(tmp_path)
    own = Lines().prompt("search", isSidechain=True).call("Grep", "g", pattern="port").result("g", "1")
    agents = path.with_suffix("") / "subagents"
    agents.mkdir(parents=True)
    (agents / "agent-abc123.jsonl").write_text(own.text)
    (turn,) = turns_of(path)
    assert turn.answer == "Here it is."
    assert [(call.name, call.by_agent) for call in turn.tools] == [("Agent", False), ("Grep", True)]
    assert transcripts_in(tmp_path) == [path]


def test_repeated_lines_count_once(tmp_path: Path) -> None:
    lines = Lines().prompt("One", "p1").answer("1").prompt("Two", "p2").answer("2")
    path = lines.write(tmp_path)
    path.write_text(lines.text + lines.text)
    transcript = Transcript(path)
    assert [turn.prompt for turn in read_turns(transcript)] == ["One", "Two"]
    assert transcript.counts["repeated"] == 4


def test_a_fork_repeats_turns_under_the_same_ids(tmp_path: Path) -> None:
    def id_of(session: str, prompt_id: str) -> str:
        return turns_of(Lines(session).prompt("One", prompt_id).answer("1").write(tmp_path))[0].id

    sessions = [f"{number:08}-2222-4333-8444-555555555555" for number in (1, 2)]
    first, second = (id_of(session, "6b1f0a52-99f1-4f0e-8a51-3f1f1a2b3c4d") for session in sessions)
    assert first == second and len(first) == 8
    assert id_of("session-a", "p1") != id_of("session-b", "p1")  # these are no UUIDs


def test_turns_that_a_fork_copied_keep_their_ids(tmp_path: Path) -> None:
    names = [f"6b1f0a5{number}-99f1-4f0e-8a51-3f1f1a2b3c4d" for number in range(5)]
    origin = Lines("11111111-2222-4333-8444-555555555555").prompt("One", names[0]).call("Read", "r")
    origin.result("r", "x", promptId=names[0]).answer("1").prompt("No", names[1]).interrupt()
    origin.prompt("Two", names[2]).answer("2")
    fork = origin.fork("99999999-2222-4333-8444-555555555555", names[3]).prompt("Three", names[3]).answer("3")
    again = fork.fork("88888888-2222-4333-8444-555555555555", names[4]).prompt("Four", names[4]).answer("4")
    first, second, third = (turns_of(one.write(tmp_path)) for one in (origin, fork, again))
    assert [turn.prompt for turn in third if turn.is_memory] == ["One", "Two", "Three", "Four"]
    known = {turn.prompt: turn.id for turn in (*first, *second[3:], *third[4:]) if turn.is_memory}
    assert len(set(known.values())) == 4
    for turn in (*second, *third):
        assert not turn.is_memory or turn.id == known[turn.prompt]
    (tmp_path / f"{origin.session}.jsonl").unlink()
    alone = turns_of(tmp_path / f"{fork.session}.jsonl")
    assert len({turn.id for turn in alone if turn.is_memory}) == 3


def test_text_before_any_prompt(tmp_path: Path) -> None:
    lines = Lines().add("assistant", [{"type": "text", "text": "API Error: 500"}], isApiErrorMessage=True)
    lines.answer("The nightly build is red.").prompt("Why?").answer("A test.")
    first, second = turns_of(lines.write(tmp_path))
    assert (first.prompt, first.answer, first.is_memory) == ("", "The nightly build is red.", True)
    assert (second.prompt, second.answer) == ("Why?", "A test.")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)


def any_of(*names: str) -> dict[str, st.SearchStrategy[Any]]:
    return dict.fromkeys(names, json_values)


kinds = st.sampled_from(["text", "tool_use", "tool_result", "thinking", "image"]) | json_values
blocks = st.fixed_dictionaries(
    {}, optional={"type": kinds, **any_of("text", "id", "name", "input", "content", "tool_use_id", "is_error")}
)
messages = st.fixed_dictionaries({"content": st.lists(blocks, max_size=3) | json_values}) | json_values
entries = st.fixed_dictionaries(
    {"type": st.sampled_from(["user", "assistant", "attachment", "system", "new-kind"])},
    optional={
        "message": messages, "subtype": st.just("local_command") | json_values,
        **any_of("uuid", "promptId", "sessionId", "timestamp", "isMeta", "isSidechain", "attachment", "toolUseResult"),
        **any_of("agentId", "origin", "content", "cwd", "gitBranch"),
    },
)  # fmt: skip


@settings(max_examples=75 if IN_CI else 12)
@given(lines=st.lists(entries | json_values, max_size=8))
def test_no_line_is_fatal(tmp_path_factory: pytest.TempPathFactory, lines: list[Any]) -> None:
    path = tmp_path_factory.mktemp("t") / "s.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for turn in turns_of(path):
        assert isinstance(turn.is_memory, bool)
        assert turn.start < turn.end <= path.stat().st_size
