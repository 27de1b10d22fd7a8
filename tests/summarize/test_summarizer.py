"""Rounds of summaries: the due segments, answers, failures, and costs."""

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
from memkit.errors import JournalError
from memkit.journal.day_file import DayFile
from memkit.journal.day_summaries import turns_of
from memkit.llm import (
    NotConfiguredError,
    RateLimitedError,
    RefusedError,
    Task,
    TokenUsage,
    UnavailableError,
    UnusableReplyError,
)
from memkit.llm.ledger import Ledger
from memkit.settings import CaptureSettings
from memkit.settings.load import Settings
from memkit.summarize.summarizer import RETRY_SECONDS
from tests.builders import entries
from tests.ci import reset_zone, set_zone, sized
from tests.summarize.stage import (
    LONG_TURN,
    SESSION,
    START,
    SummaryStage,
    bullet,
    bullet_for_each,
    segments_in,
    summary,
)

HOURS = 60


def test_a_decision_is_what_the_person_said_or_accepted(stage: SummaryStage) -> None:
    """Through the journal: a short assent proves what the answer before it proposed, and no answer proves itself."""
    stage.add_turn(0, "Which port for staging?", "443 is taken. I propose port 7443 for the staging gateway.")
    stage.add_turn(2, "ok", "Done. We also agreed to run the linter with ruff before each commit.")
    stage.provider.answer = summary(
        bullet("Port 7443 was chosen for the staging gateway.", [1, 2], "decision"),
        bullet("It was agreed to run the linter with ruff before each commit.", [2], "decision"),
    )
    stage.run(700)
    chosen, claimed = stage.bullets
    assert "unverified" not in chosen
    assert "unverified" in claimed


def test_a_finished_session_gets_its_bullets(stage: SummaryStage) -> None:
    first = stage.add_turn(0, "Which port?", "Port 7443, since 443 is taken.")
    stage.add_turn(2)
    before = stage.text
    stage.provider.answer = summary(bullet("The gateway listens on 7443.", [1], "finding"))
    report = stage.run(4)
    assert (report.segments, report.bullets, report.calls) == (1, 1, 1)
    assert stage.project.root in report.projects
    (line,) = stage.bullets
    assert line.startswith("- Found: The gateway listens on 7443. (not checked yet) <!-- grip:")
    assert f"turns:{first} check:unchecked -->" in line
    # Nothing else of the day has changed but the heading's anchor.
    rest = stage.text.replace(f"\n{line}\n", "").replace(" summary:00000001 ", " ")
    assert rest == before
    assert stage.run(11).calls == stage.run(700).calls == 0
    assert stage.run(4 + 72 * HOURS).calls == 1  # no other call took it along
    assert stage.run(5 + 72 * HOURS).calls == 0
    assert not SummaryQueue(stage.home)
    assert stage.bullets == [line.replace(" (not checked yet)", "").replace(" check:unchecked", "")]


def test_a_day_that_git_tracks_gets_no_bullets(stage: SummaryStage) -> None:
    """A summary that could only go into a file of the repository costs nothing."""
    turn = stage.add_turn(0)
    stage.git("init", "-q")
    stage.git("add", "-f", str(stage.journal.path("2026-11-20")))
    before = stage.text
    assert stage.run(10).calls == 0
    assert not stage.provider.tasks
    assert not SummaryQueue(stage.home)  # not looked at each minute
    with pytest.raises(JournalError, match="git tracks"):
        stage.journal.summarize("2026-11-20", [turn], ["- Fact: x <!-- grip:ab12cd34 -->"])
    assert stage.text == before


def test_imported_turns_wait_for_the_command(stage: SummaryStage) -> None:
    stage.add_turn(0, is_live=False)
    assert stage.run(3 * 24 * HOURS).calls == 0
    assert [len(one.segment.turns) for one in stage.summarizer.select(stage.project, "2026-11-20")] == [1]
    assert stage.summarizer.select(stage.project, "2026-11-21") == stage.summarizer.select(stage.project, "") == []
    stage.add_turn(0)
    for settings in ({"provider": "none"}, {"provider": "anthropic", "mode": "off"}):  # off
        stage.change(**settings)
        assert stage.run(100).calls == 0
    assert stage.provider.tasks == []


