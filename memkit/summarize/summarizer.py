"""Has waiting segments summarized: which are due, in which calls, and what becomes of the answers."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from memkit.archive.archive import Archive
from memkit.capture.live_sessions import LiveSessions
from memkit.capture.sessions import Sessions
from memkit.capture.summary_queue import Attempt, QueuedSession, SummaryQueue
from memkit.errors import ConfigError, JournalError, MemkitError
from memkit.hook.project import Project
from memkit.ipc import unindexed
from memkit.journal.journal import Journal
from memkit.llm.calls import BudgetReachedError, Calls
from memkit.llm.model import ModelError
from memkit.paths import Home
from memkit.privacy.exclusion import Exclusion
from memkit.privacy.redact import redact
from memkit.privacy.tombstones import Tombstones
from memkit.settings.load import Settings
from memkit.summarize.bullets import Bullet, read_bullets
from memkit.summarize.evidence import evidence_for
from memkit.summarize.groups import Candidate, grouped, in_order
from memkit.summarize.prompt import make_task, turn_numbers
from memkit.summarize.reading import find_segments
from memkit.summarize.segments import Segment

logger = logging.getLogger(__name__)

MINUTE, HOUR = 60.0, 3600.0

QUIET_SECONDS = 5 * MINUTE
"""After so long without a turn, in a project without a live session, nothing more is waited for."""

AGAIN_SECONDS = (10 * MINUTE, HOUR, 4 * HOUR, 12 * HOUR)
"""How long after each failure a segment is tried again; after one more it is given up."""

LONGEST_PAUSE = 24 * HOUR
"""However long a provider asks to wait, and however far the clock was ahead when that was noted."""

GONE_SECONDS = 90 * 24 * HOUR
"""How long a day that is gone from the memory, with its disk or by a checkout, may come back."""

OUTAGE_SECONDS = 72 * HOUR
"""How long at least it is tried if the provider as a whole is at fault."""


@dataclass(slots=True)
class SummaryReport:
    """What a run did: segments that got bullets, how many bullets, model calls, lines for people, the
    roots of changed projects, and whether the budget ended it.
    """

    segments: int = 0
    bullets: int = 0
    calls: int = 0
    failures: list[str] = field(default_factory=list)
    projects: set[str] = field(default_factory=set)
    is_out_of_budget: bool = False


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
        self.waiting = SummaryQueue(home)
        self._clock = clock
        self._archive = Archive(home)

    def run_due(self, report: SummaryReport, should_stop: Callable[[], bool]) -> None:
        """Make the calls that are due now; what went wrong is in the report."""
        for root, candidates in self.closed().items():
            due = self._due(root, candidates)
            if due:
                self.summarize(root, due, report, should_stop)
            if report.is_out_of_budget:
                return

    def summarize(
        self,
        root: str,
        candidates: Sequence[Candidate],
        report: SummaryReport,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Summarize segments of one project, as many a call as fit."""
        settings = self.settings_of(Project(root))
        groups = list(grouped(candidates, settings.summarize))
        for number, group in enumerate(groups):
            if should_stop():
                return
            try:
                self._summarize(root, group, settings, report)
            except BudgetReachedError as error:
                report.failures.append(str(error))
                report.is_out_of_budget = True
                return
            except MemkitError as error:
                logger.warning("%s: %s", root, error)
                report.failures.append(str(error))
                if _concerns_all(error):
                    self._note_failure([one for rest in groups[number:] for one in rest], error)
                    return
                self._note_failure(group, error)
            except Exception as error:  # or the same call would be made and paid for each minute
                logger.exception("%s: a summary failed", root)
                report.failures.append(f"{type(error).__name__}: {error}")
                self._note_failure(group, error)

    def closed(self) -> dict[str, list[Candidate]]:
        """All closed segments that may be tried now, by project, oldest first; what is done is forgotten."""
        now = self._clock()
        live = {one.session for one in LiveSessions(self.home)}
        found: dict[str, list[Candidate]] = {}
        for waiting in list(self.waiting):
            project = Project(waiting.root)
            try:
                settings = self.settings_of(project)
                if project.is_off or not settings.summarize.is_on or _is_excluded(project, settings):
                    continue
                own = self._closed_of(project, waiting, settings, now, waiting.session in live)
            except (MemkitError, OSError) as error:  # one session's trouble is not another's
                logger.warning("session %s is not summarized: %s", waiting.session, error)
                continue
            if own:
                found.setdefault(project.root, []).extend(own)
        return {root: in_order(candidates) for root, candidates in found.items()}

    def asked_for(self, project: Project, since: str) -> list[Candidate]:
        """The closed segments of one project that wait, whatever became of them so far; with a day
        `since` (ISO) also all others from then on. Oldest first.
        """
        settings = self.settings_of(project)
        if _is_excluded(project, settings):
            return []
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
            waiting = QueuedSession(project.root, session, sorted(days), self._clock(), tries)
            for day in sorted(days):
                segments = self._segments(journal, session, day, settings)
                found += [
                    Candidate(waiting, one)
                    for one in segments
                    if one.is_closed(now, settings.summarize, is_live=session in live)
                ]
        return in_order(found)

    def keep(self, candidates: Sequence[Candidate]) -> None:
        """Remember, durably, that these were asked for, and forget how earlier tries ended."""
        for waiting in {id(one.waiting): one.waiting for one in candidates}.values():
            waiting.tries.clear()
            self.waiting.add(waiting.root, waiting.session, waiting.days, waiting.changed)
            self.waiting.note(waiting, ())

    def _closed_of(
        self, project: Project, waiting: QueuedSession, settings: Settings, now: float, is_live: bool
    ) -> list[Candidate]:
        """The closed segments of one session; its days without any segment left are forgotten.

        One that is gone altogether may be on a disk that is out, or in another checkout.
        """
        local = datetime.fromtimestamp(now)
        journal = Journal(project)
        found, finished = [], []
        for day in waiting.days:
            segments = self._segments(journal, waiting.session, day, settings)
            is_gone = not journal.path(day).exists()
            if not segments and not (is_gone and now - waiting.changed < GONE_SECONDS):
                finished.append(day)
            found += [
                Candidate(waiting, segment)
                for segment in segments
                if segment.is_closed(local, settings.summarize, is_live=is_live)
            ]
        if finished:
            self.waiting.note(waiting, finished)
        return [
            one
            for one in found
            if not one.tried.given_up and not now < one.tried.again <= now + LONGEST_PAUSE
        ]

    def _segments(
        self, journal: Journal, session: str, day: str, settings: Settings
    ) -> list[Segment]:
        if not settings.memory.shared and journal.is_public(day):
            logger.info("%s gets no bullets: git tracks it, and memory.shared is off", journal.path(day))
            return []
        under_way = Sessions(self.home).load(session).under_way
        return find_segments(
            journal, self._archive, session, day, settings.summarize, under_way
        )

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
        # A time ahead of now is one of a clock that was wrong.
        is_quiet = not is_live and not 0 <= now - newest < QUIET_SECONDS
        if is_quiet or not 0 <= now - oldest.timestamp() < wait:
            return list(candidates)
        *full, _ = grouped(candidates, settings)
        return [one for group in full for one in group]

    def _summarize(
        self, root: str, group: Sequence[Candidate], settings: Settings, report: SummaryReport
    ) -> None:
        """One call. Raises `BudgetReachedError`, `ModelError`, `JournalError`."""
        segments = [one.segment for one in group]
        clean = functools.partial(redact, patterns=settings.capture.compiled_patterns())
        task = make_task(segments, settings.summarize, clean)
        report.calls += 1
        journal = Journal(Project(root), shared=settings.memory.shared, home=self.home)
        with self.calls.ask(task, settings.summarize, "summarize", root) as reply:
            found = read_bullets(
                reply.value,
                turn_numbers(segments),
                evidence_for(journal, self._archive, segments),
                clean,
                # Small talk deserves no bullet; a model that says so twice is believed.
                may_be_empty=any(one.tried.count for one in group),
            )
        unindexed.mark(self.home, root)
        for place, one in enumerate(group):
            self._write(journal, one, found.get(place, []), report)
        report.projects.add(root)

    def _write(
        self, journal: Journal, one: Candidate, bullets: Sequence[Bullet], report: SummaryReport
    ) -> None:
        turns = [turn.id for turn in one.segment.turns]
        forgotten = Tombstones(self.home).forgotten().grips
        lines = [bullet.line for bullet in bullets if bullet.grip not in forgotten]
        if not journal.summarize(one.segment.day, turns, lines):
            path = journal.path(one.segment.day)
            self._note_failure([one], JournalError(f"{path} was changed meanwhile; tried again later"))
            return
        report.segments += 1
        report.bullets += len(lines)
        if one.waiting.tries.pop(one.segment.id, None) is not None:
            self.waiting.note(one.waiting, ())

    def _note_failure(self, group: Sequence[Candidate], error: Exception) -> None:
        """Say when each of the segments is tried again, or that it is given up."""
        now = self._clock()
        asked = error.retry_after or 0.0 if isinstance(error, ModelError) else 0.0
        patience = OUTAGE_SECONDS if _concerns_all(error) else 0.0
        for one in group:
            count = one.tried.count + 1
            since = one.tried.since or now
            is_last = count > len(AGAIN_SECONDS) and now - since >= patience
            pause = max(asked, AGAIN_SECONDS[min(count, len(AGAIN_SECONDS)) - 1])
            again = now + min(pause, LONGEST_PAUSE)
            suspect = one.tried.is_suspect or not _concerns_all(error)
            one.waiting.tries[one.segment.id] = Attempt(count, since, again, str(error), is_last, suspect)
        for waiting in {id(one.waiting): one.waiting for one in group}.values():
            self.waiting.note(waiting, ())


def _is_excluded(project: Project, settings: Settings) -> bool:
    return Exclusion(settings.capture.exclude, project.root).covers_session(project.root)


def _concerns_all(error: Exception) -> bool:
    """Whether it is no fault of a segment: the provider's, or that of the instructions."""
    return error.concerns_all if isinstance(error, ModelError) else isinstance(error, ConfigError)
