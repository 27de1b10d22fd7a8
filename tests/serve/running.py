"""A real `memkit serve` in a process of its own, and clients with keys."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from memkit.serve.keys import Keys
from tests.memory import Memory
from tests.service.running import wait_until

REPOSITORY = str(Path(__file__).resolve().parents[2])
_ADDRESS = re.compile(r"at (http://\S+);")


def environment(memory: Memory, **variables: str) -> dict[str, str]:
    """Variables for a server of this memory, which embeds nothing and starts no service."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MEMKIT_", "CLAUDE"))}
    own = {"MEMKIT_HOME": memory.home.root, "PYTHONPATH": REPOSITORY, "MEMKIT_SERVICE_ENABLED": "false"}
    return {**kept, **own, "MEMKIT_EMBEDDING_PROVIDER": "none", **variables}


def run(memory: Memory, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "memkit", "serve", *arguments], env=environment(memory, **variables),
        cwd=memory.project.root, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


class RunningServer:
    """A server that listens on a free port of loopback."""

    def __init__(self, memory: Memory, *arguments: str, **variables: str) -> None:
        self.memory = memory
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "memkit", "serve", "--port", "0", *arguments],
            env=environment(memory, **variables), cwd=memory.project.root, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        wait_until(lambda: self.address or self.process.poll() is not None, "the server to listen")
        assert self.address, self.output
        wait_until(self._is_serving, "the server to be ready")

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)

    def _is_serving(self) -> bool:
        return httpx.get(f"{self.address}/health", timeout=60).json() == {"status": "SERVING"}

    @property
    def output(self) -> str:
        return "".join(self.lines)

    @property
    def address(self) -> str:
        """Where it listens, once it has said so."""
        found = _ADDRESS.search(self.output)
        return found[1] if found else ""

    def client(self, role: str = "admin", headers: Mapping[str, str] | None = None, **options: Any) -> httpx.Client:
        """A client with a new key of that role."""
        _, secret = Keys(self.memory.home).create("a test", role)
        own = {"Authorization": f"Bearer {secret}", **(headers or {})}
        return httpx.Client(base_url=self.address, headers=own, timeout=60, **options)

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(timeout=60)
        self._reader.join(timeout=60)
        return status