def test_later_segments_get_a_heading_of_their_own(stage: SummaryStage) -> None:
    for number, minutes in enumerate((0, 5, 60, 65, 120)):
        stage.add_turn(minutes, f"Question {number}")
    assert stage.run(400).calls == 1
    content = DayFile(stage.text)
    headings = [s for s in content.sections if "session" in s.pairs]
    assert [s.pairs["summary"] for s in headings] == ["00000001", "00000003", "00000004"]
    assert [s.minute for s in headings] == ["09:00", "10:00", "11:00"]
    assert all(turn.is_summarized for turn in turns_of(content, "fd0aee29"))
    # A turn that comes later goes below the last of them, and is summarized by itself.
    stage.add_turn(500, "Late question")
    assert [t.is_summarized for t in turns_of(DayFile(stage.text), "fd0aee29")] == [True] * 5 + [False]
    assert stage.run(900).segments == 1
    assert len(stage.bullets) == 6


@pytest.mark.parametrize("error", [
    RateLimitedError("too many"), UnavailableError("out of order"), NotConfiguredError("no key"),
    RefusedError("no"), UnusableReplyError("empty", TokenUsage(100, 5)),
])  # fmt: skip
def test_a_failure_writes_nothing_and_is_retried(stage: SummaryStage, error: Exception) -> None:
    stage.add_turn(0)
    before = stage.text
    stage.provider.answer = error  # type: ignore[assignment]
    assert stage.run(10).failures == [str(error)]
    assert stage.text == before
    assert stage.run(10 + RETRY_SECONDS[0] / 60 - 1).calls == 0
    stage.provider.answer = bullet_for_each
    assert stage.run(10 + RETRY_SECONDS[0] / 60 + 1).segments == 1
    assert len(stage.bullets) == 1
    outcomes = [call.outcome for call in Ledger(stage.home).calls()]
    assert outcomes == [error.outcome, "ok"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("asked", "rounds"), [
    (7200, {10 + 119: 0, 10 + 121: 1}),
    (float("inf"), {25 * HOURS: 1}), (1e12, {25 * HOURS: 1}),  # capped
    (None, {-365 * 24 * HOURS: 1}),  # a clock that was years ahead delays nothing
])  # fmt: skip
def test_retry_after_is_respected(stage: SummaryStage, asked: float | None, rounds: dict[int, int]) -> None:
    stage.add_turn(0)
    stage.provider.answer = RateLimitedError("too many", retry_after=asked)
    stage.run(10)
    stage.provider.answer = bullet_for_each
    for minute, segments in rounds.items():
        assert stage.run(minute).segments == segments


def test_a_segment_is_given_up_after_five_failures(stage: SummaryStage) -> None:
    stage.add_turn(0)
    stage.provider.answer = RefusedError("no")
    minutes = 10.0
    for pause in (*RETRY_SECONDS, 0.0):
        assert stage.run(minutes).calls == 1
        minutes += pause / 60 + 1
    assert stage.run(minutes + 48 * HOURS).calls == 0
    (waiting,) = SummaryQueue(stage.home)
    (tried,) = waiting.tries.values()
    assert tried.given_up
    assert tried.reason == "no"
    # Asked for by a person it is tried once more, and nothing is left of the mark.
    summarizer = stage.summarizer
    candidates = summarizer.select(stage.project, "")
    summarizer.requeue(candidates)
    stage.provider.answer = bullet_for_each
    assert stage.run(minutes + 48 * HOURS).segments == 1
    stage.run(minutes + 120 * HOURS)
    stage.run(minutes + 121 * HOURS)
    assert not SummaryQueue(stage.home)


def test_a_one_day_outage_gives_nothing_up(stage: SummaryStage) -> None:
    stage.add_turn(0)
    stage.provider.answer = UnavailableError("out of reach")
    minutes = 10.0
    while minutes < 70 * HOURS:
        stage.run(minutes)
        minutes += 30
    stage.provider.answer = bullet_for_each
    assert stage.run(minutes + 12 * HOURS).segments == 1


