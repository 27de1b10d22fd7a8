"""Claude Code as it is installed here: its settings, its own commands, and memkit as its plugin."""

from __future__ import annotations

import json
import logging
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memkit.agents.claude_code.places import claude_directory
from memkit.errors import MemkitError
from memkit.processes import find_program, no_window
from memkit.state import parse_json
from memkit.text import one_line

logger = logging.getLogger(__name__)

PLUGIN = "memkit@memkit"
"""The plugin and its marketplace."""

PUBLISHED = "memkit/memkit@release"
"""The marketplace for users who have no clone of it: a branch with the plugin alone (tools/release)."""

SECONDS = 180.0
"""The time limit for one command; adding the marketplace clones a repository."""

DEFAULT_KEPT_DAYS = 30
"""Claude Code deletes a transcript after this many days, unless its setting `cleanupPeriodDays` differs."""


class ClaudeCodeError(MemkitError):
    """Claude Code failed to do what memkit asked for."""


class ClaudeCode:
    """The Claude Code at `path`. Its methods raise `ClaudeCodeError`."""

    def __init__(self, path: str) -> None:
        self.path = path

    @classmethod
    def find(cls) -> ClaudeCode | None:
        """Return the Claude Code on PATH, or None."""
        path = find_program("claude")
        return cls(path) if path else None

    def version(self) -> str:
        """Return its version as it prints it."""
        return self._run("--version")

    def has_plugin(self) -> bool:
        """Return whether memkit's plugin is installed and enabled."""
        try:
            listed = parse_json(self._run("plugin", "list", "--json"))
            return any(one["id"] == PLUGIN and one.get("enabled", True) for one in listed)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ClaudeCodeError(
                "cannot read the output of `claude plugin list --json`; update Claude Code"
            ) from error

    def install_plugin(self, source: str) -> None:
        """Install memkit from the marketplace at `source`. Repeating it changes nothing."""
        self._run("plugin", "marketplace", "add", source)
        self._run("plugin", "install", PLUGIN)

    def uninstall_plugin(self, name: str) -> None:
        """Uninstall the plugin `name`, given as PLUGIN@MARKETPLACE."""
        self._run("plugin", "uninstall", name)

    def remove_marketplace(self, name: str) -> None:
        """Remove the marketplace `name` and its plugins."""
        self._run("plugin", "marketplace", "remove", name)

    def add_server(self, name: str, entry: dict[str, Any]) -> None:
        """Add an MCP server for all projects of the user, in place of one with the same name."""
        add = ("mcp", "add-json", "--scope", "user", name, json.dumps(entry))
        try:
            self._run(*add)
        except ClaudeCodeError as error:
            if "already exists" not in str(error):
                raise
            self._run("mcp", "remove", "--scope", "user", name)
            self._run(*add)

    def _run(self, *arguments: str) -> str:
        command = " ".join(("claude", *arguments))
        try:
            done: subprocess.CompletedProcess[bytes] = subprocess.run(
                [self.path, *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=SECONDS,
                check=False,
                **no_window(),
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ClaudeCodeError(f"`{command}` cannot be run: {error}") from error
        output = done.stdout.decode("utf-8", "replace").strip()
        if done.returncode:
            message = done.stderr.decode("utf-8", "replace").strip() or output
            raise ClaudeCodeError(f"`{command}` failed: {one_line(message) or done.returncode}")
        return output


def marketplace(repository_root: str) -> str:
    """Return the marketplace with the plugin: the clone that memkit runs from, or the published one."""
    own = os.path.join(repository_root, ".claude-plugin", "marketplace.json")
    return repository_root if os.path.exists(own) else PUBLISHED


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
    try:
        value = parse_json(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        logger.info("cannot read %s: %s", path, error)
        return {}
    return value if isinstance(value, dict) else {}
