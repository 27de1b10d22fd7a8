"""The memory that a compaction condenses, as entries: what is shown to the model, and how it is cited."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath

from memkit import anchors
from memkit.hook.project import Project
from memkit.index.chunk import OPENING_HEADINGS, Chunk
from memkit.index.chunk_reader import SHOWN_ID_CHARACTERS
from memkit.index.chunker import decode
from memkit.index.current import MemoryFile, read_files
from memkit.index.index_pass import chunks_of
from memkit.journal.facts import MEMORY_FILE, Citations
from memkit.journal.journal import Journal
from memkit.journal.markup import cut_middle
from memkit.paths import MEMORY_DIRECTORY, Home
from memkit.settings.load import Settings
from memkit.text import estimate_tokens

_NAMES = (MEMORY_FILE, f"{MEMORY_FILE.removesuffix('.md')}.local.md")
_TARGETS = frozenset(PurePath(MEMORY_DIRECTORY, name).as_posix() for name in _NAMES)

SHOWN_CHARACTERS = 8_000
"""Of an entry, at most: the start and the end of a longer one (a chunk of code is not cut)."""


@dataclass(frozen=True, slots=True)
class EntrySelection:
    """Which memory: days (ISO, both included; "" for no bound) and a file, directory or pattern.

    Text without a date is there only if no day is named.
    """

    since: str = ""
    until: str = ""
    path: str = ""

    def admits(self, chunk: Chunk) -> bool:
        """Whether `chunk` is selected."""
        from memkit.recall.results import is_at  # numpy, only where it is used

        if (self.since or self.until) and not chunk.date:
            return False
        if chunk.date < self.since or (self.until and chunk.date > self.until):
            return False
        return not self.path or is_at(chunk.source, self.path.removeprefix("./").rstrip("/"))


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """A piece of memory: its text, redacted, with its place before it; its date (ISO or ""); its ids.

    What one says that is not `is_verified` proves nothing.
    """

    text: str
    date: str
    citations: Citations
    is_verified: bool

    @property
    def tokens(self) -> int:
        """How long its text is, about."""
        return estimate_tokens(self.text)


def find_entries(
    project: Project,
    home: Home,
    settings: Settings,
    selection: EntrySelection,
    redact: Callable[[str], str],
) -> list[SourceEntry]:
    """The selected memory as its files are now, oldest first, text without a date before that.

    Of turns that a summary stands for there are its bullets alone. Facts of earlier compactions, and
    the file for them, are left out. Raises `JournalError`.
    """
    summarized = _summarized(Journal(project))
    found: list[tuple[tuple[str, str, int], SourceEntry]] = []
    for file in read_files(project, home, settings).values():
        if file.source in _TARGETS:
            continue
        for chunk in _chunks(file, settings):
            if selection.admits(chunk) and not (chunk.kind == "turn" and summarized & set(chunk.turns)):
                entry = _entry(chunk, settings, redact)
                found.append(((chunk.date, chunk.source, chunk.start_line), entry))
    return [entry for _, entry in sorted(found, key=lambda one: one[0])]


def _chunks(file: MemoryFile, settings: Settings) -> list[Chunk]:
    """The chunks of a file that say something, without facts."""
    text, _ = decode(file.data)
    facts = {
        number
        for number, line in enumerate(text.split("\n"), start=1)
        if "<!--" in line and "fact" in anchors.parse(line)
    }
    return [
        chunk
        for chunk in chunks_of(file, settings)[0]
        if OPENING_HEADINGS.sub("", chunk.content).strip()
        and facts.isdisjoint(range(chunk.start_line, chunk.end_line + 1))
    ]


def _entry(chunk: Chunk, settings: Settings, redact: Callable[[str], str]) -> SourceEntry:
    if chunk.citations:
        citations = Citations(grips=chunk.citations, turns=chunk.turns)
    elif chunk.turns:
        citations = Citations(turns=chunk.turns)
    else:
        shown = chunk.id(settings.embedding.model)[:SHOWN_ID_CHARACTERS]
        citations = Citations(chunks=(shown,))
    place = " > ".join(filter(None, (chunk.source, chunk.breadcrumb)))
    text = redact(f"{place}\n{OPENING_HEADINGS.sub('', chunk.content).strip()}")
    text = cut_middle(text, SHOWN_CHARACTERS, chunk.source)
    return SourceEntry(text, chunk.date, citations, chunk.kind != "unverified")


def _summarized(journal: Journal) -> set[str]:
    """The turns that a summary stands for."""
    found = set()
    for day in journal.days():
        content = journal.day(day)
        for session in content.sessions():
            turns = content.turns_of(session)
            found |= {turn.section.pairs["turn"] for turn in turns if turn.is_summarized}
    return found
