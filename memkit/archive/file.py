"""The archive file of one session. The only module that knows the format.

JSON lines in zstd frames with checksums; `zstd -dc` reads it. The first line has format, version, and
session; every other line is a turn. Each batch is appended as one frame. The next append cuts off an
unfinished frame; other damage is skipped up to the next whole frame. A turn that grew is appended again,
and its last line counts. Once replaced lines are more than half of the file, it is rewritten without them.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from memkit.archive.turn import ArchivedTurn
from memkit.conversation.values import parse_time
from memkit.errors import ArchiveError, ArchiveVersionError, NewerFileError
from memkit.files import PRIVATE_FILE, make_private_directory, sync_directory, sync_file, write_durably
from memkit.state import check_version, parse_json
from memkit.typed import typed

if TYPE_CHECKING:
    import zstandard

logger = logging.getLogger(__name__)

VERSION = 1
"""The format version. A file of a newer version is neither read nor written."""

_FORMAT = "memkit archive"
_MAGIC = b"\x28\xb5\x2f\xfd"  # begins a frame: RFC 8878, section 3.1.1
_ID = re.compile(rb'"id": ?("(?:[^"\\\n]|\\.)*")')  # inside a string, quotes have a backslash
_LEVEL = 9
_READ_BYTES = 64 * 1024


class _Line(NamedTuple):
    fingerprint: bytes
    length: int
    messages: int
    commit: str
    project: str
    is_command: bool
    machine: str


@dataclass(slots=True)
class _Content:
    """`end` is behind the last whole frame; `damaged` counts the bytes before it that are in none."""

    lines: dict[str, _Line] = field(default_factory=dict)
    end: int = 0
    damaged: int = 0
    length: int = 0


class ArchiveFile:
    """The file of one session, which need not exist. Its methods raise `ArchiveError`.

    Keeps the content from the last append in memory until another process writes to the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._content = _Content()
        self._state: tuple[int, ...] | None = None

    def append(self, session: str, turns: Iterable[ArchivedTurn]) -> int:
        """Append the turns that are new or changed. Return how many.

        A turn with fewer messages does not replace one with more: what a transcript has lost stays here. Nor
        does a command after `!` replace a prompt: if the transcript lost that prompt, it has its ID. Nor does
        a turn of another machine replace one of this or a third machine.
        Durable on return.
        """
        with self._writing():
            make_private_directory(str(self.path.parent))
            if self._state != self._present_state():
                self._content = self._scan(_read(self.path))
            content = self._content
            self._state = None  # unknown until the write is complete
            compressor = _compressor().compressobj()
            frame = [] if content.end else [compressor.compress(_header(session))]
            written = 0
            for turn in turns:
                known = content.lines.get(turn.id)
                if known is not None and turn.machine and turn.machine != known.machine:
                    continue
                if known is not None:
                    # Only live capture knows the commit. An import into a second project keeps the owner.
                    project = known.project or turn.project
                    turn = replace(turn, commit=turn.commit or known.commit, project=project)
                value = _turn_value(turn)
                line = _json_line(value)
                new = _described(line, value)
                if known is not None and (
                    known.fingerprint == new.fingerprint
                    or (new.is_command, known.messages) > (known.is_command, new.messages)
                ):
                    continue
                frame.append(compressor.compress(line))
                content.lines[turn.id] = new
                content.length += new.length
                written += 1
            if written:
                self._write(b"".join([*frame, compressor.flush()]))
            if written and 2 * sum(line.length for line in content.lines.values()) < content.length:
                self._compact(session)
            else:
                self._state = self._present_state()
            return written

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ArchiveError(f"cannot write the archive {self.path}: {error.strerror or error}") from error

    def _present_state(self) -> tuple[int, ...]:
        """Return size, modification time, and inode of the file; empty if there is none."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return ()
        return status.st_size, status.st_mtime_ns, status.st_ino

    def _write(self, frame: bytes) -> None:
        end = self._content.end
        present = self._present_state()
        if present and present[0] > end:
            torn = present[0] - end
            logger.warning("%s: cut off %d bytes of an unfinished write", self.path, torn)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, PRIVATE_FILE)
        with os.fdopen(descriptor, "wb") as file:
            file.truncate(end)
            file.seek(end)
            file.write(frame)
            file.flush()
            sync_file(file.fileno())
        if not present:
            sync_directory(str(self.path.parent))
        self._content.end += len(frame)

    def _compact(self, session: str) -> None:
        last: dict[str, dict[object, bytes]] = {}
        for turn, line, value in self._lines(_read(self.path)):
            versions = last.setdefault(turn, {})
            versions.pop(value.get("uuid"), None)  # the latest version stays behind the others
            versions[value.get("uuid")] = line
        self._replace(session, (line for versions in last.values() for line in versions.values()))

    def _replace(self, session: str, lines: Iterable[bytes]) -> None:
        data = _compressor().compress(b"".join([_header(session), *lines]))
        write_durably(str(self.path), data)

    def turns(self) -> list[ArchivedTurn]:
        """Return the latest version of each turn, in order of time."""
        last = {turn.id: turn for turn in self.versions()}
        return sorted(last.values(), key=lambda turn: turn.time.timestamp() if turn.time else 0.0)

    def versions(self) -> Iterator[ArchivedTurn]:
        """Yield every line that is a turn, including replaced ones."""
        for turn, _, value in self._lines(_read(self.path)):
            try:
                yield typed(value, ArchivedTurn)
            except msgspec.ValidationError as error:
                logger.warning("%s: turn %s cannot be read: %s", self.path, turn, error)

    def damaged(self) -> int:
        """Return how many bytes are in no whole frame, including the end of the file.

        While another process writes, the end of its write counts too.
        """
        data = _read(self.path)
        content = self._scan(data)
        return content.damaged + len(data) - content.end

    def drop_damage(self, session: str) -> None:
        """Rewrite the file without unreadable bytes, if the last `append` found any."""
        if not self._state or self._state != self._present_state():
            return  # another process wrote it, so its content is unknown
        if self._content.damaged or self._state[0] > self._content.end:
            with self._writing():
                self._compact(session)

    def rewrite(self, change: Callable[[ArchivedTurn], ArchivedTurn | None]) -> None:
        """Rewrite the file with each turn as `change` returns it, without replaced lines.

        A turn for which `change` returns None is dropped. If no turn is left, the file is removed. After an
        error, it is unchanged.
        """
        changed = [made for turn in self.turns() if (made := change(turn)) is not None]
        with self._writing():
            if changed:
                self._replace(self.session(), (_json_line(_turn_value(turn)) for turn in changed))
            else:
                self.path.unlink(missing_ok=True)
                sync_directory(str(self.path.parent))

    def session(self) -> str:
        """Return the session named in the first line."""
        for _, _, text in _frames(_read(self.path)):
            header = _decode(text.partition(b"\n")[0])
            if header.get("format") == _FORMAT:
                self._check_version(header)
                return str(header.get("session"))
            break
        raise ArchiveError(
            f"the archive {self.path} is damaged at its start, so its session is unknown; "
            "restore it from a backup"
        )

    def last_time(self) -> float | None:
        """Return when the last turn ended, in seconds since the epoch, or None if no turn has a time."""
        times = [
            said.timestamp()
            for _, _, value in self._lines(_read(self.path))
            if (said := parse_time(value.get("finished") or value.get("time")))
        ]
        return max(times, default=None)

    def _scan(self, data: bytes) -> _Content:
        content = _Content()
        for turn, line, value in self._lines(data, content):
            content.lines[turn] = _described(line, value)
            content.length += len(line)
        return content

    def _lines(
        self, data: bytes, content: _Content | None = None
    ) -> Iterator[tuple[str, bytes, dict[str, Any]]]:
        """Yield ID, line, and value of each turn; fill `content`. Raise `ArchiveVersionError`."""
        content = content or _Content()
        for start, end, text in _frames(data):
            content.damaged += start - content.end
            content.end = end
            for line in text.splitlines(keepends=True):
                value = _decode(line)
                if value.get("format") == _FORMAT:
                    self._check_version(value)
                elif isinstance(value.get("id"), str) and isinstance(value.get("messages"), list):
                    yield value["id"], line, value
                else:
                    logger.warning("%s: skipped a line that is not a turn", self.path)
        if content.damaged:
            logger.warning("%s: skipped %d damaged bytes", self.path, content.damaged)

    def _check_version(self, header: dict[str, Any]) -> None:
        try:
            check_version(self.path, header, VERSION)
        except NewerFileError as error:
            raise ArchiveVersionError(str(error)) from error


def turn_ids(path: str) -> frozenset[str]:
    """Return the IDs of all turns in an archive file, and perhaps others; empty if there is no file.

    This is far faster than reading the turns. Raise `ArchiveError`.
    """
    found: set[str] = set()
    for _, _, text in _frames(_read(path)):
        found.update(map(_decoded, _ID.findall(text)))
    return frozenset(found)


def _read(path: str | Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise ArchiveError(f"cannot read the archive {path}: {error.strerror}") from error


def _compressor() -> zstandard.ZstdCompressor:
    import zstandard  # 10 ms; only readers and writers of an archive need it

    return zstandard.ZstdCompressor(_LEVEL, write_checksum=True)


def _frames(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield the whole frames in `data`: start, end, and content."""
    import zstandard

    decompressor = zstandard.ZstdDecompressor()
    view = memoryview(data)
    start = 0
    while (start := data.find(_MAGIC, start)) >= 0:
        frame = decompressor.decompressobj()
        end = start
        parts = []
        try:
            # In pieces, because the decompressor copies what follows the frame.
            while not frame.eof and end < len(data):
                piece = view[end : end + _READ_BYTES]
                parts.append(frame.decompress(piece))
                end += len(piece)
        except zstandard.ZstdError:
            pass
        if not frame.eof:
            start += 1
            continue
        end -= len(frame.unused_data)
        yield start, end, b"".join(parts)
        start = end


