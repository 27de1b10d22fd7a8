"""`memkit cite`, formerly `memkit grip`."""

from __future__ import annotations

import click

from memkit.cli.context import Context, command
from memkit.cli.output import plain, styled
from memkit.text import one_line

EVENT_CHARACTERS = 200


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
    bullet = styled(plain(citation.bullet), bold=True)
    click.echo(f"{styled(plain(citation.id), fg='yellow')}  {bullet}")
    click.echo(styled(plain(f"{citation.day}, session {citation.session}"), dim=True))
    if not citation.source:
        click.echo("\nIts turns are no longer in the memory, and no original of them is kept.")
        return
    turns = plain(", ".join(citation.turns))
    click.echo(f"\n“{plain(citation.excerpt)}”")
    click.echo(styled(f"from the {citation.source}, turns {turns}", dim=True))
    for number, message in enumerate(citation.events):
        mark = styled(">", fg="yellow") if number == citation.place else " "
        text = one_line(plain(" ".join(message.texts())), EVENT_CHARACTERS)
        click.echo(f"{mark} {plain(message.role):<10}{text}")
