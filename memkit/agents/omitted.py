"""Parts of a transcript that are not read: tool calls on excluded files, and memkit's own output.

Results from the memory are memory already. Written again, it would grow with every question.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from memkit.agents.tools import role_of
from memkit.conversation.entry import Block, TranscriptEntry
from memkit.paths import MEMORY_DIRECTORY, OPENCLAW_DAYS
from memkit.privacy.exclusion import Exclusion
from memkit.projects.project import Project

EXCLUDED = "[excluded]"
"""Replaces the input and the result of a call on an excluded file."""

FROM_MEMORY = "[from the memory]"
"""Replaces what the memory returned."""

RECALL_SKILLS = ("memory-recall", "memkit:memory-recall")

MAX_PATH_CHARACTERS = 4096

# A command can begin the line, a part of a list, or a substitution, after variable assignments and after
# programs that run other commands.
_ASKS_MEMORY = re.compile(
    r"(?:^|[;&|(`\n])[ \t]{0,80}(?:\w{1,80}=\S{0,500}[ \t]{1,80}){0,9}"
    r"(?:(?:env|exec|time|uvx|uv run|[\w./~-]{0,200}python[\d.]{0,9} -m)[ \t]{1,80})?"
    r"(?:[\w./~-]{0,200}/)?memkit[ \t]{1,80}"
    r"(?:recall|search|expand|cite|grip|show|sessions|timeline|toc|topics|transcript|resume|why|forget)\b"
)
_OWN_TOOL = re.compile(r"memkit\W?_*memory_(?:search|expand|transcript|timeline|topics)$")
_OPENCLAW_DAY = re.compile(rf"(?:^|[\s/'\"=]){OPENCLAW_DAYS}/\d{{4}}-\d\d-\d\d\.md\b")
_WORDS = re.compile(r"[^\s'\"`;|&<>()=,:${}]+")
_NAMED = re.compile(r"^(?:diff --git a/|[+-]{3} [ab]/)?([^\s:][^:\n]{0,1000})", re.MULTILINE)
_LISTING = frozenset({"search", "list", "shell"})


def asks_memory(name: str, given: dict[str, Any]) -> bool:
    """Return whether a tool call asks memkit, or reads the memory's files."""
    if _OWN_TOOL.search(name):
        return True
    role = role_of(name)
    if role == "skill":
        return given.get("skill") in RECALL_SKILLS
    if role != "read" and role not in _LISTING:
        return False
    values = [value for value in given.values() if isinstance(value, str)]
    if any(MEMORY_DIRECTORY in value or _OPENCLAW_DAY.search(value) for value in values):
        return True
    return role == "shell" and _ASKS_MEMORY.search(str(given.get("command", ""))) is not None


class Hidden:
    """Hides parts of a transcript's entries; it tracks calls whose results are still to come."""

    def __init__(self, patterns: Sequence[str]) -> None:
        """`patterns` are those of `capture.exclude`."""
        self._patterns = tuple(patterns)
        self._results: dict[str, str] = {}
        self._tools: dict[str, str] = {}

    def __call__(self, entry: TranscriptEntry) -> TranscriptEntry:
        """Return `entry` without its hidden parts."""
        if not any(block.kind in ("tool_use", "tool_result") for block in entry.blocks):
            return entry
        return replace(entry, blocks=tuple(self._block(block, entry.cwd) for block in entry.blocks))

    def excludes(self, directory: str, root: str) -> bool:
        """Return whether `directory`, or the whole project at `root`, is excluded."""
        return Exclusion(self._patterns, root).covers_session(directory or root)

    def _block(self, block: Block, directory: str) -> Block:
        if block.kind == "tool_use":
            if self._patterns and self._names_excluded(block, directory):
                self._results[block.tool_id] = EXCLUDED
                return replace(block, tool_input={"path": EXCLUDED})
            if asks_memory(block.tool_name, block.tool_input):
                self._results[block.tool_id] = FROM_MEMORY
            elif self._patterns and role_of(block.tool_name) in _LISTING:
                self._tools[block.tool_id] = block.tool_name
        elif block.kind == "tool_result":
            instead = self._results.pop(block.tool_id, "")
            if self._tools.pop(block.tool_id, "") and self._shows_excluded(block.text, directory):
                instead = EXCLUDED
            if instead:
                return replace(block, text=instead)
        return block

    def _names_excluded(self, block: Block, directory: str) -> bool:
        exclusion = _exclusion(self._patterns, directory)
        values = [value for value in block.tool_input.values() if isinstance(value, str)]
        paths = [value for value in values if len(value) <= MAX_PATH_CHARACTERS and "\n" not in value]
        if role_of(block.tool_name) == "shell":
            paths = _WORDS.findall(str(block.tool_input.get("command", "")))
        return any(exclusion.covers(path, directory) for path in dict.fromkeys(paths) if path)

    def _shows_excluded(self, text: str, directory: str) -> bool:
        exclusion = _exclusion(self._patterns, directory)
        names = dict.fromkeys(match[1].strip() for match in _NAMED.finditer(text))
        return any(exclusion.covers(name, directory) for name in names)


@functools.lru_cache(64)
def _exclusion(patterns: tuple[str, ...], directory: str) -> Exclusion:
    return Exclusion(patterns, Project.containing(directory).root)
