"""Rollups: what a closed week, month, or year came to, condensed by a model from what lies below it.

A week rests on the bullets of its days, a month on the rollups of its weeks, a year on those of its months.
Where a part has no rollup, its own material counts. A rollup is a file of facts (see `memkit.journal.facts`),
`2026-W47.md`, `2026-11.md`, or `2026.md`, with a hash of its material: it is made again when that has
changed. The user's edits stay.

The job counts only bullets that a model wrote and this home recorded. So neither an import nor a repository
that brings its own memory starts a call. A person may ask for the rollup of any period that is over.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from html import unescape

from memkit.bullets import bullet_words, read_bullets
from memkit.capture.summary_queue import SummaryQueue
from memkit.errors import MemkitError
from memkit.hook.entries import OwnEntries
from memkit.index import known_projects
from memkit.ipc import unindexed
from memkit.journal.day_file import DayFile, Section, heading_title
from memkit.journal.facts import LABELS, SUPERSEDED, Citations, FactChange, FactFile
from memkit.journal.files import keep_replaced
from memkit.journal.journal import Journal
from memkit.journal.markup import short_id
from memkit.journal.sessions import turn_outcome
from memkit.llm import Provider, RefusedError, UnusableReplyError
from memkit.llm.calls import CALL_TOKENS, ROUND_SECONDS, BudgetReachedError, Calls, Plan, calls_lock
from memkit.llm.ledger import Ledger
from memkit.paths import Home
from memkit.privacy.redact import redact
from memkit.privacy.tombstones import Tombstones
from memkit.projects.project import Project
from memkit.settings import SummarizeSettings
from memkit.settings.load import Settings
from memkit.summarize.answer import clean_title
from memkit.summarize.bullets import instructions, list_schema, recorded_bullets
from memkit.summarize.compaction import ENTRY_TOKENS
from memkit.summarize.facts import Source, evidence_of, make_facts_task, read_facts, written_statement
from memkit.summarize.summarizer import SummaryReport, concerns_all, is_left_out
from memkit.text import one_line
from memkit.timeline import nodes
from memkit.timeline.nodes import Span, parse_span

LEVELS = (nodes.WEEK, nodes.MONTH, nodes.YEAR)
TITLE_CHARACTERS = 300


def basis_of(entries: Iterable[Source]) -> str:
    """Return a hash of the entries of a rollup, in any order."""
    return short_id(*sorted(short_id(one.text, *one.citations.ids) for one in entries))


def tokens_of(entries: Iterable[Source]) -> int:
    """Return the estimated length of entries in a task."""
    return sum(one.tokens + ENTRY_TOKENS for one in entries)


class RollupMaterial:
    """Reads the material of one project, each day once. The caller handles `JournalError`."""

    def __init__(self, project: Project, home: Home, settings: Settings, asked: Span | None = None) -> None:
        """For a period that the user `asked` for, it has all material of that period and nothing else."""
        self._journal = Journal(project, shared=settings.memory.shared, home=home)
        self._own = OwnEntries(home, project.root)
        self._patterns = settings.capture.compiled_patterns()
        self._asked = asked
        self._forgotten = Tombstones(home).forgotten().within(project.root)
        self._files: dict[Span, FactFile] = {}

    @functools.cached_property
    def days(self) -> dict[date, list[Source]]:
        """The material of each day."""
        asked = self._asked
        found: dict[date, list[Source]] = {}
        for name in self._journal.days():
            day = nodes.day_of(name)
            if day is None or (asked is not None and not asked.holds(day)):
                continue
            text = self._journal.text(f"{name}.md")
            if asked is not None:
                found.setdefault(day, []).extend(self._everything(day.isoformat(), DayFile(text)))
            elif "grip:" in text:
                found.setdefault(day, []).extend(self._bullets(day.isoformat(), text))
        return {day: bullets for day, bullets in sorted(found.items()) if bullets}

    def _bullets(self, day: str, text: str) -> Iterator[Source]:
        for bullet in recorded_bullets(text, self._own):
            # Not its turns: there is room for few, and forgetting a turn takes its bullets along.
            yield self._source(day, bullet.text, Citations(grips=(bullet.id,)), not bullet.is_doubted)

    def _everything(self, day: str, content: DayFile) -> Iterator[Source]:
        for heading, turns in content.groups():
            lines = content.lines[heading.start + 1 : heading.end] if heading is not None else []
            bullets = [one for _, one in read_bullets(lines) if one.text]
            for one in bullets:
                if not self._forgotten.covers_fact("", one.turns, [one.id]):
                    yield self._source(day, one.text, Citations(grips=(one.id,)), not one.is_doubted)
            if all(one.is_extract for one in bullets):
                known = (turn for turn in turns if turn.pairs["turn"] not in self._forgotten.turns)
                yield from (self._turn(day, content, turn) for turn in known)

    def _turn(self, day: str, content: DayFile, turn: Section) -> Source:
        title, outcome = heading_title(turn), turn_outcome(content.text(turn))
        parts = (one_line(unescape(one), TITLE_CHARACTERS) for one in (title, outcome))
        text = " → ".join(dict.fromkeys(filter(None, parts)))
        return self._source(day, text, Citations(turns=(turn.pairs["turn"],)), is_verified=True)

    def _source(self, day: str, text: str, citations: Citations, is_verified: bool) -> Source:
        shown = redact(text, self._patterns)
        return Source(shown, day, citations, evidence_of(shown, day, is_verified))

    def spans(self, level: str) -> list[Span]:
        """Return the periods of one level that have material, oldest first."""
        place = LEVELS[::-1].index(level)
        names = dict.fromkeys(nodes.path_of(day)[place] for day in self.days)
        return [span for name in names if (span := parse_span(name)) is not None]

    def parts(self, span: Span) -> list[Span]:
        """Return the periods one level below that have material, oldest first; none below a week."""
        return [one for one in nodes.parts_of(span) if any(map(one.holds, self.days))]

    def file(self, span: Span, *, again: bool = False) -> FactFile:
        """Return the rollup of a period; it is empty if there is none. It is read `again` after a change."""
        if again or span not in self._files:
            name = f"{self._journal.day_for(span.name)}.md"
            self._files[span] = FactFile(self._journal.text(name), name)
        return self._files[span]

    def all_entries(self, span: Span) -> list[Source]:
        """Return the material of a period, oldest first. A part that has a rollup counts with its lines."""
        if span.kind == nodes.WEEK:
            return [one for day, own in self.days.items() if span.holds(day) for one in own]
        found: list[Source] = []
        for part in self.parts(span):
            found += self._facts(part) or self.all_entries(part)
        return found

    def _facts(self, span: Span) -> list[Source]:
        """For the job, only lines that this home wrote: any other may have come with a repository."""
        found: list[Source] = []
        for one in self.file(span).facts():
            fact = one.fact
            if self._asked is not None or bullet_words(fact.shown) in self._own:
                found.append(self._source(fact.date, fact.text, fact.citations, fact.is_verified))
        return found

    def entries(self, span: Span) -> list[Source]:
        """Return as much of the material as fits into one call: the newest, oldest first."""
        room, kept = CALL_TOKENS, []
        for one in reversed(self.all_entries(span)):
            room -= tokens_of([one])
            if room < 0:
                break
            kept.append(one)
        return kept[::-1]


logger = logging.getLogger(__name__)

PURPOSE = "rollup"
"""The purpose of these calls in the ledger."""

INSTRUCTIONS = "rollup_instructions.md"

MOST_FACTS = 8
LEAST_ENTRIES = MOST_FACTS + 1
"""A period with fewer entries is its own rollup."""

MOST_CALLS = 5
"""The most calls of one run: summaries need the larger part of a day's budget."""

