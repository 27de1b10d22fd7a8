"""The names of Claude Code's tools."""

from __future__ import annotations

from memkit.conversation.turn import Role

SHELL = "Bash"

ROLES: dict[str, Role] = {
    SHELL: "shell",
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
    """Return what the tool of that name is for."""
    return ROLES.get(tool, "other")
