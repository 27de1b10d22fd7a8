"""A project whose weeks are to be rolled up, and a model that answers with the entries it is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from memkit.journal import Journal
from memkit.journal.facts import FactFile
from memkit.llm import Task
from memkit.service.job_book import JobBook, JobRun
from memkit.summarize import rollup
from memkit.summarize.bullets import Bullet
from memkit.summarize.summarizer import SummaryReport
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

    def run(self, steps: Callable[[Sequence[str]], Iterator[str]] = iter) -> SummaryReport:  # type: ignore[assignment]
        """Run the rollups that are due."""
        rollup.known_projects = lambda home: [self.project]  # without an index
        return rollup.run_rollups(
            self.home, lambda _: self.settings, lambda _: self.provider, steps, lambda: self.now.timestamp()
        )

    def run_job(self) -> None:
        """Run the job, which goes on where a killed one stopped."""
        JobRun(JobBook(self.home), "rollup").perform(lambda run: str(self.run(run.steps).calls))

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
