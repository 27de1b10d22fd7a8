"""Claude Code's settings, installed plugins, and transcripts on this machine, as far as memkit reads them."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memkit.claude_code.files import claude_directory, transcripts_directory
from memkit.hook.project import Project
from memkit.state import parse_json

logger = logging.getLogger(__name__)

DEFAULT_KEPT_DAYS = 30
"""Claude Code deletes a transcript after this many days, unless its setting `cleanupPeriodDays` differs."""

_AGENT = "agent-"
"""The start of a sub-agent's transcript name. Older versions of Claude Code put these next to sessions."""


@dataclass(frozen=True, slots=True)
class TranscriptFile:
    """A transcript: the ID of its session, its path, and when it last changed (seconds since the epoch)."""

    session: str
    path: Path
    changed: float


def session_transcripts(project: Project | None = None) -> Iterator[TranscriptFile]:
    """Yield the transcripts of sessions that began in the root of `project`, or of all sessions."""
    directory = transcripts_directory()
    name = "*" if project is None else re.sub(r"[^A-Za-z0-9]", "-", project.root)
    for path in sorted(directory.glob(f"{name}/*.jsonl")) if directory.is_dir() else ():
        if path.name.startswith(_AGENT):
            continue
        try:
            yield TranscriptFile(path.stem, path, path.stat().st_mtime)
        except OSError:  # deleted since the listing
            continue


def kept_days() -> float:
    """Return how many days Claude Code keeps a transcript."""
    value = _read(claude_directory() / "settings.json").get("cleanupPeriodDays")
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        return DEFAULT_KEPT_DAYS
    return float(value)


def installed_names() -> list[str]:
    """Return the names (`memkit@MARKETPLACE`) under which memkit's plugin is installed."""
    return list(_installed())


def installed_plugins() -> Iterator[Path]:
    """Yield the directories of all installed versions of memkit's plugin."""
    for entries in _installed().values():
        for entry in entries if isinstance(entries, list) else [entries]:
            if isinstance(entry, dict) and isinstance(entry.get("installPath"), str):
                yield Path(entry["installPath"])


def plugin_version(directory: Path) -> str:
    """Return the version of the plugin in `directory`, or "" if it states none."""
    return str(_read(directory / ".claude-plugin" / "plugin.json").get("version") or "")


def _installed() -> dict[str, Any]:
    plugins = _read(claude_directory() / "plugins" / "installed_plugins.json").get("plugins")
    found = plugins if isinstance(plugins, dict) else {}
    return {name: entries for name, entries in found.items() if name.partition("@")[0] == "memkit"}


def _read(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file of Claude Code, empty if there is none."""
    try:
        value = parse_json(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        logger.info("cannot read %s: %s", path, error)
        return {}
    return value if isinstance(value, dict) else {}
