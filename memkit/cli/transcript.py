"""`memkit transcript`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command
from memkit.cli.output import echo, styled

if TYPE_CHECKING:
    from memkit.claude_code.exchange import Message
    from memkit.recall.transcript import Exchange

SHOWN_CHARACTERS = 2000


@command("transcript")
@click.argument("session", required=False)
@click.option("--turn", metavar="ID", help="Show only this turn; `memkit expand` prints its ID.")
@click.option(
    "--context", "around", type=click.IntRange(0, 1000), default=3, show_default=True,
    help="Number of messages to show before and after the turn.",
)  # fmt: skip
def transcript_command(context: Context, session: str | None, turn: str | None, around: int) -> None:
    """Show the original exchange from Claude Code's transcript, or from memkit's archive.

    SESSION is a session's id, its first characters, or the path of any transcript (.jsonl). Without it,
    show the session that holds the turn, or the project's latest session.

    \b
      memkit transcript
      memkit transcript --turn 8b52f4fb --context 0
      memkit transcript 8bb06550 --json
    """
    context.stay_in_project()
    exchange = context.memory().transcript(session, turn, around)
    if context.as_json:
        context.print_json(exchange.as_dict())
        return
    _show_origin(context, exchange)
    for message in exchange.messages:
        _show(message, mark=bool(exchange.turn) and message.turn == exchange.turn)


def _show_origin(context: Context, exchange: Exchange) -> None:
    original = exchange.original
    place = str(original.path)
    if original.archive is not None:
        place = f"session {original.session}, from memkit's archive: its transcript is gone"
    echo(place, dim=True)
    named = {"branch": exchange.branch, "commit": exchange.commit}
    if line := ", ".join(f"{name} {value}" for name, value in named.items() if value):
        echo(line, dim=True)
    if damaged := original.damaged_bytes:
        missing = f", including turns {', '.join(exchange.missing)}" if exchange.missing else ""
        context.say(f"{damaged:,} bytes of this archive cannot be read{missing}; see `memkit doctor`")


def _show(message: Message, *, mark: bool) -> None:
    when = f"{message.time.astimezone():%Y-%m-%d %H:%M:%S}" if message.time else ""
    color = {"user": "cyan", "assistant": "green"}.get(message.role)
    role = styled(message.role, fg=color, bold=True)
    click.echo(f"{role}  {styled(when, dim=True)}{'  *' if mark else ''}")
    if message.text:
        echo(message.text)
    for tool in message.tools:
        if tool.result is None:
            line = f"→ {tool.name} {json.dumps(tool.input, ensure_ascii=False)}"
        else:
            line = f"← {tool.name}{' failed' if tool.is_error else ''}: {tool.result}"
        if len(line) > SHOWN_CHARACTERS:
            left = len(line) - SHOWN_CHARACTERS
            line = f"{line[:SHOWN_CHARACTERS]} … ({left:,} characters more; --json shows them)"
        echo(line, dim=True)
    echo()
