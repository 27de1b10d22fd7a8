"""The agents that memkit knows. A new one is a folder here, a line in `AGENTS`, and one in `tools.py`."""

from __future__ import annotations

from pathlib import Path

from memkit.agents.agent import Agent
from memkit.agents.claude_code.agent import ClaudeCodeAgent
from memkit.agents.codex.agent import CodexAgent
from memkit.agents.session_file import SessionFile
from memkit.conversation.entry import Hide

AGENTS: tuple[Agent, ...] = (
    CodexAgent(),
    ClaudeCodeAgent(),  # comes last: it takes every file
)


def agent_at(path: Path) -> Agent:
    """Return the agent that wrote the session at `path`."""
    return next(agent for agent in AGENTS if agent.wrote(path))


def agent_of(session: str) -> Agent:
    """Return the agent of a session by its ID: `ID@NAME`, or an ID of Claude Code."""
    name = session.rpartition("@")[2]
    return next((agent for agent in AGENTS if agent.name == name), AGENTS[-1])


def open_transcript(path: Path, offset: int = 0, hide: Hide | None = None) -> SessionFile:
    """Return the reader of the session at `path` from `offset` on."""
    return agent_at(path).reader(path, offset, hide)


def session_at(path: Path) -> str:
    """Return the ID of the session at `path`."""
    return open_transcript(path).session
