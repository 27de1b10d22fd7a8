"""The roles of Cursor's tools, and what their calls say in memkit's words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memkit.agents.patches import edits_of
from memkit.conversation.turn import Role

PATCH = "ApplyPatch"

ROLES: dict[str, Role] = {
    **dict.fromkeys(("Shell", "run_terminal_cmd", "run_terminal_command_v2"), "shell"),
    **dict.fromkeys(("StrReplace", "Write", "Edit", "MultiEdit", PATCH, "Delete", "EditNotebook"), "edit"),
    **dict.fromkeys(("edit_file", "search_replace", "write", "delete_file", "edit_notebook"), "edit"),
    **dict.fromkeys(("Read", "ReadFile", "read_file"), "read"),
    **dict.fromkeys(("LS", "list_dir"), "list"),
    **dict.fromkeys(("Grep", "Glob", "SemanticSearch", "grep", "grep_search", "codebase_search"), "search"),
    **dict.fromkeys(("file_search", "glob_file_search"), "search"),
    **dict.fromkeys(("Task", "Subagent"), "agent"),
}

_NAMES_FILE = ("edit", "read", "list")
_PATHS = tuple("file_path path target_file target_notebook relative_workspace_path target_directory".split())
_RENAMED = {"glob_pattern": "pattern", "search_term": "query", "cmd": "command"}


def calls_of(name: str, given: object, directory: str) -> Iterator[dict[str, Any]]:
    """Yield the input of a call, or one for each file of a patch. Paths become absolute."""
    fields: dict[str, Any] = given if isinstance(given, dict) else {"patch": given}
    if name == PATCH:
        patch = next((one for one in fields.values() if isinstance(one, str) and "*** " in one), "")
        edits = list(edits_of(patch, directory))
        if edits:
            yield from edits
            return
    path = next((fields[key] for key in _PATHS if isinstance(fields.get(key), str)), None)
    if path is None or ROLES.get(name) not in _NAMES_FILE:
        yield {_RENAMED.get(key, key): value for key, value in fields.items()}
        return
    is_absolute = path.startswith(("/", "~")) or path[1:3] == ":\\"
    path = path if is_absolute or not directory else f"{directory}/{path}"
    yield {"file_path": path, **{key: value for key, value in fields.items() if key not in _PATHS}}
