"""The line that `memkit statusline` prints for Claude Code's status line.

`bin/memkit` runs this in the user's `python3`, without memkit's environment: the line is made again after
each message. Standard library only, Python 3.9 syntax.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from memkit.hook.events import log_failure, read_input
from memkit.hook.tally import history_file, pointers_given, tally
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.text import plural


def run() -> None:
    """Print the line for the session on stdin, and end the process with status 0."""
    try:
        line = line_for_stdin()
        if line:
            sys.stdout.buffer.write(line.encode("utf-8") + b"\n")
            sys.stdout.flush()
    except BaseException:  # noqa: BLE001 - nothing may reach the status line, and Claude Code no longer listens
        pass
    os._exit(0)


def line_for_stdin(directory: str = "") -> str:
    """Return the line for the session on stdin, or for a directory; "" if that fails, which is logged."""
    try:
        given = {} if directory or sys.stdin is None or sys.stdin.isatty() else read_input()
        return status_line(Home.from_environment(), {"cwd": directory} if directory else given, time.time())
    except Exception as error:  # noqa: BLE001
        log_failure("statusline", error)
        return ""


def status_line(home: Home, given: dict[str, Any], now: float) -> str:
    """Return the line: sessions of the project, pointers of this session, and when the last entry was made.

    `given` is what Claude Code writes to the command. Raise `OSError`, and more for damaged input.
    """
    workspace = given.get("workspace")
    named = dict(given, **workspace) if isinstance(workspace, dict) else given
    places = (named.get(name) for name in ("project_dir", "current_dir", "cwd"))
    directory = next((place for place in places if isinstance(place, str) and place), os.getcwd())
    project = Project.remembering(directory, home)
    if project.is_off:
        return "memkit off"
    counted = tally(home, project)
    if not counted.sessions:
        return "memkit: no sessions yet"
    parts = [f"memkit {counted.words}"]
    session = given.get("session_id")
    if isinstance(session, str) and (given_here := pointers_given(history_file(home, session))):
        parts.append(plural(given_here, "pointer"))
    is_today = counted.day == time.strftime("%Y-%m-%d", time.localtime(now))
    parts.append(f"last {counted.minute if is_today and counted.minute else counted.day}")
    return " · ".join(parts)
