"""A process that summarizes, killed at each of its steps on the disk, and followed by another one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from memkit.capture.summary_queue import SummaryQueue
from memkit.journal.day_file import DayFile
from memkit.journal.day_summaries import turns_of
from memkit.journal.files import replaced_files
from memkit.llm.ledger import Ledger
from tests.ci import sized
from tests.forget.remembered import Prepared
from tests.summarize.rollup_stage import WEEKS, RollupStage
from tests.summarize.stage import SummaryStage
from tests.topics.names_stage import NAMED, NameStage

REPOSITORY = Path(__file__).resolve().parents[2]

DYING = """
import os, sys
from pathlib import Path

def dying(call, steps):
    def wrapper(*arguments, **named):
        steps[0] -= 1
        if steps[0] == 0:
            os._exit(9)  # no cleaning up, as after SIGKILL
        return call(*arguments, **named)
    return wrapper

def begin(die_at):
    steps = [die_at]
    for name in ("fsync", "replace", "unlink", "open"):
        setattr(os, name, dying(getattr(os, name), steps))

def serve(prepare, work):
    for line in sys.stdin:
        die_at, root = line.rstrip("\\n").split(" ", 1)
        child = os.fork()
        if child == 0:
            try:
                stage = prepare(Path(root))
                begin(int(die_at))
                work(stage)
            except BaseException:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Does the work once for each line that it reads, in a child of its own. The child ends at what would be step
`die_at` on the disk. Imports happen once, before."""

SUMMARIES = """
from tests.summarize.stage import SummaryStage

serve(SummaryStage, lambda stage: (stage.run(200), stage.run(400), stage.run(5_000)))
"""

ROLLUPS = """
from tests.summarize.rollup_stage import RollupStage

serve(RollupStage, lambda stage: stage.run())
"""

ASKED = """
from tests.summarize.rollup_stage import RollupStage

serve(
    lambda root: RollupStage(root, daily_tokens=1_000_000),
    lambda stage: stage.asked("2026-09").make(),
)
"""

TOPICS = """
from tests.topics.names_stage import NameStage

serve(NameStage.at, lambda stage: stage.name())
"""

Run = Callable[[Path, int], int]
"""Does the work in this directory, and dies at this step; returns the status: 9 if it died."""


@contextmanager
def dying(script: str) -> Iterator[Run]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(
        [sys.executable, "-c", DYING + script],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        requests, answers = process.stdin, process.stdout

        def run(root: Path, die_at: int) -> int:
            print(die_at, root, file=requests, flush=True)
            return int(answers.readline())

        yield run
        requests.close()


Made = TypeVar("Made")


def deaths(script: str, stride: int, prepare: Callable[[int], tuple[Path, Made]]) -> Iterator[Made]:
    """Yield what `prepare` made once a process that worked on it has died, a `stride` later each time."""
    step, statuses = 0, []
    with dying(script) as run:
        while 0 not in statuses:
            step += stride
            root, made = prepare(step)
            statuses.append(run(root, step))
            yield made
    assert set(statuses) == {0, 9}
    assert step > 10


def test_killed_at_each_step_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    def prepare(step: int) -> tuple[Path, SummaryStage]:
        stage = SummaryStage(tmp_path / str(step))
        for number, minutes in enumerate((0, 5, 60, 130)):
            stage.add_turn(minutes, f"Question {number}")
        return tmp_path / str(step), stage

    undisturbed = [turn.section.heading for turn in turns_of(DayFile(prepare(0)[1].text), "fd0aee29")]
    for stage in deaths(SUMMARIES, sized(13, 5, 1), prepare):
        calls = len(Ledger(stage.home).calls())
        stage.run(5_200)
        assert len(Ledger(stage.home).calls()) <= max(calls, 2) + 1
        # Bullets that are not checked yet wait three days for a call, and keep their day in the queue.
        stage.run(10_000)
        assert stage.run(10_200).calls == 0
        content = DayFile(stage.text)
        turns = turns_of(content, "fd0aee29")
        assert [turn.section.heading for turn in turns] == undisturbed
        assert all(turn.is_summarized for turn in turns)
        assert len(stage.bullets) == len(set(stage.bullets)) == 4
        assert "(not checked yet)" not in stage.text
        assert not SummaryQueue(stage.home)
        # What was paid for and lost is one call at most, and it is in the ledger.
        made = Ledger(stage.home).calls()
        assert len(made) <= 3
        assert {call.purpose for call in made} == {"summarize", "check"}


def test_a_killed_rollup_is_made_once(tmp_path: Path) -> None:
    def stage_at(root: Path) -> RollupStage:
        stage = RollupStage(root)
        stage.add_week(WEEKS[0])
        stage.add_week(WEEKS[1])
        return stage

    prepared = Prepared(tmp_path, stage_at)
    whole = prepared.copy()
    whole.run()
    undisturbed = whole.file("2026-W37"), whole.file("2026-W38")
    for stage in deaths(ROLLUPS, sized(13, 5, 2), lambda step: (tmp_path / "work", prepared.copy())):
        done = sum(Path(stage.project.memory, f"2026-W{week}.md").exists() for week in (37, 38))
        calls = len(Ledger(stage.home).calls())
        stage.run()
        assert (stage.file("2026-W37"), stage.file("2026-W38")) == undisturbed
        # What was paid for and lost is one call at most. With both weeks done, the month is next.
        assert len(Ledger(stage.home).calls()) == calls + (2 - done or 1) <= 3
        assert replaced_files(stage.home, None) == []


def test_a_killed_rollup_that_was_asked_for_goes_on(tmp_path: Path) -> None:
    """Two weeks, and the month that rests on them."""

    def stage_at(root: Path) -> RollupStage:
        stage = RollupStage(root, daily_tokens=1_000_000)
        for monday in WEEKS[:2]:
            stage.import_week(monday, 150, words=60)
        return stage

    names = ("2026-W37", "2026-W38", "2026-09")
    prepared = Prepared(tmp_path, stage_at)
    whole = prepared.copy()
    assert whole.asked("2026-09").make().calls == 3
    undisturbed = [whole.file(name) for name in names]
    for stage in deaths(ASKED, sized(29, 23, 5), lambda step: (tmp_path / "work", prepared.copy())):
        calls = len(Ledger(stage.home).calls())
        done = sum(Path(stage.project.memory, f"{name}.md").exists() for name in names)
        report = stage.asked("2026-09").make()
        assert (report.calls, report.failures) == (3 - done, [])
        assert calls + report.calls <= 4  # what was paid for and lost is one call at most
        assert [stage.file(name) for name in names] == undisturbed


def test_killed_while_topics_are_named_at_most_one_call_is_lost(tmp_path: Path) -> None:
    prepared = Prepared(tmp_path, NameStage)
    words = prepared.copy().labels
    for stage in deaths(TOPICS, sized(13, 8, 2), lambda step: (tmp_path / "work", prepared.copy())):
        assert stage.labels in (words, NAMED)  # all or none
        is_named, calls = stage.labels == NAMED, len(stage.calls)
        stage.name()
        assert stage.labels == NAMED
        assert len(stage.calls) == calls + (not is_named) <= 2
