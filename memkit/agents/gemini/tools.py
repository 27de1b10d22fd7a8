"""The roles of Gemini CLI's tools, and what their calls say in memkit's words."""

from __future__ import annotations

import re
from typing import Any

from memkit.conversation.turn import Role

SHELL = "run_shell_command"

ROLES: dict[str, Role] = {
    SHELL: "shell",
    **dict.fromkeys(("replace", "write_file", "edit"), "edit"),
    "read_file": "read", "read_many_files": "read", "list_directory": "list",
    **dict.fromkeys(("glob", "grep_search", "search_file_content"), "search"),
    **dict.fromkeys(("codebase_investigator", "delegate_to_agent", "generalist", "invoke_agent"), "agent"),
    "activate_skill": "skill",
}  # fmt: skip

_OUTPUT = re.compile(r"(?:\A|\n)(?:Output|Stdout): ")
_AFTER = re.compile(r"(?:\n(?:Error|Stderr|Exit Code|Signal|Background PIDs|Process Group PGID): [^\n]*)+\Z")
_CODE = re.compile(r"^Exit Code: (-?[1-9]\d{0,9})$", re.MULTILINE)
_ERROR = re.compile(r"^(?:Error|Stderr): (?!\((?:none|empty)\)$)(.+)$", re.MULTILINE)


def given_to(name: str, given: dict[str, Any], directory: str) -> dict[str, Any]:
    """Return the input of a call: a file as `file_path`, absolute if `directory` is known."""
    path = given.get("file_path", given.get("absolute_path"))
    if isinstance(path, str) and ROLES.get(name) in ("edit", "read"):
        is_absolute = path.startswith(("/", "~")) or path[1:3] == ":\\"
        path = path if is_absolute or not directory else f"{directory}/{path}"
        return {"file_path": path, **{key: given[key] for key in given if not key.endswith("_path")}}
    if isinstance(given.get("dir_path"), str):
        return {"path": given["dir_path"], **given}
    return given


def outcome_of(name: str, text: str) -> tuple[str, bool]:
    """Return what a tool printed, and whether its command failed."""
    text = text.strip().removeprefix("<untrusted_context>\n").removesuffix("\n</untrusted_context>")
    begin = _OUTPUT.search(text) if name == SHELL else None
    if begin is None:
        return text, False
    after = _AFTER.search(text, begin.end())
    printed, tail = (text[begin.end() : after.start()], after[0]) if after else (text[begin.end() :], "")
    error = _ERROR.search(tail)
    parts = [printed * (printed != "(empty)"), error[1] if error else ""]
    return "\n".join(filter(None, parts)), error is not None or _CODE.search(tail) is not None
