"""A memory with topics and bullets of a model, and a model that names topics."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from memkit.journal.journal import Journal
from memkit.llm import Task
from memkit.llm.ledger import Call, Ledger
from memkit.projects.project import Project
from memkit.summarize.bullets import Bullet
from memkit.topics.compute import refresh
from memkit.topics.names import TopicNames
from memkit.topics.topic_list import TopicList, read_topics
from tests.builders import make_note
from tests.memory import Memory, make_memory
from tests.summarize.stage import PLAIN, ScriptedProvider
from tests.topics.subjects import SUBJECTS, SubjectEmbedder, days, make_subjects

SAID = "was settled"
"""What each bullet says, and no turn."""


class NameStage:
    """Eight turns on each of three subjects, with a bullet for each, and topics that no model has named."""

    def __init__(self, root: Path, *, with_bullets: bool = True, **summarize: Any) -> None:
        self._open(make_subjects(root, summarize={**PLAIN, **summarize}))
        if with_bullets:
            for day in self.journal.days():
                self.add_bullets(day)
        self.compute()

    @classmethod
    def at(cls, root: Path) -> NameStage:
        """What was made below `root` before."""
        found = cls.__new__(cls)
        found._open(make_memory(root, embedder=SubjectEmbedder(), summarize=PLAIN))  # type: ignore[arg-type]
        return found

    def _open(self, memory: Memory) -> None:
        self.memory = memory
        self.provider = ScriptedProvider(name_by_subject)
        self.journal = Journal(memory.project, home=memory.home)

    def add_bullets(self, day: str) -> None:
        content = self.journal.day(day)
        for section in content.sections:
            if turn := section.pairs.get("turn"):
                text = f"On {section.heading.partition('<!--')[0][10:]} it {SAID} as {turn}."
                assert self.journal.summarize(day, [turn], [Bullet(text, "finding", (turn,), True).line])

    def add_days(self, turns: int, first: int) -> None:
        """Add turns on each subject, with bullets."""
        for path, text in days(turns, first=first).items():
            self.memory.write(path, text)
            self.add_bullets(path.removesuffix(".md"))
        self.compute()

    def compute(self) -> None:
        self.memory.sync()
        refresh(self.memory.project, self.memory.home, self.memory.settings)

    def name(self, *, finder: Callable[[Any], Any] | None = None) -> TopicNames:
        names = TopicNames(self.memory.home, finder or (lambda settings: self.provider))
        names.name(self.memory.project, self.memory.settings)
        return names

    @property
    def shown(self) -> TopicList:
        found = read_topics(self.memory.project, self.memory.home, self.memory.settings)
        assert found is not None
        return found

    @property
    def labels(self) -> list[str]:
        return sorted(one.label for one in self.shown.topics)

    @property
    def calls(self) -> list[Call]:
        return Ledger(self.memory.home).calls()


NAMED = sorted(f"The {subject} matters" for subject in SUBJECTS)


def topics_in(material: str) -> dict[int, str]:
    """The topics that a model is shown: their entries, by number."""
    found = re.findall(r'<topic number="(\d+)">\n(.*?)\n</topic>', material, re.DOTALL)
    return {int(number): text for number, text in found}


def labels_for(material: str) -> list[dict[str, Any]]:
    """A label for each topic: the subject of most of its words."""
    found = []
    for number, text in topics_in(material).items():
        counts = {name: sum(text.count(word) for word in words.split()) for name, words in SUBJECTS.items()}
        found.append({"number": number, "label": f"The {max(counts, key=counts.__getitem__)} matters"})
    return found


def name_by_subject(task: Task) -> dict[str, Any]:
    return {"labels": labels_for(task.material)}


def add_notes(memory: Memory, project: Project, texts: Iterable[str]) -> None:
    """Write notes as `memkit remember` does."""
    journal = Journal(project, home=memory.home)
    for number, text in enumerate(texts):
        when = datetime(2026, 5, 1 + number // 4, 9, number % 4, tzinfo=timezone.utc)
        journal.add_note(make_note(text, (), when, str))
