"""`memkit timeline`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from shlex import quote
from typing import Any

import click

from memkit.cli.context import Context, command, node_named
from memkit.cli.output import plain, styled
from memkit.cli.screen import ID_CHARACTERS, cells, fit, pad, to_edge, width, wrapped

DEFAULT_COUNT = 50
MOST_NODES, MOST_DEPTH = 100, 5
_LABEL_COLUMNS = 10
_NARROW_COLUMNS = 60
"""A narrower screen has no room for numbers next to what a node is about."""

_MOST_LINES = 4
"""The most lines of one text of an overview: a bullet or a list of files. What has an ID gets two."""


@command("timeline")
@click.argument("node", default="")
@click.option("--children", is_flag=True, help="Show only the list of what is in NODE.")
@click.option("--search", metavar="WORDS", help="List the turns of NODE that have all WORDS.")
@click.option("--events", is_flag=True, help="Show the original messages of NODE.")
@click.option(
    "--depth", type=click.IntRange(1, MOST_DEPTH), metavar="N",
    help="Show N levels. Without NODE, the default is 2, else 1.",
)  # fmt: skip
@click.option(
    "--limit", type=click.IntRange(1, MOST_NODES), default=DEFAULT_COUNT, show_default=True,
    help="Number of lines or messages.",
)  # fmt: skip
@click.option("--after", default="", metavar="ID", help="Go on after this one, the last of an earlier page.")
def timeline_command(
    context: Context, node: str, children: bool, search: str | None, events: bool, depth: int | None,
    limit: int, after: str,
) -> None:
    """Show what a year, month, week, day, or part of a session was about, and what it consists of.

    NODE is 2026, 2026-11, 2026-W47 (an ISO week; it belongs to the month of its Thursday), 2026-11-20,
    "last tuesday", or the ID of a turn. Without it, show all years and months. The words are those that set
    it apart from the rest of the memory. An answer has at most 4,000 tokens; --after shows what follows.

    \b
      memkit timeline 2026-W47
      memkit timeline 2026-11 --search "gateway port"
      memkit timeline 2026-11-20 --events
    """
    if sum((children, search is not None, events)) > 1:
        raise click.UsageError("give one of --children, --search, and --events")
    if depth and (search is not None or events):
        raise click.UsageError("--depth is for the list of nodes")
    if search is not None and not search.strip():
        raise click.UsageError("--search needs words")
    memory, node = context.memory(), node_named(node)
    found: Mapping[str, Any]
    if search is not None:
        found = memory.scan(search, node, limit=limit, after=after)
        lines = list(_matches(found))
    elif events:
        found = memory.events(node, limit=limit, after=after)
        for problem in found["problems"]:
            context.say(problem)
        lines = list(_events(found))
    else:
        as_rows = not context.as_json
        found = memory.timeline(node, depth=depth or 0, limit=limit, after=after, as_rows=as_rows)
        lines = [*([] if children or after else _overview(found)), *_rows(found["children"])]
        if children:
            found = {name: found[name] for name in ("node", "path", "children", "next")}
    if found["next"]:
        given = {"--depth": depth, "--limit": limit if limit != DEFAULT_COUNT else None, "--search": search}
        flags = ["--children"] * children + ["--events"] * events
        lines.append(styled(f"More: {_next_page(node, given, flags, found['next'])}", dim=True))
    context.report_page(found, lines or [plain(f"{context.project.root} has no memory yet")])


def _next_page(node: str, given: Mapping[str, object], flags: list[str], after: str) -> str:
    words = [quote(plain(node))] * bool(node)
    words += [f"{name} {quote(plain(str(value)))}" for name, value in given.items() if value is not None]
    return " ".join(["memkit timeline", *words, *flags, f"--after {quote(plain(after))}"])


def _overview(found: Mapping[str, Any]) -> list[str]:
    from memkit.cli.overview import labeled_lines
    from memkit.timeline.view import counts, heading_of, overview_lines, span_of

    node = found["node"]
    if not node["first"]:
        return []
    columns = width()
    above = " > ".join(found["path"][:-1])
    head = fit(plain(heading_of(node) or "the whole memory"), columns)
    lines = [styled(head, bold=True), *([styled(fit(f"in {above}", columns), dim=True)] if above else [])]
    lines += wrapped(plain(f"{span_of(node)}: {counts(node)}"), columns, _MOST_LINES)
    lines += [fit(f"→ {plain(node['outcome'])}", columns)] if node["outcome"] else []
    for label, text, name in overview_lines(found):
        lines += labeled_lines(label, _LABEL_COLUMNS, text, name, 2 if name else _MOST_LINES)
    return [*lines, ""]


def _rows(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    from memkit.timeline.view import about

    rows = list(rows)
    if not rows:
        return []
    names = [f"{'  ' * (row['level'] - 1)}{_name(row)}" for row in rows]
    left = max(map(cells, names))
    is_narrow = width() < _NARROW_COLUMNS
    head = "" if is_narrow else f"{'sessions':>10}{'turns':>7}"
    lines = [styled(f"{' ' * left}{head}  about", dim=True)]
    for row, name in zip(rows, names, strict=True):
        is_part = row["kind"] in ("segment", "turn", "note")
        shown = plain(row["id"][:ID_CHARACTERS]) if is_part else ""
        counted = f"{'' if is_part else row.get('sessions', 0):>10}{row.get('turns', 0) or '':>7}"
        numbers = "" if is_narrow else counted
        text = ("Note: " if row["kind"] == "note" else "") + plain(about(row)).replace("**", "")
        room = width() - left - cells(numbers) - 2 - (len(shown) + 2 if shown else 0)
        body = to_edge(text, room) if shown else fit(text, room)
        lines.append(
            f"{styled(name, bold=not is_part)}{' ' * (left - cells(name))}{styled(numbers, dim=True)}  {body}"
            f"{f'  {styled(shown, dim=True)}' if shown else ''}".rstrip()
        )
    return lines


def _name(row: Mapping[str, Any]) -> str:
    return plain(row["first"][11:] or row["id"][:ID_CHARACTERS]) if len(row["first"]) > 10 else row["id"]


def _matches(found: Mapping[str, Any]) -> Iterable[str]:
    if not found["matches"]:
        node = found["node"]["id"] or "the memory"
        yield plain(f"No turn of {node} has all of: {found['search']}")
    for one in found["matches"]:
        time, name = pad(one["time"], 16), plain(one["id"][:ID_CHARACTERS])
        room = width() - 16 - ID_CHARACTERS - 4
        title = styled(to_edge(plain(one["title"]), room), bold=True)
        yield f"{styled(time, dim=True)}  {title}  {styled(name, dim=True)}"
        if one["line"]:
            yield f"{' ' * 18}{fit(plain(one['line']), width() - 18)}"


def _events(found: Mapping[str, Any]) -> Iterable[str]:
    if not found["events"]:
        yield plain(f"The archive has no message of {found['node']['id'] or 'this memory'}.")
    for one in found["events"]:
        head = f"{one['role']}  {(one['time'] or '')[:19].replace('T', ' ')}  turn {one['turn']}"
        yield styled(head, fg={"user": "cyan", "assistant": "green"}.get(one["role"]), bold=True)
        yield plain(one["text"])
        yield ""
    if found["missing"]:
        more = f" and {found['more_missing']:,} more" if found["more_missing"] else ""
        yield styled(f"without an original: {', '.join(found['missing'])}{more}", dim=True)
