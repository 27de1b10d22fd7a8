"""Read a chat of Gemini CLI: one JSON object or, since 2026, JSON lines that change it one after another.

A line is a message, which replaces the one with its ID; `$set`, with fields and at times all messages; or
`$rewindTo`, which takes back a message and what follows it. A message has its calls, and these their results.
"""

from __future__ import annotations

import hashlib
import os
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from memkit import anchors
from memkit.agents.fields import INTERRUPTED, objects, string, texts
from memkit.agents.gemini.tools import given_to, outcome_of
from memkit.agents.session_file import MAX_LINE_BYTES, JsonLines, SessionFile
from memkit.conversation.entry import Block, TranscriptEntry
from memkit.conversation.values import clean, cleaned, parse_time
from memkit.errors import TranscriptError
from memkit.files import files_below, read_head, read_regular
from memkit.state import parse_json

NAME = "gemini"
MOST_BYTES = 128 * 1024 * 1024
"""The largest chat that is read: its messages are held in memory."""
SNAPSHOT = "<state_snapshot>"  # begins the summary of a compaction

_FIRST_BYTES = re.compile(rb'\s*\{\s*"sessionId": ?"[^"]{1,200}",\s*"projectHash":')
_ADDED = re.compile(
    r"\s*(?:<(?:session|hook)_context>|This is the Gemini CLI\. We are setting up|Please continue\.\Z"
    r"|System: |I ran the following shell command:|Here is (?:the|a summary of changes in the) user's editor)"
)
"""Begins what the client sends in the user's place."""

_DIRECTORY = re.compile(r"(?:Workspace Directories:\*\*\n {2}- |working in the directory: )(.{1,4096})")
_PATH = re.compile(r"(?<![\w.~/-])/[^\s'\"\\:*?<>|,;()\[\]]{1,400}")
_ATTACHED = re.compile(r"\n--- Content from referenced files ---\n.*", re.DOTALL)
_ACKNOWLEDGED = "Got it. Thanks for the additional context!"
_CANCELLED = "Request cancelled."
_SAID, _NOTES, _FAILED = ("gemini", "model"), ("info", "warning", "error"), ("error", "cancelled")


def chats() -> Iterator[str]:
    """Return the files of chats on this machine, without those of sub-agents."""
    home = os.path.expanduser(os.environ.get("GEMINI_CLI_HOME") or "~")
    return files_below(os.path.join(home, ".gemini", "tmp"), "session-*")


def chats_in(path: Path, since: float) -> list[Path]:
    """Return the path of a chat; none for the older file of one that went on as JSON lines."""
    went_on = path.suffix == ".json" and path.with_suffix(".jsonl").exists()
    return [path] if path.suffix in (".json", ".jsonl") and not went_on else []


def is_chat(path: Path, head: bytes) -> bool:
    """Return whether Gemini CLI wrote a file, by its place or its first bytes."""
    in_folder = path.name.startswith("session-") and path.parent.name == "chats"
    return in_folder or _FIRST_BYTES.match(head) is not None


class _Replayed(NamedTuple):
    """What all lines say together. The numbers of the messages grow."""

    fields: dict[str, str]
    messages: list[tuple[int, dict[str, Any]]]
    counts: Counter[str]
    end: int
    cwd: str


class Chat(SessionFile):
    """A chat. A sub-agent's has no entries: nobody typed its prompts. Entries start at a message's number."""

    @property
    def session(self) -> str:
        """The ID of the session."""
        name = clean(self._chat.fields.get("sessionId") or self.path.stem)
        return f"{anchors.safe(name)[:80]}@{NAME}"

    @cached_property
    def _chat(self) -> _Replayed:
        try:
            status = os.stat(real := os.path.realpath(self.path))
            if status.st_size > MOST_BYTES:
                raise TranscriptError(f"{self.path} is not read: it is larger than {MOST_BYTES:,} bytes")
            return _replayed(real, status.st_mtime_ns, status.st_size)
        except OSError as error:
            raise TranscriptError(f"cannot read the transcript {self.path}: {error.strerror}") from error

    def _entries(self) -> Iterator[TranscriptEntry]:
        chat = self._chat
        self.counts.update(chat.counts)
        begin = bisect_left(chat.messages, self.offset, key=lambda one: one[0])
        for number, message in islice(chat.messages, begin, None):
            if (entry := self._entry(number, message)) is not None:
                yield entry
        self.end = chat.end

    def _entry(self, number: int, message: dict[str, Any]) -> TranscriptEntry | None:
        kind, parts = message.get("type"), texts(message.get("content"))
        text = "\n\n".join(parts).strip()
        blocks: list[Block] = []
        more: dict[str, Any] = {}
        if kind == "user":
            if text.startswith(SNAPSHOT):
                more = {"is_compact_summary": True, "summary": text}
            elif (typed := _typed(message)) is not None:
                blocks, more = [Block("text", typed)], {"typed": typed}
        elif kind in _SAID:
            blocks = [Block("text", one) for one in parts if one.strip() not in ("", _ACKNOWLEDGED)]
            blocks += self._calls(message)
        elif kind == "info" and text == _CANCELLED:
            more = {"typed": INTERRUPTED}
        elif kind not in _NOTES:
            self.counts["unknown"] += 1
        if not blocks and not more:
            return None
        return TranscriptEntry(
            "assistant" if kind in _SAID else "user", tuple(blocks), string(message.get("id")), self.session,
            parse_time(message.get("timestamp")), number, number + 1, cwd=self._chat.cwd, **more,
        )  # fmt: skip

    def _calls(self, message: dict[str, Any]) -> Iterator[Block]:
        for call in objects(message.get("toolCalls")):
            name, tool, given = string(call.get("name")), string(call.get("id")), call.get("args")
            given = given_to(name, given if isinstance(given, dict) else {}, self._chat.cwd)
            yield Block("tool_use", tool_id=tool, tool_name=name, tool_input=cleaned(given))
            result, status = call.get("result"), call.get("status")
            if status not in (*_FAILED, "success") and (status is not None or not result):
                continue
            answers = objects([one.get("functionResponse") for one in objects(result)])
            own = [one for one in answers if one.get("id") == tool] or answers[:1]
            said = next(iter(objects([one.get("response") for one in own])), {})
            parts = [string(said.get(key)) for key in ("error", "output")] + texts(result)
            parts = [text for text in parts if text] or [string(call.get("resultDisplay"))]
            text, has_failed = outcome_of(name, "\n".join(parts))
            has_failed = has_failed or status in _FAILED or "error" in said
            yield Block("tool_result", text, tool_id=tool, is_error=has_failed)


