"""The timeline: its nodes, what they hold, and the original messages; and citations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from memkit.browse.citation import CitationView
from memkit.interface import InterfaceMemory as Memory
from memkit.serve.answers import documented, returns
from memkit.serve.auth import Reading, ReadingTimeline
from memkit.serve.shapes import (
    After,
    Depth,
    Id,
    Node,
    NodeFilter,
    Rows,
    Since,
    Text,
    Until,
    moment_named,
)
from memkit.timeline.events import ChildrenMatches, Events, NodeMatches
from memkit.timeline.view import Calendar, TimelineChildren, TimelineView

router = APIRouter(tags=["timeline"], responses=documented(404, 409))


@router.get("/timeline", responses=returns(TimelineView))
async def timeline_root(
    ask: ReadingTimeline, depth: Depth = 0, limit: Rows = 100, after: After = ""
) -> Response:
    """Return the years and months, and what the whole memory is about."""
    return await ask(lambda memory: memory.timeline(depth=depth, limit=limit, after=after))


@router.get("/timeline/{node}", responses=returns(TimelineView))
async def timeline_node(
    node: Node, ask: ReadingTimeline, depth: Depth = 0, limit: Rows = 100, after: After = ""
) -> Response:
    """Return a year, month, week, day, or part of a session: what it was about, and what it consists of."""
    return await ask(lambda memory: memory.timeline(node, depth=depth, limit=limit, after=after))


@router.get("/timeline/{node}/children", responses=returns(TimelineChildren))
async def browse_children(
    node: Node, ask: ReadingTimeline, depth: Depth = 1, limit: Rows = 20, after: After = ""
) -> Response:
    """Return the nodes below a node, page by page: `next` is the `after` of the next page."""

    def browse(memory: Memory) -> TimelineChildren:
        found = memory.timeline(node, depth=depth, limit=limit, after=after)
        return {"path": found["path"], "children": found["children"], "next": found["next"]}

    return await ask(browse)


@router.get("/timeline/{node}/search", responses=returns(NodeMatches))
async def search_node(
    node: Node, ask: ReadingTimeline, query: Text, limit: Rows = 20, after: After = ""
) -> Response:
    """Return the turns, notes, and bullets of a node that have all words, also inside other words."""
    return await ask(lambda memory: memory.scan(query, node, limit=limit, after=after))


@router.get("/timeline/{node}/children/search", responses=returns(ChildrenMatches))
async def search_children(node: Node, ask: ReadingTimeline, query: Text, limit: Rows = 20) -> Response:
    """Return the children of a node in which something has all words, with the first matches of each."""
    return await ask(lambda memory: memory.scan_children(query, node, limit=limit))


@router.get("/calendar/{year}", responses=returns(Calendar))
async def get_calendar(
    year: Annotated[int, Path(ge=1, le=9999, description="A year of the calendar", examples=[2026])],
    ask: ReadingTimeline,
) -> Response:
    """Return how much each day of a year holds. Days that hold nothing are left out."""
    return await ask(lambda memory: memory.calendar(year))


@router.get("/events", responses=returns(Events))
async def events_in_range(
    ask: Reading, since: Since = "", until: Until = "", node: NodeFilter = "", limit: Rows = 50,
    after: After = "",
) -> Response:  # fmt: skip
    """Return the original messages in a range of time, or of a node, page by page."""

    def read(memory: Memory) -> Events:
        begin, end = moment_named(since), moment_named(until, is_end=True)
        return memory.events(node, limit=limit, after=after, since=begin, until=end)

    return await ask(read)


@router.get("/citations/{id}", responses=returns(CitationView))
async def expand_citation(
    id: Id,
    ask: Reading,
    context: Annotated[int, Query(ge=0, le=20, description="Messages before and after the proof")] = 3,
) -> Response:
    """Return the proof of a summary's bullet, and the messages around it."""
    return await ask(lambda memory: memory.cite(id, context).as_dict())
