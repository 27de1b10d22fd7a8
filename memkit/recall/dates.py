"""Days as people name them: `2026-11-20`, `3d`, `2w`, `yesterday`, `last monday`."""

from __future__ import annotations

import re
from datetime import date, datetime, time

from memkit.errors import MemkitError

_AGO = re.compile(r"(\d{1,5})\s*([dwmy])", re.IGNORECASE)
_NUMBERS = re.compile(r"[\d-]*")
_UNITS = {"d": "days", "w": "weeks", "m": "months", "y": "years"}


def parse_day(text: str, today: date) -> date:
    """The day that `text` means, seen from `today`; never a later one if it can be an earlier one.

    Raises `MemkitError` if it means none.
    """
    said = " ".join(text.split())
    try:
        return date.fromisoformat(said)
    except ValueError:
        pass
    short = _AGO.fullmatch(said)
    if short:
        said = f"{short[1]} {_UNITS[short[2].lower()]} ago"
    # What is not ISO 8601 would be guessed: 2026-13-01 as 13 January.
    if not _NUMBERS.fullmatch(said):
        from dateparser import parse  # only where the plain form is not used

        found = parse(
            said,
            languages=["en"],
            settings={
                "PREFER_DATES_FROM": "past",
                "RELATIVE_BASE": datetime.combine(today, time.min),
            },
        )
        if found is not None:
            day: date = found.date()
            return day
    raise MemkitError(
        f"{text!r} is no day: write 2026-11-20, 3d, 2w, yesterday or last monday"
    )
