"""Parse Claude Code's transcripts: one JSON object a line, append-only, of any age and in any state.

The parser streams, so a file of any size costs the memory of its longest line. It counts and skips lines
that it cannot use.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

from memkit.agents.tools import SHELL
from memkit.conversation.values import clean, cleaned, parse_time
from memkit.errors import TranscriptError
from memkit.files import open_regular
from memkit.privacy.redact import without_private
from memkit.state import parse_json

logger = logging.getLogger(__name__)

MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is counted and skipped; the largest ones seen (pasted images) are below 10 MB."""

_SALVAGE_BYTES = 16 * 1024 * 1024
"""Total bytes to read again in search of a whole object in a broken line."""

_OPENED = re.compile(r"\s*\{")
_DECODER = json.JSONDecoder()
_OBJECT = re.compile(rb'\{"(?:parentUuid|type|uuid|sessionId|isSidechain|timestamp|message)"')
# Half a line of these kinds continues a turn and does not begin one.
_CONTINUES = re.compile(
    rb'"(?:role|type)": ?"assistant"|"tool_use_id"|"type": ?"(?:attachment|system|progress)"'
    rb'|^\{"type": ?"(?!user)'
)
_SPOKEN = ("user", "assistant")
_SILENT = frozenset(
    "summary system attachment queue-operation last-prompt file-history-snapshot progress mode "
    "permission-mode ai-title custom-title tag agent-name pr-link api-request api-request-blob "
    "api-request-shape atis-latch cost-state tools-used".split()
)

_TYPED = re.compile(r"(?:User has|Your questions have been) answered|The user doesn't want to ")
"""The start of a tool result with typed text: an answer to a question, or a reason to refuse a call."""

_COMMAND_ID = "!"
"""The ID of a command that the user ran with `!`. Claude Code gives it none."""

BlockKind = Literal["text", "thinking", "tool_use", "tool_result", "image"]


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a message. `text` is empty for a tool call, and the output for a result."""

    kind: BlockKind
    text: str = ""
    tool_id: str = ""
    tool_name: str = ""
    tool_input: dict[str, Any] = field(default_factory=dict)
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One line of a transcript by the user or Claude.

    Attributes:
        start, end: byte offsets in the file; `end` is where the next line begins.
        is_api_error: whether Claude Code wrote it in Claude's place, usually about an error.
        queued: whether the user typed it while Claude was still working.
        is_progress: whether it is a sub-agent's, inside a `progress` entry of the session (2.1.12 to 2.1.49).
        origin: the session that a fork has copied it from; only Claude's entries name it (2.1.330).
        gap: the number of broken lines before it that may have been prompts, since reading began.
    """

    role: Literal["user", "assistant"]
    blocks: tuple[Block, ...]
    uuid: str
    session: str
    time: datetime | None
    start: int
    end: int
    prompt_id: str = ""
    cwd: str = ""
    branch: str = ""
    agent: str = ""
    is_meta: bool = False
    is_sidechain: bool = False
    is_compact_summary: bool = False
    is_api_error: bool = False
    queued: bool = False
    is_progress: bool = False
    origin: str = ""
    gap: int = field(default=0, compare=False)

    @property
    def is_command(self) -> bool:
        """Whether it is a command that the user ran with `!`."""
        return self.role == "user" and any(block.kind == "tool_use" for block in self.blocks)

    @property
    def text(self) -> str:
        """The text blocks, joined by blank lines."""
        return "\n\n".join(block.text for block in self.blocks if block.kind == "text")


