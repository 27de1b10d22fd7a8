"""Write the entry that makes an MCP client start `memkit mcp`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from memkit.environment import installed_launcher
from memkit.errors import MemkitError
from memkit.files import rewrite
from memkit.ipc.launch import REPOSITORY
from memkit.mcp.handshake import NAME
from memkit.state import parse_json
from memkit.text import one_line

WORKSPACE = "${workspaceFolder}"
"""The variable by which VS Code and Cursor name the open folder."""


@dataclass(frozen=True, slots=True)
class Client:
    """An MCP client: its file, the table of servers in it, and how its entries name the project.

    `project` is the value of `--project`; "" means that the client starts servers in the project's directory,
    and `.` stands for the project of the setup: the client knows no project. `more` is what each entry needs.
    """

    title: str
    path: Callable[[], Path]
    table: str
    project: str = ""
    more: dict[str, Any] = field(default_factory=dict)


def _home(*parts: str) -> Callable[[], Path]:
    return lambda: Path.home().joinpath(*parts)


def _application_data(*parts: str) -> Callable[[], Path]:
    """Return the path of an application's own data, as Electron names it on each platform."""

    def find() -> Path:
        if sys.platform == "darwin":
            return Path.home().joinpath("Library", "Application Support", *parts)
        if sys.platform == "win32":
            return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming").joinpath(*parts)
        return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config").joinpath(*parts)

    return find


CLAUDE_CODE = Client("Claude Code", _home(".claude.json"), "mcpServers", more={"type": "stdio"})
"""Has a command that writes its entry: see `ClaudeCode.add_server`."""

CLIENTS = {
    "claude-desktop": Client(
        "Claude Desktop", _application_data("Claude", "claude_desktop_config.json"), "mcpServers", "."
    ),
    "cline": Client(
        "Cline", _home(".cline", "data", "settings", "cline_mcp_settings.json"), "mcpServers", "."
    ),
    "codex": Client("Codex", _home(".codex", "config.toml"), "mcp_servers"),
    "copilot": Client(
        "GitHub Copilot CLI", _home(".copilot", "mcp-config.json"), "mcpServers",
        more={"type": "stdio", "tools": ["*"]},
    ),
    "cursor": Client("Cursor", _home(".cursor", "mcp.json"), "mcpServers", WORKSPACE),
    "gemini": Client("Gemini CLI", _home(".gemini", "settings.json"), "mcpServers"),
    "vscode": Client(
        "VS Code", _application_data("Code", "User", "mcp.json"), "servers", WORKSPACE, {"type": "stdio"}
    ),
}

NAMES = ("claude-code", *CLIENTS)
"""The clients that `memkit setup --mcp CLIENT` knows."""


def entry_of(client: Client, root: str) -> dict[str, Any]:
    """Return the entry for a client; `root` is the project of the setup. Raise `MemkitError`."""
    command, *arguments = own_command()
    project = root if client.project == "." else client.project
    arguments += ["mcp", *(["--project", project] if project else [])]
    return {**client.more, "command": command, "args": arguments}


def shown(client: Client, entry: dict[str, Any]) -> str:
    """Return what to add to the client's file by hand."""
    if client.path().suffix == ".toml":
        import tomlkit

        return tomlkit.dumps({client.table: {NAME: entry}}).strip()
    return json.dumps({client.table: {NAME: entry}}, indent=2)


def write_entry(client: Client, entry: dict[str, Any]) -> bool:
    """Write the entry into the client's file, and nothing else; return whether that changed the file.

    Raise `MemkitError` if the file cannot be read as what it should be: it may have comments.
    """
    named = client.path()
    change = partial(_with_entry, client=client, entry=entry, is_toml=named.suffix == ".toml")
    try:
        return rewrite(str(named.resolve()), change)  # a link to a user's dotfiles stays one
    except (ValueError, OSError, RuntimeError, AttributeError, TypeError, LookupError) as error:
        raise MemkitError(
            f"cannot change {named}: {one_line(str(error), 300)}; add this by hand:\n{shown(client, entry)}"
        ) from error


def _with_entry(text: str, client: Client, entry: dict[str, Any], *, is_toml: bool) -> str:
    """Return the file with the entry. Raise `ValueError`, `AttributeError`, `TypeError`."""
    if is_toml:
        import tomlkit

        document: Any = tomlkit.parse(text)  # keeps comments
        servers = document.setdefault(client.table, tomlkit.table(is_super_table=True))
    else:
        document = parse_json(text) if text.strip() else {}
        servers = document.setdefault(client.table, {})
    if servers.get(NAME) == entry:
        return text
    servers[NAME] = entry
    return tomlkit.dumps(document) if is_toml else json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def own_command() -> list[str]:
    """Return the command that runs this memkit from any directory, also after an update of the plugin."""
    script = os.path.join(REPOSITORY, "bin", "memkit")
    if not os.path.exists(script):  # an installed package; -I: the working directory is anybody's
        return [sys.executable, "-I", "-m", "memkit"]
    if launchers := installed_launcher():
        return [str(launchers[0])]
    if sys.platform == "win32":
        return [sys.executable, "-I", script]
    raise MemkitError(
        "a client needs the command `memkit`; run `memkit setup --skip import` first, which writes it"
    )
