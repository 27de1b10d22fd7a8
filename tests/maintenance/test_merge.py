"""One project takes over the memory of another."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from memkit.archive.archive import Archive
from memkit.capture.capture import Capture
from memkit.capture.sessions import Sessions
from memkit.capture.summary_queue import SummaryQueue
from memkit.index.memory_files import added_paths, change_paths
from memkit.ipc import unindexed
from memkit.journal.day_file import DayFile
from memkit.journal.day_summaries import turns_of
from memkit.journal.facts import MEMORY_FILE, Citations, Fact, FactChange, FactFile
from memkit.journal.journal import Journal
from memkit.maintenance.merge import Merged, merge, merge_day, remove_merged
from memkit.privacy.tombstones import Forgotten, Period, Tombstones
from memkit.projects.project import Project
from memkit.projects.registry import changing
from memkit.settings.load import Settings
from tests.builders import SESSION, Lines
from tests.capture.places import REPOSITORY
from tests.capture.stage import NOW, Stage, prompt_id
from tests.ci import every
from tests.memory import day

MORNING = """# 2026-11-20

Written by hand.

## 09:00 Morning <!-- session:aaaa branch:main summary:22222222 -->

- Decided: one. <!-- grip:g1 turns:11111111 -->
- Decided: two. <!-- grip:g2 turns:22222222 -->

### 09:00 First <!-- turn:11111111 branch:main -->
**Asked** First

### 09:30 Second, edited by hand <!-- turn:22222222 -->
Only this is left.

### 09:40 Third <!-- turn:33333333 -->
**Asked** Third
"""

NOON = """# 2026-11-20

## 12:00 Noon <!-- session:bbbb branch:main -->

