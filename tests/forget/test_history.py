"""The client's history of prompts does not bring back what was forgotten."""

from __future__ import annotations

from datetime import timedelta

from memkit.agents.claude_code.files import TypedPrompt
from memkit.capture.capture import Capture
from memkit.conversation.values import parse_time
from memkit.privacy.tombstones import Forgotten, Tombstones
from tests.forget.remembered import WORD, Remembered


def test_a_prompt_of_a_forgotten_minute_stays_out(remembered: Remembered) -> None:
    remembered.forget(remembered.select(*remembered.turns))
    assert not remembered.journal.days()
    began = parse_time("2026-03-04T10:00:00.000Z")
    assert began is not None
    root = remembered.stage.project.root
    times = [began - timedelta(seconds=2), began + timedelta(minutes=5)]
    words = [f"Where is the {WORD}?", "Where is the celery?"]
    turns = [TypedPrompt(text, time, root, "").turn for text, time in zip(words, times, strict=True)]
    capture = Capture(remembered.stage.home, remembered.settings)
    captured = capture.import_turns(turns, remembered.stage.project)
    assert (captured.turns, captured.left_out) == (1, 1)
    assert remembered.holders() == []
    assert remembered.holders("celery") != []


def test_tombstones_add_up(remembered: Remembered) -> None:
    tombstones = Tombstones(remembered.stage.home)
    tombstones.begin(Forgotten(turns=frozenset({"aaaaaaaa"})))
    assert tombstones.begin(Forgotten(grips=frozenset({"b"}))).turns == {"aaaaaaaa"}
    tombstones.finish()
    tombstones.begin(Forgotten(turns=frozenset({"cccccccc"})))
    assert tombstones.forgotten().turns == {"aaaaaaaa", "cccccccc"}
    assert tombstones.unfinished() == Forgotten(turns=frozenset({"cccccccc"}))
