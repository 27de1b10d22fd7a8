"""Which segments share a call of a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memkit.capture.summary_queue import Attempt, QueuedSession
from memkit.settings import SummarizeSettings
from memkit.summarize.segments import Segment

CALL_TOKENS = 12_000
"""Of segments in one call: they share the instructions, and small models read so much with care. Less where
the whole budget of a day would hardly do for it.
"""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A closed segment that no summary stands for, and the waiting session it is of."""

    waiting: QueuedSession
    segment: Segment

    @property
    def tried(self) -> Attempt:
        """What became of it so far."""
        return self.waiting.tries.get(self.segment.id, Attempt())


def in_order(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The sessions by when their first segment was, each with its segments in order."""
    begun: dict[str, tuple[str, str]] = {}
    for one in candidates:
        when = (one.segment.day, one.segment.turns[0].time)
        begun[one.segment.session] = min(when, begun.get(one.segment.session, when))
    return sorted(
        candidates,
        key=lambda one: (
            begun[one.segment.session], one.segment.session, one.segment.day, one.segment.turns[0].time,
        ),
    )  # fmt: skip


def grouped(
    candidates: Sequence[Candidate], settings: SummarizeSettings
) -> Iterator[list[Candidate]]:
    """Segments that go into one call each, those of a session one after the other. Those that may be
    at fault themselves go alone, so that what is wrong with one does not take the others with it.
    """
    room = min(CALL_TOKENS, settings.daily_tokens // 2)
    group: list[Candidate] = []
    for one in candidates:
        if one.tried.is_suspect or settings.mode == "turn":
            yield [one]
            continue
        if group and sum(each.segment.tokens for each in group) + one.segment.tokens > room:
            yield group
            group = []
        group.append(_without_shown_context(group, one))
    if group:
        yield group


def _without_shown_context(group: Sequence[Candidate], one: Candidate) -> Candidate:
    """`one`, without its context if what went before it is in the same call."""
    if group and group[-1].segment.session == one.segment.session:
        return replace(one, segment=replace(one.segment, context=""))
    return one
