"""Events of Codex's hooks become turns: at once, once, and as careful as polling."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from memkit.agents.sources import sources_of
from memkit.capture.capture import Capture, TranscriptBehind
from memkit.capture.importer import Importer, ImportSelection
from memkit.capture.sessions import Sessions
from memkit.settings.load import Settings
from tests.agents.codex.rollouts import SESSION, Rollout, conversation
from tests.capture.stage import Stage

NAME = f"{SESSION}@codex"
FIRST, SECOND = (f"019c8a54-09a9-79e1-9240-{number:012x}" for number in (1, 2))


class CodexStage(Stage):
    """A stage whose rollouts are in Codex's own directory."""

    def happened(self, event: str, **fields: Any) -> None:
        record = self.record(event, session=NAME, **fields)
        if not fields.get("transcript"):
            del record["transcript"]
        Capture(self.home, Settings()).handle(record, self.project, record["time"])

    def wrote(self, rollout: Rollout, lines: int | None = None) -> Path:
        path = rollout.write(self.root / "codex" / "sessions" / "2026" / "03" / "04")
        path.write_text("".join(f"{line}\n" for line in rollout.lines[:lines]))
        return path


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CodexStage:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    return CodexStage(tmp_path)


def test_each_turn_is_written_when_it_ends_and_once(stage: CodexStage) -> None:
    whole = conversation(stage.project.root)
    end = next(number for number, line in enumerate(whole.lines, 1) if "task_complete" in line)
    stage.happened("SessionStart")  # before there is a rollout
    stage.wrote(whole, lines=end - 2)
    with pytest.raises(TranscriptBehind):
        stage.happened("Stop", prompt_id=FIRST)
    stage.wrote(whole, lines=end)
    stage.happened("Stop", prompt_id=FIRST)
    assert stage.journal.count("**Answered** It listens on 7443.") == 1 and "It runs." not in stage.journal
    path = stage.wrote(whole)
    stage.happened("Stop", prompt_id=SECOND, transcript=str(path))
    stage.happened("SessionEnd", transcript=str(path))
    written = stage.journal
    assert written.count(" turn:") == 2 and written.count("**Answered** It runs.") == 1
    session = Sessions(stage.home).load(NAME)
    assert session.elsewhere and session.transcript == str(path)  # no default provider may get its text
    capture = Capture(stage.home, Settings())
    assert capture.import_file(path, stage.project, now=time.time()).written == 0  # as polling does
    selection = ImportSelection(stage.home, sources_of([path]), stage.project)
    assert Importer(selection, Settings()).run(lambda done: None).total.written == 0
    assert stage.journal == written


def test_a_turn_that_goes_on_is_left_when_another_session_starts(stage: CodexStage) -> None:
    path = stage.wrote(conversation(stage.project.root), lines=8)
    stage.happened("SessionStart", transcript=str(path))
    stage.handle("SessionStart")
    assert stage.journal == ""
    os.utime(path, (time.time() - 61,) * 2)  # Codex crashed
    stage.handle("SessionStart")
    assert "Which port does the gateway use?" in stage.journal


@pytest.mark.parametrize("name", ["../../x@codex", "*@codex", "0" * 40 + "@codex"])
def test_a_name_that_is_no_id_finds_no_rollout(stage: CodexStage, name: str) -> None:
    stage.wrote(conversation(stage.project.root))
    Capture(stage.home, Settings()).handle(
        {"event": "SessionEnd", "session": name, "cwd": stage.project.root, "time": 0.0}, stage.project, 0.0
    )
    assert stage.journal == ""
