"""Rollups: what a closed week, month, or year came to, condensed by a model from what lies below it.

A week rests on the bullets of its days, a month on the rollups of its weeks, a year on those of its months.
Where a part has no rollup, its own material counts. A rollup is a file of facts (see `memkit.journal.facts`),
`2026-W47.md`, `2026-11.md`, or `2026.md`, with a hash of its material: it is made again when that has
changed. The user's edits stay.

Only bullets that a model wrote and this home recorded count. So neither an import nor a repository that
brings its own memory starts a call.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any

from memkit.bullets import bullet_words
from memkit.capture.summary_queue import SummaryQueue
from memkit.errors import MemkitError
from memkit.hook.entries import OwnEntries
from memkit.hook.project import Project
from memkit.index import known_projects
from memkit.ipc import unindexed
from memkit.journal import Journal
from memkit.journal.facts import LABELS, SUPERSEDED, Citations, FactChange, FactFile
from memkit.journal.files import keep_replaced
from memkit.journal.markup import short_id
from memkit.llm import Provider, Task, UnusableReplyError
from memkit.llm.calls import CALL_TOKENS, BudgetReachedError, Calls, calls_lock
from memkit.paths import Home
from memkit.privacy.redact import redact
from memkit.privacy.tombstones import Tombstones
from memkit.settings import SummarizeSettings
from memkit.settings.load import Settings
from memkit.summarize.answer import clean_title
from memkit.summarize.bullets import instructions, list_schema, recorded_bullets
from memkit.summarize.compaction import ENTRY_TOKENS
from memkit.summarize.facts import (
    Source,
    Statement,
    evidence_of,
    make_facts_task,
    read_facts,
    written_statement,
)
from memkit.summarize.summarizer import SummaryReport, concerns_all, is_excluded
from memkit.timeline import nodes
from memkit.timeline.nodes import Span, parse_span

logger = logging.getLogger(__name__)

PURPOSE = "rollup"
"""The purpose of these calls in the ledger."""

INSTRUCTIONS = "rollup_instructions.md"

MOST_FACTS = 8
LEAST_ENTRIES = MOST_FACTS + 1
"""A period with fewer entries is its own rollup."""

MOST_CALLS = 5
"""The most calls of one run: summaries need the larger part of a day's budget."""

WAIT_SECONDS = 120.0
"""The time to wait for a round of summaries."""

LEVELS = (nodes.WEEK, nodes.MONTH, nodes.YEAR)

_KINDS = [kind for kind in LABELS if kind != SUPERSEDED]


def _schema() -> dict[str, Any]:
    schema = list_schema("facts", _KINDS, sources="numbers of the entries that prove it")
    schema["properties"]["title"] = {"type": "string", "description": "what this time was about"}
    schema["required"].append("title")
    return schema


@dataclass(frozen=True, slots=True)
class DueRollup:
    """A period of a project whose rollup is missing or out of date, and its material, oldest first.

    `name` is that of the file: another one than usual if git tracks the usual one.
    """

    project: Project
    span: Span
    name: str
    entries: tuple[Source, ...]

    @property
    def key(self) -> str:
        """A name that is the same in the next run."""
        return f"{self.project.root}: {self.span.name}"

    @property
    def basis(self) -> str:
        """A hash of the material."""
        return basis_of(self.entries)


def basis_of(entries: Iterable[Source]) -> str:
    """Return a hash of the entries of a rollup, in any order."""
    return short_id(*sorted(short_id(one.text, *one.citations.ids) for one in entries))


class RollupMaterial:
    """What the rollups of one project rest on. Reads each day once. The caller handles `JournalError`."""

    def __init__(self, project: Project, home: Home, settings: Settings) -> None:
        self._journal = _journal(project, home, settings)
        self._own = OwnEntries(home, project.root)
        self._redact = _redaction(settings)
        self._files: dict[Span, FactFile] = {}

    @cached_property
    def days(self) -> dict[date, list[Source]]:
        """The bullets of each day."""
        found: dict[date, list[Source]] = {}
        for name in self._journal.days():
            day = nodes.day_of(name)
            text = self._journal.text(f"{name}.md") if day else ""
            if day and "grip:" in text:
                found.setdefault(day, []).extend(self._bullets(day, text))
        return {day: bullets for day, bullets in sorted(found.items()) if bullets}

    def _bullets(self, day: date, text: str) -> Iterator[Source]:
        for bullet in recorded_bullets(text, self._own):
            shown = self._redact(bullet.text)
            evidence = evidence_of(shown, day.isoformat(), bullet.is_verified)
            # Not its turns: there is room for few, and forgetting a turn takes its bullets along.
            yield Source(shown, day.isoformat(), Citations(grips=(bullet.id,)), evidence)

    def spans(self, level: str) -> list[Span]:
        """Return the periods of one level that have bullets, oldest first."""
        place = LEVELS[::-1].index(level)
        names = dict.fromkeys(nodes.path_of(day)[place] for day in self.days)
        return [span for name in names if (span := parse_span(name)) is not None]

    def file(self, span: Span) -> FactFile:
        """Return the rollup of a period; it is empty if there is none."""
        if span not in self._files:
            name = f"{self._journal.day_for(span.name)}.md"
            self._files[span] = FactFile(self._journal.text(name), name)
        return self._files[span]

    def entries(self, span: Span) -> list[Source]:
        """Return the material of a period, oldest first: as much as fits into one call, the newest first."""
        if span.kind == nodes.WEEK:
            found = [one for day, bullets in self.days.items() if span.holds(day) for one in bullets]
        else:
            below = LEVELS[LEVELS.index(span.kind) - 1]
            found = []
            for child in self.spans(below):
                if span.holds(child.first):
                    found += self._facts(child) or self.entries(child)
        room, kept = CALL_TOKENS, list[Source]()
        for one in reversed(found):
            room -= one.tokens + ENTRY_TOKENS
            if room < 0:
                break
            kept.append(one)
        return kept[::-1]

    def _facts(self, span: Span) -> list[Source]:
        """Return the lines of a rollup that this home wrote: any other may have come with a repository."""
        found: list[Source] = []
        for one in self.file(span).facts():
            fact = one.fact
            if bullet_words(fact.shown) in self._own:
                shown = self._redact(fact.text)
                evidence = evidence_of(shown, fact.date, fact.is_verified)
                found.append(Source(shown, fact.date, fact.citations, evidence))
        return found