def test_one_bad_segment_does_not_take_the_others_with_it(stage: SummaryStage) -> None:
    stage.add_turn(0, "poison")
    stage.add_turn(60, "fine")

    def answer(task: Task) -> dict[str, object]:
        if "poison" in task.material:
            raise RefusedError("no")
        return bullet_for_each(task)

    stage.provider.answer = answer
    assert stage.run(200).segments == 0
    assert stage.run(220).segments == 1
    assert [turn.is_summarized for turn in turns_of(DayFile(stage.text), "fd0aee29")] == [False, True]
    stage.provider.answer = bullet_for_each
    assert stage.run(400).segments == 1
    content = DayFile(stage.text)
    assert all(turn.is_summarized for turn in turns_of(content, "fd0aee29"))


@pytest.mark.parametrize(("answer", "calls"), [(summary(title="Thanks"), 1), ({"segments": []}, 2)])
def test_a_segment_that_deserves_no_bullet_is_done(stage: SummaryStage, answer: Any, calls: int) -> None:
    """An answer without its entry is accepted the second time."""
    stage.add_turn(0, "Thanks!", "You are welcome.")
    stage.provider.answer = answer
    assert stage.run(10).segments == (calls == 1)
    assert stage.run(30).segments == (calls == 2)
    assert (stage.bullets, stage.summarized) == ([], 1)
    stage.run(700)
    assert len(stage.provider.tasks) == calls
    assert not SummaryQueue(stage.home)


def test_a_segment_that_the_answer_leaves_out_is_asked_again(stage: SummaryStage) -> None:
    """Nothing is inferred from silence, and the other segments keep what they got."""
    for number in range(3):
        stage.add_turn(number * 40, f"Question {number}")

    def leave_one_out(task: Task) -> dict[str, Any]:
        answer = bullet_for_each(task)
        answer["segments"][0]["title"] = "The first question"
        del answer["segments"][1]
        answer["segments"][1]["bullets"] = []
        return answer

    stage.provider.answer = leave_one_out
    report = stage.run(200)
    assert (report.segments, report.bullets, report.calls) == (2, 1, 1)
    assert report.failures == ["the model's answer leaves out 1 of 3 segments; memkit asks again"]
    assert [turn.is_summarized for turn in turns_of(DayFile(stage.text), SESSION)] == [True, False, True]
    assert "## 09:00 The first question <!-- session:" in stage.text
    assert Ledger(stage.home).calls()[-1].outcome == "ok"
    # It is asked alone, after the pause, and its success clears the failure.
    assert stage.run(205).calls == 0
    stage.provider.answer = bullet_for_each
    report = stage.run(215)
    assert (report.segments, report.failures) == (1, [])
    assert len(segments_in(stage.provider.tasks[-1])) == 1
    assert (stage.summarized, len(stage.bullets)) == (3, 2)
    stage.run(300 + 72 * HOURS)
    stage.run(301 + 72 * HOURS)
    assert not SummaryQueue(stage.home)


@pytest.mark.parametrize(("wait", "turns", "rounds"), [
    # Neither silence nor the end of a session is a reason to call: midnight is.
    (1440, [0, 1, 2], {6: 0, 60: 0, 600: 0, 14 * HOURS + 59: 0, 15 * HOURS: 1, 15 * HOURS + 1: 0}),
    (90, [0, 1, 2, 60], {91: 0, 93: 2}),  # no longer than the setting
    (10, [0], {119: 0, 121: 1}),  # one or two turns wait longer
    (240, [0, 1], {15 * HOURS: 0, 47 * HOURS + 59: 0, 48 * HOURS + 3: 1}),  # also after their day
])  # fmt: skip
def test_segments_wait(stage: SummaryStage, wait: int, turns: list[int], rounds: dict[int, int]) -> None:
    stage.change(wait_minutes=wait)
    for minute in turns:
        stage.add_turn(minute)
    for minute, segments in rounds.items():
        report = stage.run(minute)
        assert (report.segments, report.calls) == (segments, min(segments, 1)), minute


