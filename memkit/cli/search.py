"""`memkit search`."""

from __future__ import annotations

import dataclasses
import io
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

import click

from memkit.cli.context import Context, command, day_named, plain, styled
from memkit.errors import MemkitError
from memkit.index.chunk import KINDS
from memkit.state import parse_json

if TYPE_CHECKING:
    from memkit.recall.answers import Answer, SearchRequest
    from memkit.settings.load import Key

SHOWN_CHARACTERS = 600
MODES = ("context", "rrf", "weighted", "lexical", "dense")


@command("search")
@click.argument("query", required=False)
@click.option("-k", "k", type=click.IntRange(1, 1000), help="How many results (setting search.k).")
@click.option(
    "--budget",
    type=click.IntRange(50, 1_000_000),
    metavar="TOKENS",
    help="Fill so many tokens with the best text, nothing twice, in place of a number of results.",
)
@click.option("--mode", type=click.Choice(MODES), help="How to rank (setting search.mode).")
@click.option("--since", metavar="DAY", help="Not older: 2026-11-20, 3d, 2w, last monday.")
@click.option("--until", metavar="DAY", help="Not newer; that day is included.")
@click.option(
    "--session", default="", metavar="ID", help="Of one session; the id's beginning will do."
)
@click.option("--branch", default="", help="Of one git branch.")
@click.option("--kind", type=click.Choice(KINDS), default=None, help="Of one kind.")
@click.option("--path", default="", help="From one memory file, directory or pattern.")
@click.option("--all-projects", is_flag=True, help="Search the memories of all projects.")
@click.option(
    "--file", default="", metavar="PATH", help="The file being edited: its domain is raised."
)
@click.option(
    "--min-relevance",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Only results of at least this relevance, 0 to 1.",
)
@click.option("--all", "everything", is_flag=True, help="Whatever its relevance.")
@click.option("--explain", is_flag=True, help="Say of each result how it came to its place.")
@click.option(
    "--batch",
    metavar="-",
    help='One query a line on stdin, plain or as {"query": …}; prints a JSON object a line.',
)
def search_command(
    context: Context,
    query: str | None,
    mode: str | None,
    all_projects: bool,
    everything: bool,
    explain: bool,
    batch: str | None,
    **asked: Any,
) -> None:
    """Find what was said and done, best first.

    Nothing is shown if the memory holds nothing on the question; --all shows the nearest all the same.

    \b
      memkit search "which port does the staging gateway use"
      memkit search --since 2w --kind turn --json deploy/gateway.yaml
    """
    if (query is None) == (batch is None):
        raise click.UsageError("give a QUERY, or --batch - with one a line on stdin")
    if batch not in (None, "-"):  # Claude may run this unprompted: it opens no file for it
        raise click.UsageError("--batch takes - alone, and reads stdin")
    if asked["k"] and asked["budget"]:
        raise click.UsageError("give -k or --budget, not both")
    if everything and asked["min_relevance"] is not None:
        raise click.UsageError("give --min-relevance or --all, not both")
    from memkit.recall.ask import Asker

    context.stay_in_project(all_projects)
    if everything:
        asked["min_relevance"] = 0.0
    request = _request(context, query or "", explain, asked)
    flags: dict[Key, Any] = {("search", "mode"): mode} if mode else {}
    asker = Asker(
        context.project,
        context.home,
        context.settings(flags),
        context.say,
        all_projects=all_projects,
    )
    if batch is not None:
        lines = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", errors="replace")
        for number, line in _queries(lines):
            answer = asker.answer(dataclasses.replace(request, query=line))
            # Not the query: stdin can be any file, which whoever runs this may not be allowed to read.
            context.print_json({"line": number, **answer.as_dict(with_query=False)})
        return
    answer = asker.answer(request)
    if context.as_json:
        context.print_json(answer.as_dict())
        return
    if answer.degraded:
        context.say(answer.degraded)
    if not answer.chunks:
        context.say(f"{context.project.root} has no memory yet")
    _show(answer, "" if all_projects else context.project.root)


def _request(context: Context, query: str, explain: bool, asked: dict[str, Any]) -> SearchRequest:

    from memkit.recall.answers import Filters, SearchRequest

    return SearchRequest(
        query=query,
        k=asked["k"],
        budget=asked["budget"],
        minimum=asked["min_relevance"],
        file=_inside(context.project.root, asked["file"]),
        explain=explain,
        filters=Filters(
            since=day_named(asked["since"]),
            until=day_named(asked["until"]),
            session=asked["session"],
            branch=asked["branch"],
            kind=asked["kind"] or "",
            path=asked["path"],
        ),
    )


def _inside(root: str, path: str) -> str:
    """`path` relative to `root`, with slashes; as it is if it lies elsewhere, "" for none."""
    if not path:
        return ""
    relative = os.path.relpath(os.path.realpath(path), root)
    return path if relative.startswith("..") else relative.replace(os.sep, "/")


def _queries(batch: TextIO) -> Iterator[tuple[int, str]]:
    """The queries with the numbers of their lines, from 1."""
    for number, line in enumerate(batch, start=1):
        text = line.strip()
        if not text:
            continue
        if not text.startswith("{"):
            yield number, text
            continue
        try:
            query = parse_json(text)["query"]
            if not isinstance(query, str):
                raise TypeError
        except (ValueError, KeyError, TypeError) as error:
            raise MemkitError(
                f'--batch, line {number}: expected {{"query": "…"}} or plain text'
            ) from error
        yield number, query


def _show(answer: Answer, root: str) -> None:
    """Print the results; those of other projects than the one at `root` with their project's name."""
    from memkit.recall.answers import shortened

    if not answer.results:
        click.echo(_nothing(answer))
    for result in answer.results:
        chunk = result.chunk
        heading = plain(chunk.breadcrumb or chunk.source)
        if result.root != root:
            heading = f"{plain(result.project)}: {heading}"
        click.echo(f"{styled(result.id, fg='yellow')}  {styled(heading, bold=True)}")
        place = f"{chunk.source}:{chunk.start_line}-{chunk.end_line}"
        numbers = f"relevance {result.relevance:.2f}  score {result.score:.3f}"
        click.echo(styled(plain(f"{place}  {numbers}"), dim=True))
        for name, value in result.explanation.items():
            click.echo(styled(plain(f"  {name}: {_explained(value)}"), dim=True))
        click.echo(plain(shortened(result, SHOWN_CHARACTERS)))
        click.echo()


def _nothing(answer: Answer) -> str:
    if not answer.best:
        return "Nothing found."
    return (
        f"Nothing found: the nearest entry has a relevance of {answer.best:.2f} only "
        "(--all shows it)."
    )


def _explained(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_explained(inner)}" for name, inner in value.items())
    return f"{value:.3f}" if isinstance(value, float) else str(value)
