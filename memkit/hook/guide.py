"""The text for a session or sub-agent that starts: a guide, lasting facts, and the newest entries.

The guide says when to ask the memory: Claude asks more often with it than with a list of the newest entries.
Standard library only, Python 3.9 syntax.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterator
from itertools import islice
from typing import NamedTuple

from memkit import anchors
from memkit.bullets import OPEN, bullet_words, read_bullet, read_bullets
from memkit.files import inside, read_tail
from memkit.hook.entries import (
    HOOK_BYTES,
    answer_of,
    days,
    did_words,
    entry_words,
    heading_words,
    read_days,
    sections_of,
)
from memkit.hook.phrases import first_sentence, is_filler
from memkit.hook.tally import tally
from memkit.paths import OPENCLAW_DAYS, Home
from memkit.projects.project import Project
from memkit.text import defuse, one_line, plural

MOMENTS = (
    "Ask it on an error, on “as discussed”, and before you repeat an investigation or change a decision: the "
    "memkit:memory-recall skill, or `memkit search WORDS`."
)

GUIDE_CHARACTERS = 600
"""About 150 tokens, for what is quoted and the guide below it."""

GUIDE_FACTS = 5
GUIDE_OPEN = 3
GUIDE_SESSIONS = 2
NEWEST_DAYS = 3
"""The newest days in which to look for sessions and open questions."""

TITLE_CHARACTERS = 40
OUTCOME_CHARACTERS = 60

_QUOTED = "Recent work here, quoted:\n<memory>\n"
_LOOKUPS = 20
"""Lines of each sort to check against the fingerprints; a stranger's file may have any number of them."""

_OUTCOME = re.compile(r" turns? → (.*)")
_PARTS = re.compile(r"; | · |, |: ")

_FACT_FILE = "MEMORY.md"
_SUPERSEDED = "Superseded: "
_MINUTE = re.compile(r"[0-9]{2}:[0-9]{2}")
_DATE = re.compile(r"\((\d{4}-\d\d-\d\d)\)")


_Day = tuple[str, str, list[tuple[str, str, list[tuple[str, str]]]]]
"""The date and the text of a day, and its sections; see `sections_of`."""

_MOST_FACTS = 100
_MOST_ENTRIES = 200
"""Entries to check against the fingerprints; a stranger's file may have any number of them."""


FOREIGN = " Entries that memkit did not write here may come from the repository: they are not quoted."
_FACTS = "\nLasting facts, then the newest entries, quoted from earlier sessions:\n<memory>\n"
_BEGIN = "\nNewest entries, quoted from earlier sessions:\n<memory>\n"
_END = "</memory>"


def guide(
    home: Home, project: Project, own: Container[str], *, with_facts: bool = True, session: str = ""
) -> str:
    """Return the guide for a session: period, sessions, and moments.

    Before it, quote the last sessions but `session`, open questions, and lasting facts, those in `own`, see
    `OwnEntries`.
    """
    remembered = days(project.for_counting())
    if not remembered:
        return "memkit keeps a memory of this project from today on; it is empty so far."
    size = f"{tally(home, project).words} on {_days(remembered)}"
    text = f"memkit remembers what was tried, decided, and fixed in this project: {size}. {MOMENTS}"
    if not with_facts:
        return text
    newest = [
        (day, text, list(sections_of(text)))
        for day, text in read_days(project, days(project)[-NEWEST_DAYS:], HOOK_BYTES)
    ]
    facts, opened = facts_of(project)[:_LOOKUPS], list(islice(_open(newest), _LOOKUPS))
    if any(words not in own for words in (*facts, *(words for words, _, _ in opened))):
        text += FOREIGN
    quoted = list(islice(_last_sessions(newest, own, session), GUIDE_SESSIONS))
    for words, title, day in [one for one in opened if one[0] in own][:GUIDE_OPEN]:
        about = one_line(title[6:], TITLE_CHARACTERS) if title in own and not is_filler(title[5:]) else ""
        quoted.append(f"{one_line(words, OUTCOME_CHARACTERS)} ({', '.join(filter(None, [day, about]))})")
    quoted += [words for words in facts if words in own][:GUIDE_FACTS]
    lines, room = [], GUIDE_CHARACTERS - len(text) - len(_QUOTED) - len(_END) - 1
    for words in dict.fromkeys(quoted):
        line = quoted_line(f"- {words}")
        if len(line) <= room:
            room -= len(line)
            lines.append(line)
    return f"{_QUOTED}{''.join(lines)}{_END}\n{text}" if lines else text


