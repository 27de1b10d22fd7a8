"""What `memkit timeline` answers: a node with its overview, and a page of the nodes below it.

Plain JSON values, so that the service can answer. Everything in it is cut to the limits of one answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypedDict, cast

from memkit.text import estimate_tokens, plural, shorten
from memkit.timeline import nodes
from memkit.timeline.summary import Entry
from memkit.timeline.tree import MOST_DEPTH, MOST_NODES, Node, Timeline, TimelineNode

MOST_TOKENS = 4000
"""The most tokens of one answer."""

ROW_TOKENS = 30
"""The size of a node on a screen: a line of at most 120 columns."""

_TITLES, _FILES, _FAILURES, _OPEN, _DECIDED = 6, 6, 4, 5, 6
_DAY_TITLES, _ROW_WORDS = 3, 6
_FILE_CHARACTERS = 160
_SEPARATOR = " · "


class _Row(TypedDict):
    level: int
    kind: str
    id: str
    first: str


class TimelineRow(_Row, total=False):
    """A node below another one. What it lacks is left out."""

    last: str
    title: str
    outcome: str
    words: list[str]
    titles: list[str]
    days: int
    sessions: int
    turns: int
    notes: int
    failed: int


class TimedLine(TypedDict):
    """A line of an overview."""

    time: str
    text: str
    id: str


class EditedFile(TypedDict):
    """A file, and how often it was edited."""

    file: str
    edits: int


class FailedCommand(TypedDict):
    """A command, and how often it failed."""

    command: str
    times: int


class NodeOverview(TypedDict):
    """The subject of a node; `open` has the open questions."""

    words: list[str]
    titles: list[TimedLine]
    files: list[EditedFile]
    failures: list[FailedCommand]
    open: list[TimedLine]
    decided: list[TimedLine]
    more_open: int
    more_decided: int


class TimelineChildren(TypedDict):
    """A page of the nodes below a node. `path` has the ids from the year down to it.

    `next` is the `after` of the next page.
    """

    path: list[str]
    children: list[TimelineRow]
    next: str | None


class TimelineView(TimelineChildren):
    """A node with what it was about, and a page of the nodes below it."""

    node: TimelineNode
    overview: NodeOverview


class CalendarDay(TypedDict):
    """The counts of a day. `failed` counts commands."""

    day: str
    turns: int
    sessions: int
    notes: int
    failed: int


class Calendar(TypedDict):
    """A year of the calendar, and the years to choose from."""

    year: int
    years: list[int]
    days: list[CalendarDay]


def view(
    timeline: Timeline, name: str = "", depth: int = 0, limit: int = MOST_NODES, after: str = "", *,
    as_rows: bool = False,
) -> TimelineView:
    """Return the node `name` with its overview, and at most `limit` nodes below it.

    A `depth` of 0 is that which fits: years with their months, else the children. `after` is the `next` of an
    earlier answer. With `as_rows` the nodes are to be shown as lines, not as JSON, which takes more tokens.
    Raise `NotFoundError`, `AmbiguousIdError`.
    """
    node = timeline.node(name)
    levels = min(depth, MOST_DEPTH) or (2 if node.kind == nodes.ALL else 1)
    found: TimelineView = {
        "node": node.as_dict(),
        "path": timeline.path(node),
        "overview": _overview(timeline, node),
        "children": [],
        "next": None,
    }
    room = MOST_TOKENS - _tokens(found)
    children, upcoming = timeline.page(node, levels, limit, after)
    rows = found["children"]
    last = ""
    for level, child in children:
        row = _row(level, child)
        room -= ROW_TOKENS if as_rows else _tokens(row)
        if room < 0 and rows:
            upcoming = last
            break
        rows.append(row)
        last = child.cursor
    found["next"] = upcoming or None
    return found


def calendar(timeline: Timeline, year: int) -> Calendar:
    """Return how much each day of a calendar year holds, and the years to choose from."""
    return {
        "year": year,
        "years": sorted({int(name[:4]) for name in timeline.names}),
        "days": [
            {
                "day": day, "turns": held.turns, "sessions": len(held.sessions), "notes": held.notes,
                "failed": held.failed,
            }
            for day, held in timeline.calendar(year).items()
        ],
    }


def _tokens(value: Mapping[str, Any]) -> int:
    return estimate_tokens(json.dumps(value, ensure_ascii=False)) + 1


def _overview(timeline: Timeline, node: Node) -> NodeOverview:
    held = node.summary
    largest = sorted(held.titles, key=lambda one: -one.weight)[:_TITLES]
    asked, decided = timeline.open_questions(node), timeline.decisions(node)
    return {
        "words": list(node.words),
        "titles": [_entry(one) for one in sorted(largest, key=lambda one: one.time)],
        "files": [
            {"file": shorten(name, _FILE_CHARACTERS), "edits": count}
            for name, count in list(held.files.items())[:_FILES]
        ],
        "failures": [
            {"command": name, "times": count} for name, count in list(held.failures.items())[:_FAILURES]
        ],
        "open": [_entry(one) for one in asked[:_OPEN]],
        "decided": [_entry(one) for one in decided[:_DECIDED]],
        "more_open": len(asked[_OPEN:]),
        "more_decided": len(decided[_DECIDED:]),
    }


def _entry(one: Entry) -> TimedLine:
    return {"time": one.time, "text": one.text, "id": one.id}


def _row(level: int, node: Node) -> TimelineRow:
    held = node.summary
    known: TimelineRow = {
        "level": level, "kind": node.kind, "id": node.id, "first": node.first,
        "last": node.last if node.last != node.first else "", "title": node.title, "outcome": node.outcome,
        "words": list(node.words[:_ROW_WORDS]) if node.kind != nodes.DAY else [],
        "titles": [one.text for one in held.titles[:_DAY_TITLES]] if node.kind == nodes.DAY else [],
        "days": held.days if node.kind in (nodes.YEAR, nodes.MONTH, nodes.WEEK) else 0,
        "sessions": len(held.sessions),
        "turns": held.turns,
        "notes": held.notes,
        "failed": held.failed,
    }
    return cast("TimelineRow", {name: value for name, value in known.items() if value})


def about(row: Mapping[str, Any]) -> str:
    """Return what a row is about, as one text: its title and outcome, its sessions' titles, or its words."""
    if row.get("title"):
        outcome = row.get("outcome", "")
        return f"{row['title']} → {outcome}" if outcome and outcome != row["title"] else str(row["title"])
    titles, words = row.get("titles", []), row.get("words", [])
    return _SEPARATOR.join(titles) if titles else ", ".join(words)


