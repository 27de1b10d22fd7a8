"""Chroma gets what the segments have, at once or later, and keeps nothing that was forgotten."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import chromadb
import msgspec
import pytest
from chromadb.api.models.Collection import Collection
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.errors import IndexStoreError
from memkit.index import SyncReport, index_lock, mirror, sync_project
from memkit.index import update as update_module
from memkit.index.mirror import COPIED, read_copied, remove_strays, start_again
from memkit.paths import Home
from memkit.settings.load import Settings
from tests.ci import examples, sized
from tests.index.parts import Writes
from tests.index.same import assert_same_index
from tests.memory import DAYS, FakeEmbedder, Memory, make_memory

NOTE = "# Quagga\n\n" + "The quagga was a zebra of the south. " * 12 + "\n"
LATER = {"later": True}
ENDLESS = b'{"version": 1, "collection": "a", "waiting": ["a"], "changes": 1e999}'
DAY_19 = ".memkit/memory/2026-11-19.md"


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """An indexed one."""
    memory = make_memory(tmp_path, DAYS)
    memory.sync()
    return memory


def directory(memory: Memory) -> Path:
    return Path(memory.home.index, "chroma", memory.snapshot.directory.name)


def rows(memory: Memory) -> dict[str, tuple[Any, bytes]]:
    """What another program finds in Chroma, by id: metadata and vector, to the bit."""
    client: Any = chromadb.PersistentClient(str(directory(memory)))
    (collection,) = client.list_collections()
    found = collection.get(include=["metadatas", "embeddings"])
    client.close()
    return {
        id: (metadata, vector.tobytes())
        for id, metadata, vector in zip(found["ids"], found["metadatas"], found["embeddings"], strict=True)
    }


def ids(memory: Memory) -> set[str]:
    """The chunks of Chroma: no further windows."""
    return {id for id in rows(memory) if "#" not in id}


def without(memory: Memory) -> SyncReport:
    """A pass that finds no model, and leaves Chroma alone if it can."""
    chosen = msgspec.convert({"embedding": {"provider": "none"}}, Settings)
    with index_lock(memory.home, 5.0):
        return sync_project(memory.project, memory.home, chosen, later=True)


def built_at_once(memory: Memory, place: Path) -> Memory:
    fresh = Memory(Home(str(place)), memory.project, FakeEmbedder())
    fresh.sync()
    return fresh


def no_store(*_: object, **__: object) -> None:
    raise AssertionError("Chroma is opened")


def test_any_chroma_client_can_query_it(memory: Memory) -> None:
    client: Any = chromadb.PersistentClient(str(directory(memory)))
    collection = client.get_collection(directory(memory).name)
    assert collection.configuration["hnsw"]["space"] == "ip"
    assert collection.configuration["hnsw"]["max_neighbors"] == 16
    wanted = next(row for row in memory.snapshot.rows() if row.vectors is not None)
    found = collection.query(wanted.vectors[:1], n_results=1, where={"source": wanted.chunk.source})
    assert found["ids"] == [[wanted.id]]
    assert set(found["metadatas"][0][0]) == {"source", "session", "kind", "branch", "day", "text", "windows", "window"}
    assert found["documents"] == [[None]]
    client.close()
    assert directory(memory).stat().st_mode & 0o777 == 0o700


def test_a_turn_is_found_without_chroma(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(mirror, "Store", no_store)
        memory.write("new.md", NOTE)
        report = memory.sync(**LATER)
        assert (report.added, report.deleted, report.embedded, report.away) == (1, 0, 1, "")
        assert "quagga" in memory.search("quagga").results[0].chunk.content
        memory.write("new.md", NOTE.replace("zebra", "horse"))
        memory.path("2026-11-19.md").unlink()
        report = memory.sync(**LATER)
        assert report.added == 1
        assert report.deleted > 1
        last = memory.snapshot.name
        assert memory.sync(**LATER).added == 0
        assert memory.snapshot.name == last
    assert waiting(memory) == {".memkit/memory/new.md", DAY_19}
    memory.embedder.texts.clear()
    report = memory.sync()
    assert (report.added, report.embedded) == (0, 0)
    assert memory.embedder.texts == []
    assert waiting(memory) == set()
    assert ids(memory) == memory.contents().keys()
    with monkeypatch.context() as patch:
        patch.setattr(mirror, "Store", no_store)
        memory.sync()


def waiting(memory: Memory) -> set[str]:
    copied = read_copied(memory.snapshot.directory)
    assert copied is not None
    return set(copied.waiting)


def test_after_many_changes_it_is_written_again(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "LEAST_CHANGES", 8)
    identities = []
    for number in range(9):
        memory.write("new.md", NOTE.replace("zebra", f"zebra {number}"))
        memory.sync()
        identities.append(read_copied(memory.snapshot.directory).collection)  # type: ignore[union-attr]
    assert len(set(identities)) == 2
    assert ids(memory) == memory.contents().keys()


@pytest.mark.parametrize("record", [b"", b"{}", b'{"version": 2}', b"\xff", b'{"version": 1, "waiting": 3}', ENDLESS])
def test_an_unreadable_record_costs_a_copy(memory: Memory, tmp_path: Path, record: bytes) -> None:
    memory.write("new.md", NOTE)
    memory.sync(**LATER)
    (memory.snapshot.directory / COPIED).write_bytes(record)
    memory.embedder.texts.clear()
    memory.sync()
    assert memory.embedder.texts == []
    assert rows(memory) == rows(built_at_once(memory, tmp_path / "fresh"))


@pytest.mark.parametrize("damage", ["garbage", "cut", "no vectors", "file", "gone", "rows"])
def test_a_damaged_directory_is_written_again(memory: Memory, tmp_path: Path, damage: str) -> None:
    place = directory(memory)
    database = place / "chroma.sqlite3"
    if damage == "garbage":
        database.write_bytes(b"garbage" * 1000)
    elif damage == "cut":
        os.truncate(database, database.stat().st_size // 2)
    elif damage == "no vectors":
        for path in place.glob("*/*.bin"):
            path.write_bytes(b"\xff" * path.stat().st_size)
    elif damage == "rows":  # of another program
        client: Any = chromadb.PersistentClient(str(place))
        (collection,) = client.list_collections()
        collection.delete(ids=collection.get(limit=1)["ids"])
        collection.add(ids=["x"], embeddings=[[1.0] * 8], metadatas=[{"a": 1}])
        client.close()
    else:
        shutil.rmtree(place)
    if damage == "file":
        place.write_text("no directory")
    memory.write("new.md", NOTE)
    report = memory.sync(compare=damage in ("rows", "no vectors"))  # as `memkit doctor --fix` does
    assert report.embedded == 1
    assert rows(memory) == rows(built_at_once(memory, tmp_path / "fresh"))


def test_a_directory_that_ends_its_reader_is_written_again(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chroma maps its files into memory, so damage can kill the process, and does so only once."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    memory.write("new.md", NOTE)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(mirror, "Store", interrupted)
        memory.sync()
    (directory(memory) / "left").write_text("of the damage")
    memory.sync()
    assert not (directory(memory) / "left").exists()
    assert ids(memory) == memory.contents().keys()


def test_what_is_forgotten_is_gone_from_the_disk_at_once(memory: Memory) -> None:
    memory.write("new.md", NOTE)
    memory.sync()
    gone = next(row for row in memory.snapshot.rows() if row.chunk.source.endswith("new.md"))
    memory.path("new.md").unlink()
    memory.sync(**LATER)
    with index_lock(memory.home, 5.0):
        start_again(memory.home, "", memory.snapshot.directory.name)
    files = [path.read_bytes() for path in Path(memory.home.index).rglob("*") if path.is_file()]
    assert files
    assert gone.vectors is not None
    assert not any(gone.vectors.tobytes() in one for one in files)
    assert not any(gone.id.encode() in one for one in files)
    memory.sync()
    assert ids(memory) == memory.contents().keys()


def test_what_no_collection_has_is_removed(memory: Memory) -> None:
    chroma = Path(memory.home.index, "chroma")
    (chroma / "memkit-0123456789abcdef-fake-01234567").mkdir()
    (chroma / "chroma.sqlite3").write_text("as another version of memkit had it")
    remove_strays(memory.home)
    assert list(chroma.iterdir()) == [directory(memory)]


def test_other_content_of_a_chosen_directory_stays(tmp_path: Path) -> None:
    place = tmp_path / "shared"
    client: Any = chromadb.PersistentClient(str(place))
    client.create_collection("mine").add(ids=["a"], embeddings=[[1.0]], documents=["text"])
    client.close()
    memory = make_memory(tmp_path, DAYS, index={"uri": str(place)})
    memory.sync()
    memory.sync(rebuild=True)
    remove_strays(memory.home)
    assert (place / memory.snapshot.directory.name / "chroma.sqlite3").is_file()
    client = chromadb.PersistentClient(str(place))
    assert client.get_collection("mine").get()["documents"] == ["text"]
    client.close()


def test_a_chosen_directory_that_is_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    memory = make_memory(tmp_path, DAYS, index={"uri": str(tmp_path / "precious")})
    report = memory.sync()
    assert "precious" in report.away
    assert memory.search("which port").results
    assert (tmp_path / "precious").read_text() == "mine"


def test_interrupted_before_any_write(memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two passes that leave Chroma alone and one that does not, cut short at each step and run again."""
    writes = Writes()
    writes.limit(monkeypatch, Collection, "upsert", "delete")
    writes.limit(monkeypatch, update_module, "note_changed", "write_rows", "write_manifest")
    writes.limit(monkeypatch, mirror.Copied, "write")

    def play(tried: Memory) -> None:
        tried.write("new.md", NOTE)
        tried.path("2026-11-19.md").unlink(missing_ok=True)
        tried.sync(**LATER)
        tried.write("new.md", f"{NOTE}\n{NOTE.replace('uagga', 'uokka')}")
        tried.sync(**LATER)
        tried.sync()

    steps, stride, finished = 0, sized(4, 3, 1), False
    while not finished:
        place = tmp_path / f"step{steps}"
        shutil.copytree(memory.home.root, place / "home")
        shutil.copytree(memory.project.root, place / "project")
        # The collection is named after the project, so each trial has the same one.
        tried = Memory(Home(str(place / "home")), memory.project, FakeEmbedder())
        writes.left = stride * steps
        try:
            play(tried)
            finished = True
        except (KeyboardInterrupt, IndexStoreError):
            pass
        writes.left = 1000
        tried.sync(later=steps % 2 == 0)
        tried.sync()
        fresh = built_at_once(tried, place / "fresh")
        assert_same_index(tried.snapshot, fresh.snapshot)
        assert rows(tried) == rows(fresh)
        steps += 1
        shutil.rmtree(memory.project.root)
        shutil.copytree(place / "project", memory.project.root)
    assert steps * stride > 9


CHANGES = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 4), st.sampled_from(["later", "now", "none"])), max_size=8
)


@settings(deadline=None, max_examples=examples(20))
@given(changes=CHANGES)
def test_any_changes(tmp_path_factory: pytest.TempPathFactory, changes: list[Any]) -> None:
    place = tmp_path_factory.mktemp("changes")
    tried = make_memory(place, DAYS)
    tried.sync()
    for name, size, when in changes:
        if size:
            tried.write(f"{name}.md", "".join(NOTE.replace("uagga", f"uagga{n}") for n in range(size)))
        else:
            tried.path(f"{name}.md").unlink(missing_ok=True)
        if when == "none":
            without(tried)
        else:
            tried.sync(later=when == "later")
    tried.sync()
    fresh = built_at_once(tried, place / "fresh")
    assert_same_index(tried.snapshot, fresh.snapshot)
    assert rows(tried) == rows(fresh)
