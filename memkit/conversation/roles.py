"""What a tool is for, whatever an agent calls it. `memkit.agents.roles` knows the names."""

from __future__ import annotations

from typing import Literal

Role = Literal["shell", "edit", "read", "list", "search", "agent", "skill", "other"]
"""`list` shows a directory; `search` looks for files or in them; `agent` starts a sub-agent."""

NAMES_FILE: frozenset[Role] = frozenset({"edit", "read", "list"})
"""The roles of tools whose main input is a path."""
