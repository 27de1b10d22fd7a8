"""One day of the journal in numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from memkit import anchors
from memkit.journal.day_file import DayFile
from memkit.journal.digest import read_turn


@dataclass(frozen=True, slots=True)
class DayCount:
    """What a day holds.

    `hours` counts turns by the hour (0 to 23) in which they began, if their heading tells; `mentioned` and
    `edited` count the calls of tools on each file, by its path as the journal shows it: all, and those
    that edited it.
    """

    day: str
    turns: int
    words: int
    bullets: int
    sessions: frozenset[str]
    hours: Counter[int]
    mentioned: Counter[str]
    edited: Counter[str]


def count_day(day: str, content: DayFile) -> DayCount:
    """Count the day (an ISO date) whose file is `content`."""
    turns = words = bullets = 0
    sessions: set[str] = set()
    hours: Counter[int] = Counter()
    mentioned: Counter[str] = Counter()
    edited: Counter[str] = Counter()
    for section in content.sections:
        if "turn" not in section.pairs:
            if "session" not in section.pairs:
                continue  # a note: neither a session nor a summary
            sessions.add(section.pairs["session"])
            bullets += sum(map(_is_bullet, content.lines[section.start + 1 : section.end]))
            continue
        turns += 1
        hour = section.minute[:2]
        if hour and int(hour) < 24:
            hours[int(hour)] += 1
        read = read_turn(content.text(section))
        words += read.words
        for call in read.calls:
            mentioned[call.path] += 1
            if call.is_edit:
                edited[call.path] += 1
    return DayCount(day, turns, words, bullets, frozenset(sessions), hours, mentioned, edited)


def _is_bullet(line: str) -> bool:
    return line.startswith("- ") and "grip:" in line and "grip" in anchors.parse(line)
