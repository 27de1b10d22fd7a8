"""What is kept of a timeline goes with a forgotten turn, and does not return."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import msgspec
import pytest

from memkit.forget.audit import Audit
from memkit.forget.selection import of_days
from memkit.index import index_lock
from memkit.memory import Memory
from memkit.settings.load import Settings
from memkit.timeline.cache import MonthCache
from tests.forget.remembered import WORD, Remembered
from tests.raw_bytes import files_holding


def look(remembered: Remembered) -> str:
    """Go through the timeline, down to the turns, as `memkit timeline` does. Return all that it said."""
    memory = Memory(
        remembered.stage.project, home=remembered.stage.home, settings_of=lambda _: remembered.settings
    )
    whole = memory.timeline(depth=5)
    parts = [memory.timeline(one["id"]) for one in whole["children"] if one["kind"] != "turn"]
    return json.dumps([whole, parts, memory.scan(WORD), memory.events()])


def kept(remembered: Remembered) -> list[Path]:
    return sorted(Path(remembered.stage.home.index, "timeline").glob("*/*"))


def test_a_forgotten_turn_is_in_no_timeline(remembered: Remembered) -> None:
    assert WORD in look(remembered)
    (month,) = kept(remembered)
    assert str(month.relative_to(remembered.stage.root)) in " ".join(remembered.holders())
    assert remembered.forget(remembered.select(remembered.turns[1])) == []
    assert (kept(remembered), remembered.holders()) == ([], [])
    after = look(remembered)
    assert WORD not in after.replace(f'"search": "{WORD}"', "")
    assert "carrot" in after and "parsnip" in after
    assert kept(remembered) == [month]
    assert remembered.holders() == []


def test_a_forgotten_day_leaves_no_month(remembered: Remembered) -> None:
    look(remembered)
    day, stage = date.fromisoformat(remembered.day.stem), remembered.stage
    assert remembered.forget(of_days(stage.project, stage.home, day, day, time.time())) == []
    assert "carrot" not in look(remembered)
    assert (kept(remembered), remembered.holders("carrot")) == ([], [])


def test_one_that_was_being_read_meanwhile_does_not_return(
    remembered: Remembered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look reads the days, a turn is forgotten, and the look wants to keep what it read."""
    write = MonthCache._write
    asked: Iterator[bool] = iter([True])

    def late(self: MonthCache, month: str, file: object) -> None:
        if next(asked, False):
            assert remembered.forget(remembered.select(remembered.turns[1])) == []
        write(self, month, file)  # type: ignore[arg-type]

    monkeypatch.setattr(MonthCache, "_write", late)
    look(remembered)
    assert remembered.holders() == []


def test_an_audit_removes_a_secret_from_timelines(remembered: Remembered) -> None:
    look(remembered)
    settings = msgspec.convert({"capture": {"redact": [f"(?i){WORD}"]}}, Settings)
    audit = Audit(remembered.stage.home, remembered.stage.project, lambda _: settings, lambda _: None)
    assert any("timeline" in str(one) for one in audit.search().found)
    with index_lock(remembered.stage.home, 5):
        assert audit.fix().remaining == []
    remembered.settings = settings
    look(remembered)
    assert len(kept(remembered)) == 1
    assert files_holding(remembered.stage.root, WORD, lambda path: path.suffix == ".jsonl") == []
