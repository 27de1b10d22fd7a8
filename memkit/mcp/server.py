"""Serve the tools and resources over stdin and stdout with the official SDK."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, BinaryIO

import memkit
from memkit.environment import install_command
from memkit.errors import MemkitError
from memkit.mcp import handshake, resources
from memkit.mcp.tools import TOOLS, call, schema_of
from memkit.memory import Memory
from memkit.text import one_line

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

logger = logging.getLogger(__name__)

Opener = Callable[[], Memory]
"""Opens the memory for one request: its settings may have changed since the last one."""


class MissingPackageError(MemkitError):
    """The extra `mcp` is not installed."""


def serve(open_memory: Opener) -> None:
    """Answer requests until stdin ends. Raise `MissingPackageError`.

    What other code prints goes to stderr, so that it cannot tear a message.
    """
    check_package()
    with _own_stdout() as out:
        first = sys.stdin.buffer.readline()
        answered = handshake.reply_to(first)
        if answered is not None:
            out.write(answered[1])
            out.flush()
        import anyio

        anyio.run(_serve, open_memory, first, sys.stdin.buffer, out, answered)


def check_package() -> None:
    """Raise `MissingPackageError` if the SDK is missing. Does not import it."""
    if find_spec("mcp") is None:
        raise MissingPackageError(
            f"`memkit mcp` needs another package; the user can run `{install_command('mcp')}`"
        )


async def _serve(
    open_memory: Opener, first: bytes, source: BinaryIO, target: BinaryIO, answered: tuple[Any, bytes] | None
) -> None:
    from mcp.server.stdio import stdio_server

    server = _server(open_memory)
    lines: Any = _Input(first, source)
    replies: Any = _Output(target, answered)
    async with stdio_server(lines, replies) as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _server(open_memory: Opener) -> Server[Any]:
    import anyio.to_thread
    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.shared.exceptions import MCPError

    def answer(name: str, arguments: dict[str, Any]) -> str:
        return call(name, arguments, open_memory())

    async def in_thread(function: Callable[[], Any]) -> Any:
        return await anyio.to_thread.run_sync(function)

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=tool.description,
                    input_schema=schema_of(tool),
                    annotations=types.ToolAnnotations(
                        read_only_hint=tool.is_read_only,
                        destructive_hint=tool.is_destructive,
                        open_world_hint=False,
                    ),
                )
                for name, tool in TOOLS.items()
            ]
        )

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            text, failed = await in_thread(partial(answer, params.name, params.arguments or {})), False
        except Exception as error:  # noqa: BLE001 - a failure is an answer
            text, failed = _reason(params.name, error), True
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)

    async def list_resources(context: Any, params: Any) -> types.ListResourcesResult:
        found = await in_thread(lambda: resources.known(open_memory()))
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=one.uri, name=one.name, title=one.title, mime_type=resources.TYPE)
                for one in found
            ]
        )

    async def list_templates(context: Any, params: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(uri_template=uri, name=name, mime_type=resources.TYPE)
                for name, uri in resources.TEMPLATES.items()
            ]
        )

    async def read_resource(
        context: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            text = await in_thread(lambda: resources.read(uri, open_memory()))
        except Exception as error:
            raise MCPError(types.INVALID_PARAMS, _reason(uri, error)) from error
        contents = types.TextResourceContents(uri=uri, mime_type=resources.TYPE, text=text)
        return types.ReadResourceResult(contents=[contents])

    return Server(
        handshake.NAME,
        version=memkit.__version__,
        instructions=handshake.INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )


def _reason(what: str, error: Exception) -> str:
    """Return a line about a failed request; log what memkit did not foresee."""
    if isinstance(error, MemkitError):
        return one_line(str(error), 1000)
    logger.error("%s failed", one_line(what, 200), exc_info=error)
    return one_line(f"memkit failed: {type(error).__name__}: {error}; see `memkit logs`", 1000)


class _Input:
    """The lines of stdin for the SDK, the one that was read already first."""

    def __init__(self, first: bytes, source: BinaryIO) -> None:
        self._first = first
        self._source = source

    async def __aiter__(self) -> AsyncIterator[str]:
        from anyio import to_thread

        line = self._first
        while line:
            yield line.decode("utf-8", "replace")
            line = await to_thread.run_sync(self._source.readline, abandon_on_cancel=True)


class _Output:
    """Writes the SDK's messages, but not the reply to what is answered already."""

    def __init__(self, target: BinaryIO, answered: tuple[Any, bytes] | None) -> None:
        self._target = target
        self._dropped = answered

    async def write(self, text: str) -> None:
        """Write one message. A client that has gone gets nothing: the end of stdin ends the server."""
        from anyio import to_thread

        if self._dropped is not None and _answers(text, self._dropped[0]):
            self._dropped = None
            return
        await to_thread.run_sync(self._write, text.encode("utf-8"))

    async def flush(self) -> None:
        """Do nothing: each message is flushed when it is written."""

    def _write(self, data: bytes) -> None:
        try:
            self._target.write(data)
            self._target.flush()
        except BrokenPipeError:
            logger.info("the client has gone")


def _answers(text: str, name: Any) -> bool:
    from memkit.state import parse_json

    message = parse_json(text)
    return isinstance(message, dict) and message.get("id") == name and "method" not in message


@contextmanager
def _own_stdout() -> Iterator[BinaryIO]:
    """Give the real stdout to the caller alone; everything else that prints reaches stderr."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with os.fdopen(os.dup(kept), "wb") as file:
            yield file
    finally:
        os.dup2(kept, 1)
        os.close(kept)
