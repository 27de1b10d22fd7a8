"""Parse Claude Code's transcripts: one JSON object a line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from memkit.agents.claude_code.typed import summary_text, typed_text
from memkit.agents.session_file import JsonLines
from memkit.agents.tools import SHELL
from memkit.agents.turns import read_turns
from memkit.conversation.entry import Block, TranscriptEntry
from memkit.conversation.values import clean, cleaned, parse_time
from memkit.paths import is_plain_name
from memkit.privacy.redact import without_private

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

class Transcript(JsonLines):
    """The transcript of one session. It is named for the session's ID."""

    continues = _CONTINUES

    def former_ids(self, session: str) -> dict[str, str]:
        """Return the IDs of the turns that a fork copied from a session, by the uuids of their entries."""
        beside = self.path.with_name(f"{session}.jsonl")
        if not is_plain_name(session) or not beside.is_file():  # the name comes from outside
            return {}
        return {turn.uuid: turn.id for turn in read_turns(Transcript(beside), follows_forks=False)}

    def agent_entries(self, agent: str) -> Iterable[TranscriptEntry]:
        """Return the entries of a sub-agent. They are in `<session>/subagents/agent-<id>.jsonl`."""
        path = self.path.with_suffix("") / "subagents" / f"agent-{agent}.jsonl"
        if not is_plain_name(agent) or not path.is_file():  # the name comes from outside
            return ()
        return Transcript(path, hide=self.hide)

    def _entries(self) -> Iterator[TranscriptEntry]:
        for entry in super()._entries():
            if entry.role == "user":
                yield replace(entry, typed=typed_text(entry), summary=summary_text(entry))
            else:
                yield entry

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
