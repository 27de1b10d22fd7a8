"""Turns of Cursor's transcripts: whole, cut, of older versions, and hostile."""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.agents.cursor.transcript import directory_named, time_in, typed_in
from memkit.agents.exchange import messages_of
from memkit.agents.registry import agent_at, agent_of, session_at
from memkit.agents.tools import role_of
from tests.agents.cursor.transcripts import SESSION, Transcript, conversation
from tests.agents.reading import calls_of, check_growing, turns_of
from tests.ci import sized


def test_turns(tmp_path: Path) -> None:
    path = conversation().write(tmp_path)
    assert session_at(path) == f"{SESSION}@cursor"
    first, second = turns_of(path)
    assert (first.prompt, first.answer) == ("Which port does the gateway use?", "It listens on 7443.")
    assert (first.session, first.cwd) == (f"{SESSION}@cursor", "/home/shop")
    assert first.time == datetime(2026, 3, 4, 10, 0, tzinfo=timezone.utc)
    assert calls_of(first) == [
        ("Shell", "pytest -q", "", False),
        ("ApplyPatch", "/home/shop/deploy/gateway.yaml", "", False),
        ("ApplyPatch", "/home/shop/docs/ports.md", "", False),
        ("StrReplace", "/home/shop/README.md", "", False),
        ("Grep", None, "", False),
        ("Glob", None, "", False),
    ]
    assert first.tools[-1].input == {"pattern": "*.md"}
    assert [role_of(one.name) for one in first.tools] == ["shell", "edit", "edit", "edit", "search", "search"]
    assert (second.prompt, second.answer, second.is_memory) == ("Thanks.", "You are welcome.", True)
    assert agent_of(first.session).resume_command(first.session) == ("cursor-agent", "--resume", SESSION)
    assert agent_of("-x@cursor").resume_command("-x@cursor") == ()


def test_the_original_exchange(tmp_path: Path) -> None:
    path = conversation().write(tmp_path)
    shown = [(one.role, one.text) for one in messages_of(turns_of(path)[0], path, str)]
    assert shown == [
        ("user", "Which port does the gateway use?"),
        ("assistant", "I run the tests."),
        ("assistant", ""),
        ("assistant", ""),
        ("assistant", "It listens on 7443."),
    ]


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("Which port?", "Which port?"),
        ("<user_query>\nWhich\nport?\n</user_query>", "Which\nport?"),
        ("<user_info>\nWorkspace Path: /home/shop\n</user_info>\n<rules>x</rules>", ""),
        ('<attached_files>\n<code path="a">x</code>\n</attached_files>\nWhich port?', "Which port?"),
        ("<system_reminder>x</system_reminder>\n<user_query>Why?</user_query>", "Why?"),
        ("<system_notification>\ndone\n</system_notification>\n<user_query>Inform the user.</user_query>", ""),
        ("Is <b>it</b> bold?", "Is <b>it</b> bold?"),
    ],
)
def test_what_was_typed(text: str, typed: str) -> None:
    assert typed_in(text) == typed


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("Tuesday, Sep 8, 2026, 1:56 PM (UTC-7)", "2026-09-08T20:56:00+00:00"),
        ("Wednesday, Jan 1, 2025, 12:05 AM (UTC)", "2025-01-01T00:05:00+00:00"),
        ("Monday, Mar 2, 2026, 9:00 AM (UTC+5:30)", "2026-03-02T03:30:00+00:00"),
        ("2026-01-02T03:04:05.000Z", "2026-01-02T03:04:05+00:00"),
        ("Monday, Feb 31, 2026, 9:00 AM (UTC)", None),
        ("Monday, Mar 2, 2026, 9:00 AM (UTC+99)", None),
        ("Montag, Mai 2, 2026, 9:00 AM (UTC)", None),
    ],
)
def test_times(text: str, time: str | None) -> None:
    found = time_in(f"<timestamp>{text}</timestamp>\n<user_query>x</user_query>")
    assert (found and found.astimezone(timezone.utc).isoformat()) == time


def test_an_older_transcript_has_the_time_of_its_file(tmp_path: Path) -> None:
    path = Transcript().user("Why?").said("So.").write(tmp_path)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    (turn,) = turns_of(path)
    assert turn.time is not None
    assert turn.time.timestamp() <= 1_700_000_000


