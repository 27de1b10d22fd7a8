"""A client of `memkit mcp`: that of the official SDK, or the plain lines."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.memory import Memory
from tests.serve.running import environment

Found = TypeVar("Found")


COMMAND = ["-m", "memkit", "mcp"]


def ask(
    memory: Memory, talk: Callable[[ClientSession], Awaitable[Found]], command: Sequence[str] = COMMAND,
    directory: str = "", **variables: str,
) -> Found:  # fmt: skip
    """Connect the SDK's client to a new server, and return what `talk` does."""

    async def run() -> Found:
        server = StdioServerParameters(
            command=sys.executable, args=list(command), env=environment(memory, **variables),
            cwd=directory or memory.project.root,
        )  # fmt: skip
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            return await talk(session)

    return asyncio.run(run())


def call(memory: Memory, tool: str, **arguments: Any) -> tuple[str, bool]:
    """The text of a tool's answer, and whether it failed."""

    async def talk(session: ClientSession) -> tuple[str, bool]:
        found = await session.call_tool(tool, arguments)
        (content,) = found.content
        return content.text, bool(found.is_error)  # type: ignore[union-attr]

    return ask(memory, talk)


def lines(memory: Memory, sent: bytes, command: Sequence[str] = COMMAND, **variables: str) -> tuple[list[Any], int]:
    """What a server answers to all of `sent` before it ends, and its status."""
    done = subprocess.run(
        [sys.executable, *command], input=sent, capture_output=True, cwd=memory.project.root,
        env=environment(memory, **variables), timeout=120, check=False,
    )  # fmt: skip
    assert b"Traceback" not in done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.returncode


def initialize(version: str = "2025-11-25", name: object = 0) -> dict[str, Any]:
    client = {"name": "a client", "version": "1"}
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    return {"jsonrpc": "2.0", "id": name, "method": "initialize", "params": params}


def encoded(*messages: object) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in messages)
