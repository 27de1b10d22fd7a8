"""Summaries of queued segments: which ones to summarize now, in which calls, and how to handle failures."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from itertools import count, groupby
from typing import TYPE_CHECKING, Any

from memkit import embedding
from memkit.archive.archive import Archive
from memkit.bullets import WrittenBullet
from memkit.capture.sessions import LiveSessions, Sessions
from memkit.capture.summary_queue import Attempt, QueuedSession, SummaryQueue
from memkit.errors import ConfigError, JournalError, MemkitError
from memkit.hook.entries import OwnEntries, machine_of
from memkit.ipc import unindexed
from memkit.journal.day_summaries import extracted, turns_of, unchecked
from memkit.journal.journal import Journal
from memkit.llm import ModelError, Provider, Reply, UnusableReplyError
from memkit.llm.calls import (
    ROUND_SECONDS,
    SMALLEST_CALL,
    BudgetReachedError,
    BusyError,
    Calls,
    Plan,
    calls_lock,
)
from memkit.paths import Home
from memkit.privacy.exclusion import Exclusion
from memkit.privacy.redact import redact
from memkit.privacy.tombstones import Tombstones
from memkit.projects.project import Project
from memkit.settings import LOCAL_PROVIDERS, EmbeddingSettings, SummarizeSettings
from memkit.settings.load import Settings
from memkit.summarize import second_look
from memkit.summarize.answer import SegmentSummary, read_answer
from memkit.summarize.bullets import (
    CallPart,
    instructions,
    make_task,
    passages_for,
    read_evidence,
    turn_numbers,
)
from memkit.summarize.extract import write_extracts
from memkit.summarize.second_look import ALONE_SECONDS, LOOK_SHARE, Question, checked, read_verdicts
from memkit.summarize.segments import (
    Candidate,
    Segment,
    SegmentTurn,
    group_into_calls,
    in_order,
    read_segments,
    sessions_of,
)
from memkit.summarize.wording import KnownVectors
from memkit.text import plural

if TYPE_CHECKING:
    from memkit.embedding import Embedder

    FindEmbedder = Callable[[EmbeddingSettings], tuple[Embedder | None, str]]

logger = logging.getLogger(__name__)

MINUTE, HOUR = 60.0, 3600.0

WORTH_TURNS, SHORT_FACTOR, SHORT_SECONDS = 3, 12, 48 * HOUR
"""A segment of fewer turns waits this many times as long, at most so long, also after its day."""

RETRY_SECONDS = (10 * MINUTE, HOUR, 4 * HOUR, 12 * HOUR)
"""The pauses after the failures of a segment. After one more failure memkit gives it up."""

LONGEST_PAUSE = 24 * HOUR
"""The longest pause, whatever a provider asks for and however wrong the clock was."""

GONE_SECONDS = 90 * 24 * HOUR
"""A missing day stays queued this long: its disk may be unplugged, or another branch checked out."""

OUTAGE_SECONDS = 72 * HOUR
"""The least time before memkit gives a segment up if its provider is at fault."""


@dataclass(slots=True)
class SummaryReport:
    """The result of a round: summarized segments, bullets, model calls, failures as lines for users, and
    the roots of changed projects. `extracts` counts the segments that got an extract instead.
    """

    segments: int = 0
    extracts: int = 0
    bullets: int = 0
    calls: int = 0
    failures: list[str] = field(default_factory=list)
    projects: set[str] = field(default_factory=set)
    is_out_of_budget: bool = False


def run_summaries(
    home: Home, settings_of: Callable[[Project], Settings],
    find_provider: Callable[[SummarizeSettings], Provider], *, find_embedder: FindEmbedder | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> SummaryReport:
    """Make the model calls whose time has come in all projects, or none if another process makes some.

    The caller updates the index of the report's projects. `find_embedder` is for a caller that has embedders
    loaded.
    """
    report = SummaryReport()
    if SummaryQueue(home):
        calls = Calls(home, find_provider)
        with suppress(BusyError), calls_lock(home):  # a busy process finds the same segments
            Summarizer(home, settings_of, calls, find_embedder).run(report, should_stop)
    return report


class Summarizer:
    """Summarizes the projects of one memory home. The caller of `run` and `summarize` holds `calls_lock`."""

    def __init__(
        self, home: Home, settings_of: Callable[[Project], Settings], calls: Calls,
        find_embedder: FindEmbedder | None = None,
    ) -> None:  # fmt: skip
        self.home = home
        self.settings_of = settings_of
        self.calls = calls
        self.queue = SummaryQueue(home)
        self._archive = Archive(home)
        self._find_embedder = find_embedder or cache(partial(embedding.find_embedder, home))

    def run(self, report: SummaryReport, should_stop: Callable[[], bool]) -> None:
        """Make the calls whose time has come, and put the results and errors into `report`."""
        found = self._look_through(report, should_stop)
        pools: dict[Any, list[str]] = {}
        for root in found:
            settings = self._settings(root)
            # One call has one model, one set of instructions, and one budget.
            pools.setdefault(settings if settings.share_calls else root, []).append(root)
        for roots in pools.values():
            ready = self._ready(in_order([one for root in roots for one in found[root]]))
            if ready or self._is_look_due(roots):
                self.summarize(ready, report, should_stop, roots)
            if report.is_out_of_budget:
                return

    def select(self, project: Project, since: str) -> list[Candidate]:
        """Return the closed segments of a project that are queued, oldest first, including those that failed.

        With a day `since` (ISO), include all other segments from then on.
        """
        settings = self.settings_of(project)
        if is_excluded(project, settings):
            return []
        known = {one.session: one for one in self.queue if one.root == project.root}
        wanted = {session: set(one.days) for session, one in known.items()}
        journal = Journal(project)
        for day in journal.days() if since else ():
            if day >= since and not machine_of(day):  # other machines summarize their own
                for session in journal.day(day).sessions():
                    wanted.setdefault(session, set()).add(day)
        live = _live_sessions(self.home)
        found = []
        for session, days in wanted.items():
            tries = known[session].tries if session in known else {}
            queued = QueuedSession(project.root, session, sorted(days), self.calls.now(), tries)
            found += self._candidates(queued, settings, session in live)[0]
        return in_order(found)

    def plan(self, candidates: Sequence[Candidate], settings: SummarizeSettings) -> Plan:
        """Estimate the calls for `candidates`. Raise `NotConfiguredError`, `ConfigError`."""
        calls = len(list(group_into_calls(candidates, settings)))
        calls += bool(calls)  # the second look at the bullets of the last one
        material = round(sum(one.segment.tokens for one in candidates) * (1 + LOOK_SHARE))
        return self.calls.plan(calls, material, instructions(settings), settings)

    def requeue(self, candidates: Sequence[Candidate]) -> None:
        """Queue the sessions of `candidates` durably, without their earlier attempts."""
        for queued in sessions_of(candidates):
            queued.tries.clear()
            self.queue.add(queued.root, queued.session, queued.days, queued.changed)
            self.queue.update(queued)

    def summarize(
        self, candidates: Sequence[Candidate], report: SummaryReport,
        should_stop: Callable[[], bool] = lambda: False, roots: Collection[str] = (),
    ) -> None:  # fmt: skip
        """Summarize segments, as many per call as fit. Each call takes unchecked bullets along.

        They are of the projects of the segments and of `roots`, which have the same settings for summaries.
        Without segments, make one call for bullets alone.
        """
        roots = sorted({one.queued.root for one in candidates}.union(roots))
        if not roots:
            return
        groups = list(group_into_calls(candidates, self._settings(roots[0]))) or [[]]
        for number, group in enumerate(groups):
            if should_stop():
                return
            made = self.calls.made
            try:
                self._call(group, roots, report)
            except BudgetReachedError as error:
                report.failures.append(str(error))
                report.is_out_of_budget = True
                return
            except MemkitError as error:
                logger.warning("%s: %s", ", ".join(roots), error)
                report.failures.append(str(error))
                if concerns_all(error):
                    self._note_failure([one for rest in groups[number:] for one in rest], error)
                    return
                self._note_failure(group, error)
            except Exception as error:  # without a note, each round would pay for the same call again
                logger.exception("%s: a summary failed", ", ".join(roots))
                report.failures.append(f"{type(error).__name__}: {error}")
                self._note_failure(group, error)
            finally:
                report.calls += self.calls.made - made

    def summarize_agreed(self, project: Project, since: str, agreed: Collection[str]) -> SummaryReport:
        """Summarize the segments of `select` whose IDs the user agreed to. Raise `BusyError`."""
        report = SummaryReport()
        with calls_lock(self.home, ROUND_SECONDS):
            # The service may have done some of them in the meantime.
            candidates = [one for one in self.select(project, since) if one.segment.id in agreed]
            self.requeue(candidates)
            self.summarize(candidates, report)
            self.summarize([], report, roots=[project.root])  # the bullets of the last call
            settings = self.settings_of(project)
            for queued in [one for one in self.queue if one.root == project.root]:
                _, finished = self._candidates(queued, settings, is_live=False)
                if finished:  # the project's rollups wait for these days
                    self.queue.update(queued, finished)
        return report

    def extract(self, root: str, candidates: Sequence[Candidate], report: SummaryReport) -> None:
        """Write extracts of segments of one project. Raise `JournalError`."""
        settings = self.settings_of(Project(root, self.home))
        journal = Journal(Project(root, self.home), shared=settings.memory.shared, home=self.home)
        clean = partial(redact, patterns=settings.capture.compiled_patterns())
        segments = [one.segment for one in candidates]
        written = write_extracts(self.home, journal, self._archive, segments, clean)
        report.extracts += written
        if written:
            report.projects.add(root)

    def extract_imported(self, root: str, session: str, days: Collection[str], report: SummaryReport) -> None:
        """Write extracts of an imported session, which no model summarizes unasked. Raise `JournalError`."""
        project = Project(root, self.home)
        settings = self.settings_of(project)
        if settings.summarize.mode == "off" or is_left_out(project, settings):
            return
        queued = QueuedSession(root, session, sorted(days), self.calls.now())
        found, _ = self._candidates(queued, settings, session in _live_sessions(self.home))
        self.extract(root, in_order(found), report)

    def _look_through(
        self, report: SummaryReport, should_stop: Callable[[], bool]
    ) -> dict[str, list[Candidate]]:
        """Write the extracts that are due. Return what a model is to summarize now, by project."""
        live = _live_sessions(self.home)
        found: dict[str, list[Candidate]] = {}
        for queued in list(self.queue):
            if should_stop():
                break
            project = Project(queued.root, self.home)
            try:
                settings = self.settings_of(project)
                if settings.summarize.mode == "off" or is_left_out(project, settings):
                    continue
                by_model = settings.summarize.is_on
                candidates, finished = self._candidates(queued, settings, queued.session in live)
                if by_model:
                    found.setdefault(project.root, [])
                else:
                    self.extract(project.root, candidates, report)
                    finished += _days_with_extracts(Journal(project), queued)
                if finished:
                    self.queue.update(queued, finished)
            except (MemkitError, OSError) as error:  # other sessions may be fine
                logger.warning("session %s is not summarized: %s", queued.session, error)
                continue
            now = self.calls.now()
            for one in candidates if by_model else ():
                # A pause longer than the longest one comes from a clock that was wrong.
                is_pausing = now < one.attempt.again <= now + LONGEST_PAUSE
                if not (one.attempt.given_up or is_pausing):
                    found.setdefault(project.root, []).append(one)
        return found

    def _candidates(
        self, queued: QueuedSession, settings: Settings, is_live: bool
    ) -> tuple[list[Candidate], list[str]]:
        """Return the closed segments of a session, and its days that need no more summaries."""
        now = self.calls.now()
        journal = Journal(Project(queued.root, self.home))
        under_way = Sessions(self.home).load(queued.session).under_way
        found: list[Candidate] = []
        finished = []
        wants_extracts = settings.summarize.wants_extracts
        for day in queued.days:
            segments: list[Segment] = []
            if self._is_closed_off(journal, day):
                path = journal.path(day)
                logger.info("%s gets no bullets: git tracks it, and memory.shared is off", path)
            else:
                segments = read_segments(
                    journal, self._archive, queued.session, day, settings.summarize, under_way
                )
            if not wants_extracts:
                segments = [one for one in segments if any(turn.is_work for turn in one.turns)]
            may_return = not journal.path(day).exists() and now - queued.changed < GONE_SECONDS
            if not (segments or may_return or self._unchecked(journal, queued.session, day)):
                finished.append(day)
            moment = datetime.fromtimestamp(now)
            found += [
                Candidate(queued, segment)
                for segment in segments
                if segment.is_closed(moment, settings.summarize, is_live=is_live)
            ]
        return found, finished

    def _ready(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Segments of one or two turns are hardly worth a call of their own, and wait longer."""
        waiting = [one for one in candidates if not one.attempt.count]
        if not waiting:
            return list(candidates)
        settings = self._settings(waiting[0].queued.root)
        now = self.calls.now()
        wait = 0.0 if settings.mode == "turn" else settings.wait_minutes * MINUTE

        def has_waited(turns: Sequence[SegmentTurn]) -> bool:
            is_short = len(turns) < WORTH_TURNS
            patience = min(wait * SHORT_FACTOR, SHORT_SECONDS) if is_short else wait
            # A time in the future comes from a clock that was wrong.
            return not 0 <= now - turns[-1].ended.timestamp() < patience

        today = datetime.fromtimestamp(now).date().isoformat()
        is_over = any(one.segment.day < today for one in waiting if len(one.segment.turns) >= WORTH_TURNS)
        if is_over or any(has_waited(one.segment.turns) for one in waiting):
            return list(candidates)
        *full, _ = group_into_calls(waiting, settings)
        ready = {one.segment.id for group in full for one in group}
        return [one for one in candidates if one.attempt.count or one.segment.id in ready]

    def _settings(self, root: str) -> SummarizeSettings:
        return self.settings_of(Project(root, self.home)).summarize

    def _unchecked(self, journal: Journal, session: str, day: str) -> list[WrittenBullet]:
        """Return the bullets that wait for a look and that this home wrote: others must not cause a call."""
        if self._is_closed_off(journal, day):
            return []
        found = [one for one in unchecked(journal.day(day), session) if second_look.is_waiting(one)]
        own = OwnEntries(self.home, journal.project.root) if found else ()
        return [one for one in found if one.text in own]

    def _waiting_looks(
        self, roots: Collection[str], among: Iterable[QueuedSession]
    ) -> Iterator[tuple[QueuedSession, str, list[WrittenBullet]]]:
        queued = [(day, one) for one in among if one.root in roots for day in one.days]
        for day, one in sorted(queued, key=lambda pair: pair[0]):
            try:
                bullets = self._unchecked(Journal(Project(one.root, self.home)), one.session, day)
            except JournalError as error:  # other days may be fine
                logger.warning("bullets are not checked: %s", error)
                continue
            if bullets:
                yield one, day, bullets

    def _is_closed_off(self, journal: Journal, day: str) -> bool:
        return not self.settings_of(journal.project).memory.shared and journal.is_public(day)

    def _is_look_due(self, roots: Collection[str]) -> bool:
        now = self.calls.now()
        due = [one for one in self.queue if not now < one.look <= now + ALONE_SECONDS]
        return any(True for _ in self._waiting_looks(roots, due))

    def _questions(self, roots: Collection[str], material: int) -> list[Question]:
        """Return the oldest questions that fit into a call next to its material."""
        left = self.calls.left(self._settings(min(roots))) - SMALLEST_CALL - material
        room = min(second_look.LOOK_TOKENS, left)
        found: list[Question] = []
        known: dict[str, KnownVectors | None] = {}
        for queued, day, bullets in self._waiting_looks(roots, self.queue) if room > 0 else ():
            project = Project(queued.root, self.home)
            if project.root not in known:
                embedder = self._embedder(self.settings_of(project))
                known[project.root] = KnownVectors(embedder) if embedder else None
            turns = [turn for one in bullets for turn in one.turns]
            evidence = read_evidence(Journal(project), self._archive, [(queued.session, day, turns)])
            for bullet in bullets:
                shown = passages_for(bullet, [evidence[turn] for turn in bullet.turns], known[project.root])
                one = Question(queued.root, queued.session, day, bullet, shown)
                room -= one.tokens
                if room < 0 or len(found) == second_look.MOST_QUESTIONS:
                    return found
                found.append(one)
        return found

    def _call(self, group: Sequence[Candidate], roots: Collection[str], report: SummaryReport) -> None:
        """Raise `BudgetReachedError`, `ModelError`, `ConfigError`, `JournalError`."""
        group = sorted(group, key=lambda one: one.queued.root)
        is_suspect = any(one.attempt.is_suspect for one in group)
        questions = [] if is_suspect else self._questions(roots, sum(one.segment.tokens for one in group))
        asking = {(one.queued.root, one.queued.session) for one in group}
        asking |= {(one.root, one.session) for one in questions}
        if not asking:
            return
        for root, session in asking:  # before the call: the next one waits also if this one is killed
            self.queue.postpone_look(root, session, self.calls.now() + ALONE_SECONDS)
        names = sorted({root for root, _ in asking})
        parts = []
        for root in names:
            project = Project(root, self.home)
            chosen = self.settings_of(project)
            clean = partial(redact, patterns=chosen.capture.compiled_patterns())
            journal = Journal(project, shared=chosen.memory.shared, home=self.home)
            segments = [one.segment for one in group if one.queued.root == root]
            parts.append(CallPart(journal, clean, segments, [one for one in questions if one.root == root]))
        settings, purpose = self._settings(names[0]), "summarize" if group else "check"
        shares: dict[str, int] = {}
        for part in parts if len(parts) > 1 else ():
            asked = sum(question.tokens for question in part.questions)
            shares[part.journal.project.root] = sum(segment.tokens for segment in part.segments) + asked
        task = make_task(parts, settings)
        try:
            with self.calls.ask(task, settings, purpose, ", ".join(names), shares=shares) as reply:
                found = self._read_answer(reply, group, parts) if group else {}
        except ModelError as failure:
            if not concerns_all(failure):  # a question may be at fault, and must not spoil each call
                self._set_checks(parts, {}, report)
            raise
        self._set_checks(parts, read_verdicts(reply.value.get("verdicts")), report)
        journals = {part.journal.project.root: part.journal for part in parts}
        for index, summary in sorted(found.items()):
            self._write(journals[group[index].queued.root], group[index], summary, report)
        report.projects.update(names)
        missing = [one for index, one in enumerate(group) if index not in found]
        if missing:
            left_out = f"{len(missing)} of {plural(len(group), 'segment')}"
            error = UnusableReplyError(f"the model's answer leaves out {left_out}; memkit asks again")
            report.failures.append(str(error))
            self._note_failure(missing, error)

    def _read_answer(
        self, reply: Reply, group: Sequence[Candidate], parts: Sequence[CallPart]
    ) -> dict[int, SegmentSummary]:
        """Return the summaries in a reply by the index of their segment in `group`; see `read_answer`."""
        numbers = turn_numbers([one.segment for one in group])
        found: dict[int, SegmentSummary] = {}
        for part in parts:
            project = part.journal.project
            cited = [(one.session, one.day, [turn.id for turn in one.turns]) for one in part.segments]
            evidence = read_evidence(part.journal, self._archive, cited)
            embedder = self._embedder(self.settings_of(project))
            summaries = read_answer(reply.value, numbers, evidence, part.redact, embedder)
            own = [index for index in summaries if group[index].queued.root == project.root]
            found |= {index: summaries[index] for index in own}
        # A model may spell "nothing to remember" like this: accept it of a segment asked again, alone.
        if not reply.value["segments"] and len(group) == 1 and group[0].attempt.count:
            found = {0: SegmentSummary()}
        if not found:
            raise UnusableReplyError("the model's answer has no usable entry for any segment")
        return found

    def _embedder(self, settings: Settings) -> Embedder | None:
        if settings.embedding.provider not in LOCAL_PROVIDERS:
            return None
        return self._find_embedder(settings.embedding)[0]

    def _set_checks(
        self, parts: Iterable[CallPart], verdicts: Mapping[int, str], report: SummaryReport
    ) -> None:
        numbers = count(1)
        for part in parts:
            unindexed.mark(self.home, part.journal.project.root)
            for day, questions in groupby(part.questions, key=lambda one: one.day):
                bullets = [one.bullet for one in questions]
                marks = {one.line: checked(one, verdicts.get(next(numbers), "")) for one in bullets}
                try:
                    part.journal.set_checks(day, marks)
                except JournalError as error:  # they are asked about again
                    logger.warning("%s", error)
                    report.failures.append(str(error))

    def _write(
        self, journal: Journal, one: Candidate, summary: SegmentSummary, report: SummaryReport
    ) -> None:
        turns = [turn.id for turn in one.segment.turns]
        forgotten = Tombstones(self.home).forgotten().grips
        lines = [bullet.line for bullet in summary.bullets if bullet.grip not in forgotten]
        if not journal.summarize(one.segment.day, turns, lines, summary.title):
            path = journal.path(one.segment.day)
            error = JournalError(f"{path} changed during the call; memkit tries again later")
            self._note_failure([one], error)
            return
        report.segments += 1
        report.bullets += len(lines)
        if one.queued.tries.pop(one.segment.id, None) is not None:
            self.queue.update(one.queued)

    def _note_failure(self, group: Sequence[Candidate], error: Exception) -> None:
        now = self.calls.now()
        is_outage = concerns_all(error)
        asked = error.retry_after or 0.0 if isinstance(error, ModelError) else 0.0
        for one in group:
            tries = one.attempt.count + 1
            since = one.attempt.since or now
            is_last = tries > len(RETRY_SECONDS) and (not is_outage or now - since >= OUTAGE_SECONDS)
            pause = max(asked, RETRY_SECONDS[min(tries, len(RETRY_SECONDS)) - 1])
            one.queued.tries[one.segment.id] = Attempt(
                count=tries, since=since, again=now + min(pause, LONGEST_PAUSE), reason=str(error),
                given_up=is_last, is_suspect=one.attempt.is_suspect or not is_outage,
            )  # fmt: skip
        for queued in sessions_of(group):
            self.queue.update(queued)


def _live_sessions(home: Home) -> set[str]:
    return {one.session for one in LiveSessions(home)}


def _days_with_extracts(journal: Journal, queued: QueuedSession) -> Iterator[str]:
    for day in queued.days:
        content = journal.day(day)
        turns = {one.section.pairs["turn"] for one in turns_of(content, queued.session)}
        if turns and turns <= extracted(content, queued.session):
            yield day


def is_excluded(project: Project, settings: Settings) -> bool:
    """Return whether the settings exclude the sessions of a project."""
    return Exclusion(settings.capture.exclude, project.root).covers_session(project.root)


def is_left_out(project: Project, settings: Settings) -> bool:
    """Return whether no call is made for a project: memkit is off there, or the settings exclude it."""
    return project.is_off or is_excluded(project, settings)


def concerns_all(error: Exception) -> bool:
    """Return whether the provider or the instructions are at fault, not what was to be summarized."""
    return error.concerns_all if isinstance(error, ModelError) else isinstance(error, ConfigError)