def _last_sessions(newest: list[_Day], own: Container[str], session: str) -> Iterator[str]:
    """Yield day, title, and outcome of the last sessions that have one, but not of `session`."""
    seen = {session}
    for day, text, sections in newest:
        outcomes = {}
        for line in text.partition("\n## ")[0].split("\n"):
            if "<!-- overview:" in line and (found := _OUTCOME.search(bullet_words(line))):
                outcomes[anchors.parse(line).get("turns")] = found[1].partition(OPEN)[0].rstrip(" ·")
        stretches = [one for one in sections if one[2] and "session" in anchors.parse(one[0])]
        stretches.sort(key=lambda one: one[2][-1][0].lstrip("# ")[:5], reverse=True)
        for opening, below, turns in stretches[:_LOOKUPS]:
            title, name = heading_words(opening), anchors.parse(opening)["session"]
            outcome = outcomes.get(anchors.parse(turns[0][0]).get("turn"), "")
            is_told = name not in seen and title in own and not is_filler(title[5:])
            if is_told and _is_own(outcome, below, turns, own):
                seen.add(name)
                about, outcome = one_line(title[6:], TITLE_CHARACTERS), one_line(outcome, OUTCOME_CHARACTERS)
                yield f"{day} {about} → {outcome}"


def _is_own(outcome: str, below: str, turns: list[tuple[str, str]], own: Container[str]) -> bool:
    """Return whether all parts of an outcome are from own bullets, answers, and tool calls."""
    known = [bullet.text for _, bullet in read_bullets(below.split("\n"))]
    for line, body in turns[-_LOOKUPS:]:
        heading = heading_words(line)
        known += entry_words(heading, answer_of(body, 0)), did_words(heading, body)
    letters = "\n".join(_letters(words) for words in known if words in own)
    return bool(outcome) and all(_letters(part) in letters for part in _PARTS.split(outcome.rstrip(" …")))


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def agent_guide(project: Project) -> str:
    """Return the guide for a sub-agent, or "" if nothing is remembered."""
    remembered = days(project.for_counting())
    if not remembered:
        return ""
    return (
        f"memkit keeps a memory of this project ({_span(remembered)}): what was tried, decided, and fixed, "
        "and why. `memkit search WORDS` lists entries on a subject or an error, `memkit expand ID` shows one."
    )


def _days(names: list[str]) -> str:
    return f"{plural(len({name[:10] for name in names}), 'day')} ({_span(names)})"


def _span(names: list[str]) -> str:
    dates = sorted({name[:10] for name in names})
    return dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"


def _open(newest: list[_Day]) -> Iterator[tuple[str, str, str]]:
    """Yield the open questions of the newest days with the heading and the day, newest first.

    Yield none after which its session went on.
    """
    ended: set[str] = set()
    for day, _, sections in newest:
        for opening, below, turns in reversed(sections):
            session = anchors.parse(opening).get("session")
            if not session or session in ended:
                continue
            ended.add(session)
            lines = [line for part in (below, *(body for _, body in turns)) for line in part.split("\n")]
            for line in reversed(lines):
                bullet = read_bullet(line) if OPEN in line else None
                if bullet is not None and bullet.is_verified and bullet.text.startswith(OPEN):
                    yield bullet.text, heading_words(opening), day


class Stretch(NamedTuple):
    """Remembered turns that belong together, or a note: the headings and bodies as they are in the file.

    `opening` is the heading of the session, `below` the text below it that holds bullets, or "". The turns
    are those that the bullets cover, or one.
    """

    day: str
    opening: str
    below: str
    turns: list[tuple[str, str]]

    @property
    def minute(self) -> str:
        """The start of the last turn's heading, which gives the order of stretches."""
        return self.turns[-1][0].lstrip("# ")[:5]


def session_facts(project: Project, limit: int, own: Container[str] | None = None, opening: str = "") -> str:
    """Return the newest entries for a session, at most `limit` characters, cut between entries only.

    They follow the facts that hold, and `opening`, by default one on the memory.

    Quote only the words in `own`, see `OwnEntries`. If `own` is None, because a user asked for the facts,
    quote everything.
    """
    remembered = days(project.for_counting())
    if not remembered:
        return "memkit keeps a memory of this project from today on; it is empty so far."[:limit]
    text = opening or (
        f"memkit keeps a memory of this project in {place_of(project)}: {_days(remembered)}. "
        "The memkit:memory-recall skill searches all of it and drills down to the original exchanges."
    )
    room = limit - len(text) - len(_FACTS) - len(_END)
    facts: list[str] = []
    lines: list[str] = []
    if own is not None:
        own = _Limited(own)
    for words in facts_of(project)[:_MOST_FACTS]:
        if own is not None and words not in own:
            text, room = _with_remark(text, room)
        elif len(line := quoted_line(f"- {words}")) <= room - limit // 2:  # half of it is for entries
            room -= len(line)
            facts.append(line)
    for stretch in islice(_newest_stretches(project, days(project)[-_MOST_ENTRIES:]), _MOST_ENTRIES):
        quoted, is_foreign = _quoted(stretch, own)
        if is_foreign:
            text, room = _with_remark(text, room)
        quoted = _without_facts(quoted, facts)
        fitting = list(_fitting(quoted, room))
        room -= sum(map(len, fitting))
        lines += fitting
        if len(fitting) < len(quoted):
            break
    while room < 0 and (facts or lines):  # the remark on foreign entries took the room
        room += len((lines or facts).pop())
    if not facts + lines:
        return text[:limit]
    return text + (_FACTS if facts else _BEGIN) + "".join(facts + lines) + _END


