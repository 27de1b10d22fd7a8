"""The role of each tool by its name, as archives and day files record it."""

from __future__ import annotations

from memkit.agents.codex.tools import ROLES as CODEX_ROLES
from memkit.agents.copilot.tools import ROLES as COPILOT_ROLES
from memkit.agents.cursor.tools import ROLES as CURSOR_ROLES
from memkit.agents.gemini.tools import ROLES as GEMINI_ROLES
from memkit.agents.opencode.tools import ROLES as OPENCODE_ROLES
from memkit.conversation.turn import Role

SHELL = "Bash"
"""The tool of Claude Code that runs a command."""

_ROLES: dict[str, Role] = {
    **CODEX_ROLES,
    **COPILOT_ROLES,
    **CURSOR_ROLES,
    **GEMINI_ROLES,
    **OPENCODE_ROLES,
    SHELL: "shell",
    "REPL": "shell",
    "Eval": "shell",
    "Edit": "edit",
    "MultiEdit": "edit",
    "Write": "edit",
    "NotebookEdit": "edit",
    "Read": "read",
    "LS": "list",
    "Glob": "search",
    "Grep": "search",
    "Agent": "agent",
    "Task": "agent",
    "Skill": "skill",
}


def role_of(tool: str) -> Role:
    """Return the role of a tool; `other` if it is unknown."""
    return _ROLES.get(tool, "other")