def _header(session: str) -> bytes:
    return _json_line({"format": _FORMAT, "version": VERSION, "session": session})


def _turn_value(turn: ArchivedTurn) -> dict[str, Any]:
    value: dict[str, Any] = msgspec.to_builtins(turn)
    for name in ("commit", "machine"):
        if not value[name]:
            del value[name]
    return value


def _described(line: bytes, value: dict[str, Any]) -> _Line:
    messages = value["messages"]
    first = messages[0] if messages and isinstance(messages[0], dict) else {}
    is_command = str(first.get("text", "")).startswith("! ")
    commit, project, machine = (str(value.get(name, "")) for name in ("commit", "project", "machine"))
    mark = hashlib.blake2b(line, digest_size=16).digest()
    return _Line(mark, len(line), len(messages), commit, project, is_command, machine)


def _json_line(value: dict[str, Any]) -> bytes:
    # Not msgspec's JSON, which refuses integers of more than 64 bits: a tool's input may contain them.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"


def _decoded(text: bytes) -> str:
    if b"\\" not in text:
        return text[1:-1].decode("utf-8", "replace")
    try:
        return str(parse_json(text))
    except ValueError:  # in a line that is not JSON, and so no turn
        return ""


def _decode(line: bytes) -> dict[str, Any]:
    try:
        value = parse_json(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
