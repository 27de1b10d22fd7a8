"""What each tool is for, by its name. A new agent adds its table: archives and day files have the names."""

from __future__ import annotations

from memkit.agents.claude_code import tools as claude_code
from memkit.conversation.turn import Role

_ROLES: dict[str, Role] = {**claude_code.ROLES}


def role_of(tool: str) -> Role:
    """Return what the tool of that name is for; `other` if no agent's table has it."""
    return _ROLES.get(tool, "other")
