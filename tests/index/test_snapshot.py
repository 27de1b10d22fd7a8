"""Snapshots are whole, or they are not used."""

from __future__ import annotations

import shutil
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memkit.errors import AmbiguousIdError, IndexStoreError, NotFoundError, StaleSnapshotError
from memkit.index import Indexer, index_lock, open_chunks, open_snapshot, reader, tokens
from memkit.index.chunker import chunk_markdown
from memkit.index.reader import FOOTER, FOOTER_BYTES, open_current
from memkit.index.snapshot import Snapshot
from memkit.index.store import Row
from memkit.settings import ChunkingSettings
from tests.ci import examples
from tests.memory import DAYS, FakeEmbedder, Memory, flip_byte, make_memory
from tests.snapshots import write_snapshot

QUERIES = ["which port", "PolicyController", "vault"]


def rows_of(files: dict[str, str]) -> list[Row]:
    embedder = FakeEmbedder(window=60)
    rows = []
    for name, text in files.items():
        for chunk in chunk_markdown(text, name, source_hash="0" * 64, options=ChunkingSettings()):
            rows.append(Row(chunk.id("m"), chunk, embedder.embed(embedder.windows(chunk.text))))
    return rows


def written(directory: Path, rows: list[Row]) -> Snapshot:
    write_snapshot(directory, rows, {"a.md": "hash"}, 8, "/a/project")
    snapshot = open_current(directory, lambda path: Snapshot(path, "english"))
    assert snapshot is not None
    return snapshot


def test_a_written_snapshot_is_read_back(tmp_path: Path) -> None:
    odd = "# Ümläut 中文 \u2028 😀\n\ntab\tnul-less \x0b\x85 \ud800 end\n" * 3
    rows = sorted(rows_of({**DAYS, "a.md": odd}), key=lambda row: (row.chunk.source, row.chunk.start_line))
    rows[2] = Row(rows[2].id, rows[2].chunk, None)
    snapshot = written(tmp_path, rows[::-1])
    assert len(snapshot) == len(rows)
    assert snapshot.sources == {"a.md": "hash", **dict.fromkeys(DAYS, "")}
    assert snapshot.root == "/a/project"
    assert snapshot.missing == 1
    for position, (row, expected) in enumerate(zip(snapshot.rows(), rows, strict=True)):
        assert row.id == expected.id == snapshot.id(position)
        assert row.chunk == expected.chunk == snapshot.chunk(position)
        assert (row.vectors is None) == (expected.vectors is None)
        assert row.vectors is None or np.array_equal(row.vectors, expected.vectors)
    sessions = [row.chunk.session for row in rows]
    codes = snapshot.columns["session"].tolist()
    for one, other in zip(sessions, codes, strict=True):
        assert [s == one for s in sessions] == [code == other for code in codes]
    assert snapshot.columns["length"].tolist() == [len(row.chunk.content) for row in rows]


def test_a_replaced_snapshot_can_still_be_read(tmp_path: Path) -> None:
    """A search may hold a snapshot while another process writes the next one."""
    old = written(tmp_path, rows_of(DAYS))
    chunks = old.chunks()
    (path,) = (segment.path for segment in old.segments)
    written(tmp_path, [])
    assert not path.exists()
    assert old.chunks() == chunks
    assert old.chunk(1) == chunks[1]


def test_old_snapshots_are_removed(tmp_path: Path) -> None:
    written(tmp_path, rows_of(DAYS))
    (tmp_path / ".abc.tmp").touch()
    (tmp_path / "half.segment").touch()
    (tmp_path / "topics.json").touch()  # not of the index
    (segment,) = written(tmp_path, rows_of(DAYS)).segments
    assert {path.name for path in tmp_path.iterdir()} == {"manifest", segment.path.name, "topics.json"}
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "manifest", segment.path))


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(IndexStoreError):
        written(tmp_path / "file" / "index" / "snapshots", [])


def test_find_by_prefix(tmp_path: Path) -> None:
    rows = rows_of({"notes.md": "".join(f"# S{n}\n\n{'word ' * 30}{n}\n\n" for n in range(40))})
    snapshot = written(tmp_path, rows)
    for position in range(len(rows)):
        full = snapshot.id(position)
        assert snapshot.find(full) == position
        assert snapshot.find(full[:12].upper()) == position
    two = snapshot.id(0) + snapshot.id(1)
    for unknown in ("", "x", "0" * 64, f"{full}0", two, two[32:96], "é", "*", "%"):
        with pytest.raises(NotFoundError):
            snapshot.find(unknown)
    letters = [row.id[0] for row in rows]
    common = max(letters, key=letters.count)
    with pytest.raises(AmbiguousIdError, match=f"matches {letters.count(common)} entries") as caught:
        snapshot.find(common)
    assert all(snapshot.find(one) >= 0 for one in str(caught.value).partition("entries: ")[2].split(", "))
    empty = written(tmp_path, [])
    assert (len(empty), empty.rows()) == (0, [])
    with pytest.raises(NotFoundError):
        empty.find("0")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Memory:
    memory = make_memory(tmp_path_factory.mktemp("sound"), DAYS)
    memory.embedder.window = 60
    memory.sync()
    return memory


