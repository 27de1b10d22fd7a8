"""Turns of transcripts that the real client wrote, and shapes it can write."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.agents.claude_code.transcript import Transcript
from memkit.agents.exchange import messages_of
from memkit.agents.turns import read_turns
from memkit.browse.transcript import read_messages
from memkit.conversation.turn import Turn
from memkit.journal.tool_lines import tool_line
from tests.builders import Lines
from tests.capture.places import RECORDED
from tests.ci import IN_CI


def turns_of(path: Path, offset: int = 0) -> list[Turn]:
    return list(read_turns(Transcript(path, offset)))


RECORDED_TURNS = {
    # A prompt typed while tools ran joins the turn; one sent after the end is a turn of its own.
    "queued-while-working": [
        ("first task\n\nsecond task please", "Second done.", True),
        ("third", "Understood.", True),
    ],
    "queued-until-the-end": [
        ("first task", "First done.", True),
        ("second task please", "", True),
        ("third task too", "Second done.", True),
    ],
    "interrupted": [("long task", "Working.", True), ("held task", "", True)],
    "api-errors": [("ask me", "Part.", True), ("again", "", True)],
    "background-skill": [("/shop:bgfork what's x?", "Understood.", True)],
    "forked-skill": [("/shop:ask what's x?", "The answer is 7443.", True)],
    "forked-skill-2.1.197": [("/ask what's x?", "The answer is 7443.", True), ("/exit", "", False)],
    "refused-skill": [("/shop:denied what's x?", "", False)],
    "sub-agent-2.1.42": [
        ("Round amounts everywhere", "Amounts are rounded to cents; the test of half a cent still fails.", True)
    ],
    "context-2.1.197": [("hello there", "Hi.", True), ("/exit", "", False)],
}


@pytest.mark.parametrize("name", RECORDED_TURNS)
def test_recorded_turns(name: str) -> None:
    turns = turns_of(RECORDED / f"{name}.jsonl")
    assert [(turn.prompt, turn.answer, turn.is_memory) for turn in turns] == RECORDED_TURNS[name]


@pytest.mark.parametrize("name", RECORDED_TURNS)
def test_reading_a_recorded_transcript_as_it_grows(name: str, tmp_path: Path) -> None:
    """Cut at every line and in its middle: what is read in steps is what is read at once."""
    data = (RECORDED / f"{name}.jsonl").read_bytes()
    whole = turns_of(RECORDED / f"{name}.jsonl")
    path = tmp_path / f"{name}.jsonl"
    read: dict[str, Turn] = {}
    offset = position = 0
    for line in data.splitlines(keepends=True):
        for size in (position + len(line) // 2, position + len(line)):
            path.write_bytes(data[:size])
            turns = turns_of(path, offset)
            read |= {turn.id: turn for turn in turns}
            offset = turns[-1].start if turns else offset
        position += len(line)
    assert list(read.values()) == whole


def test_text_by_claude_code_is_not_a_prompt(tmp_path: Path) -> None:
    lines = Lines().prompt("One").answer("1").add("system", subtype="local_command")
    for content in ("Plain words of the client", ["<command-name>"], None):
        lines.entries[-1]["content"] = content
        (turn,) = turns_of(lines.write(tmp_path))
        assert (turn.prompt, turn.answer) == ("One", "1")
    text = "<system-reminder>a</system-reminder>one<system-reminder>b\n</system-reminder> two <system-reminder>"
    (turn,) = turns_of(Lines().prompt(text).answer("ok").write(tmp_path))
    assert turn.prompt == "one two <system-reminder>"
    image = {"type": "image", "source": {"type": "base64", "data": "A" * 1000}}
    (turn,) = turns_of(Lines().add("user", [image]).answer("A cat.").write(tmp_path))
    assert (turn.prompt, turn.answer, turn.is_memory) == ("[image]", "A cat.", True)
    (turn,) = turns_of(RECORDED / "background-skill.jsonl")  # a notification belongs to its turn
    assert turn.prompt_id == "35ffb0d4-0b61-4e7e-a1c0-f8c23568ad1b"
    assert turn.other_prompt_ids == {"57608ddf-68f6-4744-a3f7-e8149b50769e"}


def test_the_skip_marker(tmp_path: Path) -> None:
    for prompt, is_memory in {
        "#skip": False, "secret #skip": False, "#skip: secret": False, "a\n#skip.\nb": False,
        "(see #skip-tests)": True, "use #skipping": True, "issue x#skip": True, "skip": True,
    }.items():  # fmt: skip
        (turn,) = turns_of(Lines().prompt(prompt).answer("Fine.").write(tmp_path))
        assert turn.is_memory is is_memory, prompt


def test_compaction_and_resume_leave_the_turn_whole(tmp_path: Path) -> None:
    summary = "This session is being continued from a previous conversation that ran out of context."
    lines = Lines().prompt("Fix it", "p1").call("Bash", "t", command="make")
    lines.add("system", subtype="compact_boundary", content="Conversation compacted")
    lines.prompt(summary, isCompactSummary=True).result("t", "ok").answer("Fixed.")
    (turn,) = turns_of(lines.write(tmp_path))
    assert (turn.prompt, turn.answer, turn.tools[0].result) == ("Fix it", "Fixed.", "ok")


def test_no_key_is_cut_in_two(tmp_path: Path) -> None:
    key = "ghp_" + "a1B2" * 9
    for before in (1960, 1990, 2960, 2990):
        text = f"{'x' * before} {key} {'y ' * 6000}{key}{' z' * (before // 2)}"
        lines = Lines().prompt("Read it").call("Bash", "t", command=text)
        (turn,) = turns_of(lines.result("t", f"{text}\n").write(tmp_path))
        for kept in (turn.tools[0].result, turn.tools[0].input["command"]):
            assert "a1B2" not in kept


@pytest.mark.parametrize(
    "text",
    [
        "<system-reminder>" * 60_000,
        "<command-name>" * 70_000,
        "<command-name>" + " " * 1_000_000,
        "<command-name>/x</command-name>" + "<command-args>" * 70_000,
        "<local-command-stdout>" * 45_000,
        "/x " + "</local-command-stdout>" * 45_000,
    ],
    ids=lambda text: text[:20],
)
def test_a_million_characters_of_tags_are_read_in_one_go(tmp_path: Path, text: str) -> None:
    path = Lines().prompt("/x").prompt(text).answer("ok").write(tmp_path)
    assert turns_of(path)[-1].answer.endswith("ok")


def test_calls_of_a_sub_agent_inside_the_session(tmp_path: Path) -> None:
    """2.1.42 wrote them as `progress`, some twice, and also into a file of their own."""
    recorded = RECORDED / "sub-agent-2.1.42.jsonl"
    path = tmp_path / recorded.name
    shutil.copy(recorded, path)
    (turn,) = turns_of(path)
    shown = [
        "Task `Round amounts` → Amounts are rounded. One test fails: test_half_a_cent.",
        "↳ Read /home/shop/src/money.py",
        "↳ Edit /home/shop/src/money.py",
        "↳ Bash `pytest -q tests/test_money.py` → failed: 1 failed: test_half_a_cent",
    ]
    assert [tool_line(call, (), str) for call in turn.tools] == shown
    assert [tool.name for one in messages_of(turn, path, str) for tool in one.tools] == ["Task", "Task"]
    assert [tool.name for one in read_messages(path, str) for tool in one.tools] == ["Task", "Task"]
    own = []
    for line in path.read_text().splitlines():
        inside = json.loads(line).get("data", {}).get("message")
        own += [json.dumps({**inside, "isSidechain": True}) + "\n"] if inside else []
    agents = path.with_suffix("") / "subagents"
    agents.mkdir(parents=True)
    more = Lines().call("Glob", "toolu_01ShopMore", pattern="*.py").text
    (agents / "agent-a1b2c3d.jsonl").write_text("".join(own) + more)
    (turn,) = turns_of(path)
    assert [tool_line(call, (), str) for call in turn.tools] == [*shown, "↳ Glob `*.py` → no result"]


steps = st.sampled_from(["call", "result", "same", "own", "answer", "noise"])


@settings(max_examples=50 if IN_CI else 15)
@given(st.lists(st.tuples(steps, st.integers(0, 3)), max_size=20))
def test_progress_adds_calls(tmp_path_factory: pytest.TempPathFactory, found: list[tuple[str, int]]) -> None:
    lines, plain = Lines().prompt("Look", "p1"), Lines().prompt("Look", "p1")
    called = set()
    for step, number in found:
        inside = Lines()
        if step == "answer":
            lines.answer(f"so {number}")
            plain.entries.append(lines.entries[-1])
        elif step == "own":
            lines.call("Read", f"own{number}", file_path="a")
            plain.entries.append(lines.entries[-1])
        elif step == "noise":
            lines.add("progress", data=[None, {"type": "agent_progress", "message": number}, {}, "x"][number])
        else:
            if step == "result":
                inside.result(f"t{number}", "ok")
            else:
                called.add(number)
                inside.call("Edit", f"t{number}", file_path=f"{number}.py")
            own = {name: inside.entries[0][name] for name in ("type", "message", "uuid")}
            lines.add("progress", data={"type": "agent_progress", "message": own, "agentId": "a1"})
    directory = tmp_path_factory.mktemp("progress")
    (turn,) = turns_of(lines.write(directory))
    assert sorted(call.input["file_path"] for call in turn.tools if call.by_agent) == [f"{one}.py" for one in sorted(called)]
    (expected,) = turns_of(plain.write(directory))
    own = [call.name for call in turn.tools if not call.by_agent]
    assert own == [call.name for call in expected.tools]
    assert (turn.id, turn.prompt, len(turn.entries)) == (expected.id, expected.prompt, len(expected.entries))
    assert turn.answer.endswith(expected.answer.rpartition("\n\n")[2])


def test_a_sub_agent_can_hold_anything(tmp_path: Path) -> None:
    lines = Lines().prompt("Look").call("Agent", "t1", description="search")
    path = lines.result("t1", "ok", toolUseResult={"agentId": "../../etc"}).write(tmp_path)
    assert len(turns_of(path)[0].tools) == 1
    lines = Lines().prompt("Look").call("Agent", "t1", description="search")
    path = lines.result("t1", "ok", toolUseResult={"agentId": "a1"}).write(tmp_path)
    agents = path.with_suffix("") / "subagents"
    agents.mkdir(parents=True)
    broken = b"{broken\n\xff\n" + Lines().call("Grep", "g", pattern="x").text.encode() + b'{"type'
    (agents / "agent-a1.jsonl").write_bytes(broken)
    assert [call.name for call in turns_of(path)[0].tools] == ["Agent", "Grep"]


pieces = st.sampled_from(["prompt", "queued", "answer", "call", "result", "interrupt", "meta", "error"])


@settings(max_examples=50 if IN_CI else 10)
@given(steps=st.lists(pieces, max_size=16), cuts=st.lists(st.floats(0, 1), max_size=4))
def test_reading_in_steps_equals_reading_at_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], cuts: list[float]
) -> None:
    lines = Lines()
    for number, step in enumerate(steps):
        if step == "prompt":
            lines.prompt(f"prompt {number}", f"0000{number:04x}-1111-4222-8333-444444444444")
        elif step == "queued":
            lines.add("attachment", attachment={"type": "queued_command", "prompt": f"too {number}"})
        elif step == "answer":
            lines.answer(f"answer {number}")
        elif step == "call":
            lines.call("Bash", "t", command=f"c{number}")
        elif step == "result":
            lines.result("t", f"r{number}")
        elif step == "interrupt":
            lines.interrupt()
        elif step == "meta":
            lines.prompt(f"meta {number}", isMeta=True)
        else:
            lines.answer("API Error: 529", isApiErrorMessage=True)
    data = lines.text.encode()
    path = tmp_path_factory.mktemp("t") / "s.jsonl"
    path.write_bytes(data)
    whole = {turn.id: turn for turn in turns_of(path)}
    read: dict[str, Turn] = {}
    offset = 0
    for cut in [*sorted(cuts), 1.0]:
        path.write_bytes(data[: int(len(data) * cut)])
        turns = turns_of(path, offset)
        read |= {turn.id: turn for turn in turns}
        offset = turns[-1].start if turns else offset
    assert json.dumps([*map(str, read.values())]) == json.dumps([*map(str, whole.values())])