### 12:00 Fourth <!-- turn:44444444 -->
**Asked** Fourth
"""


def merged(own: str, other: str) -> tuple[int, str]:
    content = DayFile(own)
    return merge_day(content, DayFile(other)), content.render()


def test_a_day_takes_its_place() -> None:
    count, text = merged(NOON, MORNING)
    assert count == 3
    body = MORNING.partition("Written by hand.\n\n")[2]
    assert text == f"# 2026-11-20\n\nWritten by hand.\n\n{body}\n{NOON.partition(chr(10) * 2)[2]}"
    assert merged(text, MORNING) == (0, text)
    assert merged(text, NOON) == (0, text)
    assert merged(MORNING, NOON)[1] == text  # in either order
    assert merged("# 2026-11-20", MORNING) == (3, MORNING)
    count, text = merged(NOON, NOTED)  # notes, too
    assert count == 3
    assert text.index("turn:33333333") < text.index("note:55555555") < text.index("turn:44444444")
    assert merged(text, NOTED) == (0, text)


def test_turns_that_are_there_stay_as_they_are() -> None:
    own = MORNING.replace("**Asked** First", "**Asked** First, as I edited it").partition("### 09:40")[0]
    count, text = merged(own, MORNING)
    assert count == 1
    assert text.startswith(own.rstrip())
    for grip in ("g1", "g2"):
        assert text.count(f"grip:{grip} ") == 1
    # Nothing below the new heading is summarized yet.
    assert "## 09:00 Morning <!-- session:aaaa branch:main -->\n\n### 09:40 Third" in text
    assert merged(text, MORNING) == (0, text)


def test_a_summary_stands_for_what_came_with_it() -> None:
    own = day("2026-11-20").rstrip() + "\n\n### 09:00 First <!-- turn:11111111 -->\nhere\n"
    count, text = merged(own, MORNING)
    assert count == 2
    assert "summary:22222222" in text
    turns = {turn.section.pairs["turn"]: turn.is_summarized for turn in turns_of(DayFile(text), "aaaa")}
    assert turns == {"22222222": True, "33333333": False}


@pytest.fixture
def other(stage: Stage) -> Project:
    """Another project with two days and a note."""
    project = Project(str(stage.root / "other"))
    Path(project.memory, "sub").mkdir(parents=True)
    Path(project.memory, "2026-11-20.md").write_text(MORNING)
    Path(project.memory, "2026-11-21.md").write_text(NOON.replace("2026-11-20", "2026-11-21"))
    Path(project.memory, "sub", "note.md").write_text("# Note\n\nText.\n")
    return project


def take_over(stage: Stage, source: Project) -> Merged:
    return merge(source, stage.project, stage.home, Journal(stage.project))


def files(project: Project) -> dict[str, bytes]:
    memory = Path(project.memory)
    return {str(path.relative_to(memory)): path.read_bytes() for path in memory.rglob("*.md")}


def test_all_of_a_memory(stage: Stage, other: Project) -> None:
    before = files(other)
    secret = stage.root / "secret.md"
    secret.write_text("secret")
    Path(other.memory, "link.md").symlink_to(secret)  # no link leads out
    change_paths(stage.home, stage.project, add=["/docs"])
    change_paths(stage.home, other, add=["/notes"])
    assert take_over(stage, other) == Merged(turns=4, files=1)
    assert files(stage.project) == before
    assert added_paths(stage.home, stage.project) == ["/docs", "/notes"]
    assert unindexed.roots(stage.home) == [stage.project.root]
    again = take_over(stage, other)
    assert again == Merged()
    assert files(stage.project) == before


def test_a_note_of_the_same_name_is_kept_beside(stage: Stage, other: Project) -> None:
    own = Path(stage.project.memory, "sub", "note.md")
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    for count in (1, 0):
        assert take_over(stage, other).files == count
        assert own.read_text() == "mine"
        assert own.with_name("note-2.md").read_text() == "# Note\n\nText.\n"
    assert len(list(own.parent.iterdir())) == 2


def test_data_outside_the_project_follows(stage: Stage) -> None:
    other = Project(str(stage.root / "other"))
    Path(other.root).mkdir()
    stage.write(Lines().prompt("What port?", prompt_id(1)).answer("7443."))
    stage.handle("Stop", prompt_id=prompt_id(1), message="7443.", project=other.root)
    SummaryQueue(stage.home).add(other.root, SESSION, ["2026-03-04"], 5.0)
    assert take_over(stage, other) == Merged(turns=1, files=0, sessions=1)
    (turn,) = Archive(stage.home).turns(SESSION)
    assert turn.project == stage.project.root
    assert [state.project for state in Sessions(stage.home)] == [stage.project.root]
    assert [(one.root, one.days) for one in SummaryQueue(stage.home)] == [
        (stage.project.root, ["2026-03-04"])
    ]
    # The turn goes on, and does so in its new place.
    before = stage.journal
    Capture(stage.home, Settings()).import_file(stage.transcript, stage.project)
    assert stage.journal == before
    assert take_over(stage, other) == Merged()


def test_only_merged_files_are_removed(stage: Stage, other: Project) -> None:
    take_over(stage, other)
    day_file = Path(other.memory, "2026-11-21.md")
    day_file.write_text(day_file.read_text() + "\n### 13:00 New <!-- turn:55555555 -->\nnew\n")
    assert remove_merged(other, stage.project, stage.home) == 2
    assert list(files(other)) == ["2026-11-21.md"]
    assert take_over(stage, other).turns == 1
    assert remove_merged(other, stage.project, stage.home) == 1
    assert files(other) == {}


KILLED = """
import os, sys
from memkit import files as memkit_files
from memkit.journal import files
from memkit.journal.journal import Journal
from memkit.maintenance.merge import merge
from memkit.paths import Home
from memkit.projects.project import Project
left = int(sys.argv[4])
def write(*arguments, real=memkit_files.write_durably):
    global left
    left -= 1
    if left < 0:
        os._exit(9)
    real(*arguments)
