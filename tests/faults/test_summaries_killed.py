"""A process that summarizes, killed at each of its steps on the disk, and followed by another one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from memkit.capture.summary_queue import SummaryQueue
from memkit.journal.day_file import DayFile
from memkit.journal.day_summaries import turns_of
from memkit.journal.files import replaced_files
from memkit.llm.ledger import Ledger
from tests.ci import IN_CI
from tests.forget.remembered import Prepared
from tests.summarize.rollup_stage import WEEKS, RollupStage
from tests.summarize.stage import SummaryStage
from tests.topics.names_stage import NAMED, NameStage

REPOSITORY = Path(__file__).resolve().parents[2]

DYING = """
import os, sys
from pathlib import Path

steps = int(sys.argv[2])

def dying(call):
    def wrapper(*arguments, **named):
        global steps
        steps -= 1
        if steps == 0:
            os._exit(9)  # no cleaning up, as after SIGKILL
        return call(*arguments, **named)
    return wrapper

def begin():
    for name in ("fsync", "replace", "unlink", "open"):
        setattr(os, name, dying(getattr(os, name)))
"""
"""What would be step `sys.argv[2]` on the disk ends the process."""

SUMMARIES = """
from tests.summarize.stage import SummaryStage

stage = SummaryStage(Path(sys.argv[1]))
begin()
stage.run(200)
stage.run(400)
"""

ROLLUPS = """
from tests.summarize.rollup_stage import RollupStage

stage = RollupStage(Path(sys.argv[1]))
begin()
stage.run_job()
"""

ASKED = """
from tests.summarize.rollup_stage import RollupStage

stage = RollupStage(Path(sys.argv[1]), daily_tokens=1_000_000)
begin()
stage.asked("2026-09").make()
"""


TOPICS = """
from tests.topics.names_stage import NameStage

stage = NameStage.at(Path(sys.argv[1]))
begin()
stage.run_job()
"""


def run(script: str, root: Path, die_at: int) -> int:
    command = [sys.executable, "-c", DYING + script, str(root), str(die_at)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(command, env=environment, check=False).returncode


def test_killed_at_each_step_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    step, statuses = 0, []
    while 0 not in statuses:
        step += 1 if IN_CI else 13
        stage = SummaryStage(tmp_path / str(step))
        for number, minutes in enumerate((0, 5, 60, 130)):
            stage.add_turn(minutes, f"Question {number}")
        undisturbed = [turn.section.heading for turn in turns_of(DayFile(stage.text), "fd0aee29")]
        statuses.append(run(SUMMARIES, tmp_path / str(step), step))
        calls = len(Ledger(stage.home).calls())
        stage.run(200)
        stage.run(400)
        content = DayFile(stage.text)
        turns = turns_of(content, "fd0aee29")
        assert [turn.section.heading for turn in turns] == undisturbed
        assert all(turn.is_summarized for turn in turns)
        assert len(stage.bullets) == len(set(stage.bullets)) == 4
        assert not SummaryQueue(stage.home)
        # What was paid for and lost is one call at most, and it is in the ledger.
        assert len(Ledger(stage.home).calls()) <= calls + 1 <= 3
    assert set(statuses) == {0, 9}
    assert step > 10


def test_a_killed_rollup_is_made_once(tmp_path: Path) -> None:
    whole = RollupStage(tmp_path / "whole")
    whole.add_week(WEEKS[0])
    whole.add_week(WEEKS[1])
    whole.run_job()
    undisturbed = whole.file("2026-W37"), whole.file("2026-W38")
    step, statuses = 0, []
    while 0 not in statuses:
        step += 2 if IN_CI else 13
        stage = RollupStage(tmp_path / str(step))
        stage.add_week(WEEKS[0])
        stage.add_week(WEEKS[1])
        statuses.append(run(ROLLUPS, tmp_path / str(step), step))
        done = sum(Path(stage.project.memory, f"2026-W{week}.md").exists() for week in (37, 38))
        calls = len(Ledger(stage.home).calls())
        stage.run_job()
        assert (stage.file("2026-W37"), stage.file("2026-W38")) == undisturbed
        # What was paid for and lost is one call at most. With both weeks done, the month is next.
        assert len(Ledger(stage.home).calls()) == calls + (2 - done or 1) <= 3
        assert replaced_files(stage.home, None) == []
    assert set(statuses) == {0, 9}
    assert step > 10


def test_a_killed_rollup_that_was_asked_for_goes_on(tmp_path: Path) -> None:
    """Two weeks, and the month that rests on them."""

    def stage_at(name: str) -> RollupStage:
        stage = RollupStage(tmp_path / name, daily_tokens=1_000_000)
        for monday in WEEKS[:2]:
            stage.import_week(monday, 150, words=60)
        return stage

    names = ("2026-W37", "2026-W38", "2026-09")
    whole = stage_at("whole")
    assert whole.asked("2026-09").make().calls == 3
    undisturbed = [whole.file(name) for name in names]
    step, statuses = 0, []
    while 0 not in statuses:
        step += 5 if IN_CI else 17
        stage = stage_at(str(step))
        statuses.append(run(ASKED, tmp_path / str(step), step))
        calls = len(Ledger(stage.home).calls())
        done = sum(Path(stage.project.memory, f"{name}.md").exists() for name in names)
        report = stage.asked("2026-09").make()
        assert (report.calls, report.failures) == (3 - done, [])
        assert calls + report.calls <= 4  # what was paid for and lost is one call at most
        assert [stage.file(name) for name in names] == undisturbed
    assert set(statuses) == {0, 9}


def test_killed_while_topics_are_named_at_most_one_call_is_lost(tmp_path: Path) -> None:
    prepared = Prepared(tmp_path, NameStage)
    step, statuses = 0, []
    while 0 not in statuses:
        step += 2 if IN_CI else 13
        stage = prepared.copy()
        words = stage.labels
        statuses.append(run(TOPICS, tmp_path / "work", step))
        assert stage.labels in (words, NAMED)  # all or none
        is_named, calls = stage.labels == NAMED, len(stage.calls)
        stage.run_job()
        assert stage.labels == NAMED
        assert len(stage.calls) == calls + (not is_named) <= 2
    assert set(statuses) == {0, 9}
    assert step > 10