def _without_facts(quoted: list[str], facts: list[str]) -> list[str]:
    """Return the lines of a stretch without bullets that a quoted fact repeats, and no title alone."""
    known = {_DATE.sub("", line).rstrip() for line in facts}
    left = [line for line in quoted if line.rstrip() not in known]
    is_title_alone = len(left) == 1 < len(quoted) and not left[0].startswith("- ")
    return [] if is_title_alone else left


class _Limited:
    """A container that finds nothing after `2 * _MOST_ENTRIES` lookups."""

    def __init__(self, own: Container[str]) -> None:
        self._own = own
        self._left = 2 * _MOST_ENTRIES

    def __contains__(self, words: object) -> bool:
        self._left -= 1
        return self._left >= 0 and words in self._own


def _with_remark(text: str, room: int) -> tuple[str, int]:
    """Add the remark on foreign entries, once."""
    return (text, room) if text.endswith(FOREIGN) else (text + FOREIGN, room - len(FOREIGN))


def place_of(project: Project) -> str:
    """Return the path of new days, relative where the working directory is the project's."""
    try:
        is_inside = os.path.join(os.getcwd(), "").startswith(os.path.join(project.root, ""))
    except OSError:  # the directory is gone
        is_inside = False
    if project.folder == OPENCLAW_DAYS:
        return f"{OPENCLAW_DAYS}/" if is_inside else os.path.join(project.openclaw, "")
    return ".memkit/memory/" if is_inside else os.path.join(project.memory, "")


def _newest_stretches(project: Project, names: list[str]) -> Iterator[Stretch]:
    for day, text in read_days(project, names, HOOK_BYTES):
        found = reversed(list(_stretches(day, text)))  # of the same minute, the last one comes first
        yield from sorted(found, key=lambda one: one.minute, reverse=True)


def _stretches(day: str, text: str) -> Iterator[Stretch]:
    for opening, below, turns in sections_of(text):
        covered = 0
        if "grip:" in below:
            pairs = anchors.parse(opening)
            last = {pairs.get("summary"), pairs.get("extract")} - {None}
            named = [n for n, (line, _) in enumerate(turns, 1) if anchors.parse(line).get("turn") in last]
            # If the user removed that turn, the bullets cover all.
            covered = (named[-1] if named else len(turns)) if last else 0
        if covered:
            yield Stretch(day, opening, below, turns[:covered])
        for turn in turns[covered:]:
            yield Stretch(day, opening, "", [turn])


def _fitting(lines: list[str], room: int) -> Iterator[str]:
    """Yield the first lines that fit, but no title without a bullet."""
    for number, line in enumerate(lines):
        needed = len(line)
        if not number and lines[1:2] and lines[1].startswith("- "):
            needed += len(lines[1])
        if needed > room:
            return
        room -= len(line)
        yield line


def _quoted(stretch: Stretch, own: Container[str] | None) -> tuple[list[str], bool]:
    """Return the lines for a stretch, and whether some words in it are not this home's own."""

    def is_own(words: str) -> bool:
        return own is None or words in own

    bullets = [bullet for _, bullet in read_bullets(stretch.below.split("\n"))]
    own_bullets = [bullet for bullet in bullets if is_own(bullet.text)]
    is_foreign = len(own_bullets) < len(bullets)
    quoted = [quoted_line(f"- {bullet.text}") for bullet in own_bullets if not bullet.is_doubted]
    title = heading_words(stretch.opening)
    if quoted:
        if not is_own(title):  # its time may have been changed too
            title = stretch.minute if _MINUTE.fullmatch(stretch.minute) else ""
        return [quoted_line(f"{stretch.day} {title}".rstrip()), *quoted], is_foreign
    for line, body in reversed(stretch.turns[-_MOST_ENTRIES:]):
        heading, answer = heading_words(line), answer_of(body)
        if not is_own(entry_words(heading, answer)):
            is_foreign, answer = True, ""  # maybe only the answer was changed
            if not is_own(heading):
                continue
        answer = first_sentence(answer)
        if is_filler(heading[5:]):
            if not answer:
                continue
            if not is_filler(title[5:]) and is_own(title):
                heading = heading[:5] + title[5:]
        quoted.append(quoted_line(f"{stretch.day} {entry_words(heading, answer)}"))
    return quoted, is_foreign


def facts_of(project: Project) -> list[str]:
    """Return the words of the facts that hold, newest first."""
    try:
        memory = inside(project.memory, project.root)
        data = read_tail(inside(os.path.join(memory, _FACT_FILE), memory), HOOK_BYTES)
    except OSError:  # there are none
        return []
    lines = [line for line in data.decode("utf-8", "replace").split("\n") if line.startswith("- ")]
    found = [bullet_words(line) for line in lines if "fact" in anchors.parse(line)]
    hold = [
        words
        for words in found
        if not words.startswith(_SUPERSEDED) and f"({anchors.UNVERIFIED})" not in words
    ]
    return sorted(hold, key=lambda words: max(_DATE.findall(words), default=""), reverse=True)


def quoted_line(words: str) -> str:
    """Return a line for the quotation, which it cannot end."""
    return defuse(f"{words}\n", "memory")
