"""A part of the memory as a graph: topics, the turns in them, and the files that these read or edited.

    topic:5f0c0e0a --- topic:9a1b2c3d           related topics
    entry:8ad3df7f --- topic:5f0c0e0a           a turn in a topic
    entry:8ad3df7f --- file:deploy/gateway.yaml a turn that touched a file

The newest turns come first, and only days that have some of them are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from html import unescape
from itertools import chain
from typing import NamedTuple, TypedDict

from memkit.errors import JournalError, NotFoundError
from memkit.journal.day_file import heading_title
from memkit.journal.turn_parts import read_parts
from memkit.text import one_line
from memkit.timeline.summary import TITLE_CHARACTERS, read_day
from memkit.timeline.tree import Timeline
from memkit.topics.topic_list import Topic, TopicList

_ENTRIES = 0.6
"""The share of the nodes that are turns, at most. The rest is for topics and files."""


class GraphNode(TypedDict):
    """A topic, a turn ("entry"), or a file, with the ID of its topic. `day` is the last one."""

    id: str
    kind: str
    label: str
    topic: str
    day: str


GraphEdge = TypedDict("GraphEdge", {"from": str, "to": str})


class Graph(TypedDict):
    """What is around a node."""

    nodes: list[GraphNode]
    edges: list[GraphEdge]


class Turn(NamedTuple):
    """A turn as its day file has it. `files` are all that it touched; `edits` counts by file."""

    id: str
    session: str
    day: str
    title: str
    files: Collection[str]
    edits: Counter[str]


def turns_of(timeline: Timeline, name: str, announce: Callable[[str], None]) -> list[Turn]:
    """Return the turns of a day file; report one that cannot be read to `announce`, and return none."""
    try:
        content = read_day(timeline.journal, name)
    except JournalError as error:
        announce(str(error))
        return []
    found = []
    for heading, turns in content.groups():
        session = heading.pairs.get("session", "") if heading is not None else ""
        for section in turns:
            title = one_line(unescape(heading_title(section)), TITLE_CHARACTERS)
            calls = read_parts(content.text(section)).file_calls
            files = dict.fromkeys(call.path for call in calls)
            edits = Counter(call.path for call in calls if call.is_edit)
            found.append(Turn(section.pairs["turn"], session, name[:10], title, files, edits))
    return found


def graph(
    timeline: Timeline, topics: TopicList | None, around: str, limit: int, announce: Callable[[str], None]
) -> Graph:
    """Return at most `limit` nodes around one, and the edges between them.

    `around` is the id of a node: `topic:ID`, `file:PATH`, or `entry:TURN`. `topics` is None if none were
    computed. A day that cannot be read is reported to `announce`. Raise `NotFoundError`, `AmbiguousIdError`.
    """
    topic_of = topics.by_member() if topics is not None else {}
    most = max(1, int(_ENTRIES * limit))

    def newest(days: Iterable[str]) -> Iterator[Turn]:
        for day in sorted(days, reverse=True):
            yield from reversed(turns_of(timeline, day, announce))

    def members(topic: Topic) -> Iterator[Turn]:
        days = [name for name in timeline.names if name[:10] in topic.stored.days]
        return (one for one in newest(days) if topic_of.get(one.id) is topic)

    kind, _, name = around.partition(":")
    shown: list[Topic] = []
    turns: Iterable[Turn]
    near: Collection[str] = ()
    if kind == "topic" and name:
        if topics is None:
            raise NotFoundError("there are no topics yet; `memkit topics` finds them")
        topic = topics.find(name)
        shown = [topic, *(other for _, other in topics.related(topic))]
        turns = members(topic)
    elif kind == "file" and name:
        near = (name,)
        touched = (day for day, numbers in timeline.numbers() if name in numbers.files)
        turns = (one for one in newest(touched) if name in one.files)
    elif kind == "entry" and name:
        session, turn = timeline.find_session(name)
        own = {one.id: one for one in newest(timeline.days_of(session)) if one.session == session}
        if turn not in own:
            raise NotFoundError(f"{timeline.project.root} has no turn {name!r}")
        near = own[turn].files
        beside = [own[turn], *(one for one in own.values() if one.id != turn)]
        turns = chain(beside[: max(1, most // 2)], members(topic_of[turn]) if turn in topic_of else ())
    else:
        raise NotFoundError("the graph has the nodes topic:ID, file:PATH, and entry:ID")
    entries: dict[str, Turn] = {}
    for one in turns:
        entries[one.id] = one
        if len(entries) == most:
            break
    if kind == "file" and not entries:
        raise NotFoundError(f"no turn touched a file {name!r}; the name is that in the day files")
    return _drawn(list(entries.values()), shown, near, topic_of, limit)


def _drawn(
    entries: list[Turn], topics: list[Topic], near: Collection[str], topic_of: Mapping[str, Topic], limit: int
) -> Graph:
    """Draw turns with their files, those `near` first, and with these topics, or else their own ones."""
    found = {one.id: topic_of[one.id] for one in entries if one.id in topic_of}
    if not topics:
        known = {topic.id: topic for topic in found.values()}
        topics = [known[name] for name, _ in Counter(one.id for one in found.values()).most_common()]
    nodes: dict[str, GraphNode] = {}

    def add(kind: str, name: str, label: str, topic: str, day: str) -> None:
        if len(nodes) < limit:
            node = f"{kind}:{name}"
            nodes[node] = {"id": node, "kind": kind, "label": label, "topic": topic, "day": day}

    for entry in entries:
        add("entry", entry.id, entry.title, found[entry.id].id if entry.id in found else "", entry.day)
    for topic in topics:
        add("topic", topic.id, topic.label, topic.id, topic.last)
    touching = Counter(path for entry in entries for path in entry.files)
    days = {path: entry.day for entry in reversed(entries) for path in entry.files}
    for path in sorted(touching, key=lambda path: (path not in near, -touching[path])):
        add("file", path, path, "", days[path])
    pairs = [(f"entry:{name}", f"topic:{topic.id}") for name, topic in found.items()]
    pairs += [(f"entry:{entry.id}", f"file:{path}") for entry in entries for path in entry.files]
    for topic in topics:
        for one in topic.stored.related:  # either topic may name the other one, or both
            pairs.append((f"topic:{min(topic.id, one.id)}", f"topic:{max(topic.id, one.id)}"))
    edges: list[GraphEdge] = [
        {"from": one, "to": other} for one, other in dict.fromkeys(pairs) if one in nodes and other in nodes
    ]
    return {"nodes": list(nodes.values()), "edges": edges}
