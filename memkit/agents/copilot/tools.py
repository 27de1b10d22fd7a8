"""The roles of Copilot's tools, and their input with the names that memkit reads."""

from __future__ import annotations

from typing import Any

from memkit.agents.patches import PATCH, edits_of, patch_of
from memkit.conversation.turn import Role

POLLS = frozenset("read_bash write_bash stop_bash read_powershell write_powershell stop_powershell".split())
"""The tools that go on with a command, named by `shellId`."""

ROLES: dict[str, Role] = {
    **dict.fromkeys(("bash", "powershell", *POLLS), "shell"),
    **dict.fromkeys(("create", "edit", "insert", "str_replace"), "edit"),
    "view": "read",
    **dict.fromkeys(("grep", "rg", "glob"), "search"),
    "task": "agent",
    "skill": "skill",
}

_EDITOR = "str_replace_editor"
"""One tool of some models that views, creates, and edits: its `command` says what."""


def calls_of(name: str, given: object, directory: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the name and the input of a call: one input for each file of a patch."""
    inputs = dict(given) if isinstance(given, dict) else {"input": given}
    if name == PATCH:
        return name, list(edits_of(patch_of(inputs), directory)) or [inputs]
    if name == _EDITOR:
        name = str(inputs.pop("command", name))
    if ROLES.get(name) in ("edit", "read") and "path" in inputs:
        inputs = {"file_path": inputs.pop("path")} | inputs
    return name, [inputs]
