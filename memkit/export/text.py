"""The memory as one markdown file, and as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator

from memkit import anchors
from memkit.export.days import Days


def as_markdown(days: Days, *, with_anchors: bool = False) -> Iterator[str]:
    """The days one after the other, without anchors unless they are wanted."""
    for number, date in enumerate(days.dates):
        text = days.day(date).content.render().strip("\n") + "\n"
        # Bytes that are no UTF-8 are shown as what they are: not readable.
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        yield ("\n" if number else "") + (text if with_anchors else anchors.strip(text))


def as_json_lines(days: Days) -> Iterator[str]:
    """An object a line for each entry: `date`, `session`, `branch`, `turn`, `heading`, `text`."""
    for date in days.dates:
        for entry in days.day(date).entries:
            value = {
                "date": date,
                "session": entry.session,
                "branch": entry.branch,
                "turn": entry.turn,
                "heading": entry.heading,
                "text": entry.text,
            }
            yield json.dumps(value) + "\n"
