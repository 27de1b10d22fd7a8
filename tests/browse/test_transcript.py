"""The original exchange, found by any of its names, without its secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memkit.browse.transcript import Original, around, find_transcript, read_messages
from memkit.capture.sessions import Session, Sessions
from memkit.conversation.turn import Message, Turn
from memkit.errors import AmbiguousIdError, NotFoundError, TranscriptError
from memkit.paths import Home
from memkit.privacy.redact import redact

SESSION = "fd0aee29-7d4e-4b8a-9f15-0c6d2e8b7a44"


def unchanged(text: str) -> str:
    return text


def line(number: int, role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {
        "type": role,
        "uuid": f"{number:08x}-aaaa-4bbb-8ccc-000000000000",
        "sessionId": SESSION,
        "timestamp": f"2026-11-20T10:00:{number:02d}.000Z",
        "message": {"role": role, "content": content},
        **fields,
    }


def conversation() -> list[dict[str, Any]]:
    """Three turns; the second one calls a tool."""

    def prompt(number: int, text: str, turn: int) -> dict[str, Any]:
        prompt_id = f"{turn}{turn:07d}-1111-4222-8333-444455556666"
        return line(number, "user", text, promptId=prompt_id)

    def said(number: int, text: str) -> dict[str, Any]:
        return line(number, "assistant", [{"type": "text", "text": text}])

    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make all"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "built", "is_error": True}
    return [
        prompt(1, "first question", 1), said(2, "first answer"), prompt(3, "second question", 2),
        line(4, "assistant", [call]), line(5, "user", [result]),
        line(6, "user", "a note of the client", isMeta=True), said(7, "second answer"),
        prompt(8, "third question", 3), said(9, "third answer"),
    ]  # fmt: skip


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(entry) + "\n" for entry in lines))
    return path


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    return write(tmp_path / "projects" / "-work" / f"{SESSION}.jsonl", conversation())


def said(messages: list[Message]) -> list[str]:
    return [
        message.text or " ".join(t.name if t.result is None else t.result for t in message.tools)
        for message in messages
    ]


def find_turn(path: Path, name: str) -> Turn:
    found = Original(path.stem, path).find_turn(name)
    assert isinstance(found, Turn)
    return found


ALL = ["first question", "first answer", "second question", "Bash", "built", "second answer",
       "third question", "third answer"]  # fmt: skip


def test_everything_in_order(transcript: Path) -> None:
    messages = list(read_messages(transcript, unchanged))
    assert said(messages) == ALL
    roles = ["user", "assistant", "user", "assistant", "tool", "assistant", "user", "assistant"]
    assert [message.role for message in messages] == roles
    assert len({message.turn for message in messages}) == 3
    call, result = [m.as_dict() for m in messages[3:5]]
    assert call["tools"] == [{"name": "Bash", "input": {"command": "make all"}}]
    assert result["tools"] == [{"name": "Bash", "result": "built", "is_error": True}]
    assert result["time"] == "2026-11-20T10:00:05+00:00"
    assert list(call) == ["role", "time", "turn", "text", "tools"]
    with pytest.raises(TranscriptError, match=r"gone\.jsonl"):
        list(read_messages(transcript.with_name("gone.jsonl"), unchanged))


def test_entries_that_a_resume_repeats_are_shown_once(transcript: Path) -> None:
    lines = conversation()
    write(transcript, lines[:7] + lines[:7] + lines[7:])
    assert said(list(read_messages(transcript, unchanged))) == ALL
    second = find_turn(transcript, "2")
    assert said(around(read_messages(transcript, unchanged), second.id, 0)) == ALL[2:6]


def test_a_turn_by_any_of_its_names(transcript: Path) -> None:
    wanted = find_turn(transcript, "20000002")
    assert wanted.prompt == "second question"
    for name in (wanted.id, "20000002-1111-4222-8333-444455556666", "2000", "00000003-aaaa", "00000003"):
        assert find_turn(transcript, name).id == wanted.id
    with pytest.raises(NotFoundError, match="no turn 'ffff'"):
        find_turn(transcript, "ffff")
    with pytest.raises(AmbiguousIdError, match="matches several"):
        find_turn(transcript, "0000000")


@pytest.mark.parametrize(("context", "expected"), [(0, ALL[2:6]), (1, ALL[1:7]), (2, ALL[:8]), (100, ALL)])
def test_around_a_turn(transcript: Path, context: int, expected: list[str]) -> None:
    turn = find_turn(transcript, "20000002")
    assert said(around(read_messages(transcript, unchanged), turn.id, context)) == expected


def test_secrets_are_redacted(transcript: Path) -> None:
    key = "sk-ant-api03-" + "aB3dE5gH7jK9mN1pQ3rS"
    given = {
        "command": f"curl -H 'x-api-key: {key}'",
        "password": "hunter2-hunter2",
        "nested": [{"api_key": "q8Zp-77xL-02mn", "path": "deploy/gateway.yaml"}],
    }
    write(
        transcript,
        [
            line(1, "user", f"my key is {key} <private>and my name</private>"),
            line(2, "assistant", [
                {"type": "text", "text": f"I see {key}"},
                {"type": "tool_use", "id": "t", "name": "Bash", "input": given},
            ]),
            line(3, "user", [{"type": "tool_result", "tool_use_id": "t", "content": f"got {key}"}]),
        ],
    )  # fmt: skip
    messages = list(read_messages(transcript, redact))
    text = json.dumps([message.as_dict() for message in messages])
    for secret in (key, "my name", "hunter2", "q8Zp-77xL"):
        assert secret not in text
    assert text.count("[redacted:anthropic-key]") == 4
    assert "deploy/gateway.yaml" in text


def test_finding_a_transcript(transcript: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where memkit saw the session, then where the client keeps its transcripts."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "nowhere"))
    home = Home(str(tmp_path / "home"))
    assert find_transcript(home, SESSION) is None
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    for name in (SESSION, SESSION[:8], SESSION[:1]):
        assert find_transcript(home, name) == transcript
    for name in ("0" * 8, "*", "?", "[a-z]", "../", "/", "é"):
        assert find_transcript(home, name) is None
    Sessions(home).save(Session(SESSION, str(transcript.with_name("old.jsonl"))))  # it moved
    assert find_transcript(home, SESSION) == transcript
    other = write(transcript.with_name("fd0affff.jsonl"), conversation())
    with pytest.raises(AmbiguousIdError, match="matches several"):
        find_transcript(home, "fd0a")
    assert find_transcript(home, SESSION) == transcript
    other.unlink()
    elsewhere = write(tmp_path / "elsewhere" / f"{SESSION}.jsonl", conversation())
    Sessions(home).save(Session(SESSION, str(elsewhere)))
    assert find_transcript(home, SESSION[:8]) == elsewhere
