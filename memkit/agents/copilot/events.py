"""Read the events of a Copilot CLI session: JSON lines with `type`, `data`, `id`, and `timestamp`.

`user.message` has in `content` what the person typed; `transformedContent` adds what the client tells the
model. Calls and their results are `tool.execution_start` and `tool.execution_complete`.
"""

from __future__ import annotations

import functools
import glob
import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from memkit import anchors
from memkit.agents.copilot.tools import POLLS, calls_of
from memkit.agents.fields import INTERRUPTED, UUID, Fields, fields, objects, string
from memkit.agents.session_file import JsonLines
from memkit.conversation.entry import Block, Hide, TranscriptEntry
from memkit.conversation.values import cleaned, parse_time

NAME = "copilot"
HEAD_LINES = 50
"""How many lines to look through for the start of a session."""

MAX_PREFIX = 400
"""How many bytes of a line to look through for its type, which comes first."""

_START = "session.start"
_FIRST_LINE = re.compile(rb'\{"type": ?"session\.start", ?"data": ?\{"sessionId"')
_CONTEXT = re.compile(rb'"type": ?"session\.(?:start|resume|context_changed)"')
_KNOWN = frozenset(
    "abort assistant auto_mode_switch capabilities command commands elicitation exit_plan_mode external_tool"
    " factory hook mcp model pending_messages permission sampling session skill subagent system tool user"
    " user_input".split()
)
_SHELL = re.compile(r"<(?:command with )?(?:shellId|sessionId|id): ?([\w-]{1,64})\b[^<>]{0,400}>\s*\Z")
_EXITED = re.compile(r"\s*<[^<>\n]{0,200}\bexit code (-?\d{1,9})>\s*\Z")
_IMAGE = re.compile(r"\.(?:png|jpe?g|gif|webp|bmp)\Z", re.IGNORECASE)


def event_files() -> list[str]:
    """Return `session-state/ID/events.jsonl` of all sessions; older versions had no folder for each."""
    home = os.path.expanduser(os.environ.get("COPILOT_HOME") or "~/.copilot")
    folder = os.path.join(glob.escape(home), "session-state")
    return glob.glob(os.path.join(folder, "*", "events.jsonl")) + glob.glob(os.path.join(folder, "*.jsonl"))


def is_event_file(path: Path, head: bytes) -> bool:
    """Return whether a file is where Copilot puts its sessions, or begins like one."""
    in_folder = path.name == "events.jsonl" and path.parent.parent.name == "session-state"
    in_folder |= path.suffix == ".jsonl" and path.parent.name == "session-state"
    return in_folder or _FIRST_LINE.match(head) is not None


@functools.lru_cache(1)  # the archive reads a session again for each turn
def _all_contexts(path: Path, size: int, modified: int) -> list[tuple[int, Fields]]:
    return list(Events(path)._contexts())


