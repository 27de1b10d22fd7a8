"""`memkit search`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

import click

from memkit.cli.context import Context, command, plain
from memkit.errors import MemkitError

if TYPE_CHECKING:
    from memkit.recall.search import Answer

SHOWN_CHARACTERS = 600
MODES = ("context", "lexical", "dense")


@command("search", short_help="Find what was said and done.")
@click.argument("query", required=False)
@click.option("-k", "k", type=click.IntRange(1, 1000), help="How many results (setting search.k).")
@click.option("--mode", type=click.Choice(MODES), help="How to rank (setting search.mode).")
@click.option(
    "--batch",
    type=click.File("r", encoding="utf-8-sig", errors="replace"),
    metavar="FILE|-",
    help='One query a line, plain or as {"query": …}; prints a JSON object a line.',
)
def search_command(
    context: Context, query: str | None, k: int | None, mode: str | None, batch: TextIO | None
) -> None:
    """Find what was said and done, best first.

    \b
      memkit search "which port does the staging gateway use"
      memkit search -k 10 --json deploy/gateway.yaml
    """
    if (query is None) == (batch is None):
        raise click.UsageError("give a QUERY, or --batch with a file of them")
    from memkit.recall.search import open_searcher

    flags: dict[tuple[str, str], Any] = {("search", "mode"): mode} if mode else {}
    searcher = open_searcher(
        context.project, context.home, context.settings(flags), announce=context.say
    )
    if batch is not None:
        for line in _queries(batch):
            context.print_json(searcher.search(line, k).as_dict())
        return
    answer = searcher.search(str(query), k)
    if context.as_json:
        context.print_json(answer.as_dict())
        return
    if answer.degraded:
        context.say(answer.degraded)
    if searcher.snapshot is None:
        context.say(f"{context.project.root} has no memory yet")
    _show(context, answer)


def _queries(batch: TextIO) -> Iterator[str]:
    for number, line in enumerate(batch, start=1):
        text = line.strip()
        if not text:
            continue
        if not text.startswith("{"):
            yield text
            continue
        try:
            query = json.loads(text)["query"]
            if not isinstance(query, str):
                raise TypeError
        except (ValueError, KeyError, TypeError) as error:
            raise MemkitError(
                f'--batch, line {number}: expected {{"query": "…"}} or plain text'
            ) from error
        yield query


def _show(context: Context, answer: Answer) -> None:
    from rich.text import Text

    from memkit.recall.search import shortened

    if not answer.results:
        context.console.print("Nothing found.")
    for result in answer.results:
        chunk = result.chunk
        context.console.print(
            Text.assemble(
                (result.id, "yellow"),
                "  ",
                (plain(chunk.breadcrumb or chunk.source), "bold"),
            )
        )
        place = f"{chunk.source}:{chunk.start_line}-{chunk.end_line}"
        context.console.print(Text(f"{place}  score {result.score:.3f}", "dim"))
        context.console.print(Text(plain(shortened(result, SHOWN_CHARACTERS))))
        context.console.print()
