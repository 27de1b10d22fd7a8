"""The example and the table of docs/integrations.md."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

from mcp.client.session import ClientSession

from memkit.mcp.clients import NAMES
from tests.mcp.talking import COMMAND, ask
from tests.memory import DAYS, make_memory
from tests.serve.running import REPOSITORY

MANUAL = Path(REPOSITORY, "docs", "integrations.md").read_text()


def test_the_entry_starts_a_server_with_the_tools_of_the_table(tmp_path: Path) -> None:
    (example,) = re.findall(r"^ {4}\{\n(?: {4}.*\n)* {4}\}$", MANUAL, re.MULTILINE)
    entry = json.loads(textwrap.dedent(example))["mcpServers"]["memkit"]
    memory = make_memory(tmp_path, DAYS)
    arguments = [memory.project.root if word == "/home/you/src/shop" else word for word in entry["args"]]
    assert memory.project.root in arguments

    async def describe(session: ClientSession) -> dict[str, set[str]]:
        tools = (await session.list_tools()).tools
        return {tool.name: set(tool.input_schema["properties"]) for tool in tools}

    found = ask(memory, describe, command=[*COMMAND[:-1], *arguments], directory=str(tmp_path))
    rows = re.findall(r"^\| `(memory_\w+)` \| (.*?) \| ", MANUAL, re.MULTILINE)
    assert {name: set(re.findall(r"`(\w+)`", cell)) for name, cell in rows} == found
    assert all(f"`{name}`" in MANUAL for name in NAMES)
