"""A forgotten turn is in no file of topics: no label, no member."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import pytest

from memkit.forget.audit import Audit
from memkit.hook.project import Project
from memkit.index import index_lock
from memkit.journal import Journal
from memkit.settings.load import Settings
from memkit.topics import read_topics, rename
from memkit.topics.compute import refresh
from memkit.topics.files import changing_kept, derived_path, read_kept
from tests.builders import Lines
from tests.capture.stage import Stage
from tests.forget.remembered import WORD, Remembered, ask

TODAY = date(2026, 3, 5)


class RememberedTopics(Remembered):
    """Turns 1 to 4 say carrot, 5 to 8 say the word; all have topics."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.settings = Settings()
        self.journal = Journal(stage.project)
        lines = Lines()
        for number in range(1, 9):
            ask(lines, number, "carrot" if number < 5 else WORD)
        stage.write(lines)
        self.take_in()
        self.compute()

    def compute(self) -> None:
        refresh(self.stage.project, self.stage.home, self.settings)

    @property
    def derived(self) -> Path:
        return derived_path(self.stage.project, self.stage.home, self.settings)

    def kept_text(self) -> str:
        return "".join(path.read_text() for path in Path(self.stage.home.projects).glob("*.topics.json"))

    def saying_the_word(self) -> list[str]:
        return [
            section.pairs["turn"]
            for day in self.journal.days()
            for section in self.journal.day(day).sections
            if "turn" in section.pairs and WORD in self.journal.day(day).text(section)
        ]


@pytest.fixture
def grouped(prepare: object) -> RememberedTopics:
    found: RememberedTopics = prepare("grouped", lambda root: RememberedTopics(Stage(root)))  # type: ignore[operator]
    return found


def test_no_file_holds_the_word_or_the_turns(grouped: RememberedTopics) -> None:
    gone = grouped.saying_the_word()
    assert len(gone) == 4
    assert WORD in grouped.derived.read_text()
    assert all(turn in grouped.kept_text() for turn in gone)
    assert grouped.forget(grouped.select(*gone)) == []
    assert grouped.holders() == []
    assert not grouped.derived.exists()
    assert not any(turn in grouped.kept_text() for turn in gone)
    grouped.compute()
    assert grouped.holders() == []


def test_a_topic_without_members_goes_with_its_label(grouped: RememberedTopics) -> None:
    gone = grouped.saying_the_word()
    project, home = grouped.stage.project, grouped.stage.home
    kept = read_kept(home, project).topics
    name = next(name for name, one in kept.items() if one.members <= set(gone))
    other = next(one for one in kept if one != name)
    rename(project, home, name, f"My {WORD}")
    rename(project, home, other, "Carrots")
    assert grouped.forget(grouped.select(*gone)) == []
    assert grouped.holders() == []
    assert read_kept(home, project).topics.keys() == {other}
    grouped.compute()
    shown = read_topics(project, home, grouped.settings, TODAY)
    assert shown is not None
    assert [one.label for one in shown.topics if one.id == other] in ([], ["Carrots"])
    assert read_kept(home, project).topics[other].label == "Carrots"


def test_other_topics_keep_their_members(grouped: RememberedTopics) -> None:
    gone = grouped.saying_the_word()[:1]
    before = set().union(*(one.members for one in read_kept(grouped.stage.home, grouped.stage.project).topics.values()))
    assert grouped.forget(grouped.select(*gone)) == []
    after = set().union(*(one.members for one in read_kept(grouped.stage.home, grouped.stage.project).topics.values()))
    assert after == before - set(gone)


def test_a_project_whose_index_is_gone(grouped: RememberedTopics) -> None:
    gone = grouped.saying_the_word()
    shutil.rmtree(Path(grouped.stage.home.index) / "snapshots")
    assert grouped.forget(grouped.select(*gone)) == []
    assert grouped.holders() == []
    assert not any(turn in grouped.kept_text() for turn in gone)


def test_an_audit_finds_a_secret_in_a_label(grouped: RememberedTopics) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    project, home = grouped.stage.project, grouped.stage.home
    with changing_kept(home, project) as kept:
        name = next(iter(kept.topics))
        kept.topics[name] = kept.topics[name].__class__(f"uses {secret}", kept.topics[name].members)
    audit = Audit(home, Project(project.root), lambda _: grouped.settings, lambda line: None)
    assert [one.where for one in audit.search().found] == ["topics"]
    with index_lock(home, 5):
        assert audit.fix().remaining == []
    assert grouped.holders(secret.lower()) == []
    assert read_kept(home, project).topics[name].members
