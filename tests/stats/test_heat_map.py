"""The calendar: each day of a span once, and levels that never go down."""

from __future__ import annotations

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from memkit.stats import LEVELS, bounds, level, weeks

DATES = st.dates(date(2019, 12, 1), date(2021, 3, 1))


@given(DATES, DATES, st.dictionaries(DATES.map(str), st.integers(0, 50)))
def test_each_day_of_the_span_stands_once(one: date, other: date, counts: dict[str, int]) -> None:
    first, last = sorted((one, other))
    shown = weeks(counts, first, last)
    cells = [count for week in shown for count in week.counts]
    span = [first + timedelta(days) for days in range((last - first).days + 1)]
    assert cells[: first.weekday()] == [None] * first.weekday()
    assert [c for c in cells if c is not None] == [counts.get(str(day), 0) for day in span]
    assert {len(week.counts) for week in shown} == {7}
    begun = [week.month for week in shown if week.month]
    assert begun == [day.month for day in span if day.day == 1]


def test_the_last_week_there_is() -> None:
    (last,) = weeks({"9999-12-31": 3}, date.max, date.max)
    assert last.counts == (None, None, None, None, 3, None, None)
    assert weeks({}, date.min, date.min)[0].month == 1


@given(st.lists(st.integers(0, 1000), min_size=1))
def test_levels(counts: list[int]) -> None:
    limits = bounds(counts)
    levels = [level(count, limits) for count in sorted(counts)]
    assert levels == sorted(levels)
    assert all(
        (its == 0) == (count == 0) for its, count in zip(levels, sorted(counts), strict=True)
    )
    assert levels[-1] == (LEVELS - 1 if max(counts) else 0)


def test_quarters() -> None:
    limits = bounds(range(1, 101))
    levels = [level(count, limits) for count in range(1, 101)]
    assert [levels.count(each) for each in range(LEVELS)] == [0, 25, 25, 25, 25]
