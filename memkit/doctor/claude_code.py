"""What Claude Code keeps on this machine: its transcripts, how long it keeps them, and its plugins."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memkit.claude_code.files import transcripts_directory
from memkit.hook.project import Project
from memkit.state import parse_json

logger = logging.getLogger(__name__)

KEPT_DAYS = 30
"""After so long the client deletes a transcript, if its setting `cleanupPeriodDays` says nothing else."""

_AGENT = "agent-"
"""How the transcripts of sub-agents begin that older clients put beside those of sessions."""


@dataclass(frozen=True, slots=True)
class ClientTranscript:
    """A transcript by the id of its session, and when it was last written (seconds since the epoch)."""

    session: str
    path: Path
    changed: float


def transcripts(project: Project | None = None) -> Iterator[ClientTranscript]:
    """The transcripts of sessions that were begun in the root of `project`, or of all."""
    directory = transcripts_directory()
    name = "*" if project is None else re.sub(r"[^A-Za-z0-9]", "-", project.root)
    for path in sorted(directory.glob(f"{name}/*.jsonl")) if directory.is_dir() else ():
        if path.name.startswith(_AGENT):
            continue
        try:
            yield ClientTranscript(path.stem, path, path.stat().st_mtime)
        except OSError:  # swept since the listing
            continue


def kept_days() -> float:
    """How many days the client keeps a transcript."""
    value = _read(transcripts_directory().parent / "settings.json").get("cleanupPeriodDays")
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        return KEPT_DAYS
    return float(value)


def installed_names() -> list[str]:
    """The names (`memkit@MARKETPLACE`) under which memkit's plugin is installed."""
    return list(_installed())


def installed_plugins() -> Iterator[Path]:
    """The directories of all installed versions of memkit's plugin."""
    for entries in _installed().values():
        for entry in entries if isinstance(entries, list) else [entries]:
            if isinstance(entry, dict) and isinstance(entry.get("installPath"), str):
                yield Path(entry["installPath"])


def _installed() -> dict[str, Any]:
    plugins = _read(transcripts_directory().parent / "plugins" / "installed_plugins.json").get("plugins")
    found = plugins if isinstance(plugins, dict) else {}
    return {name: entries for name, entries in found.items() if name.partition("@")[0] == "memkit"}


def plugin_version(directory: Path) -> str:
    """The version that the plugin in `directory` says it is of; "" if it says none."""
    return str(_read(directory / ".claude-plugin" / "plugin.json").get("version") or "")


def _read(path: Path) -> dict[str, Any]:
    """The JSON object in a file of the client's; empty if there is none."""
    try:
        value = parse_json(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        logger.info("%s cannot be read: %s", path, error)
        return {}
    return value if isinstance(value, dict) else {}
