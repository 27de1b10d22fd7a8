"""Read a rollout of Codex: JSON lines with `timestamp`, `type`, and `payload`.

A `response_item` is what the model saw or said. An `event_msg` is what the client showed; the one about a
prompt has it without what Codex adds for the model. Before August 2025, a line was a response item itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from memkit import anchors
from memkit.agents.codex.tools import PATCH, command_of, edits_of, patch_in
from memkit.agents.session_file import JsonLines
from memkit.conversation.entry import Block, Hide, TranscriptEntry
from memkit.conversation.values import clean, cleaned, parse_time
from memkit.state import parse_json

NAME = "codex"
HELD_CHARACTERS = 1_000_000
"""The most output kept of a command that goes on running."""

_FILE_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_CWD = re.compile(r"<cwd>([^<\n]{1,4096})</cwd>")
_INJECTED = re.compile(
    r"\s*(?:# AGENTS\.md instructions for|<(?:environment_context|user_instructions|turn_aborted|skill"
    r"|user_shell_command|subagent_notification|permissions instructions)\b)"
)
_IDE_CONTEXT, _IDE_REQUEST = "# Context from my IDE setup:", "## My request for Codex:"
_INTERRUPTED = "[Request interrupted by user]"
_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)", re.MULTILINE)
_RUNNING = re.compile(r"^Process running with session ID (\d+)", re.MULTILINE)
_OUTPUT = re.compile(r"(?:[A-Z][\w ]{1,40}:? [^\n]{0,80}\n){1,8}Output:\n?")
_FAILED = re.compile(
    r"(?:apply_patch verification|exec_command|write_stdin|exec|sandbox) (?:failed|error)|execution error"
    r"|aborted by user|failed to |unsupported call|err(?:or)?:",
    re.IGNORECASE,
)
_SILENT = frozenset("reasoning ghost_snapshot other compaction context_compaction".split())
_CALLS = frozenset("function_call custom_tool_call local_shell_call web_search_call tool_search_call".split())
_OUTPUTS = frozenset("function_call_output custom_tool_call_output tool_search_output".split())


class _Head(NamedTuple):
    """What the first lines tell. `has_events`: whether events tell the prompts; None if it is open."""

    session: str
    cwd: str
    branch: str
    is_agent: bool
    has_events: bool | None


class Rollout(JsonLines):
    """The rollout of one session. That of a sub-agent has no entries: nobody typed its prompts.

    A turn begins with the lines that tell its ID and directory, before its prompt. Nothing that is known from
    earlier lines goes into it, so that reading from there gives the same turn.
    """

    continues = re.compile(rb"(?!)")  # the ID of a turn tells what belongs to it

    def __init__(self, path: Path, offset: int = 0, hide: Hide | None = None) -> None:
        super().__init__(path, offset, hide)
        self._turn = self._prompted = self._cwd = ""
        self._context_start = -1
        self._calls: dict[str, list[str]] = {}  # the IDs of the blocks of each call without an output
        self._polls: dict[str, str] = {}  # the process that a call asks about
        self._running: dict[str, tuple[list[str], str]] = {}  # by process: its blocks, and its output so far

    @property
    def session(self) -> str:
        """The ID of the session."""
        return self._head.session

    def _entry(self, value: dict[str, Any], start: int, end: int) -> TranscriptEntry | None:
        if self._head.is_agent:
            return None
        kind, payload = _opened(value)
        item = payload.get("type")
        if kind == "turn_context" or item in ("task_started", "turn_started"):
            self._read_context(payload, start)
        elif kind == "compacted":
            said = _string(payload.get("message")).strip()
            return self._made("user", (), value, start, end, is_compact_summary=True, summary=said)
        elif kind == "event_msg":
            return self._event(payload, value, start, end)
        elif kind == "response_item":
            return self._item(payload, value, start, end)
        elif kind not in ("session_meta", "world_state") and "record_type" not in value:
            self.counts["unknown"] += 1
        return None

    def _read_context(self, payload: dict[str, Any], start: int) -> None:
        if self._context_start < 0:
            self._context_start, self._turn, self._cwd = start, "", ""
        self._turn = _string(payload.get("turn_id")) or self._turn
        self._cwd = _string(payload.get("cwd")) or self._cwd

    def _event(
        self, payload: dict[str, Any], value: dict[str, Any], start: int, end: int
    ) -> TranscriptEntry | None:
        event = payload.get("type")
        if event == "user_message":
            images = [payload.get(name) for name in ("images", "local_images")]
            count = sum(len(one) for one in images if isinstance(one, list))
            return self._prompt(_string(payload.get("message")), count, value, start, end)
        if event == "turn_aborted" and payload.get("reason") == "interrupted":
            return self._made(
                "user", (Block("text", _INTERRUPTED),), value, start, end, typed=_INTERRUPTED
            )
        if event in ("task_complete", "turn_complete") and self._running:
            left = [block for ids, text in self._running.values() for block in _results(ids, text)]
            self._running.clear()
            return self._made("user", left, value, start, end)
        return None

    def _prompt(
        self, text: str, images: int, value: dict[str, Any], start: int, end: int
    ) -> TranscriptEntry | None:
        if text.startswith(_IDE_CONTEXT) and _IDE_REQUEST in text:
            text = text.partition(_IDE_REQUEST)[2]
        typed = "\n\n".join([*filter(None, [text.strip()]), *["[image]"] * images])
        if not typed:
            return None
        if self._context_start >= 0:
            start = self._context_start
        elif not self._turn:
            self._cwd = ""
        if not self._turn or self._turn != self._prompted:
            for held in (self._calls, self._polls, self._running):
                held.clear()
        self._prompted, self._context_start = self._turn, -1
        blocks = [Block("text", typed)]
        return self._made("user", blocks, value, start, end, typed=typed)

    def _item(
        self, payload: dict[str, Any], value: dict[str, Any], start: int, end: int
    ) -> TranscriptEntry | None:
        item = payload.get("type") or ("message" if "role" in payload else None)
        role = payload.get("role")
        blocks: list[Block] = []
        if item == "message" and role == "user" and self._head.has_events is False:
            texts = [text for text in _texts(payload.get("content")) if not _INJECTED.match(text)]
            return self._prompt("\n\n".join(texts), 0, value, start, end)
        if item == "message" and role == "assistant":
            blocks = [Block("text", text) for text in _texts(payload.get("content"))]
        elif item in _CALLS:
            blocks = list(self._call_blocks(payload))
        elif item in _OUTPUTS:
            blocks = self._output_blocks(payload)
        elif item != "message" and item not in _SILENT:
            self.counts["unknown"] += 1
        if not blocks:
            return None
        self._context_start = -1
        speaker: Literal["user", "assistant"] = "user" if item in _OUTPUTS else "assistant"
        is_narration = payload.get("phase") == "commentary"
        return self._made(speaker, blocks, value, start, end, is_narration=is_narration)

    def _call_blocks(self, payload: dict[str, Any]) -> Iterator[Block]:
        name, call, given = _call(payload)
        if name == "write_stdin":
            self._polls[call] = str(given.get("session_id"))
            return
        edits = list(edits_of(patch_in(name, given), self._cwd or self._head.cwd))
        if edits:
            name = PATCH
        elif (command := command_of(given)) is not None:
            given = {"command": command} | {key: given[key] for key in given if key not in ("cmd", "command")}
        ids = [f"{call}#{number}" if number else call for number in range(max(1, len(edits)))]
        for one, edit in zip(ids, edits or [given], strict=True):
            yield Block("tool_use", tool_id=one, tool_name=name, tool_input=cleaned(edit))
        if payload.get("type") == "web_search_call":  # the model has the pages, the file has not
            yield Block("tool_result", tool_id=call)
        else:
            self._calls[call] = ids

    def _output_blocks(self, payload: dict[str, Any]) -> list[Block]:
        """Return the results of a call: of a command that goes on running, once it ends or its turn does."""
        call = _string(payload.get("call_id"))
        process = self._polls.pop(call, None)
        text, has_failed, running = _result(payload.get("output"))
        if process is None:
            ids, before = self._calls.pop(call, [call]), ""
        elif process in self._running:
            ids, before = self._running.pop(process)
        else:
            return []
        text = f"{before}{text}"[-HELD_CHARACTERS:]
        if running:
            self._running[running] = ids, text
            return []
        return _results(ids, text, has_failed=has_failed)

    def _made(
        self,
        role: Literal["user", "assistant"],
        blocks: Iterable[Block],
        value: dict[str, Any],
        start: int,
        end: int,
        **more: Any,
    ) -> TranscriptEntry:
        return TranscriptEntry(
            role, tuple(blocks), uuid="", session=self._head.session,
            time=parse_time(value.get("timestamp")), start=start, end=end, prompt_id=self._turn,
            cwd=self._cwd or self._head.cwd, branch=self._head.branch, gap=self._gap, **more,
        )  # fmt: skip

    @cached_property
    def _head(self) -> _Head:
        meta: dict[str, Any] = {}
        cwd, has_events = "", None
        first = JsonLines(self.path)
        for value in (value for _, _, line in first._lines() for _, value in first._decode(line)):
            kind, payload = _opened(value)
            item = payload.get("type")
            if not meta and (kind == "session_meta" or (value is payload and "id" in value)):
                meta = payload
            elif item == "user_message":
                has_events = True
            elif item in _CALLS or payload.get("role") == "assistant":
                has_events = False
            elif not cwd and payload.get("role") == "user":
                found = _CWD.search("\n".join(_texts(payload.get("content"))))
                cwd = found[1].strip() if found else ""
            if has_events is not None:
                break
        in_name = _FILE_ID.search(self.path.stem)
        name = _string(meta.get("id")) or (in_name[0] if in_name else self.path.stem)
        source, git = meta.get("source"), meta.get("git")
        is_agent = isinstance(source, dict) and "subagent" in source
        branch = _string(git.get("branch")) if isinstance(git, dict) else ""
        session = f"{anchors.safe(name)[:80]}@{NAME}"
        return _Head(session, _string(meta.get("cwd")) or cwd, branch, is_agent, has_events)


def _opened(value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    payload = value.get("payload")
    if isinstance(payload, dict):
        return _string(value.get("type")), payload
    return "response_item" if value.keys() & {"role", "call_id", "action"} else "", value


def _call(payload: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Return the name, the ID, and the input of a call."""
    call = _string(payload.get("call_id")) or _string(payload.get("id"))
    if payload.get("type") == "custom_tool_call":
        return _string(payload.get("name")), call, {"input": payload.get("input")}
    if payload.get("type") in ("local_shell_call", "web_search_call"):
        name = "local_shell" if payload["type"] == "local_shell_call" else "web_search"
        given = payload.get("action")
    else:
        named = _string(payload.get("name")) or _string(payload.get("type")).removesuffix("_call")
        space = _string(payload.get("namespace"))
        name = f"{space}{named}" if space.startswith("mcp__") else named
        given = payload.get("arguments")
    if isinstance(given, str):
        try:
            given = parse_json(given)
        except ValueError:  # cut, or not JSON at all
            given = {"input": given}
    return name, call, given if isinstance(given, dict) else {}