@lru_cache(2)  # each turn of a session is read again for the archive
def _replayed(path: str, modified: int, size: int) -> _Replayed:
    lines = JsonLines(Path(path))
    chat, end = _Replay(lines.counts), 0
    for _, _, line in lines._lines():
        if line.strip() == b"{":  # an object over many lines
            try:
                chat.apply(parse_json(read_regular(path, MAX_LINE_BYTES).decode("utf-8", "replace")))
                end = size
            except ValueError:
                lines.counts["unfinished"] += 1
            break
        for _, record in lines._decode(line):
            chat.apply(record)
    messages = chat.messages if chat.fields.get("kind") != "subagent" else []
    return _Replayed(chat.fields, messages, lines.counts, end or lines.end, _cwd(Path(path), chat))


def _cwd(path: Path, chat: _Replay) -> str:
    """The directory: a file next to a newer chat has it; an older one has its hash, and paths in it."""
    hashed = chat.fields.get("projectHash")
    found = [_read(path.parent.parent / ".project_root").strip()]
    for _, message in chat.messages[:3]:
        found += _DIRECTORY.findall("\n".join(texts(message.get("content"))))
    found = [one.strip() for one in found if os.path.isabs(one)]
    paths = [*found, *_PATH.findall(str(chat.messages[:50])[:200_000])]
    tops = (str(one) for path in paths for one in (Path(path), *Path(path).parents))
    matching = (one for one in tops if hashlib.sha256(one.encode(errors="replace")).hexdigest() == hashed)
    return next(matching, next(iter(found), ""))


class _Replay:
    """Applies the records of a chat in order."""

    def __init__(self, counts: Counter[str]) -> None:
        self.fields: dict[str, str] = {}
        self._counts = counts
        self._all: dict[str, tuple[int, dict[str, Any]]] = {}
        self._live: set[str] = set()
        self._settled: set[str] = set()

    @property
    def messages(self) -> list[tuple[int, dict[str, Any]]]:
        return sorted((self._all[name] for name in self._live | self._settled), key=lambda one: one[0])

    def apply(self, record: object) -> None:
        if not isinstance(record, dict):
            self._counts["odd"] += 1
        elif isinstance(name := record.get("$rewindTo"), str):
            first = self._all[name][0] if name in self._live else 0
            self._live = {one for one in self._live if self._all[one][0] < first}
        elif isinstance(name := record.get("id"), str):
            self._live.add(name)
            self._all[name] = self._all[name][0] if name in self._all else len(self._all), record
        elif isinstance(changes := record.get("$set"), dict) or "sessionId" in record:
            self._set(changes if isinstance(changes, dict) else record)
        else:
            self._counts["unknown"] += 1

    def _set(self, changes: dict[str, Any]) -> None:
        self.fields.update({name: value for name, value in changes.items() if isinstance(value, str)})
        if not isinstance(changes.get("messages"), list):
            return
        listed = {str(one.get("id")): one for one in objects(changes["messages"])}
        new = {name: one for name, one in listed.items() if name not in self._all}
        said = (text for one in new.values() for text in texts(one.get("content")))
        if any(text.lstrip().startswith(SNAPSHOT) for text in said):
            self._settled |= self._live  # a summary takes the place of messages that have happened
        self._live = set(listed)
        for name, one in new.items():  # the others come back without their calls and times, as after a resume
            self._all[name] = len(self._all), one


def _typed(message: dict[str, Any]) -> str | None:
    """Return what the user typed: without the files that `@` names, and without what the client adds."""
    content = message.get("displayContent") or message.get("content")
    shown = "\n\n".join(one for one in texts(content) if not _ADDED.match(one))
    images = sum("inlineData" in one for one in objects(content))
    return "\n\n".join([*filter(None, [_ATTACHED.sub("", shown).strip()]), *["[image]"] * images]) or None


def _read(path: Path) -> str:
    try:
        return read_head(str(path), 1_000_000).decode("utf-8", "replace")
    except OSError:
        return ""
