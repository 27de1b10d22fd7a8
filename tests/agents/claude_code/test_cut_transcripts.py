"""Transcripts that lost their head: what is left of them repeats nothing."""

from __future__ import annotations

import json

import pytest

from memkit.archive.archive import Archive
from memkit.capture.capture import Capture
from memkit.settings import ArchiveSettings
from memkit.settings.load import Settings
from tests.builders import SESSION, Lines
from tests.capture.stage import Stage, prompt_id
from tests.ci import every

pytestmark = pytest.mark.usefixtures("unsynced")


def session() -> Lines:
    lines = Lines()
    for number in range(1, 5):
        lines.prompt(f"Q{number}", prompt_id(number)).answer(f"Let me see, {number}.")
        lines.call("Bash", f"t{number}", command="make").result(f"t{number}", "ok")
        lines.answer(f"Answer {number}.")
    parent = None
    for entry in lines.entries:
        entry["parentUuid"], parent = parent, entry["uuid"]
    return lines


@pytest.mark.parametrize("archived", [True, False])
@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("cut", every(6, range(1, 20)))
def test_no_answer_is_repeated(stage: Stage, archived: bool, live: bool, cut: int) -> None:
    settings = Settings(archive=ArchiveSettings(enabled=archived))
    lines = session()
    stage.write(lines)

    def read() -> None:
        capture = Capture(stage.home, settings)
        if live:
            record = stage.record("SessionEnd")
            capture.handle(record, stage.project, record["time"])
        else:
            capture.import_file(stage.transcript, stage.project)

    read()
    whole = stage.turns
    text = "".join(json.dumps(entry) + "\n" for entry in lines.entries[cut:])
    stage.transcript.write_text(text)
    for _ in range(2):
        read()
        assert stage.turns == whole
    added = Lines().prompt("New", prompt_id(9), uuid="fffffff0-aaaa-4bbb-8ccc-0123456789ab")
    added.answer("And new. " + "x" * len(lines.text), uuid="fffffff1-aaaa-4bbb-8ccc-0123456789ab")
    stage.transcript.write_text(text + added.text)  # longer than the checkpoint again
    read()
    assert [title for title, _ in stage.turns] == ["Q1", "Q2", "Q3", "Q4", "New"] or (
        sorted(title for title, _ in stage.turns) == ["New", "Q1", "Q2", "Q3", "Q4"]
    )
    if archived:
        assert len(Archive(stage.home).turns(SESSION)) == 5


def test_an_answer_without_its_prompt_that_nobody_knows_is_kept(stage: Stage) -> None:
    lines = session()
    stage.transcript.write_text("".join(json.dumps(entry) + "\n" for entry in lines.entries[6:]))
    for _ in range(2):
        Capture(stage.home, Settings()).import_file(stage.transcript, stage.project)
    assert [said for _, said in stage.turns] == ["Answer 2.", "Answer 3.", "Answer 4."]


def test_an_answer_after_midnight_is_not_repeated(stage: Stage) -> None:
    lines = session()
    for entry in lines.entries[1:5]:  # the first question is asked on the day before
        entry["timestamp"] = entry["timestamp"].replace("T10:", "T12:")
    lines.entries[0]["timestamp"] = "2026-03-03T12:00:00.000Z"
    stage.write(lines)
    Capture(stage.home, Settings()).import_file(stage.transcript, stage.project)
    whole = stage.turns
    stage.transcript.write_text("".join(json.dumps(entry) + "\n" for entry in lines.entries[1:]))
    Capture(stage.home, Settings()).import_file(stage.transcript, stage.project)
    assert stage.turns == whole
