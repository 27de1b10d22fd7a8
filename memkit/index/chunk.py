"""Chunks, the unit of recall: pieces of Markdown files, and how a snapshot holds them.

It needs the standard library alone, for commands that show text and rank nothing: importing numpy and the
BM25 index takes 0.14 s of processor time, which is most of the time of such a command.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import mmap
import re
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from memkit.errors import (
    AmbiguousIdError,
    ForeignSnapshotError,
    NotFoundError,
    StaleSnapshotError,
    raise_if_exhausted,
)
from memkit.state import parse_json

logger = logging.getLogger(__name__)

LABEL = re.compile(r"^\*\*(?:Asked|Did|Answered|Interrupted)\*\*", re.MULTILINE)
"""The labels that memkit writes before the parts of a turn."""

_TIME = re.compile(r"\A\d\d:\d\d ")
KINDS = ("turn", "summary", "fact", "unverified", "instruction", "note")

LEADING_HEADINGS = re.compile(r"\A(?:#{1,6} .*\n?|\s*\n)+")
"""The headings at the start of a chunk's content, with blank lines between them."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of one Markdown file, as it is indexed, shown, and cited.

    Attributes:
        content: the source lines `start_line`..`end_line` joined by `\\n`, without machine anchors, as
            users and models see them. Only a piece of an overlong line has less than the whole of its lines.
        source: POSIX path relative to the project root; absolute for a file outside it.
        heading: text of the innermost heading, "" before the first one.
        breadcrumb: all enclosing headings, outermost first: "A > B > C".
        level: level of that heading, 1..6; 0 before the first one.
        start_line: first line, 1-based, counted as editors and `sed -n` do.
        end_line: last line, inclusive.
        content_hash: SHA-256 of `content`, first 16 hex characters.
        kind: "turn", "summary" (a bullet with a citation), "fact" (of a compaction), "unverified" (a
            summary or fact that its sources do not cover), "instruction", or "note".
        date: ISO date of the text, or "".
        session: session id from the journal's anchors, or "".
        turns: id of the turn that the text is, or ids of the turns that it rests on.
        citations: ids of the bullets in it, or of those that it rests on (`grip:` in an anchor).
        branch: git branch of the session, or "".
        domain: name of the file's directory, "" at the root and in the memory directory.
        whole: whether it is all of its section, or group of short sections.
        instruction: whether the file is an `*.instructions.md`.
        source_hash: SHA-256 of the whole file's bytes, 64 hex characters.
    """

    content: str
    source: str
    heading: str
    breadcrumb: str
    level: int
    start_line: int
    end_line: int
    content_hash: str
    kind: str
    date: str
    session: str
    turns: tuple[str, ...]
    citations: tuple[str, ...]
    branch: str
    domain: str
    whole: bool
    instruction: bool
    source_hash: str

    @property
    def text(self) -> str:
        """The text to embed: the breadcrumb, then the content; for a whole turn only its own words.

        A whole turn starts with its prompt. Headings that only repeat it are left out: the model reads 256
        tokens and ranks better without them (LoCoMo, fused: session @1 76.3 % with, 77.2 % without).

        A heading at the start of a piece occurs twice on purpose: its words weigh a little more there
        than in the later pieces of the section.
        """
        if self.kind == "turn" and self.whole:
            return self._words or self.content
        return f"{self.breadcrumb}\n{self.content}" if self.breadcrumb else self.content

    @property
    def lexical_text(self) -> str:
        """The text to tokenize: for a turn its date and its words, each once; else `text`.

        The headings over a turn repeat its prompt or the session's first one, and BM25 would count those
        words two or three times (LoCoMo: evidence @5 67.8 % with them, 69.5 % without; fused, 71 % and
        75 %). The labels are memkit's own words.
        """
        if self.kind != "turn":
            return self.text
        return f"{self.date}\n{LABEL.sub('', self._words)}"

    @property
    def is_bare(self) -> bool:
        """Whether it has only headings of a session, which the chunks of its turns repeat."""
        return bool(self.session) and not self.turns and not self._words.strip()

    @property
    def _words(self) -> str:
        """The content without its headings, but with the prompt if only the turn's heading has it."""
        words = LEADING_HEADINGS.sub("", self.content)
        return f"{_TIME.sub('', self.heading)}\n{words}" if self.has_prompt_in_heading else words

    @property
    def has_prompt_in_heading(self) -> bool:
        """Whether it starts a turn whose prompt only its heading has."""
        words = LEADING_HEADINGS.sub("", self.content)
        if self.kind != "turn" or len(words) == len(self.content) or words.startswith("**Asked**"):
            return False
        return _TIME.sub("", self.heading).removesuffix(" …") not in words  # else it is from the answer

    @property
    def text_number(self) -> int:
        """64 signed bits, equal for equal `text`. Moved text finds its vectors by this number."""
        key = "\n".join((self.breadcrumb, self.content_hash, str(self.whole), self.kind))
        return int(digest(key)[:16], 16) - 2**63

    def id(self, model: str) -> str:
        """Return the id in the index of `model`: SHA-256, 64 hex characters."""
        return digest(
            f"markdown:{self.source}:{self.start_line}:{self.end_line}:{self.content_hash}:{model}"
        )


