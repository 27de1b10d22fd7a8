"""How many calls live sessions cost, through the real journal, queue, and ledger, by a fake clock."""

from __future__ import annotations

import itertools
import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memkit.capture.sessions import LiveSessions
from memkit.llm import (
    RateLimitedError,
    Reply,
    Task,
    TokenUsage,
    UnusableReplyError,
    timeout_error,
)
from memkit.llm.ledger import Ledger, total
from memkit.settings import SummarizeSettings
from memkit.text import estimate_tokens
from tests.ci import only_in_ci, sized
from tests.summarize.stage import LONG_TURN, SummaryStage, bullet_for_each

DAY = 24 * 60
DEFAULTS = SummarizeSettings()

TOKENS = [29, 39, 55, 67, 104, 164, 166, 174, 176, 187, 192, 206, 223, 235, 238, 249, 310, 310, 314,
          350, 358, 376, 382, 402, 407, 410, 413, 444, 452, 519, 533, 650]  # fmt: skip
"""The sizes of 32 turns of real transcripts as a model sees them."""


class Mix(NamedTuple):
    """Sessions of a day: their starts in minutes after nine, and their fewest and most turns."""

    starts: tuple[int, ...]
    fewest: int
    most: int


MIXES = {
    "one session a day": Mix((0,), 12, 40), "two sessions a day": Mix((0, 300), 12, 40),
    "four sessions a day": Mix((0, 120, 240, 420), 12, 40), "three sessions at once": Mix((0, 5, 10), 12, 40),
    "short sessions": Mix((0, 180, 360), 12, 16), "long sessions": Mix((0, 240), 36, 40),
}  # fmt: skip


class Timed(NamedTuple):
    """Something that happens some minutes after the start."""

    minute: float
    session: str
    what: str
    tokens: int = 0


def events(mix: Mix, days: int, dice: random.Random) -> Iterator[Timed]:
    for day in range(days):
        for number, start in enumerate(mix.starts):
            session = f"s{day}x{number}"
            minute = day * DAY + start + dice.uniform(0, 9)
            yield Timed(minute, session, "begin")
            for _ in range(dice.randint(mix.fewest, mix.most)):
                yield Timed(minute, session, "turn", dice.choice(TOKENS))
                minute += dice.uniform(2, 5)
            yield Timed(minute, session, "end")


def simulate(
    stage: SummaryStage, mix: Mix, days: int, step: float = 10, others: Sequence[SummaryStage] = ()
) -> int:
    """Play the days with a round every `step` minutes while a service would run; return the turns.

    Sessions take turns in the projects of `stage` and `others`.
    """
    places = itertools.cycle([stage, *others])
    where: dict[str, SummaryStage] = {}
    live = LiveSessions(stage.home)
    turns = 0
    last_round = -step
    running: set[str] = set()
    for one in sorted(events(mix, days, random.Random(7))):
        while running and last_round + step < one.minute:
            last_round += step
            stage.run(last_round)
        last_round = max(last_round, one.minute - step)
        if one.what == "turn":
            text = "some words " * one.tokens
            prompt, answer = text[: min(one.tokens, 600)], text[: min(3 * one.tokens, 1500)]
            own = where[one.session]
            made = own.turn(
                one.minute, f"{turns} {prompt}", answer, session=one.session, name=f"{turns:08x}", lasts=1
            )
            own.add({one.session: [made]})
            turns += 1
        elif one.what == "begin":
            running.add(one.session)
            where[one.session] = next(places)
            live.begin(one.session, where[one.session].project.root, os.getpid())
            stage.run(one.minute)
        else:
            live.end(one.session)
            running.discard(one.session)
            for minute in (1, 6, 10):  # the service goes after ten idle minutes
                stage.run(one.minute + minute)
    stage.run(days * DAY)
    return turns


def stage_with_defaults(root: Path) -> SummaryStage:
    """A stage that waits as by default, with the default budget."""
    return SummaryStage(root, wait_minutes=DEFAULTS.wait_minutes, daily_tokens=min(60_000, DEFAULTS.daily_tokens))


