"""The numbers of a day for `memkit stats`, which adds up years of them."""

from __future__ import annotations

from collections import Counter

import msgspec

from memkit.bullets import read_bullets
from memkit.journal.day_file import DayFile
from memkit.journal.turn_parts import read_turn


class Numbers(msgspec.Struct, frozen=True):
    """Counts of one day file: turns, words asked and answered, bullets of models, and sessions by ID.

    `hours` counts turns by the hour (0 to 23) in which they began, if their heading has a time. `files` has
    for each path the numbers of edits and of all calls of tools.
    """

    turns: int = 0
    words: int = 0
    bullets: int = 0
    sessions: tuple[str, ...] = ()
    hours: dict[int, int] = {}
    files: dict[str, tuple[int, int]] = {}


def count(content: DayFile) -> Numbers:
    """Return the numbers of a day."""
    turns = words = bullets = 0
    sessions: dict[str, None] = {}
    hours: Counter[int] = Counter()
    edited: Counter[str] = Counter()
    mentioned: Counter[str] = Counter()
    for section in content.sections:
        if "turn" in section.pairs:
            turns += 1
            hour = section.minute[:2]
            if hour and int(hour) < 24:
                hours[int(hour)] += 1
            read = read_turn(content.text(section))
            words += read.words
            for call in read.calls:
                mentioned[call.path] += 1
                edited[call.path] += call.is_edit
        elif "session" in section.pairs:
            sessions[section.pairs["session"]] = None
            lines = content.lines[section.start + 1 : section.end]
            bullets += sum(not bullet.is_extract for _, bullet in read_bullets(lines))
    files = {path: (edited[path], mentioned[path]) for path in mentioned}
    return Numbers(turns, words, bullets, tuple(sessions), dict(hours), files)
