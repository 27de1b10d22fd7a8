"""Read rollups: the title and lines that a model wrote about a week, a month, or a year."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from html import unescape

from memkit.errors import JournalError
from memkit.journal.facts import FactFile
from memkit.journal.journal import Journal
from memkit.privacy.tombstones import NOTHING, Forgotten
from memkit.text import encodable, one_line
from memkit.timeline.nodes import MONTH, WEEK, YEAR, Span
from memkit.timeline.summary import TITLE_CHARACTERS

logger = logging.getLogger(__name__)

MOST_LINES, LINE_CHARACTERS = 12, 560
"""The most lines of a rollup to show, and of characters of each. A model writes fewer and shorter ones, but a
repository may bring a file of any size.
"""


@dataclass(frozen=True, slots=True)
class RollupLine:
    """A line of a rollup, as the user may have edited it.

    `id` and `citations` (bullets first, then turns) are for `memkit show`; `date` is an ISO day, or "".
    """

    id: str
    text: str
    date: str
    citations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rollup:
    """The title, or "", and the lines that a model wrote about a period."""

    title: str
    lines: tuple[RollupLine, ...]


def read_rollup(journal: Journal, span: Span, forgotten: Forgotten = NOTHING) -> Rollup | None:
    """Return the rollup of a period without `forgotten` lines, or None if it has no line."""
    if span.kind not in (YEAR, MONTH, WEEK):
        return None
    for name in (f"{span.name}.md", f"{span.name}.local.md"):
        try:
            file = FactFile(encodable(journal.text(name)), name)
        except JournalError as error:
            logger.warning("%s", error)
            continue
        lines = []
        for one in file.facts():
            cited = one.fact.citations
            if forgotten.covers_fact(one.id, cited.turns, cited.grips):
                continue
            text = one_line(unescape(one.fact.shown.removeprefix("- ")), LINE_CHARACTERS)
            lines.append(RollupLine(one.id, text, one.fact.date, (*cited.grips, *cited.turns)))
        if lines:
            return Rollup(one_line(unescape(file.title), TITLE_CHARACTERS), tuple(lines[:MOST_LINES]))
    return None