@pytest.mark.parametrize("name", sized(["short sessions"], ["three sessions at once"], list(MIXES)))
def test_live_sessions_cost_few_calls(tmp_path: Path, name: str) -> None:
    stage = stage_with_defaults(tmp_path)
    turns = simulate(stage, MIXES[name], days=sized(1, 1, 3))
    assert stage.summarized == turns
    calls = Ledger(stage.home).calls()
    assert len(calls) == len(stage.provider.tasks) <= 0.06 * turns
    assert all(call.outcome == "ok" for call in calls)
    spent, used = total(calls), stage.provider.used
    assert spent.tokens_in == sum(one.tokens_in for one in used)
    assert spent.tokens_out == sum(one.tokens_out for one in used)


@pytest.mark.parametrize("name", sized(["short sessions"], ["three sessions at once"], list(MIXES)))
def test_three_projects_cost_no_more_calls_than_one(tmp_path: Path, name: str) -> None:
    stage = stage_with_defaults(tmp_path / "0")
    others = [stage_with_defaults(tmp_path / str(number)) for number in (1, 2)]
    for other in others:
        other.home, other.provider = stage.home, stage.provider
    turns = simulate(stage, MIXES[name], days=sized(1, 1, 3), others=others)
    assert sum(one.summarized for one in (stage, *others)) == turns
    assert len(Ledger(stage.home).calls()) == len(stage.provider.tasks) <= 0.06 * turns


@only_in_ci
def test_one_shots_are_batched(tmp_path: Path) -> None:
    stage = stage_with_defaults(tmp_path)
    turns = simulate(stage, Mix(tuple(range(0, 480, 40)), 1, 1), days=sized(5, 5, 9))
    assert stage.summarized >= turns - 20
    assert len(stage.provider.tasks) <= 0.06 * turns


class Spending:
    """A provider that fails now and then, and knows what each day really cost."""

    name, model = "anthropic", "claude-haiku-4-5"

    def __init__(self, stage: SummaryStage, outcomes: list[tuple[str, int]]) -> None:
        self.stage = stage
        self.outcomes = itertools.cycle(outcomes)
        self.tokens: Counter[date] = Counter()
        self.calls: Counter[date] = Counter()

    def ask(self, task: Task) -> Reply:
        outcome, written = next(self.outcomes)
        read = estimate_tokens(task.instructions) + estimate_tokens(task.material)
        usage = TokenUsage(read, min(written, task.max_tokens))
        day = self.stage.now.date()
        self.calls[day] += 1
        if outcome == "refused at once":
            raise RateLimitedError("too many")
        if outcome == "timeout":  # what was used is unknown, so it may be all
            self.tokens[day] += read + task.max_tokens
            raise timeout_error("anthropic", 60)
        self.tokens[day] += usage.tokens_in + usage.tokens_out
        if outcome == "unusable":
            raise UnusableReplyError("no structure", usage)
        answer = bullet_for_each(task)
        if outcome == "left out":
            del answer["segments"][0]
        return Reply(answer, usage, self.model)


OUTCOMES = st.sampled_from(["ok", "ok", "left out", "unusable", "timeout", "refused at once"])


@settings(max_examples=sized(3, 4, 20), suppress_health_check=[HealthCheck.too_slow])
@given(
    daily=st.integers(4_000, 70_000),
    outcomes=st.lists(st.tuples(OUTCOMES, st.integers(0, 5_000)), min_size=1, max_size=8),
    steps=st.lists(st.tuples(st.integers(1, 600), st.integers(0, 25)), min_size=3, max_size=12),
)
def test_the_budget_is_never_exceeded(
    tmp_path_factory: pytest.TempPathFactory, daily: int, outcomes: list[tuple[str, int]],
    steps: list[tuple[int, int]],
) -> None:  # fmt: skip
    stage = SummaryStage(tmp_path_factory.mktemp("stage"), daily_tokens=daily, wait_minutes=0)
    spending = Spending(stage, outcomes)
    stage.provider = spending  # type: ignore[assignment]
    minute = 0
    for pause, turns in steps:
        minute += pause
        made = [
            stage.turn(minute + n, *LONG_TURN, session=f"s{minute}", name=f"{minute:06x}{n:02x}")
            for n in range(turns)
        ]
        if made:
            stage.add({f"s{minute}": made})
        stage.run(minute + 30)
        stage.run(minute + 45)
    assert all(tokens <= daily for tokens in spending.tokens.values())
    ledger = Ledger(stage.home).calls()
    assert Counter(date.fromisoformat(call.day) for call in ledger) == spending.calls
