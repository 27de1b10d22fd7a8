"""Turns that the archive has and the journal lacks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memkit.agents.claude_code.transcript import Transcript
from memkit.agents.turns import read_turns
from memkit.archive.archive import Archive
from memkit.capture.capture import Capture
from memkit.doctor.capture import lost_turns
from memkit.errors import MemkitError
from memkit.journal.journal import Journal
from memkit.projects.project import Project
from memkit.settings import MemorySettings
from memkit.settings.load import Settings
from tests.builders import Lines, git
from tests.capture.places import RECORDED
from tests.capture.stage import Stage, prompt_id

pytestmark = pytest.mark.usefixtures("unsynced")

NAME = "bash-mode-2.1.197"
PROMPTS = [
    "The first question", "! ls", "! echo hi", "! false", "! ls", "The second question", "! ls -a",
]  # fmt: skip


def written(stage: Stage) -> list[tuple[str, str]]:
    """ID and title of each turn in the journal, in order."""
    journal = Journal(stage.project)
    return [
        (one.pairs["turn"], one.heading.split(" <!--")[0][len("### 00:00 ") :])
        for day in journal.days()
        for one in journal.day(day).sections
        if "turn" in one.pairs
    ]


def live(stage: Stage) -> None:
    """Capture the recorded session as it grew."""
    data = (RECORDED / f"{NAME}.jsonl").read_bytes().splitlines(keepends=True)
    stage.transcript.write_bytes(b"")
    for line in data:
        with stage.transcript.open("ab") as file:
            file.write(line)
        if b'"assistant"' in line:
            (*_, turn) = read_turns(Transcript(stage.transcript))
            stage.handle("Stop", prompt_id=turn.prompt_id, late=True)


def test_each_command_has_an_id_of_its_own(stage: Stage) -> None:
    live(stage)
    turns = written(stage)
    assert [title for _, title in turns] == PROMPTS
    assert len(dict(turns)) == len(turns)
    for offset in (turn.start for turn in read_turns(Transcript(stage.transcript))):
        found = [turn.id for turn in read_turns(Transcript(stage.transcript, offset))]
        whole = [turn.id for turn in read_turns(Transcript(stage.transcript))]
        assert found == whole[-len(found) :]
    Capture(stage.home, Settings()).import_file(stage.transcript, stage.project)
    assert written(stage) == turns
    part = stage.transcript.read_bytes().split(b"\n", 2)[2]  # without the first prompt and its answer
    stage.transcript.write_bytes(part)
    Capture(stage.home, Settings()).import_file(stage.transcript, stage.project)
    assert written(stage) == turns
    archive = Archive(stage.home)
    (one,) = [one for name in archive.sessions() for one in archive.turns(name) if one.id == turns[0][0]]
    assert one.messages[0].text == "The first question"


def test_what_git_threw_away_is_lost_and_what_it_has_is_not(stage: Stage) -> None:
    root = Path(stage.project.root)
    settings = Settings(memory=MemorySettings(shared=True))

    def lost() -> list[str]:
        return [turn.prompt for turn in lost_turns(stage.home, Project(stage.project.root), settings)]

    git(root, "init", "-b", "main")
    lines = Lines()
    for number, name in enumerate(("Committed", "Deleted", "Thrown away")):
        lines.prompt(name, prompt_id(number)).call("Bash", f"t{number}", command="make").result(f"t{number}", "ok")
        stage.write(lines.answer(f"{name}."))
        Capture(stage.home, settings).import_file(stage.transcript, stage.project)
        if number < 2:
            git(root, "add", "-f", ".memkit/memory")
            git(root, "commit", "-m", name)
    whole = stage.journal
    git(root, "checkout", "HEAD~1", "--", ".memkit/memory")  # the second turn is in git, the third nowhere
    assert lost() == []  # the user may have removed it
    git(root, "reset", "--hard")
    assert lost() == ["Thrown away"]
    turns = lost_turns(stage.home, stage.project, settings)
    Capture(stage.home, settings).import_turns(turns, stage.project)
    assert lost() == []
    assert whole.rpartition("### ")[2] == stage.journal.rpartition("### ")[2]
    size = os.path.getsize(Archive(stage.home).path(stage.transcript.stem))
    Capture(stage.home, settings).import_turns(turns, stage.project)
    assert os.path.getsize(Archive(stage.home).path(stage.transcript.stem)) == size


def test_copies_of_a_day_do_not_count(stage: Stage) -> None:
    stage.write(Lines().prompt("Which port?", prompt_id(1)).answer("7443."))
    Capture(stage.home, Settings()).import_file(stage.transcript, stage.project)
    (day,) = Path(stage.project.memory).glob("*.md")
    text = day.read_text()
    for name in (f"{day.stem} (Ann's conflicted copy).md", f"{day.stem}_BACKUP_123.md", f"{day.stem}_LOCAL_7.md"):
        day.with_name(name).write_text(text)
    day.unlink()
    assert Journal(stage.project).days() == []
    assert [turn.prompt for turn in lost_turns(stage.home, stage.project, Settings())] == ["Which port?"]
    Capture(stage.home, Settings()).import_file(stage.transcript, stage.project)
    assert day.read_text() == text


def test_without_an_answer_of_git_nothing_is_lost(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    live(stage)
    for day in Journal(stage.project).days():
        Journal(stage.project).path(day).unlink()
    monkeypatch.setattr("memkit.doctor.capture.run_git", lambda *_: None)
    with pytest.raises(MemkitError, match="git did not answer"):
        lost_turns(stage.home, stage.project, Settings(memory=MemorySettings(shared=True)))
