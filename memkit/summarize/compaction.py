"""Compaction: condense memory into lasting facts in `MEMORY.md`, and keep the old text of that file."""

from __future__ import annotations

import difflib
import functools
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from memkit.errors import ArchiveError, MemkitError, NotFoundError
from memkit.files import make_private_directory
from memkit.index import known_projects
from memkit.ipc import unindexed
from memkit.journal.facts import MEMORY_FILE, NO_DAY, Fact, FactChange, FactFile
from memkit.journal.files import directory_of_replaced, keep_replaced, read_file
from memkit.journal.journal import Journal
from memkit.llm import NotConfiguredError, Provider
from memkit.llm.calls import ANSWER_SHARE, CALL_TOKENS, BudgetReachedError, BusyError, Calls, Plan, calls_lock
from memkit.llm.ledger import OK, Ledger
from memkit.paths import Home
from memkit.privacy.redact import redact
from memkit.privacy.tombstones import Tombstones
from memkit.projects.project import Project
from memkit.settings import SummarizeSettings
from memkit.settings.load import Settings
from memkit.state import read_state, write_state
from memkit.summarize.bullets import instructions
from memkit.summarize.facts import (
    EVERYTHING,
    INSTRUCTIONS,
    EntrySelection,
    Source,
    Statement,
    find_entries,
    make_facts_task,
    merged,
    read_facts,
    written_statement,
)
from memkit.summarize.summarizer import SummaryReport
from memkit.text import plural
from memkit.typed import typed

# Undo the last compaction: bring back the facts that it replaced, and remove those that it added.
#
# A compaction keeps the old text of the file (see `keep_replaced`) and, next to it, the IDs of the facts that
# it changed. So an undo leaves everything alone that the user or another program changed since.

VERSION = 1
"""The format version. A file of a newer version is neither read nor written."""

_COPY = re.compile(r"\w[\w.-]{0,200}", re.ASCII)


class LastCompaction(msgspec.Struct, frozen=True):
    """The change that the last compaction of a project made to the file `name`, as IDs without text.

    `copy` is the name of the copy of its old text, "" if it had none. `compacted` is the day (ISO) up to
    which the memory was condensed before, `NO_DAY` for none, or "" if the compaction left it as it was.
    """

    name: str
    copy: str
    removed: frozenset[str]
    added: frozenset[str]
    compacted: str


def _last_compaction(value: dict[str, Any]) -> LastCompaction:
    last = typed(value, LastCompaction)
    if last.copy and not _COPY.fullmatch(last.copy):
        raise ValueError("`copy` is not a name of a copy")
    return last


logger = logging.getLogger(__name__)

PURPOSE = "compact"
"""The purpose of these calls in the ledger."""

ENTRY_TOKENS = 15
"""The tokens of the tag around an entry."""

REMOVED_SHARE = 1 / 3
"""The largest share of all facts that one compaction removes, unless the user agrees to more."""

DAY_SECONDS = 86_400.0

_Piece = TypeVar("_Piece", bound=Source)


class CompactionError(MemkitError):
    """A compaction failed before it was complete. Nothing has changed."""


def batched(pieces: Iterable[_Piece]) -> list[list[_Piece]]:
    """Return `pieces` in order, one list for each call, with as much in a call as fits."""
    batches: list[list[_Piece]] = []
    room = 0
    for piece in pieces:
        tokens = piece.tokens + ENTRY_TOKENS
        if not batches or tokens > room:
            batches.append([])
            room = CALL_TOKENS
        batches[-1].append(piece)
        room -= tokens
    return batches


