"""What is read back from a digest is what went into it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.claude_code.turn import ToolCall
from memkit.journal.digest import FILE_TOOLS, DigestText, FileCall, make_digest, read_turn
from tests.builders import turn_of
from tests.ci import IN_CI

WORDS = st.lists(st.sampled_from(["port", "größe", "7443", "a.py", "→", "so"]), max_size=20)
PATHS = st.text("abcß_./-", min_size=1, max_size=30).filter(lambda path: path[0].isalpha())
CALLS = st.builds(
    ToolCall,
    st.sampled_from([*sorted(FILE_TOOLS), "Bash"]),
    st.builds(lambda path: {"file_path": path}, PATHS),
    result=st.sampled_from([None, "", "one\ntwo"]),
    is_error=st.booleans(),
    by_agent=st.booleans(),
)


def read(prompt: str, answer: str, *calls: ToolCall) -> DigestText:
    return read_turn(make_digest(turn_of(prompt, answer, *calls), "", str).section)


@settings(max_examples=100 if IN_CI else 15, deadline=None)
@given(WORDS, WORDS, st.lists(CALLS, max_size=12))
def test_a_turn_is_read_back_as_written(asked: list[str], answered: list[str], calls: list[ToolCall]) -> None:
    found = read(" ".join(asked), "\n\n".join(answered), *calls)
    assert found.words == len(asked) + len(answered)
    assert found.calls == [
        FileCall(
            call.input["file_path"],
            call.name not in ("Read", "LS") and call.result is not None and not call.is_error,
        )
        for call in calls
        if call.name in FILE_TOOLS
    ]


def test_a_call_without_a_path_is_not_a_file_call() -> None:
    assert read("why?", "so", ToolCall("Read", {}), ToolCall("LS", {}, "a")).calls == []


def test_a_turn_that_was_interrupted() -> None:
    edit = ToolCall("Edit", {"file_path": "a.py"}, "done")
    section = make_digest(turn_of("do it", "", edit, interrupted=True), "", str).section
    assert "**Interrupted**" in section
    assert read_turn(section) == DigestText(2, [FileCall("a.py", True)])


def test_what_is_left_out_is_not_counted() -> None:
    calls = [ToolCall("Edit", {"file_path": f"{number}.py"}, "done") for number in range(40)]
    found = read("why?", "so it is", *calls)
    assert (found.words, len(found.calls)) == (4, 30)


@pytest.mark.parametrize(
    "section",
    [
        "",
        "### 14:02 x",
        "### x\n**Did**",
        "### x\n**Did**\n\n- ",
        "### x\n**Did** Read ",
        "\n**Did** Read",
    ],
)
def test_a_section_without_a_digest_is_empty(section: str) -> None:
    assert read_turn(section) == DigestText(0, [])