def test_a_turn_that_was_aborted(tmp_path: Path) -> None:
    path = Transcript().prompt("Wait.").said("", ("Shell", {"command": "sleep 9"})).end("aborted").write(tmp_path)
    assert [(one.prompt, one.interrupted) for one in turns_of(path)] == [("Wait.", True)]


def test_a_transcript_with_results(tmp_path: Path) -> None:
    use = {"type": "tool_use", "id": "t1", "name": "run_terminal_cmd", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": [{"type": "text", "text": "no"}]}
    transcript = Transcript().prompt("List.").add(role="assistant", message={"content": [use]})
    (turn,) = turns_of(transcript.add(role="user", message={"content": [result]}).said("Done.").write(tmp_path))
    assert (calls_of(turn), turn.answer) == ([("run_terminal_cmd", "ls", "no", True)], "Done.")


def test_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = conversation().write(tmp_path)
    trusted = path.parents[2] / ".workspace-trusted"
    trusted.unlink()
    assert turns_of(path)[0].cwd == ""
    path.write_text(Transcript().user("<user_info>\nWorkspace Path: /srv/my shop\n</user_info>\nWhy?").text)
    assert turns_of(path)[0].cwd == "/srv/my shop"
    (tmp_path / "a.b_c").mkdir()
    slug = "-".join([*tmp_path.parts[1:], "a-b-c"]).replace("_", "-")
    assert directory_named(slug) == str(tmp_path / "a.b_c")
    (tmp_path / "a-b" / "c").mkdir(parents=True)
    assert directory_named(slug) == ""
    monkeypatch.setattr("memkit.agents.cursor.transcript.MOST_LOOKS", 0)
    assert directory_named("tmp") == ""


def test_the_transcripts_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CURSOR_DATA_DIR", str(tmp_path))
    cursor = agent_of("1@cursor")
    assert list(cursor.transcripts()) == []
    path = conversation().write(tmp_path)
    part = path.parent / "subagents" / "1.jsonl"
    part.parent.mkdir()
    part.write_text(conversation().text)
    assert list(cursor.transcripts()) == [path]
    assert (agent_at(part).name, turns_of(part)) == ("cursor", [])
    copy = tmp_path / "full.jsonl"
    copy.write_text(conversation().text)
    assert agent_at(copy).name == "cursor"


@settings(max_examples=sized(20, 50, 200))
@given(cut=st.integers(0, 3000))
def test_a_growing_file_gives_the_same_turns(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = conversation().write(tmp_path_factory.mktemp("r"))
    check_growing(path, cut)


_KEYS = st.sampled_from("type role message content text name input id tool_use_id status error path patch".split())
_VALUES = st.recursive(
    st.none() | st.booleans() | st.text(max_size=8) | st.sampled_from("user assistant tool_use ApplyPatch".split()),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(_KEYS, one, max_size=3),
)
_PARTS = st.builds(
    lambda kind, name, more: {"type": kind, "name": name, **more},
    st.sampled_from("text tool_use tool_result image x".split()),
    st.sampled_from(("Shell", "ApplyPatch", "Write", "Glob")),
    st.dictionaries(_KEYS, _VALUES, max_size=3),
)
_LINES = (
    st.dictionaries(_KEYS, _VALUES, max_size=4).map(json.dumps)
    | st.text(max_size=20)
    | st.builds(
        lambda role, parts: json.dumps({"role": role, "message": {"content": parts}}),
        st.sampled_from(("user", "assistant")), st.lists(_PARTS, max_size=3),
    )
)  # fmt: skip


@settings(max_examples=sized(20, 60, 300))
@given(lines=st.lists(_LINES, max_size=8), order=st.randoms(use_true_random=False), cut=st.integers(1, 4000))
def test_no_line_stops_the_reader(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], order: Any, cut: int
) -> None:
    lines += conversation().lines
    order.shuffle(lines)
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    path = tmp_path_factory.mktemp("agent-transcripts") / "agent-transcripts" / f"{SESSION}.jsonl"
    path.parent.mkdir()
    for content in (data, data[:cut]):
        path.write_bytes(content)
        for turn in turns_of(path):
            messages_of(turn, path, str)