def _result(output: object) -> tuple[str, bool, str]:
    """Return what a tool printed, whether it failed, and the process that goes on running, or ""."""
    code: object = None
    if isinstance(output, str) and output.startswith("{") and '"metadata"' in output:
        try:
            output = parse_json(output)
        except ValueError:
            pass
    if isinstance(output, dict):
        metadata = output.get("metadata")
        code = metadata.get("exit_code") if isinstance(metadata, dict) else None
        code = 1 if output.get("success") is False else code
        output = output.get("output", output.get("content"))
    text = "\n".join(_texts(output))
    head = _OUTPUT.match(text)
    if head is None:
        return text, code not in (None, 0) or _FAILED.match(text) is not None, ""
    exited, running = _CODE.search(head[0]), _RUNNING.search(head[0])
    has_failed = code not in (None, 0) or (exited is not None and int(exited[1]) != 0)
    return text[head.end() :], has_failed, running[1] if running else ""


def _results(ids: Iterable[str], text: str, *, has_failed: bool = False) -> list[Block]:
    return [Block("tool_result", text, tool_id=one, is_error=has_failed) for one in ids]


def _texts(content: object) -> list[str]:
    if isinstance(content, str):
        return [clean(content)]
    parts = content if isinstance(content, list) else []
    texts = [_string(part.get("text")) for part in parts if isinstance(part, dict)]
    return [text for text in texts if text]


def _string(value: object) -> str:
    return clean(value) if isinstance(value, str) else ""
