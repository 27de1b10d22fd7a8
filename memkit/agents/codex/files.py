"""Find what Codex stores: `sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl`, in `CODEX_HOME` or `~/.codex`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from memkit.files import open_regular

_FIRST_LINE = re.compile(rb'\{[^{}]{0,200}"type": ?"session_meta"')


def rollouts() -> Iterator[Path]:
    """Yield the files of all sessions on this machine, also of archived ones."""
    home = Path(os.environ.get("CODEX_HOME") or "~/.codex").expanduser()
    for folder in ("sessions", "archived_sessions"):
        yield from sorted((home / folder).rglob("rollout-*.jsonl"))


def is_rollout(path: Path) -> bool:
    """Return whether a file has the name of a rollout, or begins like one."""
    if path.name.startswith("rollout-"):
        return True
    try:
        with os.fdopen(open_regular(os.path.realpath(path)), "rb") as file:
            return _FIRST_LINE.match(file.read(400)) is not None
    except OSError:
        return False