def digest(text: str) -> str:
    """Return the SHA-256 of `text` in UTF-8, 64 hex characters; lone surrogates are accepted."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


FORMAT = 7
SHOWN_ID_CHARACTERS = 12
"""Characters of an id that users see. Any unique prefix is accepted, as in git."""

MANIFEST = "manifest"
CURRENT = "current"
"""The file that names the current snapshot of a collection."""

CHUNKS = "chunks.jsonl"
IDS = "ids"
"""The ids of all chunks, `ID_BYTES` each, without separators."""

ID_BYTES = 64

OFFSETS = "offsets"
"""The start of each chunk in `CHUNKS`, and the end of the last one: `OFFSET_TYPE`, native byte order."""

OFFSET_TYPE: Final = "q"

_CHECKED_BYTES = 64 * 1024 * 1024

CHUNK_FIELDS = {field.name: field.name for field in dataclasses.fields(Chunk)} | {"citations": "grips"}
"""The fields of a chunk, each with its name on disk. A snapshot with other fields cannot be read."""

_DECODER = json.JSONDecoder()
_TURNS = '"turns": '

Opened = TypeVar("Opened")


class ChunkReader:
    """The chunks of a snapshot, in the order (source, start_line), with their ids."""

    files: ClassVar[tuple[str, ...]] = (CHUNKS, IDS, OFFSETS)
    """The files to read; the manifest has their checksums."""

    def __init__(self, path: Path) -> None:
        """Open the snapshot at `path`. Raise `StaleSnapshotError`."""
        self.path = path
        try:
            self.manifest = _read_manifest(path)
            # Kept open: the next writer removes the files of this snapshot.
            self._data = {name: map_file(path / name) for name in self.files}
            checksums = {name: _checksum(data) for name, data in self._data.items()}
            _release(self._data[CHUNKS])
            if checksums.items() - self.manifest["checksums"].items():
                raise ValueError("its files are damaged")
            self._ids = bytes(self._data[IDS])
            self._offsets = self._data[OFFSETS].cast(OFFSET_TYPE)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise_if_exhausted(error)
            raise StaleSnapshotError(f"snapshot {path} cannot be used: {error}") from error

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __bool__(self) -> bool:
        return True  # an empty snapshot is still one: only None means that there is none

    def release(self) -> None:
        """Return the memory of the mapped files to the system, for a reader of very large ones."""
        for data in self._data.values():
            _release(data)

    def is_current(self) -> bool:
        """Return whether no newer snapshot has replaced this one."""
        return _current(self.path.parent) == self.path.name

    @property
    def root(self) -> str:
        """The root directory of the project."""
        return str(self.manifest["root"])

    @property
    def sources(self) -> dict[str, str]:
        """The state of each indexed memory file by source, see `memory_files.state_of`."""
        return dict(self.manifest["sources"])

    @property
    def missing(self) -> int:
        """The number of chunks that are not embedded."""
        return int(self.manifest["missing"])

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the set of ids."""
        return str(self.manifest["fingerprint"])

    def chunk(self, position: int) -> Chunk:
        """Return the chunk at `position`."""
        return self._chunk(self._offsets[position], self._offsets[position + 1])

    def turns(self, position: int) -> list[str]:
        """Return the turns of the chunk at `position`, ten times as fast as by reading all of it."""
        text = str(self._data[CHUNKS][self._offsets[position] : self._offsets[position + 1]], "ascii")
        # The quotes of the key cannot occur inside a JSON string.
        found: list[str] = _DECODER.raw_decode(text, text.index(_TURNS) + len(_TURNS))[0]
        return found

    def chunks(self) -> list[Chunk]:
        """Return all chunks, in order."""
        return [self._chunk(start, end) for start, end in pairwise(self._offsets)]

    def _chunk(self, start: int, end: int) -> Chunk:
        value = parse_json(bytes(self._data[CHUNKS][start:end]))
        value["citations"] = tuple(value.pop(CHUNK_FIELDS["citations"]))
        return Chunk(**{**value, "turns": tuple(value["turns"])})

    def id(self, position: int) -> str:
        """Return the full id of the chunk at `position`."""
        return self._ids[position * ID_BYTES : (position + 1) * ID_BYTES].decode("ascii")

    def find(self, prefix: str) -> int:
        """Return the position of the chunk whose id starts with `prefix`.

        Raise `NotFoundError` or `AmbiguousIdError`.
        """
        wanted = prefix.lower().encode("ascii", "replace")
        found: list[int] = []
        if 0 < len(wanted) <= ID_BYTES:
            starts = range(0, len(self._ids), ID_BYTES)
            found = [n for n, start in enumerate(starts) if self._ids.startswith(wanted, start)]
        if not found:
            raise NotFoundError(f"nothing in this project has the ID {prefix!r}; `memkit search` prints IDs")
        if len(found) > 1:
            shown = ", ".join(
                self.id(n)[: max(SHOWN_ID_CHARACTERS, len(prefix) + 2)] for n in found[:5]
            )
            raise AmbiguousIdError(f"the ID {prefix!r} matches {len(found)} entries: {shown}")
        return found[0]


