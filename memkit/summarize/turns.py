"""Read the turns of a segment, for a model and for extracts.

`shown_turn` cuts each part of a turn by itself, so that none takes another's room. An extract reads the words
of the day file, and the full tool calls of the archive.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memkit.agents.omitted import asks_memory
from memkit.agents.tools import role_of
from memkit.conversation.turn import ToolCall
from memkit.journal.day_file import DayFile, heading_title
from memkit.journal.tool_lines import MAX_TOOLS, MORE, Call, count_calls, read_call, split_count, tool_line
from memkit.journal.turn_parts import read_parts
from memkit.text import plural, shorten

if TYPE_CHECKING:
    from memkit.archive.turn import ArchivedTurn

PROMPT_HEAD, PROMPT_TAIL = 500, 200
TOOL_CHARACTERS = 800
"""The room for the lines of tool calls. Failed calls and the last ones get it first."""

LINE_CHARACTERS = 300
"""The longest line of a tool call; memkit writes shorter ones."""

ANSWER_HEAD, ANSWER_TAIL = 600, 900

_LABEL = re.compile(r"(\*\*|__)(Asked|Did|Answered|Interrupted)\1")
_LAST_WORD = re.compile(r"\S{1,200}\Z")
_FIRST_WORD = re.compile(r"\A\S{1,200}")
_HAS_FAILED = re.compile(r" → (?:failed|no result)\b")

READ_CHARACTERS = 4000
"""The most characters of a command or a result that an extract searches."""


def shown_turn(section: str) -> str:
    """Return what a model sees of a turn's section, or "" if the section has only a heading."""
    parts = read_parts(section)
    shown = []
    if parts.prompt:
        shown.append(f"**Asked** {_plain(_ends(parts.prompt, PROMPT_HEAD, PROMPT_TAIL))}")
    if parts.tools:
        shown.append("\n".join(["**Did**", *_tool_lines(parts.tools)]))
    answer = _plain(_ends(parts.answer, ANSWER_HEAD, ANSWER_TAIL))
    label = f"**{parts.outcome}** " if parts.outcome else ""
    if label or answer:
        shown.append(f"{label}{answer}".rstrip())
    return "\n".join(shown)


def _plain(text: str) -> str:
    return _LABEL.sub(r"\2", text)


def _ends(text: str, head: int, tail: int) -> str:
    """Cut at words: half of a word could be half of a key, which redaction does not recognize."""
    if len(text) <= head + tail:
        return text
    start = _LAST_WORD.sub("", text[:head]).rstrip()
    end = _FIRST_WORD.sub("", text[len(text) - tail :]).lstrip()
    return f"{start}\n[… {len(text) - len(start) - len(end):,} characters left out …]\n{end}"


def _tool_lines(tools: Sequence[str]) -> list[str]:
    """The last line comes first, then failed calls, then the others, each from the last one on."""
    more = MORE.match(tools[-1])
    tools = tools[:-1] if more else tools
    lines = [f"- {_plain(shorten(line, LINE_CHARACTERS))}" for line in tools]
    last = len(lines) - 1
    failed = [bool(_HAS_FAILED.search(line)) for line in tools]
    room, kept = TOOL_CHARACTERS, set()
    for number in sorted(range(len(lines)), key=lambda n: (n == last, failed[n], n), reverse=True):
        if len(lines[number]) < room:
            kept.add(number)
            room -= len(lines[number]) + 1
    gone = [number for number in range(len(lines)) if number not in kept]
    shown = [lines[number] for number in sorted(kept)]
    if gone or more:
        calls = sum(count_calls(tools[number]) for number in gone)
        count = plural(calls + (int(more[1]) if more else 0), "tool call")
        failures = sum(failed[number] * count_calls(tools[number]) for number in gone)
        shown.insert(0, f"[… {count} left out{f', {failures} of them failed' if failures else ''} …]")
    return shown


@dataclass(frozen=True, slots=True)
class ExtractTurn:
    """A turn as the day file shows it. `calls` also have what its digest has no room for."""

    id: str
    title: str
    prompt: str
    answer: str
    calls: tuple[Call, ...]
    branch: str = ""


def read_extract_turns(
    content: DayFile, turns: Iterable[str], archived: Mapping[str, ArchivedTurn], redact: Callable[[str], str]
) -> list[ExtractTurn]:
    """Return `turns` as a day shows them, with the full input and result of tool calls that are archived.

    A tool line or a word that the user removed from the day is left out.
    """
    read = []
    for name in turns:
        section = content.find_turn(name)
        if section is None:
            continue
        parts = read_parts(content.text(section))
        calls = _calls(parts.tools, archived.get(name), redact)
        title, branch = heading_title(section), section.pairs.get("branch", "")
        read.append(ExtractTurn(name, title, parts.prompt, parts.answer, tuple(calls), branch))
    return read


def _calls(
    lines: Sequence[str], archived: ArchivedTurn | None, redact: Callable[[str], str]
) -> Iterator[Call]:
    known: list[tuple[str, ToolCall]] = []
    if archived is not None:
        roots = archived.project, archived.cwd
        known = [(tool_line(call, roots, redact), call) for call in _archived_calls(archived)]
    for number, line in enumerate(lines):
        one, count = split_count(line)
        if any(shown == line for shown, _ in known):  # the command itself ends like that
            one, count = line, 1
        if number >= MAX_TOOLS and line.startswith("… and "):
            yield from (_full(*call) for call in known)
            continue
        for _ in range(count):
            place = next((n for n, (shown, _) in enumerate(known) if shown == one), None)
            yield read_call(one) if place is None else _full(*known.pop(place))


def _archived_calls(turn: ArchivedTurn) -> Iterator[ToolCall]:
    waiting: list[ToolCall] = []
    for message in turn.messages:
        for tool in message.tools:
            if tool.result is None:
                is_recall = asks_memory(tool.name, tool.input)
                waiting.append(ToolCall(tool.name, tool.input, is_recall=is_recall))
                continue
            call = next((one for one in waiting if one.name == tool.name and one.result is None), None)
            if call is not None:
                call.result, call.is_error = tool.result, tool.is_error
    yield from waiting


def _full(line: str, call: ToolCall) -> Call:
    """Return a call with all of its command and result. A path stays relative, as the line shows it."""
    shown = read_call(line)
    command = call.input.get("command")
    given = command if role_of(call.name) == "shell" and isinstance(command, str) else shown.given
    outcome = call.result or shown.outcome
    if len(outcome) > READ_CHARACTERS:
        outcome = outcome[: READ_CHARACTERS // 2] + "\n" + outcome[-READ_CHARACTERS // 2 :]
    return Call(call.name, given[:READ_CHARACTERS], outcome, call.is_error)
