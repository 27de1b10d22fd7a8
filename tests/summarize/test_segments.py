"""The cuts between segments depend only on the turns."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkit.settings import SummarizeSettings
from memkit.summarize.segments import Segment, SegmentTurn, cut
from memkit.text import estimate_tokens

START = datetime(2026, 11, 20, 9, 0)


def turn(
    number: int, minutes: float, *, lasts: float = 0, tokens: int = 100, compacted: bool = False
) -> SegmentTurn:
    began = START + timedelta(minutes=minutes)
    ended = began + timedelta(minutes=lasts)
    text = f"{number:04d}".ljust(tokens * 4, "x")
    return SegmentTurn(f"t{number}", began.strftime("%H:%M"), began, ended, text, compacted)


def cuts(turns: list[SegmentTurn], **settings: object) -> list[list[str]]:
    made = cut("s", "2026-11-20", turns, [], SummarizeSettings(**settings))  # type: ignore[arg-type]
    return [[one.id for one in segment.turns] for segment in made]


def test_a_pause_ends_a_segment() -> None:
    assert cuts([turn(1, 0), turn(2, 30), turn(3, 61)]) == [["t1", "t2"], ["t3"]]


def test_a_long_turn_is_not_a_pause() -> None:
    assert cuts([turn(1, 0, lasts=50), turn(2, 70)]) == [["t1", "t2"]]


def test_a_segment_ends_before_it_is_too_long() -> None:
    turns = [turn(n, n, tokens=1500) for n in range(5)]
    assert cuts(turns) == [["t0", "t1"], ["t2", "t3"], ["t4"]]


def test_a_turn_longer_than_a_segment_is_one() -> None:
    assert cuts([turn(1, 0), turn(2, 1, tokens=9000), turn(3, 2)]) == [["t1"], ["t2"], ["t3"]]


def test_compaction_ends_a_segment() -> None:
    assert cuts([turn(1, 0), turn(2, 1, compacted=True), turn(3, 2)]) == [["t1", "t2"], ["t3"]]


def test_mode_turn_makes_each_turn_a_segment() -> None:
    assert cuts([turn(1, 0), turn(2, 1)], mode="turn") == [["t1"], ["t2"]]


def test_the_context_is_what_was_said_just_before() -> None:
    turns = [turn(1, 0, tokens=1900), turn(2, 1, tokens=1900), turn(3, 2, tokens=300)]
    first, second = cut("s", "2026-11-20", turns, [], SummarizeSettings())
    assert first.context == ""
    assert second.turns[0].id == "t3"
    assert second.context.startswith("… ") or second.context.startswith("x")
    assert 0 < estimate_tokens(second.context) <= 501
    after_pause = cut("s", "2026-11-20", [turn(1, 0), turn(2, 60)], [], SummarizeSettings())[1]
    assert after_pause.context == ""


@pytest.mark.parametrize(
    ("after_minutes", "is_live", "is_closed"),
    [(0, True, False), (30, True, False), (31, True, True), (0, False, True), (24 * 60, True, True)],
)
def test_when_the_last_segment_is_closed(
    after_minutes: float, is_live: bool, is_closed: bool
) -> None:
    segment = Segment("s", "2026-11-20", (turn(1, 0),))
    now = START + timedelta(minutes=after_minutes)
    assert segment.is_closed(now, SummarizeSettings(), is_live=is_live) is is_closed


def test_chinese_counts_one_token_per_letter() -> None:
    assert estimate_tokens("记忆记忆") == 4
    assert estimate_tokens("abcdefgh") == 2
    assert estimate_tokens("") == 0


made_turns = st.lists(
    st.tuples(
        st.integers(0, 90), st.integers(0, 40), st.integers(1, 5000), st.booleans()
    ),
    min_size=1,
    max_size=30,
)


@given(made_turns, st.integers(1, 29))
def test_a_closed_segment_stays_when_turns_are_added(
    steps: list[tuple[int, int, int, bool]], known: int
) -> None:
    minutes, turns = 0.0, []
    for number, (pause, lasts, tokens, compacted) in enumerate(steps):
        minutes += pause
        turns.append(turn(number, minutes, lasts=lasts, tokens=tokens, compacted=compacted))
        minutes += lasts
    whole = cuts(turns)
    assert [one for segment in whole for one in segment] == [one.id for one in turns]
    early = cut("s", "2026-11-20", turns[:known], [], SummarizeSettings())
    closed = [[one.id for one in segment.turns] for segment in early if segment.is_followed]
    assert closed == whole[: len(closed)]
