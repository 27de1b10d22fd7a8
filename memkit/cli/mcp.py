"""`memkit mcp`."""

from __future__ import annotations

import click

from memkit.cli.context import Context, command


@command("mcp")
@click.option("--build-index", is_flag=True, help="Bring the index up to date first.")
def mcp_command(context: Context, build_index: bool) -> None:
    """Serve this project's memory to an MCP client over stdin and stdout.

    A client starts this command itself; `memkit setup --mcp CLIENT` writes its entry. The tools are
    memory_search, memory_expand, memory_transcript, memory_timeline, memory_topics, memory_remember, and
    memory_forget. The memory is that of the working directory, or of --project. Needs the package mcp.

    \b
      memkit mcp
      memkit mcp --project ~/src/shop
    """
    from memkit.mcp.server import serve

    if build_index:
        context.memory().index()
    serve(lambda: context.memory(for_agent=True))
