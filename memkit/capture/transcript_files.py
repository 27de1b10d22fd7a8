"""Where the client keeps transcripts: those of sessions, and beside each those of its sub-agents."""

from __future__ import annotations

from pathlib import Path

from memkit.errors import NotFoundError


def subagent_path(transcript: Path, agent: str) -> Path | None:
    """The transcript of a sub-agent that `transcript` started; None if it has none of its own.

    Today's client writes `<session>/subagents/agent-<id>.jsonl` beside `<session>.jsonl`.
    """
    if not agent or not agent.replace("-", "").isalnum():
        return None
    path = transcript.with_suffix("") / "subagents" / f"agent-{agent}.jsonl"
    return path if path.is_file() else None


def transcripts_in(path: Path) -> list[Path]:
    """The session transcripts at or below `path`, sorted; sub-agents' files belong to their sessions."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise NotFoundError(f"no such file or directory: {path}")
    return sorted(
        found
        for found in path.rglob("*.jsonl")
        if found.is_file() and "subagents" not in found.relative_to(path).parts
    )
