"""Condenses memory into durable facts, in as many calls as its length takes; changes no file by itself."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from memkit.errors import MemkitError
from memkit.hook.project import Project
from memkit.ipc import unindexed
from memkit.journal.facts import MEMORY_FILE, FactChange, FactFile
from memkit.journal.journal import Journal
from memkit.journal.old_versions import keep_replaced
from memkit.llm.calls import BudgetReachedError, Calls
from memkit.llm.model import Provider, TokenUsage
from memkit.llm.prices import price
from memkit.paths import Home
from memkit.privacy.redact import redact
from memkit.settings.load import Settings
from memkit.summarize.entries import EntrySelection, SourceEntry, find_entries
from memkit.summarize.fact_answers import (
    FactAnswer,
    Statement,
    instructions,
    make_task,
    merged,
    read_answers,
)
from memkit.text import estimate_tokens

PURPOSE = "compact"
"""What the ledger calls these calls."""

CALL_TOKENS = 12_000
"""Of entries and facts in one call."""

ENTRY_TOKENS = 15
"""Of the tag around an entry."""

ANSWER_SHARE = 0.1
"""Tokens written for each one read: thirty facts of 40 for 12,000."""

Target = Literal["MEMORY.md", "journal"]


class CompactionError(MemkitError):
    """A compaction ended before it was complete; nothing is changed."""


class _Measured(Protocol):
    @property
    def tokens(self) -> int: ...


_Piece = TypeVar("_Piece", bound=_Measured)


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be condensed: the selected `entries`, and the facts that stand in the file `name`.

    `compacted` is the day the file can say it is condensed up to, "" if only a part was selected.
    """

    name: str
    entries: tuple[SourceEntry, ...]
    known: tuple[Statement, ...]
    compacted: str

    @property
    def batches(self) -> list[list[SourceEntry]]:
        """The entries of each call."""
        return batched(self.entries)

    @property
    def is_one_call(self) -> bool:
        """Whether the facts fit into the call for the entries."""
        return len(batched(self.pieces)) <= 1

    @property
    def pieces(self) -> list[SourceEntry | Statement]:
        """All that is read."""
        return [*self.known, *self.entries]


@dataclass(frozen=True, slots=True)
class CompactPlan:
    """How much there is to do. `tokens` are read and written, estimated; `usd` is None if no price is
    known; `left` are the tokens of today's budget that are not spent.
    """

    entries: int
    facts: int
    calls: int
    tokens: int
    usd: float | None
    provider: str
    model: str
    left: int

    def as_dict(self) -> dict[str, Any]:
        """As `memkit compact --dry-run --json` prints it."""
        return asdict(self)

    def check_budget(self) -> None:
        """Raise `BudgetReachedError` if it does not fit into today's budget: a part of it is no use."""
        if self.tokens > self.left:
            raise BudgetReachedError(
                f"condensing takes about {self.tokens:,} tokens, of today's budget {self.left:,} are left, "
                "and a part is no use: take less with --since or --path, or raise summarize.daily_tokens"
            )


def batched(pieces: Iterable[_Piece]) -> list[list[_Piece]]:
    """`pieces` in order, as many together as one call takes."""
    groups: list[list[_Piece]] = []
    room = 0
    for piece in pieces:
        tokens = piece.tokens + ENTRY_TOKENS
        if not groups or tokens > room:
            groups.append([])
            room = CALL_TOKENS
        groups[-1].append(piece)
        room -= tokens
    return groups


