"""The roles of Codex's tools, and the files that a patch of its changes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

from memkit.conversation.turn import Role

PATCH = "apply_patch"
"""The tool that edits files. Older versions run it as a command of the shell."""

ROLES: dict[str, Role] = {
    **dict.fromkeys(("shell", "shell_command", "local_shell", "exec_command", "container.exec"), "shell"),
    PATCH: "edit",
    "view_image": "read",
    "read_file": "read",
    "list_dir": "list",
    "grep_files": "search",
    "spawn_agent": "agent",
}

MOST_FILES = 500
"""The most files of a patch that become calls of their own."""

_FILE = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)
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
    """Return the patch that a call applies, or ""."""
    if name == PATCH:
        return next((value for value in given.values() if isinstance(value, str)), "")
    command = command_of(given) or ""
    return command if "*** Begin Patch" in command and _RUNS_PATCH.match(command) else ""


def edits_of(patch: str, directory: str) -> Iterator[dict[str, Any]]:
    """Yield the input of a call for each file of a patch: `file_path`, absolute if `directory` is known."""
    starts = list(_FILE.finditer(patch))[:MOST_FILES]
    for one, following in zip(starts, [*starts[1:], None], strict=False):
        path = one[1].strip()
        is_absolute = path.startswith(("/", "~")) or path[1:3] == ":\\"
        yield {
            "file_path": path if is_absolute or not directory else f"{directory}/{path}",
            "patch": patch[one.start() : following.start() if following else len(patch)].rstrip("\n"),
        }
