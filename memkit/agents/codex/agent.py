"""OpenAI's Codex CLI as one of the agents."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from memkit.agents.agent import Agent
from memkit.agents.codex.rollout import NAME, Rollout
from memkit.files import open_regular

_ID = re.compile(rf"([0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})@{NAME}")
_FIRST_LINE = re.compile(rb'\{[^{}]{0,200}"type": ?"session_meta"')


class CodexAgent(Agent):
    """Codex writes `sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl`, in `CODEX_HOME` or `~/.codex`."""

    name = NAME
    title = "Codex"
    reader = Rollout

    def transcripts(self) -> Iterable[Path]:
        """Return the files of all sessions on this machine, also of archived ones."""
        home = Path(os.environ.get("CODEX_HOME") or "~/.codex").expanduser()
        for folder in ("sessions", "archived_sessions"):
            yield from sorted((home / folder).rglob("rollout-*.jsonl"))

    def wrote(self, path: Path) -> bool:
        """Return whether the file has the name of a rollout, or begins like one."""
        if path.name.startswith("rollout-"):
            return True
        try:
            with os.fdopen(open_regular(os.path.realpath(path)), "rb") as file:
                return _FIRST_LINE.match(file.read(400)) is not None
        except OSError:
            return False

    def resume_command(self, session: str) -> tuple[str, ...]:
        """Return the program that resumes a session, with its arguments."""
        match = _ID.fullmatch(session)
        return ("codex", "resume", match[1]) if match else ()
