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
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

from memkit.errors import TranscriptError
from memkit.files import open_regular
from memkit.privacy.redact import without_private
from memkit.text import encodable

logger = logging.getLogger(__name__)

MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is counted and skipped; the largest ones seen (pasted images) are below 10 MB."""

MAX_DEPTH = 20
"""Depth of lists and objects in a tool's input; deeper ones are left out."""

_YEARS = (1970, 9000)  # outside, a time in another zone or the day before may not exist

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_SALVAGE_BYTES = 16 * 1024 * 1024
"""Total bytes to read again in search of a whole object in a broken line."""

_OBJECT = re.compile(rb'\{"(?:parentUuid|type|uuid|sessionId|isSidechain|timestamp|message)"')
# The start of a prompt's line, up to the text.
_HALF_PROMPT = re.compile(
    rb'(\{[^{}\[\]]{0,2000}"type": ?"user"), ?"message": ?\{"role": ?"user", ?"content": ?'
    rb'"([^"\\]*(?:\\.[^"\\]*)*)',
    re.DOTALL,
)
_HALF_ESCAPE = re.compile(rb"\\u[0-9a-fA-F]{0,3}\Z")
_NAMED = re.compile(rb'"(promptId|sessionId|cwd|gitBranch|timestamp)": ?"([^"\\]*)"')
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
        queued: whether the user typed it while Claude was still working.
        lost_parent: the uuid of the entry that this one answers, if a broken line lost it.
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
    is_synthetic: bool = False
    queued: bool = False
    lost_parent: str = ""

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
        """`hide` removes from each entry what must not be read; see `memkit.claude_code.omitted`."""
        self.path = path
        self.hide = hide
        self.offset = offset
        self.end = offset
        self.counts: Counter[str] = Counter()
        self._known: set[int] = set()  # hashes of uuids
        self._lost: dict[int, str] = {}
        self._has_lost_prompt = False

    def __iter__(self) -> Iterator[TranscriptEntry]:
        entries = self._entries()
        return entries if self.hide is None else map(self.hide, entries)

    def _entries(self) -> Iterator[TranscriptEntry]:
        for start, end, line in self._lines():
            for offset, value in self._decode(line):
                lost_parent = self._follow(value)
                entry = self._entry(value, start + offset, end)
                if entry is not None:
                    yield replace(entry, lost_parent=lost_parent) if lost_parent else entry

    def _follow(self, value: dict[str, Any]) -> str:
        """Track the chain of entries; return the uuid of the lost entry that this one follows, or ""."""
        uuid, parent = _string(value.get("uuid")), _string(value.get("parentUuid"))
        lost = self._lost.get(hash(parent), "") if parent else ""
        if self._has_lost_prompt and parent and hash(parent) not in self._known:
            lost = parent
        if uuid:
            self._known.add(hash(uuid))
            if lost:
                self._lost[hash(uuid)] = lost
        return lost

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
                start = end

    def _decode(self, line: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the objects in a line with their offsets: usually one; a power cut can join two."""
        try:
            value = _parsed(line)
        except (ValueError, RecursionError) as error:
            if not line.endswith(b"\n"):  # still being written
                self.counts["unfinished"] += 1
                return
            self.counts["broken"] += 1
            if self.counts["broken"] == 1:  # `counts` has the rest
                logger.warning("%s: a line, or its start, is skipped: %s", self.path, _why(error))
            start, rest = _object_at_end(line)
            half = _half_prompt(line[:start], rest or {})
            if half is not None:
                yield 0, half
            elif not _CONTINUES.search(line[:start]):
                self._has_lost_prompt = True
            if rest is not None:
                yield start, rest
            return
        if isinstance(value, dict):
            yield 0, value
        else:
            self.counts["odd"] += 1

    def _entry(self, value: dict[str, Any], start: int, end: int) -> TranscriptEntry | None:
        kind = value.get("type")
        if kind == "attachment":
            return self._queued_prompt(value, start, end)
        if kind == "system" and value.get("subtype") == "local_command":
            # Older versions of Claude Code wrote these as user entries; only commands are typed.
            said = value.get("content")
            typed = isinstance(said, str) and said.lstrip().startswith("<command-")
            value, kind = {**value, "isMeta": not typed, "message": {"content": said}}, "user"
        if kind not in _SPOKEN:
            if not isinstance(kind, str) or kind not in _SILENT:
                self.counts["unknown"] += 1
            return None
        message = value.get("message")
        if not isinstance(message, dict):
            self.counts["odd"] += 1
            return None
        blocks = tuple(self._blocks(message.get("content")))
        origin = value.get("origin")
        by_machine = isinstance(origin, dict) and origin.get("kind", "human") != "human"
        return TranscriptEntry(
            role=kind,
            blocks=blocks,
            start=start,
            end=end,
            is_meta=value.get("isMeta") is True or by_machine,
            is_sidechain=value.get("isSidechain") is True,
            is_compact_summary=value.get("isCompactSummary") is True,
            is_api_error=value.get("isApiErrorMessage") is True,
            is_synthetic=message.get("model") == "<synthetic>",
            agent=_agent(value),
            **_common(value),
        )

    def _queued_prompt(self, value: dict[str, Any], start: int, end: int) -> TranscriptEntry | None:
        attachment = value.get("attachment")
        if not isinstance(attachment, dict) or attachment.get("type") != "queued_command":
            return None
        origin = attachment.get("origin")
        by_machine = isinstance(origin, dict) and origin.get("kind", "human") != "human"
        if by_machine or attachment.get("commandMode", "prompt") != "prompt":
            return None
        blocks = tuple(self._blocks(attachment.get("prompt")))
        return TranscriptEntry(
            role="user", blocks=blocks, start=start, end=end, queued=True, **_common(value)
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
            tool_input=_shallow(given) if isinstance(given, dict) else {},
        )
    if kind == "tool_result":
        return Block(
            "tool_result",
            _without_private_answers(_result_text(block.get("content"))),
            tool_id=_string(block.get("tool_use_id")),
            is_error=block.get("is_error") is True,
        )
    return None


def _parsed(line: bytes) -> Any:
    value = json.loads(line.decode("utf-8", "replace"))
    if _SURROGATE.search(line):
        # Legal in JSON, but not in UTF-8 files, and possible anywhere in the object.
        value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    return value


def _object_at_end(line: bytes) -> tuple[int, dict[str, Any] | None]:
    """Return the offset of the object at the end of a line, behind half of another one, and the object.

    If there is none, return the length of the line and None.
    """
    left = _SALVAGE_BYTES
    for match in reversed(list(_OBJECT.finditer(line, max(0, len(line) - _SALVAGE_BYTES)))):
        left -= len(line) - match.start()
        if left < 0:
            break
        try:
            value = _parsed(line[match.start() :])
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and isinstance(value.get("type"), str):
            return match.start(), value
    return len(line), None


def _half_prompt(half: bytes, following: dict[str, Any]) -> dict[str, Any] | None:
    """Return the start of a prompt whose line was cut off; None if `half` is something else.

    Take time and place from the line `following` it.
    """
    match = _HALF_PROMPT.match(half)
    if match is None or parse_time(following.get("timestamp")) is None:
        return None
    text = _HALF_ESCAPE.sub(b"", match[2])
    try:
        said = json.loads(b'"%s"' % text, strict=False)
    except ValueError:
        return None
    is_whole = half[match.end() : match.end() + 1] == b'"'
    names = {key.decode(): value.decode("utf-8", "replace") for key, value in _NAMED.findall(match[1])}
    place = {key: following.get(key) for key in ("sessionId", "cwd", "gitBranch", "timestamp")}
    message = {"content": said if is_whole else f"{said} …"}
    return {**place, **names, "type": "user", "message": message}


def _why(error: Exception) -> str:
    """Return the problem with a line, without any of its text."""
    return "it is nested too deep" if isinstance(error, RecursionError) else type(error).__name__


def _shallow(value: Any, depth: int = 0) -> Any:
    """Return `value` down to `MAX_DEPTH`, so that later recursion does not run out of stack."""
    if not isinstance(value, (dict, list)):
        return value
    if depth == MAX_DEPTH:
        return "…"
    if isinstance(value, list):
        return [_shallow(item, depth + 1) for item in value]
    return {key: _shallow(item, depth + 1) for key, item in value.items()}


def _result_text(content: object) -> str:
    if isinstance(content, str):
        return clean(content)
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return clean("\n".join(text for text in texts if isinstance(text, str)))


_TYPED = re.compile(r"(?:User has|Your questions have been) answered|The user doesn't want to ")
"""The start of results that a user typed: answers to Claude's questions, and why a call was refused."""


def _without_private_answers(result: str) -> str:
    """Return a tool's result without the private parts of what a user typed into it."""
    if "rivate" not in result.lower() or not _TYPED.match(result):
        return result
    return without_private(result)


def _common(value: dict[str, Any]) -> dict[str, Any]:
    return {
        "uuid": _string(value.get("uuid")),
        "session": _string(value.get("sessionId")),
        "time": parse_time(value.get("timestamp")),
        "prompt_id": _string(value.get("promptId")),
        "cwd": _string(value.get("cwd")),
        "branch": _string(value.get("gitBranch")),
    }


def _agent(value: dict[str, Any]) -> str:
    """Return the id of the sub-agent that a tool result reports on, or that wrote this line."""
    result = value.get("toolUseResult")
    given = value.get("agentId") or (result.get("agentId") if isinstance(result, dict) else None)
    return _string(given)


def _string(value: object) -> str:
    return clean(value) if isinstance(value, str) else ""


def clean(text: str) -> str:
    """Return `text` as a UTF-8 file can hold it: replace lone surrogates, and remove NUL.

    NUL leaves nothing in its place, so that it cannot hide a secret from redaction.
    """
    return encodable(text).replace("\x00", "")


def parse_time(value: object) -> datetime | None:
    """Parse an ISO 8601 time; UTC if it has no zone. Return None if it is invalid or absurd."""
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        return None
    if not _YEARS[0] <= parsed.year <= _YEARS[1]:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=timezone.utc)
