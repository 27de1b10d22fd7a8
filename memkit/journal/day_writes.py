"""Write turns and notes into a day that the user may also edit: each to its place, and each once.

Every line that is not concerned stays as it is.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from memkit import anchors
from memkit.hook.entries import days
from memkit.hook.phrases import is_filler
from memkit.journal.day_file import DayFile, Section, has_own_title, heading_title, written_lines
from memkit.journal.digest import Digest, Note
from memkit.journal.files import MemoryDirectory

_TURN = re.compile(r"turn:(\S+) ")


class Growing(NamedTuple):
    """A turn that may have been written before it was complete.

    `hashes` are the hashes its section may have. `is_written` is set once it certainly was written.
    """

    hashes: tuple[str, ...]
    is_written: bool


def write_turn(
    content: DayFile, digest: Digest, known: Growing | None, nearby: NearbyDays
) -> bool:
    """Insert the turn, or replace it if it grew. Return whether that changed the day."""
    present = content.find_turn(digest.turn)
    if present is None:
        held = nearby.find(digest.turn)
        if known is not None and known.is_written:
            # Gone from the file: the user removed it, so it stays out. But if git began to track the file
            # while the turn grew, the turn moves to the other file of the day.
            if all(day[:10] != digest.day or text == digest.section.strip() for day, text in held):
                return False
        elif any(held):
            return False
        insert_turn(content, digest)
        return True
    count = written_lines(content, present, known.hashes) if known else 0
    section = digest.section.split("\n")
    if not count or content.lines[present.start : present.start + count] == section:
        return False
    _rename_session(content, digest.session, heading_title(present), digest.title)
    content.replace(present, count, digest.section)
    return True


def dates_around(day: str) -> set[str]:
    """Return the dates whose files may hold a turn of a day: time zones are up to 26 hours apart."""
    center = date.fromisoformat(day[:10])
    return {str(center + timedelta(n)) for n in range(-2, 3)}


class NearbyDays:
    """Other files that may already hold a turn of a day. Read once, when first needed.

    The machine's time zone may have changed since the turn was written, git may track the day's file now, new
    days may go to another folder, or another machine kept the turn.
    """

    def __init__(self, files: MemoryDirectory, day: str) -> None:
        self._files = files
        self._day = day

    @cached_property
    def _texts(self) -> list[tuple[str, str, frozenset[str]]]:
        near = dates_around(self._day)
        found = []
        for day in days(self._files.project):
            if day[:10] in near and day != self._day:
                text = self._files.read_if_used(Path(self._files.project.day_file(day)))
                found.append((day, text, frozenset(_TURN.findall(text))))
        return found

    def find(self, turn: str) -> Iterator[tuple[str, str]]:
        """Yield the days that have a section of the turn, and its text there."""
        for day, text, turns in self._texts:
            if turn in turns:
                content = DayFile(text)
                section = content.find_turn(turn)
                if section is not None:
                    yield day, content.text(section).strip()


def insert_turn(content: DayFile, digest: Digest) -> None:
    """Insert the turn below its session's heading, in order of time. Create a missing heading."""
    sections, places = content.sections, content.places
    own = places.headings.get(digest.session)
    text = digest.section
    if own:
        before = [n for n in own if sections[n].minute <= digest.minute]
        heading = before[-1] if before else own[0]
        # The turns below a heading end at the next heading. Most often, the new one is the last.
        following = bisect_right(places.openings, heading)
        place = [*places.openings[following : following + 1], len(sections)][0]
        while place > heading + 1 and sections[place - 1].minute > digest.minute:
            place -= 1
        later = sections[place] if place < len(sections) else None
    else:
        anchor = anchors.render(session=digest.session, branch=digest.branch)
        text = f"## {digest.minute} {digest.title} {anchor}\n\n{text}"
        openings = (sections[n] for n in places.openings)
        later = next((s for s in openings if s.minute > digest.minute), None)
    content.insert_before(later, text)
    if own:
        _improve_title(content, sections[heading], is_first=place == heading + 1)
    else:
        content.share_heading(digest.turn)


def _improve_title(content: DayFile, heading: Section, *, is_first: bool) -> None:
    """`is_first`: a turn was inserted above all others. A title by the user or a summary stays."""
    if not heading.minute or not (is_first or is_filler(heading_title(heading))):
        return
    turns = next(below for one, below in content.headings() if one.start == heading.start)
    title = next((words for turn in turns if not is_filler(words := heading_title(turn))), "")
    if title and has_own_title(heading, turns[is_first:]):
        minute = min(heading.minute, turns[0].minute or heading.minute)
        line = f"## {minute} {title} {anchors.render(**heading.pairs)}"
        content.put(heading.start, heading.start + 1, [line])


def _rename_session(content: DayFile, session: str, title: str, new: str) -> None:
    for section in content.sections if title != new else ():
        if section.pairs.get("session") == session and heading_title(section) == title:
            heading = f"## {section.minute} {new} {anchors.render(**section.pairs)}"
            content.put(section.start, section.start + 1, [heading])


def insert_note(content: DayFile, note: Note) -> bool:
    """Insert a note between the sessions, in order of time. Return False if it is already there."""
    if any(section.pairs.get("note") == note.id for section in content.sections):
        return False
    later = (s for s in content.sections if s.is_opening and s.minute > note.minute)
    content.insert_before(next(later, None), note.section)
    return True
