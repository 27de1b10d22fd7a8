"""Change a day that the user may also edit: remove parts, redact it, or merge an edit with later writes.

Every line that is not concerned stays as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from memkit import anchors
from memkit.bullets import WrittenBullet, read_bullet, read_bullets
from memkit.journal.day_file import (
    DayFile,
    Section,
    SharedHeading,
    heading_title,
    section_hash,
    written_lines,
)
from memkit.journal.day_overview import overview_places, owner
from memkit.journal.extracts import redacted_lines

FORGOTTEN_TITLE = "(forgotten)"
"""The new title of a session whose title repeated a forgotten turn, if no other turn is left."""

_DAY_TITLE = re.compile(r"^# \d{4}-\d{2}-\d{2}\s*(?:<!-- proof:\w+ -->\s*)?$")
_INDENTED = re.compile(r"^[ \t]+\S")


class Removal(NamedTuple):
    """The entries to remove from a day: turns and the bullets that cite them, bullets by ID, and notes."""

    turns: Collection[str] = ()
    grips: Collection[str] = ()
    notes: Collection[str] = ()


def remove(content: DayFile, removal: Removal) -> bool:
    """Remove what `removal` names from a day. Return whether anything was there.

    A session's heading loses a title that repeats a forgotten turn, or that its summary may have made of it.
    The heading is removed when no text is left below it. Afterwards `content` may be empty (see `is_empty`).
    """
    gone = set(_bullet_lines(content, removal))
    headings: dict[int, str] = {}
    touched: set[str] = set()
    for opening, turns in content.groups():
        forgotten = [turn for turn in turns if turn.pairs["turn"] in removal.turns]
        for turn in forgotten:
            gone.update(range(turn.start, turn.end))
        if opening is None:
            continue
        below = range(opening.start + 1, opening.end)
        is_forgotten_note = opening.pairs.get("note") in removal.notes
        if forgotten or is_forgotten_note or any(number in gone for number in below):
            touched.add(owner(opening))
        if "note" in opening.pairs:
            if is_forgotten_note:
                gone.update(range(opening.start, opening.end))
        elif forgotten or any(number in gone for number in below):
            kept = [turn for turn in turns if turn not in forgotten]
            if kept or any(content.lines[n].strip() for n in below if n not in gone):
                headings[opening.start] = _remaining_heading(content, opening, kept, forgotten)
            else:
                gone.update(range(opening.start, opening.end))
    if touched:
        # A line that the user edited may still mention the removed entry. The journal adds a new line.
        gone.update(overview_places(content, touched))
    if gone:
        content.keep(gone, headings)
    return bool(gone)


def remove_lines(content: DayFile, start: int, end: int) -> bool:
    """Remove the lines `start` to `end` (from 1, inclusive), except headings of sections and bullets."""
    headings = {section.start for section in content.sections}
    gone = set()
    for number, (place, line) in enumerate(zip(content.file_lines(), content.lines, strict=False)):
        if not start <= place <= end:
            continue
        is_bullet = read_bullet(line) is not None
        if number in headings or is_bullet or isinstance(line, SharedHeading) or _DAY_TITLE.match(line):
            continue
        gone.add(number)
    if not any(content.lines[number].strip() for number in gone):
        return False
    content.keep(gone, {})
    return True


def redact_day(
    content: DayFile,
    redact: Callable[[int, str], str],
    growing: Mapping[str, Collection[str]],
    *,
    only_sections: bool = False,
) -> dict[str, str]:
    """Pass all text through `redact`, piece by piece, with the number of its first line, from 1.

    A piece is the text before the first section, a heading without its anchor, or the text below it. In
    a section that may grow (`growing` maps its turn to hashes), the lines that memkit wrote are a piece
    of their own. With `only_sections`, leave out the text before the first section, as that below the last.
    Return the new hashes of growing sections that are unedited, by turn.
    """
    hashes = {}
    numbers = content.file_lines()
    joined = content.shared_headings()

    def redact_piece(line: int, text: str) -> str:
        return redact(numbers[line], text)

    for section in reversed(content.sections):
        turn = section.pairs.get("turn", "")
        written = written_lines(content, section, growing[turn]) if turn in growing else 0
        heading = anchors.strip(section.heading)
        if section.start + 1 in joined:  # shares its line with the turn's heading, which is already redacted
            shown = anchors.strip(content.lines[section.start + 2]).removeprefix("#")
        else:
            shown = redact_piece(section.start, heading)
        if shown != heading:
            shown = " ".join(shown.split())
            line = f"{shown} {anchors.render(**section.pairs)}"
            content.put(section.start, section.start + 1, [line])
        middle = section.start + max(written, 1)
        _redact_lines(content, middle, section.end, redact_piece)
        length = len(content.lines)
        _redact_lines(content, section.start + 1, middle, redact_piece)
        if written:
            end = middle + len(content.lines) - length
            hashes[turn] = section_hash("\n".join(content.lines[section.start : end]))
    if not only_sections:
        _redact_lines(content, 0, len(content.opening), redact_piece)
    return hashes


def _redact_lines(content: DayFile, start: int, end: int, redact: Callable[[int, str], str]) -> None:
    text = "\n".join(content.lines[start:end])
    redacted = redact(start, text)
    if redacted != text:
        content.put(start, end, redacted_lines(content.lines[start:end], redacted.split("\n")))


def is_empty(content: DayFile) -> bool:
    """Return whether a day holds nothing but its date."""
    below = (content.rest or "").split("\n")
    return all(not line.strip() or _DAY_TITLE.match(line) for line in [*content.lines, *below])


def removed_bullets(
    content: DayFile, removal: Removal
) -> Iterator[tuple[int, WrittenBullet]]:
    """Yield the bullets that `removal` names, with the numbers of their lines, from 0."""
    for number, bullet in read_bullets(content.lines):
        if bullet.id in removal.grips or any(turn in removal.turns for turn in bullet.turns):
            yield number, bullet


def _bullet_lines(content: DayFile, removal: Removal) -> Iterator[int]:
    lines = content.lines
    for number, _ in removed_bullets(content, removal):
        first = number
        while first and _INDENTED.match(lines[first]):
            first -= 1
        last = number + 1
        while last < len(lines) and _INDENTED.match(lines[last]):
            last += 1
        yield from range(first, last)


def _remaining_heading(
    content: DayFile, heading: Section, kept: Sequence[Section], forgotten: Sequence[Section]
) -> str:
    line = heading.heading
    # A title may have been made from any of the turns below it.
    is_derived = not heading.pairs.keys().isdisjoint(("summary", "title")) and bool(forgotten)
    is_derived = is_derived and not any(_repeats(heading, content.text(turn)) for turn in kept)
    if is_derived or any(_repeats(heading, content.text(turn)) for turn in forgotten):
        minute = f"{heading.minute} " if heading.minute else ""
        title = _title(kept[0]) if kept else FORGOTTEN_TITLE
        line = f"## {minute}{title} {anchors.render(**heading.pairs)}"
    pairs = dict(heading.pairs)
    for key in pairs.keys() & {"summary", "extract"}:
        last = next((turn for turn in forgotten if turn.pairs["turn"] == pairs[key]), None)
        if last is not None:  # now the bullets cover the turns before it
            before = [turn.pairs["turn"] for turn in kept if turn.start < last.start]
            pairs[key] = before[-1] if before else ""
    if pairs != heading.pairs:
        line = f"{anchors.strip(line).rstrip()} {anchors.render(**pairs)}"
    return line


def _title(section: Section) -> str:
    return heading_title(section) or FORGOTTEN_TITLE


def _repeats(heading: Section, text: str) -> bool:
    title = _folded(_title(heading)).removesuffix("…").strip()
    return bool(title) and title in _folded(text)


def _folded(text: str) -> str:
    return " ".join(text.casefold().replace("\\", "").split())


_Key = tuple[str, str, int]


def merge(before: str, edited: str, present: str) -> str:
    """Return `edited`, a user's edit of `before`, plus the changes between `before` and `present`.

    Works by sections. New sections go to their place, removed ones go, and changed ones are taken over
    unless the user changed or removed them too.
    """
    if present == before:
        return edited
    old, new, result = _pieces(before), _pieces(present), _pieces(edited)
    for key in old.keys() - new.keys():
        result.pop(key, None)
    order = list(result)
    last: _Key | None = None
    for key, text in new.items():
        if key not in old and key not in result:
            order.insert(order.index(last) + 1 if last in order else len(order), key)
            result[key] = text
        elif key in result and result[key] == old.get(key):
            result[key] = text
        last = key if key in result else last
    merged = DayFile("\n".join(result[key] for key in order))
    merged.rest = _merge_rests(*(DayFile(text).rest for text in (before, edited, present)))
    mine, theirs, known = (DayFile(text).sharing_turns() for text in (edited, present, before))
    for turn in mine | (theirs - known):
        merged.share_heading(turn)
    return merged.render()


def _merge_rests(before: str | None, edited: str | None, present: str | None) -> str | None:
    """Merge the text below memkit's sections: take it from the side that changed it, else join both."""
    if edited in (before, present):
        return present
    if present == before or present is None or edited is None:
        return edited if edited is not None else present
    return edited.rstrip("\n") + "\n" + present.removeprefix(before or "")


def _pieces(text: str) -> dict[_Key, str]:
    content = DayFile(text)
    sections = content.sections
    first = sections[0].start if sections else len(content.lines)
    found: dict[_Key, str] = {("", "", 0): "\n".join(content.lines[:first])}
    seen: Counter[tuple[str, str]] = Counter()
    for section in sections:
        kind = next(key for key in ("turn", "note", "session") if key in section.pairs)
        name = section.pairs[kind]
        found[kind, name, seen[kind, name]] = "\n".join(content.lines[section.start : section.end])
        seen[kind, name] += 1
    return found
