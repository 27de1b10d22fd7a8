"""The turns to summarize, read from the journal; how long they took, and compactions, from the archive."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby

from memkit import anchors
from memkit.archive.archive import Archive
from memkit.archive.turn import ArchivedTurn
from memkit.errors import ArchiveError
from memkit.journal.day_file import DayFile, Section
from memkit.journal.journal import Journal
from memkit.journal.markup import cut_middle
from memkit.settings import SummarizeSettings
from memkit.summarize.segments import Segment, SegmentTurn, cut

logger = logging.getLogger(__name__)

SHOWN_CHARACTERS = 2_000
"""Of a turn's digest, at most: the start and the end of a longer one."""


@dataclass(frozen=True, slots=True)
class _Clock:
    """What the archive tells of the turns of a session: in order of time, with their ids."""

    turns: Mapping[str, ArchivedTurn]
    order: Sequence[str]

    @classmethod
    def of(cls, archived: Sequence[ArchivedTurn]) -> _Clock:
        return cls({turn.id: turn for turn in archived}, [turn.id for turn in archived])

    def ended(self, turn: str, began: datetime) -> datetime:
        """When it ended, by how long it took: the machine may be in another time zone since `began`."""
        known = self.turns.get(turn)
        if known is None or known.finished is None or known.time is None:
            return began
        return began + max(timedelta(), known.finished - known.time)

    def is_compacted(self, turn: str, following: str) -> bool:
        """Whether there was a compaction from `turn` on and before `following` ("": the last one)."""
        if turn not in self.turns:
            return False
        start = self.order.index(turn)
        end = self.order.index(following) if following in self.turns else len(self.order)
        return any(self.turns[name].compacted for name in self.order[start:end])


def find_segments(
    journal: Journal,
    archive: Archive,
    session: str,
    day: str,
    settings: SummarizeSettings,
    under_way: str = "",
) -> list[Segment]:
    """The segments of a session's day that no summary stands for yet, closed ones and the open one.

    `under_way` is the id of a prompt that was written before its turn ended, or "".

    Raises `JournalError`.
    """
    content = journal.day(day)
    turns = content.turns_of(session)
    if all(turn.is_summarized for turn in turns):
        return []
    try:
        clock = _Clock.of(archive.turns(session))
    except ArchiveError as error:  # the times in the headings do without
        logger.warning("%s", error)
        clock = _Clock.of([])
    names = [turn.section.pairs["turn"] for turn in turns]
    texts = [
        _turn_text(content, turn.section, day, clock, following, under_way)
        for turn, following in zip(turns, [*names[1:], ""], strict=True)
    ]
    segments: list[Segment] = []
    for (_, is_summarized), group in groupby(
        range(len(turns)), key=lambda number: turns[number][1:]
    ):
        numbers = list(group)
        if is_summarized:
            continue
        first, end = numbers[0], numbers[-1] + 1
        found = cut(session, day, texts[first:end], texts[:first], settings)
        if end < len(turns):  # a segment never goes over a heading
            found[-1] = replace(found[-1], is_followed=True)
        segments += found
    return segments


def _turn_text(
    content: DayFile,
    section: Section,
    day: str,
    clock: _Clock,
    following: str,
    under_way: str,
) -> SegmentTurn:
    turn = section.pairs["turn"]
    minute = section.minute or "00:00"
    began = datetime.fromisoformat(f"{day[:10]} {minute}")
    heading, _, body = anchors.strip(content.text(section)).partition("\n")
    text = body.strip() or heading  # which repeats the prompt
    return SegmentTurn(
        id=turn,
        time=minute,
        began=began,
        ended=clock.ended(turn, began),
        text=cut_middle(text, SHOWN_CHARACTERS, "the archive"),
        is_compacted=clock.is_compacted(turn, following),
        is_under_way=turn in clock.turns and clock.turns[turn].prompt_id == under_way != "",
    )
