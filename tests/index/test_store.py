"""Chunks in Chroma: rows come back unchanged, and a damaged index is rebuilt."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memkit.index.damage import in_use_marker, set_aside_if_damaged

from memkit.errors import IndexStoreError
from memkit.index import store as store_module
from memkit.index.chunker import chunk_markdown
from memkit.index.store import Row, Store, owner_of
from memkit.paths import Home
from memkit.settings import ChunkingSettings
from tests.ci import first, only_in_ci
from tests.memory import DAYS, FakeEmbedder, Memory, make_memory

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
    embedded = {row.id: row.vectors for row in expected if row.vectors is not None}
    found = store.vectors({name: len(vectors) for name, vectors in embedded.items()})
    assert found.keys() == embedded.keys()
    for name, vectors in embedded.items():
        assert np.array_equal(found[name], vectors)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(str(tmp_path / "home"))


def test_rows_come_back_as_they_went_in(home: Home) -> None:
    embedder = FakeEmbedder(window=50)
    rows = rows_of("\n".join(DAYS.values()), embedder)
    rows += rows_of("# Not embedded\n\n" + "text " * 50, None)
    assert max(row.windows for row in rows) > 2
    with Store(home, "", "memkit-test") as store:
        assert store.dimensions is None
        store.put(rows)
    with Store(home, "", "memkit-test") as store:
        assert_stored(store, rows)
        assert store.dimensions == 8
        assert store.count() == sum(row.windows for row in rows)


def test_rows_of_many_windows_need_no_more_than_a_batch_at_once(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "BATCH_ROWS", 7)
    rows = rows_of("\n".join(DAYS.values()), FakeEmbedder(window=7))
    assert max(row.windows for row in rows) > 14
    with Store(home, "", "memkit-test") as store:
        store.put(rows)
        assert_stored(store, rows)
        store.delete({row.id: row.windows for row in rows[1:]})
        assert_stored(store, rows[:1])


@only_in_ci
def test_a_chunk_of_more_windows_than_chroma_takes_at_once(home: Home) -> None:
    rows = rows_of("# One\n\n```\n" + "a line of code\n" * 4000 + "```\n", FakeEmbedder(window=10))
    assert max(row.windows for row in rows) > 5500
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
    for count in range(1, sum(row.windows for row in rows[:3])):
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
            whole = store.stored()
            assert_stored(store, [row for row in rows if row.id in whole])


def test_a_chunk_that_lost_a_window_counts_as_not_embedded(home: Home) -> None:
    rows = rows_of("\n".join(DAYS.values()), FakeEmbedder(window=50))
    with Store(home, "", "memkit-test") as store:
        store.put(rows)
        store._collection.delete(ids=[f"{rows[0].id}#1"])
        found = store.stored()
        assert found[rows[0].id]["windows"] == 0
        assert found[rows[1].id]["windows"] == rows[1].windows
        assert store.vectors({rows[0].id: rows[0].windows}) == {}


def test_placeholders_are_as_long_as_the_vectors_there_are(home: Home) -> None:
    with Store(home, "", "memkit-test") as store:
        store.put(rows_of(DAYS["2026-11-18.md"], FakeEmbedder(dimensions=12)))
        store.put(rows_of(DAYS["2026-11-19.md"], None))
        assert [one["windows"] for one in store.stored().values()].count(0) == 3


def test_an_emptied_collection_takes_vectors_of_another_length(home: Home) -> None:
    rows = rows_of(DAYS["2026-11-18.md"], None)
    with Store(home, "", "memkit-test") as store:
        store.put(rows)
        store.delete({row.id: row.windows for row in rows})
    rows = rows_of(DAYS["2026-11-18.md"], FakeEmbedder(dimensions=12))
    with Store(home, "", "memkit-test") as store:
        store.put(rows)
        assert_stored(store, rows)


def test_an_embedded_store_holds_no_text(home: Home) -> None:
    with Store(home, "", "memkit-test") as store:
        store.put(rows_of(DAYS["2026-11-18.md"], FakeEmbedder()))
        found = store._collection.get(include=["documents", "metadatas"])
    assert set(found["documents"]) == {None}
    assert {name for one in found["metadatas"] for name in one} == {
        "source", "session", "kind", "branch", "day", "text", "windows", "window",
    }  # fmt: skip
    words = b"7443"  # of an answer
    assert not any(words in path.read_bytes() for path in Path(home.index).rglob("*") if path.is_file())


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
        memory.sync()
        assert memory.contents() == expected
        with Store(memory.home, "", name) as store:
            assert_stored(store, memory.snapshot.rows())


def test_a_rewritten_collection_holds_the_same(home: Home) -> None:
    rows = rows_of("\n".join(DAYS.values()), FakeEmbedder(window=50))
    rows += rows_of("# Not embedded\n\n" + "text " * 50, None)
    with Store(home, "", "memkit-test") as store:
        store.put(rows)
        store.delete({row.id: row.windows for row in rows[:2]})
        before = store.identity
        store.rewrite()
        assert store.identity != before
        assert_stored(store, rows[2:])
        assert store.count() == sum(row.windows for row in rows[2:])


def test_files_are_private_and_the_marker_is_removed(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, DAYS)
    memory.sync()
    chroma = Path(memory.home.index, "chroma")
    assert chroma.stat().st_mode & 0o777 == 0o700
    assert not in_use_marker(chroma).exists()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Memory:
    memory = make_memory(tmp_path_factory.mktemp("small"), DAYS)
    memory.sync()
    return memory


def copy_of(sound: Memory, tmp_path: Path) -> Memory:
    """The same project with a home of its own."""
    shutil.copytree(sound.home.root, tmp_path / "home")
    return Memory(Home(str(tmp_path / "home")), sound.project, FakeEmbedder())


class NoEmbedder(FakeEmbedder):
    """Embeds nothing: each call costs money."""

    def embed(self, texts: Any, progress: Any = None) -> Any:
        raise AssertionError(f"{len(texts)} texts are embedded again")


class TestDamage:
    """An index that cannot be read is kept aside and comes back from the markdown."""

    @pytest.mark.parametrize("damage", first(5, ["garbage", "empty", "pages", "file", "foreign", "cut"]))
    def test_of_the_database(self, small: Memory, tmp_path: Path, damage: str) -> None:
        self.check(small, tmp_path, damage)

    @pytest.mark.parametrize("damage", first(1, ["vectors", "no vectors"]))
    def test_of_the_vectors(self, large: Memory, tmp_path: Path, damage: str) -> None:
        self.check(large, tmp_path, damage)

    def check(self, sound: Memory, tmp_path: Path, damage: str) -> None:
        memory = copy_of(sound, tmp_path)
        chroma = Path(memory.home.index, "chroma")
        do_damage(chroma, damage)
        if damage in ("pages", "no vectors", "vectors"):  # else nobody would look at them
            shutil.rmtree(Path(memory.home.index, "snapshots"))
        else:
            memory.embedder = NoEmbedder()  # the snapshot has all vectors
        memory.sync()
        memory.embedder = FakeEmbedder()
        assert memory.contents() == sound.contents()
        assert memory.answers(QUERIES) == sound.answers(QUERIES)
        if damage == "empty":  # a new and empty one has taken its place already
            return
        assert len(memory.said) == 1
        assert "chroma.damaged" in memory.said[0]
        assert "\n" not in memory.said[0]
        assert os.path.lexists(f"{chroma}.damaged")
        memory.embedder.texts.clear()
        memory.sync()
        assert memory.embedder.texts == []
        assert len(memory.said) == 1


def do_damage(chroma: Path, damage: str) -> None:
    database = chroma / "chroma.sqlite3"
    data = bytearray(database.read_bytes())
    if damage == "cut":
        database.write_bytes(data[: len(data) // 2])
    elif damage == "garbage":
        database.write_bytes(b"garbage" * 1000)
    elif damage == "empty":
        database.unlink()
    elif damage == "pages":
        for start in range(8192, len(data), 4096):
            data[start : start + 600] = b"\xff" * 600
        database.write_bytes(data)
    elif damage == "no vectors":
        for entry in chroma.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
    elif damage == "vectors":
        for path in chroma.glob("*/*.bin"):
            path.write_bytes(b"\xff" * path.stat().st_size)
    elif damage == "file":
        shutil.rmtree(chroma)
        chroma.write_text("not a directory")
    else:
        shutil.rmtree(chroma)
        chroma.mkdir()
        database.mkdir()


@only_in_ci
def test_an_index_that_kills_its_reader(tmp_path: Path, large: Memory) -> None:
    """Chroma maps its files into memory, and a truncated one ends the process."""
    memory = copy_of(large, tmp_path)
    chroma = Path(memory.home.index, "chroma")
    for path in chroma.glob("*/data_level0.bin"):
        os.truncate(path, path.stat().st_size // 2)
    in_use_marker(chroma).touch()  # as the process leaves it that is ended by opening it
    shutil.rmtree(Path(memory.home.index, "snapshots"))
    memory.sync()
    assert memory.contents() == large.contents()
    assert "is damaged" in memory.said[0]


def test_a_sound_index_of_a_killed_process_is_kept(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, DAYS)
    memory.sync()
    in_use_marker(Path(memory.home.index, "chroma")).touch()
    memory.embedder.texts.clear()
    memory.sync()
    assert memory.embedder.texts == []
    assert memory.said == []


def test_only_the_latest_damaged_copy_is_kept(tmp_path: Path) -> None:
    chroma = tmp_path / "chroma"
    said: list[str] = []
    for text in ("one", "two"):
        chroma.write_text(text)
        assert set_aside_if_damaged(chroma, True, said.append)
    assert (tmp_path / "chroma.damaged").read_text() == "two"
    chroma.mkdir()
    (chroma / "chroma.sqlite3").write_text("garbage")
    assert set_aside_if_damaged(chroma, True, said.append)
    assert (tmp_path / "chroma.damaged").is_dir()
    assert not set_aside_if_damaged(chroma, True, said.append)
    assert len(said) == 3


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_foreign_files_in_the_configured_directory_are_not_moved(tmp_path: Path, kind: str) -> None:
    """A mistaken `index.uri` costs nothing."""
    place = tmp_path / "precious"
    if kind == "file":
        place.write_text("mine")
    else:
        place.mkdir()
        (place / "chroma.sqlite3").write_text("no database")
        (place / "letter.txt").write_text("mine")
    memory = make_memory(tmp_path, DAYS, index={"uri": str(place)})
    with pytest.raises(IndexStoreError, match=r"precious.*index\.uri"):
        memory.sync()
    kept = place if kind == "file" else place / "letter.txt"
    assert kept.read_text() == "mine"


def test_a_damaged_index_in_the_configured_directory_is_rebuilt(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, DAYS, index={"uri": str(tmp_path / "elsewhere")})
    memory.sync()
    expected = memory.contents()
    (tmp_path / "elsewhere" / "chroma.sqlite3").write_text("garbage")
    memory.sync()
    assert memory.contents() == expected
    assert (tmp_path / "elsewhere.damaged").is_dir()


@pytest.mark.parametrize("text", ["", "not an id", "\xff"])
def test_a_damaged_id_of_the_home_is_not_replaced(tmp_path: Path, text: str) -> None:
    home = Home(str(tmp_path))
    Path(home.owner).write_text(text, encoding="latin-1")
    with pytest.raises(IndexStoreError, match="owner"):
        owner_of(home)
    assert Path(home.owner).read_text(encoding="latin-1") == text
