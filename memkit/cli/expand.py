"""`memkit expand`."""

from __future__ import annotations

import click

from memkit.cli.context import Context, command, plain, styled
from memkit.errors import NotFoundError


@command("expand")
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
def expand_command(context: Context, ids: tuple[str, ...]) -> None:
    """Show the whole markdown section around a search result, and where it came from.

    ID is an id that `memkit search` printed, or the first characters of one.
    """
    from memkit.index.current import open_chunks
    from memkit.recall.expand import expand

    settings = context.settings()
    chunks = open_chunks(context.project, context.home, settings)
    if chunks is None:
        raise NotFoundError(
            f"{context.project.root} has no index yet; `memkit index` or a search makes it"
        )
    sections = [expand(context.project, context.home, chunks, name) for name in ids]
    if context.as_json:
        context.print_json({"sections": [section.as_dict() for section in sections]})
        return
    for section in sections:
        chunk = section.chunk
        place = f"{section.path}:{section.start_line}-{section.end_line}"
        breadcrumb = styled(plain(chunk.breadcrumb), bold=True)
        click.echo(f"{styled(section.id, fg='yellow')}  {breadcrumb}")
        click.echo(styled(plain(place), dim=True))
        if chunk.session:
            branch = f", branch {chunk.branch}" if chunk.branch else ""
            click.echo(styled(plain(f"session {chunk.session}{branch}"), dim=True))
        click.echo(f"\n{plain(section.content)}\n")
        for turn in section.turns:
            session = f"{chunk.session} " if chunk.session else ""
            exchange = f"original exchange: memkit transcript {session}--turn {turn}"
            click.echo(styled(plain(exchange), dim=True))
        if chunk.session and section.transcript is None:
            click.echo(styled("(its transcript is no longer on this machine)", dim=True))
