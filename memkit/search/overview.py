"""An overview instead of ranked results: what was done in a period, what was done last, what is left open.

Imports nothing heavy: a command that asks the service needs no more than this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, field

from memkit.projects.project import Project
from memkit.text import defuse, one_line, plural, printable

SHOWN_CHARACTERS = 300
_ALL_DAYS = "all days "
"""Before "until" or "since" in the days of a period without a begin or an end."""


class PastSession(Struct, frozen=True, rename={"id": "session", "root": "project"}):
    """A session with all its days, or with those of a period.

    `begins` and `ends` are the local times (`2026-11-20 14:02`) of its first and last turn, or days alone.
    `path` and `line` (1-based) are where it begins.
    """

    id: str
    root: str
    begins: str
    ends: str
    title: str
    outcome: str
    turns: tuple[str, ...]
    branch: str
    path: str
    line: int


class Line(Struct, frozen=True, omit_defaults=True, rename={"root": "project"}):
    """A note, an open question, a decision, a heading, or a line of a rollup: one line of plain text.

    `time` is local (`2026-11-20 14:02`), or the day alone. `id` is for `memkit show`, or "". `session` is ""
    for what belongs to none. `citations` are the bullets and turns that prove a line of a rollup.
    """

    time: str
    text: str
    id: str
    session: str
    root: str
    citations: tuple[str, ...] = ()


class PeriodNode(Struct, frozen=True, rename={"id": "node", "root": "project"}):
    """A node of the timeline that a period consists of: `memkit timeline ID` goes on there.

    With a rollup it has its `title` and `lines`; `omitted` counts those left out. Without one it has the
    `words` that set it apart, the newest decisions, and open questions.
    """

    id: str
    root: str
    title: str = ""
    lines: tuple[Line, ...] = ()
    omitted: int = 0
    words: tuple[str, ...] = ()
    decided: tuple[Line, ...] = ()
    open: tuple[Line, ...] = ()

    def parts(self) -> Iterator[tuple[str, Line]]:
        """Yield its lines, each with what it is: "", "decided", or "open"."""
        for kind, lines in (("", self.lines), ("decided", self.decided), ("open", self.open)):
            for line in lines:
                yield kind, line


class TopicCount(Struct, frozen=True, rename={"root": "project"}):
    """A topic with the number of its entries in a period, and the first and last ISO day of these."""

    id: str
    root: str
    label: str
    entries: int
    first: str
    last: str


FindTopics = Callable[[Project, str, str], list[TopicCount] | None]
"""Returns the topics of a project with entries in a period (ISO days, inclusive), those with the most first;
None if none were computed yet.
"""


class Overview(Struct, frozen=True, omit_defaults=True):
    """The answer to a question about work in general.

    `kind` is "period" (sessions in the order of time, and notes as `lines`), "recent" (the newest sessions,
    newest first), "topics" (topics, and the sessions of the period, or the newest), or "open" (open questions
    as `lines`, newest first). `nodes` are those of the timeline that a period consists of. `omitted` counts
    what is left out, `omitted_lines` the lines of it. `nearest` are the days (ISO) nearest to the period that
    hold something, if it holds nothing. `hint` says why there are no topics.
    """

    kind: str
    # JSON always has those with a factory.
    sessions: tuple[PastSession, ...] = field(default_factory=tuple)
    lines: tuple[Line, ...] = field(default_factory=tuple)
    omitted: int = field(default_factory=int)
    nearest: tuple[str, ...] = field(default_factory=tuple)
    omitted_lines: int = 0
    nodes: tuple[PeriodNode, ...] = ()
    topics: tuple[TopicCount, ...] = ()
    hint: str = ""

    def heading(self, days: str) -> str:
        """Return what follows, or that there is nothing, as one sentence; `days` are those of the period."""
        is_open_ended = days.startswith(_ALL_DAYS)
        where = f" {days.removeprefix(_ALL_DAYS)}" if is_open_ended else f" for {days}" * bool(days)
        if self.kind == "open":
            if not self.lines:
                return f"No session{where} ended with an open question."
            count = plural(len(self.lines), "open question")
            return f"Sessions{where} ended with {count}, newest first."
        if self.is_empty:
            near = f" The nearest days that hold something: {', '.join(self.nearest)}." * bool(self.nearest)
            nothing = "Nothing was recorded" if is_open_ended else "The memory holds nothing"
            return f"{nothing}{where}.{near}"
        omitted = self.omitted - self.omitted_lines
        total = len(self.sessions) + omitted
        if self.kind == "topics":
            topics = plural(len(self.topics), "topic") + ", most entries first" * (len(self.topics) > 1)
            sessions = f"{len(self.sessions)} of " * bool(omitted) + plural(total, "session")
            order = "" if days else ", newest first"
            return f"{days}: " * bool(days) + f"{topics}; {sessions}{order}."
        if self.kind == "recent":
            if total == 1:
                return f"There is one session{where}."
            if len(self.sessions) == 1:
                return f"The last of {total} sessions{where}."
            return f"The last {len(self.sessions)} of {plural(total, 'session')}{where}, newest first."
        counts = [plural(total, "session")] if total else []
        counts += [plural(len(self.lines) + self.omitted_lines, "note")] if self.lines else []
        older = [plural(omitted, "session")] if omitted else []
        older += [plural(self.omitted_lines, "note")] if self.omitted_lines else []
        left_out = f" The oldest are left out: {' and '.join(older)}." if older else ""
        if not counts:
            return f"{days}."
        return f"{days}: {' and '.join(counts)}, in the order of time.{left_out}"

    @property
    def is_empty(self) -> bool:
        """Whether it has nothing to show."""
        return not (self.sessions or self.lines or self.nodes or self.topics)

    @property
    def roots(self) -> set[str]:
        """The roots of the projects that anything in it is from."""
        found = {one.root for one in self.sessions} | {one.root for one in self.lines}
        return found | {one.root for one in self.nodes} | {one.root for one in self.topics}

    def entries(self, root: str) -> Iterator[str]:
        """Yield all parts as entries for a model. One of another project than `root` names it."""
        for node in self.nodes:
            yield from _node_entries(node, root)
        for topic in self.topics:
            count = plural(topic.entries, "entry", "entries")
            days = {"begins": topic.first, "ends": topic.last if topic.last != topic.first else ""}
            other = topic.root if topic.root != root else ""
            yield entry({"topic": topic.id, **days, "project": other}, f"{topic.label} ({count})")
        rows = [
            (one.begins, one.ends, one.id, one.branch, one.root,
             " → ".join(dict.fromkeys(filter(None, (one.title, one.outcome)))))
            for one in self.sessions
        ]  # fmt: skip
        lines = [(one.time, one.time, one.id or one.session, "", one.root, one.text) for one in self.lines]
        both = lines + rows if self.kind == "open" else rows + lines
        if self.kind == "period":
            both.sort()
        for begins, ends, name, branch, project, text in both:
            attributes = {
                "id": name, "begins": begins, "ends": ends if ends != begins else "", "branch": branch,
                "project": project if project != root else "",
            }
            yield entry(attributes, text)


def _node_entries(node: PeriodNode, root: str) -> Iterator[str]:
    project = node.root if node.root != root else ""
    words = f"words: {', '.join(node.words)}" if node.words else ""
    yield entry({"node": node.id, "project": project}, node.title or words)
    for kind, line in node.parts():
        attributes = {
            "id": line.id,
            "node": node.id,
            "kind": kind,
            "date": line.time,
            "citations": ",".join(line.citations),
            "project": project,
        }
        yield entry(attributes, line.text)


def entry(attributes: Mapping[str, str], text: str) -> str:
    """Return one line of text as an entry for a model."""
    return f"{opening_tag(attributes)}{defuse(one_line(text, SHOWN_CHARACTERS), 'entry')}</entry>"


def quotation(attributes: Mapping[str, str], text: str) -> str:
    """Return lines of text as an entry for a model."""
    return f"{opening_tag(attributes)}\n{defuse(text.strip(), 'entry')}\n</entry>"


def opening_tag(attributes: Mapping[str, str]) -> str:
    """Return the tag that begins an entry, with the attributes that have a value."""
    shown = " ".join(f'{key}="{_plain(value)}"' for key, value in attributes.items() if value)
    return f"<entry {shown}>"


def _plain(value: str) -> str:
    return printable(value).replace('"', "'").replace("<", "(").replace(">", ")")
