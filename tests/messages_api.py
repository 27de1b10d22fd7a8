"""A scripted Messages API on loopback, so that the real client runs without an account.

`MessagesApi` answers `POST /v1/messages` (JSON, or server-sent events when the request streams)
and `POST /v1/messages/count_tokens`, and keeps every request for the test to look at. What it
answers is a script's: a callable from a `Request` to a list of content blocks, made with `text`
and `tool`, or to what goes wrong: a `Failure`, `Stopped` or `Truncated`. `Conversation` is the script most tests need.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any

Block = dict[str, Any]
"""A content block as the API spells it: `text` or `tool_use`."""


def as_message(blocks: Sequence[Block], model: str, input_tokens: int) -> dict[str, Any]:
    """The reply made of `blocks` as one message object."""
    calls_tool = any(block["type"] == "tool_use" for block in blocks)
    return {
        "id": f"msg_{uuid.uuid4().hex[:24]}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": list(blocks),
        "stop_reason": "tool_use" if calls_tool else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": input_tokens, "output_tokens": 5},
    }


def as_events(message: Mapping[str, Any]) -> bytes:
    """A message of `as_message` as server-sent events."""
    events: list[dict[str, Any]] = []
    start = {**message, "content": [], "stop_reason": None}
    events.append({"type": "message_start", "message": start})
    for index, block in enumerate(message["content"]):
        if block["type"] == "tool_use":
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": _spelled(block["input"])}
        else:
            empty = {**block, "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        place = {"index": index}
        events.append({"type": "content_block_start", **place, "content_block": empty})
        events.append({"type": "content_block_delta", **place, "delta": delta})
        events.append({"type": "content_block_stop", **place})
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": end, "usage": message["usage"]})
    events.append({"type": "message_stop"})
    lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
    return "".join(lines).encode()


def _spelled(arguments: Any) -> str:
    """The input of a tool as JSON; a string stands for itself, so that it can be malformed."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


@dataclass(frozen=True)
class Failure:
    """An error reply, e.g. `Failure(529, "overloaded_error", "Overloaded")`.

    The client repeats a request that failed with 401, 408, 409, 429 or 5xx, and newer clients one
    that failed with 400 too, in other forms; `CLAUDE_CODE_MAX_RETRIES` is how often.
    """

    status: int
    kind: str = "api_error"
    message: str = "The scripted failure."
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Stopped:
    """A reply that ends for another reason than usual, e.g. `Stopped([text("No.")], "refusal")`."""

    blocks: list[Block]
    reason: str


@dataclass(frozen=True)
class Truncated:
    """A reply of which half is sent; then the connection ends."""

    blocks: list[Block]


Reply = list[Block] | Failure | Stopped | Truncated
Script = Callable[["Request"], Reply]


def text(content: str) -> Block:
    """A text block of an answer."""
    return {"type": "text", "text": content}


def tool(name: str, **arguments: Any) -> Block:
    """A call of the client's tool `name`, e.g. `tool("Bash", command="ls", description="List")`."""
    identifier = f"toolu_{uuid.uuid4().hex[:24]}"
    return {"type": "tool_use", "id": identifier, "name": name, "input": arguments}


@dataclass(frozen=True)
class Request:
    """One request as the API received it."""

    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Mapping[str, Any]

    @property
    def counts_tokens(self) -> bool:
        """Whether this only asks for a token count, so that no model is called."""
        return "/count_tokens" in self.path

    @property
    def from_subagent(self) -> bool:
        """Whether a sub-agent asks (a general-purpose one, as skills are run by)."""
        # The client names the agent in a header too, but only to its maker's own API.
        return "You are an agent for Claude Code" in self.system

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """The conversation; newer clients put messages of the role `system` between the others."""
        messages: Sequence[Mapping[str, Any]] = self.body.get("messages", [])
        return messages

    @property
    def system(self) -> str:
        """The system prompt, and after it the messages of the role `system`."""
        between = [message["content"] for message in self.messages if message["role"] == "system"]
        return "\n".join(_texts([self.body.get("system"), between]))

    @property
    def text(self) -> str:
        """All text that reached the model: system prompt, messages, the tools' results."""
        contents = [message["content"] for message in self.messages]
        return "\n".join(_texts([self.body.get("system"), contents]))

    @property
    def last_user_text(self) -> str:
        """The last message of the role `user`, with the reminders the client put into it."""
        users = [message["content"] for message in self.messages if message["role"] == "user"]
        return "\n".join(_texts(users[-1:]))

    @property
    def tool_names(self) -> frozenset[str]:
        """The tools the model may call."""
        return frozenset(definition["name"] for definition in self.body.get("tools", []))


