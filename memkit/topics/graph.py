"""A part of the memory as a graph: topics, the turns in them, and the files that these read or edited.

    topic:5f0c0e0a --related-- topic:9a1b2c3d
    entry:8ad3df7f --in------> topic:5f0c0e0a
    entry:8ad3df7f --touches-> file:deploy/gateway.yaml

The newest turns come first, and only days that have some of them are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from html import unescape
from typing import TypedDict

from memkit.errors import JournalError, NotFoundError
from memkit.journal.day_file import heading_title
from memkit.journal.turn_parts import read_parts
from memkit.text import one_line
from memkit.timeline.summary import TITLE_CHARACTERS, read_day
from memkit.timeline.tree import Timeline
from memkit.topics.topic_list import Topic, TopicList

MOST_NODES = 2000
_ENTRIES = 0.6
"""The share of the nodes that are turns, at most. The rest is for topics and files."""

_FILES_OF_ENTRY = 20

TOPIC, FILE, ENTRY = "topic", "file", "entry"
"""The kinds of nodes, and the beginnings of their ids."""


class GraphNode(TypedDict):
    """A topic, a turn ("entry"), or a file, with the ID of its topic.

    `size` counts the entries of a topic, and the turns of this graph that touched a file. `day` is the last
    one.
    """

    id: str
    kind: str
    label: str
    topic: str
    size: int
    day: str


GraphEdge = TypedDict("GraphEdge", {"from": str, "to": str, "kind": str, "weight": float})
"""A turn "in" a topic, a turn that "touches" a file, or two "related" topics.