files.write_durably = write
target = Project(sys.argv[2])
merge(Project(sys.argv[1]), target, Home(sys.argv[3]), Journal(target))
"""


@pytest.mark.parametrize("writes", every(2, [0, 1, 2, 3]))
def test_killed_and_done_again(stage: Stage, other: Project, writes: int) -> None:
    """The ignore file, two days and a note are written, one after the other."""
    before = files(other)
    arguments = [other.root, stage.project.root, stage.home.root, str(writes)]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *arguments],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        check=False,
    )
    assert done.returncode == 9
    assert len(files(stage.project)) == max(0, writes - 1)
    take_over(stage, other)
    assert files(stage.project) == before == files(other)


def facts_of(*facts: Fact, day: str) -> str:
    return FactChange(frozenset(), facts, day).apply("", MEMORY_FILE)


def test_facts_of_both_stand_in_one_section(stage: Stage, other: Project) -> None:
    one = Fact("The gateway listens on 7443.", "decision", Citations(turns=("11111111",)), "2026-11-20")
    two = Fact("Tabs are preferred.", "preference", Citations(turns=("44444444",)), "2026-11-21")
    theirs = facts_of(one, two, day="2026-11-20").replace("# Memory", "# Memory\n\nMy own line.")
    Path(other.memory, MEMORY_FILE).write_text(theirs)
    Path(stage.project.memory).mkdir(parents=True)
    Path(stage.project.memory, MEMORY_FILE).write_text(facts_of(one, day="2026-11-21"))
    day = Path(other.memory, "2026-11-20.md")
    third = Fact("The build is slow.", "fact", Citations(turns=("22222222",)), "2026-11-20")
    day.write_text(FactChange(frozenset(), (third,), "2026-11-20").apply(day.read_text(), day.name))
    take_over(stage, other)
    text = Journal(stage.project).text(MEMORY_FILE)
    assert [text.count(fact.line) for fact in (one, two)] == [1, 1]
    assert FactFile(text, MEMORY_FILE).compacted == "2026-11-20"  # what the other has not condensed yet
    assert "My own line." in Path(stage.project.memory, "MEMORY-2.md").read_text()
    assert Journal(stage.project).text("2026-11-20.md").count(third.line) == 1
    before = files(stage.project)
    assert take_over(stage, other) == Merged()
    assert files(stage.project) == before
    assert remove_merged(other, stage.project, stage.home) == 4
    assert files(other) == {}


def test_rollups_of_both_become_one(stage: Stage, other: Project) -> None:
    name = "2026-W47.md"
    one, two = (
        Fact(f"The {word} gate opened.", "fact", Citations(grips=(grip,)), "2026-11-20")
        for word, grip in (("north", "11111111"), ("south", "22222222"))
    )
    theirs = FactChange(frozenset(), (two,), basis="33333333", title="Gates").apply("", name)
    ours = FactChange(frozenset(), (one,), basis="44444444", title="Doors").apply("", name)
    Path(other.memory, name).write_text(theirs)
    Path(stage.project.memory).mkdir(parents=True)
    Path(stage.project.memory, name).write_text(ours)
    take_over(stage, other)
    text = Journal(stage.project).text(name)
    assert [text.count(fact.line) for fact in (one, two)] == [1, 1]
    assert text.startswith("# 2026-W47 Doors <!-- ")
    assert FactFile(text, name).basis == "44444444"  # it will be made again, from the bullets of both
    assert not Path(stage.project.memory, "2026-W47-2.md").exists()


NOTED = MORNING + "\n## 10:00 Note: tabs <!-- note:55555555 -->\ntabs\n"


def test_a_merge_brings_no_forgotten_entries(stage: Stage, other: Project) -> None:
    fact = Fact("It was two.", "fact", Citations(turns=("22222222",)), "2026-11-20")
    Path(other.memory, MEMORY_FILE).write_text(facts_of(fact, day="2026-11-20"))
    forgotten = frozenset({"22222222"})
    Tombstones(stage.home).begin(Forgotten(turns=forgotten))
    assert take_over(stage, other).turns == 3
    text = b"".join(files(stage.project).values()).decode()
    assert "turn:11111111" in text
    assert not re.search("turn:22222222|Decided: two|It was two", text)


def test_a_project_that_moved_keeps_its_added_paths_and_what_it_forgot(stage: Stage) -> None:
    old = str(stage.root / "old")
    change_paths(stage.home, Project(old), add=["/notes"])
    stage.write(Lines().prompt("What port?", prompt_id(1)).answer("7443."))
    Tombstones(stage.home).begin(Forgotten(periods=(Period(until=NOW + 86_400, project=old),)))
    with changing(stage.home) as registry:
        registry.move(old, stage.project.root)
    assert added_paths(stage.home, stage.project) == ["/notes"]
    captured = Capture(stage.home, Settings()).import_file(stage.transcript, stage.project)
    assert (captured.turns, captured.left_out) == (0, 1)