def counts(node: Mapping[str, Any]) -> str:
    """Return what a node holds, in numbers: `3 days, 12 sessions, 40 turns`."""
    names = {"days": "day", "sessions": "session", "turns": "turn", "notes": "note"}
    names["failed"] = "failed command"
    is_part = node["kind"] in (nodes.DAY, nodes.SEGMENT, nodes.NOTE, nodes.TURN)
    shown = [
        plural(node[name], one)
        for name, one in names.items()
        if node.get(name) and not (name == "days" and is_part)
    ]
    return ", ".join(shown) or "nothing"


def overview_lines(found: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the lines of an overview: a label for the first of each kind, the text, and an id or ""."""
    overview = found["overview"]
    lines: list[tuple[str, str, str]] = []

    def add(label: str, texts: list[tuple[str, str]], more: int = 0) -> None:
        lines.extend((label if not number else "", *one) for number, one in enumerate(texts))
        if more:
            lines.append(("", f"and {more:,} more", ""))

    add("summary", [(one, "") for one in found["node"]["bullets"]])
    if overview["words"]:
        add("words", [(", ".join(overview["words"]), "")])
    if found["node"]["kind"] not in (nodes.DAY, nodes.SEGMENT):  # a list of its children follows
        add("longest", [(f"{one['time'][:10]} {one['text']}", one["id"]) for one in overview["titles"]])
    edited = ", ".join(_times(one["file"], one["edits"]) for one in overview["files"])
    if edited:
        add("edited", [(edited, "")])
    add("failed", [(_times(one["command"], one["times"]), "") for one in overview["failures"]])
    add("decided", [(one["text"], one["id"]) for one in overview["decided"]], overview["more_decided"])
    add("open", [(one["text"], one["id"]) for one in overview["open"]], overview["more_open"])
    return lines


def _times(text: str, count: int) -> str:
    return f"{text} ×{count}" if count > 1 else text


def markdown(found: Mapping[str, Any]) -> str:
    """Return a view as Markdown, for `memkit show`."""
    node = found["node"]
    lines = [f"# {_escaped(heading_of(node))}", "", f"{span_of(node)}: {counts(node)}"]
    for label, text, name in overview_lines(found):
        shown = f"{_escaped(text)} ({name})" if name else _escaped(text)
        lines += ["", f"**{label.capitalize()}**", ""] if label else []
        lines.append(f"- {shown}")
    lines += ["", "## Children", ""]
    for row in found["children"]:
        indent = "  " * (row["level"] - 1)
        lines.append(f"{indent}- {row['id']}: {counts(row)}. {_escaped(about(row))}".rstrip())
    if found["next"]:
        lines += ["", f"`memkit timeline {node['id']} --after {found['next']}` lists more."]
    return "\n".join(lines)


def heading_of(node: Mapping[str, Any]) -> str:
    """Return the name of a period with its title, or the title of a part of a session."""
    is_part = node["kind"] in (nodes.SEGMENT, nodes.NOTE, nodes.TURN)
    return (node["title"] if is_part else f"{node['id']} {node['title']}".strip()) or str(node["id"])


def span_of(node: Mapping[str, Any]) -> str:
    """Return the days or times of a node: `2026-11-16 to 2026-11-20`, `2026-11-20 14:02–14:20`, or ""."""
    first, last = node["first"], node.get("last") or node["first"]
    if first == last:
        return str(first)
    is_part = len(first) > 10 and first[:10] == last[:10]
    return f"{first}–{last[11:]}" if is_part else f"{first} to {last}"


def _escaped(text: str) -> str:
    return text.replace("<!--", "&lt;!--").replace("\n", " ")