def due_rollups(
    project: Project, home: Home, settings: Settings, today: date
) -> list[DueRollup]:
    """Return the closed periods of a project whose rollup is missing or out of date.

    Weeks come before months, and months before years, each the newest first. A period waits for what is due
    below it, and for turns that are still to be summarized. Raise `JournalError`.
    """
    material = RollupMaterial(project, home, settings)
    waiting = {
        day for one in SummaryQueue(home) if one.root == project.root
        for name in one.days if (day := nodes.day_of(name))
    }  # fmt: skip
    due: list[DueRollup] = []
    for level in LEVELS:
        for span in reversed(material.spans(level)):
            is_open = span.last >= today or any(map(span.holds, waiting))
            if is_open or any(span.holds(one.span.first) for one in due if one.span.kind != level):
                continue
            entries, file = tuple(material.entries(span)), material.file(span)
            if len(entries) >= LEAST_ENTRIES and file.basis != basis_of(entries):
                due.append(DueRollup(project, span, file.name, entries))
    return due


def run_rollups(
    home: Home,
    settings_of: Callable[[Project], Settings],
    find_provider: Callable[[SummarizeSettings], Provider],
    steps: Callable[[Sequence[str]], Iterator[str]],
    clock: Callable[[], float] = time.time,
) -> SummaryReport:
    """Make the rollups that are due, at most `MOST_CALLS`. `steps` yields the keys of those to make now.

    The caller updates the index of the report's projects. Raise `BusyError` if another process makes calls.
    """
    report = SummaryReport()
    due: dict[str, DueRollup] = {}
    today = datetime.fromtimestamp(clock()).date()
    for project in known_projects(home):
        try:
            settings = settings_of(project)
            if settings.summarize.is_on and not project.is_off and not is_excluded(project, settings):
                found = due_rollups(project, home, settings, today)
                due |= {one.key: one for one in found}
        except (MemkitError, OSError) as error:  # other projects may be fine
            report.failures.append(f"{project.root}: {error}")
    if not due:
        return report
    calls = Calls(home, find_provider, clock)
    with calls_lock(home, WAIT_SECONDS):
        for key in steps(list(due)[:MOST_CALLS]):
            try:
                _make(due[key], home, settings_of(due[key].project), calls, today)
                report.projects.add(due[key].project.root)
            except BudgetReachedError as error:
                report.failures.append(str(error))
                report.is_out_of_budget = True
                break
            except (MemkitError, OSError) as error:
                logger.warning("no rollup of %s: %s", key, error)
                report.failures.append(f"{key}: {error}")
                if concerns_all(error):
                    break
    report.calls = calls.made
    return report


def _journal(project: Project, home: Home, settings: Settings) -> Journal:
    return Journal(project, shared=settings.memory.shared, home=home)


def _redaction(settings: Settings) -> Callable[[str], str]:
    patterns = settings.capture.compiled_patterns()
    return lambda text: redact(text, patterns)


def _make(one: DueRollup, home: Home, settings: Settings, calls: Calls, today: date) -> None:
    """Make one call and write the rollup.

    Facts of an earlier version go, except those that the user edited. Raise `ModelError`, `JournalError`.
    """
    clean = _redaction(settings)
    journal = _journal(one.project, home, settings)
    written = FactFile(journal.text(one.name), one.name).facts()
    own = [written_statement(fact) for fact in written if fact.is_own]
    task = _task(own, one, settings)
    with calls.ask(task, settings.summarize, PURPOSE, one.project.root) as reply:
        found = read_facts(reply.value, [*own, *one.entries], clean)[:MOST_FACTS]
        if not found:
            raise UnusableReplyError(f"the model's answer has no line about {one.span.name}")
        title = clean_title(reply.value.get("title"), clean)
    forgotten = Tombstones(home).forgotten().within(one.project.root)
    facts = [
        fact.fact
        for fact in found
        if not forgotten.covers_fact(fact.fact.id, fact.citations.turns, fact.citations.grips)
    ]
    gone = frozenset(fact.id for fact in written if not fact.is_own) - {fact.id for fact in facts}
    change = FactChange(gone, tuple(facts), basis=one.basis, title=title)
    unindexed.mark(home, one.project.root)

    def keep(text: str) -> None:
        keep_replaced(home, one.project, one.name, clean(text), today.isoformat())

    journal.change_facts(one.name, change, keep)


def _task(own: Sequence[Statement], one: DueRollup, settings: Settings) -> Task:
    task = make_facts_task(own, one.entries, settings.summarize, _redaction(settings))
    return Task(instructions(settings.summarize, INSTRUCTIONS), task.material, task.tool, _schema())