`weight` is the number of touches, or the strength up to 1.
"""


class Graph(TypedDict):
    """What is around a node."""

    nodes: list[GraphNode]
    edges: list[GraphEdge]


@dataclass(frozen=True, slots=True)
class _Entry:
    id: str
    session: str
    day: str
    title: str
    files: dict[str, int]


def graph(
    timeline: Timeline, topics: TopicList | None, around: str, limit: int, announce: Callable[[str], None]
) -> Graph:
    """Return at most `limit` nodes around one, and the edges between them.

    `around` is the id of a node: `topic:ID`, `file:PATH`, or `entry:TURN`. `topics` is None if none were
    computed. A day that cannot be read is reported to `announce`. Raise `NotFoundError`, `AmbiguousIdError`.
    """
    drawing = _Drawing(timeline, topics, min(limit, MOST_NODES), announce)
    kind, _, name = around.partition(":")
    views = {TOPIC: drawing.topic, FILE: drawing.file, ENTRY: drawing.entry}
    if kind not in views or not name:
        raise NotFoundError("the graph has the nodes topic:ID, file:PATH, and entry:ID")
    views[kind](name)
    return drawing.drawn()


class _Drawing:
    def __init__(
        self, timeline: Timeline, topics: TopicList | None, limit: int, announce: Callable[[str], None]
    ) -> None:
        self._timeline = timeline
        self._list = topics
        self._limit = limit
        self._most_entries = max(1, int(_ENTRIES * limit))
        self._announce = announce
        self._topic_of = topics.by_member() if topics is not None else {}
        self._topics: list[Topic] = []
        self._entries: dict[str, _Entry] = {}
        self._file = ""  # the one in the middle

    def topic(self, name: str) -> None:
        """Take a topic, the related ones, its newest turns, and their files."""
        if self._list is None:
            raise NotFoundError("there are no topics yet; `memkit topics` finds them")
        topic = self._list.find(name)
        self._topics = [topic, *(other for _, other in self._list.related(topic))]
        self._add_members(topic)

    def file(self, name: str) -> None:
        """Take a file, the newest turns that touched it, their topics, and their other files."""
        self._file = name
        days = [day for day, numbers in self._timeline.numbers() if name in numbers.files]
        self._add_entries((one for one in self._newest(days) if name in one.files), self._most_entries)
        if not self._entries:
            raise NotFoundError(f"no turn touched a file {name!r}; the name is that in the day files")
        self._add_topics_of_entries()

    def entry(self, name: str) -> None:
        """Take a turn, the others of its session, and those of its topic; their topics and files."""
        session, turn = self._timeline.find_session(name)
        days = self._timeline.days_of(session)
        found = {one.id: one for one in self._newest(days) if one.session == session}
        if turn not in found:
            raise NotFoundError(f"{self._timeline.project.root} has no turn {name!r}")
        self._file = next(iter(found[turn].files), "")
        self._add_entries([found[turn], *found.values()], max(1, self._most_entries // 2))
        if topic := self._topic_of.get(turn):
            self._add_members(topic)
        self._add_topics_of_entries()

    def drawn(self) -> Graph:
        nodes: dict[str, GraphNode] = {}

        def add(kind: str, name: str, label: str, topic: str, size: int, day: str) -> None:
            node = f"{kind}:{name}"
            nodes[node] = {"id": node, "kind": kind, "label": label, "topic": topic, "size": size, "day": day}

        for entry in self._entries.values():
            add(ENTRY, entry.id, entry.title, self._topic_id(entry), 1, entry.day)
        for one in self._topics[: self._limit - len(nodes)]:
            add(TOPIC, one.id, one.label, one.id, one.stored.size, one.last)
        touching = Counter(path for entry in self._entries.values() for path in entry.files)
        files = sorted(touching, key=lambda path: (path != self._file, -touching[path]))
        days = {path: entry.day for entry in reversed(self._entries.values()) for path in entry.files}
        for path in files[: self._limit - len(nodes)]:
            add(FILE, path, path, "", touching[path], days[path])
        edges: list[GraphEdge] = [
            {"from": one, "to": other, "kind": kind, "weight": weight}
            for one, other, kind, weight in self._edges()
            if one in nodes and other in nodes
        ]
        return {"nodes": list(nodes.values()), "edges": edges}

    def _edges(self) -> Iterator[tuple[str, str, str, float]]:
        related: dict[tuple[str, str], float] = {}
        for topic in self._topics:
            for one in topic.stored.related:
                # Either topic may name the other one among its strongest relations, or both.
                related[min(topic.id, one.id), max(topic.id, one.id)] = one.strength
        for (first, second), strength in related.items():
            yield f"{TOPIC}:{first}", f"{TOPIC}:{second}", "related", strength
        for entry in self._entries.values():
            node = f"{ENTRY}:{entry.id}"
            yield node, f"{TOPIC}:{self._topic_id(entry)}", "in", 1.0
            for path, count in entry.files.items():
                yield node, f"{FILE}:{path}", "touches", float(count)

    def _add_topics_of_entries(self) -> None:
        found = [self._topic_of[name] for name in self._entries if name in self._topic_of]
        known = {topic.id: topic for topic in found}
        self._topics = [known[name] for name, _ in Counter(topic.id for topic in found).most_common()]

    def _add_members(self, topic: Topic) -> None:
        names = [name for name in self._timeline.names if name[:10] in topic.stored.days]
        own = (one for one in self._newest(names) if self._topic_id(one) == topic.id)
        self._add_entries(own, self._most_entries)

    def _topic_id(self, entry: _Entry) -> str:
        topic = self._topic_of.get(entry.id)
        return topic.id if topic is not None else ""

    def _add_entries(self, entries: Iterable[_Entry], most: int) -> None:
        for one in entries:
            if len(self._entries) >= most:
                return
            self._entries.setdefault(one.id, one)

    def _newest(self, days: Iterable[str]) -> Iterator[_Entry]:
        for name in sorted(days, reverse=True):
            try:
                content = read_day(self._timeline.journal, name)
            except JournalError as error:
                self._announce(str(error))
                continue
            for heading, turns in reversed(list(content.groups())):
                session = heading.pairs.get("session", "") if heading is not None else ""
                for section in reversed(turns):
                    calls = Counter(call.path for call in read_parts(content.text(section)).file_calls)
                    title = one_line(unescape(heading_title(section)), TITLE_CHARACTERS)
                    files = dict(calls.most_common(_FILES_OF_ENTRY))
                    yield _Entry(section.pairs["turn"], session, name[:10], title, files)
