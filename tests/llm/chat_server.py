"""A fake endpoint for chat completions on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.llm.tasks import TOOL

USAGE = {
    "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 40},
}  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """An answer of the server: an object or raw bytes. Only `share` of it is sent."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    share: float = 1.0


@dataclass(frozen=True)
class Received:
    """A received request, with header names in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


def completion(message: Mapping[str, Any], finish: str = "stop", **changes: Any) -> Answer:
    """A completion as the API spells it."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    body = {"id": "c1", "object": "chat.completion", "model": "a-model-1", "choices": [choice]}
    return Answer({**body, "usage": USAGE, **changes})


def called(arguments: Any) -> dict[str, Any]:
    """A message that calls the function; `arguments` as JSON if they are not a string."""
    spelled = arguments if isinstance(arguments, str) else json.dumps(arguments)
    function = {"name": TOOL, "arguments": spelled}
    return {"content": None, "tool_calls": [{"id": "t1", "type": "function", "function": function}]}


class ChatServer(ThreadingHTTPServer):

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[Received] = []
        self.script: Callable[[Received], Answer] = lambda received: Answer({}, 500)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that close the connection."""


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        received = Received(self.path, headers, body)
        self.server.requests.append(received)
        answer = self.server.script(received)
        data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: int(len(data) * answer.share)])

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def running() -> Iterator[ChatServer]:
    with ChatServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
