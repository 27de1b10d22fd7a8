"""Hook events into the journal: late transcripts, missing ones, crashes, and being killed in between."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memkit.capture import capture as capture_module
from memkit.capture.capture import Capture, TranscriptBehind
from memkit.capture.sessions import Sessions
from memkit.journal.journal import Journal
from memkit.settings.load import Settings
from tests.builders import Lines
from tests.capture.stage import Stage

PROMPT_ID = "6b1f0a52-99f1-4f0e-8a51-3f1f1a2b3c4d"


@pytest.mark.parametrize("later", ["Stop", "PreCompact", "SessionEnd", "next turn", "next session", "reconcile"])
@pytest.mark.parametrize("shown", ["nothing", "prompt", "tool call", "tool result"])
def test_a_late_answer_is_waited_for_and_else_added_later(stage: Stage, shown: str, later: str) -> None:
    lines = Lines()
    steps = {
        "prompt": lambda: lines.prompt("Which port?", PROMPT_ID),
        "tool call": lambda: lines.answer("Let me look.").call("Bash", "t", command="ls"),
        "tool result": lambda: lines.result("t", "gateway.yaml"),
    }
    names = list(steps)
    count = 0 if shown == "nothing" else names.index(shown) + 1
    for name in names[:count]:
        steps[name]()
    if count:
        lines.write(stage.root)
    with pytest.raises(TranscriptBehind):
        stage.handle("Stop", prompt_id=PROMPT_ID)
    assert stage.journal == ""
    stage.handle("Stop", late=True, prompt_id=PROMPT_ID)
    assert "7443" not in stage.journal
    assert stage.journal.count("### ") == (1 if count else 0)

    for name in names[count:]:
        steps[name]()
    lines.answer("7443.").write(stage.root)
    second = PROMPT_ID.replace("6b", "7c")
    if later == "next turn":
        lines.prompt("Two", second).answer("2").write(stage.root)
        stage.handle("Stop", prompt_id=second)
    elif later == "next session":
        stage.handle("SessionStart", session="other", transcript=str(stage.root / "other.jsonl"))
    elif later == "reconcile":
        assert Capture(stage.home, Settings()).catch_up(()) == 1
    else:
        stage.handle(later, prompt_id=PROMPT_ID)
    assert [turn for turn in stage.turns if turn[0] != "Two"] == [("Which port?", "7443.")]


def test_what_comes_after_the_turn_of_a_stop_is_left_for_its_own(stage: Stage) -> None:
    second = PROMPT_ID.replace("6b", "7c")
    lines = Lines().prompt("One", PROMPT_ID).answer("1").prompt("Two", second)
    lines.write(stage.root)
    stage.handle("Stop", prompt_id=PROMPT_ID)
    assert "Two" not in stage.journal
    lines.answer("2").write(stage.root)
    stage.handle("Stop", prompt_id=second)
    assert stage.journal.count("### ") == 2


def test_old_transcripts_have_no_prompt_ids(stage: Stage) -> None:
    Lines().prompt("One").answer("1 is it").prompt("Two").answer("2 is it").write(stage.root)
    stage.handle("Stop", prompt_id=PROMPT_ID)
    stage.handle("Stop", prompt_id=PROMPT_ID)
    assert stage.journal.count("### ") == 2


def test_import_and_live_capture_do_not_double(stage: Stage) -> None:
    lines = Lines().prompt("One", PROMPT_ID).answer("1")
    path = lines.write(stage.root)
    assert Capture(stage.home, Settings()).import_file(path, stage.project).written == 1
    assert Capture(stage.home, Settings()).import_file(path, stage.project).written == 0
    copy = stage.root / "copy"
    copy.mkdir()
    (copy / path.name).write_text(path.read_text())
    assert Capture(stage.home, Settings()).import_file(copy / path.name, stage.project).written == 0
    second = PROMPT_ID.replace("6b", "7c")
    lines.prompt("Two", second).answer("2").write(stage.root)
    stage.handle("Stop", prompt_id=second)
    stage.handle("SessionEnd")
    assert stage.journal.count("### ") == 2


def test_no_secret_reaches_the_journal(stage: Stage) -> None:
    key = "ghp_" + "a1B2" * 9
    Lines().prompt(f"use {key} <private>mine</private>", PROMPT_ID).call("Bash", "t", command=f"curl -H {key}").result(
        "t", f"token {key}"
    ).answer(f"Yes, and {key}").write(stage.root)
    stage.handle("Stop", prompt_id=PROMPT_ID)
    assert key not in stage.journal
    assert "mine" not in stage.journal
    assert stage.journal.count("[redacted:github-token]") >= 4


def test_a_project_that_is_gone_is_remembered_in_the_home(stage: Stage) -> None:
    Lines().prompt("One", PROMPT_ID).answer("1").write(stage.root)
    stage.handle("Stop", prompt_id=PROMPT_ID, project=str(stage.root / "gone"))
    (found,) = Path(stage.home.projects).glob("gone-*/.memkit/memory/*.md")
    assert "**Answered** 1" in found.read_text()


@pytest.mark.parametrize("place", ["mark", "save 1", "journal before", "journal after", "save 2", "save 3"])
def test_killed_at_each_step_and_run_again(stage: Stage, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """A turn that grows, with a failure at one step of either write: in the end it stands there once, whole."""

    class Killed(BaseException):
        pass

    lines = Lines().prompt("Fix it", PROMPT_ID).call("Bash", "t", command="make").result("t", "ok")
    lines.write(stage.root)

    def run(name: str, **fields: Any) -> None:
        with monkeypatch.context() as patch:
            _kill_at(patch, place, Killed)
            try:
                stage.handle(name, **fields)
            except Killed:
                pass
        stage.handle(name, **fields)

    run("PreCompact")
    lines.answer("Fixed.").write(stage.root)
    run("Stop", prompt_id=PROMPT_ID, message="Fixed.")
    assert stage.journal.count("### ") == 1
    assert stage.journal.count("**Answered** Fixed.") == 1


def _kill_at(patch: pytest.MonkeyPatch, place: str, killed: type[BaseException]) -> None:
    def fail(*_: Any) -> None:
        raise killed

    if place == "mark":
        patch.setattr(capture_module.unindexed, "mark", fail)
    elif place.startswith("save"):
        save, left = Sessions.save, [int(place[-1])]

        def count_down(self: Sessions, session: Any) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise killed
            save(self, session)

        patch.setattr(Sessions, "save", count_down)
    else:
        write = Journal.write

        def interrupted(self: Journal, *arguments: Any) -> Any:
            if place == "journal after":
                write(self, *arguments)
            raise killed

        patch.setattr(Journal, "write", interrupted)


def test_a_damaged_session_file_is_read_as_new(stage: Stage) -> None:
    Lines().prompt("One", PROMPT_ID).answer("1").write(stage.root)
    stage.handle("Stop", prompt_id=PROMPT_ID)
    (path,) = Path(stage.home.sessions).glob("*.json")
    for damage in ("", "{", "[]", json.dumps({"id": 1, "unknown": 2})):
        path.write_text(damage)
        stage.handle("SessionEnd")
    assert stage.journal.count("### ") == 1
