"""Claude Code on this machine, and memkit as its plugin, through the client's own commands.

Standard library only, Python 3.9 syntax.
"""

from __future__ import annotations

import os
import subprocess

from memkit.errors import MemkitError
from memkit.processes import find_program, no_window
from memkit.state import parse_json

PLUGIN = "memkit@memkit"
"""Plugin and marketplace."""

PUBLISHED = "memkit/memkit"
"""The marketplace as people add it who have no clone of it."""

SECONDS = 180.0
"""For one command; adding the marketplace clones a repository."""


class ClientError(MemkitError):
    """Claude Code does not do what it was asked for."""


class Client:
    """The Claude Code that is run by `path`."""

    def __init__(self, path: str) -> None:
        self.path = path

    @classmethod
    def find(cls) -> Client | None:
        """The one on PATH; None if there is none."""
        path = find_program("claude")
        return cls(path) if path else None

    def version(self) -> str:
        """What it says its version is. Raises `ClientError`."""
        return self._run("--version")

    def has_plugin(self) -> bool:
        """Whether memkit is installed as its plugin and enabled. Raises `ClientError`."""
        try:
            listed = parse_json(self._run("plugin", "list", "--json"))
            return any(one["id"] == PLUGIN and one.get("enabled", True) for one in listed)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ClientError(
                "`claude plugin list --json` says what memkit does not understand; update Claude Code"
            ) from error

    def install_plugin(self, source: str) -> None:
        """Install memkit from the marketplace at `source`; again is the same. Raises `ClientError`."""
        self._run("plugin", "marketplace", "add", source)
        self._run("plugin", "install", PLUGIN)

    def uninstall_plugin(self, name: str) -> None:
        """Uninstall the plugin `name`, a plugin and its marketplace. Raises `ClientError`."""
        self._run("plugin", "uninstall", name)

    def remove_marketplace(self, name: str) -> None:
        """Forget the marketplace `name` and its plugins. Raises `ClientError`."""
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
            raise ClientError(f"`{command}` cannot be run: {error}") from error
        output = done.stdout.decode("utf-8", "replace").strip()
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip() or output
            raise ClientError(f"`{command}` failed: {' '.join(said.split()) or done.returncode}")
        return output


def marketplace(repository_root: str) -> str:
    """Where the plugin is installed from: the clone this memkit runs from, else the published one."""
    own = os.path.join(repository_root, ".claude-plugin", "marketplace.json")
    return repository_root if os.path.exists(own) else PUBLISHED