@settings(max_examples=examples(50), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damage_is_seen(sound: Memory, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Whatever file is cut, changed in a byte, swapped or gone: no snapshot, or the same one."""
    directory = Path(sound.home.index, "snapshots")
    spare = tmp_path_factory.getbasetemp() / "spare"
    shutil.rmtree(spare, ignore_errors=True)
    shutil.copytree(directory, spare)
    expected, answers = sound.contents(), sound.answers(QUERIES)
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    path = data.draw(st.sampled_from(files), "file")
    content = path.read_bytes()
    kind = data.draw(st.sampled_from(["cut", "flip", "grow", "swap", "gone"]), "kind")
    position = data.draw(st.integers(0, max(0, len(content) - 1)), "position")
    if kind == "cut":
        path.write_bytes(content[:position])
    elif kind == "flip" and content:
        flipped = content[position] ^ (1 << data.draw(st.integers(0, 7), "bit"))
        path.write_bytes(content[:position] + bytes([flipped]) + content[position + 1 :])
    elif kind == "grow":
        path.write_bytes(content + b"\0")
    elif kind == "swap":
        path.write_bytes(data.draw(st.sampled_from(files), "other").read_bytes())
    else:
        path.unlink()
    try:
        found = open_snapshot(sound.project, sound.home, sound.settings)
        if found is not None:
            assert sound.contents() == expected
            assert sound.answers(QUERIES) == answers
        chunks = open_chunks(sound.project, sound.home, sound.settings)
        if chunks is not None:
            assert [chunks.id(n) for n in range(len(chunks))] == list(expected)
            assert chunks.chunks() == [chunk for chunk, _ in expected.values()]
    finally:
        shutil.rmtree(directory)
        shutil.copytree(spare, directory)


@pytest.mark.parametrize("victim", ["manifest", "chunks", "ids", "offsets", "vectors", "slots", "names"])
def test_a_damaged_snapshot_is_rebuilt(sound: Memory, victim: str) -> None:
    """Damage of what only a search reads is no reason to show no chunk meanwhile."""
    memory = Memory(sound.home, sound.project, FakeEmbedder(window=60))
    expected, answers, shown = memory.contents(), memory.answers(QUERIES), memory.snapshot.chunks()
    flip_byte(Path(sound.home.index, "snapshots"), victim)
    chunks = open_chunks(memory.project, memory.home, memory.settings)
    assert (chunks and chunks.chunks()) == (shown if victim in ("vectors", "slots", "names") else None)
    assert open_snapshot(memory.project, memory.home, memory.settings) is None
    memory.sync()
    assert (memory.contents(), memory.answers(QUERIES)) == (expected, answers)


def test_a_snapshot_of_another_tokenizer_is_not_used(sound: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = sound.snapshot.directory
    with pytest.raises(StaleSnapshotError, match="terms"):
        Snapshot(directory, "german")
    monkeypatch.setattr(tokens, "VERSION", tokens.VERSION + 1)
    with pytest.raises(StaleSnapshotError, match="terms"):
        Snapshot(directory, "english")


def test_arrays_of_objects_are_refused(tmp_path: Path) -> None:
    (segment,) = written(tmp_path, rows_of(DAYS)).segments
    content = segment.path.read_bytes()
    length = int(content[-FOOTER_BYTES:].split()[0])
    footer = content[-FOOTER_BYTES - length : -FOOTER_BYTES].replace(b'"<i4"', b'"|O"')
    end = (FOOTER % (len(footer), zlib.crc32(footer))).encode()
    segment.path.write_bytes(content[: -FOOTER_BYTES - length] + footer + end)
    with pytest.raises(StaleSnapshotError):
        Snapshot(tmp_path, "english")


def test_segments_are_opened_and_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new state shares the open segments that it still names. Damage meanwhile is found by the next reader."""
    memory = make_memory(tmp_path, DAYS)
    checked: list[int] = []
    checksum = reader._checksum
    monkeypatch.setattr(reader, "_checksum", lambda data: checked.append(1) or checksum(data))
    with index_lock(memory.home, 5.0):
        indexer = Indexer(
            memory.project, memory.home, memory.settings, find_embedder=lambda: (memory.embedder, "")
        )
        indexer.sync()
        before = memory.snapshot
        assert memory.contents()
        assert not checked
        flip_byte(Path(memory.home.index, "snapshots"), "vectors")
        checked.clear()
        memory.write("new.md", "# New\n\nAnother note about the zebra.")
        indexer.sync(later=True)
        assert not checked
    after = open_snapshot(memory.project, memory.home, memory.settings, earlier=before)
    assert after is not None
    assert (before.is_current(), after.is_current()) == (False, True)
    assert [one in before.segments for one in after.segments] == [True, False]
    assert open_snapshot(memory.project, memory.home, memory.settings) is None
    assert checked
