"""The task of a sub-agent that starts. Claude Code tells its hook the agent's type, not its task."""

from __future__ import annotations

import os
from pathlib import Path

from memkit.agents.claude_code.transcript import Transcript
from memkit.agents.tools import role_of
from memkit.errors import TranscriptError
from memkit.files import read_regular
from memkit.privacy.redact import skips, without_private
from memkit.state import parse_json

TAIL_BYTES = 1024 * 1024
"""The end of the session's transcript in which to look for the call."""

MOST_AGENTS = 1000
_META = ".meta.json"
_META_BYTES = 65_536


def starting_task(transcript: Path) -> str:
    """Return the prompt of the first call of a sub-agent that has not started; "" if there is none.

    `transcript` is the session's. Claude Code writes the call there before the agent starts, and
    `<session>/subagents/agent-<id>.meta.json` when it has. A skill in a context of its own has no call.
    A task from a prompt with `#skip` or a private part is not looked up.
    """
    started = _started(transcript.with_suffix("") / "subagents")
    calls: dict[str, str] = {}
    may_look_up = False  # the prompt that the task comes from can be before the end that is read
    try:
        offset = max(0, os.path.getsize(transcript) - TAIL_BYTES)
        for entry in Transcript(transcript, offset):
            if (typed := entry.typed) is not None:
                calls.clear()  # what was called before and has not started never will
                may_look_up = not skips(typed) and without_private(typed) == typed
            for block in entry.blocks:
                if block.kind == "tool_use" and role_of(block.tool_name) == "agent":
                    calls[block.tool_id] = str(block.tool_input.get("prompt", ""))
                elif block.kind == "tool_result" and block.is_error:
                    calls.pop(block.tool_id, None)
    except (OSError, TranscriptError):  # there is no transcript yet
        return ""
    if not may_look_up:
        return ""
    return next((task for call, task in calls.items() if call not in started), "")


def _started(directory: Path) -> set[str]:
    found: set[str] = set()
    try:
        names = [name for name in os.listdir(directory) if name.endswith(_META)][:MOST_AGENTS]
    except OSError:  # no agent has started yet
        return found
    for name in names:
        try:
            value = parse_json(read_regular(str(directory / name), _META_BYTES))
            found.add(str(value["toolUseId"]))
        except (OSError, ValueError, KeyError, TypeError):  # of another version, or half-written
            continue
    return found