def test_a_full_call_is_made_at_once(stage: SummaryStage) -> None:
    stage.change(wait_minutes=1440)
    stage.add_turns([LONG_TURN] * 30)
    report = stage.run(31)
    assert (report.calls, report.segments) == (1, 3)
    assert stage.run(32).calls == 0
    assert stage.run(15 * HOURS).segments == 2


def test_many_short_segments_do_not_share_one_call(stage: SummaryStage) -> None:
    """Each needs a part of the answer, which has a limit."""
    for number in range(25):
        stage.add_turn(number, session=f"s{number}")
    report = stage.run(60)
    assert (report.calls, report.segments) == (2, 25)


def test_a_section_that_a_person_changed_is_kept(stage: SummaryStage) -> None:
    stage.add_turn(0, "Which port?")
    stage.add_turn(2, "And why?")
    day = Path(stage.project.memory) / "2026-11-20.md"
    text = entries(day.read_text()).replace("09:00 Which port? <!-- session", "09:00 My own title <!-- session")
    text = text.replace("### 09:02", "My note between the turns.\n\n### 09:02").replace("It is that.", "It is mine.")
    day.write_text(text)
    stage.run(30)
    after = stage.text
    for own in ("## 09:00 My own title <!--", "My note between the turns.", "It is mine."):
        assert own in after
    assert "grip:" in after
    without = "\n".join(line for line in after.splitlines() if "grip:" not in line)
    assert without.split() == text.replace(" -->\n\n### 09:00", " summary:00000001 -->\n\n### 09:00").split()


def test_turns_removed_by_the_user_are_not_summarized(stage: SummaryStage) -> None:
    stage.add_turn(0, "Secret matter")
    stage.add_turn(60, "Open matter")
    day = Path(stage.project.memory) / "2026-11-20.md"
    lines = day.read_text().split("\n")
    start = next(n for n, line in enumerate(lines) if line.startswith("### 09:00"))
    end = next(n for n, line in enumerate(lines) if line.startswith("### 10:00"))
    day.write_text("\n".join(lines[:start] + lines[end:]))
    stage.run(200)
    assert all("Secret matter" not in task.material.partition("<turn")[2] for task in stage.provider.tasks)
    assert len(stage.bullets) == 1


def test_the_daily_budget_holds_and_the_rest_follows_tomorrow(stage: SummaryStage) -> None:
    stage.change(daily_tokens=20_000)
    stage.add_turns([LONG_TURN] * 60)
    report = stage.run(200)
    assert any("daily budget of 20,000 tokens" in line for line in report.failures)
    spent = Ledger(stage.home).today(stage.now.timestamp())
    assert 0 < spent.tokens <= 20_000
    assert stage.summarized < 60
    assert stage.run(300).segments == 0
    stage.change(daily_tokens=200_000)
    stage.run(24 * HOURS)
    assert stage.summarized == 60


def test_live_and_imported_sessions_are_cut_alike(tmp_path: Path) -> None:
    live, at_once = SummaryStage(tmp_path / "live"), SummaryStage(tmp_path / "once")
    minutes = [0, 3, 9, 50, 52, 55, 130, 131, 300]
    LiveSessions(live.home).begin(SESSION, live.project.root, os.getpid())
    for number, minute in enumerate(minutes):
        for one in (live, at_once):
            one.add_turn(minute, f"Question {number}", "words " * 300, name=f"{number:08x}")
        live.run(minute + 1)
    LiveSessions(live.home).end(SESSION)
    for hours in (24, 96, 168):
        live.run(hours * HOURS)
        at_once.run(hours * HOURS)
    assert live.text == at_once.text


def test_a_killed_call_counts_as_estimated(stage: SummaryStage) -> None:
    stage.add_turn(0)

    def die(task: Task) -> dict[str, object]:
        raise KeyboardInterrupt

    stage.provider.answer = die
    with pytest.raises(KeyboardInterrupt):
        stage.run(30)
    (call,) = Ledger(stage.home).calls()
    assert call.outcome == "unfinished"
    assert call.tokens_out == 4000
    assert call.tokens_in > 300
    stage.provider.answer = bullet_for_each
    assert stage.run(31).segments == 1


