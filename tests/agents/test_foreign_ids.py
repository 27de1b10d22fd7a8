"""A session file of one agent, which anybody may have written, does not pass as another agent's."""

from __future__ import annotations

import json
from pathlib import Path

from memkit.agents.codex.rollout import _result
from memkit.agents.registry import CLAUDE_CODE, agent_of, is_by, open_transcript
from memkit.conversation.turn import turn_id

NAME = "5e55aaaa-1111-4111-8111-aaaaaaaaaaaa"


def test_a_transcript_of_claude_code_names_no_other_agent(tmp_path: Path) -> None:
    entry = {
        "type": "user", "uuid": NAME, "sessionId": f"{NAME}@codex", "requestSessionId": f"{NAME}@codex",
        "timestamp": "2026-11-20T10:00:00Z", "message": {"role": "user", "content": "Which port?"},
    }  # fmt: skip
    path = tmp_path / f"{NAME}@codex.jsonl"
    path.write_text(json.dumps(entry) + "\n")
    transcript = open_transcript(path)
    (found,) = transcript
    for session in (transcript.session, found.session, found.origin):
        assert agent_of(session) is CLAUDE_CODE
        assert not is_by(session, "codex")


def test_a_turn_of_another_agent_replaces_none_of_claude_code() -> None:
    assert turn_id(f"{NAME}@codex", NAME, "", "") != turn_id(NAME, NAME, "", "")
    assert turn_id(f"{NAME}@codex", NAME, "", "") == turn_id(f"{NAME}@codex", NAME, "", "")


def test_lines_like_headers_of_an_output_take_no_time() -> None:
    text = ("A" + " " * 60 + "\n") * 9  # took hours
    assert _result(text) == (text, False, "")
    assert _result("Wall time: 0.5 seconds\nProcess exited with code 2\nOutput:\nno\n") == ("no\n", True, "")
