"""The roles of Codex's tools, and what its calls run."""

from __future__ import annotations

import re
import shlex
from typing import Any

from memkit.agents.patches import PATCH, patch_of
from memkit.conversation.turn import Role

ROLES: dict[str, Role] = {
    **dict.fromkeys(("shell", "shell_command", "local_shell", "exec_command", "container.exec"), "shell"),
    PATCH: "edit",
    "view_image": "read",
    "read_file": "read",
    "list_dir": "list",
    "grep_files": "search",
    "spawn_agent": "agent",
}

_RUNS_PATCH = re.compile(r"(?:cd \S+ && )?(?:apply_patch|applypatch)\b")


def command_of(given: dict[str, Any]) -> str | None:
    """Return the command of a call of the shell, also one given as a list; None for other calls."""
    command = given.get("cmd", given.get("command"))
    if isinstance(command, list):
        words = [word for word in command if isinstance(word, str)]
        is_script = len(words) == 3 and words[1] in ("-lc", "-c", "-Command")
        return words[2] if is_script else shlex.join(words)
    return command if isinstance(command, str) else None


def patch_in(name: str, given: dict[str, Any]) -> str:
    """Return the patch that a call applies, or "". Older versions run PATCH as a command of the shell."""
    if name == PATCH:
        return patch_of(given)
    command = command_of(given) or ""
    return command if "*** Begin Patch" in command and _RUNS_PATCH.match(command) else ""