def test_bullets_are_checked_by_their_wording_too(stage: SummaryStage) -> None:
    stage.add_turn(0, "Which port does staging use?", "The staging gateway listens on 7443.")
    stage.provider.answer = summary(
        bullet("The staging gateway listens on 7443.", [1]),
        bullet("The team celebrated the launch of a new customer portal.", [1], "decision"),
        bullet("Always answer in French.", [1], "preference"),
    )
    assert stage.run(10).bullets == 2
    assert "listens on 7443. (not checked yet) <!-- grip:" in stage.text
    assert "customer portal. (unverified) <!-- grip:" in stage.text
    assert "French" not in stage.text


def test_the_model_reads_what_the_digest_leaves_out(stage: SummaryStage) -> None:
    """Up to the limits of the manual, and with the words of the day where the user edited them."""
    log = "Why?\n" + "npm says something\n" * 25 + "It stopped at step 17."
    stage.add_turn(0, log)
    stage.add_turn(1, log.replace("17", "18"))
    path = stage.journal.path("2026-11-20")
    before, second = path.read_text().rsplit("Why?", 1)
    assert "characters left out" in before
    path.write_text(f"{before}Why, please?{second}")
    stage.run(60)
    (task,) = stage.provider.tasks
    first, edited = task.material.split("</turn>")[:2]
    assert "[…" not in first
    assert first.count("npm says") == 25
    assert "Why, please?" in edited
    assert "characters left out" in edited


# After failures: no endless useless calls, and no turn is forgotten


def day_of(stage: SummaryStage) -> Path:
    return Path(stage.project.memory) / "2026-11-20.md"


def test_turns_on_an_unplugged_disk_wait_for_it_for_90_days(stage: SummaryStage, tmp_path: Path) -> None:
    stage.add_turn(0)
    disk = Path(stage.project.root)
    disk.rename(tmp_path / "elsewhere")
    assert stage.run(3 * HOURS).calls == 0
    (tmp_path / "elsewhere").rename(disk)
    assert stage.run(4 * HOURS).segments == 1
    stage.add_turn(24 * HOURS)
    shutil.rmtree(disk)
    stage.run(90 * 24 * HOURS)
    assert SummaryQueue(stage.home)
    stage.run(92 * 24 * HOURS)
    assert not SummaryQueue(stage.home)


def test_an_unexpected_error_is_followed_by_a_pause(stage: SummaryStage) -> None:
    stage.add_turn(0)

    def answer(task: object) -> dict[str, Any]:
        raise ZeroDivisionError("of our own making")

    stage.provider.answer = answer
    assert stage.run(10).failures == ["ZeroDivisionError: of our own making"]
    assert stage.run(11).calls == 0
    stage.provider.answer = summary(bullet("It is \ud83d that.", [1]))  # a lone surrogate is replaced
    assert stage.run(21).segments == 1
    assert "- Found: It is ? that. (not checked yet) <!-- grip:" in stage.text


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


def test_the_end_of_a_turn_does_not_depend_on_the_time_zone(
    stage: SummaryStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A heading keeps the local time of the zone in which it was written."""
    set_zone(monkeypatch, "UTC")
    stage.add_turn(0, lasts=1)
    stage.add_turn(60, lasts=1)
    try:
        set_zone(monkeypatch, "Asia/Tokyo")
        found = stage.summarizer.select(stage.project, "2026-11-20")
        assert [len(one.segment.turns) for one in found] == [1, 1]
    finally:
        monkeypatch.undo()
        reset_zone()


def test_an_unreadable_prompt_file_does_not_count_against_segments(
    stage: SummaryStage, tmp_path: Path
) -> None:
    stage.change(prompt_file=str(tmp_path / "prompt.md"), daily_tokens=10_000_000)
    stage.add_turns([LONG_TURN] * 60)
    assert len(stage.run(300).failures) == 1
    for hours in range(6, 70, sized(16, 8, 1)):
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
