"""Deleted text is in no file of the index; the rest stays unchanged."""

from __future__ import annotations

from pathlib import Path

import chromadb
import numpy as np
import pytest
from chromadb.config import Settings as ChromaSettings

from memkit.errors import IndexStoreError
from memkit.index.purge import delete_collection, erase_deleted
from memkit.index.store import Row, Store
from memkit.paths import Home
from tests.ci import first
from tests.memory import make_chunk

NAME = "memkit-0123456789abcdef-fake-01234567"
OTHER = "memkit-fedcba9876543210-fake-01234567"
WORD = "zqhorseradishzq"

Held = dict[str, tuple[object, bytes]]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


def rows(numbers: range, text: str = "an entry of the memory") -> list[Row]:
    random = np.random.default_rng(numbers.start)
    made = []
    for number in numbers:
        vector = random.normal(size=(1, 8)).astype(np.float32)
        chunk = make_chunk(f"{text} {number}", source=f"{text} {number}.md", branch=text)
        made.append(Row(f"{number:064x}", chunk, vector / np.linalg.norm(vector)))
    return made


def held(home: Home, name: str) -> Held:
    with Store(home, "", name) as store:
        stored = store.stored()
        found = store.vectors({one: metadata["windows"] for one, metadata in stored.items()})
        return {one: (metadata, found[one].tobytes()) for one, metadata in stored.items()}


def holders(home: Home) -> list[str]:
    files = (path for path in Path(home.index).rglob("*") if path.is_file())
    return [path.name for path in files if WORD.encode() in path.read_bytes()]


# Chroma takes vectors out of its queue a thousand at a time.
@pytest.mark.parametrize("count", first(1, [30, 1300]))
def test_only_deleted_text_is_erased(home: Home, count: int) -> None:
    with Store(home, "", OTHER) as store:
        store.put(rows(range(5000, 5030)))
    with Store(home, "", NAME) as store:
        store.put(rows(range(count)))
        store.put(rows(range(9000, 9010), f"the {WORD} of"))
        store.delete(dict.fromkeys((f"{number:064x}" for number in range(9000, 9010)), 1))
    assert "chroma.sqlite3" in holders(home)
    before = held(home, NAME), held(home, OTHER)
    for _ in range(2):
        assert erase_deleted(home, "")
        assert holders(home) == []
        assert (held(home, NAME), held(home, OTHER)) == before
    with Store(home, "", NAME) as store:
        store.put(rows(range(20_000, 21_100)))
    assert len(held(home, NAME)) == count + 1100
    with Store(home, "", NAME) as store:
        found = store._collection.get(where={"source": "an entry of the memory 17.md"})["ids"]
        assert found == [f"{17:064x}"]


def test_a_killed_erasure_leaves_nothing_behind(home: Home) -> None:
    with Store(home, "", NAME) as store:
        store.put(rows(range(30)))
    before = held(home, NAME)
    chroma = Path(home.index, "chroma")
    (chroma / ".chroma.sqlite3.partial").write_text(WORD)  # the copy that the killed process was writing
    assert erase_deleted(home, "")
    assert holders(home) == [] and list(chroma.glob(".*.partial")) == []
    assert (chroma / "chroma.sqlite3").stat().st_mode & 0o777 == 0o600
    assert held(home, NAME) == before


def test_a_collection_is_deleted_with_its_snapshots_and_vectors(home: Home) -> None:
    with Store(home, "", NAME) as store:
        store.put(rows(range(10)))
    with Store(home, "", OTHER) as store:
        store.put(rows(range(1200), f"the {WORD} of"))
    snapshots = Path(home.index, "snapshots", OTHER)
    snapshots.mkdir(parents=True)
    (snapshots / "current").write_text(WORD)
    before = held(home, NAME)
    delete_collection(home, "", OTHER)
    erase_deleted(home, "")
    assert holders(home) == []
    assert held(home, NAME) == before
    segments = [path for path in Path(home.index, "chroma").iterdir() if path.is_dir()]
    assert len(segments) == 1


@pytest.mark.parametrize("count", first(1, [1200, 10]))
def test_unused_memory_is_cut_from_the_vector_files(home: Home, count: int) -> None:
    with Store(home, "", NAME) as store:
        store.put(rows(range(count)))
    before = held(home, NAME)
    for name in ("data_level0.bin", "length.bin"):
        (path,) = Path(home.index, "chroma").glob(f"*/{name}")
        with path.open("ab") as file:
            file.write(WORD.encode())
    assert holders(home) != []
    assert held(home, NAME) == before
    assert holders(home) == []
    assert held(home, NAME) == before


def test_the_vectors_of_a_rebuilt_collection_are_removed(home: Home) -> None:
    with Store(home, "", NAME) as store:
        store.put(rows(range(30)))
    with Store(home, "", NAME, rebuild=True) as store:
        store.put(rows(range(10)))
    # As Chroma leaves them, with the memory of the process behind the last vector.
    left = Path(home.index, "chroma", "01234567-89ab-cdef-0123-456789abcdef")
    left.mkdir()
    (left / "data_level0.bin").write_text(WORD)
    assert len(held(home, NAME)) == 10
    assert holders(home) == []
    assert not left.exists()


def test_foreign_collections_stay_unchanged(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "shared"
    client = chromadb.PersistentClient(str(path), ChromaSettings(anonymized_telemetry=False))
    mine = client.create_collection("mine", configuration={"hnsw": {"space": "cosine"}})
    vectors = np.random.default_rng(1).normal(size=(1200, 8)).astype(np.float32)
    mine.add(ids=[str(n) for n in range(1200)], embeddings=vectors, documents=["text"] * 1200)
    client.close()
    with Store(home, str(path), NAME) as store:
        store.put(rows(range(10)))
    erase_deleted(home, str(path))
    client = chromadb.PersistentClient(str(path), ChromaSettings(anonymized_telemetry=False))
    found = client.get_collection("mine").get(ids=["0", "1199"], include=["embeddings", "documents"])
    client.close()
    kept = dict(zip(found["ids"], found["embeddings"], strict=True))
    assert np.allclose(kept["0"], vectors[0], atol=1e-5)
    assert np.allclose(kept["1199"], vectors[1199], atol=1e-5)
    assert found["documents"] == ["text", "text"]


def test_nothing_on_a_server_is_erased(home: Home) -> None:
    assert not erase_deleted(home, "http://127.0.0.1:9")
    assert not erase_deleted(home, "cloud")


def test_a_missing_index(home: Home) -> None:
    assert erase_deleted(home, "")
    assert not Path(home.index).exists()


def test_a_damaged_index_is_reported(home: Home) -> None:
    Path(home.index, "chroma").mkdir(parents=True)
    Path(home.index, "chroma", "chroma.sqlite3").write_bytes(b"no database" * 500)
    with pytest.raises(IndexStoreError, match=r"index .*chroma still holds deleted text .*memkit index"):
        erase_deleted(home, "")
