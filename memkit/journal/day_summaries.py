"""The bullets of a day: which turns they cover, and insert those of a summary or an extract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from memkit import anchors
from memkit.bullets import OPEN, WrittenBullet, bullet_line, read_bullets
from memkit.journal.day_file import DayFile, Section, has_own_title, heading_of
from memkit.journal.extracts import is_unedited
from memkit.journal.markup import short_id


class JournalTurn(NamedTuple):
    """A turn's section, the line of its session's heading, and whether a summary covers it."""

    section: Section
    heading: int
    is_summarized: bool


def turns_of(content: DayFile, session: str) -> list[JournalTurn]:
    """Return the turns of a session, in order."""
    return [
        JournalTurn(turn, heading.start, number <= _covered(heading, turns, "summary"))
        for heading, turns in content.headings()
        if heading.pairs["session"] == session
        for number, turn in enumerate(turns, start=1)
    ]


def extracted(content: DayFile, session: str) -> set[str]:
    """Return the turns of a session that an extract or a summary covers."""
    return {
        turn.pairs["turn"]
        for heading, turns in content.headings()
        if heading.pairs["session"] == session
        for turn in turns[: _covered(heading, turns, "summary", "extract")]
    }


def summarize(
    content: DayFile, turns: Sequence[str], bullets: Sequence[str], title: str = "", *, key: str = "summary"
) -> bool:
    """Insert `bullets`, one line each, above `turns`, which are consecutive below one heading.

    `title` becomes the words of the heading, unless the user edited them. `key` is the heading's mark:
    `summary`, or `extract` for lines made without a model. A summary removes the unedited lines of an
    extract of these turns, an open question only if an open point about its turn is among the bullets. All
    other text stays. Return False without a change if none of the turns is
    there any more, or if one is covered already.
    """
    keys = ["summary", "extract"] if key == "extract" else ["summary"]
    for heading, below in content.headings():
        names = [section.pairs["turn"] for section in below]
        places = [number for number, name in enumerate(names) if name in turns]
        if not places or places[0] < _covered(heading, below, *keys):
            continue  # the user may have copied turns that are covered
        is_own = has_own_title(heading, below)
        first = below[places[0]]
        if key == "summary":
            first = replace(first, start=first.start - _drop_extract(content, heading, turns, bullets))
        pairs = {**heading.pairs, key: names[places[-1]]}
        mark = short_id(title) if title and key == "extract" else ""
        if key == "summary" and pairs.get("extract") not in names[places[-1] + 1 :]:
            pairs["extract"] = ""
        # An extract without lines needs no heading of its own.
        is_joined = key == "extract" and not bullets and places[0] == _covered(heading, below, *keys)
        if places[0] == 0 or is_joined:
            words = heading_of(heading)
            if title and heading.minute and is_own and places[0] == 0:
                words, pairs["title"] = f"## {heading.minute} {title}", mark
            new = [f"{words} {anchors.render(**pairs)}", *(["", *bullets] if bullets else [])]
            if any(line.strip() for line in content.lines[heading.start + 1 : heading.start + 2]):
                new.append("")
            content.put(heading.start, heading.start + 1, new)
        else:
            pairs["title"] = mark
            words = f"## {first.minute} {title}" if title and first.minute else heading_of(first)[1:]
            pairs["branch"] = first.pairs.get("branch") or pairs.get("branch", "")
            if key == "extract":
                pairs["summary"] = ""
            lines = [f"{words} {anchors.render(**pairs)}", *(["", *bullets] if bullets else [])]
            content.insert_before(first, "\n".join(lines))
        return True
    return False


def unchecked(content: DayFile, session: str) -> Iterator[WrittenBullet]:
    """Yield the bullets of a session that are not checked yet, and that the user did not edit."""
    for heading, _ in content.headings():
        if heading.pairs["session"] == session:
            for _, one in read_bullets(content.lines[heading.start + 1 : heading.end]):
                is_unedited = one.id == short_id(one.claim, *one.turns)
                is_waiting = one.check.startswith(anchors.UNCHECKED)
                if is_waiting and is_unedited and one.line == _with_check(one, one.check):
                    yield one


def set_checks(content: DayFile, checks: Mapping[str, str]) -> int:
    """Give unchecked bullets that the user did not edit another check, by their line. Return how many."""
    places = [(number, one) for number, one in read_bullets(content.lines) if one.line in checks]
    for number, one in places:
        content.put(number, number + 1, [_with_check(one, checks[one.line])])
    return len(places)


def _with_check(bullet: WrittenBullet, check: str) -> str:
    return bullet_line(bullet.words, bullet.id, ",".join(bullet.turns), bullet.proof, check)


def _drop_extract(
    content: DayFile, heading: Section, turns: Sequence[str], bullets: Sequence[str]
) -> int:
    answered = {turn for _, one in read_bullets(bullets) if one.text.startswith(OPEN) for turn in one.turns}
    gone = [
        heading.start + number
        for number, one in read_bullets(content.lines[heading.start : heading.end])
        if is_unedited(one.line)
        and not set(one.turns).isdisjoint(answered if one.text.startswith(OPEN) else turns)
    ]
    before = len(content.lines)
    if gone:
        content.keep(gone, {})
    return before - len(content.lines)


def _covered(heading: Section, turns: Sequence[Section], *keys: str) -> int:
    most = 0
    for last in filter(None, map(heading.pairs.get, keys)):
        named = [number for number, turn in enumerate(turns, start=1) if turn.pairs["turn"] == last]
        # The user removed that turn. Covering the others is better than summarizing one twice.
        most = max(most, named[-1] if named else len(turns))
    return most
