"""Run Claude Code's own commands: its version, and memkit as its plugin."""

from __future__ import annotations

import os
import subprocess

from memkit.errors import MemkitError
from memkit.processes import find_program, no_window
from memkit.state import parse_json
from memkit.text import one_line

PLUGIN = "memkit@memkit"
"""Plugin and marketplace."""

PUBLISHED = "memkit/memkit"
"""The marketplace for users who have no clone of it."""

SECONDS = 180.0
"""The time limit for one command; adding the marketplace clones a repository."""


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
                "memkit cannot read what `claude plugin list --json` prints; update Claude Code"
            ) from error

    def install_plugin(self, source: str) -> None:
        """Install memkit from the marketplace at `source`. Repeating it changes nothing."""
        self._run("plugin", "marketplace", "add", source)
        self._run("plugin", "install", PLUGIN)

    def uninstall_plugin(self, name: str) -> None:
        """Uninstall the plugin `name`, a plugin and its marketplace."""
        self._run("plugin", "uninstall", name)

    def remove_marketplace(self, name: str) -> None:
        """Remove the marketplace `name` and its plugins."""
        self._run("plugin", "marketplace", "remove", name)

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
