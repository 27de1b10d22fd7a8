"""Turns: a user's prompt and everything that followed until the next one.

These are not memory, and are left out: meta entries, output of hooks and local commands, skill listings,
memkit's own injected text, API error messages, and turns that were interrupted before anything happened.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from memkit.claude_code.files import subagent_path
from memkit.claude_code.omitted import asks_memory
from memkit.claude_code.prompt import INTERRUPTED, human_text
from memkit.claude_code.transcript import Block, Transcript, TranscriptEntry
from memkit.errors import TranscriptError
from memkit.privacy.redact import (
    leaves_open,
    redact,
    skips,
    visible,
    without_private,
    without_unopened,
)

logger = logging.getLogger(__name__)

EXCERPT_CHARACTERS = 2000
"""Characters kept of each end of a tool's input and output; the digest shows a line of either."""

_CUT_CONTEXT = 1000
"""Characters behind a cut that redaction needs to recognize a secret before it."""

_UUID = re.compile(r"^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$", re.IGNORECASE)
# A question to the memory is not memory: it would be the best match of the same question next time.
_OWN_SKILL = re.compile(r"^/(?:memkit:)?memory-recall\b")
_SLASH_COMMAND = re.compile(r"^/[A-Za-z][\w:-]*(?:\s|$)")
_COMMAND_OUTPUT = re.compile(r"^\s*<local-command-stdout>(.*)</local-command-stdout>\s*$", re.DOTALL)
_FILE_FIELDS = ("file_path", "notebook_path")
_WRITING_TOOLS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})


@dataclass(slots=True)
class ToolCall:
    """One tool call: its input and its result (None until there is one). Long text is excerpted."""

    name: str
    input: dict[str, Any]
    result: str | None = None
    is_error: bool = False
    by_agent: bool = False

    @property
    def is_recall(self) -> bool:
        """Whether the call asked memkit: its result is memory already, and is not remembered again."""
        return asks_memory(self.name, self.input)


@dataclass(slots=True)
class Turn:
    """One prompt and what followed.

    Attributes:
        start, end: byte offsets in the transcript.
        commit: the start of the commit hash at the turn's end; transcripts lack it, so "" for imports.
        worked_since: whether tools ran after the text that is the answer so far.
        is_compacted: whether Claude Code compacted the conversation during the turn.
        is_private: whether the user left a `<private>` tag open.
        other_prompt_ids: those of prompts that Claude Code itself sent during the turn, such as the
            notification that a background task has finished.
        entries: the byte offsets of all entries, each once.
        lost_parent: see `TranscriptEntry`.
    """

    id: str
    session: str
    prompt: str
    time: datetime | None
    start: int
    end: int
    prompt_id: str = ""
    uuid: str = ""
    cwd: str = ""
    branch: str = ""
    commit: str = ""
    answer: str = ""
    tools: list[ToolCall] = field(default_factory=list)
    finished: datetime | None = None
    interrupted: bool = False
    is_command: bool = False
    worked_since: bool = False
    is_compacted: bool = False
    is_private: bool = False
    other_prompt_ids: set[str] = field(default_factory=set)
    entries: list[int] = field(default_factory=list)
    lost_parent: str = ""

    @property
    def is_memory(self) -> bool:
        """Whether there is something to remember, and the user did not skip it."""
        if self.is_skipped or _OWN_SKILL.match(self.prompt):
            return False
        if self.answer or self.tools:
            return True
        # A prompt without an answer (a crash, an API error) is still worth remembering. One that was
        # interrupted, or a command that Claude Code handled itself, is not.
        is_command = self.is_command or _SLASH_COMMAND.match(self.prompt)
        return bool(self.prompt) and not self.interrupted and not is_command

    @property
    def is_skipped(self) -> bool:
        """Whether the user wrote `#skip`, or left a `<private>` open."""
        return self.is_private or skips(self.prompt)

    @property
    def files(self) -> list[str]:
        """The files that the turn wrote, in order, each once."""
        written = (
            str(call.input[name])
            for call in self.tools
            if call.name in _WRITING_TOOLS and not call.is_error
            for name in _FILE_FIELDS
            if call.input.get(name)
        )
        return list(dict.fromkeys(written))


