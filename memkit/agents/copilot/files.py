"""Find what Copilot CLI stores: `session-state/ID/events.jsonl` in `COPILOT_HOME` or `~/.copilot`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from memkit.agents.fields import begins_like

_FIRST_LINE = re.compile(rb'\{"type": ?"session\.start", ?"data": ?\{"sessionId"')


def event_files() -> Iterator[Path]:
    """Yield the files of all sessions on this machine; older versions had no folder for each."""
    home = Path(os.environ.get("COPILOT_HOME") or "~/.copilot").expanduser()
    yield from sorted([*home.glob("session-state/*/events.jsonl"), *home.glob("session-state/*.jsonl")])


def is_event_file(path: Path) -> bool:
    """Return whether a file is where Copilot puts its sessions, or begins like one."""
    in_folder = path.name == "events.jsonl" and path.parent.parent.name == "session-state"
    in_folder |= path.suffix == ".jsonl" and path.parent.name == "session-state"
    return in_folder or begins_like(path, _FIRST_LINE)
