"""Events of turns that the transcript lacks, between lines of turns that it shows: no answer is lost."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memkit.capture.capture import Capture
from memkit.settings.load import Settings
from tests.builders import Lines
from tests.capture.stage import Stage, prompt_id

STEPS = ["prompt", "answer", "work", "stop", "compact", "lacking", "appears", "again", "start", "import"]

steps = st.lists(st.sampled_from(STEPS), max_size=16)


@settings(max_examples=150, deadline=None)
@given(steps=steps)
@example(steps=["prompt", "work", "compact", "lacking", "answer"])
@example(steps=["prompt", "lacking", "answer", "lacking", "work", "answer", "again"])
@example(steps=["prompt", "work", "lacking", "answer", "appears", "prompt", "answer"])
def test_every_answer_is_kept(tmp_path_factory: pytest.TempPathFactory, steps: list[str]) -> None:
    stage = Stage(tmp_path_factory.mktemp("s").resolve())
    lines = Lines()
    expected: dict[str, str] = {}
    shown: list[int] = []
    lacking: list[int] = []
    number = 0
    for count, step in enumerate(steps):
        said = f"a{count}"
        if step == "prompt":
            number += 1
            shown.append(number)
            lines.prompt(f"Q{number}", prompt_id(number))
        elif step == "answer" and shown:
            lines.call("Bash", f"t{count}", command="make").result(f"t{count}", "ok").answer(said)
            expected[f"Q{shown[-1]}"] = said
        elif step == "work" and shown:
            lines.call("Bash", f"t{count}", command="make").result(f"t{count}", "ok")
        elif step == "lacking":
            number += 1
            lacking.append(number)
            stage.write(lines)
            stage.handle("UserPromptSubmit", prompt_id=prompt_id(number), prompt=f"Q{number}")
            stage.handle("Stop", prompt_id=prompt_id(number), message=said, late=True)
            expected[f"Q{number}"] = said
        elif step == "again" and lacking:
            message = expected[f"Q{lacking[-1]}"]
            stage.handle("Stop", prompt_id=prompt_id(lacking[-1]), message=message, late=True)
        elif step == "appears" and lacking:
            shown.append(lacking.pop())
            lines.prompt(f"Q{shown[-1]}", prompt_id(shown[-1])).answer(expected[f"Q{shown[-1]}"])
        stage.write(lines)
        last = f"Q{shown[-1]}" if shown else ""
        if step == "stop" and expected.get(last):
            stage.handle("Stop", prompt_id=prompt_id(shown[-1]), message=expected[last], late=True)
        elif step == "compact":
            stage.handle("PreCompact")
        elif step == "start":
            stage.handle("SessionStart")
        elif step == "import":
            Capture(stage.home, Settings()).import_file(stage.transcript, stage.project)
    stage.handle("SessionEnd")
    turns = stage.turns
    assert len(turns) == len(dict(turns)) == number
    assert {title: answer for title, answer in turns if title in expected} == expected