ASKED = "asked-"
"""Begins the basis of a rollup that the user asked for. The job leaves it alone."""

LINE_TOKENS = 150
"""The most tokens of a line of a rollup as an entry of the next one."""

_KINDS = [kind for kind in LABELS if kind != SUPERSEDED]
_SCHEMA = list_schema("facts", _KINDS, sources="numbers of the entries that prove it")
_SCHEMA["properties"]["title"] = {"type": "string", "description": "what this time was about"}
_SCHEMA["required"].append("title")


@dataclass(frozen=True, slots=True)
class DueRollup:
    """A period of a project whose rollup is missing or out of date, and its material, oldest first.

    `name` is that of the file: another one than usual if git tracks the usual one. `basis` is a hash of the
    material.
    """

    project: Project
    span: Span
    name: str
    entries: tuple[Source, ...]
    basis: str

    @property
    def key(self) -> str:
        """A name that is the same in the next run."""
        return f"{self.project.root}: {self.span.name}"

    @property
    def subject(self) -> str:
        """The period and its material in the ledger."""
        return f"{self.span.name} {self.basis}"


def due_rollups(project: Project, home: Home, settings: Settings, today: date) -> list[DueRollup]:
    """Return the closed periods of a project whose rollup is missing or out of date.

    Weeks come before months, and months before years, each the newest first. A period waits for what is due
    below it, and for turns that are still to be summarized. One whose material got an unusable answer is left
    out. Raise `JournalError`, and the errors of `Ledger.calls`.
    """
    material = RollupMaterial(project, home, settings)
    waiting = {
        day for one in SummaryQueue(home) if one.root == project.root
        for name in one.days if (day := nodes.day_of(name))
    }  # fmt: skip
    # The same question would cost as much each night, and keep the job from older periods.
    unusable = {
        call.subject for call in Ledger(home).calls()
        if call.project == project.root and call.outcome in (RefusedError.outcome, UnusableReplyError.outcome)
    }  # fmt: skip
    due: list[DueRollup] = []
    for level in LEVELS:
        for span in reversed(material.spans(level)):
            is_open = span.last >= today or any(map(span.holds, waiting))
            if is_open or any(span.holds(below.span.first) for below in due if below.span.kind != level):
                continue
            entries, file = tuple(material.entries(span)), material.file(span)
            basis = basis_of(entries)
            one = DueRollup(project, span, file.name, entries, basis)
            is_settled = file.basis == basis or file.basis.startswith(ASKED) or one.subject in unusable
            if len(entries) >= LEAST_ENTRIES and not is_settled:
                due.append(one)
    return due


