"""Events that fire at any moment while Claude Code writes its transcript late: nothing is lost or doubled."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memkit.capture.capture import Capture, TranscriptBehind
from memkit.settings.load import Settings
from tests.builders import Lines
from tests.capture.stage import Stage, prompt_id
from tests.ci import examples

STEPS = [
    "prompt", "answer", "work", "show", "show all", "half", "stop", "late", "earlier", "failure", "compact", "start",
    "end", "import",
]  # fmt: skip

steps = st.lists(st.sampled_from(STEPS), max_size=20)


@settings(max_examples=examples(200))
@given(steps=steps, end=st.sampled_from(["SessionEnd", "SessionStart", "catch up"]))
@example(steps=["prompt", "work", "compact", "late", "answer"], end="SessionEnd")
@example(steps=["prompt", "late", "answer", "late", "show", "late"], end="SessionStart")
@example(steps=["prompt", "answer", "show", "stop", "prompt", "show", "late", "half"], end="catch up")
def test_turns_once_and_whole(tmp_path_factory: pytest.TempPathFactory, steps: list[str], end: str) -> None:
    stage = Stage(tmp_path_factory.mktemp("s").resolve())
    lines = Lines()
    number = shown = 0

    def write(count: int, half: int = 0) -> None:
        """Show the first `count` lines, and a part of the next one."""
        whole = [line + "\n" for line in lines.text.splitlines()]
        stage.transcript.write_text("".join(whole[:count]) + "".join(whole[count:])[:half])

    def stop(turn: int, *, late: bool) -> None:
        try:
            stage.handle("Stop", prompt_id=prompt_id(turn), late=late)
        except TranscriptBehind:
            assert not late

    stage.handle("SessionStart")
    for count, step in enumerate(steps):
        if step == "prompt":
            number += 1
            lines.prompt(f"Q{number}", prompt_id(number))
        elif step == "answer" and number:
            lines.answer(f"a{count}")
        elif step == "work" and number:
            lines.call("Bash", f"t{count}", command="make").result(f"t{count}", "ok")
        elif step == "show" and shown < len(lines.entries):
            shown += 1
            write(shown)
        elif step == "show all":
            shown = len(lines.entries)
            write(shown)
        elif step == "half":
            write(shown, half=100)
        elif step in ("stop", "late") and number:
            stop(number, late=step == "late")
        elif step == "earlier" and number > 1:
            stop(number - 1, late=True)
        elif step == "failure" and number:
            stage.handle("StopFailure", prompt_id=prompt_id(number), late=True)
        elif step in ("compact", "start", "end"):
            stage.handle({"compact": "PreCompact", "start": "SessionStart", "end": "SessionEnd"}[step])
        elif step == "import" and stage.transcript.exists():
            Capture(stage.home, Settings()).import_file(stage.transcript, stage.project)
        titles = [title for title, _ in stage.turns]
        assert len(titles) == len(set(titles))
    stage.write(lines)
    if end == "SessionEnd":
        stage.handle("SessionEnd")
    elif end == "SessionStart":
        stage.handle("SessionStart", session="other", transcript=str(stage.root / "other.jsonl"))
    else:
        Capture(stage.home, Settings()).catch_up(())
    expected = Stage(tmp_path_factory.mktemp("e").resolve())
    expected.write(lines)
    expected.handle("SessionEnd")
    assert stage.turns == expected.turns
    assert len(expected.turns) == number
