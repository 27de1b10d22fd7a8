"""The entries of MCP clients."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tomllib

from memkit.errors import MemkitError
from memkit.mcp import clients
from memkit.mcp.clients import CLIENTS, Client, entry_of, shown, write_entry
from tests.memory import make_memory
from tests.serve.running import environment


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(clients, "own_command", lambda: ["/opt/memkit"])
    return tmp_path


def read(client: Client) -> dict[str, Any]:
    text = client.path().read_text()
    value: dict[str, Any] = tomllib.loads(text) if client.path().suffix == ".toml" else json.loads(text)
    return value


@pytest.mark.parametrize("name", CLIENTS)
def test_an_entry_is_written_once_as_it_is_shown(name: str) -> None:
    client = CLIENTS[name]
    entry = entry_of(client, "/home/you/shop")
    assert write_entry(client, entry)
    assert read(client) == {client.table: {"memkit": entry}}
    assert client.path().stat().st_mode & 0o777 == 0o600
    before = client.path().read_bytes()
    assert not write_entry(client, entry)
    assert client.path().read_bytes() == before
    text = shown(client, entry)
    assert (tomllib.loads(text) if client.path().suffix == ".toml" else json.loads(text)) == read(client)


def test_where_a_client_finds_the_project(home: Path) -> None:
    # As its manual says: docs.github.com/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers
    client = CLIENTS["copilot"]
    assert client.path() == home / ".copilot" / "mcp-config.json"
    assert entry_of(client, "/") == {"type": "stdio", "tools": ["*"], "command": "/opt/memkit", "args": ["mcp"]}
    arguments = {name: entry_of(one, "/home/you/shop")["args"] for name, one in CLIENTS.items()}
    assert arguments["codex"] == arguments["gemini"] == arguments["copilot"] == ["mcp"]
    assert arguments["cursor"] == arguments["vscode"] == ["mcp", "--project", "${workspaceFolder}"]
    assert arguments["claude-desktop"] == arguments["cline"] == ["mcp", "--project", "/home/you/shop"]


@pytest.mark.parametrize("name", ["cursor", "gemini", "vscode"])
def test_everything_else_stays(name: str) -> None:
    client = CLIENTS[name]
    path = client.path()
    path.parent.mkdir(parents=True)
    other = {"command": "x", "args": ["ü"]}
    path.write_text(json.dumps({"theme": "dark", client.table: {"other": other, "memkit": {"command": "old"}}}))
    path.chmod(0o644)
    entry = entry_of(client, "/")
    assert write_entry(client, entry)
    assert read(client) == {"theme": "dark", client.table: {"other": other, "memkit": entry}}
    assert path.stat().st_mode & 0o777 == 0o644



def test_comments_of_toml_stay() -> None:
    client = CLIENTS["codex"]
    client.path().parent.mkdir()
    client.path().write_text('# mine\nmodel = "o"\n\n[mcp_servers.other]\ncommand = "x" # why\n')
    write_entry(client, entry_of(client, "/"))
    text = client.path().read_text()
    assert text.startswith('# mine\nmodel = "o"\n')
    assert "# why" in text
    assert read(client)["mcp_servers"]["memkit"] == {"command": "/opt/memkit", "args": ["mcp"]}


def test_a_file_that_cannot_be_changed_stays() -> None:
    client = CLIENTS["cursor"]
    client.path().parent.mkdir()
    for text in (
        '{"a": 1, // why\n}', "[]", '{"mcpServers": 5}', "{", "\ufeffx", '{"mcpServers": null}', '{"a": "\\ud800"}',
    ):  # fmt: skip
        client.path().write_text(text)
        with pytest.raises(MemkitError, match="add this by hand") as error:
            write_entry(client, entry_of(client, "/"))
        assert '"mcpServers"' in str(error.value)
        assert client.path().read_text() == text


def test_a_link_to_dotfiles_stays_one(home: Path) -> None:
    """And the file is what its client calls it."""
    for name, real, text in (("cursor", home / "dotfiles.json", "{}"), ("codex", home / "codex-config", 'model = "o"\n')):
        client = CLIENTS[name]
        real.write_text(text)
        client.path().parent.mkdir()
        client.path().symlink_to(real)
        write_entry(client, entry_of(client, "/"))
        assert client.path().is_symlink()
        assert "memkit" in read(client)[client.table]
    assert read(client)["model"] == "o"
    client.path().unlink()
    client.path().symlink_to(client.path())
    with pytest.raises(MemkitError, match="add this by hand"):
        write_entry(client, entry_of(client, "/"))


def test_setup_shows_the_entry_and_writes_it_with_yes(tmp_path: Path) -> None:
    from memkit.environment import launcher_text
    from memkit.ipc.launch import REPOSITORY

    memory = make_memory(tmp_path, {})

    def setup(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "memkit", "setup", "--mcp", "cursor", *arguments]
        return subprocess.run(
            command, env={**environment(memory), "HOME": str(tmp_path)}, cwd=memory.project.root,
            capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip

    done = setup("--yes")  # without a launcher it says what to do
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "run `memkit setup" in done.stderr
    launcher = tmp_path / ".local" / "bin" / "memkit"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(launcher_text(REPOSITORY, "0.1.0"))
    launcher.chmod(0o755)
    path = tmp_path / ".cursor" / "mcp.json"
    assert "Not written" in setup().stdout
    found = json.loads(setup("--json").stdout)
    assert found["path"] == str(path)
    assert not path.exists()
    assert setup("--yes").returncode == 0
    entry = json.loads(path.read_text())["mcpServers"]["memkit"]
    assert entry == found["entry"]
    assert os.path.exists(entry["command"])
    assert "already there" in setup("--yes").stdout
