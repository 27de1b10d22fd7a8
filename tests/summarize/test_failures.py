"""Summaries after failures: no endless useless calls, and no turn is forgotten."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memkit.capture.sessions import LiveSessions, Sessions
from memkit.capture.summary_queue import SummaryQueue
from memkit.journal.day_file import DayFile
from memkit.journal.day_summaries import turns_of
from memkit.llm import RateLimitedError, UnavailableError
from memkit.llm.ledger import Ledger
from memkit.settings import CaptureSettings
from memkit.settings.load import Settings
from tests.ci import every
from tests.summarize.stage import (
    LONG_TURN,
    SESSION,
    START,
    SummaryStage,
    bullet,
    bullet_for_each,
    summary,
)

HOURS = 60


def day_of(stage: SummaryStage) -> Path:
    return Path(stage.project.memory) / "2026-11-20.md"


def test_turns_on_an_unplugged_disk_wait_for_it(stage: SummaryStage, tmp_path: Path) -> None:
    stage.add_turn(0)
    disk = Path(stage.project.root)
    disk.rename(tmp_path / "elsewhere")
    assert stage.run(3 * HOURS).calls == 0
    (tmp_path / "elsewhere").rename(disk)
    assert stage.run(4 * HOURS).segments == 1


def test_a_deleted_project_leaves_the_queue_after_90_days(stage: SummaryStage) -> None:
    stage.add_turn(0)
    shutil.rmtree(stage.project.root)
    stage.run(89 * 24 * HOURS)
    assert SummaryQueue(stage.home)
    stage.run(91 * 24 * HOURS)
    assert not SummaryQueue(stage.home)


def test_a_lone_surrogate_in_an_answer_is_replaced(stage: SummaryStage) -> None:
    stage.add_turn(0)
    stage.provider.answer = summary(bullet("It is \ud83d that.", [1]))
    assert stage.run(10).segments == 1
    assert "- Found: It is ? that. <!-- grip:" in stage.text


def test_an_unexpected_error_is_followed_by_a_pause(stage: SummaryStage) -> None:
    stage.add_turn(0)

    def answer(task: object) -> dict[str, Any]:
        raise ZeroDivisionError("of our own making")

    stage.provider.answer = answer
    assert stage.run(10).failures == ["ZeroDivisionError: of our own making"]
    assert stage.run(11).calls == 0
    stage.provider.answer = bullet_for_each
    assert stage.run(21).segments == 1


def test_a_duplicated_turn_does_not_cause_endless_calls(stage: SummaryStage) -> None:
    stage.add_turn(0)
    stage.run(10)
    text = day_of(stage).read_text()
    section = re.sub(r" summary:\w+", "", text[text.index("## ") :])
    section = re.sub(r"\n- Found.*\n", "", section)
    day_of(stage).write_text(f"{text}\n{section}")
    SummaryQueue(stage.home).add(stage.project.root, SESSION, ["2026-11-20"], START.timestamp())
    for minutes in range(20, 40):
        stage.run(minutes)
    assert len(stage.provider.tasks) == 2
    turns = turns_of(DayFile(stage.text), SESSION)
    assert [turn.is_summarized for turn in turns] == [True, True]


def test_turns_that_change_during_a_call_wait_for_the_pause(stage: SummaryStage) -> None:
    stage.add_turn(0)
    before = day_of(stage).read_text()

    def answer(task: Any) -> dict[str, Any]:
        day_of(stage).write_text("# 2026-11-20\n")  # a checkout, say
        return bullet_for_each(task)

    stage.provider.answer = answer
    assert stage.run(10).segments == 0
    day_of(stage).write_text(before)
    assert stage.run(11).calls == 0
    stage.provider.answer = bullet_for_each
    assert stage.run(21).segments == 1


def test_segments_share_calls_again_after_an_outage(stage: SummaryStage) -> None:
    for number in range(5):
        stage.add_turn(number * 40)
    stage.provider.answer = RateLimitedError("too many")
    assert stage.run(300).calls == 1
    stage.provider.answer = bullet_for_each
    report = stage.run(320)
    assert (report.segments, report.calls) == (5, 1)


def test_an_outage_counts_only_against_open_segments(stage: SummaryStage) -> None:
    stage.change(daily_tokens=10_000_000)
    stage.add_turns([LONG_TURN] * 30)
    answers = iter([bullet_for_each, UnavailableError("out of order")])

    def answer(task: Any) -> dict[str, Any]:
        one = next(answers)
        if isinstance(one, UnavailableError):
            raise one
        return one(task)

    stage.provider.answer = answer
    done = stage.run(300).segments
    assert done > 0
    (waiting,) = SummaryQueue(stage.home)
    open_turns = {
        turn.section.pairs["turn"]
        for turn in turns_of(DayFile(stage.text), SESSION)
        if not turn.is_summarized
    }
    assert waiting.tries
    assert set(waiting.tries) <= open_turns


def test_calls_stay_within_a_small_budget(stage: SummaryStage) -> None:
    stage.change(daily_tokens=10_000)
    stage.add_turns([LONG_TURN] * 30)
    for days in range(1, 8):
        stage.run(days * 24 * HOURS)
    assert stage.summarized == 30
    assert max(Ledger(stage.home).today(stage.now.timestamp()).tokens, 1) <= 10_000


@pytest.mark.parametrize(
    ("budget", "amount"), [({"daily_tokens": 3_000}, "3,000 tokens"), ({"daily_usd": 0.001}, "$0.001")]
)
def test_a_budget_too_small_for_any_call_is_reported(stage: SummaryStage, budget: dict[str, Any], amount: str) -> None:
    stage.change(**budget)
    stage.add_turn(0)
    (line,) = stage.run(30).failures
    assert Ledger(stage.home).calls() == []
    assert "tomorrow" not in line
    assert f"the daily budget of {amount} is reached" in line
    assert f"raise summarize.{next(iter(budget))} in a terminal of your own" in line


def test_a_spent_budget_ends_the_round_with_one_line(stage: SummaryStage, tmp_path: Path) -> None:
    other = SummaryStage(tmp_path)
    other.project = type(stage.project)(str(tmp_path / "other"))
    Path(other.project.root).mkdir()
    other.journal = type(stage.journal)(other.project)
    stage.add_turn(0)
    other.add_turn(0, session="0ther")
    stage.change(daily_tokens=3_000)
    report = stage.run(30)
    assert len(report.failures) == 1
    assert report.is_out_of_budget


@pytest.mark.parametrize("time", ["24:05", "09:61", "٠٩:٣٠"])
def test_an_invalid_time_in_an_edited_heading_is_ignored(stage: SummaryStage, time: str) -> None:
    stage.add_turn(0)
    stage.add_turn(1)
    text = day_of(stage).read_text()
    day_of(stage).write_text(text.replace("### 09:01", f"### {time}"))
    assert stage.run(300).segments == 1
    assert len(stage.bullets) == 2


def test_a_secret_in_the_journal_is_redacted_before_the_call(stage: SummaryStage) -> None:
    key = "sk-ant-" + "api03-" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gI3kM5oQ7sU9wY1"
    stage.settings = Settings(
        summarize=stage.settings.summarize, capture=CaptureSettings(redact=["Rumpel[a-z]+"])
    )
    stage.add_turn(0)
    stage.add_turn(1)
    with day_of(stage).open("a") as file:
        file.write(f"\nThe key is {key}, says Rumpelstilz.\n")
    assert stage.run(30).segments == 1
    (task,) = stage.provider.tasks
    assert key not in task.material
    assert "Rumpel" not in task.material
    assert "The key is [redacted:" in task.material


def test_a_project_excluded_later_is_not_sent(stage: SummaryStage) -> None:
    stage.add_turn(0)
    allowed = stage.settings
    stage.settings = Settings(
        summarize=allowed.summarize, capture=CaptureSettings(exclude=[stage.project.root])
    )
    assert stage.run(300).calls == 0
    stage.settings = allowed
    assert stage.run(301).segments == 1


@pytest.mark.parametrize("asked", [float("inf"), 1e12])
def test_an_endless_retry_after_is_capped(stage: SummaryStage, asked: float) -> None:
    stage.add_turn(0)
    stage.provider.answer = RateLimitedError("too many", retry_after=asked)
    stage.run(10)
    stage.provider.answer = bullet_for_each
    assert stage.run(25 * HOURS).segments == 1


def test_a_clock_that_was_years_ahead_delays_nothing(stage: SummaryStage) -> None:
    stage.add_turn(0)
    stage.provider.answer = RateLimitedError("too many")
    stage.run(10)
    stage.provider.answer = bullet_for_each
    assert stage.run(-365 * 24 * HOURS).segments == 1


def test_the_end_of_a_turn_does_not_depend_on_the_time_zone(
    stage: SummaryStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A heading keeps the local time of the zone in which it was written."""
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    stage.add_turn(0, lasts=1)
    stage.add_turn(60, lasts=1)
    try:
        monkeypatch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        found = stage.summarizer.select(stage.project, "2026-11-20")
        assert [len(one.segment.turns) for one in found] == [1, 1]
    finally:
        monkeypatch.undo()
        time.tzset()


