"""Claude Code as one of the agents. Its hooks call memkit, so its sessions are also live ones."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from memkit.agents.agent import Agent
from memkit.agents.claude_code.files import transcripts_directory, transcripts_in
from memkit.agents.claude_code.transcript import Transcript

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class ClaudeCodeAgent(Agent):
    """The agent of all sessions whose IDs name no other one, and of all files that no other one wrote."""

    name = "claude-code"
    title = "Claude Code"
    reader = Transcript

    def transcripts(self) -> Iterable[Path]:
        """Return the paths of all sessions on this machine."""
        directory = transcripts_directory()
        return transcripts_in(directory) if directory.is_dir() else ()

    def wrote(self, path: Path) -> bool:
        """Return True."""
        return True

    def resume_command(self, session: str) -> tuple[str, ...]:
        """Return the program that resumes a session, with its arguments."""
        return ("claude", "--resume", session) if _ID.fullmatch(session) else ()
