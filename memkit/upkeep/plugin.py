"""Has Claude Code uninstall memkit's plugin."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from memkit.health.client import installed_names

CLIENT_SECONDS = 120.0

OWN_MARKETPLACE = "memkit"
"""The marketplace that memkit's repository is; another one may hold other plugins."""


def uninstall_plugin(names: Sequence[str]) -> list[str]:
    """Uninstall the plugins of these names, and memkit's own marketplace; what failed, a line each."""
    client = shutil.which("claude")
    if client is None:
        return [f"the plugin {name}: there is no `claude` to uninstall it" for name in names]
    problems = []
    for name in names:
        problems += _ask(client, f"the plugin {name}", "uninstall", name)
        if name.partition("@")[2] == OWN_MARKETPLACE:
            remove = ("marketplace", "remove", OWN_MARKETPLACE)
            problems += _ask(client, f"the marketplace {OWN_MARKETPLACE}", *remove)
    return [*problems, *(f"the plugin {name} is still installed" for name in installed_names())]


def _ask(client: str, what: str, *arguments: str) -> list[str]:
    try:
        done = subprocess.run(
            [client, "plugin", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=CLIENT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return [f"{what}: {error}"]
    if done.returncode == 0:
        return []
    said = " ".join((done.stderr or done.stdout).decode("utf-8", "replace").split())
    return [f"{what}: {said[:200]}"]