def _texts(content: Any) -> Iterator[str]:
    """The texts in any part of a request: a string, a block, or a nested list of these."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            yield from _texts(part)
    elif isinstance(content, dict):
        yield from _texts(content.get("text"))
        yield from _texts(content.get("content"))


class Conversation:
    """A script by prompt: `{"Which port": [[tool("Bash", …)], [text("7443")]]}`.

    The first key that the last prompt contains chooses the replies, and the model's messages since
    then are counted to choose among them: a repeated request gets the same reply again, and the
    last reply serves all that follow. A prompt that contains no key is answered with `otherwise`.
    Tool results and the client's reminders are no prompts, so remembered text chooses nothing.
    """

    def __init__(self, turns: Mapping[str, Sequence[Reply]], otherwise: str = "Understood.") -> None:
        self.turns = turns
        self.otherwise = otherwise

    def __call__(self, request: Request) -> Reply:
        answered = 0
        for message in reversed(request.messages):
            if message["role"] == "assistant":
                answered += 1
            elif prompt := _prompt(message):
                for key, replies in self.turns.items():
                    if key in prompt:
                        return replies[min(answered, len(replies) - 1)]
                break
        return [text(self.otherwise)]


def _prompt(message: Mapping[str, Any]) -> str:
    """What a user's message says itself, without tool results and the client's reminders."""
    if message["role"] != "user":
        return ""
    content = message["content"]
    blocks = [text(content)] if isinstance(content, str) else content
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    return "\n".join(part for part in texts if not part.startswith("<system-reminder>"))


class MessagesApi:
    """The server; a context manager. `script` may be replaced at any time.

    A script runs in a thread of its own for each request, so it may block on a
    `threading.Event` to hold the client in the middle of a turn. A script that raises fails the
    test when the server stops.
    """

    def __init__(self, script: Script | None = None) -> None:
        self.script: Script = script or Conversation({})
        self._requests: list[Request] = []
        self._script_errors: list[Exception] = []
        self._arrived = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """What `ANTHROPIC_BASE_URL` is to be."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def requests(self) -> list[Request]:
        """All requests so far, oldest first."""
        with self._arrived:
            return list(self._requests)

    @property
    def model_calls(self) -> list[Request]:
        """The requests that cost the user tokens: all but the counting ones."""
        return [request for request in self.requests if not request.counts_tokens]

    @property
    def subagent_calls(self) -> list[Request]:
        """The model calls of sub-agents."""
        return [request for request in self.model_calls if request.from_subagent]

    def wait_for(self, wanted: Callable[[Request], bool], timeout: float = 120.0) -> Request:
        """The first request that is `wanted`, waiting up to `timeout` seconds for it."""

        def found() -> Request | None:
            return next((request for request in self._requests if wanted(request)), None)

        with self._arrived:
            request = self._arrived.wait_for(found, timeout)
            received = [request.last_user_text[-200:] for request in self._requests]
        assert request, f"The request did not come within {timeout} s; received: {received}"
        return request

    def stop(self) -> None:
        """Stop answering; raise what a script raised."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        if self._script_errors:
            raise self._script_errors[0]

    def __enter__(self) -> MessagesApi:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _answer(self, request: Request) -> Reply:
        with self._arrived:
            self._requests.append(request)
            self._arrived.notify_all()
        try:
            return self.script(request)
        except Exception as error:  # noqa: BLE001 - raised again by stop()
            self._script_errors.append(error)
            return Failure(400, "invalid_request_error", f"The test's script raised {error!r}.")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle(self) -> None:
                try:
                    super().handle()
                except ConnectionError:  # the client was killed, or the turn interrupted
                    pass

            def do_HEAD(self) -> None:
                self._send(404, b"")

            def do_GET(self) -> None:
                self._send(404, b"{}")

            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.path, headers, json.loads(data or b"{}"))
                if request.counts_tokens:
                    with api._arrived:
                        api._requests.append(request)
                    self._send(200, json.dumps({"input_tokens": len(data) // 4}).encode())
                    return
                reply = api._answer(request)
                if isinstance(reply, Failure):
                    content = {"type": "error", "error": {"type": reply.kind, "message": reply.message}}
                    self._send(reply.status, json.dumps(content).encode(), reply.headers)
                    return
                blocks = reply if isinstance(reply, list) else reply.blocks
                message = as_message(blocks, request.body["model"], len(request.text) // 4)
                if isinstance(reply, Stopped):
                    message["stop_reason"] = reply.reason
                streams = request.body.get("stream")
                body = as_events(message) if streams else json.dumps(message).encode()
                kind = {"content-type": "text/event-stream"} if streams else {}
                self._send(200, body, kind, share=0.5 if isinstance(reply, Truncated) else 1.0)

            def _send(self, status: int, content: bytes, headers: Mapping[str, str] = MappingProxyType({}), share: float = 1.0) -> None:
                """Answer with `content`; if its `share` is less than 1, end the connection there."""
                self.send_response(status)
                size = str(len(content))
                for name, value in {"content-type": "application/json", "content-length": size, **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content[: int(len(content) * share)])
                self.close_connection = self.close_connection or share < 1

            def log_message(self, format: str, *arguments: object) -> None:
                """Keep the test's output free of access lines."""

        return Handler
