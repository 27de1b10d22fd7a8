"""What differs in Codex's hooks: the names in their input, and what their answers may have.

Standard library only, Python 3.9 syntax.
"""

from __future__ import annotations

import os
from typing import Any

NAME = "codex"

EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")
"""The hooks that memkit answers. They mean the same as in Claude Code."""

_ACCEPTED = ("hookEventName", "additionalContext")


def translate(data: dict[str, Any]) -> str:
    """Name session and turn as memkit's readers do; return the event, or "" for one to leave alone."""
    os.environ.pop("CLAUDE_PROJECT_DIR", None)  # of a Claude Code that runs Codex
    session, event = data.get("session_id"), data.get("hook_event_name")
    data["session_id"] = f"{session}@{NAME}" if session else None
    data["prompt_id"] = data.get("turn_id")
    is_by_agent = bool(data.get("agent_id"))  # nobody typed the prompts of a sub-agent
    return event if isinstance(event, str) and event in EVENTS and not is_by_agent else ""


def accepted(answer: dict[str, Any]) -> dict[str, Any]:
    """Return what Codex takes of an answer: one key that it does not know, and it takes nothing."""
    output = answer.get("hookSpecificOutput")
    if not output:
        return answer
    return {**answer, "hookSpecificOutput": {name: output[name] for name in _ACCEPTED if name in output}}
