"""When a job runs next, by its setting: "every 6h", "daily 03:00", or "off".

A run that was missed, because no service was running, is made up as soon as one is.
"""

from __future__ import annotations

from datetime import datetime, timedelta

OFF = "off"

_UNITS = {"m": 60.0, "h": 3600.0, "d": 86400.0}


def next_run(schedule: str, last: float, now: float) -> float | None:
    """Return when a job that last ran at `last` runs next, in seconds since the epoch; None for never.

    A time before `now` means now. A `last` of 0, or in the future (the clock was set back), means never yet.
    """
    if schedule == OFF:
        return None
    if not 0 < last <= now:
        return now
    every, _, value = schedule.partition(" ")
    if every == "every":
        return last + int(value[:-1]) * _UNITS[value[-1]]
    hour, minute = map(int, value.split(":"))
    before = datetime.fromtimestamp(last)
    following = before.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if following <= before:
        following += timedelta(days=1)
    return following.timestamp()
