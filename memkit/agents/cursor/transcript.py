"""Read a transcript of a Cursor agent: JSON lines with `role` and `message`, and one for the end of a turn.

It has the calls of tools, and not their results. Only prompts have a time, to the minute; in older files, not
even they.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

from memkit import anchors
from memkit.agents.cursor.tools import calls_of
from memkit.agents.fields import INTERRUPTED, fields, parsed, string
from memkit.agents.session_file import JsonLines
from memkit.conversation.entry import Block, TranscriptEntry
from memkit.conversation.values import cleaned, parse_time
from memkit.files import files_below, read_head

NAME = "cursor"
MOST_LOOKS = 2000
"""The most names to look at for the directory of a project."""

_FIRST_BYTES = re.compile(rb'\s*\{"role": ?"(?:user|assistant)", ?"message": ?\{')
_QUERY = re.compile(r"<user_query>\n?(.*?)\n?</user_query>", re.DOTALL)
_ADDED = re.compile(r"<([a-z][a-z_]{2,40})(?: [^<>\n]{0,200})?>.*?</\1>\s*", re.DOTALL)
_NOTICE = re.compile(r"\s*<system_notification>")
_REDACTED = re.compile(r"\s*\[REDACTED\]\s*\Z")
_WORKSPACE = re.compile(r"^Workspace Path: ([^\n]{1,4096})$", re.MULTILINE)
_TIME = re.compile(
    r"<timestamp>\w{3,9}, (\w{3}) (\d{1,2}), (\d{4}), (\d{1,2}):(\d\d) ([AP])M"
    r" \(UTC(?:([+-])(\d{1,2})(?::(\d\d))?)?\)</timestamp>"
)
_ISO_TIME = re.compile(r"<timestamp>(\d{4}-[^<\n]{1,40})</timestamp>")
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_UNSLUGGED = re.compile(r"[^A-Za-z0-9]+")


def transcripts() -> Iterator[str]:
    """Yield the transcripts on this machine, without those of sub-agents."""
    home = os.path.expanduser(os.environ.get("CURSOR_DATA_DIR") or "~/.cursor")
    for folder in glob.glob(os.path.join(glob.escape(home), "projects", "*", "agent-transcripts")):
        found = files_below(folder, "*.jsonl")
        yield from (path for path in found if "subagents" not in path.split(os.sep))


def is_transcript(path: Path, head: bytes) -> bool:
    """Return whether Cursor wrote a file, by its place or its first bytes."""
    return "agent-transcripts" in path.parts or _FIRST_BYTES.match(head) is not None


class Transcript(JsonLines):
    """A transcript. That of a sub-agent has no entries: nobody typed its prompts."""

    @property
    def session(self) -> str:
        """The ID of the session."""
        return f"{anchors.safe(self.path.stem)[:80]}@{NAME}"

    def _entry(self, value: dict[str, Any], start: int, end: int) -> TranscriptEntry | None:
        role, parts = value.get("role"), fields(value.get("message")).get("content")
        parts = [{"type": "text", "text": parts}] if isinstance(parts, str) else parts
        if self.path.parent.name == "subagents":
            return None
        more: dict[str, Any] = {}
        blocks: list[Block] = []
        time = None
        if value.get("type") == "turn_ended":
            if value.get("status") != "aborted" and "aborted" not in string(value.get("error")):
                return None
            more = {"typed": INTERRUPTED}
        elif role not in ("user", "assistant") or not isinstance(parts, list):
            self.counts["unknown"] += 1
            return None
        else:
            named = [(part, f"{start}.{place}") for place, part in enumerate(parts) if isinstance(part, dict)]
            blocks = [block for part, name in named for block in self._blocks(part, name)]
        if role == "user":
            said = "\n\n".join(block.text for block in blocks if block.kind == "text")
            images = sum(block.kind == "image" for block in blocks)
            time = time_in(said) or self._began
            typed = "\n\n".join([*filter(None, [typed_in(said)]), *["[image]"] * images])
            blocks = [block for block in blocks if block.kind == "tool_result"]
            if typed:
                blocks, more = [Block("text", typed), *blocks], {"typed": typed}
        if not blocks and not more:
            return None
        return TranscriptEntry(
            "assistant" if role == "assistant" else "user", tuple(blocks), str(start), self.session, time,
            start, end, cwd=self._cwd, gap=self._gap, **more,
        )  # fmt: skip

    def _blocks(self, part: dict[str, Any], place: str) -> Iterator[Block]:
        kind, tool = part.get("type"), string(part.get("id"))
        if kind == "text":
            if text := _REDACTED.sub("", string(part.get("text"))):
                yield Block("text", text)
        elif kind == "image":
            yield Block("image")
        elif kind == "tool_use":
            name = string(part.get("name"))
            calls = calls_of(name, part.get("input"), self._cwd)
            for number, given in enumerate(calls):
                own = f"{tool or place}#{number}" if number else tool or place
                yield Block("tool_use", tool_id=own, tool_name=name, tool_input=cleaned(given))
                if not tool:  # no result follows
                    yield Block("tool_result", tool_id=own)
        elif kind == "tool_result":
            said, tool = part.get("content"), string(part.get("tool_use_id"))
            parts = said if isinstance(said, list) else [{"text": said}]
            text = "\n".join(string(one.get("text")) for one in parts if isinstance(one, dict))
            yield Block("tool_result", text, tool_id=tool, is_error=part.get("is_error") is True)

    @cached_property
    def _began(self) -> datetime | None:
        """The time of prompts without one: when the file was made, as far as the system tells."""
        try:
            status, own = self.path.stat(), self.path.parent
            times = [status.st_mtime, getattr(status, "st_birthtime", status.st_mtime)]
            times += [own.stat().st_mtime] * (own.name == self.path.stem)
            return datetime.fromtimestamp(min(times), timezone.utc)
        except (OSError, ValueError, OverflowError):
            return None

    @cached_property
    def _cwd(self) -> str:
        """The directory, from a file next to the transcripts, the first prompt, or the folder's name."""
        folder = next((one for one in self.path.parents if one.parent.name == "projects"), None)
        found = [_trusted(folder / ".workspace-trusted")] if folder else []
        try:
            first = read_head(os.path.realpath(self.path), 20_000).decode("utf-8", "replace")
            found += _WORKSPACE.findall(first.replace("\\n", "\n"))
        except OSError:  # then it has no entries either
            pass
        found += [directory_named(folder.name)] if folder else []
        return next((one.strip() for one in found if os.path.isabs(one)), "")


