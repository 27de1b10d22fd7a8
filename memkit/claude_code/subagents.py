"""Where the client keeps the transcripts of sub-agents, beside that of their session."""

from __future__ import annotations

from pathlib import Path

from memkit.paths import is_plain_name


def subagent_path(transcript: Path, agent: str) -> Path | None:
    """The transcript of a sub-agent that `transcript` started; None if it has none of its own.

    Today's client writes `<session>/subagents/agent-<id>.jsonl` beside `<session>.jsonl`.
    """
    if not is_plain_name(agent):  # it comes from outside
        return None
    path = transcript.with_suffix("") / "subagents" / f"agent-{agent}.jsonl"
    return path if path.is_file() else None
