"""Entries as an attacker, a bug or a newer client may write them: one bad entry costs one entry."""

from __future__ import annotations

import json
import logging
from typing import Any

import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memkit.agents.claude_code.transcript import Transcript
from memkit.agents.turns import read_turns
from memkit.archive.archive import Archive
from memkit.capture.capture import Capture
from memkit.conversation.values import MAX_DEPTH
from memkit.llm import chat_completions
from memkit.settings import CaptureSettings
from memkit.settings.load import Settings
from tests.builders import SESSION, Lines
from tests.capture.stage import Stage, prompt_id
from tests.ci import sized

pytestmark = pytest.mark.usefixtures("unsynced")

DEPTHS = [1, MAX_DEPTH, 100, 300, 480, 600, 900, 990, 5_000, 100_000]


def nested(depth: int, kind: str) -> str:
    opening, closing = {"list": ("[", "]"), "object": ('{"a":', "}")}[kind]
    return opening * depth + '"x"' + closing * depth


ODD = [
    *(nested(depth, kind) for depth in DEPTHS for kind in ("list", "object")),
    "1" * 5_000, "-1", "1e999", "NaN", "-Infinity", "true", "null", '""', "[]", "{}", "[[]]", '[{"type":"text"}]',
    '"\\ud800"', '"\\udfff\\ud800 \\u0000"', '{"\\ud800": 1}', json.dumps("x" * 5_000), '"/' + "d/" * 3_000 + '"',
    '"..\\/..\\/etc\\/passwd"', '"\\u202e\\u2028\\u001b]52;c;AA\\u0007"', '"9999-12-31T23:59:59-23:59"',
    '"0001-01-01T00:00:00+23:59"', json.dumps("a" * 300),
]  # fmt: skip

TEMPLATES = [
    '{"type":"user","uuid":"%s","promptId":"q","sessionId":"s","message":{"content":@}}',
    '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":@}}]}}',
    '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Skill","input":{"skill":@}}]}}',
    '{"type":"assistant","message":{"content":[{"type":"tool_use","id":@,"name":@,"input":@}]}}',
    '{"type":"assistant","message":{"content":[{"type":"thinking","thinking":@},{"type":"text","text":@},{"type":@}]}}',
    '{"type":"user","toolUseResult":{"agentId":@},"message":{"content":[{"type":"tool_result","tool_use_id":"t","content":@}]}}',
    '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":@,"content":[@,{"text":@}],"is_error":@}]}}',
    '{"type":"user","timestamp":@,"cwd":@,"gitBranch":@,"sessionId":@,"uuid":@,"promptId":@,"message":{"content":"odd"}}',
    '{"type":"user","origin":@,"isMeta":@,"message":@}',
    '{"type":"user","agentId":@,"isSidechain":@}',
    '{"type":"attachment","attachment":{"type":"queued_command","prompt":@,"origin":@,"commandMode":@}}',
    '{"type":"system","subtype":"local_command","content":@}',
    '{"type":"assistant","message":{"model":@,"content":@}}',
    '{"type":@,"message":{}}',
    "@",
]

bad_lines = st.builds(
    lambda template, odd: "".join(
        part + (odd[number % len(odd)] if number < template.count("@") else "")
        for number, part in enumerate(template.split("@"))
    ),
    st.sampled_from(TEMPLATES),
    st.lists(st.sampled_from(ODD), min_size=1, max_size=4),
)


@settings(max_examples=sized(8, 30, 75))
@given(lines=st.lists(bad_lines, min_size=1, max_size=3))
@example(lines=[TEMPLATES[1].replace("@", nested(480, "object"))])
@example(lines=[TEMPLATES[5].replace("@", json.dumps("a" * 300))])
def test_the_other_turns_survive(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    stage = Stage(tmp_path_factory.mktemp("s").resolve())
    before = Lines().prompt("Before", prompt_id(1)).call("Read", "r", file_path="a.py").result("r", "text")
    before.answer("The first.")
    later = Lines().prompt("After", prompt_id(2)).answer("The last.")
    for number, entry in enumerate(later.entries):
        entry["uuid"] = f"{number:08x}-bbbb-4bbb-8ccc-0123456789ab"
    text = before.text + "\n".join(lines) + "\n" + later.text
    stage.transcript.write_text(text)
    chosen = Settings(capture=CaptureSettings(exclude=["*.secret"]))
    captured = Capture(stage.home, chosen).import_file(stage.transcript, stage.project)
    titles = dict(stage.turns)
    assert titles["After"] == "The last."
    assert "Before" in titles
    archived = {turn.messages[0].text for turn in Archive(stage.home).turns(SESSION)}
    assert {"Before", "After"} <= archived
    skipped = sum(captured.skipped.values())
    assert len(list(Transcript(stage.transcript))) >= len(text.splitlines()) - skipped - len(lines)
    again = Capture(stage.home, chosen).import_file(stage.transcript, stage.project)
    assert again.written == 0


@pytest.mark.parametrize("depth", [480, 900, 100_000])
def test_a_session_survives_a_deep_entry(stage: Stage, depth: int, caplog: pytest.LogCaptureFixture) -> None:
    lines = Lines().prompt("One", prompt_id(1)).call("Bash", "t", command="make").result("t", "ok").answer("1")
    deep = TEMPLATES[1].replace("@", nested(depth, "object"))
    with caplog.at_level(logging.WARNING):
        stage.transcript.write_text(lines.text + deep + "\n")
        stage.handle("Stop", prompt_id=prompt_id(1), message="1", late=True)
        lines.prompt("Two", prompt_id(2)).answer("2")
        rest = "".join(json.dumps(entry) + "\n" for entry in lines.entries[4:])
        stage.transcript.write_text(stage.transcript.read_text() + rest)
        stage.handle("SessionEnd")
    assert stage.turns == [("One", "1"), ("Two", "2")]
    assert (depth < 1_000) or "nested too deep" in caplog.text


def test_what_is_nested_deeper_than_the_limit_is_left_out(stage: Stage) -> None:
    value: Any = "deep"
    for _ in range(MAX_DEPTH + 5):
        value = {"a": value}
    stage.write(Lines().prompt("One", prompt_id(1)).call("Bash", "t", command="make", more=value))
    (turn,) = read_turns(Transcript(stage.transcript))
    found, depth = turn.tools[0].input["more"], 1
    while isinstance(found, dict):
        found, depth = found["a"], depth + 1
    assert (found, depth) == ("…", MAX_DEPTH)


def test_an_answer_of_a_model_server_that_is_nested_too_deep_is_none() -> None:
    answer = httpx.Response(500, content=nested(100_000, "list").encode())
    assert chat_completions._json(answer) is None
    assert chat_completions._error_message(answer) == "Internal Server Error"
