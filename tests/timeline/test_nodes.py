"""Names of nodes: years, months, and ISO weeks, and which is in which."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkit.timeline.nodes import day_of, parent_of, parse_span, path_of, week_of
from memkit.timeline.summary import telling, words_of

DAYS = st.dates()


@pytest.mark.parametrize(
    ("name", "kind", "first", "last", "parent"),
    [
        ("2026", "year", "2025-12-29", "2027-01-03", ""),
        ("2026-11", "month", "2026-11-02", "2026-11-29", "2026"),
        ("2026-W47", "week", "2026-11-16", "2026-11-22", "2026-11"),
        ("2026-11-20", "day", "2026-11-20", "2026-11-20", "2026-W47"),
        ("2026-W01", "week", "2025-12-29", "2026-01-04", "2026-01"),
        ("2026-W53", "week", "2026-12-28", "2027-01-03", "2026-12"),
        ("2026-11-01", "day", "2026-11-01", "2026-11-01", "2026-W44"),
        ("2024-02-29", "day", "2024-02-29", "2024-02-29", "2024-W09"),
    ],
)
def test_periods(name: str, kind: str, first: str, last: str, parent: str) -> None:
    span = parse_span(name)
    assert span is not None
    assert (span.kind, str(span.first), str(span.last), parent_of(span)) == (kind, first, last, parent)


def test_other_names_are_none() -> None:
    for name in (
        "2026-W54", "2025-W53", "2026-W00", "2026-13", "2026-00", "2026-02-30", "0000", "0000-01", "20261120", "2026-1",
        "2026-W7", "2026-w47", "2026-11-20 ", " 2026", "2026\n", "٢٠٢٦", "-2026", "2026-11-20T00", "W47", "today",
    ):  # fmt: skip
        assert parse_span(name) is None, name


@given(DAYS)
def test_each_day_is_in_one_node_of_each_level_and_their_parents(day: date) -> None:
    path = path_of(day)
    spans = [parse_span(name) for name in path]
    for span in spans:
        assert span is not None
        assert span.name in path
        assert span.holds(day)
    above = ["", *path[:-1]]
    assert [parent_of(span) for span in spans if span] == above
    assert path[2] == week_of(day)
    assert day_of(f"{day.isoformat()}.local") == day


@given(st.dates(date(2, 1, 1), date(9998, 1, 1)))
def test_neighbors_meet_without_a_gap(day: date) -> None:
    for name in path_of(day)[:3]:
        span = parse_span(name)
        assert span is not None
        after = span.last + timedelta(days=1)
        level = ["year", "month", "week"].index(span.kind)
        following = parse_span(path_of(after)[level])
        assert following is not None
        assert following.first == after
        assert (span.first.weekday(), span.last.weekday()) == (0, 6)


@given(st.text(max_size=12) | st.from_regex(r"[0-9]{4}(-[W0-9]{1,3}){0,3}", fullmatch=True))
def test_any_text_is_a_node_or_none(name: str) -> None:
    span = parse_span(name)
    assert span is None or (span.name == name and span.first <= span.last)


# The words that set a stretch of time apart


def test_words_that_name_a_subject() -> None:
    found = words_of("Please fix the Gateway: src/app.py, PolicyController, ERR_404 (again!) and 12 tests, a --flag.")
    assert found == {"gateway", "src/app.py", "PolicyController", "ERR_404", "flag"}
    assert words_of("x" * 41 + " --- 2026-11-20 7443 é") == set()
    assert {"請求", "求書"} <= words_of("請求書を直す")


def test_what_is_frequent_here_and_rare_elsewhere_comes_first() -> None:
    november = Counter({"gateway": 9, "deploy": 9, "typo": 2, "once": 1})
    everything = november + Counter({"deploy": 90, "typo": 40, "billing": 50})
    assert telling(november, 20, everything, 220, 5) == ["gateway"]
    assert telling(november, 20, everything, 220, 0) == []
    words = {"gateway": 3, "billing": 5, "once": 1}
    assert telling(words, 9, words, 9, 5) == ["billing", "gateway"]
    assert telling({"once": 1}, 1, {"once": 1}, 1, 5) == ["once"]
