"""`memkit search`."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from memkit.cli.context import AgentName, Context, command, day_named, path_named
from memkit.cli.output import echo, other_agent, plain, styled
from memkit.cli.screen import ID_CHARACTERS, MOST_COLUMNS, cells, fit, link, to_edge, width
from memkit.errors import MemkitError
from memkit.hook.notices import untrusted_team
from memkit.index.chunk import KINDS, LEADING_HEADINGS
from memkit.search.results import Answer, Excerpt, Filters, Result, SearchRequest
from memkit.state import parse_json
from memkit.text import plural, shorten

SHOWN_CHARACTERS = 600
FEW = 5
"""The text below a hit has two lines if there are no more hits than this."""

_BULLETS = ("summary", "unverified", "fact")

_INDENT = " " * 9  # a hit's title begins here, after its time or line
_WORD = re.compile(r"\w+")


def show_short(answer: Answer, root: str) -> None:
    """Print the results in groups: the sessions and files in the order of their best hits.

    Inside a group the hits are in the order of the text, which is that of time. A project elsewhere than at
    `root` is named.
    """
    columns = min(width(), MOST_COLUMNS)
    best: dict[tuple[str, str, str], int] = {}
    for rank, result in enumerate(answer.results):
        best.setdefault(_group(result), rank)
    ordered = sorted(answer.results, key=lambda one: (best[_group(one)], one.chunk.start_line))
    lines = 2 if len(ordered) <= FEW else 1
    for number, (_, group) in enumerate(groupby(ordered, _group)):
        hits = [(one, one.excerpt or Excerpt(title=one.chunk.heading)) for one in group]
        if number:
            echo()
        _show_heading(hits, root, columns)
        for result, excerpt in hits:
            _show_hit(result, excerpt, columns, lines)


def _group(result: Result) -> tuple[str, str, str]:
    return f"{result.root}\0{result.author}", result.chunk.source, result.chunk.session


def _show_heading(hits: list[tuple[Result, Excerpt]], root: str, columns: int) -> None:
    result, excerpt = hits[0]
    chunk = result.chunk
    project = f"{result.project}: " if result.root != root else ""
    project += f"{result.author}: " if result.author else ""
    if not chunk.session:
        echo(fit(plain(project + chunk.source), columns), bold=True)
        return
    is_repeated = any(one.title == excerpt.session for _, one in hits)
    words = project + ("" if is_repeated else excerpt.session)
    session = f"{other_agent(chunk.session)} session {plain(chunk.session)[:ID_CHARACTERS]}".lstrip()
    day = plain(chunk.date)
    title = to_edge(plain(words), columns - len(day) - len(session) - 4)
    click.echo(f"{styled(f'{day}  {title}', bold=True)}  {styled(session, dim=True)}")


def _show_hit(result: Result, excerpt: Excerpt, columns: int, lines: int) -> None:
    chunk = result.chunk
    number = chunk.start_line
    if chunk.kind in _BULLETS and (headings := LEADING_HEADINGS.match(chunk.content)):
        # Counted from the end: the overview above the first session is not in its chunk.
        number = chunk.end_line - chunk.content[headings.end() :].rstrip("\n").count("\n")
    label, title = (excerpt.time, excerpt.title) if chunk.session else (str(number), excerpt.heading)
    mark = " (unverified)" if chunk.kind == "unverified" else ""
    title = title.replace(mark.strip(), "") if mark else title
    room = columns - len(_INDENT) - 2 - ID_CHARACTERS - len(mark)
    below, arrow = plain(excerpt.match), ""
    if not below:
        below, arrow = plain(excerpt.outcome), "→ "
    first = fit(plain(title), room)
    if not below:
        arrow, (first, below) = "", _wrapped(plain(title), room)
    words = frozenset(excerpt.words)
    place = Path(result.root, chunk.source)
    shown = _marked(first, words)
    if place.is_absolute() and not result.author:
        shown = link(shown, place, number)
    fill = styled(mark, fg="magenta") + to_edge(first, room)[len(first) :]
    identifier = styled(result.id[:ID_CHARACTERS], fg="cyan")
    click.echo(f"{styled(f'  {label:>5}  ', dim=True)}{shown}{fill}  {identifier}")
    if below and not result.mark:
        room = columns - len(_INDENT) - len(arrow)
        text = _around(below, words, room * lines)
        for line in _wrapped(text, room) if lines > 1 else (text,):
            if line:
                click.echo(f"{_INDENT}{styled(arrow, dim=True)}{_marked(fit(line, room), words)}")
            arrow = " " * len(arrow)
    for line in _remarks(result):
        echo(_INDENT + fit(plain(line), columns - len(_INDENT)), fg="magenta")


def _remarks(result: Result) -> list[str]:
    git = f"git: {result.git_line}" if result.git_line else ""
    return [line for line in (result.mark, result.team_line, git) if line]


def _wrapped(text: str, columns: int) -> tuple[str, str]:
    line = " ".join(text.split())
    first = fit(line, columns)
    end = line.rfind(" ", 0, len(first)) if first != line else -1
    return (line[:end], line[end + 1 :]) if end > 0 else (first, "")


def _around(text: str, words: frozenset[str], columns: int) -> str:
    line = " ".join(text.split())
    if cells(line) > columns:
        starts = (match.start() for match in _WORD.finditer(line) if match[0].lower() in words)
        start = next(starts, 0)
        if start > columns // 2:
            begin = line.find(" ", min(start - columns // 3, len(line) - columns)) + 1
            line = f"…{line[begin:]}" if begin else line
    return fit(line, columns)


def _marked(text: str, words: frozenset[str]) -> str:
    def mark(match: re.Match[str]) -> str:
        word = match[0]
        return styled(word, bold=True, fg="green") if word.lower() in words else word

    return _WORD.sub(mark, text)


def show_full(answer: Answer, root: str) -> None:
    """Print the results in the order of their ranks, each with its place, scores, and text."""
    for result in answer.results:
        chunk = result.chunk
        heading = chunk.breadcrumb or chunk.source
        if result.root != root:
            heading = f"{result.project}: {heading}"
        if result.author:
            heading = f"{result.author}: {heading}"
        click.echo(f"{styled(result.id, fg='cyan')}  {styled(heading, bold=True)}")
        place = f"{chunk.source}:{chunk.start_line}-{chunk.end_line}"
        echo(f"{place}  relevance {result.relevance:.2f}  score {result.score:.3f}", dim=True)
        for line in _remarks(result):
            echo(line, fg="magenta")
        if result.turn_entries:
            echo(f"the whole turn: memkit expand {' '.join(result.turn_entries)}", dim=True)
        for name, value in result.explanation.items():
            echo(f"  {name}: {_explained(value)}", dim=True)
        echo(f"{shorten(chunk.content.strip(), SHOWN_CHARACTERS)}\n")


def _explained(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_explained(inner)}" for name, inner in value.items())
    return f"{value:.3f}" if isinstance(value, float) else str(value)


MODES = ("context", "rrf", "weighted", "lexical", "dense")


class _UnknownKindError(click.ClickException):
    exit_code = 2


class _Kind(click.Choice[str]):
    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self.choices:
            return value
        raise _UnknownKindError(
            f"{value!r} is not a kind; use {', '.join(self.choices)}. A decision is of kind "
            "summary or fact, and `memkit timeline` lists the decisions of a period"
        )


@command("search")
@click.argument("words", metavar="QUERY", nargs=-1)
@click.option("-k", "k", type=click.IntRange(1, 1000), help="Number of results (default: setting search.k).")
@click.option(
    "--budget", type=click.IntRange(50, 1_000_000), metavar="TOKENS",
    help="Fill this many tokens with the best text, without repeats, instead of -k.",
)  # fmt: skip
@click.option("--mode", type=click.Choice(MODES), help="How to rank (default: setting search.mode).")
@click.option("--since", metavar="DAY", help="Only from this day on: 2026-11-20, 3d, 2w, last monday.")
@click.option("--until", metavar="DAY", help="Only up to this day, inclusive.")
@click.option("--session", default="", metavar="ID", help="Only this session; the start of its ID is enough.")
@click.option("--branch", default="", help="Only this git branch.")
@click.option("--agent", type=AgentName(), default="", help="Only sessions of this agent.")
@click.option("--kind", type=_Kind(KINDS), default=None, help="A decision is of kind summary or fact.")
@click.option("--path", default="", help="Only this memory file, directory, or pattern.")
@click.option("--all-projects", is_flag=True, help="Search the memories of all projects.")
@click.option(
    "--file", default="", metavar="PATH",
    help="The file you work on; ranks results about its directory higher. In a Claude Code session: the one "
    "edited last.",
)  # fmt: skip
@click.option(
    "--min-relevance", "minimum", type=click.FloatRange(0, 1), metavar="SHARE",
    help="Only results of at least this relevance, 0 to 1.",
)  # fmt: skip
@click.option("--all", "everything", is_flag=True, help="Show results of any relevance.")
@click.option("--full", is_flag=True, help="Show the text of each result.")
@click.option("--explain", is_flag=True, help="Like --full, with how each result got its score.")
@click.option(
    "--batch", metavar="-",
    help='Read one query per line from stdin, plain or as {"query": …}; print one JSON object per line.',
)  # fmt: skip
def search_command(
    context: Context, words: tuple[str, ...], mode: str | None, all_projects: bool, everything: bool,
    batch: str | None, k: int | None, file: str, since: str | None, until: str | None, kind: str | None,
    session: str, branch: str, agent: str, path: str, full: bool, **options: Any,
) -> None:
    """Search the memory: sessions and files, those with the best results first.

    Leaves out results far below the best one, and shows nothing if no entry is relevant enough; --all shows
    the nearest entries anyway. The query needs no quotes. Words in it that begin with a dash go after `--`.
    A period in the query ("last week") narrows the search, unless --since or --until does; in quotation marks
    it is text. A question about a period alone lists its sessions.

    \b
      memkit search which port does the staging gateway use
      memkit search what did we do yesterday
      memkit search --since 2w --kind turn --json deploy/gateway.yaml
      memkit search --full -- what does --force do
    """
    if (not words) == (batch is None):
        raise click.UsageError("give a QUERY, or --batch - with one query per line on stdin")
    if batch not in (None, "-"):  # Claude may run this unprompted: it opens no file for it
        raise click.UsageError("--batch takes only `-`, which means stdin")
    if k and options["budget"]:
        raise click.UsageError("give -k or --budget, not both")
    if everything and options["minimum"] is not None:
        raise click.UsageError("give --min-relevance or --all, not both")
    options["minimum"] = 0.0 if everything else options["minimum"]
    options["file"] = path_named(os.path.abspath(file), context.project.root) if file else ""
    options["excerpts"] = is_short = not (full or options["explain"] or options["budget"] or context.as_json)
    days = day_named(since), day_named(until)
    options["filters"] = Filters(*days, session, branch, kind or "", path, agent)
    memory = context.memory()
    if batch is not None:
        client = memory.search_client(all_projects, mode or "")
        for number, line in _queries(sys.stdin.buffer):
            answer = client.answer(SearchRequest(line, k, **options))
            # Without the query: stdin can be a file that the caller may not read.
            context.print_json({"line": number, **answer.as_dict(with_query=False)})
        return
    answer = memory.search(" ".join(words), k, all_projects=all_projects, mode=mode or "", **options)
    if context.as_json:
        context.print_json(answer.as_dict())
        return
    if answer.degraded:
        context.say(answer.degraded)
    if not answer.chunks and not answer.overview:
        context.say(f"{context.project.root} has no memory yet")
    if not answer.results and (line := untrusted_team(context.home, context.project)):
        context.say(line)
    root = "" if all_projects else context.project.root
    if answer.overview or answer.period:
        from memkit.cli.overview import show_overview

        show_overview(answer, root)
    if answer.overview and not answer.results:
        return
    if not answer.results:
        narrowing = {"since": since, "until": until, "session": session, "branch": branch}
        narrowing |= {"agent": agent, "kind": kind, "path": path, "min-relevance": options["minimum"]}
        _say_nothing(answer, context, narrowing, all_projects=all_projects)
        return
    (show_short if is_short else show_full)(answer, root)


def _queries(stdin: Any) -> Iterator[tuple[int, str]]:
    batch: Iterable[str] = io.TextIOWrapper(stdin, encoding="utf-8-sig", errors="replace")
    for number, line in enumerate(batch, start=1):
        query = line.strip()
        if query.startswith("{"):
            try:
                query = parse_json(query)["query"]
                if not isinstance(query, str):
                    raise TypeError
            except (ValueError, KeyError, TypeError) as error:
                raise MemkitError(
                    f'--batch, line {number}: expected {{"query": "…"}} or plain text'
                ) from error
        if query:
            yield number, query


def _say_nothing(answer: Answer, context: Context, narrowing: dict[str, Any], *, all_projects: bool) -> None:
    """Print that nothing was found, and what would search more: other projects, or without an option."""
    if answer.nearest:
        echo("Nothing matches closely. The nearest entries (--all shows more):")
        from memkit.cli.overview import show_line

        for line in answer.nearest:
            show_line(line)
    elif answer.best:
        nearest = f"{answer.best:.2f} only (--all shows it)"
        echo(f"Nothing found: the nearest entry has a relevance of {nearest}.")
    else:
        echo("Nothing found.")
    advice = []
    if not all_projects and context.may_leave_project:
        from memkit.index.catalog import known_projects

        others = [one for one in known_projects(context.home) if one != context.project]
        if others:
            advice.append(f"--all-projects, which adds {plural(len(others), 'other project')}")
    if given := [f"--{name}" for name, value in narrowing.items() if value]:
        advice.append(f"without {' and '.join(given)}")
    if advice:
        echo(f"Try {', or '.join(advice)}.")
