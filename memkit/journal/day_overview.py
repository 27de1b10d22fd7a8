"""The overview at the top of a day: a line for each session and note, linked to its heading.

    # 2026-11-20

    - 14:02–15:40 [Staging gateway port](#1402-staging-gateway-port) · 6 turns → Decided: … <!-- … -->

A session with several headings has a line for each. The journal begins the overview with the first session of
a day and brings it up to date in each write, so it never says more than the day. A line that the user edited
stays, and what they removed is not put back. A day that the user or an earlier version began gets none.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from memkit import anchors
from memkit.journal.day_file import DayFile, Section, heading_title
from memkit.journal.extracts import is_overview, overview_line, remaining
from memkit.journal.sessions import DaySession, stretch
from memkit.privacy.redact import redact
from memkit.text import plural

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_SPECIAL = re.compile(r"[\\`*\[\]<&]|(?<![^\W_])_|_(?![^\W_])")
"""Characters that could end a link's text or format the words in it."""

_NO_SLUG = re.compile(r"[^a-z0-9_ -]")
_SLUG_KINDS = frozenset({"Nd", "Pc"})
_MARKUP = re.compile(r"[\\`*_\[\]<>&!]")


class _Entry(NamedTuple):
    """A line of the overview, and the IDs of its turns or of its note."""

    names: frozenset[str]
    line: str


class DayOverview:
    """Brings the overview of a day up to date after a change.

    Make it before the change: what was missing then was removed by the user.
    """

    def __init__(self, content: DayFile, *, may_begin: bool = True) -> None:
        has_title_alone = all(not line.strip() or line.startswith("# ") for line in content.opening)
        self._may_begin = may_begin and has_title_alone and not _has_sessions(content)
        lines = _own_lines(content)
        self._is_there = bool(lines)
        shown = {_name(content.lines[number]) for number in lines}
        self._missing = {
            name
            for names in map(_names, content.groups())
            if not names & shown
            for name in names
        }

    def update(self, content: DayFile) -> None:
        """Write the lines of the day's present sessions and notes."""
        old = _own_lines(content)
        begins = self._may_begin and _has_sessions(content)
        if not (old or self._is_there or begins):
            return
        entries = list(_entries(content))
        entry_of = {name: number for number, one in enumerate(entries) for name in one.names}
        place_of: dict[int, int] = {}  # of an entry's line in the file
        gone: list[int] = []
        others: dict[int, str] = {}
        for number in old:
            line = content.lines[number]
            found = entry_of.get(_name(line))
            is_ours = is_overview(line, unedited=True)
            if is_ours and (found is None or found in place_of):
                gone.append(number)
            elif found is not None:
                place_of.setdefault(found, number)
                if is_ours:
                    others[number] = entries[found].line
        added: dict[int, list[str]] = {}  # by the line before which they go
        for number, entry in enumerate(entries):
            if number not in place_of and (begins or not entry.names & self._missing):
                before = [place for n, place in place_of.items() if n < number]
                after = [place for n, place in place_of.items() if n > number]
                place = max(before) + 1 if before else min(after, default=-1)
                added.setdefault(place, []).append(entry.line)
        _write(content, gone, others, added)


def owner(opening: Section) -> str:
    """Return the ID of a heading's session or note."""
    return opening.pairs.get("note") or opening.pairs["session"]


def overview_places(content: DayFile, owners: Collection[str]) -> Iterator[int]:
    """Yield the numbers, from 0, of lines of these sessions and notes, and of those that the day lacks.

    Lines that the user edited are among them.
    """
    groups = [(opening, turns) for opening, turns in content.groups() if opening is not None]
    known = {name: owner(opening) for opening, turns in groups for name in _names((opening, turns))}
    for number in _own_lines(content):
        found = known.get(_name(content.lines[number]))
        if found is None or found in owners:
            yield number


def without_overview(text: str) -> str:
    """Return the text of a day without the lines of its overview, edited or not."""
    head, heading, rest = text.partition("\n## ")
    if "<!-- overview:" not in head:
        return text
    kept = [line for line in head.split("\n") if not is_overview(line)]
    return "\n".join(kept) + heading + rest


