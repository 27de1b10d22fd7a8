"""Types of responses. They describe: a response is written as it is, without a check at run time.

A field that may be missing has a default here.

Times of sessions and turns are local: `2026-11-20 14:02`, or `14:02` next to a day.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field


class Reference(BaseModel):
    """Another entry. `text` is the sentence that counts."""

    id: str
    date: str
    text: str


class MergedResult(BaseModel):
    """A part of the memory that a result stands for, too."""

    id: str
    kind: str


class ResultScores(BaseModel):
    """The parts of a score: BM25, the cosine of the vectors, and the score with its surroundings."""

    lexical: float
    dense: float | None
    context: float


class SearchResult(BaseModel):
    """A part of the memory that was found. Lines are those of `source`, from 1, both ends included."""

    id: str = Field(description="Of the turn, bullet, fact, or note, which stays; else the one of the chunk")
    chunk_id: str = Field(description="Changes when the text moves")
    score: float = Field(description="Ranks the results of one question")
    relevance: float = Field(description="From 0 to 1; compares across questions")
    project: str
    root: str
    source: str = Field(description="The file, from the root of the project")
    start_line: int
    end_line: int
    heading: str
    breadcrumb: str
    kind: str
    date: str
    session: str
    turns: list[str]
    citations: list[str]
    branch: str
    content: str
    node: str = Field(description="Its place in the timeline: 2026-W47 > 2026-11-20 > 14:02")
    merged: list[MergedResult]
    superseded: Reference | None = Field(None, description="A later fact because of which it no longer holds")
    git: dict[str, Any] | None = Field(None, description="Changes of the repository since")
    team: dict[str, Any] | None = Field(None, description="Who shared it in the repository, in which commit")
    changed_by: Reference | None = Field(None, description="A later entry that changes what it says")
    scores: ResultScores
    excerpt: dict[str, Any] | None = Field(None, description="The lines for a person to read")
    explanation: dict[str, Any] | None = Field(None, description="The explanation of its score")


class SearchPeriod(BaseModel):
    """The period that a question names, and its other words."""

    since: str | None
    until: str | None
    text: str
    words: str


class NamedLine(BaseModel):
    """One line of text: a note, a question, a decision, a heading."""

    time: str
    text: str
    id: str
    session: str
    project: str
    citations: list[str] = []


class SearchOverview(BaseModel):
    """The answer to a question about work as such. `kind` is period, recent, topics, or open."""

    kind: str
    nodes: list[dict[str, Any]] = []
    topics: list[dict[str, Any]] = []
    hint: str = ""
    sessions: list[dict[str, Any]]
    lines: list[NamedLine]
    omitted: int
    nearest: list[str] = Field(description="The nearest days that hold something")


class SearchAnswer(BaseModel):
    """The results of a question, best first."""

    query: str
    period: SearchPeriod | None = None
    outside_period: bool = Field(False, description="The results are of other days")
    overview: SearchOverview | None = None
    nearest: list[NamedLine] = Field([], description="Entries that match too little to be a result")
    mode: str
    degraded: bool
    degraded_reason: str = Field("", description="The reason why the answer is incomplete")
    took_ms: float
    best_relevance: float
    chunks: int = Field(description="The number of entries searched")
    results: list[SearchResult]


class EntryView(BaseModel):
    """An entry as Markdown. A note has tags and metadata."""

    kind: str
    id: str
    path: str
    line: int
    session: str | None
    turns: list[str]
    content: str
    tags: list[str] = []
    metadata: dict[str, Any] = {}


class ErasedLines(BaseModel):
    """Lines without an ID, from 1, both ends included."""

    path: str
    start_line: int
    end_line: int


class SharedCopy(BaseModel):
    """An entry that the user shared in the repository."""

    path: str
    line: int
    key: str


class Erasure(BaseModel):
    """The entries that were erased, or would be."""

    erased: bool
    turns: list[str]
    grips: list[str] = Field(description="Citations")
    notes: list[str]
    bullets: int
    days: list[str]
    archived: dict[str, int] = Field(description="The number of turns in the archive, by session")
    passages: list[ErasedLines]
    facts: list[str]
    files: list[str]
    old_versions: list[str]
    projects: dict[str, int] = Field(description="The number of turns and notes, by root")
    shared: dict[str, int]
    team: list[SharedCopy] = Field(description="The user's own copies in the repository")
    confirmation: str = Field(default="", description="The page's key erases with it, once")


class IndexOfWords(BaseModel):
    """The state of the index of words."""

    files: int
    chunks: int
    in_step: bool = Field(description="It has every change of the files")
    language: str


class IndexOfVectors(BaseModel):
    """The state of the vectors, in chunks."""

    provider: str
    model: str
    embedded: int
    missing: int


class HybridStatus(BaseModel):
    """The state of both indexes. `mode` is how a search ranks unless it says otherwise."""

    mode: str
    lexical: IndexOfWords
    vector: IndexOfVectors


class TimelineNode(BaseModel):
    """A node of the timeline: `kind` is all, year, month, week, day, segment, note, or turn."""

    kind: str
    id: str
    parent: str | None
    first: str
    last: str
    title: str
    outcome: str
    bullets: list[str]
    words: list[str]
    session: str | None
    days: int
    sessions: int
    turns: int
    notes: int
    failed: int


class TimelineRow(BaseModel):
    """A node below another one. What it lacks is left out."""

    level: int
    kind: str
    id: str
    first: str
    last: str = ""
    title: str = ""
    outcome: str = ""
    words: list[str] = []
    titles: list[str] = []
    days: int = 0
    sessions: int = 0
    turns: int = 0
    notes: int = 0
    failed: int = 0


class TimedLine(BaseModel):
    """A line of an overview."""

    time: str
    text: str
    id: str


class EditedFile(BaseModel):
    """A file, and how often it was edited."""

    file: str
    edits: int


class FailedCommand(BaseModel):
    """A command, and how often it failed."""

    command: str
    times: int


class NodeOverview(BaseModel):
    """The words and decisions of a node."""

    words: list[str]
    titles: list[TimedLine]
    files: list[EditedFile]
    failures: list[FailedCommand]
    open: list[TimedLine] = Field(description="Open questions")
    decided: list[TimedLine]
    more_open: int
    more_decided: int


class TimelineChildren(BaseModel):
    """A page of the nodes below a node. `next` is the `after` of the next page."""

    path: list[str]
    children: list[TimelineRow]
    next: str | None


class TimelineAnswer(TimelineChildren):
    """A node with what it was about, and a page of the nodes below it."""

    node: TimelineNode
    overview: NodeOverview


class WordMatch(BaseModel):
    """A turn, a note, or a bullet that has all words."""

    kind: str
    id: str
    time: str
    session: str | None
    title: str
    line: str


class NodeMatches(BaseModel):
    """The matches in a node."""

    node: TimelineNode
    search: str
    matches: list[WordMatch]
    next: str | None


class ChildMatches(BaseModel):
    """The first matches in a child."""

    node: TimelineNode
    matches: list[WordMatch]
    next: str | None


class ChildrenMatches(BaseModel):
    """The children of a node with matches."""

    node: TimelineNode
    search: str
    children: list[ChildMatches]
    more: bool


class ArchivedEvent(BaseModel):
    """An original message; `number` counts those of its turn, from 1."""

    turn: str
    session: str | None
    time: str | None
    role: str
    text: str
    number: int


class Events(BaseModel):
    """A page of original messages. `missing` are turns without an original."""

    node: TimelineNode
    events: list[ArchivedEvent]
    missing: list[str]
    more_missing: int
    problems: list[str]
    next: str | None


class TopicView(BaseModel):
    """A topic. Scores are from 0 to 1; `weeks` counts the entries of each."""

    id: str
    label: str
    named: bool
    project: str
    words: list[str]
    entries: int
    first: str
    last: str
    importance: float
    size: float
    recency: float
    centrality: float
    weeks: dict[str, int]


class TopTopics(BaseModel):
    """The most important topics, and the number of all."""

    topics: list[TopicView]
    all: int


class ScoredTopic(TopicView):
    """A topic of what a search found."""

    score: float


class FoundTopics(BaseModel):
    """The topics of what a search found, best first."""

    topics: list[ScoredTopic]


class TopicRelation(BaseModel):
    """A related topic: how strongly, how often both occur together, and how much they are alike."""

    id: str
    label: str
    strength: float
    together: float
    alike: float


class RelatedTopics(BaseModel):
    """The topics related to one."""

    id: str
    related: list[TopicRelation]


class TopicsStatus(BaseModel):
    """When topics were computed, in seconds since the epoch, and from what."""

    computed: float | None
    entries: int
    in_no_topic: int
    topics: int
    relations: int


class JobView(BaseModel):
    """A recurring job. Times are seconds since the epoch, 0 for never."""

    purpose: str
    every_seconds: float
    next: float | None
    last: float
    seconds: float
    result: str
    failed: bool


class Jobs(BaseModel):
    """All jobs by name."""

    jobs: dict[str, JobView]


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


class Bullet(BaseModel):
    """A line of a summary, as Markdown, with the turns that prove it. An extract is made without a model."""

    id: str
    text: str
    turns: list[str]
    verified: bool
    extract: bool
    superseded: Reference | None


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
    superseded: Reference | None
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


class CitationView(BaseModel):
    """A bullet with its proof. `source` is where the excerpt comes from; `place` its event, from 0, or -1."""

    id: str
    bullet: str
    date: str
    session: str
    turns: list[str]
    verified: bool
    excerpt: str
    source: str
    place: int
    events: list[Message]


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
