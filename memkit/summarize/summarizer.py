"""Has waiting segments summarized: which are due, in which calls, and what becomes of the answers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from memkit import pending
from memkit.capture.archive import Archive
from memkit.capture.journal import Journal
from memkit.capture.live import LiveSessions
from memkit.capture.redact import redact
from memkit.capture.tombstones import Tombstones
from memkit.config import Settings
from memkit.errors import MemkitError
from memkit.paths import Home
from memkit.project import Project
from memkit.settings import SummarizeSettings
from memkit.summarize.bullets import Bullet, read_bullets
from memkit.summarize.calls import BudgetReachedError, Calls
from memkit.summarize.evidence import Evidence
from memkit.summarize.model import ModelError
from memkit.summarize.prompt import make_task, turn_numbers
from memkit.summarize.reading import find_segments
from memkit.summarize.segments import Segment
from memkit.waiting import Try, Waiting, WaitingSessions

logger = logging.getLogger(__name__)

MINUTE, HOUR = 60.0, 3600.0

CALL_TOKENS = 12_000
"""Of segments in one call: they share the instructions, and small models read so much with care."""

QUIET_SECONDS = 5 * MINUTE
"""After so long without a turn, in a project without a live session, nothing more is waited for."""

AGAIN_SECONDS = (10 * MINUTE, HOUR, 4 * HOUR, 12 * HOUR)
"""How long after each failure a segment is tried again; after one more it is given up."""

OUTAGE_SECONDS = 72 * HOUR
"""How long at least it is tried if the provider as a whole is at fault."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A closed segment that no summary stands for, and the waiting session it is of."""

    waiting: Waiting
    segment: Segment

    @property
    def tried(self) -> Try:
        """What became of it so far."""
        return self.waiting.tries.get(self.segment.id, Try())


@dataclass(slots=True)
class SummaryReport:
    """What a run did: segments that got bullets, how many bullets, model calls, and lines for people."""

    segments: int = 0
    bullets: int = 0
    calls: int = 0
    failures: list[str] = field(default_factory=list)
    projects: set[str] = field(default_factory=set)