def turn_id(session: str, prompt_id: str, uuid: str, fallback: str) -> str:
    """Return the id of a turn: 8 hex characters, the same whenever and from wherever it is read.

    It comes from the prompt's id, or in old transcripts from the entry's uuid. A forked or resumed session
    repeats both, so a repeated turn keeps its id. Ids that are not UUIDs are unique in their session only.
    """
    key = prompt_id or uuid
    if not _UUID.match(key):
        key = f"{session}\0{key or fallback}"
    return hashlib.sha256(key.encode()).hexdigest()[:8]


def read_turns(transcript: Transcript) -> Iterator[Turn]:
    """Yield the turns of a transcript in order, also those that are not memory (see `Turn.is_memory`).

    The last one may still grow. Entries repeated with the same uuid count once.
    """
    seen: set[str] = set()
    current: Turn | None = None
    pending: dict[str, ToolCall] = {}
    for entry in transcript:
        if entry.uuid:
            if entry.uuid in seen:
                transcript.counts["repeated"] += 1
                continue
            seen.add(entry.uuid)
        text = human_text(entry)
        if text is not None and INTERRUPTED.match(text):
            if current is not None:
                current.interrupted = True
                current.end = entry.end
                current.entries.append(entry.start)
            continue
        if text is not None and not _continues(current, entry):
            if current is not None:
                yield current
            current, pending = _begin(entry, text, transcript.path), {}
            continue
        if current is not None and _is_of_another(entry, current):
            if not _says_something(entry):
                continue
            yield current
            current = None
        if current is None:
            if not _says_something(entry):
                continue
            # Claude spoke before any prompt, or the prompt is lost: the turn has none.
            current, pending = _begin(entry, "", transcript.path), {}
        current.end = entry.end
        if current.entries[-1] != entry.start:
            current.entries.append(entry.start)
        if entry.prompt_id and entry.text.startswith("<task-notification>"):
            current.other_prompt_ids.add(entry.prompt_id)
        if text is not None:
            current.is_private |= leaves_open(text)
            typed = without_private(without_unopened(text))
            current.prompt = f"{current.prompt}\n\n{typed}" if current.prompt else typed
        else:
            _follow(current, entry, pending, transcript)
            current.is_compacted |= entry.is_compact_summary
    if current is not None:
        yield current


def _is_of_another(entry: TranscriptEntry, current: Turn) -> bool:
    """Return whether an entry follows a prompt that a broken line lost, and not the current turn."""
    if not entry.lost_parent or entry.lost_parent == current.lost_parent:
        return False
    return not (entry.prompt_id and entry.prompt_id == current.prompt_id)


def _says_something(entry: TranscriptEntry) -> bool:
    """Return whether Claude itself speaks in `entry`."""
    is_noise = entry.is_sidechain or entry.is_api_error or entry.is_synthetic or entry.is_meta
    return entry.role == "assistant" and not is_noise and bool(entry.text.strip())


def _continues(current: Turn | None, entry: TranscriptEntry) -> bool:
    """Return whether a typed entry belongs to the current turn: typed while it ran, or part of its prompt."""
    if current is None:
        return False
    is_bare = not current.answer and not current.tools and _SLASH_COMMAND.match(current.prompt)
    if is_bare and not entry.queued:  # `/clear` and the prompt after it can share a prompt id
        return False
    return entry.queued or bool(entry.prompt_id and entry.prompt_id == current.prompt_id)


