"""Read a session of OpenCode: messages with parts. A part of type `tool` has the call and its result."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timezone
from functools import cached_property
from typing import Any, Literal

from memkit import anchors
from memkit.agents.fields import INTERRUPTED, Fields, fields, string
from memkit.agents.opencode.stores import ROW_BYTES, SESSION_ID, Stored, stored_at
from memkit.agents.opencode.tools import has_failed, inputs_of
from memkit.agents.session_file import SessionFile, Status
from memkit.conversation.entry import Block, TranscriptEntry
from memkit.conversation.values import cleaned, parse_time
from memkit.errors import TranscriptError

NAME = "opencode"
MOST_TIME = 10**14
"""In milliseconds since the epoch, in the year 5138."""


class OpenCodeSession(SessionFile):
    """One session. That of a sub-agent has no entries of its own: nobody typed its prompts."""

    @cached_property
    def _stored(self) -> Stored:
        return stored_at(self.path)

    @cached_property
    def session(self) -> str:
        """The ID of the session."""
        own = string(self._stored.info.get("id"))
        return f"{own if SESSION_ID.fullmatch(own) else anchors.safe(self.path.stem)[:80]}@{NAME}"

    def status(self) -> Status:
        """Return the size of the session, and when it was last changed. Raise `OSError`."""
        if self.path.parent.suffix != ".db":
            return super().status()
        try:
            updated = self._stored.info.get("time_updated")
        except TranscriptError as error:
            raise OSError(str(error)) from error
        if not isinstance(updated, int):
            raise FileNotFoundError(f"no session {self.path}")
        return Status(self._stored.rows * ROW_BYTES, updated * 1_000_000 if 0 < updated < MOST_TIME else 0)

    def agent_entries(self, agent: str) -> Iterable[TranscriptEntry]:
        """Return the entries of the session of a sub-agent."""
        path = self.path.parent / f"{agent}{self.path.suffix}"
        is_there = SESSION_ID.fullmatch(agent) and (path.parent.is_file() or path.is_file())
        entries = type(self)(path).all_entries() if is_there and path != self.path else ()
        return entries if self.hide is None else map(self.hide, entries)

    def _entries(self) -> Iterator[TranscriptEntry]:
        return iter(()) if self._stored.info.get("parentID") else self.all_entries()

    def all_entries(self) -> Iterator[TranscriptEntry]:
        """Yield the entries, also those of a sub-agent."""
        stored = self._stored
        first = bisect_left(stored.starts, -(-self.offset // ROW_BYTES))
        for place in range(first, len(stored.starts)):
            number, count = stored.starts[place], stored.parts[place]
            info, parts = stored.load(place)
            if info.get("role") == "user":
                yield from self._prompt(info, parts, number)
            elif info.get("role") == "assistant":
                yield from self._answer(info, parts[:count], number)
        with suppress(OSError):
            self.end = max(self.offset, self.status().size)

    def _prompt(self, info: Fields, parts: list[Fields], number: int) -> Iterator[TranscriptEntry]:
        said = []
        for part in parts:
            if part.get("type") == "subtask":  # a command; what was typed after its name is lost
                said.append(f"/{string(part.get('command'))}".rstrip("/") or string(part.get("prompt")))
            elif _is_text(part):
                said.append(string(part.get("text")).strip())
            elif part.get("type") == "file" and string(part.get("mime")).startswith("image/"):
                said.append("[image]")
        if typed := "\n\n".join(filter(None, said)):
            own = string(info.get("id"))
            uuid = own if own.startswith("msg_") else ""  # else a program has hidden it
            yield self._made("user", [Block("text", typed)], info, number, typed=typed, uuid=uuid)

    def _answer(self, info: Fields, parts: list[Fields], number: int) -> Iterator[TranscriptEntry]:
        if info.get("summary") is True:
            summary = "\n\n".join(string(part.get("text")) for part in parts if _is_text(part)).strip()
            yield self._made("user", [], info, number, is_compact_summary=True, summary=summary)
            return
        for place, part in enumerate(parts, number + 1):
            if part.get("type") == "tool":
                yield from self._call(info, part, place)
            elif _is_text(part):
                blocks = [Block("text", string(part.get("text")))]
                yield self._made("assistant", blocks, info, place, time=part.get("time"))
        if fields(info.get("error")).get("name") == "MessageAbortedError":
            blocks = [Block("text", INTERRUPTED)]
            yield self._made("user", blocks, info, number + len(parts), 2, typed=INTERRUPTED)

    def _call(self, info: Fields, part: Fields, place: int) -> Iterator[TranscriptEntry]:
        name, state = string(part.get("tool")), fields(part.get("state"))
        if state.get("status") == "pending":  # its input is still being written
            return
        inputs = inputs_of(name, fields(state.get("input")), self._cwd(info))
        ids = [f"{self.session}:{place}#{one}" for one in range(len(inputs))]
        pairs = zip(ids, inputs, strict=True)
        uses = [Block("tool_use", "", one, name, cleaned(given)) for one, given in pairs]
        yield self._made("assistant", uses, info, place, time=state.get("time"))
        if state.get("status") in ("completed", "error"):
            text, failed = string(state.get("output")) or string(state.get("error")), has_failed(state)
            results = [Block("tool_result", text, tool_id=one, is_error=failed) for one in ids]
            agent = string(fields(state.get("metadata")).get("sessionId")) if name == "task" else ""
            ended = {"start": fields(state.get("time")).get("end")}
            yield self._made("user", results, info, place, 1, time=ended, agent=agent)

    def _cwd(self, info: Fields) -> str:
        return string(fields(info.get("path")).get("cwd")) or string(self._stored.info.get("directory"))

    def _made(
        self, role: Literal["user", "assistant"], blocks: list[Block], info: Fields, number: int,
        step: int = 0, *, time: object = None, uuid: str = "", **more: Any,
    ) -> TranscriptEntry:  # fmt: skip
        start, end = number * ROW_BYTES, (number + 1) * ROW_BYTES
        when = _time(fields(time).get("start")) or _time(fields(info.get("time")).get("created"))
        return TranscriptEntry(
            role, tuple(blocks), uuid, self.session, when, start + step, end, cwd=self._cwd(info), **more
        )


def _is_text(part: Fields) -> bool:
    """Return whether a part is text of the person or the model, not of the client."""
    is_hidden = part.get("synthetic") or part.get("ignored")
    return part.get("type") == "text" and not is_hidden and bool(string(part.get("text")).strip())


def _time(value: object) -> datetime | None:
    if isinstance(value, (int, float)) and 0 < value < MOST_TIME:
        value = datetime.fromtimestamp(value / 1000, timezone.utc).isoformat()
    return parse_time(value)