class Events(JsonLines):
    """The events of one session. A prompt begins a turn; only the directory comes from earlier lines."""

    continues = re.compile(rb'"type": ?"(?!user\.message)')

    def __init__(self, path: Path, offset: int = 0, hide: Hide | None = None) -> None:
        super().__init__(path, offset, hide)
        self._cwd = self._branch = ""
        self._commands: dict[str, str] = {}  # those of this turn, by the ID of the call
        self._shells: dict[str, str] = {}  # and by the ID of the shell that runs them
        self._calls: dict[str, list[str]] = {}  # the IDs of the blocks of each call without a result

    @cached_property
    def session(self) -> str:
        """The ID of the session."""
        events = self._contexts(HEAD_LINES)
        own = (value["data"].get("sessionId") for _, value in events if value.get("type") == _START)
        in_folder = self.path.parent.name if self.path.stem == "events" else self.path.stem
        name = next(filter(None, map(string, own)), in_folder)
        return f"{anchors.safe(name)[:80]}@{NAME}"

    def _contexts(self, most: int = sys.maxsize) -> Iterator[tuple[int, Fields]]:
        """Yield the events about the session and its directory in the first lines, with their offsets."""
        first = type(self)(self.path)
        for start, _, line in islice(first._lines(), most):
            if _CONTEXT.search(line[:MAX_PREFIX]):
                for _, value in first._decode(line):
                    if isinstance(value.get("data"), dict):
                        yield start, value

    def _entries(self) -> Iterator[TranscriptEntry]:
        for start, value in _all_contexts(self.path, *self.status()) if self.offset else ():
            if start < self.offset:
                self._take_context(value["data"])
        yield from super()._entries()

    def _take_context(self, data: Fields) -> None:
        context = fields(data.get("context")) or data
        self._cwd = string(context.get("cwd")) or self._cwd
        self._branch = string(context.get("branch"))

    def _entry(self, value: Fields, start: int, end: int) -> TranscriptEntry | None:
        kind, data = string(value.get("type")), fields(value.get("data"))
        by_agent = bool(value.get("agentId") or data.get("parentToolCallId"))
        if kind in (_START, "session.resume", "session.context_changed"):
            self._take_context(data)
        elif kind == "user.message":
            typed = _typed(data)
            if by_agent or not typed:
                return None
            is_steering = data.get("delivery") == "steering"
            if not is_steering:
                for held in (self._commands, self._shells, self._calls):
                    held.clear()
            blocks = [Block("text", typed)]
            return self._made("user", blocks, value, start, end, typed=typed, queued=is_steering)
        elif kind == "abort":
            blocks = [Block("text", INTERRUPTED)]
            return self._made("user", blocks, value, start, end, typed=INTERRUPTED)
        elif kind == "assistant.message":
            said = string(data.get("content"))
            is_narration = bool(data.get("toolRequests"))
            if said.strip():
                blocks = [Block("text", said)]
                return self._made("assistant", blocks, value, start, end, by_agent, is_narration=is_narration)
        elif kind == "tool.execution_start":
            return self._made("assistant", self._call(data), value, start, end, by_agent)
        elif kind == "tool.execution_complete":
            return self._made("user", self._result(data), value, start, end, by_agent)
        elif kind == "session.compaction_complete":
            summary = string(data.get("summaryContent")).strip()
            if data.get("success") is not False:
                return self._made("user", (), value, start, end, is_compact_summary=True, summary=summary)
        elif kind.partition(".")[0] not in _KNOWN:
            self.counts["unknown"] += 1
        return None

    def _call(self, data: Fields) -> list[Block]:
        call, name = string(data.get("toolCallId")), string(data.get("toolName"))
        name, inputs = calls_of(name, data.get("arguments"), self._cwd)
        shell = str(inputs[0].get("shellId", inputs[0].get("sessionId", "")))[:64]
        if name in POLLS and shell in self._shells:  # the command may end now
            inputs = [{"command": self._shells[shell]} | inputs[0]]
        elif isinstance(command := inputs[0].get("command"), str):
            self._commands[call] = command
        ids = [f"{call}#{number}" if number else call for number in range(len(inputs))]
        self._calls[call] = ids
        pairs = zip(ids, inputs, strict=True)
        return [Block("tool_use", "", one, name, cleaned(given)) for one, given in pairs]

    def _result(self, data: Fields) -> list[Block]:
        call = string(data.get("toolCallId"))
        text = _text(data.get("result")) or _text(data.get("error"))
        shell, exited = _SHELL.search(text[-1000:]), _EXITED.search(text[-1000:])
        if call in self._commands and shell:
            self._shells[shell[1]] = self._commands.pop(call)
        code = fields(fields(data.get("toolTelemetry")).get("metrics")).get("exit_code")
        if exited:
            code, text = int(exited[1]), text[: len(text) - len(exited[0])]
        has_failed = data.get("success") is False or code not in (None, 0)
        ids = self._calls.pop(call, [call])
        return [Block("tool_result", text, tool_id=one, is_error=has_failed) for one in ids]

    def _made(
        self, role: Literal["user", "assistant"], blocks: Iterable[Block], value: Fields, start: int,
        end: int, by_agent: bool = False, **more: Any,
    ) -> TranscriptEntry:  # fmt: skip
        uuid, prompt = string(value.get("id")), string(fields(value.get("data")).get("interactionId"))
        return TranscriptEntry(
            role, tuple(blocks), uuid if UUID.fullmatch(uuid) else "", self.session,
            parse_time(value.get("timestamp")), start, end, prompt_id=prompt, cwd=self._cwd,
            branch=self._branch, is_sidechain=by_agent, is_progress=by_agent, gap=self._gap, **more,
        )  # fmt: skip


def _typed(data: Fields) -> str:
    """Return what a person typed; "" for what a skill or the client itself has sent."""
    if data.get("source") not in (None, "", "user"):
        return ""
    images = list(filter(_is_image, objects(data.get("attachments"))))
    return "\n\n".join([*filter(None, [string(data.get("content")).strip()]), *["[image]"] * len(images)])


def _is_image(attachment: Fields) -> bool:
    kind = string(attachment.get("mimeType")).startswith("image/")
    return kind or _IMAGE.search(string(attachment.get("path"))[-10:]) is not None


def _text(result: object) -> str:
    """Return what a tool printed, or the message of its error."""
    given = fields(result)
    return string(result) or string(given.get("content")) or string(given.get("message"))
