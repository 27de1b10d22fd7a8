"""Answer a question about a period from the nodes of the timeline that it consists of.

Reads the rollups of these nodes, which are small files. A node without a rollup is described by what the
timeline keeps of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date

from msgspec.structs import replace

from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.privacy.tombstones import Forgotten, Tombstones
from memkit.projects.project import Project
from memkit.recall.overview import Line, PeriodNode
from memkit.timeline.nodes import Span, parts_of, spans_of
from memkit.timeline.rollups import read_rollup
from memkit.timeline.summary import Entry
from memkit.timeline.tree import Timeline

MOST_NODES = 16
MOST_LINES = 24
"""The most lines of all rollups: those of three months."""

FEW_NODES = 3
"""With more nodes, those without a rollup show no decisions and open questions."""

_WORDS, _LINES = 8, 3


def period_nodes(
    projects: Sequence[Project],
    home: Home,
    days: tuple[date, date],
    today: date,
    timeline_of: Callable[[Project], Timeline],
) -> tuple[PeriodNode, ...]:
    """Return the nodes that a period of `days` (first and last) consists of, by project, oldest first.

    A node without a rollup is followed by those of its parts that have one. Nodes without any memory are left
    out. Empty if the period does not consist of weeks, months, or years.
    """
    spans = spans_of(*days, today)
    if not spans:
        return ()
    forgotten = Tombstones(home).forgotten()
    found: list[PeriodNode] = []
    for project in projects:
        own = list(_nodes(project, spans, forgotten.within(project.root)))
        few = sum(not one.lines for one in own) <= FEW_NODES
        described = (one if one.lines else _described(one, timeline_of(project), few) for one in own)
        found += filter(None, described)
    return _limited(found[:MOST_NODES])


def _nodes(project: Project, spans: Sequence[Span], forgotten: Forgotten) -> Iterator[PeriodNode]:
    journal = Journal(project)
    for span in spans:
        rollup = read_rollup(journal, span, forgotten)
        if rollup is None:
            yield PeriodNode(span.name, project.root)
            parts = _nodes(project, parts_of(span), forgotten)
            yield from (one for one in parts if one.lines)
            continue
        lines = (Line(one.date, one.text, one.id, "", project.root, one.citations) for one in rollup.lines)
        yield PeriodNode(span.name, project.root, rollup.title, tuple(lines))


def _described(node: PeriodNode, timeline: Timeline, few: bool) -> PeriodNode | None:
    if not timeline.has_period(node.id):
        return None
    known = timeline.node(node.id)
    node = replace(node, words=known.words[:_WORDS])
    if not few:
        return node

    def lines(entries: Sequence[Entry]) -> tuple[Line, ...]:
        return tuple(Line(one.time, one.text, one.id, "", node.root) for one in entries[:_LINES])

    decided, asked = timeline.decisions(known), timeline.open_questions(known)
    return replace(node, decided=lines(decided), open=lines(asked))


def _limited(nodes: Sequence[PeriodNode]) -> tuple[PeriodNode, ...]:
    most = MOST_LINES // max(1, sum(bool(one.lines) for one in nodes))
    return tuple(
        replace(one, lines=one.lines[:most], omitted=len(one.lines[most:])) for one in nodes
    )
