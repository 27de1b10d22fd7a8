"""Segments: stretches of work that are summarized together, cut from a session's turns of one day.

The cuts depend only on the turns, not on when memkit looks. So sessions captured live and imported ones
are cut alike, and a closed segment stays the same when turns are added.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby

from memkit import anchors
from memkit.archive.archive import Archive
from memkit.archive.turn import ArchivedTurn
from memkit.capture.summary_queue import Attempt, QueuedSession
from memkit.conversation.turn import SLASH_COMMAND
from memkit.errors import ArchiveError
from memkit.journal.day_file import DayFile, Section
from memkit.journal.day_summaries import turns_of
from memkit.journal.digest import with_whole
from memkit.journal.journal import Journal
from memkit.journal.turn_parts import TurnParts, read_parts
from memkit.llm.calls import CALL_TOKENS, SMALLEST_CALL
from memkit.settings import SummarizeSettings
from memkit.summarize.turns import shown_turn
from memkit.text import CHARACTERS_PER_TOKEN, estimate_tokens

logger = logging.getLogger(__name__)

MAX_SEGMENTS = 20
"""The most segments of a call: the answer has a limit, and each segment needs a part of it."""

TAG_TOKENS = 15
"""The tokens of the tags around a turn or segment."""

_ASKS_MEMKIT = re.compile(r"! *(?:[\w./~-]+/)?memkit\b")

_CUT_SHORT = "[Tool call interrupted: the session ended"
"""The start of the result of a tool that was running when its session ended. Claude Code writes it when the
session is resumed, however late.
"""


@dataclass(frozen=True, slots=True)
class SegmentTurn:
    """A turn as the model sees it.

    Attributes:
        id: as in the journal's anchor.
        time: the heading's local time, `HH:MM`.
        began: its start in local time, to the minute.
        ended: its end if the archive knows it, else `began`.
        text: its digest, as `shown_turn` cuts it.
        is_compacted: whether Claude Code compacted the conversation before the next turn.
        is_open: whether the assistant was still working on it when memkit last looked.
        is_work: whether it is more than a question to memkit, or a command of the client.
    """

    id: str
    time: str
    began: datetime
    ended: datetime
    text: str
    is_compacted: bool = False
    is_open: bool = False
    is_work: bool = True

    @property
    def tokens(self) -> int:
        """The estimated length of `text`."""
        return estimate_tokens(self.text)


@dataclass(frozen=True, slots=True)
class Segment:
    """Turns of one session and day that are summarized together.

    `context` is the text just before them, shown but not summarized. A segment that `is_followed` by
    other turns of the session cannot grow.
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
        """The estimated length of its text and context with their tags."""
        tags = TAG_TOKENS * (len(self.turns) + 1)
        return sum(turn.tokens for turn in self.turns) + estimate_tokens(self.context) + tags

    def is_closed(self, now: datetime, settings: SummarizeSettings, *, is_live: bool) -> bool:
        """Whether no turn can join it: others follow, or the session, the day, or the work has ended."""
        if self.is_followed or not is_live:
            return True
        if self.turns[-1].is_open:  # written while Claude Code compacted; the answer is still to come
            return False
        if self.day < now.date().isoformat() or settings.mode == "turn":
            return True
        return now - self.turns[-1].ended > timedelta(minutes=settings.silence_minutes)


def read_segments(
    journal: Journal, archive: Archive, session: str, day: str, settings: SummarizeSettings,
    under_way: str = "",
) -> list[Segment]:  # fmt: skip
    """Return the segments of a session's day that have no summary yet, including the open one.

    `under_way` is the id of a prompt that was written before its turn ended, or "". Raise `JournalError`.
    """
    content = journal.day(day)
    turns = turns_of(content, session)
    if all(turn.is_summarized for turn in turns):
        return []
    archived = archived_turns(archive, session)
    compacted = _compacted_turns(archived.values(), {turn.section.pairs["turn"] for turn in turns})
    read = [_read_turn(content, one.section, day, archived, compacted, under_way, settings) for one in turns]
    segments: list[Segment] = []
    runs = groupby(range(len(turns)), key=lambda number: turns[number][1:])
    for (_, is_summarized), numbers in runs:  # a segment never crosses a heading
        first, *others = numbers
        if is_summarized:
            continue
        end = first + 1 + len(others)
        found = cut(session, day, read[first:end], read[:first], settings)
        if end < len(turns):
            found[-1] = replace(found[-1], is_followed=True)
        segments += found
    return segments


def archived_turns(archive: Archive, session: str) -> dict[str, ArchivedTurn]:
    """Return the archived turns of a session by id, or none if they cannot be read: the journal will do."""
    try:
        return {turn.id: turn for turn in archive.turns(session)}
    except ArchiveError as error:
        logger.warning("%s", error)
        return {}


def _compacted_turns(archived: Iterable[ArchivedTurn], turns: Collection[str]) -> set[str]:
    """Return those of `turns` during or after which Claude Code compacted, before the next of `turns`."""
    found, current = set(), ""
    for turn in archived:
        if turn.id in turns:
            current = turn.id
        if turn.compacted:
            found.add(current)
    return found


