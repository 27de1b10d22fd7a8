"""A real `memkit serve --open` in a process of its own, and the key of its page."""

from __future__ import annotations

import functools
import json
import re
import signal
import subprocess
import sys
import threading
from typing import Any

import httpx

from tests.page.home import PageHome
from tests.service.running import wait_until

_LINK = re.compile(r"open (http://\S+/)#token=(\S+)")


class PageServer:
    """A server on a free port of loopback. No browser is opened."""

    def __init__(self, page: PageHome, *arguments: str) -> None:
        self.page = page
        self.lines: list[str] = []
        command = [sys.executable, "-m", "memkit", "serve", "--open", "--port", "0", *arguments]
        self.process = subprocess.Popen(
            command, cwd=page.project.root, env=page.environment, stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> PageServer:
        try:
            wait_until(lambda: self.link or self.process.poll() is not None, "the server to print its link")
            assert self.link, self.output
            wait_until(lambda: httpx.get(f"{self.address}health", timeout=60).is_success, "the server to be ready")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        assert self.stop() == 0, self.output

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)

    @property
    def output(self) -> str:
        return "".join(self.lines)

    @property
    def link(self) -> str:
        """The link that works once."""
        found = _LINK.search(self.output)
        return f"{found[1]}#token={found[2]}" if found else ""

    @property
    def address(self) -> str:
        """Where it listens, with a slash at the end."""
        return self.link.partition("#")[0]

    @functools.cached_property
    def access(self) -> dict[str, Any]:
        """The key that the link is good for, with the project. Takes the link: it works no more."""
        answer = httpx.post(f"{self.address}page/key", json={"token": self.link.partition("#token=")[2]}, timeout=60)
        return dict(answer.raise_for_status().json())

    @property
    def stored_access(self) -> str:
        """What the page keeps in the storage of its origin."""
        return json.dumps(self.access)

    def client(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.access['key']}"}
        return httpx.Client(base_url=self.address, headers=headers, timeout=60)

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=60)
        self._reader.join(timeout=60)
        return status
