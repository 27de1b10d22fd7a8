"""The sections of a markdown file, and which of them share a chunk."""

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
"""Characters kept of a heading: it stands before every chunk of its section."""

_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


class Origin(NamedTuple):
    """Where in the journal a text comes from; "" for what is not known."""

    date: str = ""
    session: str = ""
    branch: str = ""
    turn: str = ""
    note: str = ""

    def admits(self, other: Origin) -> bool:
        """Whether `other` says nothing against this one, only more."""
        return all(mine in ("", theirs) for mine, theirs in zip(self, other, strict=True))


@dataclass(eq=False)
class MarkdownSection:
    """A heading and its text up to the next heading; level 0 is the text before the first one.

    `standalone` is a section that is searched for as itself, however short: a turn, a note, a bullet of
    a summary. One that `continues` has no heading of its own: it goes on with the section before it.
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
        """The section and those it stands in, outermost first."""
        return [*self.parent.path, self] if self.parent else [self]

    @property
    def breadcrumb(self) -> str:
        """All enclosing headings: "A > B > C"."""
        return " > ".join(section.heading for section in self.path if section.heading)

    @property
    def start(self) -> int:
        """Offset of its first character."""
        return self.spans[0].start

    @property
    def end(self) -> int:
        """Offset after its last character."""
        return self.spans[-1].end

    @property
    def has_text(self) -> bool:
        """Whether it is more than a heading."""
        return len(self.spans) > (self.level > 0 and not self.continues)

    def is_fragment(self, minimum: int) -> bool:
        """Whether it is too short for a chunk of its own."""
        return not self.standalone and self.end - self.start < minimum


@dataclass
class Group:
    """Neighbouring sections cut into chunks together: at most one full one, else fragments."""

    sections: list[MarkdownSection]
    minimum: int

    @property
    def origin(self) -> Origin:
        """What is known of the whole group: each section admits the next."""
        return self.sections[-1].origin

    def owner(self, start: int, end: int) -> MarkdownSection:
        """The section after which a chunk of the text `start`..`end` is named.

        The full section it holds text of; among fragments the innermost one around all their text.
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
        """Whether it still looks for a neighbour."""
        size = self.sections[-1].end - self.sections[0].start
        # The size is asked first: a long group may hold any number of sections.
        return size < self.minimum and all(s.is_fragment(self.minimum) for s in self.sections)

    def takes(self, section: MarkdownSection) -> bool:
        """Whether the section that follows belongs into this group."""
        if not self.is_short:
            return False
        outer = section.path
        if all(member in outer for member in self.sections):
            # Headings alone are of what stands below them: a turn may be of another branch than its session.
            is_bare = not any(member.has_text for member in self.sections)
            return is_bare or self.origin.admits(section.origin)
        return (
            self.origin.admits(section.origin)
            and section.is_fragment(self.minimum)
            and section.has_text
            and section.level >= self.sections[0].level
        )

    def is_like(self, neighbour: Group) -> bool:
        """Whether nothing in the journal divides this group, being short, from a neighbour."""
        return all(section.origin == neighbour.origin for section in self.sections)


def read_sections(document: Document, name: str) -> list[MarkdownSection]:
    """The sections of `document` that hold anything, in order; `name` is its file name."""
    file_date = name[:10] if name.endswith(".md") and is_iso_date(name[:10]) else ""
    current = MarkdownSection(0, "", None, Origin(file_date))
    sections = [current]
    after_bullet = False
    for span in document.blocks:
        if span.level:
            current, after_bullet = _open_section(span, current, file_date), False
            sections.append(current)
        for piece, is_own in _pieces(document, span):
            if after_bullet or (is_own and current.has_text):
                current = replace(current, spans=[], continues=True)
                sections.append(current)
            current.spans.append(piece)
            after_bullet = is_own
    held = [section for section in sections if section.spans]
    for section in held:
        found = document.anchors(section.start, section.end)
        section.standalone |= any(is_bullet(pairs) for pairs in found)
    return held


def _pieces(document: Document, span: Span) -> list[tuple[Span, bool]]:
    """`span`, or its items if it is a list of a summary's bullets; each with whether it is a bullet."""
    if span.kind != "bullet_list" or not _holds_bullet(document, span):
        return [(span, False)]
    items = document.tile(span.children, span.start, span.end)
    return [(item, _holds_bullet(document, item)) for item in items]


def _holds_bullet(document: Document, span: Span) -> bool:
    return any(is_bullet(pairs) for pairs in document.anchors(span.start, span.end))


def is_bullet(pairs: Mapping[str, str]) -> bool:
    """Whether the line with this anchor is a bullet of a summary or a fact of a compaction."""
    return "grip" in pairs or "fact" in pairs


def _open_section(span: Span, current: MarkdownSection, file_date: str) -> MarkdownSection:
    """The section under a heading. It inherits from those above it what its anchors do not say."""
    found = anchors.parse(span.title)
    heading = " ".join(anchors.strip(span.title).split())
    if len(heading) > MAX_HEADING:
        heading = heading[: MAX_HEADING - 1] + "…"
    parent = next(above for above in reversed(current.path) if above.level < span.level)
    day = parent.origin.date
    if span.level == 1:
        day = heading if is_iso_date(heading) else file_date
    origin = Origin(
        day,
        found.get("session", parent.origin.session),
        found.get("branch", parent.origin.branch),
        found.get("turn", parent.origin.turn),
        found.get("note", parent.origin.note),
    )
    is_entry = bool(found.keys() & {"turn", "note"})
    return MarkdownSection(span.level, heading, parent, origin, standalone=is_entry)


def group_sections(sections: list[MarkdownSection], minimum: int) -> list[Group]:
    """The groups of sections that are cut into chunks together."""
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
    """Whether `text` is a calendar date, YYYY-MM-DD."""
    if not _ISO_DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