class Summarizer:
    """Summarizes for all projects of one memory home. The caller holds the summaries' lock."""

    def __init__(
        self,
        home: Home,
        settings_of: Callable[[Project], Settings],
        calls: Calls,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.home = home
        self.settings_of = settings_of
        self.calls = calls
        self.waiting = WaitingSessions(home)
        self._clock = clock
        self._archive = Archive(home)

    def run_due(self, report: SummaryReport, should_stop: Callable[[], bool]) -> None:
        """Make the calls that are due now; what went wrong is in the report."""
        for root, candidates in self.closed().items():
            due = self._due(root, candidates)
            if due:
                self.summarize(root, due, report, should_stop)

    def summarize(
        self,
        root: str,
        candidates: Sequence[Candidate],
        report: SummaryReport,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Summarize segments of one project, as many a call as fit."""
        settings = self.settings_of(Project(root))
        for group in grouped(candidates, settings.summarize):
            if should_stop():
                return
            try:
                self._summarize(root, group, settings, report)
            except BudgetReachedError as error:
                report.failures.append(str(error))
                return
            except MemkitError as error:
                logger.warning("%s: %s", root, error)
                report.failures.append(str(error))
                self._note_failure(candidates if _concerns_all(error) else group, error)
                if _concerns_all(error):
                    return

    def closed(self) -> dict[str, list[Candidate]]:
        """All closed segments that may be tried now, by project, oldest first; what is done is forgotten."""
        now = self._clock()
        live = {one.session for one in LiveSessions(self.home)}
        found: dict[str, list[Candidate]] = {}
        for waiting in list(self.waiting):
            project = Project.at_root(waiting.root, self.home)
            try:
                settings = self.settings_of(project)
                if project.is_off or not settings.summarize.is_on:
                    continue
                own = self._closed_of(project, waiting, settings, now, waiting.session in live)
            except (MemkitError, OSError) as error:  # one session's trouble is not another's
                logger.warning("session %s is not summarized: %s", waiting.session, error)
                continue
            if own:
                found.setdefault(project.root, []).extend(own)
        return {root: _in_order(candidates) for root, candidates in found.items()}

    def asked_for(self, project: Project, since: str) -> list[Candidate]:
        """The closed segments of one project that wait, whatever became of them so far; with a day
        `since` (ISO) also all others from then on. Oldest first.
        """
        settings = self.settings_of(project)
        known = {one.session: one for one in self.waiting if one.root == project.root}
        wanted = {session: set(one.days) for session, one in known.items()}
        journal = Journal(project)
        for day in journal.days() if since else ():
            if day >= since:
                for session in journal.day(day).sessions():
                    wanted.setdefault(session, set()).add(day)
        now = datetime.fromtimestamp(self._clock())
        live = {one.session for one in LiveSessions(self.home)}
        found = []
        for session, days in wanted.items():
            tries = known[session].tries if session in known else {}
            waiting = Waiting(project.root, session, sorted(days), self._clock(), tries)
            for day in sorted(days):
                segments = find_segments(journal, self._archive, session, day, settings.summarize)
                found += [
                    Candidate(waiting, one)
                    for one in segments
                    if one.is_closed(now, settings.summarize, is_live=session in live)
                ]
        return _in_order(found)

    def keep(self, candidates: Sequence[Candidate]) -> None:
        """Remember, durably, that these were asked for, and forget how earlier tries ended."""
        for waiting in {id(one.waiting): one.waiting for one in candidates}.values():
            waiting.tries.clear()
            self.waiting.add(waiting.root, waiting.session, waiting.days, waiting.changed)
            self.waiting.note(waiting, ())

    def _closed_of(
        self, project: Project, waiting: Waiting, settings: Settings, now: float, is_live: bool
    ) -> list[Candidate]:
        """The closed segments of one session; its days without any segment left are forgotten."""
        local = datetime.fromtimestamp(now)
        journal = Journal(project)
        found, finished = [], []
        for day in waiting.days:
            segments = find_segments(
                journal, self._archive, waiting.session, day, settings.summarize
            )
            if not segments:
                finished.append(day)
            found += [
                Candidate(waiting, segment)
                for segment in segments
                if segment.is_closed(local, settings.summarize, is_live=is_live)
            ]
        if finished:
            self.waiting.note(waiting, finished)
        return [one for one in found if not one.tried.given_up and one.tried.again <= now]

    def _due(self, root: str, candidates: Sequence[Candidate]) -> list[Candidate]:
        """What is to be summarized now: all, if that has waited long enough or nothing more is to come
        soon; else what fills whole calls.
        """
        settings = self.settings_of(Project(root)).summarize
        now = self._clock()
        wait = 0.0 if settings.mode == "turn" else settings.wait_minutes * MINUTE
        oldest = min(one.segment.turns[-1].ended for one in candidates)
        is_live = any(one.root == root for one in LiveSessions(self.home))
        newest = max(one.waiting.changed for one in candidates)
        is_quiet = not is_live and now - newest >= QUIET_SECONDS
        if is_quiet or now - oldest.timestamp() >= wait:
            return list(candidates)
        *full, _ = grouped(candidates, settings)
        return [one for group in full for one in group]

    def _summarize(
        self, root: str, group: Sequence[Candidate], settings: Settings, report: SummaryReport
    ) -> None:
        """One call. Raises `BudgetReachedError`, `ModelError`, `JournalError`."""
        segments = [one.segment for one in group]
        patterns = settings.capture.compiled_patterns()
        task = make_task(segments, settings.summarize)
        report.calls += 1
        journal = Journal(Project(root), shared=settings.memory.shared)
        with self.calls.ask(task, settings.summarize, "summarize", root) as reply:
            found = read_bullets(
                reply.value,
                turn_numbers(segments),
                self._evidence(journal, segments),
                lambda text: redact(text, patterns),
            )
        pending.mark(self.home, root)
        for place, one in enumerate(group):
            self._write(journal, one, found.get(place, []), report)
        report.projects.add(root)

    def _write(
        self, journal: Journal, one: Candidate, bullets: Sequence[Bullet], report: SummaryReport
    ) -> None:
        turns = [turn.id for turn in one.segment.turns]
        forgotten = Tombstones(self.home).forgotten().grips
        lines = [bullet.line for bullet in bullets if bullet.grip not in forgotten]
        if journal.summarize(one.segment.day, turns, lines):
            report.segments += 1
            report.bullets += len(lines)
        if one.waiting.tries.pop(one.segment.id, None) is not None:
            self.waiting.note(one.waiting, ())

    def _evidence(
        self, journal: Journal, segments: Sequence[Segment]
    ) -> Callable[[str], str]:
        kept: dict[tuple[str, str], Evidence] = {}
        place_of = {turn.id: segment for segment in segments for turn in segment.turns}

        def evidence(turn: str) -> str:
            segment = place_of[turn]
            key = (segment.session, segment.day)
            if key not in kept:
                kept[key] = Evidence(journal, self._archive, *key)
            return kept[key].of(turn)

        return evidence

    def _note_failure(self, group: Sequence[Candidate], error: MemkitError) -> None:
        """Say when each of the segments is tried again, or that it is given up."""
        now = self._clock()
        asked = error.retry_after or 0.0 if isinstance(error, ModelError) else 0.0
        patience = OUTAGE_SECONDS if _concerns_all(error) else 0.0
        for one in group:
            count = one.tried.count + 1
            since = one.tried.since or now
            is_last = count > len(AGAIN_SECONDS) and now - since >= patience
            pause = max(asked, AGAIN_SECONDS[min(count, len(AGAIN_SECONDS)) - 1])
            one.waiting.tries[one.segment.id] = Try(count, since, now + pause, str(error), is_last)
        for waiting in {id(one.waiting): one.waiting for one in group}.values():
            self.waiting.note(waiting, ())


def _in_order(candidates: Sequence[Candidate]) -> list[Candidate]:
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


def _concerns_all(error: MemkitError) -> bool:
    return isinstance(error, ModelError) and error.concerns_all


def grouped(
    candidates: Sequence[Candidate], settings: SummarizeSettings
) -> Iterator[list[Candidate]]:
    """Segments that go into one call each, those of a session one after the other. Those that failed
    before go alone, so that what is wrong with one does not take the others with it.
    """
    group: list[Candidate] = []
    for one in candidates:
        if one.tried.count or settings.mode == "turn":
            yield [one]
            continue
        if group and sum(each.segment.tokens for each in group) + one.segment.tokens > CALL_TOKENS:
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