def _begin(entry: TranscriptEntry, text: str, path: Path) -> Turn:
    session = entry.session or path.stem
    return Turn(
        id=turn_id(session, entry.prompt_id, entry.uuid, f"{entry.time}\0{text}"),
        session=session,
        prompt=without_private(text),
        time=entry.time,
        start=entry.start,
        end=entry.end,
        prompt_id=entry.prompt_id,
        uuid=entry.uuid,
        cwd=entry.cwd,
        branch="" if entry.branch == "HEAD" else entry.branch,
        finished=entry.time,
        is_private=leaves_open(text),
        is_command=entry.text.lstrip().startswith("<command-"),
        entries=[entry.start],
        lost_parent=entry.lost_parent,
    )


def _follow(
    turn: Turn, entry: TranscriptEntry, pending: dict[str, ToolCall], transcript: Transcript
) -> None:
    """Add an entry after the prompt to the turn."""
    output = _COMMAND_OUTPUT.match(entry.text)
    if output and turn.prompt.startswith("/") and not turn.is_command and not turn.answer:
        turn.answer = output[1].strip()  # a skill that ran in a sub-agent answers like this
        return
    if entry.is_meta or entry.is_compact_summary:
        return
    if entry.is_api_error or entry.is_synthetic:
        return
    turn.finished = entry.time or turn.finished
    for block in entry.blocks:
        if block.kind == "tool_use":
            call = _call(block, by_agent=entry.is_sidechain)
            turn.tools.append(call)
            pending[block.tool_id] = call
        elif block.kind == "tool_result":
            done = pending.pop(block.tool_id, None)
            if done is not None:
                done.result, done.is_error = _excerpt(block.text), block.is_error
                if not done.is_recall:
                    turn.tools.extend(_agent_calls(transcript, entry.agent))
    said = entry.text.strip() if entry.role == "assistant" and not entry.is_sidechain else ""
    if said:
        # Text between tool calls is narration; the last text is the answer. One message may span
        # several lines.
        turn.answer = f"{turn.answer}\n\n{said}" if turn.answer and not turn.worked_since else said
        turn.worked_since = False
    if any(block.kind in ("tool_use", "tool_result") for block in entry.blocks):
        turn.worked_since = True


def _call(block: Block, *, by_agent: bool) -> ToolCall:
    given = {
        name: _excerpt(value) if isinstance(value, str) else value
        for name, value in block.tool_input.items()
    }
    return ToolCall(block.tool_name, given, by_agent=by_agent)


def _excerpt(text: str) -> str:
    """Return the start and end of a long text: a turn may have read a hundred files, and stays in memory.

    Redact them before the cut, with some of the text behind it: redaction would not recognize half a key,
    or a value without its name.
    """
    text = visible(text)
    if len(text) <= 2 * EXCERPT_CHARACTERS:
        return text
    near = EXCERPT_CHARACTERS + _CUT_CONTEXT
    head = redact(re.sub(r"\S{1,200}\Z", "", text[:near]))[:EXCERPT_CHARACTERS]
    tail = redact(re.sub(r"\A\S{1,200}", "", text[-near:]))[-EXCERPT_CHARACTERS:]
    head = head[:-200] + re.sub(r"\S+\Z", "", head[-200:])  # over all of it it would be slow
    tail = re.sub(r"\A\S{1,200}", "", tail)
    return f"{head}\n…\n{tail}"


def _agent_calls(transcript: Transcript, agent: str) -> list[ToolCall]:
    """Return the tool calls of a sub-agent, from its own transcript, for the turn that started it."""
    found = subagent_path(transcript.path, agent)
    if found is None:
        return []
    calls: dict[str, ToolCall] = {}
    try:
        for entry in Transcript(found, hide=transcript.hide):
            for block in entry.blocks:
                if block.kind == "tool_use":
                    calls[block.tool_id] = _call(block, by_agent=True)
                elif block.kind == "tool_result" and block.tool_id in calls:
                    call = calls[block.tool_id]
                    call.result, call.is_error = _excerpt(block.text), block.is_error
    except TranscriptError as error:  # go on without this sub-agent's calls
        transcript.counts["unreadable sub-agents"] += 1
        logger.warning("%s", error)
    return list(calls.values())
