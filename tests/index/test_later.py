"""Small changes reach an embedded Chroma later, and nothing depends on when."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import chromadb
import msgspec
import pytest
from chromadb.api.models.Collection import Collection
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.doctor import Subject
from memkit.doctor.index import check_store
from memkit.embedding import local
from memkit.errors import IndexStoreError
from memkit.index import SyncReport, index_lock, outbox, sync_project
from memkit.index import sync as sync_module
from memkit.index import update as update_module
from memkit.index.catalog import collection_name
from memkit.index.outbox import UNSENT, read_unsent
from memkit.index.store import Store
from memkit.paths import Home
from memkit.settings.load import Settings
from tests.index.same import assert_same_index
from tests.memory import DAYS, FakeEmbedder, Memory, make_memory

NOTE = "# Quagga\n\n" + "The quagga was a zebra of the south. " * 12 + "\n"
LATER = {"later": True}
ENDLESS = b'{"version": 1, "sources": ["a"], "changes": 1e999, "rows": 0}'
DAY_19 = ".memkit/memory/2026-11-19.md"


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """An indexed one."""
    memory = make_memory(tmp_path, DAYS)
    memory.sync()
    return memory


def rows(memory: Memory) -> dict[str, tuple[Any, bytes]]:
    """The rows of Chroma by id: metadata and vector, to the bit."""
    name = collection_name(memory.project, memory.home, memory.settings.embedding.model)
    with Store(memory.home, "", name) as store:
        found: Any = store._collection.get(include=["metadatas", "embeddings"])
    return {
        id: (metadata, vector.tobytes())
        for id, metadata, vector in zip(
            found["ids"], found["metadatas"], found["embeddings"], strict=True
        )
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


def test_a_turn_is_found_without_chroma(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sync_module, "Store", no_store)
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
    assert read_unsent(memory.snapshot.directory).sources == {".memkit/memory/new.md", DAY_19}
    memory.embedder.texts.clear()
    report = memory.sync()
    assert (report.added, report.embedded) == (0, 0)
    assert memory.embedder.texts == []
    assert not (memory.snapshot.directory / UNSENT).exists()
    assert ids(memory) == memory.contents().keys()


def test_it_is_one_pass_for_many_changes(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync_module, "MOST_CHANGES", 3)
    before = rows(memory)
    for number in range(3):
        memory.write(f"{number}.md", NOTE.replace("zebra", f"zebra {number}"))
        memory.sync(**LATER)
    assert rows(memory) == before
    memory.write("4.md", NOTE)
    memory.sync(**LATER)
    assert ids(memory) == memory.contents().keys() > before.keys()
    assert read_unsent(memory.snapshot.directory) == outbox.Unsent()


def test_much_to_embed_is_kept_in_chroma_batch_by_batch(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(update_module, "BATCH_CHUNKS", 2)
    memory.write("new.md", "".join(NOTE.replace("uagga", f"uagga{n}") for n in range(3)))
    assert memory.sync(**LATER).embedded == 3
    assert ids(memory) == memory.contents().keys()


def test_the_first_vectors_go_to_chroma_at_once(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, DAYS)
    without(memory)
    memory.write("new.md", NOTE)
    assert without(memory).missing == len(memory.contents())
    assert len(ids(memory)) == len(memory.contents()) - 1
    assert memory.sync(later=True).embedded == len(memory.contents())
    assert rows(memory) == rows(built_at_once(memory, tmp_path / "fresh"))


@pytest.mark.parametrize("record", [b"", b"{}", b'{"version": 2}', b"\xff", b'{"version": 1, "sources": 3}', ENDLESS])
def test_an_unreadable_record_costs_a_comparison(memory: Memory, tmp_path: Path, record: bytes) -> None:
    memory.write("new.md", NOTE)
    memory.sync(**LATER)
    (memory.snapshot.directory / UNSENT).write_bytes(record)
    memory.embedder.texts.clear()
    memory.sync(**LATER)
    assert memory.embedder.texts == []
    assert rows(memory) == rows(built_at_once(memory, tmp_path / "fresh"))


def test_rows_that_another_program_removed_come_back(memory: Memory, tmp_path: Path) -> None:
    memory.write("new.md", NOTE)
    memory.sync(**LATER)
    client: Any = chromadb.PersistentClient(f"{memory.home.index}/chroma")
    (collection,) = client.list_collections()
    collection.delete(ids=collection.get(limit=1)["ids"])
    client.close()
    memory.sync()
    assert rows(memory) == rows(built_at_once(memory, tmp_path / "fresh"))


def test_doctor_knows_what_waits(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "DIMENSIONS", memory.embedder.dimensions)
    subject = Subject(memory.home, memory.project, time.time(), memory.settings)
    memory.write("new.md", NOTE)
    memory.path("2026-11-19.md").unlink()
    memory.sync(**LATER)
    assert list(check_store(subject)) == []
    own = next(row.id for row in memory.snapshot.rows() if row.chunk.source.endswith("18.md"))
    name = collection_name(memory.project, memory.home, memory.settings.embedding.model)
    with Store(memory.home, "", name) as store:
        store.delete({own: 1})
    (finding,) = check_store(subject)
    assert "differs from the index in 1 chunk" in finding.what


def test_interrupted_before_any_write(memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two passes that leave Chroma alone and one that does not, cut short at each step and run again."""
    left: list[None] = []  # writes that may still happen; empty: the next one does not

    def limited(original: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            if not left:
                raise KeyboardInterrupt
            left.pop()
            return original(*arguments, **options)

        return call

    for name in ("upsert", "delete"):
        monkeypatch.setattr(Collection, name, limited(getattr(Collection, name)))
    for name in ("mark_started", "write_rows", "write_unsent", "write_manifest"):
        monkeypatch.setattr(update_module, name, limited(getattr(update_module, name)))

    def play(tried: Memory) -> None:
        tried.write("new.md", NOTE)
        tried.path("2026-11-19.md").unlink(missing_ok=True)
        tried.sync(**LATER)
        tried.write("new.md", f"{NOTE}\n{NOTE.replace('uagga', 'uokka')}")
        tried.sync(**LATER)
        tried.sync()

    steps, finished = 0, False
    while not finished:
        place = tmp_path / f"step{steps}"
        shutil.copytree(memory.home.root, place / "home")
        shutil.copytree(memory.project.root, place / "project")
        # The collection is named after the project, so each trial has the same one.
        tried = Memory(Home(str(place / "home")), memory.project, FakeEmbedder())
        left[:] = [None] * steps
        try:
            play(tried)
            finished = True
        except (KeyboardInterrupt, IndexStoreError):
            pass
        left[:] = [None] * 1000
        tried.sync(later=steps % 2 == 0)
        tried.sync()
        fresh = built_at_once(tried, place / "fresh")
        assert_same_index(tried.snapshot, fresh.snapshot)
        assert rows(tried) == rows(fresh)
        steps += 1
        shutil.rmtree(memory.project.root)
        shutil.copytree(place / "project", memory.project.root)
    assert steps > 9


CHANGES = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 4), st.sampled_from(["later", "now", "none"])), max_size=8
)


@settings(deadline=None, max_examples=20)
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