def typed_in(text: str) -> str:
    """Return what the user typed, without what Cursor adds; "" for its own messages."""
    if _NOTICE.match(_TIME.sub("", text)):
        return ""
    found = _QUERY.findall(text)
    return "\n\n".join(found).strip() if found else _ADDED.sub("", text).strip()


def time_in(text: str) -> datetime | None:
    """Return the time in a prompt, as in `Tuesday, Sep 8, 2026, 1:56 PM (UTC-7)`."""
    if (iso := _ISO_TIME.search(text)) is not None:
        return parse_time(iso[1])
    found = _TIME.search(text)
    if found is None or found[1] not in _MONTHS:
        return None
    month, day, year, hour, minute, half, sign, hours, minutes = found.groups()
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0)) * (-1 if sign == "-" else 1)
    try:
        clock = int(hour) % 12 + 12 * (half == "P")
        zone = timezone(offset)
        said = datetime(int(year), _MONTHS.index(month) + 1, int(day), clock, int(minute), tzinfo=zone)
        return parse_time(said.isoformat())
    except ValueError:
        return None


def directory_named(slug: str) -> str:
    """Return the directory whose path makes `slug`; "" if there is none, or more than one."""
    left, found, pending = MOST_LOOKS, [], [("/", slug)]
    while pending and left > 0:
        directory, rest = pending.pop()
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    left -= 1
                    name = _UNSLUGGED.sub("-", entry.name).strip("-")
                    if not name or not f"{rest}-".startswith(f"{name}-") or not entry.is_dir():
                        continue
                    if rest == name:
                        found.append(entry.path)
                    elif not entry.is_symlink():
                        pending.append((entry.path, rest[len(name) + 1 :]))
        except OSError:
            continue
    return found[0] if len(found) == 1 else ""


def _trusted(path: Path) -> str:
    try:
        return string(parsed(read_head(str(path), 100_000)).get("workspacePath"))
    except OSError:
        return ""
