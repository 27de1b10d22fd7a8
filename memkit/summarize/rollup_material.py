"""Read the material of rollups: the bullets of days, or the rollups of the parts of a period.

The job uses only bullets that a model wrote and this home recorded. A rollup that a person asks for rests on
all material: also lines made without a model, bullets that came with a repository, and turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from functools import cached_property
from html import unescape

from memkit.bullets import bullet_words, read_bullets
from memkit.hook.entries import OwnEntries
from memkit.journal.day_file import DayFile, Section, heading_title
from memkit.journal.facts import Citations, FactFile
from memkit.journal.journal import Journal
from memkit.journal.markup import short_id
from memkit.journal.sessions import turn_outcome
from memkit.llm.calls import CALL_TOKENS
from memkit.paths import Home
from memkit.privacy.redact import redact
from memkit.privacy.tombstones import Tombstones
from memkit.projects.project import Project
from memkit.settings.load import Settings
from memkit.summarize.bullets import recorded_bullets
from memkit.summarize.compaction import ENTRY_TOKENS
from memkit.summarize.facts import Source, evidence_of
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

    @cached_property
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
