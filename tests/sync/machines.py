"""Machines of one person, each with a home and a clone of the same repository."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

from memkit.archive.archive import Archive
from memkit.capture.capture import Capture
from memkit.forget.erase import forget
from memkit.forget.selection import SelectionFinder, of_everything
from memkit.index import index_lock, sync_project
from memkit.journal.journal import Journal
from memkit.maintenance.sync import SyncReport, machine_name, sync
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.settings import EmbeddingSettings, SyncSettings
from memkit.settings.load import Settings
from tests.builders import Lines, git, make_note

BEGAN = datetime(2026, 3, 4, 10, tzinfo=timezone.utc)


class Machine:
    """A machine. Its clock is `ahead` of the others."""

    def __init__(self, base: Path, name: str, place: str, ahead: timedelta = timedelta()) -> None:
        self.name = name
        self.base = base / name
        root = self.base / "shop"
        root.mkdir(parents=True)
        git(root, "init", "-q")
        git(root, "remote", "add", "origin", "git@example.com:team/shop.git")
        self.home = Home(str(self.base / "home"))
        self.project = Project.remembering(str(root), self.home)
        self.settings = Settings(sync=SyncSettings(place=place), embedding=EmbeddingSettings(provider="none"))
        self.ahead = ahead
        with index_lock(self.home, 5):  # makes the project known
            sync_project(self.project, self.home, self.settings)

    @property
    def journal(self) -> Journal:
        return Journal(self.project, home=self.home)

    @property
    def machine(self) -> str:
        return machine_name(self.home)

    def work(self, number: int, day: int = 0, words: str = "", by: str = "") -> str:
        """Remember a turn, here or `by` another machine whose transcript is here, too; return its ID."""
        name = by or self.name
        lines = Lines(f"{number:08x}-{name}")
        time = (BEGAN + timedelta(days=day, minutes=number) + self.ahead).isoformat()
        lines.prompt(f"What is {name} {number} {words}?", f"{name}-{number}", timestamp=time)
        lines.answer(f"It is {name}-{number}-answer {words}.", timestamp=time, uuid=f"{name}-{number}")
        before = set(self.turns)
        Capture(self.home, self.settings).import_file(lines.write(self.base), self.project)
        return next(iter(set(self.turns) - before), "")

    def note(self, text: str) -> None:
        self.journal.add_note(make_note(text, (), BEGAN, str))

    def sync(self) -> SyncReport:
        return sync(self.home, lambda project: self.settings, lambda line: None)

    def forget(self, *ids: str) -> None:
        everything = of_everything(self.project, self.home, BEGAN.timestamp() + 86400)
        selection = SelectionFinder(self.project, self.home, self.settings).select(ids) if ids else everything
        forget(self.home, self.project, selection, lambda project: self.settings)

    @property
    def entries(self) -> list[tuple[str, str]]:
        """ID and text of each turn and note, sorted; one that is there twice is here twice."""
        found = []
        for name in self.journal.days():
            day = self.journal.day(name)
            for section in day.sections:
                key = section.pairs.get("turn") or section.pairs.get("note")
                if key:
                    found.append((key, day.text(section)))
        return sorted(found)

    @property
    def turns(self) -> list[str]:
        return [name for name, _ in self.entries]

    @property
    def archived(self) -> dict[str, list[object]]:
        archive = Archive(self.home)
        return {one: sorted((turn.id, turn.messages) for turn in archive.turns(one)) for one in archive.sessions()}

    @property
    def memory(self) -> tuple[object, object]:
        return self.entries, self.archived


def same(*machines: Machine) -> bool:
    """Whether all have the same memory, and nothing twice."""
    first = machines[0]
    assert len(set(first.turns)) == len(first.turns)
    assert len({name for name, _ in first.entries} & {t for s in first.archived.values() for t, _ in s}) > 0
    return all(one.memory == first.memory for one in machines)
