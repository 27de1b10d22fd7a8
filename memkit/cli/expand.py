"""`memkit expand`."""

from __future__ import annotations

import click

from memkit.cli.context import Context, command, plain
from memkit.errors import NotFoundError


@command("expand", short_help="Show the whole section around a result.")
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
def expand_command(context: Context, ids: tuple[str, ...]) -> None:
    """Show the whole markdown section around a search result, and where it came from.

    ID is an id that `memkit search` printed, or the first characters of one.
    """
    from memkit.index.current import open_snapshot
    from memkit.recall.expand import expand

    settings = context.settings()
    snapshot = open_snapshot(context.project, context.home, settings)
    if snapshot is None:
        raise NotFoundError(
            f"{context.project.root} has no index yet; `memkit index` or a search makes it"
        )
    sections = [expand(context.project, context.home, snapshot, name) for name in ids]
    if context.as_json:
        context.print_json({"sections": [section.as_dict() for section in sections]})
        return
    from rich.text import Text

    for section in sections:
        chunk = section.chunk
        place = f"{section.path}:{section.start_line}-{section.end_line}"
        context.console.print(
            Text.assemble((section.id, "yellow"), "  ", (plain(chunk.breadcrumb), "bold"))
        )
        context.console.print(Text(place, "dim"))
        if chunk.session:
            branch = f", branch {chunk.branch}" if chunk.branch else ""
            context.console.print(Text(f"session {chunk.session}{branch}", "dim"))
        context.console.print()
        context.console.print(Text(plain(section.content)))
        context.console.print()
        for turn in section.turns:
            session = f"{chunk.session} " if chunk.session else ""
            context.console.print(
                Text(f"original exchange: memkit transcript {session}--turn {turn}", "dim")
            )
        if chunk.session and section.transcript is None:
            context.console.print(Text("(its transcript is no longer on this machine)", "dim"))
