"""One session imported into several projects, and live in one of them meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from memkit.agents.sources import find_sources
from memkit.archive.archive import Archive
from memkit.capture.capture import Capture
from memkit.capture.importer import Importer, ImportSelection
from memkit.capture.sessions import Sessions
from memkit.journal.journal import Journal
from memkit.projects.project import Project
from memkit.settings.load import Settings
from tests.builders import SESSION, Lines
from tests.capture.stage import Stage, prompt_id

SESSIONS = [f"{number:08x}-7d4e-4b8a-9f15-0c6d2e8b7a44" for number in range(6)]


def session_of(number: int, turns: int) -> Lines:
    lines = Lines(SESSIONS[number])
    for turn in range(turns):
        lines.prompt(f"Question {number}-{turn}", prompt_id(100 * number + turn)).answer(f"a{number}-{turn}")
    return lines


def turns_in(project: Project) -> list[str]:
    journal = Journal(project)
    return [
        section.pairs["turn"]
        for day in journal.days()
        for section in journal.day(day).sections
        if "turn" in section.pairs
    ]


@pytest.fixture
def others(stage: Stage) -> list[Project]:
    found = []
    for name in ("second", "third"):
        (stage.root / name).mkdir()
        found.append(Project(str(stage.root / name)))
    return found


def import_into(stage: Stage, project: Project, folder: Path) -> tuple[int, int]:
    running = Importer(ImportSelection(stage.home, find_sources([folder]), project, into=project), Settings())
    report = running.run(lambda read: None)
    running.record.finish()
    assert report.problems == []
    return report.total.turns, report.total.written


def test_every_project_gets_every_turn_once(stage: Stage, others: list[Project]) -> None:
    folder = stage.root / "transcripts"
    folder.mkdir()
    count = 0
    for number in range(6):
        session_of(number, number + 1).write(folder)
        count += number + 1
    projects = [stage.project, *others]
    for project in projects:
        assert import_into(stage, project, folder) == (count, count)
    archived = {path.name: path.read_bytes() for path in Path(stage.home.archive).iterdir()}
    files = {p.root: {f.name: f.read_bytes() for f in Path(p.memory).glob("*.md")} for p in projects}
    for project in reversed(projects):
        assert import_into(stage, project, folder) == (count, 0)
        assert len(turns_in(project)) == count
    assert {path.name: path.read_bytes() for path in Path(stage.home.archive).iterdir()} == archived
    assert {p.root: {f.name: f.read_bytes() for f in Path(p.memory).glob("*.md")} for p in projects} == files
    for session in SESSIONS:
        assert {turn.project for turn in Archive(stage.home).turns(session)} == {stage.project.root}


def test_a_turn_that_is_imported_while_it_grows_grows_in_each_project(stage: Stage, others: list[Project]) -> None:
    lines = Lines().prompt("One", prompt_id(1)).call("Bash", "t", command="make")
    projects = [stage.project, *others]
    for said in ("", "Half.", "Whole."):
        stage.write(lines.answer(said) if said else lines)
        for project in projects:
            Capture(stage.home, Settings()).import_file(stage.transcript, project)
    for project in projects:
        (day,) = Journal(project).days()
        text = Journal(project).path(day).read_text()
        assert text.count("Half.\n\nWhole.") == 1
        assert len(turns_in(project)) == 1


def test_a_live_session_keeps_its_place_during_an_import(stage: Stage, others: list[Project]) -> None:
    lines = Lines().prompt("One", prompt_id(1)).call("Bash", "t", command="make")
    stage.write(lines)
    stage.handle("PreCompact")
    before = Sessions(stage.home).load(SESSION)
    lines.result("t", "ok").answer("The answer.")
    for number in range(2, 6):
        lines.prompt(f"Q{number}", prompt_id(number)).answer(f"a{number}")
    stage.write(lines)
    (other, _) = others
    Capture(stage.home, Settings()).import_file(stage.transcript, other)
    after = Sessions(stage.home).load(SESSION)
    assert (after.offset, after.size, after.project) == (before.offset, before.size, before.project)
    assert len(turns_in(other)) == 5
    stage.handle("SessionEnd")
    assert [answer for _, answer in stage.turns] == ["The answer.", "a2", "a3", "a4", "a5"]


def test_what_a_person_took_out_of_a_project_stays_out(stage: Stage, others: list[Project]) -> None:
    stage.write(Lines().prompt("One", prompt_id(1)).answer("1"))
    projects = [stage.project, others[0]]
    for _ in range(2):
        for project in projects:
            Capture(stage.home, Settings()).import_file(stage.transcript, project)
        for path in Path(stage.project.memory).glob("*.md"):
            path.write_text("# 2026-03-04\n")
    assert [len(turns_in(project)) for project in projects] == [0, 1]
