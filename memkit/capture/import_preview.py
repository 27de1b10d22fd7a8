"""Preview an import: read the transcripts, and write nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from memkit.capture.capture import CaptureOutcome
from memkit.capture.importer import BytesRead, ImportSelection
from memkit.claude_code.transcript import Transcript
from memkit.claude_code.turn import Turn, read_turns
from memkit.errors import MemkitError
from memkit.journal.digest import ANSWER_CHARACTERS, MAX_TOOLS, PROMPT_CHARACTERS, local_time

TOOL_BYTES = 80
"""Bytes of a tool's line in the journal; a turn's heading and labels take twice that (measured)."""

ARCHIVE_SHARE = 0.12
"""Size of the archive relative to the transcript: 0.04 to 0.12 measured, depending on repetition."""

INDEX_FACTOR = 30
"""Bytes of index per byte of memory: Chroma and the snapshot take some 33 KB a chunk (measured)."""


@dataclass(slots=True)
class ImportPreview:
    """The effect of an import. Bytes are estimates.

    Attributes:
        typed: prompts from Claude Code's history.
        days: numbers of turns by the project's root and the ISO date.
        skipped: the lines that cannot be read.
        problems: lines for users.
    """

    sessions: int = 0
    typed: int = 0
    days: Counter[tuple[str, str]] = field(default_factory=Counter)
    memory_bytes: int = 0
    archive_bytes: int = 0
    skipped: CaptureOutcome = field(default_factory=CaptureOutcome)
    problems: list[str] = field(default_factory=list)

    @property
    def turns(self) -> int:
        """Turns worth remembering, including `typed` ones."""
        return sum(self.days.values())

    @property
    def projects(self) -> list[str]:
        """The roots of the projects whose memory would grow."""
        return sorted({root for root, _ in self.days})

    @property
    def index_bytes(self) -> int:
        """Bytes of the index."""
        return INDEX_FACTOR * self.memory_bytes


def preview_import(selection: ImportSelection, progress: BytesRead) -> ImportPreview:
    """Read everything in `selection`. Turns that are already remembered count too."""
    found = ImportPreview()
    read = 0
    for source in selection.wanted:
        project = selection.project(source)
        transcript = Transcript(source.path)
        turns = 0
        try:
            for turn in read_turns(transcript) if not project.is_off else ():
                if turn.is_memory and selection.includes(turn):
                    turns += 1
                    _count(found, turn, project.root)
                progress(read + turn.end)
        except MemkitError as error:
            found.problems.append(str(error))
        found.skipped.add(CaptureOutcome(skipped=dict(transcript.counts)))
        if turns:
            found.sessions += 1
            found.archive_bytes += int(ARCHIVE_SHARE * source.size)
        read += source.size
        progress(read)
    try:
        for prompt, project in selection.typed():
            found.typed += 1
            _count(found, prompt.turn, project.root)
    except MemkitError as error:
        found.problems.append(str(error))
    return found


def _count(found: ImportPreview, turn: Turn, root: str) -> None:
    found.days[root, local_time(turn.time).date().isoformat()] += 1
    found.memory_bytes += (
        min(len(turn.prompt), PROMPT_CHARACTERS)
        + min(len(turn.answer), ANSWER_CHARACTERS)
        + TOOL_BYTES * (2 + min(len(turn.tools), MAX_TOOLS))
    )
