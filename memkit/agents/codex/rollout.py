"""Read a rollout of Codex: JSON lines with `timestamp`, `type`, and `payload`.

A `response_item` is what the model saw or said. An `event_msg` is what the client showed; the one about a
prompt has it without what Codex adds for the model: a `user_message`, or since 0.171 an `item_completed`
with a `UserMessage`. Before August 2025, a line was a response item itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from memkit import anchors
from memkit.agents.codex.tools import command_of, patch_in
from memkit.agents.fields import INTERRUPTED, UUID, fields, objects, parsed, string, texts
from memkit.agents.patches import PATCH, edits_of
from memkit.agents.session_file import JsonLines
from memkit.conversation.entry import Block, Hide, TranscriptEntry
from memkit.conversation.values import cleaned, parse_time
from memkit.files import files_below
from memkit.hook.codex import NAME

Role = Literal["user", "assistant"]
HEAD_LINES = 200
"""How many lines to look through for what holds for the whole session."""

HELD_CHARACTERS = 1_000_000
"""The most output kept of a command that goes on running."""

_FIRST_LINE = re.compile(rb'\{[^{}]{0,200}"type": ?"session_meta"')
_FILE_ID = re.compile(UUID.pattern + r"\Z")
_CWD = re.compile(r"<cwd>([^<\n]{1,4096})</cwd>")
_INJECTED = re.compile(
    r"\s*(?:# AGENTS\.md instructions\b|<(?:environment_context|user_instructions|turn_aborted|skill"
    r"|user_shell_command|subagent_notification|permissions instructions)\b)"
)
_IDE_CONTEXT, _IDE_REQUEST = "# Context from my IDE setup:", "## My request for Codex:"
_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)", re.MULTILINE)
_RUNNING = re.compile(r"^Process running with session ID (\d+)", re.MULTILINE)
_OUTPUT = re.compile(r"(?:[A-Z]\w[^\n]{1,120}\n){1,8}Output:\n?")
_FAILED = re.compile(
    r"(?:apply_patch verification|exec_command|write_stdin|exec|sandbox) (?:failed|error)|execution error"
    r"|aborted by user|failed to |unsupported call|err(?:or)?:",
    re.IGNORECASE,
)
_CALLS = frozenset("function_call custom_tool_call local_shell_call web_search_call tool_search_call".split())
_OUTPUTS = frozenset("function_call_output custom_tool_call_output tool_search_output".split())


def codex_home() -> str:
    """Return the path of Codex's own directory."""
    return os.path.abspath(os.path.expanduser(os.environ.get("CODEX_HOME") or "~/.codex"))


def rollouts() -> Iterator[str]:
    """Yield `rollout-TIME-ID.jsonl` of all sessions on this machine, also of archived ones."""
    for folder in ("sessions", "archived_sessions"):
        yield from files_below(os.path.join(codex_home(), folder), "rollout-*.jsonl")


def is_rollout(path: Path, head: bytes) -> bool:
    """Return whether a file has the name of a rollout, or begins like one."""
    return path.name.startswith("rollout-") or _FIRST_LINE.match(head) is not None


class _Head(NamedTuple):
    """What the first lines tell. `event`: the type of the events that tell the prompts, "" if none do; None
    if unknown.
    """

    session: str
    cwd: str
    branch: str
    is_agent: bool
    event: str | None


