"""`memkit expand`, `cite`, and `transcript`: from a result to its context, proof, and original exchange."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from shlex import quote
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command
from memkit.cli.output import echo, plain, styled
from memkit.cli.screen import width
from memkit.cli.sessions import list_sessions
from memkit.text import one_line

if TYPE_CHECKING:
    from memkit.browse.expand import Section
    from memkit.browse.transcript import Exchange
    from memkit.conversation.turn import Message

EVENT_CHARACTERS = 200
SHOWN_CHARACTERS = 2000
RULE_COLUMNS = 80


@command("expand")
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
def expand_command(context: Context, ids: tuple[str, ...]) -> None:
    """Show the whole Markdown section around an entry, and where it comes from.

    ID is one that `memkit search` printed, or its first characters.

    \b
      memkit expand 8b52f4fb
      memkit expand 8b52 82c5 --json
    """
    sections = context.memory().expand(*ids)
    if context.as_json:
        context.print_json({"sections": sections})
        return
    for section in sections:
        _show(section, context.project.root)


def _show(section: Section, root: str) -> None:
    session, branch, columns = section["session"], section["branch"], width()
    echo(f"{section['id']}  {section['breadcrumb']}", columns, bold=True)
    author = section.get("author", "")
    place = f"{section['path'] or section['source']}:{section['start_line']}-{section['end_line']}"
    echo(f"{place}, of {author}" if author else place, columns, dim=True)
    if session:
        echo(f"session {session}{f', branch {branch}' if branch else ''}", columns, dim=True)
    if section.get("team"):
        echo(one_line(section["team"]["line"]), columns, fg="magenta")
    if section.get("git"):
        echo(f"git: {one_line(section['git']['line'])}", columns, fg="magenta")
    echo(f"\n{section['content']}\n", columns)
    if author:
        echo(f"(the rest of its file and its transcript are on the machine of {author})", columns, dim=True)
        return
    for citation in section["citations"]:
        echo(f"proof of a bullet: memkit cite {quote(citation)}", columns, dim=True)
    for turn in section["turns"]:
        where = f"{quote(session)} " if session and section["root"] != root else ""  # it is long
        line = f"original exchange: memkit transcript {where}--turn {quote(turn)}"
        if turn in section["missing"]:
            damage = "the archive of its session is damaged; see `memkit doctor --deep`"
            line = f"(turn {turn} cannot be read: {damage})"
        echo(line, columns, dim=True)
    if session and section["transcript"] is None and not section["archived"]:
        echo("(its transcript is no longer on this machine)", columns, dim=True)


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
    citation = context.memory().cite(citation_id, around)
    if context.as_json:
        context.print_json(citation.as_dict())
        return
    click.echo(f"{styled(citation.id, fg='cyan')}  {styled(citation.bullet, bold=True)}")
    echo(f"{citation.day}, session {citation.session}", dim=True)
    if not citation.source:
        echo("\nIts turns are no longer in the memory, and no original of them is kept.")
        return
    echo(f"\n“{citation.excerpt}”")
    echo(f"from the {citation.source}, turns {', '.join(citation.turns)}", dim=True)
    for number, message in enumerate(citation.events):
        mark = styled(">", fg="cyan") if number == citation.place else " "
        text = one_line(plain(" ".join(message.texts())), EVENT_CHARACTERS)
        click.echo(f"{mark} {plain(message.role):<10}{text}")


@command("transcript")
@click.argument("session", required=False)
@click.option("--turn", metavar="ID", help="Show only this turn; `memkit show` prints its ID.")
@click.option(
    "--context", "around", type=click.IntRange(0, 1000), default=0, show_default=True,
    help="Number of messages to show before and after the turn.",
)  # fmt: skip
def transcript_command(context: Context, session: str | None, turn: str | None, around: int) -> None:
    """Show the original exchange from Claude Code's transcript, or from memkit's archive.

    SESSION is a session's id, its first characters, or the path of any transcript (.jsonl). Without it,
    show the session that holds the turn; without a turn, list sessions as `memkit sessions` does.

    \b
      memkit transcript
      memkit transcript --turn 8b52f4fb --context 3
      memkit transcript 8bb06550 --json
    """
    if session is None and turn is None:
        list_sessions(context)
        return
    exchange = context.memory().transcript(session, turn, around)
    context.report_page(exchange.as_dict(), chain(_origin(context, exchange), _messages(exchange)))


def _origin(context: Context, exchange: Exchange) -> Iterator[str]:
    original = exchange.original
    place = str(original.path)
    if original.archive is not None:
        place = f"session {original.session}, from memkit's archive: its transcript is gone"
    yield styled(place, dim=True)
    named = {"branch": exchange.branch, "commit": exchange.commit}
    if line := ", ".join(f"{name} {value}" for name, value in named.items() if value):
        yield styled(line, dim=True)
    if damaged := original.damaged_bytes:
        missing = f", including turns {', '.join(exchange.missing)}" if exchange.missing else ""
        context.say(f"{damaged:,} bytes of this archive cannot be read{missing}; see `memkit doctor --deep`")


def _messages(exchange: Exchange) -> Iterator[str]:
    inside = False
    for message in exchange.messages:
        if bool(exchange.turn) and (message.turn == exchange.turn) != inside:
            inside = not inside
            yield _rule(f"turn {exchange.turn}" if inside else f"end of turn {exchange.turn}")
        yield from _lines(message, is_context=bool(exchange.turn) and not inside)
    if inside:
        yield _rule(f"end of turn {exchange.turn}")


def _rule(words: str) -> str:
    return styled(f"── {words} ".ljust(min(width(), RULE_COLUMNS), "─"), bold=True)


def _lines(message: Message, *, is_context: bool) -> Iterator[str]:
    when = f"{message.time.astimezone():%Y-%m-%d %H:%M:%S}" if message.time else ""
    color = {"user": "cyan", "assistant": "green"}.get(message.role)
    yield f"{styled(message.role, fg=color, bold=True)}  {styled(when, dim=True)}"
    if message.text:
        yield styled(message.text, dim=True) if is_context else plain(message.text)
    for tool in message.tools:
        if tool.result is None:
            line = f"→ {tool.name} {json.dumps(tool.input, ensure_ascii=False)}"
        else:
            line = f"← {tool.name}{' failed' if tool.is_error else ''}: {tool.result}"
        if len(line) > SHOWN_CHARACTERS:
            left = len(line) - SHOWN_CHARACTERS
            line = f"{line[:SHOWN_CHARACTERS]} … ({left:,} characters more; --json shows them)"
        yield styled(line, dim=True)
    yield ""
