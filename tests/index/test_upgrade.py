"""An index of memkit 0.1.0: its rows held their text, and each snapshot was a directory."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from memkit.index.purge import erase_deleted

from memkit.index import index_lock, update
from memkit.index.catalog import known_roots
from memkit.index.chunk import Chunk
from memkit.index.store import Row, Store
from memkit.paths import Home
from tests.memory import DAYS, Memory, make_memory

WORD = "zqhorseradishzq"


@pytest.fixture
def old(tmp_path: Path) -> Memory:
    """An index as 0.1.0 wrote it; one chunk has several windows."""
    memory = make_memory(tmp_path, {**DAYS, "notes.md": f"# Notes\n\n{f'The {WORD} of the quagga. ' * 9}"})
    memory.embedder.window = 60
    memory.sync()
    snapshot = memory.snapshot
    with index_lock(memory.home, 5.0), Store(memory.home, "", snapshot.directory.name, rebuild=True) as store:
        for row in snapshot.rows():
            put_old(store, row)
    for path in snapshot.directory.iterdir():
        path.unlink()
    directory = snapshot.directory / "0123456789ab-01234567"
    directory.mkdir()
    (directory / "manifest").write_text(f"1\n{json.dumps({'format': 7, 'root': snapshot.root})}")
    (directory / "chunks.jsonl").write_text(WORD)
    (snapshot.directory / "current").write_text(directory.name)
    memory.embedder.texts.clear()
    assert "chroma.sqlite3" in holders(memory)
    return memory


def put_old(store: Store, row: Row) -> None:
    """Write a row as 0.1.0 did."""
    assert row.vectors is not None
    metadata = {
        field.name: getattr(row.chunk, field.name)
        for field in dataclasses.fields(Chunk)
        if field.name not in ("content", "turns", "citations")
    }
    lists = {"turns": ",".join(row.chunk.turns), "grips": ",".join(row.chunk.citations)}
    for number in reversed(range(len(row.vectors))):
        store._collection.upsert(
            ids=[f"{row.id}#{number}" if number else row.id],
            embeddings=[row.vectors[number]],
            documents=[row.chunk.content],
            metadatas=[
                {"window": number} if number else {**metadata, **lists, "windows": len(row.vectors), "window": 0}
            ],
        )


def holders(memory: Memory) -> set[str]:
    """The files of the index that hold the word, except segments."""
    files = (path for path in Path(memory.home.index).rglob("*") if path.is_file())
    return {path.name for path in files if WORD.encode() in path.read_bytes() and path.suffix != ".segment"}


def test_the_vectors_stay_and_the_text_goes(old: Memory, tmp_path: Path) -> None:
    assert known_roots(old.home) == [old.project.root]
    report = old.sync()
    assert (report.embedded, report.added, report.deleted, report.missing) == (0, 0, 0, 0)
    assert old.embedder.texts == []
    assert holders(old) == set()
    fresh = Memory(Home(str(tmp_path / "fresh")), old.project, old.embedder)
    fresh.sync()
    assert old.contents() == fresh.contents()
    with Store(old.home, "", old.snapshot.directory.name) as store:
        assert not any(store._collection.get(include=["documents"])["documents"] or [])
        stored = store.stored()
        assert stored == {row.id: store.describe(row) for row in old.snapshot.rows()}
    assert old.sync().added == 0


def test_an_upgrade_that_was_killed(old: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The vectors are in the store alone then: a kill loses those of one batch."""
    put, left = Store.put, [4]

    def killed(store: Store, rows: list[Row]) -> None:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        put(store, rows)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(update, "BATCH_CHUNKS", 2)
        patch.setattr(Store, "put", killed)
        old.sync()
    assert old.snapshot_or_none is None
    assert old.sync().embedded == 2
    assert old.sync().embedded == 0
    erase_deleted(old.home, "")
    assert holders(old) == set()
