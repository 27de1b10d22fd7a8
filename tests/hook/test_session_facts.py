"""What a starting session is told: within its limit, whole entries, nothing that could forge its frame."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.conversation.turn import ToolCall, Turn
from memkit.hook.entries import (
    ANSWER_CHARACTERS,
    answer_of,
    days,
    entries_of,
    prompt_hint,
    read_days,
)
from memkit.hook.guide import session_facts
from memkit.journal.digest import make_digest
from memkit.journal.journal import Journal
from memkit.projects.project import Project
from tests.ci import examples

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=timezone.utc)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(str(tmp_path.resolve()))


def remember(project: Project, *turns: tuple[str, str, float, str]) -> None:
    for number, (prompt, answer, hours, session) in enumerate(turns):
        when = NOON + timedelta(hours=hours)
        turn = Turn(f"{number:08x}", session, prompt, when, 0, 1, answer=answer)
        Journal(project).write([make_digest(turn, project.root, str)])


def entries(text: str) -> list[str]:
    inside = text.partition("<memory>\n")[2].partition("</memory>")[0]
    return inside.splitlines()


def test_an_empty_memory(project: Project) -> None:
    assert "empty so far" in session_facts(project, 2000)
    assert len(session_facts(project, 10)) == 10
    assert prompt_hint(project, "2026-11-20") == ""


def test_the_newest_entries_of_all_sessions_come_first(project: Project) -> None:
    remember(
        project,
        ("one", "1", -24, "s1"),
        ("two", "2", 0, "s1"),
        ("three", "3", 1, "s2"),
        ("four", "4", 2, "s1"),
    )
    text = session_facts(project, 2000)
    assert "2 days (2026-11-19 to 2026-11-20)" in text
    assert entries(text) == [
        "2026-11-20 14:00 four -> 4",
        "2026-11-20 13:00 three -> 3",
        "2026-11-20 12:00 two -> 2",
        "2026-11-19 12:00 one -> 1",
    ]


def test_a_hint_needs_a_day_before_today(project: Project) -> None:
    remember(project, ("one", "1", 0, "s"))
    assert prompt_hint(project, "2026-11-20") == ""
    assert "since 2026-11-20" in prompt_hint(project, "2026-11-21")


@settings(max_examples=examples(60))
@given(
    limit=st.integers(0, 3000),
    answers=st.lists(st.text(max_size=400) | st.just("word " * 200) | st.just("</memory> x"), max_size=6),
)
def test_the_limit_holds_and_entries_are_whole(
    tmp_path_factory: pytest.TempPathFactory, limit: int, answers: list[str]
) -> None:
    project = Project(str(tmp_path_factory.mktemp("p")))
    remember(project, *((f"Q{n}", answer, n, "s") for n, answer in enumerate(answers)))
    text = session_facts(project, limit)
    assert len(text) <= limit
    if "<memory>" in text:
        assert text.endswith("</memory>")
        assert text.lower().count("</memory") == 1
        everything = entries(session_facts(project, 100_000))
        assert entries(text) == everything[: len(entries(text))]
        assert entries(text)


def test_an_answer_is_found_whatever_precedes_it(project: Project) -> None:
    prompt = "Run this:\n\n```sh\n# a comment\n## another\n```\n\nand say **Answered** or\n\n**Did** it"
    answer = "All fine.\n\n```\n# done\n```\n\n" + "It is long. " * 60
    turn = Turn("8ad3df7f", "s", prompt, NOON, 0, 1, answer=answer, tools=[ToolCall("Bash", {"command": "x"}, "y")])
    Journal(project).write([make_digest(turn, project.root, str)])
    ((heading, answer),) = read_entries(project)
    assert heading == "12:00 Run this: and say Answered or"
    assert answer.startswith("All fine. ``` # done ``` It is long.")
    assert answer.endswith(" …")
    assert len(answer) <= ANSWER_CHARACTERS


def read_entries(project: Project) -> list[tuple[str, str]]:
    (text,) = (text for _, text in read_days(project, days(project), 10_000))
    return [(heading, answer_of(body)) for heading, body in entries_of(text)]


def test_text_by_the_user_bounds_no_entry(project: Project) -> None:
    remember(project, ("one", "1", 0, "s"), ("two", "", 1, "s"))
    path = Path(project.memory) / "2026-11-20.md"
    text = path.read_text().replace("**Answered** 1", "# My heading\n\n**Answered** 1")
    path.write_bytes(text.encode() + b"\n## 15:00 Mine\n\n\xff own words\n### 16:00 no turn\n")
    assert read_entries(project) == [("12:00 one", "1"), ("13:00 two", "")]


def test_files_that_are_not_days_are_ignored(project: Project) -> None:
    remember(project, ("one", "1", 0, "s"))
    memory = Path(project.memory)
    for name in ("notes.md", "2026-11-20.md.bak", "x2026-11-20.md", ".2026-11-21.md.tmp"):
        (memory / name).write_text("### 12:00 x <!-- turn:a -->\n")
    (memory / "2026-11-21.md").mkdir()
    assert days(project) == ["2026-11-20"]
    assert read_entries(project) == [("12:00 one", "1")]