class Rollout(JsonLines):
    """The rollout of one session. That of a sub-agent has no entries: nobody typed its prompts.

    A turn begins with the lines that tell its ID and directory, before its prompt. Nothing that is known from
    earlier lines goes into it, so that reading from there gives the same turn.
    """

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
        kind, payload = _opened(value)
        role: Role = "user"
        blocks: list[Block] = []
        more: dict[str, Any] = {}
        if self._head.is_agent:
            return None
        if kind == "turn_context" or payload.get("type") in ("task_started", "turn_started"):
            self._read_context(payload, start)
            return None
        if kind == "compacted":
            more = {"is_compact_summary": True, "summary": string(payload.get("message")).strip()}
        elif (typed := self._typed(kind, payload)) is not None:
            blocks, more = [Block("text", typed)], {"typed": typed}
            start = self._begin(start) if typed != INTERRUPTED else start
        elif kind in ("event_msg", "response_item"):
            role, blocks = self._blocks(payload)
            if not blocks:
                return None
            self._context_start = -1
            more = {"is_narration": payload.get("phase") == "commentary"}
        else:
            if kind not in ("session_meta", "world_state", "token_usage_record") and value is not payload:
                self.counts["unknown"] += 1
            return None
        return TranscriptEntry(
            role, tuple(blocks), "", self._head.session, parse_time(value.get("timestamp")), start, end,
            prompt_id=self._turn, cwd=self._cwd or self._head.cwd, branch=self._head.branch, gap=self._gap,
            **more,
        )  # fmt: skip

    def _read_context(self, payload: dict[str, Any], start: int) -> None:
        if self._context_start < 0:
            self._context_start, self._turn, self._cwd = start, "", ""
        self._turn = string(payload.get("turn_id")) or self._turn
        self._cwd = string(payload.get("cwd")) or self._cwd

    def _begin(self, start: int) -> int:
        """Begin a turn, unless the prompt goes on with the current one. Return where it begins."""
        if self._context_start >= 0:
            start = self._context_start
        elif not self._turn:
            self._cwd = ""
        if not self._turn or self._turn != self._prompted:
            for held in (self._calls, self._polls, self._running):
                held.clear()
        self._prompted, self._context_start = self._turn, -1
        return start

    def _typed(self, kind: str, payload: dict[str, Any]) -> str | None:
        item, text, images = payload.get("type"), "", 0
        if kind == "event_msg" and item == "turn_aborted" and payload.get("reason") == "interrupted":
            return INTERRUPTED
        if kind == "event_msg" and _tells_prompt(payload) and self._head.event in (None, item):
            parts = objects(fields(payload.get("item")).get("content"))
            shown = (payload.get(name) for name in ("images", "local_images"))
            images = sum("image" in string(one.get("type")) for one in parts)
            images += sum(len(one) for one in shown if isinstance(one, list))
            text = "\n\n".join(texts(parts)) or string(payload.get("message"))
        elif kind == "response_item" and payload.get("role") == "user" and self._head.event == "":
            text = "\n\n".join(one for one in texts(payload.get("content")) if not _INJECTED.match(one))
        if text.startswith(_IDE_CONTEXT) and _IDE_REQUEST in text:
            text = text.partition(_IDE_REQUEST)[2]
        return "\n\n".join([*filter(None, [text.strip()]), *["[image]"] * images]) or None

    def _blocks(self, payload: dict[str, Any]) -> tuple[Role, list[Block]]:
        item = string(payload.get("type")) or "message" * ("role" in payload)
        if item == "message" and payload.get("role") == "assistant":
            return "assistant", [Block("text", text) for text in texts(payload.get("content"))]
        if item in _CALLS:
            return "assistant", list(self._call_blocks(payload))
        if item in _OUTPUTS:
            return "user", self._output_blocks(payload)
        if item in ("task_complete", "turn_complete"):
            left = [block for ids, text in self._running.values() for block in _results(ids, text)]
            self._running.clear()
            return "user", left
        return "user", []

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
        call = string(payload.get("call_id"))
        process = self._polls.pop(call, None)
        text, has_failed, running = _result(payload.get("output"))
        ids, before = self._calls.pop(call, [call]), ""
        if process is not None:
            ids, before = self._running.pop(process, ([], ""))
        text = f"{before}{text}"[-HELD_CHARACTERS:]
        if running and ids:
            self._running[running] = ids, text
            return []
        return _results(ids, text, has_failed=has_failed)

    @cached_property
    def _head(self) -> _Head:
        meta: dict[str, Any] = {}
        cwd, event = "", None
        first = JsonLines(self.path)
        lines = islice(first._lines(), HEAD_LINES)
        for value in (value for _, _, line in lines for _, value in first._decode(line)):
            kind, payload = _opened(value)
            item, role = string(payload.get("type")), payload.get("role")
            if not meta and (kind == "session_meta" or (value is payload and "id" in value)):
                meta = payload
            elif _tells_prompt(payload) or item in _CALLS or role == "assistant":
                event = item if _tells_prompt(payload) else ""
                break
            elif not cwd and role == "user":
                found = _CWD.search("\n".join(texts(payload.get("content"))))
                cwd = found[1].strip() if found else ""
        in_name = _FILE_ID.search(self.path.stem)
        name = string(meta.get("id")) or (in_name[0] if in_name else self.path.stem)
        is_agent = "subagent" in fields(meta.get("source"))
        branch = string(fields(meta.get("git")).get("branch"))
        session = f"{anchors.safe(name)[:80]}@{NAME}"
        return _Head(session, string(meta.get("cwd")) or cwd, branch, is_agent, event)


def _opened(value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    payload = value.get("payload")
    if isinstance(payload, dict):
        return string(value.get("type")), payload
    return "response_item" if value.keys() & {"role", "call_id", "action"} else "", value


def _tells_prompt(payload: dict[str, Any]) -> bool:
    if payload.get("type") == "item_completed":
        return fields(payload.get("item")).get("type") == "UserMessage"
    return payload.get("type") == "user_message"


def _call(payload: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Return the name, the ID, and the input of a call."""
    call = string(payload.get("call_id")) or string(payload.get("id"))
    if payload.get("type") == "custom_tool_call":
        return string(payload.get("name")), call, {"input": payload.get("input")}
    if payload.get("type") in ("local_shell_call", "web_search_call"):
        name = "local_shell" if payload["type"] == "local_shell_call" else "web_search"
        given = payload.get("action")
    else:
        named = string(payload.get("name")) or string(payload.get("type")).removesuffix("_call")
        space = string(payload.get("namespace"))
        name = f"{space}{named}" if space.startswith("mcp__") else named
        given = payload.get("arguments")
    if isinstance(given, str) and given != "{}":
        given = parsed(given) or {"input": given}  # cut, or not JSON at all
    return name, call, fields(given)


def _result(output: object) -> tuple[str, bool, str]:
    """Return what a tool printed, whether it failed, and the process that goes on running, or ""."""
    code: object = None
    if isinstance(output, str) and output.startswith("{") and '"metadata"' in output:
        output = parsed(output) or output
    if isinstance(output, dict):
        code = fields(output.get("metadata")).get("exit_code")
        code = 1 if output.get("success") is False else code
        output = output.get("output", output.get("content"))
    text = "\n".join(texts(output))
    head = _OUTPUT.match(text)
    if head is None:
        return text, code not in (None, 0) or _FAILED.match(text) is not None, ""
    exited, running = _CODE.search(head[0]), _RUNNING.search(head[0])
    has_failed = code not in (None, 0) or (exited is not None and int(exited[1]) != 0)
    return text[head.end() :], has_failed, running[1] if running else ""


def _results(ids: Iterable[str], text: str, *, has_failed: bool = False) -> list[Block]:
    return [Block("tool_result", text, tool_id=one, is_error=has_failed) for one in ids]
