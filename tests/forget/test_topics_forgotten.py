"""A forgotten turn is in no file of topics: no label of a user or a model, no member."""

from __future__ import annotations

import re
import shutil
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memkit.bullets import read_bullets
from memkit.forget.audit import Audit
from memkit.index import index_lock, open_chunks
from memkit.journal.journal import Journal
from memkit.llm import Task
from memkit.projects.project import Project
from memkit.settings import SummarizeSettings
from memkit.settings.load import Settings
from memkit.summarize.bullets import Bullet
from memkit.topics.compute import refresh
from memkit.topics.files import derived_path, read_derived
from memkit.topics.names import TopicNames
from memkit.topics.topic_list import read_topics, rename
from memkit.topics.topic_store import Kept, ModelLabel, changing_kept, drop_members, read_kept
from tests.builders import Lines
from tests.capture.stage import Stage
from tests.forget.remembered import WORD, Remembered, ask
from tests.summarize.stage import ScriptedProvider

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
    assert grouped.derived.exists()
    assert not any(turn in grouped.kept_text() for turn in gone)
    grouped.compute()
    assert grouped.holders() == []


def test_a_copy_by_a_restore_is_erased(grouped: RememberedTopics) -> None:
    (path,) = Path(grouped.stage.home.projects).glob("*.topics.json")
    copy = Path(grouped.stage.home.before_restore, "2026-03-05T000000", "home", "projects", path.name)
    copy.parent.mkdir(parents=True)
    shutil.copyfile(path, copy)
    first, second = grouped.saying_the_word()[0], grouped.turns[0]
    assert first in copy.read_text() and second not in grouped.saying_the_word()
    assert grouped.forget(grouped.select(first)) == []
    assert not copy.exists()


def test_one_entry_leaves_its_topic_and_the_others_stay(grouped: RememberedTopics) -> None:
    """The topics are still there at once, with the entries left, under their IDs."""
    project, home = grouped.stage.project, grouped.stage.home
    before = read_topics(project, home, grouped.settings, TODAY)
    gone = grouped.saying_the_word()[0]
    assert grouped.forget(grouped.select(gone)) == []
    after = read_topics(project, home, grouped.settings, TODAY)
    assert before is not None and after is not None
    lost = {name for name, one in before.kept.topics.items() if gone in one.members}
    sizes = {one.id: (one.stored.size - (one.id in lost), sum(one.stored.days.values())) for one in before.topics}
    assert {one.id: (one.stored.size, sum(one.stored.days.values()) + (one.id in lost)) for one in after.topics} == sizes
    assert after.stored.entries == before.stored.entries - 1
    chunks = open_chunks(project, home, grouped.settings)
    assert chunks is not None
    shown = {name for one in after.topics for name in one.stored.entries}
    assert len(shown) == 7 and shown <= {chunks.id(number) for number in range(len(chunks))}


def test_words_that_only_a_forgotten_entry_shared_go(grouped: RememberedTopics) -> None:
    """A topic's words need two entries that say them, and its title is that of an entry that is left."""
    gone = grouped.saying_the_word()
    labels = [one.label for one in read_derived(grouped.derived).topics]
    assert any(f"the {WORD} kept, number {number}" in one for one in labels for number in (5, 6, 7))
    assert grouped.forget(grouped.select(*gone[:3])) == []
    assert WORD in grouped.journal.path(grouped.journal.days()[0]).read_text()
    topics = read_derived(grouped.derived).topics
    assert not any(WORD in one.words for one in topics)
    assert [one.label for one in topics if WORD in one.label] == [f"Where is the {WORD} kept, number 8?"]
    assert not re.search(r"number [567]", grouped.derived.read_text())


def model_labels(grouped: RememberedTopics) -> dict[str, str]:
    """The labels that a model gave, by topic."""
    kept = read_kept(grouped.stage.home, grouped.stage.project).topics
    return {name: one.model_label.text for name, one in kept.items() if one.model_label is not None}


def all_members(grouped: RememberedTopics) -> set[str]:
    kept = read_kept(grouped.stage.home, grouped.stage.project).topics
    return {name for one in kept.values() for name in one.members}


def name_by_model(grouped: RememberedTopics) -> None:
    """Give each turn a bullet, and have a model name the topics after them."""
    journal = Journal(grouped.stage.project, home=grouped.stage.home)
    (day,) = journal.days()
    gone, lines = grouped.saying_the_word(), []
    for turn in grouped.turns:
        word = WORD if turn in gone else "carrot"
        lines.append(Bullet(f"The {word} of {turn} is below the stairs.", "finding", (turn,), True).line)
    assert journal.summarize(day, grouped.turns, lines)
    grouped.sync()
    grouped.compute()

    def label(task: Task) -> dict[str, Any]:
        topics = re.findall(r'<topic number="(\d+)">\n(.*?)\n</topic>', task.material, re.DOTALL)
        return {
            "labels": [
                {"number": int(number), "label": f"Keeping {WORD if WORD in text else 'carrots'}"}
                for number, text in topics
            ]
        }

    settings = msgspec.structs.replace(grouped.settings, summarize=SummarizeSettings(provider="anthropic"))
    names = TopicNames(grouped.stage.home, lambda _: ScriptedProvider(label))
    names.name(grouped.stage.project, settings)
    assert not names.failures and WORD in "".join(model_labels(grouped).values())


@pytest.mark.parametrize("what", ["turn", "bullet", "all"])
def test_a_label_of_a_model_goes_with_what_it_rests_on(grouped: RememberedTopics, what: str) -> None:
    """One of its turns, or the bullet of one, is enough; the label of another topic stays."""
    name_by_model(grouped)
    before = model_labels(grouped)
    gone = [name for name, label in before.items() if WORD in label]
    turns = grouped.saying_the_word()
    (day,) = grouped.journal.days()
    bullets = [one.id for _, one in read_bullets(grouped.journal.day(day).lines) if WORD in one.text]
    assert len(bullets) == len(turns) == 4
    selected = {"turn": turns[:1], "bullet": bullets[:1], "all": turns}[what]
    members = all_members(grouped)
    assert grouped.forget(grouped.select(*selected)) == []
    assert what != "turn" or all_members(grouped) == members - set(selected)  # the others stay
    assert what != "all" or grouped.holders() == []
    assert model_labels(grouped) == {name: label for name, label in before.items() if name not in gone}
    assert WORD not in grouped.kept_text()


def test_a_label_of_a_model_goes_if_nobody_knows_what_is_left(grouped: RememberedTopics) -> None:
    name_by_model(grouped)
    root = grouped.stage.project.root
    drop_members(grouped.stage.home, {"/elsewhere"}, lambda root: ())
    assert model_labels(grouped)
    shutil.rmtree(Path(grouped.stage.home.index) / "snapshots")
    drop_members(grouped.stage.home, {root}, lambda root: ())
    assert not model_labels(grouped)
    assert read_kept(grouped.stage.home, grouped.stage.project).topics


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
        other = kept.topics[name].members
        by_model = ModelLabel(f"by {secret}", other, other)
        kept.topics[name] = Kept(f"uses {secret}", other, model_label=by_model)
    audit = Audit(home, Project(project.root), lambda _: grouped.settings, lambda line: None)
    assert [one.where for one in audit.search().found] == ["topics", "topics"]
    with index_lock(home, 5):
        assert audit.fix().remaining == []
    assert grouped.holders(secret.lower()) == []
    assert read_kept(home, project).topics[name].members
