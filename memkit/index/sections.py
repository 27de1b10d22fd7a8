"""The sections of a Markdown file, and the groups of sections that are chunked together."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from operator import attrgetter
from typing import NamedTuple

from memkit import anchors
from memkit.index.blocks import Document, Span

MAX_HEADING = 200
"""Most characters of a heading, which precedes every chunk of its section."""

_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)

_ANCHORED = {"session", "branch", "turn", "note"}


class Origin(NamedTuple):
    """The place of a text in the journal; "" for unknown parts."""

    date: str = ""
    session: str = ""
    branch: str = ""
    turn: str = ""
    note: str = ""

    def admits(self, other: Origin) -> bool:
        """Return whether every known part of this origin is the same in `other`."""
        return all(mine in ("", theirs) for mine, theirs in zip(self, other, strict=True))


@dataclass(eq=False)
class MarkdownSection:
    """A heading and its text up to the next heading; level 0 is the text before the first one.

    A `standalone` section is found by itself, however short: a turn, a note, a bullet of a summary. A
    section that `continues` the one before it has no heading of its own.
    """

    level: int
    heading: str
    parent: MarkdownSection | None
    origin: Origin
    spans: list[Span] = field(default_factory=list)
    standalone: bool = False
    continues: bool = False

    @property
    def path(self) -> list[MarkdownSection]:
        """The enclosing sections and this one, outermost first."""
        return [*self.parent.path, self] if self.parent else [self]

    @property
    def breadcrumb(self) -> str:
        """All enclosing headings: "A > B > C"."""
        return " > ".join(section.heading for section in self.path if section.heading)

    @property
    def start(self) -> int:
        """The offset of its first character."""
        return self.spans[0].start

    @property
    def end(self) -> int:
        """The offset after its last character."""
        return self.spans[-1].end

    @property
    def has_text(self) -> bool:
        """Whether it is more than a heading."""
        return len(self.spans) > (self.level > 0 and not self.continues)

    def is_fragment(self, minimum: int) -> bool:
        """Return whether it is too short for a chunk of its own."""
        return not self.standalone and self.end - self.start < minimum


@dataclass
class Group:
    """Neighboring sections that are chunked together: at most one full section, and fragments."""

    sections: list[MarkdownSection]
    minimum: int

    @property
    def origin(self) -> Origin:
        """The origin of the whole group: each section admits the next."""
        return self.sections[-1].origin

    def owner(self, start: int, end: int) -> MarkdownSection:
        """Return the section that gives a chunk of the text `start`..`end` its heading.

        That is the full section with text in it; among fragments, the innermost one around all their text.
        """
        first = bisect_right(self.sections, start, key=attrgetter("start")) - 1
        last = bisect_left(self.sections, end, key=attrgetter("start"))
        held = self.sections[first:last]
        for section in held:
            if not section.is_fragment(self.minimum):
                return section
        paths = [section.path for section in held if section.has_text]
        common = paths[0] if paths else held[-1].path
        for path in paths:
            common = [one for one, other in zip(common, path, strict=False) if one is other]
        return common[-1]

    @property
    def spans(self) -> list[Span]:
        """The blocks of all sections; a fragment is one block."""
        blocks: list[Span] = []
        for section in self.sections:
            if section.is_fragment(self.minimum) and section.has_text:
                blocks.append(Span(section.start, section.end))
            else:
                blocks.extend(section.spans)
        return blocks

    @property
    def is_short(self) -> bool:
        """Whether it is too short to stay alone."""
        size = self.sections[-1].end - self.sections[0].start
        # Check the size first: a long group may have any number of sections.
        return size < self.minimum and all(s.is_fragment(self.minimum) for s in self.sections)

    def takes(self, section: MarkdownSection) -> bool:
        """Return whether the next section belongs to this group."""
        if not self.is_short:
            return False
        outer = section.path
        if all(member in outer for member in self.sections):
            # A bare heading joins what is below it, even a turn on another branch than its session.
            is_bare = not any(member.has_text for member in self.sections)
            return is_bare or self.origin.admits(section.origin)
        return (
            self.origin.admits(section.origin)
            and section.is_fragment(self.minimum)
            and section.has_text
            and section.level >= self.sections[0].level
        )

    def is_like(self, neighbor: Group) -> bool:
        """Return whether this short group and a neighbor have the same origin."""
        return all(section.origin == neighbor.origin for section in self.sections)


def read_sections(document: Document, name: str, *, is_team: bool = False) -> list[MarkdownSection]:
    """Return the nonempty sections of `document`, in order; `name` is its file name.

    In a file of the team, the name alone gives the date, and each heading of level 2 begins an entry.
    """
    file_date = name[:10] if name.endswith(".md") and is_iso_date(name[:10]) else ""
    current = MarkdownSection(0, "", None, Origin(file_date))
    sections = [current]
    after_bullet = False
    for span in document.blocks:
        if span.level:
            current, after_bullet = _open_section(span, current, file_date, is_team), False
            sections.append(current)
        for piece, is_own in _pieces(document, span):
            if after_bullet or (is_own and current.has_text):
                current = replace(current, spans=[], continues=True)
                sections.append(current)
            current.spans.append(piece)
            after_bullet = is_own
    held = [section for section in sections if section.spans]
    for section in held:
        section.standalone |= _has_bullet(document, section)
    return held


def _pieces(document: Document, span: Span) -> list[tuple[Span, bool]]:
    """Split a list of summary bullets into its items. Return each span, and whether it is a bullet."""
    if span.kind != "bullet_list" or not _has_bullet(document, span):
        return [(span, False)]
    items = document.tile(span.children, span.start, span.end)
    return [(item, _has_bullet(document, item)) for item in items]


def _has_bullet(document: Document, span: Span | MarkdownSection) -> bool:
    return any(is_bullet(pairs) for pairs in document.anchors(span.start, span.end))


def is_bullet(pairs: Mapping[str, str]) -> bool:
    """Return whether the line with this anchor is a bullet of a summary or a fact of a compaction.

    Lines of extracts are neither: the index sees only edited ones, which are the user's own text.
    """
    return "fact" in pairs or ("grip" in pairs and pairs.get("by") != "extract")


def _open_section(span: Span, current: MarkdownSection, file_date: str, is_team: bool) -> MarkdownSection:
    found = anchors.parse(span.title)
    heading = " ".join(anchors.strip(span.title).split())
    if len(heading) > MAX_HEADING:
        heading = heading[: MAX_HEADING - 1] + "…"
    parent = next(above for above in reversed(current.path) if above.level < span.level)
    day = parent.origin.date
    if span.level == 1 and not is_team:
        day = heading if is_iso_date(heading) else file_date
    origin = parent.origin._replace(date=day, **{key: found[key] for key in found.keys() & _ANCHORED})
    is_entry = bool(found.keys() & {"turn", "note"}) or (is_team and span.level == 2)
    return MarkdownSection(span.level, heading, parent, origin, standalone=is_entry)


def group_sections(sections: list[MarkdownSection], minimum: int) -> list[Group]:
    """Return the groups of sections that are chunked together."""
    groups: list[Group] = []
    for section in sections:
        if groups and groups[-1].takes(section):
            groups[-1].sections.append(section)
            continue
        following = Group([section], minimum)
        if groups and groups[-1].is_short:
            if len(groups) > 1 and groups[-1].is_like(groups[-2]):
                groups[-2].sections.extend(groups.pop().sections)
            elif groups[-1].is_like(following):
                groups[-1].sections.append(section)
                continue
        groups.append(following)
    if len(groups) > 1 and groups[-1].is_short and groups[-1].is_like(groups[-2]):
        groups[-2].sections.extend(groups.pop().sections)
    return groups


def is_iso_date(text: str) -> bool:
    """Return whether `text` is a calendar date, YYYY-MM-DD."""
    if not _ISO_DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
