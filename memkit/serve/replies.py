"""Types of what the page gets. Times are local: `2026-11-20 14:02`, or `14:02` next to a day."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field


class ProjectName(BaseModel):
    """A project: the name that its user sees, and its directory."""

    name: str
    root: str


class PageKey(BaseModel):
    """The key of the page."""

    key: str
    project: ProjectName


class SessionRow(BaseModel):
    """A session, or what it did in a period."""

    session: str
    project: str
    begins: str
    ends: str
    title: str
    outcome: str = Field(description="One line of Markdown, or empty")
    turns: list[str]
    branch: str
    path: str
    line: int = Field(description="The line of `path` where it begins, from 1")


class SessionPage(BaseModel):
    """A page of sessions."""

    sessions: list[SessionRow]
    next: str | None


class Fact(BaseModel):
    """A later fact because of which something no longer holds."""

    id: str
    date: str
    text: str


class Bullet(BaseModel):
    """A line of a summary, as Markdown, with the turns that prove it. An extract is made without a model."""

    id: str
    text: str
    turns: list[str]
    verified: bool
    extract: bool
    superseded: Fact | None


class SummaryPart(BaseModel):
    """The summary of a part of a session."""

    day: str
    time: str
    title: str
    bullets: list[Bullet]


class TouchedFile(BaseModel):
    """A file that a turn read or edited."""

    file: str
    edited: bool


class Turn(BaseModel):
    """A turn. `prompt`, `tools`, and `answer` are Markdown."""

    id: str
    day: str
    time: str
    title: str
    branch: str
    prompt: str
    tools: list[str]
    outcome: str = Field(description="answered, interrupted, or empty")
    answer: str
    files: list[TouchedFile]
    bullets: list[str] = Field(description="The bullets that cite it")
    superseded: Fact | None
    git: dict[str, Any] | None = Field(description="Changes of the repository since; `line` describes them")


class SessionView(SessionRow):
    """A session with its summaries and a page of its turns."""

    turn: str | None = Field(description="The turn that was asked for")
    summaries: list[SummaryPart]
    offset: int = Field(description="The number of the first of the `entries` in `turns`, from 0")
    entries: list[Turn]


class Tool(BaseModel):
    """A tool call with its input, or the result of one."""

    name: str
    input: dict[str, Any] | None = None
    result: str | None = None
    is_error: bool = False


class Message(BaseModel):
    """A message of a session. `time` is in ISO 8601."""

    role: str
    time: str | None
    turn: str | None
    text: str
    tools: list[Tool]


class Transcript(BaseModel):
    """The original messages of a turn, from Claude Code's transcript or from the archive."""

    session: str
    transcript: str | None
    archived: bool
    turn: str | None
    branch: str
    commit: str
    damaged_bytes: int
    missing: list[str] = Field(description="Turns that a damaged archive has lost")
    messages: list[Message]


class CalendarDay(BaseModel):
    """The counts of a day. `failed` counts commands."""

    day: str
    turns: int
    sessions: int
    notes: int
    failed: int


class Calendar(BaseModel):
    """A year of the calendar, and the years to choose from."""

    year: int
    years: list[int]
    days: list[CalendarDay]


class Counts(BaseModel):
    """The size of a memory. `entries` are those of the index: parts of turns, notes, bullets."""

    days: int
    sessions: int
    turns: int
    notes: int
    entries: int


class Sizes(BaseModel):
    """Bytes on the disk. Archive and index are those of all projects."""

    memory: int
    archive: int
    index: int


class IndexState(BaseModel):
    """Whether the index has every change of the files, and how many entries have no vector yet."""

    in_step: bool
    missing: int
    model: str


class LastTurn(BaseModel):
    """The last turn that was captured; `title` is that of its part of the session."""

    id: str
    session: str
    time: str
    title: str


class Spent(BaseModel):
    """Model calls. `usd` covers those with a known price; `unpriced` counts the others."""

    calls: int
    failed: int
    tokens_in: int
    tokens_out: int
    usd: float
    unpriced: int
    unreadable: int


class SpentOnDay(Spent):
    """The model calls of a day."""

    day: str


class SpentOnModel(Spent):
    """The calls of a model."""

    model: str


class Cost(BaseModel):
    """The model calls of the memory home, as `memkit cost` counts them."""

    total: Spent
    today: Spent
    month: Spent
    daily_tokens: int
    days: list[SpentOnDay]
    models: list[SpentOnModel]


class Finding(BaseModel):
    """A problem that `memkit doctor` finds, what it means, and how to fix it."""

    code: str
    level: str = Field(description="error, warning, or note")
    what: str
    meaning: str
    fix: str


class Overview(BaseModel):
    """Sizes, the last turn, costs, and health."""

    version: str
    project: str
    off: bool
    first: str | None
    last: str | None
    counts: Counts
    bytes: Sizes
    index: IndexState
    last_turn: LastTurn | None
    waiting: int = Field(description="Events that are not captured yet")
    failed: int = Field(description="Events that could not be captured")
    cost: Cost
    health: list[Finding]


class GraphNode(BaseModel):
    """A topic, a turn ("entry"), or a file.

    `size` counts the entries of a topic, and the turns of this graph that touched a file. `day` is the last
    one.
    """

    id: str = Field(description="topic:ID, entry:TURN, or file:PATH")
    kind: Literal["topic", "entry", "file"]
    label: str
    topic: str = Field(description="The ID of its topic, or empty")
    size: int
    day: str


class GraphEdge(BaseModel):
    """A turn in a topic, a turn that touches a file, or two related topics.

    `weight` is the number of touches, or the strength up to 1.
    """

    start: str = Field(alias="from")
    to: str
    kind: Literal["in", "related", "touches"]
    weight: float


class Graph(BaseModel):
    """A part of the memory as a graph. `all` counts the topics and turns of the whole memory."""

    nodes: list[GraphNode]
    edges: list[GraphEdge]
    all: int
