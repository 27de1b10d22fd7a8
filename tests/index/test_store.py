"""Chunks in Chroma: a row is whole or not there, and what memkit did not write is put right."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memkit.errors import IndexStoreError
from memkit.index import store as store_module
from memkit.index.chunker import chunk_markdown
from memkit.index.store import Row, Store, owner_of
from memkit.paths import Home
from memkit.settings import ChunkingSettings
from tests.ci import only_in_ci
from tests.memory import DAYS, FakeEmbedder, make_memory
from tests.raw_bytes import files_holding

REPOSITORY = Path(__file__).resolve().parents[2]

QUERIES = ["which port", "PolicyController", "secrets vault rotate", "nothing of the kind"]


def rows_of(text: str, embedder: FakeEmbedder | None) -> list[Row]:
    rows = []
    for chunk in chunk_markdown(text, "a.md", source_hash="0" * 64, options=ChunkingSettings()):
        vectors = None if embedder is None else embedder.embed(embedder.windows(chunk.text))
        rows.append(Row(chunk.id("m"), chunk, vectors))
    return rows


def assert_stored(store: Store, expected: list[Row]) -> None:
    """The store holds these chunks and no others, with their vectors to the bit."""
    assert store.stored() == {row.id: store.describe(row) for row in expected}
    got = store._collection.get(include=["embeddings"])
    found: dict[str, Any] = dict(zip(got["ids"], got["embeddings"], strict=True))  # type: ignore[arg-type]
    names = [f"{row.id}#{number}" if number else row.id for row in expected for number in range(windows(row))]
    assert sorted(found) == sorted(names)
    for row in expected:
        for number, vector in enumerate(() if row.vectors is None else row.vectors):
            assert np.array_equal(found[f"{row.id}#{number}" if number else row.id], vector)


def windows(row: Row) -> int:
    return 0 if row.vectors is None else len(row.vectors)


def delete(store: Store, rows: list[Row]) -> None:
    store.delete({row.id: store.describe(row) for row in rows})


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(str(tmp_path / "home"))


def test_rows_come_back_as_they_went_in(home: Home) -> None:
    embedder = FakeEmbedder(window=50)
    rows = rows_of("\n".join(DAYS.values()), embedder)
    assert max(map(windows, rows)) > 2
    with Store(home, "", "memkit-test") as store:
        store.put([*rows, *rows_of("# Not embedded\n\n" + "text " * 50, None)])
    with Store(home, "", "memkit-test") as store:
        assert_stored(store, rows)
        found = store._collection.get(include=["documents", "metadatas"])
    assert set(found["documents"]) == {None}
    known = {"source", "session", "kind", "branch", "day", "text", "windows", "window"}
    assert {name for one in found["metadatas"] for name in one} == known
    words = b"443 is taken"  # of an answer; long enough to be no accident in a vector
    assert not any(words in path.read_bytes() for path in Path(home.index).rglob("*") if path.is_file())


FREED = """
import sys, threading
import numpy as np
from memkit.index import store as module
from memkit.index.chunker import chunk_markdown
from memkit.paths import Home
from memkit.settings import ChunkingSettings

if sys.argv[2] == "kept":
    module._clear_unused = lambda **_: None