def test_an_unreadable_prompt_file_does_not_count_against_segments(
    stage: SummaryStage, tmp_path: Path
) -> None:
    stage.change(prompt_file=str(tmp_path / "prompt.md"), daily_tokens=10_000_000)
    stage.add_turns([LONG_TURN] * 60)
    assert len(stage.run(300).failures) == 1
    for hours in every(4, range(6, 70)):
        stage.run(hours * HOURS)
    (tmp_path / "prompt.md").write_text("In verse, please.")
    report = stage.run(100 * HOURS)
    assert stage.summarized == 60
    assert report.calls < report.segments


def test_an_unfinished_turn_waits_for_its_answer(stage: SummaryStage) -> None:
    """Claude Code compacted during long work, and memkit wrote the turn as it was then."""
    LiveSessions(stage.home).begin(SESSION, stage.project.root, os.getpid())
    sessions = Sessions(stage.home)
    state = sessions.load(SESSION)
    state.under_way = "p1"
    sessions.save(state)
    turn, archived = stage.turn(0, "Long work", "I begin.", session=SESSION)
    stage.add({SESSION: [(turn, replace(archived, prompt_id="p1"))]})
    assert stage.run(5 * HOURS).calls == 0
    assert stage.run(30 * HOURS).calls == 0  # at midnight neither
    state.under_way = ""  # it has ended
    sessions.save(state)
    assert stage.run(31 * HOURS).segments == 1
