"""The memory as a graph: topics, the turns in them, and the files that these read or edited.

    topic:5f0c0e0a --related-- topic:9a1b2c3d
    entry:8ad3df7f --in------> topic:5f0c0e0a
    entry:8ad3df7f --touches-> file:deploy/gateway.yaml

The newest turns come first, and only days that have some of them are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from html import unescape
from itertools import islice
from typing import TypedDict

from memkit.errors import JournalError, NotFoundError
from memkit.journal.day_file import heading_title
from memkit.journal.turn_parts import read_parts
from memkit.text import encodable, one_line
from memkit.timeline.summary import TITLE_CHARACTERS, read_day
from memkit.timeline.tree import Timeline
from memkit.topics.topic_list import Topic, TopicList

MOST_NODES = 2000
_ENTRIES, _TOPICS = 0.6, 0.2
"""The shares of the nodes that are turns, and in the whole map topics, at most. The rest is for files."""

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
    """A part of the memory as a graph. `all` counts the topics and turns of the whole memory."""

    nodes: list[GraphNode]
    edges: list[GraphEdge]
    all: int


@dataclass(frozen=True, slots=True)
class _Entry:
    id: str
    day: str
    title: str
    files: dict[str, int]


def graph(
    timeline: Timeline,
    topics: TopicList | None,
    around: str,
    limit: int,
    announce: Callable[[str], None],
) -> Graph:
    """Return at most `limit` nodes around one, or of the whole memory, and the edges between them.

    `around` is the id of a node: `topic:ID`, `file:PATH`, or `entry:TURN`. `topics` is None if none were
    computed. A day that cannot be read is reported to `announce`. Raise `NotFoundError`, `AmbiguousIdError`.
    """
    drawing = _Drawing(timeline, topics, min(limit, MOST_NODES), announce)
    kind, _, name = around.partition(":")
    views = {"": drawing.everything, TOPIC: drawing.topic, FILE: drawing.file, ENTRY: drawing.entry}
    if kind not in views or bool(around) != bool(name):
        raise NotFoundError("the graph has the nodes topic:ID, file:PATH, and entry:ID")
    views[kind](name)
    turns = timeline.node().summary.turns
    nodes, edges = drawing.drawn()
    every = turns + (len(topics.topics) if topics is not None else 0)
    return {"nodes": nodes, "edges": edges, "all": every}


class _Drawing:
    def __init__(
        self, timeline: Timeline, topics: TopicList | None, limit: int, announce: Callable[[str], None]
    ) -> None:
        self._timeline = timeline
        self._list = topics
        self._limit = limit
        self._most_entries = max(1, int(_ENTRIES * limit))
        self._announce = announce
        self._known: dict[str, Topic] = {one.id: one for one in topics.topics} if topics else {}
        kept = topics.kept.topics if topics else {}
        self._members = {name: kept[name].members for name in self._known if name in kept}
        self._topic_of = {key: name for name, members in self._members.items() for key in members}
        self._topics: dict[str, None] = {}
        self._entries: dict[str, _Entry] = {}
        self._file = ""  # the one in the middle
        self._least = 1  # the turns that must have touched a file

    def everything(self, _: str) -> None:
        """Take the largest topics, the newest turns, and the files that several of them touched."""
        largest = sorted(self._known.values(), key=lambda one: (-one.stored.size, one.id))
        self._add_topics(one.id for one in largest[: int(_TOPICS * self._limit)])
        self._add_entries(self._newest(self._timeline.names), self._most_entries)
        self._least = 2

    def topic(self, name: str) -> None:
        """Take a topic, the related ones, its newest turns, and their files."""
        if self._list is None:
            raise NotFoundError("there are no topics yet; `memkit topics` finds them")
        topic = self._list.find(name)
        self._add_topics([topic.id, *(other.id for _, other in self._list.related(topic))])
        self._add_members(topic.id, self._most_entries)

    def file(self, name: str) -> None:
        """Take a file, the newest turns that touched it, their topics, and their other files."""
        self._file = name
        newest = self._newest(self._timeline.names, text=name)
        self._add_entries((one for one in newest if name in one.files), self._most_entries)
        if not self._entries:
            raise NotFoundError(f"no turn touched a file {name!r}; the name is that in the day files")
        self._add_topics(self._topics_of_entries())

    def entry(self, name: str) -> None:
        """Take a turn, the others of its session, and those of its topic; their topics and files."""
        session, turn = self._timeline.find_session(name)
        found = {one.id: one for one in self._newest(self._timeline.days_of(session), session=session)}
        if turn not in found:
            raise NotFoundError(f"{self._timeline.project.root} has no turn {name!r}")
        self._add_entries([found[turn]], 1)
        self._file = next(iter(found[turn].files), "")
        self._add_entries(found.values(), max(1, self._most_entries // 2))
        if topic := self._topic_of.get(turn):
            self._add_members(topic, self._most_entries)
        self._add_topics(self._topics_of_entries())

    def drawn(self) -> tuple[list[GraphNode], list[GraphEdge]]:
        nodes = {
            f"{ENTRY}:{one.id}": _node(ENTRY, one.id, one.title, self._topic_of.get(one.id, ""), 1, one.day)
            for one in self._entries.values()
        }
        room = self._limit - len(nodes)
        nodes |= {f"{TOPIC}:{name}": self._topic_node(name) for name in islice(self._topics, room)}
        touching = Counter(path for one in self._entries.values() for path in one.files)
        files = [path for path, count in touching.most_common() if count >= self._least]
        if self._file in touching:
            files = list(dict.fromkeys([self._file, *files]))
        days = {path: one.day for one in reversed(self._entries.values()) for path in one.files}
        for path in files[: self._limit - len(nodes)]:
            nodes[f"{FILE}:{path}"] = _node(FILE, path, path, "", touching[path], days[path])
        edges: list[GraphEdge] = [
            {"from": one, "to": other, "kind": kind, "weight": weight}
            for one, other, kind, weight in self._edges()
            if one in nodes and other in nodes
        ]
        return list(nodes.values()), edges

    def _edges(self) -> Iterator[tuple[str, str, str, float]]:
        for name in self._topics:
            for one in self._known[name].stored.related:
                # Either topic may name the other one among its strongest relations, or both.
                other = self._known.get(one.id)
                is_given = other is not None and any(back.id == name for back in other.stored.related)
                if name < one.id or not is_given:
                    yield f"{TOPIC}:{name}", f"{TOPIC}:{one.id}", "related", one.strength
        for entry in self._entries.values():
            node = f"{ENTRY}:{entry.id}"
            yield node, f"{TOPIC}:{self._topic_of.get(entry.id, '')}", "in", 1.0
            for path, count in entry.files.items():
                yield node, f"{FILE}:{path}", "touches", float(count)

    def _topic_node(self, name: str) -> GraphNode:
        topic = self._known[name]
        return _node(TOPIC, name, topic.label, name, topic.stored.size, topic.last)

    def _add_topics(self, names: Iterable[str]) -> None:
        self._topics |= dict.fromkeys(names)

    def _topics_of_entries(self) -> Iterator[str]:
        found = Counter(self._topic_of[name] for name in self._entries if name in self._topic_of)
        return (name for name, _ in found.most_common())

    def _add_entries(self, entries: Iterable[_Entry], most: int) -> None:
        for one in entries:
            if len(self._entries) >= most:
                return
            self._entries.setdefault(one.id, one)

    def _add_members(self, topic: str, most: int) -> None:
        days = self._known[topic].stored.days
        names = [name for name in self._timeline.names if name[:10] in days]
        self._add_entries(self._newest(names, self._members.get(topic, ())), most)

    def _newest(
        self,
        days: Iterable[str],
        wanted: Collection[str] | None = None,
        session: str = "",
        text: str = "",
    ) -> Iterator[_Entry]:
        """Yield the newest turns, `wanted` or of a session; skipping days without `text` is much faster."""
        for name in sorted(days, reverse=True):
            try:
                if text and text not in encodable(self._timeline.journal.text(f"{name}.md")):
                    continue
                content = read_day(self._timeline.journal, name)
            except JournalError as error:
                self._announce(str(error))
                continue
            for heading, turns in reversed(list(content.groups())):
                if session and (heading is None or heading.pairs.get("session") != session):
                    continue
                for section in reversed(turns):
                    turn = section.pairs["turn"]
                    if wanted is None or turn in wanted:
                        calls = Counter(call.path for call in read_parts(content.text(section)).file_calls)
                        title = one_line(unescape(heading_title(section)), TITLE_CHARACTERS)
                        yield _Entry(turn, name[:10], title, dict(calls.most_common(_FILES_OF_ENTRY)))


def _node(kind: str, name: str, label: str, topic: str, size: int, day: str) -> GraphNode:
    return {"id": f"{kind}:{name}", "kind": kind, "label": label, "topic": topic, "size": size, "day": day}
