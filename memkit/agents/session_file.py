"""The files of sessions: what the reader of each agent has in common.

An agent's folder has a subclass that yields `TranscriptEntry`. It streams, so a file of any size costs the
memory of its longest line. It counts and skips lines that it cannot use.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from memkit.conversation.entry import Hide, TranscriptEntry
from memkit.errors import TranscriptError
from memkit.files import open_regular
from memkit.state import parse_json

logger = logging.getLogger(__name__)

MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is counted and skipped; the largest ones seen (pasted images) are below 10 MB."""

_SALVAGE_BYTES = 16 * 1024 * 1024
"""Total bytes to read again in search of a whole object in a broken line."""

_SALVAGED = 1000
"""The most objects to take from either end of a broken line."""

_OPENED = re.compile(r"\s*\{")
_DECODER = json.JSONDecoder()
_OBJECT = re.compile(rb'\{"(?:parentUuid|type|uuid|sessionId|isSidechain|timestamp|message)"')


class Status(NamedTuple):
    """The size of a session in bytes, and when it was last changed (nanoseconds since the epoch)."""

    size: int
    modified: int


class SessionFile:
    """Iterates over the entries of one session from `offset` on: a byte, or any number that grows.

    Afterwards `counts` has the numbers of skipped lines (`broken`, `unfinished`, `unknown`, `odd`,
    `too long`), and `end` is the offset behind the last complete line. Raise `TranscriptError` if the file
    cannot be opened.
    """

    def __init__(self, path: Path, offset: int = 0, hide: Hide | None = None) -> None:
        self.path = path
        self.hide = hide
        self.offset = offset
        self.end = offset
        self.counts: Counter[str] = Counter()

    def __iter__(self) -> Iterator[TranscriptEntry]:
        entries = self._entries()
        return entries if self.hide is None else map(self.hide, entries)

    def _entries(self) -> Iterator[TranscriptEntry]:
        raise NotImplementedError

    @property
    def session(self) -> str:
        """The ID of the session, as its entries name it. Unique among agents."""
        return self.path.stem

    def status(self) -> Status:
        """Return the size of the session, and when it was last changed. Raise `OSError`."""
        found = os.stat(self.path)
        return Status(found.st_size, found.st_mtime_ns)

    def mentioned(self, name: str) -> bool:
        """Return whether an ID occurs before the offset."""
        return False

    def former_ids(self, session: str) -> dict[str, str]:
        """Return the IDs of the turns that a fork copied from a session, by the uuids of their entries."""
        return {}

    def agent_entries(self, agent: str) -> Iterable[TranscriptEntry]:
        """Return the entries of a sub-agent of this session. Raise `TranscriptError`."""
        return ()


class JsonLines(SessionFile):
    """A session as JSON lines, append-only, of any age and in any state."""

    continues: ClassVar[re.Pattern[bytes]] = re.compile(rb"(?!)")
    """Finds the kinds of entries, half of which continue a turn and do not begin one."""

    _gap = 0

    def mentioned(self, name: str) -> bool:
        """Return whether an ID occurs before the offset."""
        lines = type(self)(self.path)._lines() if self.offset and name else ()
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
            raise TranscriptError(f"cannot read the transcript {self.path}: {error.strerror}") from error
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
        """A client may leave out the newline between two objects, and a power cut leaves half of one."""
        text = line.decode("latin-1")  # a character for each byte
        found, end = list[tuple[int, Any]](), 0
        with suppress(ValueError, RecursionError):
            while len(found) < _SALVAGED and (begin := _OPENED.match(text, end)):
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
        if not self.continues.search(rest[:start]):
            self._gap += 1
        return found + [(end + place, value) for place, value in others]

    def _entry(self, value: dict[str, Any], start: int, end: int) -> TranscriptEntry | None:
        raise NotImplementedError


def _parsed(line: bytes) -> Any:
    return parse_json(line.decode("utf-8", "replace"))


def _objects_at_end(line: bytes) -> tuple[int, list[tuple[int, dict[str, Any]]]]:
    """Return where the whole objects at the end of a line begin, and these objects with their offsets."""
    left, end = _SALVAGE_BYTES, len(line)
    found: list[tuple[int, dict[str, Any]]] = []
    for match in reversed(list(_OBJECT.finditer(line, max(0, len(line) - _SALVAGE_BYTES)))):
        left -= end - match.start()
        if left < 0 or len(found) == _SALVAGED:
            break
        try:
            value = _parsed(line[match.start() : end])
        except ValueError:
            continue
        if isinstance(value, dict) and isinstance(value.get("type"), str):
            found.insert(0, (match.start(), value))
            end = match.start()
    return end, found
