"""One session as a page shows it: its summaries, and its turns with their parts and marks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from html import unescape
from typing import Any, NamedTuple, TypedDict

from msgspec import structs

from memkit import anchors
from memkit.browse.git_marks import EntryText, GitMarks, find_marks
from memkit.browse.history import whole_session
from memkit.bullets import read_bullets
from memkit.errors import NotFoundError
from memkit.journal.day_file import DayFile, Section, heading_title
from memkit.journal.facts import MEMORY_FILE, superseding_facts
from memkit.journal.sessions import shown_bullet
from memkit.journal.turn_parts import read_parts
from memkit.search.overview import PastSession
from memkit.search.results import Reference
from memkit.text import encodable
from memkit.timeline.summary import read_day
from memkit.timeline.tree import Timeline

GIT_SECONDS = 0.3
"""The time limit for git to find what has changed since the turns."""


class Bullet(TypedDict):
    """A line of a summary, as Markdown, with the turns that prove it. An extract is made without a model."""

    id: str
    text: str
    turns: list[str]
    verified: bool
    extract: bool
    superseded: Reference | None


class SummaryPart(TypedDict):
    """The summary of a part of a session."""

    day: str
    time: str
    title: str
    bullets: list[Bullet]


class TouchedFile(TypedDict):
    """A file that a turn read or edited."""

    file: str
    edited: bool


class TurnView(TypedDict):
    """A turn. `prompt`, `tools`, and `answer` are Markdown; `outcome` is answered, interrupted, or empty.

    `bullets` are those that cite it. `git` has changes of the repository since; `line` describes them.
    """

    id: str
    day: str
    time: str
    title: str
    branch: str
    prompt: str
    tools: list[str]
    outcome: str
    answer: str
    files: list[TouchedFile]
    bullets: list[str]
    superseded: Reference | None
    git: dict[str, Any] | None


class SessionView(PastSession, frozen=True, kw_only=True):
    """A session with its summaries and a page of its turns.

    `turn` is the requested turn. `offset` is the number of the first of the `entries` in `turns`.
    `gone_branch` is its branch if that no longer exists, else "".
    """

    turn: str | None
    gone_branch: str
    summaries: list[SummaryPart]
    offset: int
    entries: list[TurnView]


class _Turn(NamedTuple):
    id: str
    day: str
    section: Section
    text: str


def view_session(
    timeline: Timeline, name: str, limit: int, offset: int | None, redact: Callable[[str], str],
    directory: str,
) -> SessionView:
    """Return a session by its id, or the one with a turn, or their first characters.

    It has at most `limit` of its turns, from number `offset` on; by default, from the page of the turn on.
    Marks from git compare files with the worktree `directory`. Raise `NotFoundError` or `AmbiguousIdError`.
    """
    session, turn = timeline.find_session(name)
    days = timeline.days_of(session)
    found = whole_session(timeline, session)
    if found is None:
        raise NotFoundError(f"{timeline.project.root} has no session {name!r}; `memkit sessions` lists them")
    superseding = _superseding(timeline)
    summaries: list[SummaryPart] = []
    turns: dict[str, _Turn] = {}
    for day in days:
        content = read_day(timeline.journal, day)
        for heading, below in content.headings():
            if heading.pairs["session"] != session:
                continue
            bullets = list(_bullets(content, heading, superseding))
            if bullets:
                summaries.append(
                    {"day": day[:10], "time": heading.minute, "title": _title(heading), "bullets": bullets}
                )
            for one in below:
                known = _Turn(one.pairs["turn"], day[:10], one, content.text(one))
                turns.setdefault(known.id, known)
    if offset is None:
        place = list(turns).index(turn) if turn in turns else 0
        offset = place - place % limit
    page = list(turns.values())[offset : offset + limit]
    written = [
        EntryText(
            found.root, one.text, one.day, one.section.pairs.get("branch", found.branch), one.section.minute
        )
        for one in page
    ]
    marks = find_marks(written, directory, GIT_SECONDS)
    (whole,) = find_marks([EntryText(found.root, "", found.ends[:10], found.branch)], directory, GIT_SECONDS)
    citing: dict[str, list[str]] = {}
    for summary in summaries:
        for bullet in summary["bullets"]:
            for cited in bullet["turns"]:
                citing.setdefault(cited, []).append(bullet["id"])
    return SessionView(
        **structs.asdict(found), turn=turn if turn in turns else None, gone_branch=whole.gone_branch,
        summaries=summaries, offset=offset,
        entries=[
            _turn_view(one, citing.get(one.id, []), superseding.get(one.id), mark, redact)
            for one, mark in zip(page, marks, strict=True)
        ],
    )


def _superseding(timeline: Timeline) -> Mapping[str, Reference]:
    """Return the facts because of which entries no longer hold, by the id of the entry."""
    facts = superseding_facts(encodable(timeline.journal.text(MEMORY_FILE)), MEMORY_FILE)
    return {
        name: {"id": fact.id, "date": fact.date, "text": unescape(fact.text)} for name, fact in facts.items()
    }


def _bullets(content: DayFile, heading: Section, superseding: Mapping[str, Reference]) -> Iterator[Bullet]:
    for _, bullet in read_bullets(content.lines[heading.start + 1 : heading.end]):
        yield {
            "id": bullet.id, "text": shown_bullet(bullet), "turns": list(bullet.turns),
            "verified": bullet.is_verified, "extract": bullet.is_extract,
            "superseded": superseding.get(bullet.id),
        }


def _turn_view(
    turn: _Turn, bullets: list[str], superseded: Reference | None, mark: GitMarks,
    redact: Callable[[str], str],
) -> TurnView:
    parts = read_parts(turn.text)
    files: dict[str, bool] = {}
    for call in parts.file_calls:
        files[call.path] = files.get(call.path, False) or call.is_edit

    def shown(part: str) -> str:
        stripped = anchors.strip(part)
        return stripped if stripped in part else redact(stripped)  # removing anchors can join a secret

    return {
        "id": turn.id,
        "day": turn.day,
        "time": turn.section.minute,
        "title": _title(turn.section),
        "branch": turn.section.pairs.get("branch", ""),
        "prompt": shown(parts.prompt),
        "tools": [shown(line) for line in parts.tools],
        "outcome": parts.outcome.lower(),
        "answer": shown(parts.answer),
        "files": [{"file": path, "edited": is_edit} for path, is_edit in files.items()],
        "bullets": bullets,
        "superseded": superseded,
        "git": replace(mark, gone_branch="").as_dict() or None,  # `SessionView` tells it once
    }


def _title(section: Section) -> str:
    return unescape(heading_title(section))
