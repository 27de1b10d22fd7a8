"""The size of the index depends on its content, not on the number of changes."""

from __future__ import annotations

from pathlib import Path

import chromadb
import numpy as np
import pytest
from chromadb.config import Settings as ChromaSettings

from memkit.errors import IndexStoreError
from memkit.index import purge
from memkit.index.purge import BOUND_FACTOR, IndexUsage, bound, keep_small, usage_of
from memkit.index.store import Row, Store
from memkit.paths import Home
from tests.ci import only_in_ci
from tests.memory import DAYS, make_chunk, make_memory

NAME = "memkit-0123456789abcdef-fake-01234567"
OTHER = "memkit-fedcba9876543210-fake-01234567"
ROWS = 150


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


def rows(start: int, dimensions: int = 1536, windows: int = 1) -> list[Row]:
    random = np.random.default_rng(start)
    made = []
    for number in range(start, start + ROWS):
        vectors = random.normal(size=(windows, dimensions)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        made.append(Row(f"{number:064x}", make_chunk(f"an entry {number} " * 10), vectors))
    return made


def held(home: Home, name: str) -> dict[str, tuple[object, bytes]]:
    with Store(home, "", name) as store:
        stored = store.stored()
        found = store.vectors({one: metadata["windows"] for one, metadata in stored.items()})
        none = np.zeros(0)
        return {one: (metadata, found.get(one, none).tobytes()) for one, metadata in stored.items()}


def usage(home: Home) -> IndexUsage:
    found = usage_of(Path(home.index, "chroma"))
    assert found is not None
    return found


def bloat(home: Home, rounds: int = 12) -> None:
    """Put rows in and take them out again; the last ones, some of them without a vector, stay."""
    with Store(home, "", OTHER) as store:
        store.put(rows(900_000, dimensions=8, windows=2))
    for number in range(rounds):
        with Store(home, "", NAME) as store:
            store.put(rows(number * ROWS))
            if number:
                store.delete({f"{n:064x}": 1 for n in range((number - 1) * ROWS, number * ROWS)})
    with Store(home, "", NAME) as store:
        store.put([Row("a" * 64, make_chunk("it waits for its vector"), None)])


@only_in_ci
def test_a_bloated_index_is_rewritten(home: Home) -> None:
    bloat(home)
    before = held(home, NAME), held(home, OTHER)
    large = usage(home)
    assert large.bytes > bound(large)
    freed = keep_small(home, "")
    assert freed > large.bytes / 2
    small = usage(home)
    assert small.bytes == large.bytes - freed
    assert small.bytes < bound(small) / BOUND_FACTOR
    assert (held(home, NAME), held(home, OTHER)) == before
    assert [path.name for path in Path(home.index).iterdir()] == ["chroma"]
    assert keep_small(home, "") == 0
    with Store(home, "", NAME) as store:
        store.put(rows(800_000))
    assert len(held(home, NAME)) == 2 * ROWS + 1


def test_a_rewrite_that_was_killed_embeds_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is empty then. The next pass takes the vectors from the snapshot."""
    memory = make_memory(tmp_path, DAYS)
    memory.sync()
    before = memory.contents()
    monkeypatch.setattr(purge, "bound", lambda usage: 0)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Store, "_upsert", interrupted)
        keep_small(memory.home, "")
    memory.embedder.texts.clear()
    assert memory.sync().embedded == 0
    assert memory.embedder.texts == []
    assert memory.contents() == before
    keep_small(memory.home, "")
    assert memory.sync().added == 0
    assert memory.contents() == before


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_copies_left_by_an_older_memkit_go(home: Home) -> None:
    with Store(home, "", NAME) as store:
        store.put(rows(0, dimensions=8))
    for suffix in ("new", "old", "damaged"):
        Path(home.index, f"chroma.{suffix}").mkdir()
    before = held(home, NAME)
    purge.erase_deleted(home, "")
    assert held(home, NAME) == before
    assert [path.name for path in Path(home.index).iterdir()] == ["chroma"]


def test_free_pages_are_given_back(home: Home) -> None:
    with Store(home, "", NAME) as store:
        for start in range(0, 4 * ROWS, ROWS):
            store.put(rows(start, dimensions=8))
        store.delete({f"{n:064x}": 1 for n in range(ROWS, 4 * ROWS)})
    before = held(home, NAME)
    assert usage(home).free_share > 0.25
    assert keep_small(home, "") > 0
    assert usage(home).free_share == 0
    assert held(home, NAME) == before


@only_in_ci
def test_an_index_with_foreign_collections_is_not_rewritten(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "index" / "chroma"
    path.mkdir(parents=True)
    client = chromadb.PersistentClient(str(path), ChromaSettings(anonymized_telemetry=False))
    mine = client.create_collection("mine")
    mine.add(ids=["a"], embeddings=np.ones((1, 3), dtype=np.float32), documents=["text"])
    client.close()
    bloat(home)
    keep_small(home, "")
    assert usage(home).bytes > bound(usage(home))
    client = chromadb.PersistentClient(str(path), ChromaSettings(anonymized_telemetry=False))
    assert client.get_collection("mine").get()["documents"] == ["text"]
    client.close()


def test_a_missing_and_a_damaged_index(home: Home) -> None:
    assert keep_small(home, "") == 0
    assert keep_small(home, "http://127.0.0.1:9") == 0
    Path(home.index, "chroma").mkdir(parents=True)
    Path(home.index, "chroma", "chroma.sqlite3").write_bytes(b"no database" * 500)
    with pytest.raises(IndexStoreError, match="cannot be measured"):
        keep_small(home, "")
