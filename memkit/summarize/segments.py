"""Segments: the stretches of work that are summarized, cut from the turns of a session.

Where they are cut depends on the turns alone, not on when somebody looks, so that captured live and
imported sessions are cut alike; and a segment that is closed stays as it is when turns are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from memkit.settings import SummarizeSettings
from memkit.text import CHARACTERS_PER_TOKEN, estimate_tokens


@dataclass(frozen=True, slots=True)
class SegmentTurn:
    """A turn as it is summarized.

    Attributes:
        id: as in the journal's anchor.
        time: the heading's local time, `HH:MM`.
        began: when it began, in local time to the minute.
        ended: when it ended, as far as the archive tells, else `began`.
        text: its digest, cut to what a model is shown.
        is_compacted: whether the client summed the conversation up before the turn that follows.
        is_under_way: whether the assistant still worked on it when somebody last looked.
    """

    id: str
    time: str
    began: datetime
    ended: datetime
    text: str
    is_compacted: bool = False
    is_under_way: bool = False

    @property
    def tokens(self) -> int:
        """How long `text` is, about."""
        return estimate_tokens(self.text)


@dataclass(frozen=True, slots=True)
class Segment:
    """Turns of one session and day that are summarized together.

    `context` is the text of what went before, shown but not summarized. `is_followed` says that other
    turns of the session stand behind it, so that it cannot grow.
    """

    session: str
    day: str
    turns: tuple[SegmentTurn, ...]
    context: str = ""
    is_followed: bool = False

    @property
    def id(self) -> str:
        """The id of its first turn, which stays when turns are added."""
        return self.turns[0].id

    @property
    def tokens(self) -> int:
        """How long its text is, with the context, about."""
        return sum(turn.tokens for turn in self.turns) + estimate_tokens(self.context)

    def is_closed(self, now: datetime, settings: SummarizeSettings, *, is_live: bool) -> bool:
        """Whether no turn can join it: another follows, the session is over, its day is, or a pause is."""
        if self.is_followed or not is_live:
            return True
        if self.turns[-1].is_under_way:  # written half when the client compacted; its answer comes
            return False
        if self.day < now.date().isoformat():
            return True
        if settings.mode == "turn":
            return True
        return now - self.turns[-1].ended > timedelta(minutes=settings.silence_minutes)


def cut(
    session: str,
    day: str,
    turns: Sequence[SegmentTurn],
    earlier: Sequence[SegmentTurn],
    settings: SummarizeSettings,
) -> list[Segment]:
    """The segments of turns that follow one another in `session` on `day`.

    A segment ends before a pause of `silence_minutes`, before it would exceed `segment_tokens`, and
    where the client compacted the conversation. `earlier` are the turns before the first, for context.
    """
    groups: list[list[SegmentTurn]] = []
    for turn in turns:
        if groups and not _ends(groups[-1], turn, settings):
            groups[-1].append(turn)
        else:
            groups.append([turn])
    before = list(earlier)
    segments = []
    for number, group in enumerate(groups, start=1):
        context = _context(before, group[0], settings)
        is_followed = number < len(groups)
        segments.append(Segment(session, day, tuple(group), context, is_followed))
        before += group
    return segments


def _ends(group: Sequence[SegmentTurn], turn: SegmentTurn, settings: SummarizeSettings) -> bool:
    """Whether the segment that `group` makes ends before `turn`."""
    if settings.mode == "turn" or group[-1].is_compacted:
        return True
    if turn.began - group[-1].ended > timedelta(minutes=settings.silence_minutes):
        return True
    return sum(one.tokens for one in group) + turn.tokens > settings.segment_tokens


def _context(
    before: Sequence[SegmentTurn], first: SegmentTurn, settings: SummarizeSettings
) -> str:
    """What was said in the last `overlap_minutes`, its end if that is more than `overlap_tokens`."""
    since = first.began - timedelta(minutes=settings.overlap_minutes)
    text = "\n\n".join(turn.text for turn in before if turn.ended >= since)
    room = settings.overlap_tokens * CHARACTERS_PER_TOKEN
    if len(text) <= room:
        return text
    return "… " + text[len(text) - room :].partition(" ")[2] if room else ""
