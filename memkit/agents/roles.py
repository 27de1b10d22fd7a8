"""The role of a tool by its name, as archives and day files have it. A new agent adds its table here."""

from __future__ import annotations

from memkit.agents.claude_code import tools as claude_code
from memkit.conversation.roles import Role

_ROLES: dict[str, Role] = {**claude_code.ROLES}


def role_of(tool: str) -> Role:
    """Return what the tool of that name is for; `other` if no agent's table has it."""
    return _ROLES.get(tool, "other")
