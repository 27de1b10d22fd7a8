"""Ask the service for pointers, with a deadline: at a prompt, a failure, an edit, and a sub-agent's start.

Standard library only, Python 3.9 syntax.
"""

from __future__ import annotations

import os
from typing import Any, Callable

from memkit.paths import Home
from memkit.projects.project import Project

Values = dict[str, Any]

POINTER_SECONDS = 0.12
"""Longest wait of a session for the service."""

COMPACT_SECONDS = 0.5
"""The same after a compaction, which took much longer."""

MOST_CHARACTERS = 8000
"""Characters of each end of a command or an error to send."""

_WHOSE = frozenset({"session", "root", "kind"})


def ask(
    home: Home, project: Project, data: Values, asked: Values, afterwards: list[Callable[[], object]]
) -> Values | None:
    """Return the service's reply to what is `asked` at the event `data`; None if it cannot tell in time.

    `afterwards` tells the service that its pointers were printed: it repeats those that were not. The
    service redacts what it looks up, and keeps nothing of it.
    """
    from memkit.ipc import client

    arguments, kind = {**asked, "root": project.root}, asked.get("kind")
    for name, field in (("session", "session_id"), ("directory", "cwd")):
        arguments[name] = value if isinstance(value := data.get(field), str) else ""
    seconds = COMPACT_SECONDS if kind == "compact" else POINTER_SECONDS
    try:
        reply = client.request(home, "moment" if kind else "pointers", arguments, seconds)
    except (client.ServiceUnavailable, client.RequestRefused):
        return None
    if reply.get("ids"):
        shown = {name: value for name, value in arguments.items() if name in _WHOSE}
        shown["ids"] = reply["ids"]
        afterwards.append(lambda: client.notify(home, "shown", shown, POINTER_SECONDS))
    return reply


def failure(data: Values) -> Values | None:
    """Return what to ask after a failed tool call, or None."""
    given, error = data.get("tool_input"), data.get("error")
    command = given.get("command") if isinstance(given, dict) else None
    if data.get("tool_name") != "Bash" or data.get("is_interrupt") is True:
        return None
    if not (isinstance(command, str) and isinstance(error, str) and command and error):
        return None
    return {"kind": "failure", "command": _ends(command), "error": _ends(error)}


def edit(data: Values, project: Project) -> Values | None:
    """Return what to ask before a file is edited, or None."""
    given = data.get("tool_input")
    if not isinstance(given, dict):
        return None
    file = given.get("file_path") or given.get("notebook_path")
    if not isinstance(file, str) or not os.path.isabs(file) or len(file) > MOST_CHARACTERS:
        return None
    if file.startswith(os.path.join(project.memory, "")) or project.name_at(file):
        return None
    return {"kind": "edit", "file": file}


def _ends(text: str) -> str:
    if len(text) <= 2 * MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]}\n{text[-MOST_CHARACTERS:]}"