class Compaction:
    """Compactions of one project. Who lets it make calls holds `calls_lock`."""

    def __init__(
        self, project: Project, home: Home, settings: Settings, calls: Calls, today: date
    ) -> None:
        self.asked = 0
        """The model calls that brought an answer so far."""
        self._project = project
        self._home = home
        self._settings = settings
        self._calls = calls
        self._today = today.isoformat()
        self._journal = Journal(project, shared=settings.memory.shared, home=home)
        patterns = settings.capture.compiled_patterns()
        self._redact: Callable[[str], str] = lambda text: redact(text, patterns)

    def find_work(self, target: Target, selection: EntrySelection, since: str = "") -> Work:
        """What is to be condensed. With nothing selected that is all from the day on which the last such
        compaction was, or without one from `since` on. Raises `JournalError`.
        """
        stem = MEMORY_FILE.removesuffix(".md") if target == MEMORY_FILE else self._today
        name = f"{self._journal.day_for(stem)}.md"
        is_all = selection == EntrySelection()
        if is_all:
            selection = EntrySelection(since=self.compacted(target) or since)
        file = FactFile(self._journal.text(name), name)
        known = tuple(Statement.written(one) for one in file.facts())
        entries = find_entries(self._project, self._home, self._settings, selection, self._redact)
        return Work(name, tuple(entries), known, self._today if is_all else "")

    def compacted(self, target: Target) -> str:
        """The day (ISO) of the last compaction of all memory; "" if there was none."""
        names = [f"{self._journal.day_for(MEMORY_FILE.removesuffix('.md'))}.md", MEMORY_FILE]
        if target != MEMORY_FILE:
            names = [f"{day}.md" for day in reversed(self._journal.days())]
        days = (FactFile(self._journal.text(name), name).compacted for name in names)
        return next(filter(None, days), "")

    def plan(self, work: Work, provider: Provider) -> CompactPlan:
        """What `work` would take."""
        material = sum(one.tokens + ENTRY_TOKENS for one in work.pieces)
        calls = 1
        if not work.is_one_call:
            # All new facts are read a second time, with the known ones.
            merged_tokens = round(sum(one.tokens for one in work.entries) * ANSWER_SHARE)
            material += merged_tokens
            known = sum(one.tokens + ENTRY_TOKENS for one in work.known)
            calls = len(work.batches) + 1 + (known + merged_tokens) // CALL_TOKENS
        read = material + calls * estimate_tokens(instructions())
        written = round(material * ANSWER_SHARE)
        chosen = self._settings.summarize
        return CompactPlan(
            entries=len(work.entries),
            facts=len(work.known),
            calls=calls if work.entries else 0,
            tokens=read + written if work.entries else 0,
            usd=price(provider.name, provider.model, TokenUsage(read, written), chosen.base_url),
            provider=provider.name,
            model=provider.model,
            left=max(0, chosen.daily_tokens - self._calls.ledger.today().tokens),
        )

    def condense(self, work: Work) -> FactChange:
        """Make the calls; the change of facts they come to, false if there is none.

        Raises `CompactionError` if a call fails or the budget is reached; then there is no part of a
        change either.
        """
        if not work.entries:
            return FactChange(frozenset(), ())
        try:
            facts = self._condense(work)
        except MemkitError as error:
            raise CompactionError(
                f"{error}; nothing is changed (calls answered before: {self.asked})"
            ) from error
        left = {one.fact.id for one in facts}
        before = {one.fact.id for one in work.known}
        removed = {one.fact.id for one in work.known if not one.is_own} - left
        added = tuple(one.fact for one in facts if one.fact.id not in before)
        return FactChange(frozenset(removed), added, work.compacted)

    def preview(self, work: Work, change: FactChange) -> Iterator[str]:
        """`change` as the lines of a unified diff of the file as it is now."""
        before = self._journal.text(work.name)
        after = change.apply(before, work.name)
        path = str(self.path(work))
        return difflib.unified_diff(
            before.splitlines(), after.splitlines(), path, path, lineterm=""
        )

    def path(self, work: Work) -> Path:
        """The file that is changed."""
        return self._journal.directory / work.name

    def write(self, work: Work, change: FactChange) -> Path | None:
        """Make `change` in the file; where its old text is kept, None if it had none.

        Twice is as once. Raises `JournalError`, `ArchiveError`; then the file is as it was.
        """
        kept: list[Path | None] = []

        def keep(text: str) -> None:
            old = self._redact(text)
            kept.append(keep_replaced(self._home, self._project, work.name, old, self._today))

        unindexed.mark(self._home, self._project.root)
        self._journal.change_facts(work.name, change, keep)
        return kept[0] if kept else None

    def _condense(self, work: Work) -> list[Statement]:
        if work.is_one_call:
            return merged(work.known, self._ask(work.known, work.entries))
        made: list[Statement] = []
        for batch in work.batches:
            made = merged(made, self._ask((), batch))
        known = list(work.known)
        if not made:
            return known
        facts = [*known, *made]
        new = {one.fact.id for one in made}
        # The newest known facts first: should they not all fit beside the new ones, the oldest are left.
        for group in batched([*made, *reversed(known)]):
            if any(one.fact.id in new for one in group):
                facts = merged(facts, self._ask(group, ()))
        return facts

    def _ask(self, known: Sequence[Statement], entries: Sequence[SourceEntry]) -> list[FactAnswer]:
        """One call. Raises `BudgetReachedError`, `ModelError`."""
        task = make_task(known, entries)
        chosen = self._settings.summarize
        with self._calls.ask(task, chosen, PURPOSE, self._project.root) as reply:
            answers = read_answers(reply.value, known, entries, self._redact)
        self.asked += 1
        return answers