def _write(
    content: DayFile, gone: list[int], others: dict[int, str], added: dict[int, list[str]]
) -> None:
    opening = content.opening
    lines: list[str] = []
    kept = set(remaining(opening, gone))
    for number, line in enumerate(opening):
        lines += added.get(number, [])
        if number in kept:
            lines.append(others.get(number, line))
    lines += added.get(len(opening), [])
    new = added.get(-1)
    if new:
        top = 1 if lines and lines[0].startswith("# ") else 0
        rest = lines[top + 1 :] if lines[top : top + 1] == [""] else lines[top:]
        lines = [*lines[:top], *([""] if top else []), *new, "", *rest]
    if lines and lines[-1].strip() and len(content.lines) > len(opening):
        lines.append("")
    if lines != opening:
        content.replace_opening(lines)


def _own_lines(content: DayFile) -> list[int]:
    return [number for number, line in enumerate(content.opening) if is_overview(line)]


def _has_sessions(content: DayFile) -> bool:
    return any("session" in section.pairs for section in content.sections)


def _name(line: str) -> str:
    pairs = anchors.parse(line)
    return next((f"{key}:{pairs[key]}" for key in ("turns", "note") if key in pairs), "")


def _names(group: tuple[Section | None, Sequence[Section]]) -> frozenset[str]:
    opening, turns = group
    if opening is not None and "note" in opening.pairs:
        return frozenset({f"note:{opening.pairs['note']}"})
    return frozenset(f"turns:{turn.pairs['turn']}" for turn in turns if opening is not None)


def _entries(content: DayFile) -> Iterator[_Entry]:
    slugs = _slugs(content)
    for opening, turns in content.groups():
        names = _names((opening, turns))
        if opening is None or not names:
            continue
        title = heading_title(opening)
        link = f"[{_link_text(title)}](#{slugs[opening.start]})" if title else ""
        if "note" in opening.pairs:
            text = " ".join(filter(None, [opening.minute, link])) or "Note"
            yield _Entry(names, overview_line(text, note=opening.pairs["note"]))
        else:
            text = _words(stretch("", content, opening, turns), link)
            yield _Entry(names, overview_line(text, turns=turns[0].pairs["turn"]))


def _words(one: DaySession, link: str) -> str:
    span = one.begins if one.begins == one.ends else f"{one.begins}–{one.ends}"
    what = " ".join(filter(None, [span, link]))
    text = " · ".join(filter(None, [what, plural(len(one.turns), "turn")]))
    return f"{text} → {one.outcome}" if one.outcome else text


def _link_text(title: str) -> str:
    shown = _shown(title)
    if shown != title:  # without its marks, it can have a secret, or what looks like an anchor
        shown = redact(shown)
    return _SPECIAL.sub(r"\\\g<0>", shown.strip()).replace("\\<", "&lt;")


def _slugs(content: DayFile) -> dict[int, str]:
    seen: Counter[str] = Counter()
    found = {}
    sharing = content.sharing_turns()
    times = {section.minute for section in content.sections if section.is_opening}
    for section in content.sections:
        if section.pairs.get("turn") in sharing:
            continue
        if not section.is_opening and section.minute not in times:
            continue  # its anchor differs from that of each session
        name = slug(anchors.strip(section.heading).lstrip("#"))
        found[section.start] = f"{name}-{seen[name]}" if seen[name] else name
        seen[name] += 1
    return found


def slug(heading: str) -> str:
    """Return the anchor that GitHub makes of a heading: the words that it shows, without punctuation.

    https://docs.github.com/en/get-started/writing-on-github/getting-started-with-writing-and-formatting-on-github/basic-writing-and-formatting-syntax#section-links
    """
    shown = _shown(heading).strip().lower()
    if shown.isascii():
        return _NO_SLUG.sub("", shown).replace(" ", "-")
    kept = (letter for letter in shown if letter in "- " or _is_word(letter))
    return "".join(kept).replace(" ", "-")


def _is_word(letter: str) -> bool:
    kind = unicodedata.category(letter)
    return kind[0] in "LM" or kind in _SLUG_KINDS


@functools.cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # 0.05 s, only where memory is written

    return MarkdownIt("commonmark").enable("strikethrough")


def _shown(heading: str) -> str:
    if not _MARKUP.search(heading):
        return heading
    (inline,) = _parser().parseInline(heading.strip())
    children = inline.children or []
    return "".join(token.content for token in children if token.type in ("text", "code_inline"))
