"""Merge a day into another one, or the files of one day for a reader."""

from __future__ import annotations

from collections.abc import Iterable

from memkit import anchors
from memkit.bullets import read_bullets
from memkit.journal.day_edits import Removal, remove
from memkit.journal.day_file import DayFile, Section
from memkit.journal.day_overview import DayOverview
from memkit.journal.extracts import is_overview
from memkit.privacy.tombstones import NOTHING, Forgotten


def whole_day(files: Iterable[DayFile]) -> DayFile:
    """Return a day of several files, such as those of several machines, as one. Changes the first."""
    first, *others = files
    overview = DayOverview(first)
    for other in others:
        merge_day(first, other)
    if others:
        overview.update(first)
    return first


def merge_day(
    own: DayFile, other: DayFile, forgotten: Forgotten = NOTHING, *, only_entries: bool = False
) -> int:
    """Insert the turns and notes of `other` that `own` lacks. Return the number of turns.

    Turns come with their session's heading and its bullets, which the user may have edited. Text before the
    first heading comes too. Forgotten entries do not. With `only_entries`, nothing comes that `own` may have
    lost: no text before the first heading, nor below that of a session that `own` has.
    """
    remove(other, Removal(forgotten.turns, forgotten.grips, forgotten.notes))
    present = {section.pairs["turn"] for section in own.sections if "turn" in section.pairs}
    notes = {section.pairs["note"] for section in own.sections if "note" in section.pairs}
    grips = {bullet.id for _, bullet in read_bullets(own.lines)}
    sessions = own.sessions() if only_entries else ()
    sharing = other.sharing_turns()
    is_new = not own.sections
    taken = 0
    for heading, turns in _sessions_and_notes(other):
        if "note" in heading.pairs:
            if heading.pairs["note"] not in notes:
                _insert(own, heading, other.text(heading))
            continue
        missing = [turn for turn in turns if turn.pairs["turn"] not in present]
        if not missing:
            continue
        top = _heading(other, heading, turns, missing, grips)
        if heading.pairs["session"] in sessions:
            top, _, _ = top.partition("\n")
        text = "\n\n".join([top, *map(other.text, missing)])
        _insert(own, heading, text)
        if len(turns) == 1 and turns[0].pairs["turn"] in sharing:
            own.share_heading(turns[0].pairs["turn"])
        present |= {turn.pairs["turn"] for turn in missing}
        taken += len(missing)
    if not only_entries:
        _merge_preamble(own, other, with_overview=is_new)
    return taken


def _insert(own: DayFile, heading: Section, text: str) -> None:
    later = (one for one in own.sections if one.is_opening and one.minute > heading.minute)
    own.insert_before(next(later, None), text)


def _sessions_and_notes(day: DayFile) -> list[tuple[Section, list[Section]]]:
    found: list[tuple[Section, list[Section]]] = []
    for section in day.sections:
        if section.is_opening:
            found.append((section, []))
        elif found:
            found[-1][1].append(section)
    return found


def _heading(
    day: DayFile, heading: Section, turns: list[Section], missing: list[Section], grips: set[str]
) -> str:
    first, _, rest = day.text(heading).partition("\n")
    pairs = dict(heading.pairs)
    names = [turn.pairs["turn"] for turn in turns]
    for key in pairs.keys() & {"summary", "extract"}:
        if pairs[key] in names:
            done = set(names[: names.index(pairs[key]) + 1])
            covered = [one.pairs["turn"] for one in missing if one.pairs["turn"] in done]
            pairs[key] = covered[-1] if covered else ""
    below = rest.split("\n")
    known = {number for number, bullet in read_bullets(below) if bullet.id in grips}
    lines = [line for number, line in enumerate(below) if number not in known]
    title = f"{anchors.strip(first).rstrip()} {anchors.render(**pairs)}"
    return "\n".join([title, *lines]).rstrip()


def _merge_preamble(own: DayFile, other: DayFile, *, with_overview: bool) -> None:
    """The journal adds lines to an overview that `own` has."""
    opening = other.opening
    if not with_overview:
        opening = [line for line in opening if not is_overview(line, unedited=True)]
    if opening and opening[0].startswith("# "):
        opening = opening[1:]
    text = "\n".join(opening).strip()
    if text and text not in "\n".join(own.lines):
        own.insert_before(own.sections[0] if own.sections else None, text)