def open_current(
    directory: Path, open_at: Callable[[Path], Opened], *, strict: bool = False
) -> Opened | None:
    """Open the current snapshot in `directory` with `open_at`; return None if there is no usable one.

    With `strict`, raise `StaleSnapshotError` with the reason if there is one that cannot be used.
    """
    name = _current(directory)
    while name:
        try:
            return open_at(directory / name)
        except StaleSnapshotError as error:
            before, name = name, _current(directory)
            if name != before:  # a writer has replaced it meanwhile
                continue
            if strict:
                raise
            logger.warning("%s; it is rebuilt", error)
            return None
    return None


def root_of(directory: Path) -> str:
    """Return the root of the project whose snapshots are in `directory`; "" without a current one.

    Raise `NoDescriptorsError`.
    """
    name = _current(directory)
    try:
        return str(_read_manifest(directory / name)["root"]) if name else ""
    except (OSError, ValueError, KeyError, StaleSnapshotError) as error:
        raise_if_exhausted(error)
        logger.info("snapshot %s cannot be read: %s", directory, error)
        return ""


def _checksum(data: memoryview) -> int:
    """Return the checksum of a mapped file, without keeping all of a large one in memory."""
    found = 0
    for start in range(0, len(data), _CHECKED_BYTES):
        found = zlib.crc32(data[start : start + _CHECKED_BYTES], found)
        if len(data) > _CHECKED_BYTES:
            _release(data)
    return found


def _release(data: memoryview) -> None:
    """Return the memory of a mapped file, which was read, to the system."""
    if sys.platform != "win32" and isinstance(data.obj, mmap.mmap):
        data.obj.madvise(mmap.MADV_DONTNEED)


def map_file(path: Path) -> memoryview:
    """Return the bytes of a file, memory-mapped."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:  # cannot be mapped
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _current(directory: Path) -> str:
    try:
        return (directory / CURRENT).read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise_if_exhausted(error)
        return ""


def _read_manifest(path: Path) -> dict[str, Any]:
    checksum, _, data = (path / MANIFEST).read_bytes().partition(b"\n")
    manifest: dict[str, Any] = parse_json(data)
    if int(checksum) != zlib.crc32(data):
        raise ValueError("its manifest is damaged")
    if (manifest["format"], manifest["fields"]) != (FORMAT, list(CHUNK_FIELDS.values())):
        raise ForeignSnapshotError(f"snapshot {path} is of another version of memkit")
    return manifest