def run_compactions(
    home: Home, settings_of: Callable[[Project], Settings],
    find_provider: Callable[[SummarizeSettings], Provider], *,
    should_stop: Callable[[], bool] = lambda: False, clock: Callable[[], float] = time.time,
) -> SummaryReport:  # fmt: skip
    """Condense the memory of each project that is due according to `summarize.compact_days`.

    A first run covers only that many days; for older memory, the user runs `memkit compact`. The caller
    updates the index of the report's projects.
    """
    report = SummaryReport()
    for project in known_projects(home):
        if should_stop():
            break
        calls = Calls(home, find_provider, clock)
        try:
            settings, now = settings_of(project), clock()
            if project.is_off or not should_compact(project, home, settings.summarize, now):
                continue
            today = datetime.fromtimestamp(now).date()
            first = (today - timedelta(days=settings.summarize.compact_days)).isoformat()
            compaction = Compaction(project, home, settings, calls, today, since=first)
            done = compaction.run()
            if done.held:
                report.failures.append(f"{project.root}: {compaction.held_line()}")
            if done.is_written:
                report.projects.add(project.root)
        except BusyError:  # the next round tries again
            break
        except (MemkitError, OSError) as error:  # other projects may be fine
            logger.warning("%s is not condensed: %s", project.root, error)
            report.failures.append(f"{project.root}: {error}")
        finally:
            report.calls += calls.made
    return report


def should_compact(project: Project, home: Home, settings: SummarizeSettings, now: float) -> bool:
    """Whether it is time to condense the memory of `project`.

    That is `compact_days` after the last call in the ledger that was answered, or a day after one that
    failed.
    """
    if not settings.compact_days or not settings.is_on:
        return False
    since = datetime.fromtimestamp(now) - timedelta(days=settings.compact_days)
    for call in Ledger(home).calls(since.date().isoformat()):
        if call.purpose == PURPOSE and call.project == project.root:
            days = settings.compact_days if call.outcome == OK else 1
            if 0 <= now - call.time < days * DAY_SECONDS:  # a call in the future: the clock was wrong
                return False
    return True


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """The outcome of a compaction.

    `entries` is the number of entries to condense, `plan` the estimate of the calls, `calls` the number of
    those made. `added` are the new facts in the file at `path`, `removed` the number of old ones that went,
    and `held` those that the model replaced beyond what one compaction may remove. `kept` is the copy of the
    old text, or None.
    """

    path: Path
    entries: int
    plan: Plan
    calls: int = 0
    added: tuple[Fact, ...] = ()
    removed: int = 0
    held: tuple[Fact, ...] = ()
    kept: Path | None = None
    is_written: bool = False


