"""`memkit expand`."""

from __future__ import annotations

import logging
from typing import Any

import click

from memkit.cli.context import Context, command, plain, styled

logger = logging.getLogger(__name__)


@command("expand")
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
def expand_command(context: Context, ids: tuple[str, ...]) -> None:
    """Show the whole markdown section around a search result, and where it came from.

    ID is an id that `memkit search` printed, or the first characters of one.

    \b
      memkit expand 20e3d2c8274c
      memkit expand 20e3 7c11 --json
    """
    from memkit.ipc.client import ServiceUnavailable
    from memkit.recall import usage

    context.stay_in_project()
    try:
        sections = _by_service(context, ids)
    except ServiceUnavailable:
        sections = _here(context, ids)
    try:
        usage.note(context.home, "expand", [section["id"] for section in sections])
    except OSError as error:  # the count is not worth the answer
        logger.warning("not counted: %s", error)
    if context.as_json:
        context.print_json({"sections": sections})
        return
    for section in sections:
        _show(section)


def _by_service(context: Context, ids: tuple[str, ...]) -> list[dict[str, Any]]:
    from memkit.recall.ask import ask_service

    arguments = {"ids": list(ids), "other_projects": context.may_leave_project}
    found = ask_service(
        context.project,
        context.home,
        context.settings(),
        "expand",
        arguments,
        announce=context.say,
    )
    sections: list[dict[str, Any]] = found["sections"]
    return sections


def _here(context: Context, ids: tuple[str, ...]) -> list[dict[str, Any]]:
    from memkit.recall.expand import expand_known

    return [
        expand_known(
            context.project,
            context.home,
            context.settings_of,
            name,
            other_projects=context.may_leave_project,
        ).as_dict()
        for name in ids
    ]


def _show(section: dict[str, Any]) -> None:
    place = f"{section['path']}:{section['start_line']}-{section['end_line']}"
    breadcrumb = styled(plain(section["breadcrumb"]), bold=True)
    click.echo(f"{styled(section['id'], fg='yellow')}  {breadcrumb}")
    click.echo(styled(plain(place), dim=True))
    session = section["session"]
    if session:
        branch = f", branch {section['branch']}" if section["branch"] else ""
        click.echo(styled(plain(f"session {session}{branch}"), dim=True))
    click.echo(f"\n{plain(section['content'])}\n")
    for grip in section["citations"]:
        click.echo(styled(plain(f"proof of a bullet: memkit grip {grip}"), dim=True))
    for turn in section["turns"]:
        if turn in section["missing"]:
            lost = f"(turn {turn} cannot be read: the archive of its session is damaged; see `memkit doctor`)"
            click.echo(styled(plain(lost), dim=True))
            continue
        named = f"{session} " if session else ""
        exchange = f"original exchange: memkit transcript {named}--turn {turn}"
        click.echo(styled(plain(exchange), dim=True))
    if session and section["transcript"] is None and not section["archived"]:
        click.echo(styled("(its transcript is no longer on this machine)", dim=True))
