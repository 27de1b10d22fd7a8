"""Days as people name them."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.errors import MemkitError
from memkit.questions.period_days import parse_day
from tests.ci import examples

TODAY = date(2026, 11, 20)
"""A Friday."""

DAYS = {
    "2026-11-20": "2026-11-20", " 2024-02-29 ": "2024-02-29", "2030-01-01": "2030-01-01", "0d": "2026-11-20",
    "3d": "2026-11-17", "3 D": "2026-11-17", "2w": "2026-11-06", "6m": "2026-05-20", "1y": "2025-11-20",
    "today": "2026-11-20", "yesterday": "2026-11-19", "Yesterday": "2026-11-19", "3 days ago": "2026-11-17",
    "two  weeks ago": "2026-11-06", "last monday": "2026-11-16", "last week": "2026-11-13", "thursday": "2026-11-19",
    "20 november": "2026-11-20", "25 november": "2025-11-25", "Dec 24": "2025-12-24", "November 5, 2024": "2024-11-05",
}  # fmt: skip
"""This year's November 25 is still to come."""


@pytest.mark.parametrize(
    ("text", "today", "day"),
    [
        *((text, TODAY.isoformat(), day) for text, day in DAYS.items()), ("1y", "2024-02-29", "2023-02-28"),
        ("4y", "2024-02-29", "2020-02-29"), ("1m", "2024-03-31", "2024-02-29"),
        ("12m", "2024-02-29", "2023-02-28"), ("1d", "2024-03-01", "2024-02-29"),
        ("yesterday", "2026-01-01", "2025-12-31"), ("feb 29", "2026-11-20", "2024-02-29"),
    ],
)
def test_a_day(text: str, today: str, day: str) -> None:
    assert parse_day(text, date.fromisoformat(today)) == date.fromisoformat(day)



@pytest.mark.parametrize(
    "text",
    ["", " ", "nonsense", "5", "2025", "d", "3x", "2026-02-30", "2023-02-29", "2026-13-01",
     "2026-11", "11-20", "-", "99999y", "yesterday\nmonday", "\x00", "last sprint", "10000-01-01", "--help", "0" * 10_000],
)  # fmt: skip
def test_an_error_names_valid_days(text: str) -> None:
    with pytest.raises(MemkitError) as caught:
        parse_day(text, TODAY)
    assert "is not a day: write 2026-11-20, 3d, 2w, yesterday" in str(caught.value)
    assert "\n" not in str(caught.value)


@settings(max_examples=examples(100))
@given(st.text(max_size=20) | st.from_regex(r"[0-9]{1,6} ?[a-z]{1,6}", fullmatch=True))
def test_any_text_is_a_day_or_none(text: str) -> None:
    try:
        assert type(parse_day(text, TODAY)) is date
    except MemkitError as error:
        assert "\n" not in str(error)