class Transcript:
    """Iterates over the user's and Claude's entries of one file from byte `offset` on.

    Afterwards `counts` has the numbers of skipped lines (`broken`, `unfinished`, `unknown`, `odd`,
    `too long`), and `end` is the offset behind the last complete line. Raise `TranscriptError` if the file
    cannot be opened.
    """

    def __init__(
        self, path: Path, offset: int = 0, hide: Callable[[TranscriptEntry], TranscriptEntry] | None = None
    ) -> None:
        """`hide` removes from each entry what must not be read; see `memkit.agents.claude_code.omitted`."""
        self.path = path
        self.hide = hide
        self.offset = offset
        self.end = offset
        self.counts: Counter[str] = Counter()
        self._gap = 0

    def __iter__(self) -> Iterator[TranscriptEntry]:
        entries = self._entries()
        return entries if self.hide is None else map(self.hide, entries)

    def mentioned(self, name: str) -> bool:
        """Return whether an ID occurs before the offset."""
        lines = Transcript(self.path)._lines() if self.offset and name else ()
        before = takewhile(lambda line: line[0] < self.offset, lines)
        return any(f'"{name}"'.encode() in line[: self.offset - start] for start, _, line in before)

    def _entries(self) -> Iterator[TranscriptEntry]:
        for start, end, line in self._lines():
            for offset, value in self._decode(line):
                entry = self._entry(value, start + offset, end)
                if entry is not None:
                    yield entry

    def _lines(self) -> Iterator[tuple[int, int, bytes]]:
        try:
            # A link may lead to it, but opening a pipe could block forever.
            file = os.fdopen(open_regular(os.path.realpath(self.path)), "rb")
        except OSError as error:
            raise TranscriptError(
                f"cannot read the transcript {self.path}: {error.strerror}"
            ) from error
        with file:
            file.seek(self.offset)
            start = self.offset
            while line := file.readline(MAX_LINE_BYTES):
                too_long = len(line) == MAX_LINE_BYTES and not line.endswith(b"\n")
                while too_long and line and not line.endswith(b"\n"):
                    line = file.readline(MAX_LINE_BYTES)
                end = file.tell()
                if line.endswith(b"\n"):
                    self.end = end
                if too_long:
                    self.counts["too long"] += 1
                    logger.warning("%s: a line of %d bytes is skipped", self.path, end - start)
                elif line.strip():
                    yield start, end, line
                if not line.endswith(b"\n"):
                    return  # being written: its rest, read next, would look like a broken line
                start = end

    def _decode(self, line: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
        try:
            found = [(0, _parsed(line))]
        except ValueError as error:
            found = self._rescue(line, error)
        for start, value in found:
            if isinstance(value, dict):
                yield start, value
            else:
                self.counts["odd"] += 1

    def _rescue(self, line: bytes, error: ValueError) -> list[tuple[int, Any]]:
        """Claude Code may leave out the newline between two objects, and a power cut leaves half of one."""
        text = line.decode("latin-1")  # a character for each byte
        found, end = [], 0
        with suppress(ValueError, RecursionError):
            while begin := _OPENED.match(text, end):
                start = begin.end() - 1
                _, end = _DECODER.raw_decode(text, start)
                found.append((start, _parsed(line[start:end])))
        rest = line[end:]
        if not rest.strip():
            return found
        if not line.endswith(b"\n"):  # still being written
            self.counts["unfinished"] += 1
            return found
        self.counts["broken"] += 1
        if self.counts["broken"] == 1:  # `counts` has the rest
            logger.warning("%s: a part of a line is skipped: %s", self.path, error)
        start, others = _objects_at_end(rest)
        if not _CONTINUES.search(rest[:start]):
            self._gap += 1
        return found + [(end + place, value) for place, value in others]

    def _entry(self, value: dict[str, Any], start: int, end: int) -> TranscriptEntry | None:
        kind = value.get("type")
        if kind == "attachment":
            return self._queued_prompt(value, start, end)
        if kind == "system" and value.get("subtype") == "local_command":
            # Older versions of Claude Code wrote these as user entries; only commands are typed.
            said = value.get("content")
            typed = isinstance(said, str) and said.lstrip().startswith(("<command-", "<bash-"))
            value, kind = {**value, "isMeta": not typed, "message": {"content": said}}, "user"
        is_progress = kind == "progress"
        if is_progress:
            value = _of_agent(value)
            kind = value.get("type")
        if kind not in _SPOKEN:
            if not isinstance(kind, str) or kind not in _SILENT:
                self.counts["unknown"] += 1
            return None
        message = value.get("message")
        if not isinstance(message, dict):
            self.counts["odd"] += 1
            return None
        blocks = tuple(self._blocks(message.get("content")))
        return TranscriptEntry(
            role=kind,
            blocks=_command_blocks(blocks) if kind == "user" else blocks,
            start=start,
            end=end,
            agent=_agent(value),
            is_meta=value.get("isMeta") is True or _is_by_machine(value),
            is_sidechain=is_progress or value.get("isSidechain") is True,
            is_progress=is_progress,
            is_compact_summary=value.get("isCompactSummary") is True,
            is_api_error=value.get("isApiErrorMessage") is True or message.get("model") == "<synthetic>",
            gap=self._gap,
            **_common(value),
        )

    def _queued_prompt(self, value: dict[str, Any], start: int, end: int) -> TranscriptEntry | None:
        attachment = value.get("attachment")
        if not isinstance(attachment, dict) or attachment.get("type") != "queued_command":
            return None
        if _is_by_machine(attachment) or attachment.get("commandMode", "prompt") != "prompt":
            return None
        blocks = tuple(self._blocks(attachment.get("prompt")))
        return TranscriptEntry(
            role="user", blocks=blocks, start=start, end=end, queued=True, gap=self._gap, **_common(value)
        )

    def _blocks(self, content: object) -> Iterator[Block]:
        if isinstance(content, str):
            yield Block("text", clean(content))
            return
        for block in content if isinstance(content, list) else ():
            parsed = _block(block) if isinstance(block, dict) else None
            if parsed is None:
                self.counts["odd"] += 1
            else:
                yield parsed


def _command_blocks(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Return a command that the user ran with `!`, or its output, as a call of Bash; other blocks unchanged.

    The client writes `<bash-input>` to one entry, and `<bash-stdout>` with `<bash-stderr>` to the next. It
    escapes the output, and writes all output of a failed command to the last tag (2.1.330).
    """
    if len(blocks) != 1 or blocks[0].kind != "text":
        return blocks
    text = blocks[0].text.strip()
    if text.startswith("<bash-input>"):
        command = text.removeprefix("<bash-input>").removesuffix("</bash-input>").strip()
        given = {"command": without_private(command)}
        call = Block("tool_use", tool_id=_COMMAND_ID, tool_name=SHELL, tool_input=given)
        return Block("text", f"! {command}"), call
    if text.startswith("<bash-stdout>"):
        output, _, errors = text.removeprefix("<bash-stdout>").rpartition("</bash-stdout>")
        errors = errors.strip().removeprefix("<bash-stderr>").removesuffix("</bash-stderr>").strip()
        shown = "\n".join(filter(None, (output.strip(), errors)))
        shown = shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
        has_failed = bool(errors and not output.strip())
        return (Block("tool_result", shown, tool_id=_COMMAND_ID, is_error=has_failed),)
    return blocks


def _block(block: dict[str, Any]) -> Block | None:
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return Block("text", clean(block["text"]))
    if kind == "thinking":
        return Block("thinking", _string(block.get("thinking")))
    if kind == "image":
        return Block("image")
    if kind == "tool_use":
        given = block.get("input")
        return Block(
            "tool_use",
            tool_id=_string(block.get("id")),
            tool_name=_string(block.get("name")),
            tool_input=cleaned(given) if isinstance(given, dict) else {},
        )
    if kind == "tool_result":
        return Block(
            "tool_result",
            _result_text(block.get("content")),
            tool_id=_string(block.get("tool_use_id")),
            is_error=block.get("is_error") is True,
        )
    return None


def _of_agent(value: dict[str, Any]) -> dict[str, Any]:
    """Return the entry of a sub-agent that a `progress` entry contains, or the entry itself."""
    data = value.get("data")
    if not isinstance(data, dict) or data.get("type") != "agent_progress":
        return value
    own = data.get("message")
    if not isinstance(own, dict):
        return value
    return {**value, "type": own.get("type"), "message": own.get("message")}


def _is_by_machine(value: dict[str, Any]) -> bool:
    origin = value.get("origin")
    return isinstance(origin, dict) and origin.get("kind", "human") != "human"


def _parsed(line: bytes) -> Any:
    return parse_json(line.decode("utf-8", "replace"))


def _objects_at_end(line: bytes) -> tuple[int, list[tuple[int, dict[str, Any]]]]:
    """Return where the whole objects at the end of a line begin, and these objects with their offsets."""
    left, end = _SALVAGE_BYTES, len(line)
    found: list[tuple[int, dict[str, Any]]] = []
    for match in reversed(list(_OBJECT.finditer(line, max(0, len(line) - _SALVAGE_BYTES)))):
        left -= end - match.start()
        if left < 0:
            break
        try:
            value = _parsed(line[match.start() : end])
        except ValueError:
            continue
        if isinstance(value, dict) and isinstance(value.get("type"), str):
            found.insert(0, (match.start(), value))
            end = match.start()
    return end, found


def _result_text(content: object) -> str:
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "\n".join(text for text in texts if isinstance(text, str))
    result = _string(content)
    return without_private(result) if _TYPED.match(result) else result


def _common(value: dict[str, Any]) -> dict[str, Any]:
    return {
        "uuid": _string(value.get("uuid")),
        "session": _string(value.get("sessionId")),
        "time": parse_time(value.get("timestamp")),
        "prompt_id": _string(value.get("promptId")),
        "cwd": _string(value.get("cwd")),
        "branch": _string(value.get("gitBranch")),
        "origin": _string(value.get("requestSessionId")),
    }


def _agent(value: dict[str, Any]) -> str:
    result = value.get("toolUseResult")
    given = value.get("agentId") or (result.get("agentId") if isinstance(result, dict) else None)
    return _string(given)


def _string(value: object) -> str:
    return clean(value) if isinstance(value, str) else ""
