"""Find what Copilot CLI stores: `session-state/ID/events.jsonl` in `COPILOT_HOME` or `~/.copilot`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from memkit.files import open_regular

_FIRST_LINE = re.compile(rb'\{"type": ?"session\.start", ?"data": ?\{"sessionId"')


def event_files() -> Iterator[Path]:
    """Yield the files of all sessions on this machine; older versions had no folder for each."""
    home = Path(os.environ.get("COPILOT_HOME") or "~/.copilot").expanduser()
    yield from sorted([*home.glob("session-state/*/events.jsonl"), *home.glob("session-state/*.jsonl")])


def is_event_file(path: Path) -> bool:
    """Return whether a file is where Copilot puts its sessions, or begins like one."""
    in_folder = path.name == "events.jsonl" and path.parent.parent.name == "session-state"
    if in_folder or (path.suffix == ".jsonl" and path.parent.name == "session-state"):
        return True
    try:
        with os.fdopen(open_regular(os.path.realpath(path)), "rb") as file:
            return _FIRST_LINE.match(file.read(200)) is not None
    except OSError:
        return False
