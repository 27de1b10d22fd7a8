"""`memkit expand`."""

from __future__ import annotations

from typing import Any

import click

from memkit.cli.context import Context, command
from memkit.cli.output import plain, styled


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
    def echo_dim(text: str) -> None:
        click.echo(styled(plain(text), dim=True))

    session, branch = section["session"], section["branch"]
    breadcrumb = styled(plain(section["breadcrumb"]), bold=True)
    click.echo(f"{styled(section['id'], fg='yellow')}  {breadcrumb}")
    echo_dim(f"{section['path']}:{section['start_line']}-{section['end_line']}")
    if session:
        echo_dim(f"session {session}{f', branch {branch}' if branch else ''}")
    click.echo(f"\n{plain(section['content'])}\n")
    for citation in section["citations"]:
        echo_dim(f"proof of a bullet: memkit cite {citation}")
    for turn in section["turns"]:
        if turn in section["missing"]:
            echo_dim(
                f"(turn {turn} cannot be read: the archive of its session is damaged; see `memkit doctor`)"
            )
        else:
            echo_dim(f"original exchange: memkit transcript {f'{session} ' * bool(session)}--turn {turn}")
    if session and section["transcript"] is None and not section["archived"]:
        echo_dim("(its transcript is no longer on this machine)")
