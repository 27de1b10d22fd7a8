"""A real Chroma server on the loopback, and a proxy in front of it that behaves as Chroma Cloud does, or worse.

The proxy checks a token, counts each call that exceeds a quota and refuses it, and drops connections on
demand.
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

MOST_ROWS, MOST_DOCUMENT_BYTES, MOST_KEYS, MOST_CALLS = 300, 16_384, 32, 10
MOST_VALUE_BYTES, MOST_ID_BYTES = 4_096, 128


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


class ChromaServer:
    """`chroma run` with its data in `directory`. It can be stopped and started again."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        # The `chroma` command: an environment that was moved has no scripts that run.
        chroma = "from chromadb.cli.cli import app; app()"
        command = [sys.executable, "-c", chroma, "run", "--host", "127.0.0.1"]
        with (self.directory / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port), "--path", str(self.directory)], stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT, cwd=self.directory,
            )  # fmt: skip
        deadline = time.monotonic() + 60
        while True:
            assert self.process.poll() is None, (self.directory / "log").read_text()
            assert time.monotonic() < deadline, "the server does not answer"
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    break
            time.sleep(0.05)

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(30)
            self.process = None


@contextmanager
def chroma_server(directory: Path) -> Iterator[ChromaServer]:
    """Run a server until the block ends."""
    running = ChromaServer(directory)
    try:
        yield running
    finally:
        running.stop()


class Proxy:
    """Forwards requests to the server at `uri`.

    `violations` says what exceeded which quota, `refused` counts requests without the token, and `calls` all
    others by kind. Each request drops its connection with the probability `faults`, half of them after the
    server has done what was asked.
    """

    def __init__(
        self, uri: str, token: str = "", header: str = "Authorization", identity: dict[str, Any] | None = None
    ) -> None:
        self.target = str(urlsplit(uri).netloc)
        self.header = header
        self.wanted = f"Bearer {token}" if token and header == "Authorization" else token
        self.identity = identity
        self.faults = 0.0
        self.violations: list[str] = []
        self.calls: Counter[str] = Counter()
        self.places: Counter[str] = Counter()
        self.headers: list[dict[str, str]] = []
        self.most_at_once = 0
        self.dropped = self.refused = self._now = 0
        self.random = random.Random(7)
        self.guard = threading.Lock()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def handle(self) -> None:
                with suppress(OSError):
                    super().handle()

            def do_GET(self) -> None:
                proxy.serve(self)

            do_POST = do_PUT = do_DELETE = do_GET

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("content-length") or 0))
        with self.guard:
            chance = self.random.random() if self.faults else 1.0
        if chance < self.faults / 2:
            self._drop(handler)
            return
        status, data = self._answer(handler, body)
        if self.faults / 2 <= chance < self.faults:
            self._drop(handler)
            return
        handler.send_response(status)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def _drop(self, handler: BaseHTTPRequestHandler) -> None:
        with self.guard:
            self.dropped += 1
        handler.close_connection = True
        with suppress(OSError):
            handler.connection.shutdown(socket.SHUT_RDWR)

    def _answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        if self.wanted and handler.headers.get(self.header) != self.wanted:
            with self.guard:
                self.refused += 1
            return 401, b'{"error":"AuthError","message":"no such token"}'
        parts = handler.path.split("/")
        if handler.path.endswith("/auth/identity") and self.identity is not None:
            return 200, json.dumps(self.identity).encode()
        kind = parts[-1].partition("?")[0] if "collections" in parts else "other"
        with self.guard:
            self.calls[kind] += 1
            self.headers.append({name.lower(): value for name, value in handler.headers.items()})
            if "databases" in parts:
                self.places["/".join(parts[4:7:2])] += 1
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            problems = _exceeded(kind, body)
            if self._now > MOST_CALLS:
                problems.append(f"{self._now} calls at once")
            self.violations += problems
        try:
            if problems:
                return 422, json.dumps({"error": "QuotaError", "message": "; ".join(problems)}).encode()
            return self._forward(handler, body)
        finally:
            with self.guard:
                self._now -= 1

    def _forward(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.target, timeout=60)
        try:
            connection.request(handler.command, handler.path, body, {"content-type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except OSError:
            return 502, b'{"error":"BadGateway","message":"the server is away"}'
        finally:
            connection.close()


def _exceeded(kind: str, body: bytes) -> list[str]:
    """Return which quotas of Chroma Cloud a request exceeds."""
    if kind not in ("add", "upsert", "update", "delete", "get", "query"):
        return []
    asked = json.loads(body or b"{}")
    found = []
    ids = asked.get("ids") or []
    if len(ids) > MOST_ROWS:
        found.append(f"{kind} of {len(ids)} records")
    if any(len(str(one).encode()) > MOST_ID_BYTES for one in ids):
        found.append("a long id")
    if kind == "get" and not 0 < (asked.get("limit") or 0) <= MOST_ROWS:
        found.append(f"get with limit {asked.get('limit')}")
    if kind == "query" and not 0 < asked.get("n_results", 0) <= MOST_ROWS:
        found.append(f"query for {asked.get('n_results')} results")
    if kind == "delete" and not ids:
        found.append("delete without ids")
    for text in asked.get("documents") or []:
        if text and len(text.encode()) > MOST_DOCUMENT_BYTES:
            found.append(f"a document of {len(text.encode())} bytes")
    for metadata in asked.get("metadatas") or []:
        if metadata and len(metadata) > MOST_KEYS:
            found.append(f"{len(metadata)} keys")
        for value in (metadata or {}).values():
            if isinstance(value, str) and len(value.encode()) > MOST_VALUE_BYTES:
                found.append(f"a value of {len(value.encode())} bytes")
    return found


@contextmanager
def silent_server() -> Iterator[str]:
    """Yield the address of a server that accepts connections and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