def read_and_free():
    for size in (100, 600, 10_000, 100_000):
        texts = [bytearray(b"zqhorseradishzq " * (size // 16)) for _ in range(100)]
        keeps_the_block_in_the_heap = bytearray(600)

threads = [threading.Thread(target=read_and_free) for _ in range(24)]  # Chroma's threads reuse their heaps
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
chunks = chunk_markdown("# A turn", "a.md", source_hash="0" * 64, options=ChunkingSettings())
with module.Store(Home(sys.argv[1]), "", "memkit-test") as store:
    vectors = np.full((1, 384), 384**-0.5, dtype=np.float32)
    store.put([module.Row(chunk.id("m"), chunk, vectors) for chunk in chunks])
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other heaps hand out other memory")
@pytest.mark.parametrize("freed", ["kept", "cleared"])
def test_chroma_writes_no_text_from_freed_memory(tmp_path: Path, freed: str) -> None:
    subprocess.run([sys.executable, "-c", FREED, str(tmp_path), freed], cwd=REPOSITORY, check=True)
    found = files_holding(tmp_path, "zqhorseradishzq", lambda path: False)
    assert (found == []) is (freed == "cleared")


def test_rows_of_many_windows_need_one_batch_at_a_time(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "BATCH_ROWS", 7)
    rows = rows_of("\n".join(DAYS.values()), FakeEmbedder(window=7))
    assert max(map(windows, rows)) > 14
    with Store(home, "", "memkit-test") as store:
        store.put(rows)
        assert_stored(store, rows)
        delete(store, rows[1:])
        assert_stored(store, rows[:1])


@only_in_ci
def test_a_chunk_of_more_windows_than_chroma_takes_at_once(home: Home) -> None:
    rows = rows_of("# One\n\n```\n" + "a line of code\n" * 4000 + "```\n", FakeEmbedder(window=10))
    assert max(map(windows, rows)) > 5500
    with Store(home, "", "memkit-test") as store:
        store.put(rows)
        assert_stored(store, rows)


def test_what_a_killed_run_left_is_removed(home: Home) -> None:
    rows = rows_of("\n".join(DAYS.values()), FakeEmbedder(window=50))
    with Store(home, "", "memkit-test") as store:
        store.put(rows)
        # Killed while it deleted: the chunk itself goes first. While it wrote: it comes last.
        store._collection.delete(ids=[rows[0].id])
        assert sorted(store.stored()) == sorted(row.id for row in rows[1:])
        left = store._collection.get(include=[])["ids"]
        assert not [row for row in left if row.startswith(rows[0].id)]


def test_a_chunk_is_whole_or_not_there(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows were written before the process was killed."""
    rows = rows_of("\n".join(DAYS.values()), FakeEmbedder(window=50))
    monkeypatch.setattr(store_module, "BATCH_ROWS", 1)
    for count in range(1, sum(map(windows, rows[:3]))):
        with Store(home, "", f"memkit-{count}") as store:
            writes = iter(range(count))
            upsert = store._collection.upsert

            def write(upsert: Any = upsert, writes: Any = writes, **arguments: Any) -> None:
                if next(writes, None) is None:
                    raise KeyboardInterrupt
                upsert(**arguments)

            monkeypatch.setattr(store._collection, "upsert", write)
            with pytest.raises(KeyboardInterrupt):
                store.put(rows)
            whole = {name for name, found in store.stored().items() if found["text"] is not None}
            assert_stored(store, [row for row in rows if row.id in whole])


def test_foreign_and_lost_rows_are_put_right(tmp_path: Path) -> None:
    """Whatever others did to the collection: nothing is embedded again."""
    memory = make_memory(tmp_path, DAYS)
    memory.sync()
    expected = memory.contents()
    name = next(Path(memory.home.index, "snapshots").iterdir()).name
    for others in ([], [next(iter(expected))]):
        with Store(memory.home, "", name) as store:
            store._collection.add(ids=["x", "y"], embeddings=[[1.0] * 8] * 2, metadatas=[{"a": 1}, {"b": "#"}])
            if others:
                store._collection.delete(ids=others)
        memory.embedder = NoEmbedder()
        memory.sync(compare=True)
        assert memory.contents() == expected
        with Store(memory.home, "", name) as store:
            assert_stored(store, memory.snapshot.rows())


class NoEmbedder(FakeEmbedder):
    """Embeds nothing: each call costs money."""

    def embed(self, texts: Any, progress: Any = None) -> Any:
        raise AssertionError(f"{len(texts)} texts are embedded again")


@pytest.mark.parametrize("text", ["", "not an id", "\xff"])
def test_a_damaged_id_of_the_home_is_not_replaced(tmp_path: Path, text: str) -> None:
    home = Home(str(tmp_path))
    Path(home.owner).write_text(text, encoding="latin-1")
    with pytest.raises(IndexStoreError, match="owner"):
        owner_of(home)
    assert Path(home.owner).read_text(encoding="latin-1") == text