def run_rollups(
    home: Home, settings_of: Callable[[Project], Settings],
    find_provider: Callable[[SummarizeSettings], Provider], clock: Callable[[], float] = time.time,
) -> SummaryReport:  # fmt: skip
    """Make the rollups that are due, at most `MOST_CALLS`.

    The caller updates the index of the report's projects. Raise `BusyError` if another process makes calls.
    """
    report = SummaryReport()
    due: dict[str, DueRollup] = {}
    today = datetime.fromtimestamp(clock()).date()
    for project in known_projects(home):
        try:
            settings = settings_of(project)
            if settings.summarize.is_on and not is_left_out(project, settings):
                found = due_rollups(project, home, settings, today)
                due |= {one.key: one for one in found}
        except (MemkitError, OSError) as error:  # other projects may be fine
            report.failures.append(f"{project.root}: {error}")
    if not due:
        return report
    calls = Calls(home, find_provider, clock)
    with calls_lock(home, ROUND_SECONDS):
        for key in list(due)[:MOST_CALLS]:
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


class AskedRollup:
    """The rollup of one period that the user asks for.

    If the material is too much for one call, the parts of the period get their rollups first. A part that has
    one keeps it, so that a second run goes on where the first one failed or reached the budget.
    """

    def __init__(self, project: Project, home: Home, settings: Settings, span: Span, calls: Calls) -> None:
        """Raise `MemkitError` if the period is not over, or the project is excluded; `JournalError`."""
        self.span = span
        self._project = project
        self._home = home
        self._settings = settings
        self._calls = calls
        self._today = datetime.fromtimestamp(calls.now()).date()
        if span.last >= self._today:
            raise MemkitError(f"{span.name} is not over; its last day is {span.last}")
        if is_left_out(project, settings):
            raise MemkitError(f"memkit is off for {project.root}, or capture.exclude leaves it out")
        self._material = RollupMaterial(project, home, settings, span)
        self.entries = self._material.all_entries(span)
        file = self._material.file(span)
        same = file.basis.removeprefix(ASKED) == basis_of(self._material.entries(span))
        self.is_current = same and bool(file.facts())

    @property
    def spans(self) -> list[Span]:
        """The periods to make rollups of, in order; none if it is up to date or has too few entries."""
        return [] if self.is_current or len(self.entries) < LEAST_ENTRIES else self._spans(self.span)

    def _spans(self, span: Span) -> list[Span]:
        found: list[Span] = []
        if tokens_of(self._material.all_entries(span)) > CALL_TOKENS:
            for part in self._material.parts(span):
                is_large = len(self._material.all_entries(part)) >= LEAST_ENTRIES
                if is_large and not self._material.file(part).facts():
                    found += self._spans(part)
        return [*found, span]

    def plan(self) -> Plan:
        """Return what the calls cost at most. Raise `NotConfiguredError`, `ConfigError`."""
        spans, settings = self.spans, self._settings.summarize
        material = sum(self._most_tokens(span, spans) for span in spans)
        rules = instructions(settings, INSTRUCTIONS)
        return self._calls.plan(len(spans), material, rules, settings, at_most=True)

    def _most_tokens(self, span: Span, spans: Sequence[Span]) -> int:
        found = 0
        for part in self._material.parts(span):
            is_made = part in spans
            found += MOST_FACTS * LINE_TOKENS if is_made else tokens_of(self._material.all_entries(part))
        own = [] if found else self._material.entries(span)
        kept = tokens_of(map(written_statement, self._material.file(span).facts()))
        return min(CALL_TOKENS, found or tokens_of(own)) + kept

    def make(self) -> SummaryReport:
        """Make the calls; the caller holds `calls_lock` and updates the index of the report's projects."""
        report = SummaryReport()
        for span in self.spans:
            entries, file = tuple(self._material.entries(span)), self._material.file(span)
            one = DueRollup(self._project, span, file.name, entries, ASKED + basis_of(entries))
            try:
                _make(one, self._home, self._settings, self._calls, self._today)
                report.projects.add(self._project.root)
                report.segments += 1
            except (MemkitError, OSError) as error:
                logger.warning("no rollup of %s: %s", one.key, error)
                report.failures.append(f"{span.name}: {error}")
                report.is_out_of_budget = isinstance(error, BudgetReachedError)
                break  # the next ones rest on it
            self._material.file(span, again=True)
        report.calls = self._calls.made
        return report


