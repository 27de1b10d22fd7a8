"""`memkit expand` and `memkit cite`: from a result to its context, and from a bullet to its proof."""

from __future__ import annotations

from typing import Any

import click

from memkit.cli.context import Context, command
from memkit.cli.output import echo, plain, styled
from memkit.text import one_line

EVENT_CHARACTERS = 200


@command("expand")
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
def expand_command(context: Context, ids: tuple[str, ...]) -> None:
    """Show the whole Markdown section around a search result, and where it comes from.

    ID is an id that `memkit search` printed, or its first characters.

    \b
      memkit expand 20e3d2c8274c
      memkit expand 20e3 7c11 --json
    """
    context.stay_in_project()
    sections = context.memory().expand(*ids)
    if context.as_json:
        context.print_json({"sections": sections})
        return
    for section in sections:
        _show(section)


def _show(section: dict[str, Any]) -> None:
    session, branch = section["session"], section["branch"]
    click.echo(f"{styled(section['id'], fg='yellow')}  {styled(section['breadcrumb'], bold=True)}")
    echo(f"{section['path']}:{section['start_line']}-{section['end_line']}", dim=True)
    if session:
        echo(f"session {session}{f', branch {branch}' if branch else ''}", dim=True)
    echo(f"\n{section['content']}\n")
    for citation in section["citations"]:
        echo(f"proof of a bullet: memkit cite {citation}", dim=True)
    for turn in section["turns"]:
        line = f"original exchange: memkit transcript {f'{session} ' * bool(session)}--turn {turn}"
        if turn in section["missing"]:
            line = f"(turn {turn} cannot be read: the archive of its session is damaged; see `memkit doctor`)"
        echo(line, dim=True)
    if session and section["transcript"] is None and not section["archived"]:
        echo("(its transcript is no longer on this machine)", dim=True)


@command("cite")
@click.argument("citation_id", metavar="ID")
@click.option(
    "--context", "around", type=click.IntRange(0, 100), default=3, show_default=True,
    help="Number of events to show before and after the proof.",
)  # fmt: skip
def cite_command(context: Context, citation_id: str, around: int) -> None:
    """Show the proof of a summary's bullet: an excerpt of its turns, and the events around it.

    ID is a citation as `memkit search` and `memkit expand` print it, or its first characters.

    \b
      memkit cite 82c57f55
      memkit cite 82c57f55 --context 10
    """
    context.stay_in_project()
    citation = context.memory().cite(citation_id, around)
    if context.as_json:
        context.print_json(citation.as_dict())
        return
    click.echo(f"{styled(citation.id, fg='yellow')}  {styled(citation.bullet, bold=True)}")
    echo(f"{citation.day}, session {citation.session}", dim=True)
    if not citation.source:
        echo("\nIts turns are no longer in the memory, and no original of them is kept.")
        return
    echo(f"\n“{citation.excerpt}”")
    echo(f"from the {citation.source}, turns {', '.join(citation.turns)}", dim=True)
    for number, message in enumerate(citation.events):
        mark = styled(">", fg="yellow") if number == citation.place else " "
        text = one_line(plain(" ".join(message.texts())), EVENT_CHARACTERS)
        click.echo(f"{mark} {plain(message.role):<10}{text}")
