"""A manifest or a segment with right checksums and wrong values, as a stranger may make them: it is not used."""

from __future__ import annotations

import copy
import json
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memkit.errors import StaleSnapshotError
from memkit.index.manifest import MANIFEST, name_of, root_of
from memkit.index.reader import FOOTER, FOOTER_BYTES, ChunkReader
from memkit.index.snapshot import Snapshot
from tests.ci import IN_CI
from tests.memory import DAYS, Memory, make_memory

ODD: list[Any] = [
    None, -1, 0, 1, 3, 10**30, 1.5, True, "", "../../elsewhere", "/etc/passwd", "\ud800", "<f4", "O", "|V9",
    [], {}, [1], ["a"], [[]], {"a": 1}, "a" * 64, "missing",
]  # fmt: skip

Path_ = tuple[Any, ...]


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """Two segments."""
    memory = make_memory(tmp_path, DAYS)
    memory.sync()
    memory.write("zebra.md", "# Zebra\n\nThe zebra of the gateway.\n")
    memory.sync()
    assert len(memory.snapshot.segments) == 2
    return memory


def places(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Yield the paths of all values inside a JSON value."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from places(inner, (*path, key))


def forged(value: Any) -> Iterator[bytes]:
    """Yield the JSON value with another value, or none, in each place."""
    for count, path in enumerate(places(value)):
        for odd in ODD if IN_CI else ODD[count % 7 :: 7]:
            changed = copy.deepcopy(value)
            inner = changed
            for key in path[:-1]:
                inner = inner[key]
            if odd == "missing":
                del inner[path[-1]]
            else:
                inner[path[-1]] = odd
            yield json.dumps(changed).encode("ascii")


def expect_refused_or_used(memory: Memory, directory: Path) -> None:
    """It is not used, or it can be used in every way."""
    opens: list[Callable[[Path], ChunkReader]] = [ChunkReader, lambda path: Snapshot(path, "english")]
    for open_it in opens:
        try:
            found = open_it(directory)
        except StaleSnapshotError:
            continue
        assert len(found.chunks()) == len(found)
        if isinstance(found, Snapshot):
            assert len(found.columns) == len(found.rows()) == len(found)
            assert len(memory.search("gateway").results) <= len(found)
    assert isinstance(root_of(directory) + name_of(directory), str)


def test_a_manifest(memory: Memory) -> None:
    directory = memory.snapshot.directory
    head, _, data = (directory / MANIFEST).read_bytes().partition(b"\n")
    name = head.split(b" ")[0]
    for value in forged(json.loads(data)):
        checksum = zlib.crc32(value, zlib.crc32(name))
        (directory / MANIFEST).write_bytes(b"%s %d\n%s" % (name, checksum, value))
        expect_refused_or_used(memory, directory)
    memory.sync()
    assert len(memory.snapshot) == 7


def test_a_segment(memory: Memory) -> None:
    directory = memory.snapshot.directory
    path = memory.snapshot.segments[0].path
    content = path.read_bytes()
    length = int(content[-FOOTER_BYTES:].split()[0])
    body, footer = content[: -FOOTER_BYTES - length], content[-FOOTER_BYTES - length : -FOOTER_BYTES]
    for value in forged(json.loads(footer)):
        path.unlink()
        path.write_bytes(body + value + (FOOTER % (len(value), zlib.crc32(value))).encode("ascii"))
        expect_refused_or_used(memory, directory)
    for part in (b"", b"x", content[:-1], content[:100], content[-FOOTER_BYTES:], content + b"\n"):
        path.unlink()
        path.write_bytes(part)
        with pytest.raises(StaleSnapshotError):
            Snapshot(directory)
    memory.sync()
    assert len(memory.snapshot) == 7


@pytest.mark.skipif(os.name == "nt", reason="links and pipes of POSIX")
@pytest.mark.parametrize("part", [MANIFEST, "segment"])
def test_no_link_is_followed_and_no_pipe_is_read(memory: Memory, tmp_path: Path, part: str) -> None:
    directory = memory.snapshot.directory
    path = directory / MANIFEST if part == MANIFEST else memory.snapshot.segments[0].path
    elsewhere = tmp_path / "elsewhere"
    for place in ("link", "pipe"):
        if place == "link":
            path.rename(elsewhere)
            path.symlink_to(elsewhere)
        else:
            path.unlink()
            os.mkfifo(path)
        with pytest.raises(StaleSnapshotError):
            ChunkReader(directory)
        memory.sync()
        assert len(memory.snapshot) == 7
        path = directory / MANIFEST if part == MANIFEST else memory.snapshot.segments[0].path
        assert path.is_file()
        assert not path.is_symlink()
    assert elsewhere.is_file()
