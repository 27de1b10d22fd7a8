"""Candidates: closed segments that wait for a summary, and the ones that share a model call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memkit.capture.summary_queue import Attempt, QueuedSession
from memkit.llm.calls import CALL_TOKENS
from memkit.settings import SummarizeSettings
from memkit.summarize.segments import Segment


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
    """Yield the segments of each call.

    A segment that may be at fault itself goes alone, so that it cannot spoil the others' summaries.
    """
    limit = min(CALL_TOKENS, settings.daily_tokens // 2)
    group: list[Candidate] = []
    for one in candidates:
        if one.attempt.is_suspect or settings.mode == "turn":
            yield [one]
            continue
        if group and sum(each.segment.tokens for each in group) + one.segment.tokens > limit:
            yield group
            group = []
        if group and group[-1].segment.session == one.segment.session:  # its context is shown already
            one = replace(one, segment=replace(one.segment, context=""))
        group.append(one)
    if group:
        yield group


def in_order(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Sort sessions by the time of their first segment, and segments by time within a session."""

    def when(one: Candidate) -> tuple[str, str]:
        return one.segment.day, one.segment.turns[0].time

    first: dict[str, tuple[str, str]] = {}
    for one in candidates:
        session = one.segment.session
        first[session] = min(when(one), first.get(session, when(one)))
    return sorted(
        candidates,
        key=lambda one: (first[one.segment.session], one.segment.session, when(one)),
    )


def sessions_of(candidates: Sequence[Candidate]) -> list[QueuedSession]:
    """Return the queued sessions of `candidates`, each once."""
    return list({id(one.queued): one.queued for one in candidates}.values())