def _read_turn(
    content: DayFile, section: Section, day: str, archived: dict[str, ArchivedTurn],
    compacted: Collection[str], under_way: str, settings: SummarizeSettings,
) -> SegmentTurn:  # fmt: skip
    turn = section.pairs["turn"]
    time = section.minute or "00:00"
    began = datetime.fromisoformat(f"{day[:10]} {time}")
    known = archived.get(turn)
    duration = _duration(known, settings.silence_minutes) if known else timedelta()
    digest = anchors.strip(content.text(section))
    if known is not None:
        digest = with_whole(digest, *known.words, (known.project, known.cwd))
    return SegmentTurn(
        id=turn,
        time=time,
        began=began,
        ended=began + duration,  # not the archived end: this machine may be in another time zone now
        text=shown_turn(digest) or digest,  # a bare heading repeats the prompt
        is_compacted=turn in compacted,
        is_open=known is not None and known.prompt_id == under_way != "",
        is_work=_is_work(read_parts(digest)),
    )


def _is_work(parts: TurnParts) -> bool:
    is_command = _ASKS_MEMKIT.match(parts.prompt) or (SLASH_COMMAND.match(parts.prompt) and not parts.tools)
    return bool(parts.answer) or not is_command


def _duration(turn: ArchivedTurn, silence_minutes: float) -> timedelta:
    """Text after the first silence in which no tool ran is no work, such as what a resumed session adds."""
    if turn.time is None:
        return timedelta()
    ended = turn.time
    for message in turn.messages:
        if message.time is None:
            continue
        has_run = any(tool.result and not tool.result.startswith(_CUT_SHORT) for tool in message.tools)
        if message.time - ended > timedelta(minutes=silence_minutes) and not has_run:
            break
        ended = max(ended, message.time)
    return ended - turn.time


def cut(
    session: str, day: str, turns: Sequence[SegmentTurn], earlier: Sequence[SegmentTurn],
    settings: SummarizeSettings,
) -> list[Segment]:  # fmt: skip
    """Return the segments of consecutive turns.

    A segment ends before a pause of `silence_minutes`, before it would exceed `segment_tokens`, and
    where Claude Code compacted the conversation. `earlier` are the turns before the first, for context.
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
    if settings.mode == "turn" or group[-1].is_compacted:
        return True
    if turn.began - group[-1].ended > timedelta(minutes=settings.silence_minutes):
        return True
    return sum(one.tokens for one in group) + turn.tokens > settings.segment_tokens


def _context(before: Sequence[SegmentTurn], first: SegmentTurn, settings: SummarizeSettings) -> str:
    since = first.began - timedelta(minutes=settings.overlap_minutes)
    text = "\n\n".join(turn.text for turn in before if turn.ended >= since)
    limit = settings.overlap_tokens * CHARACTERS_PER_TOKEN
    if len(text) <= limit:
        return text
    return "… " + text[len(text) - limit :].partition(" ")[2] if limit else ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A closed segment without a summary, and its queued session."""

    queued: QueuedSession
    segment: Segment

    @property
    def attempt(self) -> Attempt:
        """Its failed calls so far."""
        return self.queued.tries.get(self.segment.id, Attempt())


def group_into_calls(
    candidates: Sequence[Candidate], settings: SummarizeSettings
) -> Iterator[list[Candidate]]:
    """Yield the segments of each call. Only the last call may have room for more.

    A segment that may be at fault itself goes alone, so that it cannot spoil the others' summaries.
    """
    limit = min(CALL_TOKENS, settings.daily_tokens - SMALLEST_CALL)
    group: list[Candidate] = []
    tokens = 0
    for one in candidates:
        if one.attempt.is_suspect or settings.mode == "turn":
            yield [one]
            continue
        segment = one.segment
        if group and group[-1].queued is one.queued and _follows(segment, group[-1].segment):
            segment = replace(segment, context="")
        if group and (tokens + segment.tokens > limit or len(group) == MAX_SEGMENTS):
            yield group
            group, tokens, segment = [], 0, one.segment
        group.append(replace(one, segment=segment))
        tokens += segment.tokens
    if group:
        yield group


def _follows(segment: Segment, before: Segment) -> bool:
    """Return whether the segment before this one shows its context."""
    shown, context = before.turns[-1].text, segment.context.removeprefix("… ")
    return shown.endswith(context) or context.endswith(shown)


def in_order(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Sort sessions by the time of their first segment, and segments by time within a session."""

    def when(one: Candidate) -> tuple[str, str]:
        return one.segment.day, one.segment.turns[0].time

    def owner(one: Candidate) -> tuple[str, str]:  # one session may work in several projects
        return one.segment.session, one.queued.root

    first: dict[tuple[str, str], tuple[str, str]] = {}
    for one in candidates:
        first[owner(one)] = min(when(one), first.get(owner(one), when(one)))
    return sorted(candidates, key=lambda one: (first[owner(one)], owner(one), when(one)))


def sessions_of(candidates: Sequence[Candidate]) -> list[QueuedSession]:
    """Return the queued sessions of `candidates`, each once."""
    return list({id(one.queued): one.queued for one in candidates}.values())
