"""When a job runs next."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkit.service.schedule import OFF, next_run
from memkit.settings import JobSettings

NOON = datetime(2026, 11, 20, 12).timestamp()


def hours(schedule: str, last: float) -> float:
    """The hours after noon at which a job runs next that last ran `last` hours after it."""
    found = next_run(schedule, NOON + last * 3600, NOON)
    assert found is not None
    return (found - NOON) / 3600


def test_next_runs() -> None:
    assert hours("every 10m", -1) == pytest.approx(-5 / 6)
    assert hours("every 6h", -1) == 5
    assert hours("every 2d", -1) == 47
    assert hours("daily 03:00", -1) == 15
    assert hours("daily 03:00", -9) == 15  # it ran at 03:00 sharp
    assert hours("daily 03:00", -10) == -9  # it was missed
    assert hours("daily 14:30", -1) == 2.5
    assert hours("daily 14:30", 1) == 0  # the clock was set back
    assert next_run("daily 14:30", 0, NOON) == NOON
    assert next_run(OFF, NOON, NOON) is None


@given(
    st.sampled_from(["every 1m", "every 7h", "every 30d", "daily 00:00", "daily 23:59"]),
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)).map(datetime.timestamp),
)
def test_the_next_run_is_after_the_last_and_settles(schedule: str, last: float) -> None:
    found = next_run(schedule, last, last)
    assert found is not None
    assert last < found <= last + timedelta(days=30, hours=1).total_seconds()
    again = next_run(schedule, found, found)
    assert again is not None and again > found


@pytest.mark.parametrize("text", ["every 10m", "every 9999d", "daily 00:00", "daily 23:59", "off"])
def test_settings_take_schedules(text: str) -> None:
    assert msgspec.convert({"index": text}, JobSettings).index == text


@pytest.mark.parametrize(
    "text", ["", "every 0m", "every 10", "every 10s", "daily 24:00", "daily 3:00", "off ", "every 1h\n", "weekly"]
)
def test_settings_refuse_everything_else(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"index": text}, JobSettings)