def _make(one: DueRollup, home: Home, settings: Settings, calls: Calls, today: date) -> None:
    """Facts of an earlier version go, except those the user edited. Raise `ModelError`, `JournalError`."""
    clean = functools.partial(redact, patterns=settings.capture.compiled_patterns())
    journal = Journal(one.project, shared=settings.memory.shared, home=home)
    written = FactFile(journal.text(one.name), one.name).facts()
    own = [written_statement(fact) for fact in written if fact.is_own]
    task = make_facts_task(own, one.entries, settings.summarize, clean, INSTRUCTIONS, _SCHEMA)
    with calls.ask(task, settings.summarize, PURPOSE, one.project.root, one.subject) as reply:
        found = read_facts(reply.value, [*own, *one.entries], clean)[:MOST_FACTS]
        forgotten = Tombstones(home).forgotten().within(one.project.root)
        facts = [
            fact.fact
            for fact in found
            if not forgotten.covers_fact(fact.fact.id, fact.citations.turns, fact.citations.grips)
        ]
        if not facts:
            raise UnusableReplyError(f"the model's answer has no line about {one.span.name}")
        title = clean_title(reply.value.get("title"), clean)
    gone = frozenset(fact.id for fact in written if not fact.is_own) - {fact.id for fact in facts}
    change = FactChange(gone, tuple(facts), basis=one.basis, title=title)
    unindexed.mark(home, one.project.root)

    def keep(text: str) -> None:
        keep_replaced(home, one.project, one.name, clean(text), today.isoformat())

    journal.change_facts(one.name, change, keep)
