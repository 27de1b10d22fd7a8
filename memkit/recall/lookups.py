"""Turns that only asked the memory. Their answers repeat other entries, which come first."""

from __future__ import annotations

from memkit.agents.claude_code.omitted import asks_memory
from memkit.journal.tool_lines import read_call
from memkit.journal.turn_parts import read_parts


def only_asked(section: str) -> bool:
    """Return whether all tool calls of a turn's `section`, if any, asked memkit or read its files."""
    calls = read_parts(section).tools
    return bool(calls) and all(map(_is_lookup, calls))


def _is_lookup(line: str) -> bool:
    """Return whether a call asked memkit, from its line in a day file: name, input, and outcome."""
    call = read_call(line.removeprefix("- "))
    return asks_memory(call.name, {"skill" if call.name == "Skill" else "command": call.given})
