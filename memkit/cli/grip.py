"""`memkit grip`."""

from __future__ import annotations

import click

from memkit.cli.context import Context, command, plain, styled


@command("grip")
@click.argument("grip_id", metavar="ID")
@click.option(
    "--context", "around", type=click.IntRange(0, 100), default=3, show_default=True,
    help="Events shown before and after the one that proves it.",
)  # fmt: skip
def grip_command(context: Context, grip_id: str, around: int) -> None:
    """Show what a bullet of a summary rests on: an excerpt of its turns, and the events around it.

    ID is the id of a grip as `memkit search` and `memkit expand` print it, or its beginning.

    \b
      memkit grip 82c57f55
      memkit grip 82c57f55 --context 10
    """
    from memkit.privacy.redact import redact
    from memkit.recall.citation import find_grip

    context.stay_in_project()
    patterns = context.settings().capture.compiled_patterns()
    grip = find_grip(
        context.project,
        context.home,
        grip_id,
        around,
        lambda text: redact(text, patterns),
        other_projects=context.may_leave_project,
    )
    if context.as_json:
        context.print_json(grip.as_dict())
        return
    click.echo(f"{styled(plain(grip.id), fg='yellow')}  {styled(plain(grip.bullet), bold=True)}")
    click.echo(styled(plain(f"{grip.day}, session {grip.session}"), dim=True))
    if not grip.source:
        click.echo("\nIts turns are no longer in the memory, and no original of them is kept.")
        return
    click.echo(f"\n“{plain(grip.excerpt)}”")
    click.echo(styled(f"from the {grip.source}, turns {plain(', '.join(grip.turns))}", dim=True))
    for number, message in enumerate(grip.events):
        mark = styled(">", fg="yellow") if number == grip.place else " "
        text = " ".join(plain(" ".join(message.texts())).split())
        shown = text if len(text) <= 200 else text[:199] + "…"
        click.echo(f"{mark} {plain(message.role):<10}{shown}")
