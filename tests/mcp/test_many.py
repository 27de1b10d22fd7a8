"""Many clients at once: one service, and no process that stays."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

from memkit.embedding import Embedder
from memkit.paths import Home
from tests.ci import sized
from tests.mcp.talking import COMMAND
from tests.memory import CountingEmbedder, day, make_memory, real_embedder
from tests.service.running import RunningService, wait_until

__all__ = ["real_embedder"]

CLIENTS = sized(3, 5, 20)


@pytest.fixture
def service(tmp_path: Path, model_home: Home, real_embedder: Embedder) -> Iterator[RunningService]:
    text = day("2026-11-20", ("Which port does the gateway use?", "It is 7443, because 443 is taken."))
    memory = make_memory(
        tmp_path, {"2026-11-20.md": text}, embedder=CountingEmbedder(real_embedder), models=model_home.models
    )
    running = RunningService(memory).start()
    running.found("port")
    yield running
    running.stop()


def test_they_share_one_service(service: RunningService) -> None:
    parameters = StdioServerParameters(
        command=sys.executable, args=COMMAND, env=service.environment, cwd=service.memory.project.root
    )

    async def one() -> str:
        async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            found = await session.call_tool("search", {"query": "gateway port"})
            return found.content[0].text  # type: ignore[union-attr]

    async def all_of_them() -> list[str]:
        return await asyncio.gather(*(one() for _ in range(CLIENTS)))

    pid = service.status()["pid"]
    assert all("7443" in text for text in asyncio.run(all_of_them()))
    assert service.status()["pid"] == pid
    home = service.environment["MEMKIT_HOME"]
    wait_until(lambda: _with_home(home) <= {pid, *(one.pid for one in psutil.Process(pid).children(recursive=True))}, "the servers to end")


def _with_home(home: str) -> set[int]:
    """The processes of memkit that use this home."""
    found = set()
    for process in psutil.process_iter():
        try:
            if "memkit" in process.cmdline() and process.environ().get("MEMKIT_HOME") == home:
                found.add(process.pid)
        except psutil.Error:  # gone, or not ours
            continue
    return found
