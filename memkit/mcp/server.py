"""Serve the tools and resources over stdin and stdout with the official SDK."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn, TypeVar

import memkit
from memkit.environment import extras
from memkit.errors import MemkitError
from memkit.mcp import handshake
from memkit.text import one_line

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from memkit.interface import InterfaceMemory

logger = logging.getLogger(__name__)

Found = TypeVar("Found")

MOST_CALLS = 8
"""The calls that run at once. More wait: each can load the index."""

LOCK_SECONDS = 30.0
"""The longest wait for another process that writes the index: clients give up after a minute."""

MOST_EARLY = 4
"""The requests answered without the SDK. A pipe holds as many replies, so that reading never waits."""

LAST_SECONDS = 2.0
"""Longest time for calls and replies after the end of stdin: a call may be writing a note."""

Opener = Callable[[], "InterfaceMemory"]
"""Opens the memory for one request: its settings may have changed since the last one."""


def serve(open_memory: Opener) -> NoReturn:
    """Answer requests until stdin ends, then end the process. Raise `MissingPackageError`.

    What other code prints goes to stderr, so that it cannot tear a message. Threads that still read, write to
    a client that does not read, or wait for a lock do not keep the process.
    """
    check_package()
    source, target = _own_streams()
    calls = _Calls()
    # asyncio would cancel its main task instead, which the SDK may miss.
    signal.signal(signal.SIGINT, lambda *_: _end(calls, 130))
    status = 1
    try:
        replies = _Output(target)
        lines = _Input(source, replies)
        threading.Thread(target=lines.read, daemon=True).start()
        lines.needs_sdk.wait()
        import anyio

        anyio.run(_serve, _server(open_memory, calls), lines, replies)
        status = 0
    except Exception:
        logger.exception("memkit mcp failed")
    _end(calls, status)


def _end(calls: _Calls, status: int) -> NoReturn:
    calls.wait(LAST_SECONDS)
    logging.shutdown()
    os._exit(status)


def check_package() -> None:
    """Raise `MissingPackageError` if the SDK is missing. Does not import it."""
    extras.require("mcp", "`memkit mcp` needs", "mcp")


async def _serve(server: Server[Any], lines: Any, replies: Any) -> None:
    import anyio
    from mcp.server.stdio import stdio_server

    with anyio.CancelScope() as scope:
        async with stdio_server(lines, replies) as (read, write):
            await server.run(read, write, server.create_initialization_options())
            scope.deadline = anyio.current_time() + LAST_SECONDS  # a client may read no more replies


def _server(open_memory: Opener, calls: _Calls) -> Server[Any]:
    import anyio
    import anyio.to_thread
    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.shared.exceptions import MCPError

    # Not before the handshake: they import half of memkit.
    from memkit.mcp import tools

    limiter = anyio.CapacityLimiter(MOST_CALLS)

    def answer(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        memory = open_memory()
        memory.wait_seconds = LOCK_SECONDS
        return tools.call(name, arguments, memory)

    async def in_thread(function: Callable[[], Any]) -> Any:
        run = partial(calls.run, function)
        return await anyio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=limiter)

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult.model_validate({"tools": tools.described()})

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            found = await in_thread(partial(answer, params.name, params.arguments or {}))
        except Exception as error:  # noqa: BLE001 - a failure is an answer
            content = types.TextContent(type="text", text=_reason(params.name, error))
            return types.CallToolResult(content=[content], is_error=True)
        content = types.TextContent(type="text", text=found["text"])
        return types.CallToolResult(content=[content], structured_content=found)

    async def list_resources(context: Any, params: Any) -> types.ListResourcesResult:
        found = await in_thread(lambda: tools.known_resources(open_memory()))
        return types.ListResourcesResult.model_validate({"resources": found})

    async def list_templates(context: Any, params: Any) -> types.ListResourceTemplatesResult:
        found = {"resourceTemplates": tools.RESOURCE_TEMPLATES}
        return types.ListResourceTemplatesResult.model_validate(found)

    async def read_resource(
        context: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            text = await in_thread(lambda: tools.read_resource(uri, open_memory()))
        except Exception as error:
            raise MCPError(types.INVALID_PARAMS, _reason(uri, error)) from error
        contents = types.TextResourceContents(uri=uri, mime_type=tools.RESOURCE_TYPE, text=text)
        return types.ReadResourceResult(contents=[contents])

    return Server(
        handshake.NAME, version=memkit.__version__, instructions=handshake.INSTRUCTIONS,
        on_list_tools=list_tools, on_call_tool=call_tool, on_list_resources=list_resources,
        on_list_resource_templates=list_templates, on_read_resource=read_resource,
    )


def _reason(what: str, error: Exception) -> str:
    if isinstance(error, MemkitError):
        from memkit.mcp.tools import in_tools

        return one_line(in_tools(str(error)), 1000)
    logger.error("%s failed", one_line(what, 200), exc_info=error)
    return one_line(f"memkit failed: {type(error).__name__}: {error}; see `memkit logs`", 1000)


class _Input:
    """The lines of stdin for the SDK. A thread reads them, and answers what needs no SDK.

    They end when all requests are answered: the SDK cancels those under way.
    """

    def __init__(self, source: BinaryIO, replies: _Output) -> None:
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        self._source = source
        self._replies = replies
        self.needs_sdk = threading.Event()  # not before: importing it would slow down the first answers

    def read(self) -> None:
        """Read until the end, which is an empty line in the queue."""
        early = 0
        try:
            for line in iter(self._source.readline, b""):
                message = handshake.message_of(line)
                method = message.get("method")
                answered = handshake.reply_to(line) if early < MOST_EARLY else None
                if answered is not None:
                    name, data = answered
                    self._replies.send(data)
                    early += 1
                    if method == "server/discover":  # after it, the SDK would refuse `initialize`
                        continue
                    self._replies.answered.append(name)
                self._replies.expect(message)
                self._lines.put(line)
                if method == "tools/list" or (answered is None and method != "notifications/initialized"):
                    self.needs_sdk.set()
        except OSError as error:  # such as a socket whose other end was killed
            logger.info("the client has gone: %s", error)
        finally:
            self._lines.put(b"")
            self.needs_sdk.set()

    async def __aiter__(self) -> AsyncIterator[str]:
        from anyio import to_thread

        while line := await to_thread.run_sync(self._lines.get, abandon_on_cancel=True):
            yield line.decode("utf-8", "replace")
        await self._replies.complete()


class _Output:
    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self.answered: list[Any] = []  # requests whose answers by the SDK are dropped
        self._expected: set[str] = set()
        self._sent: Any = None

    def expect(self, message: Mapping[str, Any]) -> None:
        """Note the request in a message, if it is one."""
        if "method" in message and "id" in message:
            self._expected.add(repr(message["id"]))

    async def complete(self) -> None:
        """Wait until each request has its answer, at most `LAST_SECONDS`."""
        import anyio

        with anyio.move_on_after(LAST_SECONDS):
            while self._expected:
                self._sent = anyio.Event()
                await self._sent.wait()

    async def write(self, text: str) -> None:
        """Write one message. A client that has gone gets nothing: the end of stdin ends the server."""
        from anyio import to_thread

        data = text.encode("utf-8")
        message = handshake.message_of(data)
        if "method" not in message and message.get("id") in self.answered:
            self.answered.remove(message["id"])
        else:
            await to_thread.run_sync(self.send, data, abandon_on_cancel=True)
        self._expected.discard(repr(message.get("id")))
        if self._sent is not None:
            self._sent.set()

    async def flush(self) -> None:
        """Do nothing: each message is flushed when it is written."""

    def send(self, data: bytes) -> None:
        try:
            self._target.write(data)
            self._target.flush()
        except OSError as error:
            logger.info("the client has gone: %s", error)


class _Calls:
    def __init__(self) -> None:
        self._running = 0
        self._changed = threading.Condition()

    def run(self, function: Callable[[], Found]) -> Found:
        with self._changed:
            self._running += 1
        try:
            return function()
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait until no call runs, at most this long."""
        with self._changed:
            self._changed.wait_for(lambda: not self._running, seconds)


def _own_streams() -> tuple[BinaryIO, BinaryIO]:
    """Return the real stdin and stdout. Other code reads nothing, and prints to stderr."""
    sys.stdout.flush()
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, target
