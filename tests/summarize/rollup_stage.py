"""A project whose weeks are to be rolled up, and a model that answers with the entries it is shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memkit.journal.facts import FactFile
from memkit.journal.journal import Journal
from memkit.llm import Task
from memkit.llm.calls import Calls
from memkit.summarize import rollup
from memkit.summarize.bullets import Bullet
from memkit.summarize.summarizer import SummaryReport
from memkit.timeline.nodes import parse_span
from tests.summarize.stage import START, SummaryStage

WORDS = "apple bear cedar daisy eagle fern goose heron iris jay kiwi lemur".split()
WEEKS = [date(2026, 9, 7), date(2026, 9, 14), date(2026, 10, 12)]  # W37 and W38 of September, W42


class RollupStage(SummaryStage):
    """A project whose days have bullets of a model: a dozen a week, each with a turn and a word of its own."""

    def __init__(self, root: Path, **summarize: Any) -> None:
        super().__init__(root, **summarize)
        self.now = START
        self.provider.answer = every_entry
        self.journal = Journal(self.project, home=self.home)

    def add_week(self, monday: date, words: Sequence[str] = WORDS) -> None:
        for number, word in enumerate(words):
            day = monday + timedelta(days=number % 5)
            minutes = (datetime(day.year, day.month, day.day, 9, number) - START).total_seconds()
            self.add_bullet(f"The {word} gate of {monday:%B %d} listens on {7000 + number}.", minutes / 60)

    def add_bullet(self, text: str, minutes: float) -> str:
        """Add a turn and a bullet about it. Return the turn's id."""
        turn = self.add_turn(minutes, f"Where is it? {text}", text, is_live=False)
        day = (START + timedelta(minutes=minutes)).date().isoformat()
        assert self.journal.summarize(day, [turn], [Bullet(text, "finding", (turn,), True).line])
        return turn

    def run(self) -> SummaryReport:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rollup, "known_projects", lambda home: [self.project])  # without an index
            return rollup.run_rollups(
                self.home, lambda _: self.settings, lambda _: self.provider, lambda: self.now.timestamp()
            )

    def import_week(self, monday: date, count: int = 12, words: int = 1) -> None:
        """Add day files as an import leaves them: turns with so many words, and nothing by a model."""
        memory = Path(self.project.memory)
        memory.mkdir(parents=True, exist_ok=True)
        for number in range(count):
            day = monday + timedelta(days=number % 5)
            path = memory / f"{day}.md"
            text = path.read_text() if path.exists() else f"# {day}\n"
            word, turn = WORDS[number % len(WORDS)], f"{monday:%m%d}{number:04x}"
            more = f" {word}" * words
            path.write_text(
                f"{text}\n## 09:{number % 60:02} The {word} gate <!-- session:5e55{turn} -->\n\n"
                f"### 09:{number % 60:02} Which port has the {word} gate of {monday:%B %d}? <!-- turn:{turn} -->\n"
                f"**Answered** The{more} gate of {monday:%B %d} listens on {7000 + number}.\n"
            )

    def asked(self, name: str) -> rollup.AskedRollup:
        """The rollup of a period that a person asks for now."""
        span = parse_span(name)
        assert span is not None
        calls = Calls(self.home, lambda _: self.provider, lambda: self.now.timestamp())
        return rollup.AskedRollup(self.project, self.home, self.settings, span, calls)

    @property
    def due(self) -> list[str]:
        found = rollup.due_rollups(self.project, self.home, self.settings, self.now.date())
        return [one.span.name for one in found]

    def file(self, name: str) -> str:
        return Path(self.project.memory, f"{name}.md").read_text()

    def facts(self, name: str) -> list[str]:
        return [one.fact.text for one in FactFile(self.file(name), f"{name}.md").facts()]


def entries_in(task: Task) -> dict[int, str]:
    found = re.findall(r'<entry number="(\d+)"[^>]*>\n(.*?)\n</entry>', task.material, re.DOTALL)
    return {int(number): text for number, text in found}


def every_entry(task: Task) -> dict[str, Any]:
    """Answer with the first entries as they are."""
    facts = [{"text": text, "kind": "fact", "sources": [number]} for number, text in entries_in(task).items()]
    return {"title": "Gates and ports", "facts": facts}