@dataclass
class Compaction:
    """One compaction of a project's memory. The caller of `condense` holds `calls_lock`.

    An empty `selection` means everything since the last compaction of all memory; before the first one, from
    the day `since` (ISO) on. `held` are the facts that the model replaced beyond what one compaction may
    remove: they stay unless the user agrees.
    """

    project: Project
    home: Home
    settings: Settings
    calls: Calls
    today: date
    selection: EntrySelection = EVERYTHING
    since: str = ""
    held: tuple[Fact, ...] = ()

    @functools.cached_property
    def journal(self) -> Journal:
        """The memory with the facts."""
        return Journal(self.project, shared=self.settings.memory.shared, home=self.home)

    @functools.cached_property
    def path(self) -> Path:
        """The file with the facts: another one if git tracks `MEMORY.md`."""
        name = self.journal.day_for(MEMORY_FILE.removesuffix(".md"))
        return self.journal.directory / f"{name}.md"

    @functools.cached_property
    def known(self) -> list[Statement]:
        """The facts in the file. Raise `JournalError`."""
        return [written_statement(one) for one in self._file(self.path.name).facts()]

    @functools.cached_property
    def entries(self) -> list[Source]:
        """The memory to condense. Raise `JournalError`."""
        selection = self.selection
        if self._is_all:
            selection = EntrySelection(since=self.compacted() or self.since)
        return find_entries(self.project, self.home, self.settings, selection, self._redact)

    def compacted(self) -> str:
        """Return the day (ISO) of the last compaction of all memory, or ""."""
        return self._file(self.path.name).compacted or self._file(MEMORY_FILE).compacted

    def plan(self, *, needs_model: bool = True) -> Plan:
        """Estimate the calls. Raise `ConfigError`, `JournalError`, and as `Calls.plan` does."""
        entries = sum(one.tokens + ENTRY_TOKENS for one in self.entries)
        known = sum(one.tokens + ENTRY_TOKENS for one in self.known)
        calls, material = 1, entries + known
        if not self.entries:
            calls = material = 0
        elif not self._is_one_call:
            # All new facts are read a second time, together with the known ones.
            new = round(entries * ANSWER_SHARE)
            calls = len(batched(self.entries)) + 1 + (known + new) // CALL_TOKENS
            material += new
        chosen = self.settings.summarize
        said = instructions(chosen, INSTRUCTIONS)
        return self.calls.plan(calls, material, said, chosen, needs_model=needs_model)

    def check_budget(self, plan: Plan) -> None:
        """Raise `BudgetReachedError` if `plan` exceeds today's budget: a part of it is useless."""
        if plan.tokens > plan.left:
            raise BudgetReachedError(
                f"compacting needs about {plan.tokens:,} tokens, but today's budget has {plan.left:,} left; "
                "select less with --since or --path, or raise summarize.daily_tokens in a terminal of "
                "your own"
            )

    def run(self, wait_seconds: float = 0.0, *, dry_run: bool = False) -> CompactionReport:
        """Condense, and write the change without a question; with `dry_run`, only estimate, without a model.

        Wait at most `wait_seconds` for another process that asks a model, then raise `BusyError`. Raise
        `NotConfiguredError` without a model, and what `check_budget`, `condense`, and `write` raise.
        """
        if not (dry_run or self.settings.summarize.is_on):
            reason = self.settings.summarize.why_off
            raise NotConfiguredError(f"no model is set up to condense the memory, because {reason}")
        plan = self.plan(needs_model=not dry_run)
        report = CompactionReport(self.path, len(self.entries), plan)
        if dry_run or not self.entries:
            return report
        with calls_lock(self.home, wait_seconds):
            self.check_budget(plan)
            change = self.condense()
            kept = self.write(change) if change else None
        return replace(
            report, calls=self.calls.made, added=change.added, removed=len(change.removed),
            held=self.held, kept=kept, is_written=bool(change),
        )  # fmt: skip

    def condense(self) -> FactChange:
        """Make the calls and return the change of facts, which is falsy if there is none.

        It removes at most a third of the facts; see `held` for others. Raise `CompactionError` if a call
        fails or the budget is reached: then nothing changes.
        """
        if not self.entries:
            return FactChange(frozenset(), ())
        try:
            facts = self._condense()
        except MemkitError as error:
            raise CompactionError(f"{error}; nothing was changed (calls made: {self.calls.made})") from error
        after = {one.fact.id for one in facts}
        before = {one.fact.id for one in self.known}
        added = tuple(one.fact for one in facts if one.fact.id not in before)
        replaced = [one.fact for one in self.known if not one.is_own and one.fact.id not in after]
        most = max(1, round(len(self.known) * REMOVED_SHARE))
        self.held = tuple(replaced[most:])
        removed = frozenset(fact.id for fact in replaced[:most])
        return FactChange(removed, added, self.today.isoformat() if self._is_all else "")

    def held_line(self) -> str:
        """Return a line for the user about the facts in `held`."""
        return (
            f"the model replaced {plural(len(self.held), 'more fact')} than the third that one compaction "
            f"may remove; they stay in {self.path} next to the new ones"
        )

    def preview(self, change: FactChange) -> Iterator[str]:
        """Yield `change` as a unified diff of the current file."""
        before = self.journal.text(self.path.name)
        after = change.apply(before, self.path.name)
        path = str(self.path)
        return difflib.unified_diff(before.splitlines(), after.splitlines(), path, path, lineterm="")

    def undo(self) -> FactChange:
        """Return the change that undoes the last compaction of the file.

        A fact that was forgotten since does not come back. Raise `NotFoundError` if no compaction is
        recorded, `MemkitError` if its facts cannot be restored.
        """
        name = self.path.name
        last = read_state(self._record, VERSION, _last_compaction)
        if last is None or last.name != name:
            raise NotFoundError(f"there is no compaction to undo in {Path(self.project.memory, name)}")
        copy = directory_of_replaced(self.home, self.project.root) / last.copy
        try:
            old = read_file(copy) if last.copy else ""
        except OSError as error:
            raise ArchiveError(f"{copy} cannot be read: {error.strerror}; nothing was changed") from error
        if last.removed and not old:
            raise MemkitError(
                f"cannot undo the last compaction: {copy}, the old text of {name}, is gone, as after "
                "`memkit forget`; nothing was changed"
            )
        forgotten = Tombstones(self.home).forgotten().within(self.project.root)
        restored = [
            replace(one.fact, text=self._redact(one.fact.text))
            for _, one in FactFile(old, name).everywhere()
            if one.id in last.removed
            and not forgotten.covers_fact(one.id, one.fact.citations.turns, one.fact.citations.grips)
        ]
        return FactChange(last.added, tuple(restored), last.compacted)

    def write(self, change: FactChange, *, is_undo: bool = False) -> Path | None:
        """Apply `change` to the file. Return the copy of its old text, or None if it had none.

        Applying it twice is the same as once. Raise `JournalError` or `ArchiveError` without a change.
        """
        name = self.path.name
        kept: list[Path | None] = []

        def keep(text: str) -> None:
            old = self._redact(text)
            copy = keep_replaced(self.home, self.project, name, old, self.today.isoformat())
            kept.append(copy)
            if not is_undo:
                self._note(text, change, copy)

        unindexed.mark(self.home, self.project.root)
        self.journal.change_facts(name, change, keep)
        if is_undo:
            try:
                self._record.unlink(missing_ok=True)
            except OSError as error:
                raise ArchiveError(
                    f"undone, but {self._record} cannot be removed: {error.strerror}"
                ) from error
        return kept[-1] if kept else None

    def _note(self, before: str, change: FactChange, copy: Path | None) -> None:
        """Record, durably, the `change` that is about to be made to `before`, of which `copy` is kept."""
        name = self.path.name
        day = FactFile(before, name).compacted or NO_DAY
        added = frozenset(fact.id for fact in change.added)
        kept, compacted = copy.name if copy else "", day if change.compacted else ""
        last = LastCompaction(name, kept, change.removed, added, compacted)
        try:
            make_private_directory(str(self._record.parent))
            write_state(self._record, VERSION, msgspec.to_builtins(last, order="deterministic"))
        except OSError as error:
            raise ArchiveError(
                f"cannot write {self._record}: {error.strerror}; nothing was changed"
            ) from error

    @property
    def _record(self) -> Path:
        return directory_of_replaced(self.home, self.project.root) / "undo.json"

    @property
    def _is_all(self) -> bool:
        return self.selection == EVERYTHING

    def _redact(self, text: str) -> str:
        return redact(text, self.settings.capture.compiled_patterns())

    @property
    def _is_one_call(self) -> bool:
        sources: list[Source] = [*self.known, *self.entries]
        return len(batched(sources)) <= 1

    def _file(self, name: str) -> FactFile:
        return FactFile(self.journal.text(name), name)

    def _condense(self) -> list[Statement]:
        if self._is_one_call:
            return merged(self.known, self._ask(self.known, self.entries))
        made: list[Statement] = []
        for batch in batched(self.entries):
            made = merged(made, self._ask((), batch))
        if not made:
            return self.known
        facts = [*self.known, *made]
        new = {one.fact.id for one in made}
        # The newest known facts first: if not all fit next to the new ones, the oldest are left out.
        for group in batched([*made, *reversed(self.known)]):
            if any(one.fact.id in new for one in group):
                facts = merged(facts, self._ask(group, ()))
        return facts

    def _ask(self, known: Sequence[Statement], entries: Sequence[Source]) -> list[Statement]:
        """Make one call. Raise `BudgetReachedError`, `ModelError`."""
        chosen = self.settings.summarize
        task = make_facts_task(known, entries, chosen, self._redact)
        with self.calls.ask(task, chosen, PURPOSE, self.project.root) as reply:
            return read_facts(reply.value, [*known, *entries], self._redact)
