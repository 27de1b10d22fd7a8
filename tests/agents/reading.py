"""What the readers of all agents are asked for in tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memkit.agents.registry import open_transcript
from memkit.agents.turns import read_turns
from memkit.conversation.turn import Turn


def turns_of(path: Path, offset: int = 0) -> list[Turn]:
    return list(read_turns(open_transcript(path, offset)))


def calls_of(turn: Turn) -> list[tuple[str, Any, str | None, bool]]:
    return [(one.name, one.input.get("command", one.input.get("file_path")), one.result, one.is_error) for one in turn.tools]


def as_read(turns: list[Turn]) -> list[Any]:
    return [(t.id, t.prompt, t.answer, t.start, t.cwd, t.entries, calls_of(t)) for t in turns]


def check_growing(path: Path, cut: int) -> None:
    """Check that a file gives the same turns if it is read when `cut` bytes are there, and then from its last turn."""
    whole = path.read_bytes()
    turns = turns_of(path)
    path.write_bytes(whole[:cut])
    early = turns_of(path)
    assert {turn.id for turn in early} <= {turn.id for turn in turns}
    path.write_bytes(whole)
    assert as_read(early[:-1] + turns_of(path, early[-1].start if early else 0)) == as_read(turns)
