"""Where Claude Code keeps its files."""

from __future__ import annotations

import os
import re
from pathlib import Path


def claude_directory() -> Path:
    """Return Claude Code's own directory."""
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude").expanduser()


def transcripts_directory() -> Path:
    """Return the directory of Claude Code's transcripts: a folder for each project."""
    return claude_directory() / "projects"


def folder_of(root: str) -> str:
    """Return the name of the folder that Claude Code uses for the project at `root`."""
    return re.sub(r"[^A-Za-z0-9]", "-", root)


def memory_of(root: str) -> Path:
    """Return where Claude Code keeps its own memory of a project: `MEMORY.md`, and files that it names."""
    return transcripts_directory() / folder_of(root) / "memory"
