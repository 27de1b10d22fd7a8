"""The roles of OpenCode's tools, and their input and outcome with the names that memkit reads."""

from __future__ import annotations

from memkit.agents.fields import Fields, fields
from memkit.agents.patches import PATCH, edits_of
from memkit.conversation.turn import Role

ROLES: dict[str, Role] = {
    **dict.fromkeys(("edit", "write", "multiedit", "patch", PATCH), "edit"),
    **dict.fromkeys(("glob", "grep", "codesearch"), "search"),
    "bash": "shell", "read": "read", "list": "list", "task": "agent", "skill": "skill",
}


def inputs_of(name: str, given: Fields, directory: str) -> list[Fields]:
    """Return the input of a call: one for each file of a patch."""
    patch = given.get("patchText")
    if name in ("patch", PATCH) and isinstance(patch, str):
        return list(edits_of(patch, directory)) or [given]
    return [{"file_path" if key == "filePath" else key: value for key, value in given.items()}]


def has_failed(state: Fields) -> bool:
    """Return whether a call failed, or a command was stopped or has an exit status."""
    metadata = fields(state.get("metadata"))
    return state.get("status") == "error" or ("exit" in metadata and metadata["exit"] != 0)
