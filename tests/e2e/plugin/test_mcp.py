"""The MCP server in the real client: its tools, the permission they need, a sub-agent, and what they cost."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from tests.e2e.client import install_inspector
from tests.e2e.plugin.user import MemkitUser, answers_so_far
from tests.messages_api import MessagesApi, Reply, Request, text, tool

FACT = "Invoices are rounded half to even, as the tax office wants it."
SEARCH, FORGET = "mcp__memkit__memory_search", "mcp__memkit__memory_forget"


def test_claude_and_a_sub_agent_search_and_forgetting_needs_permission(api: MessagesApi, user: MemkitUser) -> None:
    user.plant_yesterday(FACT)
    entry = {"type": "stdio", "command": str(user.plugin / "bin" / "memkit"), "args": ["mcp"]}
    server = ["--mcp-config", json.dumps({"mcpServers": {"memkit": entry}})]
    search = tool(SEARCH, query="how are invoices rounded")
    calls = [search, tool(FORGET, ids=["5eed5eed"], dry_run=False)]
    shown: list[str] = []

    def script(request: Request) -> Reply:
        step = answers_so_far(request)
        shown.append(request.last_user_text)
        return [calls[step]] if step < len(calls) else [text("Done.")]

    api.script = script
    result = user.home.run_prompt("How?", *server, "--allowedTools", SEARCH)
    assert [one["tool_name"] for one in result["permission_denials"]] == [FORGET]
    assert FACT in user.memory()
    assert FACT in shown[1]
    agent = tool("Agent", description="Look", prompt="How rounded?", subagent_type="general-purpose")
    api.script = lambda request: [text("Done.")] if answers_so_far(request) else [search if request.from_subagent else agent]
    user.home.run_prompt("How?", *server, "--allowedTools", f"{SEARCH},Agent,Task")
    assert FACT in api.subagent_calls[-1].last_user_text
    user.wait_until_alone()


def test_what_a_session_pays_for_it(api: MessagesApi, user: MemkitUser) -> None:
    """The first request grows by less than the figure in the manual."""
    entry = {"type": "stdio", "command": str(user.plugin / "bin" / "memkit"), "args": ["mcp"]}
    server = ["--mcp-config", json.dumps({"mcpServers": {"memkit": entry}})]
    api.script = lambda request: [text("Hello.")]
    sizes = []
    for options in ([], server):
        user.home.run_prompt("Hi.", *options)
        sizes.append(len(json.dumps(api.model_calls[-1].body)))
    assert 0 < sizes[1] - sizes[0] < 4 * 2_000


def test_setup_connects_the_client(user: MemkitUser) -> None:
    user.home.environment["PATH"] = f"{user.home.claude.parent}{os.pathsep}{os.environ['PATH']}"
    user.run("setup", "--yes", *(word for one in ("plugin", "summaries", "import") for word in ("--skip", one)))
    user.run("setup", "--mcp", "claude-code", "--yes")
    (line,) = [line for line in user.home.servers().splitlines() if line.startswith("memkit:")]
    assert line.endswith("/.local/bin/memkit mcp - ✔ Connected")


def test_the_inspector(user: MemkitUser) -> None:
    """The protocol as another implementation sees it."""
    user.plant_yesterday(FACT)
    # It passes few variables on to a server.
    server = user.home.directory / "server"
    server.write_text(
        f"#!/bin/sh\nMEMKIT_HOME={user.home.memkit_home} exec {user.plugin}/bin/memkit mcp --project {user.home.project}\n"
    )
    server.chmod(0o755)

    def ask(method: str, *options: str) -> dict[str, Any]:
        done = subprocess.run(
            [install_inspector(), "--cli", server, "--method", method, *options],
            cwd=user.home.directory, env=user.home.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.stdout.startswith("{"), done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    tools = {tool["name"]: tool for tool in ask("tools/list")["tools"]}
    assert len(tools) == 7
    assert tools["memory_search"]["annotations"]["readOnlyHint"] is True
    assert tools["memory_forget"]["annotations"]["destructiveHint"] is True
    found = ask("tools/call", "--tool-name", "memory_search", "--tool-arg", "query=how are invoices rounded", "limit=3")
    assert FACT in found["content"][0]["text"]
    assert found["structuredContent"]["entries"][0]["id"] == "5eed5eed"
    assert not found.get("isError")
    user.wait_until_alone()
