"""Has Claude Code uninstall memkit's plugin."""

from __future__ import annotations

from collections.abc import Sequence

from memkit.claude_code.commands import PLUGIN, ClaudeCode, ClaudeCodeError
from memkit.doctor.claude_code import installed_names


def uninstall_plugin(names: Sequence[str]) -> list[str]:
    """Uninstall the plugins of these names, and memkit's own marketplace; what failed, a line each."""
    client = ClaudeCode.find()
    if client is None:
        return [f"the plugin {name}: there is no `claude` to uninstall it" for name in names]
    problems = []
    for name in names:
        try:
            client.uninstall_plugin(name)
            if name == PLUGIN:  # another marketplace may hold other plugins
                client.remove_marketplace(name.partition("@")[2])
        except ClaudeCodeError as error:
            problems.append(f"the plugin {name}: {error}")
    return [*problems, *(f"the plugin {name} is still installed" for name in installed_names())]
