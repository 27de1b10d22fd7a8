"""`memkit topics`."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import asdict
from datetime import date
from typing import TYPE_CHECKING, Any

import click

from memkit.cli.context import Context, command
from memkit.cli.output import NAME_COLUMNS, column, labels_below, lines_between, plain, styled
from memkit.cli.screen import ID_CHARACTERS, MOST_COLUMNS, fit, pad, width
from memkit.errors import NotFoundError
from memkit.text import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memkit.index.reader import ChunkReader
    from memkit.topics.topic_list import Topic, TopicList

DEFAULT_COUNT = 20
SPARK_COLUMNS = 12
ACTIONS = {"show": "ID", "related": "ID", "search": "WORDS", "rename": "ID LABEL"}
"""The actions, each with what it takes. Other words are searched for."""

_BLOCKS, _ASCII_BLOCKS = "▁▂▃▄▅▆▇█", ".:-=+*#%"
_SHOWN_WEEKS = 8
_SHOWN_ENTRIES = 10


@command("topics")
@click.argument("words", nargs=-1, metavar="[WORDS | show ID | related ID | rename ID LABEL]")
@click.option(
    "-n", "count", type=click.IntRange(1), default=DEFAULT_COUNT, show_default=True,
    help="Number of topics, the most important first.",
)  # fmt: skip
@click.option("--refresh", is_flag=True, help="Compute the topics again now.")
@click.option("--all-projects", is_flag=True, help="List the topics of all projects, and of your own memory.")
@click.option("--user", is_flag=True, help="Use your own memory instead of the project's.")
@click.option(
    "--background", is_flag=True, hidden=True, help="Take the index as it is, at the lowest priority."
)
def topics_command(
    context: Context, words: tuple[str, ...], count: int, refresh: bool, all_projects: bool, user: bool,
    background: bool,
) -> None:
    """List what this project is about: topics found in the memory.

    Each line has a topic's importance, its entries over time, their number, the last day, and the ID.
    WORDS find topics. `show ID` adds days, entries, and related topics; `related ID` lists those.
    `rename ID LABEL` gives one your own label; `rename ID ""` removes it.

    \b
      memkit topics
      memkit topics payment webhooks
      memkit topics rename 5f0c0e0a "Staging gateway"
    """
    if user:
        context.turn_to_user_memory()
    action, values = (words[0], words[1:]) if words else ("", ())
    if action and action not in ACTIONS:
        action, values = "search", words
    _check_usage(action, values, all_projects)
    if all_projects:
        _list_all(context, count)
        return
    if background:
        from memkit.topics.compute import refresh as compute

        _run_for_service()
        compute(context.project, context.home, context.settings())
    found = _topics(context, refresh and not background)
    if action == "show":
        _show(context, found, found.find(values[0]))
    elif action == "related":
        _related(context, found, found.find(values[0]), count)
    elif action == "search":
        _search(context, " ".join(values), count)
    elif action == "rename":
        _rename(context, found, *values)
    else:
        _list(context, found, count)


def _check_usage(action: str, values: tuple[str, ...], all_projects: bool) -> None:
    wanted = {"": 0, "rename": 2}.get(action, 1)
    if len(values) < wanted or (action != "search" and len(values) > wanted):
        raise click.UsageError(f"`memkit topics {action}` takes {ACTIONS[action]}")
    if all_projects and action:
        raise click.UsageError("--all-projects lists topics only")


def _run_for_service() -> None:
    """Take the lowest priority, and end when the service that started this process ends."""
    import psutil

    psutil.Process().nice(getattr(psutil, "IDLE_PRIORITY_CLASS", 19))  # a name on Windows only
    parent = psutil.Process().parent()

    def wait() -> None:
        if parent is not None:
            psutil.wait_procs([parent])
        os._exit(1)  # it loses nothing, whenever it is killed

    threading.Thread(target=wait, daemon=True).start()


def _topics(context: Context, refresh: bool) -> TopicList:
    from memkit.topics.background import changed_entries, is_due

    with context.progress("finding topics", is_counted=False):
        found = context.memory().topics(refresh=refresh)
    if refresh or context.as_json:
        return found
    changed, entries = changed_entries(context.project, context.home, context.settings())
    if is_due(changed, entries):
        count = plural(changed, "entry", "entries")
        context.say(f"{count} changed since; `memkit topics --refresh` computes the topics again")
    return found


# Lists


def _list(context: Context, found: TopicList, count: int) -> None:
    stored = found.stored
    few = f"No topics in {plural(stored.entries, 'entry', 'entries')}: "
    lines = _rows(found.topics[:count]) or [f"{few}a topic needs at least three that are alike."]
    left = len(found.topics) - count
    if left > 0:
        lines.append(styled(f"{left} more: memkit topics -n {len(found.topics)}", dim=True))
    context.report_page(
        {
            "made": stored.made, "entries": stored.entries, "noise": stored.noise,
            "topics": [one.as_dict() for one in found.topics[:count]], "all": len(found.topics),
        },
        lines,
    )  # fmt: skip


def _list_all(context: Context, count: int) -> None:
    from memkit.capture.project_list import projects_with_memory
    from memkit.index.catalog import project_names
    from memkit.topics.topic_list import read_topics

    topics: list[Topic] = []
    missing = 0
    for project in projects_with_memory(context.home, [context.project]):
        found = read_topics(project, context.home, context.settings_of(project))
        missing += found is None
        topics += found.topics if found is not None else ()
    topics.sort(key=lambda one: (-one.importance, one.id))
    names = project_names(context.home, {one.root for one in topics})
    lines = _rows(topics[:count], names) or ["No project has topics yet."]
    if missing:
        where = f"{plural(missing, 'project')} without topics: run `memkit topics` there, or wait for the job"
        lines.append(styled(where, dim=True))
    listed = [one.as_dict() for one in topics[:count]]
    context.report_page({"topics": listed, "all": len(topics), "missing": missing}, lines)


def _rows(topics: Sequence[Topic], known: Mapping[str, str] | None = None) -> list[str]:
    """Return a head and a line for each topic, with one time axis; with `known` names, those come first."""
    if not topics:
        return []
    days = [date.fromisoformat(day) for one in topics for day in (one.first, one.last) if day]
    first, last = min(days, default=date.min), max(days, default=date.min)
    left = [["imp.", *(f"{one.importance:4.2f}" for one in topics)]]
    if known is not None:
        left.append(column("project", [known[one.root] for one in topics], NAME_COLUMNS))
    right = [
        [pad(f"{first:%Y-%m} on", SPARK_COLUMNS), *(_spark(one.stored.days, first, last) for one in topics)],
        ["   #", *(f"{one.stored.size:>4}" for one in topics)],
        column("last", [one.last for one in topics], 10),
        column("id", [one.id[:ID_CHARACTERS] for one in topics], ID_CHARACTERS),
    ]
    labels = [one.label for one in topics]
    return lines_between(left, right, min(width(), MOST_COLUMNS), labels_below("topic", labels))


def _spark(days: Mapping[str, int], first: date, last: date) -> str:
    counts = [0] * SPARK_COLUMNS
    length = (last - first).days + 1
    for day, count in days.items():
        counts[(date.fromisoformat(day) - first).days * SPARK_COLUMNS // length] += count
    most = max(counts)
    steps = _BLOCKS if str(sys.stdout.encoding).lower().startswith("utf") else _ASCII_BLOCKS
    # Rounded up, so that one entry is visible.
    return "".join(steps[-(-count * len(steps) // most) - 1] if count else " " for count in counts)


# One topic


def _show(context: Context, found: TopicList, topic: Topic) -> None:
    entries = _entries(context, topic)
    related = found.related(topic)
    changes = found.changes_of(topic)
    columns = min(width(), MOST_COLUMNS)
    one = topic.stored
    lines = [styled(fit(plain(topic.label), columns), bold=True)]
    parts = f"size {topic.size_score:.2f}, recency {topic.recency:.2f}, centrality {one.centrality:.2f}"
    lines.append(fit(f"{topic.id} · importance {topic.importance:.2f}: {parts}", columns))
    span = topic.first if topic.first == topic.last else f"{topic.first} to {topic.last}"
    size = f"{plural(one.size, 'entry', 'entries')} on {plural(len(one.days), 'day')}"
    lines.append(fit(f"{size}, {span}", columns))
    lines.append(fit(plain(f"words: {', '.join(one.words)}"), columns))
    weeks = list(topic.weeks.items())[-_SHOWN_WEEKS:]
    lines.append(fit(f"weeks: {', '.join(f'{name} ({count})' for name, count in weeks)}", columns))
    if entries:
        lines += ["", styled("Typical entries", dim=True)]
        lines += [
            f"{entry['date']}  {pad(plain(str(entry['title'])), columns - 26)}  {entry['id']}".rstrip()
            for entry in entries
        ]
    if related:
        lines += ["", styled("Related topics", dim=True), *_relation_rows(related[:5], columns)]
    if changes:
        lines += ["", styled("Earlier", dim=True)]
        lines += [fit(f"{one.day}  {one.id} {one.words}", columns) for one in changes[-5:]]
    value = {
        **topic.as_dict(), "days": topic.stored.days, "examples": entries,
        "related": [one.as_dict(other.label) for one, other in related],
        "changes": [asdict(one) for one in changes],
    }
    context.report_page(value, lines)


def _entries(context: Context, topic: Topic) -> list[dict[str, str]]:
    from memkit.index import open_chunks

    chunks = open_chunks(context.project, context.home, context.settings())
    found = [_entry(chunks, name) for name in topic.stored.entries] if chunks is not None else []
    return [one for one in found if one][:_SHOWN_ENTRIES]


def _entry(chunks: ChunkReader, name: str) -> dict[str, str]:
    from memkit.index.chunk import SHOWN_ID_CHARACTERS
    from memkit.text import one_line

    try:
        _, chunk = chunks.known(name)
    except NotFoundError:  # edited since
        return {}
    title, shown = chunk.heading or chunk.content, chunk.entry_id or name[:SHOWN_ID_CHARACTERS]
    return {"id": shown, "date": chunk.date, "title": one_line(title, 200)}


def _related(context: Context, found: TopicList, topic: Topic, count: int) -> None:
    related = found.related(topic)[:count]
    lines = _relation_rows(related, min(width(), MOST_COLUMNS))
    listed = [one.as_dict(other.label) for one, other in related]
    none = fit(plain(f"No topic is related to {topic.label}."), min(width(), MOST_COLUMNS))
    context.report_page({"id": topic.id, "related": listed}, lines or [none])


def _relation_rows(related: list[tuple[Any, Topic]], columns: int) -> list[str]:
    rows = []
    for relation, other in related:
        why = f"same time {relation.together:.2f}, alike {relation.alike:.2f}"
        numbers = f"{relation.strength:.2f}  {why}  {other.id}"
        rows.append(f"{styled(pad(plain(other.label), columns - len(numbers) - 2), bold=True)}  {numbers}")
    return rows


def _search(context: Context, query: str, count: int) -> None:
    topics = context.memory().topics_about(query)[:count]
    listed = [{**one.as_dict(), "score": round(score, 3)} for one, score in topics]
    none = plain(f"No topic has entries on {query!r}; `memkit search` may find single ones.")
    context.report_page({"query": query, "topics": listed}, _rows([one for one, _ in topics]) or [none])


def _rename(context: Context, found: TopicList, name: str, label: str) -> None:
    topic = found.find(name)
    shown = context.memory().rename_topic(topic.id, label)
    context.report({"id": topic.id, "label": shown}, f"{topic.id} is {shown!r} now.")
