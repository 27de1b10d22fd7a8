"""Turns: a user's prompt and everything that followed until the next one.

These are not memory, and are left out: meta entries, output of hooks and local commands, skill listings,
memkit's own injected text, API error messages, and turns that were interrupted before anything happened.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from memkit.agents.omitted import asks_memory
from memkit.agents.session_file import SessionFile
from memkit.conversation.entry import TranscriptEntry
from memkit.conversation.turn import INTERRUPTED, SLASH_COMMAND, Compaction, ToolCall, Turn, excerpt, turn_id
from memkit.errors import TranscriptError
from memkit.privacy.redact import leaves_open, without_private, without_unopened

logger = logging.getLogger(__name__)

_COMMAND_OUTPUT = re.compile(r"^\s*<local-command-stdout>(.*)</local-command-stdout>\s*$", re.DOTALL)


def read_turns(transcript: SessionFile, *, follows_forks: bool = True) -> Iterator[Turn]:
    """Yield the turns of a transcript in order, also those that are not memory (see `Turn.is_memory`).

    The last one may still grow. Entries repeated with the same uuid count once. Turns that a fork has copied
    keep the IDs of the session that they come from, if `follows_forks` and its transcript exists.
    """
    seen: set[str] = set()
    prompt_ids: set[str] = set()
    current: Turn | None = None
    calls: dict[str, ToolCall] = {}
    copied: dict[str, dict[str, str]] = {}
    for entry in transcript:
        if entry.uuid:
            if entry.uuid in seen:
                transcript.counts["repeated"] += 1
                continue
            seen.add(entry.uuid)
        is_first = not entry.prompt_id or entry.prompt_id not in prompt_ids
        prompt_ids.add(entry.prompt_id)
        text = entry.typed
        if text is not None and INTERRUPTED.match(text):
            if current is not None:
                current.interrupted = True
                current.end = entry.end
                current.entries.append(entry.start)
            continue
        if text is not None and not _continues(current, entry):
            if current is not None:
                yield current
            current, calls = _begin(entry, text, transcript.path), {}
            if entry.is_command and (not is_first or transcript.mentioned(entry.prompt_id)):
                own = replace(entry, prompt_id="")
                current.id = _begin(own, text, transcript.path).id
            current.tools.extend(_read_calls(entry, calls, by_agent=False))  # a command after `!`
            continue
        if text is None and (current is None or _is_of_another(entry, current)):
            if not _says_something(entry):
                continue
            # Claude spoke before any prompt, or the prompt is lost: the turn has none.
            if current is not None:
                yield current
            current, calls = _begin(entry, "", transcript.path), {}
        assert current is not None
        if entry.origin not in ("", current.session) and current.prompt_id:
            if entry.origin not in copied:
                copied[entry.origin] = transcript.former_ids(entry.origin) if follows_forks else {}
            current.id = copied[entry.origin].get(current.uuid, "")
            if not current.id:
                current.id, current.origin = turn_id("", "", current.uuid, ""), entry.origin
            current.prompt_id = ""
        current.end = entry.end
        # The digest shows a sub-agent's calls. The exchange has entries of the session only.
        if current.entries[-1] != entry.start and not entry.is_progress:
            current.entries.append(entry.start)
        if entry.prompt_id and entry.text.startswith("<task-notification>"):
            current.other_prompt_ids.add(entry.prompt_id)
        if text is not None:
            current.is_private |= leaves_open(text)
            typed = without_private(without_unopened(text))
            current.prompt = f"{current.prompt}\n\n{typed}" if current.prompt else typed
        else:
            _follow(current, entry, calls, transcript)
            current.is_compacted |= entry.is_compact_summary
            if entry.summary:
                current.compactions.append(Compaction(entry.uuid, entry.time, entry.summary))
    if current is not None:
        yield current


def _is_of_another(entry: TranscriptEntry, current: Turn) -> bool:
    """Return whether an entry belongs to a prompt that a broken line lost, not to the current turn."""
    is_same_prompt = bool(entry.prompt_id) and entry.prompt_id == current.prompt_id
    return entry.gap != current.gap and not is_same_prompt


def _says_something(entry: TranscriptEntry) -> bool:
    is_noise = entry.is_sidechain or entry.is_api_error or entry.is_meta
    return entry.role == "assistant" and not is_noise and bool(entry.text.strip())


def _continues(current: Turn | None, entry: TranscriptEntry) -> bool:
    """Return whether a typed entry belongs to the current turn: typed while it ran, or part of its prompt."""
    if current is None or entry.is_command:
        return False
    is_bare = not current.answer and not current.tools and SLASH_COMMAND.match(current.prompt)
    if is_bare and not entry.queued:  # `/clear` and the prompt after it can share a prompt id
        return False
    is_part = entry.prompt_id == current.prompt_id != "" and not current.interrupted
    return entry.queued or is_part


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
        gap=entry.gap,
    )


def _follow(turn: Turn, entry: TranscriptEntry, calls: dict[str, ToolCall], transcript: SessionFile) -> None:
    output = _COMMAND_OUTPUT.match(entry.text)
    if output and turn.prompt.startswith("/") and not turn.is_command and not turn.answer:
        turn.answer = output[1].strip()  # a skill that ran in a sub-agent answers like this
        return
    if entry.is_meta or entry.is_compact_summary or entry.is_api_error:
        return
    turn.finished = entry.time or turn.finished
    for call in _read_calls(entry, calls, by_agent=entry.is_sidechain):
        if call.result is None:
            turn.tools.append(call)
        elif not (call.is_recall or entry.is_sidechain):
            turn.tools.extend(_agent_calls(transcript, entry.agent, calls))
    said = entry.text.strip() if entry.role == "assistant" and not entry.is_sidechain else ""
    if said:
        # Text between tool calls is narration; the last text is the answer. One message may span
        # several lines.
        turn.answer = f"{turn.answer}\n\n{said}" if turn.answer and not turn.worked_since else said
        turn.worked_since = entry.is_narration
    if any(block.kind in ("tool_use", "tool_result") for block in entry.blocks):
        turn.worked_since = True


def _read_calls(entry: TranscriptEntry, calls: dict[str, ToolCall], *, by_agent: bool) -> Iterator[ToolCall]:
    for block in entry.blocks:
        if block.kind == "tool_use":
            if by_agent and block.tool_id in calls:
                continue  # Claude Code wrote it both into the session and into the sub-agent's file
            given = {
                name: excerpt(value) if isinstance(value, str) else value
                for name, value in block.tool_input.items()
            }
            is_recall = asks_memory(block.tool_name, given)
            calls[block.tool_id] = ToolCall(block.tool_name, given, by_agent=by_agent, is_recall=is_recall)
            yield calls[block.tool_id]
        elif block.kind == "tool_result" and block.tool_id in calls:
            call = calls[block.tool_id]
            if call.result is None:
                call.result, call.is_error = excerpt(block.text), block.is_error
                yield call


def _agent_calls(transcript: SessionFile, agent: str, known: dict[str, ToolCall]) -> list[ToolCall]:
    """Return calls of a sub-agent that are not yet `known`, and add them."""
    found: list[ToolCall] = []
    try:
        for entry in transcript.agent_entries(agent):
            calls = _read_calls(entry, known, by_agent=True)
            found += [call for call in calls if call.result is None]
    except TranscriptError as error:  # go on without this sub-agent's calls
        transcript.counts["unreadable sub-agents"] += 1
        logger.warning("%s", error)
    return found
