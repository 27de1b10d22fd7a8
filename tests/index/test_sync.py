"""The index follows the Markdown at the least cost, and always ends in the same state."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from chromadb.api.models.Collection import Collection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memkit.embedding import Embedder, weights
from memkit.embedding.weights import SourceError
from memkit.index import Indexer, index_lock, is_up_to_date, memory_files, read_files
from memkit.index import store as store_module
from memkit.index import update as update_module
from memkit.index.catalog import collection_name
from memkit.index.snapshot import Snapshot
from memkit.index.store import Store
from memkit.ipc import unindexed
from memkit.paths import Home
from memkit.search.ranking import Searcher
from memkit.search.results import SearchRequest
from memkit.settings.load import Settings
from tests.ci import AT_NIGHT, IN_CI, only_in_ci, sized
from tests.index.parts import Writes
from tests.index.same import assert_same_index
from tests.memory import DAYS, CountingEmbedder, FakeEmbedder, Memory, make_memory

REPOSITORY = Path(__file__).resolve().parents[2]
QUERIES = ["which port", "PolicyController", "secrets in the vault", "nothing of the kind"]

LONG = "\n\n".join(f"# Part {n}\n\n" + f"Sentence {n} about topic{n}. " * 12 for n in range(5))


@pytest.fixture(scope="session")
def model(request: pytest.FixtureRequest) -> Embedder:
    """The real model in CI; loading it takes seconds."""
    return request.getfixturevalue("real_embedder") if IN_CI else FakeEmbedder(384)


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no file to settle: on a busy machine that would happen between two passes."""
    monkeypatch.setattr(memory_files, "RACY_NS", -1)


@pytest.fixture
def embedder(model: Embedder) -> CountingEmbedder:
    return CountingEmbedder(model)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of all rows that Chroma is told to change, deletions included."""
    ids: list[str] = []
    for name in ("add", "upsert", "update", "delete"):
        original = getattr(Collection, name)

        def note(self: Collection, *, ids_of: Any = original, **arguments: Any) -> Any:
            ids.extend(arguments["ids"])
            return ids_of(self, **arguments)

        monkeypatch.setattr(Collection, name, note)
    return ids


def test_an_unchanged_tree_costs_nothing(tmp_path: Path, embedder: CountingEmbedder, written: list[str]) -> None:
    memory = make_memory(tmp_path, {**DAYS, "notes.md": LONG}, embedder=embedder)
    first = memory.sync()
    assert first.added == first.embedded == first.chunks > 6
    assert embedder.texts
    embedder.texts.clear()
    written.clear()
    before = memory.snapshot.name
    second = memory.sync()
    assert embedder.texts == []
    assert written == []
    assert memory.snapshot.name == before
    assert (second.chunks, second.added, second.deleted, second.embedded) == (first.chunks, 0, 0, 0)
    for path in Path(memory.project.memory).iterdir():  # as git checkout or a copy does
        os.utime(path)
    memory.sync()
    assert embedder.texts == written == []


@pytest.mark.parametrize(("text", "deleted"), [
    (LONG.replace("Sentence 3 about topic3.", "Phrase 3 about topic3.", 1), 1),
    (LONG + "\n\n# Part 9\n\n" + "A new phrase. " * 20, 0),
])  # fmt: skip
def test_one_paragraph_costs_one_chunk(tmp_path: Path, written: list[str], text: str, deleted: int) -> None:
    memory = make_memory(tmp_path, {"notes.md": LONG})
    memory.sync()
    memory.embedder.texts.clear()
    written.clear()
    memory.write("notes.md", text)
    report = memory.sync()
    assert (report.added, report.deleted, report.embedded) == (1, deleted, 1)
    assert (len(memory.embedder.texts), len(written)) == (1, 1 + deleted)
    assert "hrase" in memory.search("phrase").results[0].chunk.content


def test_a_deleted_file_is_gone(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, DAYS)
    memory.sync()
    memory.path("2026-11-19.md").unlink()
    assert memory.sync().deleted == 3
    sources = {row.chunk.source for row in memory.snapshot.rows()}
    assert sources == {f".memkit/memory/{name}" for name in ("2026-11-18.md", "2026-11-20.md")}
    assert rows_in_chroma(memory) == sorted(row.id for row in memory.snapshot.rows())
    assert memory.search("PolicyController").results[0].lexical == 0
    shutil.rmtree(memory.project.memory)
    assert memory.sync().chunks == 0
    assert memory.search("which port").results == []
    before = memory.snapshot.name
    assert memory.sync().chunks == 0
    assert memory.snapshot.name == before


@pytest.mark.parametrize("change", ["lines before", "another file", "renamed", "copied"])
def test_moved_text_keeps_its_vectors(tmp_path: Path, change: str) -> None:
    memory = make_memory(tmp_path, {"notes.md": LONG})
    memory.sync()
    vectors = vectors_of(memory)
    memory.embedder.texts.clear()
    if change == "lines before":
        memory.write("notes.md", "\n\n\n\n" + LONG)
    elif change == "another file":
        first, _, rest = LONG.partition("# Part 1")
        memory.write("moved.md", "# Part 1" + rest)
        memory.write("notes.md", first)
    else:
        memory.write("moved.md", LONG)
        if change == "renamed":
            memory.path("notes.md").unlink()
    report = memory.sync()
    assert memory.embedder.texts == []
    assert report.added > 0
    assert vectors_of(memory) == vectors


def vectors_of(memory: Memory) -> set[tuple[str, bytes]]:
    return {(row.chunk.content, row.vectors.tobytes()) for row in memory.snapshot.rows() if row.vectors is not None}


def test_a_new_heading_above_is_embedded_again(tmp_path: Path) -> None:
    """The id stays, but the breadcrumb is a part of what is embedded."""
    text = "# Old\n\n" + "words here " * 12 + "\n\n## Inner\n\n" + "text " * 600 + "\n"
    memory = make_memory(tmp_path, {"notes.md": text}, embedder=FakeEmbedder(window=500))
    memory.sync()
    before = set(memory.contents())
    memory.write("notes.md", text.replace("# Old", "# New"))
    memory.sync()
    assert len(before & set(memory.contents())) > 0
    fresh = make_memory(tmp_path / "fresh", embedder=FakeEmbedder(window=500))
    fresh.project = memory.project
    fresh.sync()
    assert memory.contents() == fresh.contents()
    shutil.rmtree(Path(memory.home.index, "snapshots"))
    memory.sync()
    assert memory.contents() == fresh.contents()


def test_a_deleted_index_comes_back_equal(tmp_path: Path, embedder: CountingEmbedder) -> None:
    memory = make_memory(tmp_path, {**DAYS, "notes.md": LONG}, embedder=embedder)
    memory.sync()
    contents, answers = memory.contents(), memory.answers(QUERIES)
    assert all(answers)
    shutil.rmtree(memory.home.index)
    memory.sync()
    assert (memory.contents(), memory.answers(QUERIES)) == (contents, answers)
    shutil.rmtree(Path(memory.home.index, "snapshots"))
    memory.sync()
    assert memory.contents() == contents
    memory.sync(rebuild=True)
    assert (memory.contents(), memory.answers(QUERIES)) == (contents, answers)
    embedder.texts.clear()
    memory.sync(rebuild=True, keep_vectors=True)
    assert embedder.texts == []
    assert memory.contents() == contents


NAMES = st.sampled_from(["a.md", "b.md", "deep/c.md"])
PARAGRAPHS = st.sampled_from(
    [
        "# Title\n",
        "## Same heading <!-- session:s1 -->\n",
        "## Same heading <!-- session:s2 branch:b -->\n",
        "### 09:00 A turn <!-- turn:abcd -->\n",
        "short\n",
        "the gateway listens on port 7443 because the ingress has taken the other one " * 3 + "\n",
        "PolicyController raised ERR_404 when a route was renamed by the migration " * 3 + "\n",
        "```\n# code, no heading\nx = 1\n```\n",
        "long " * 500 + "\n",
    ]
)
EDITS = st.lists(st.tuples(NAMES, st.none() | st.lists(PARAGRAPHS, max_size=6)), min_size=1, max_size=4)


@settings(max_examples=sized(3, 5, 20), suppress_health_check=list(HealthCheck))
@given(steps=st.lists(EDITS, min_size=1, max_size=4))
def test_step_by_step_is_the_same_as_at_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[list[tuple[str, list[str] | None]]]
) -> None:
    root = tmp_path_factory.mktemp("steps")
    memory = make_memory(root)
    for edits in steps:
        for name, paragraphs in edits:
            if paragraphs is not None:
                memory.write(name, "\n".join(paragraphs))
            elif memory.path(name).exists():
                memory.path(name).unlink()
        memory.sync()
    fresh = Memory(Home(str(root / "fresh")), memory.project, FakeEmbedder())
    fresh.sync()
    assert memory.contents() == fresh.contents()
    assert_same_index(memory.snapshot, fresh.snapshot)
    queries = ["port", "PolicyController", "route ERR_404", "gateway", "a turn", "long"]
    assert memory.answers(queries) == fresh.answers(queries)


def test_an_indexer_that_stays_open_does_the_same(tmp_path: Path) -> None:
    """One that stays open sees what others do to the files, and harms no one who reads meanwhile."""
    memory = make_memory(tmp_path, {"notes.md": LONG})
    with index_lock(memory.home, 5.0):
        indexer = Indexer(
            memory.project, memory.home, memory.settings, find_embedder=lambda: (memory.embedder, "")
        )
        assert indexer.snapshot() is None
        indexer.sync()
        first = indexer.snapshot()
        assert first is not None
        assert indexer.snapshot() is first
        searcher = Searcher([first], memory.settings.search, memory.embedder)
        before = searcher.answer(SearchRequest("topic3", minimum=0.0)).results
        memory.write("new.md", "# New\n\nthe quagga " * 20)
        memory.write("notes.md", LONG.replace("topic3", "theme3"))
        assert indexer.sync().embedded == 2
        assert indexer.snapshot() is not first
        assert memory.search("quagga").results[0].chunk.source.endswith("new.md")
        assert searcher.answer(SearchRequest("topic3", minimum=0.0)).results == before
        assert indexer.sync().added == 0
        assert indexer.sync(rebuild=True).embedded == 6


def rows_in_chroma(memory: Memory) -> list[str]:
    name = collection_name(memory.project, memory.home, memory.settings.embedding.model)
    with Store(memory.home, "", name) as store:
        found: list[str] = store._collection.get(include=[])["ids"]
    return sorted(found)


@only_in_ci
def test_interrupted_before_any_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Additions, deletions, moves and replaced windows, cut short at each step and run again."""
    monkeypatch.setattr(store_module, "BATCH_ROWS", 5)
    monkeypatch.setattr(update_module, "BATCH_CHUNKS", 2)
    long = "# A very long heading of this section\n\nintroduction " + "of words " * 20
    long += "\n\n## Inner\n\n" + "text of several windows " * 30
    memory = make_memory(tmp_path, {**DAYS, "moved.md": LONG, "long.md": long})
    memory.embedder.window = 100
    memory.sync()
    memory.write("new.md", LONG.replace("topic", "theme"))
    memory.write("moved.md", f"\n\n{LONG}")
    memory.write("long.md", long.replace("# A very long heading of this section", "# Short"))
    memory.path("2026-11-19.md").unlink()
    fresh = Memory(Home(str(tmp_path / "fresh")), memory.project, FakeEmbedder(window=100))
    fresh.sync()
    expected, rows = fresh.contents(), rows_in_chroma(fresh)

    writes = Writes()
    writes.limit(monkeypatch, Collection, "upsert", "update", "delete")
    writes.limit(monkeypatch, update_module, "note_changed", "write_rows", "write_manifest")
    interruptions, step, finished = 0, sized(4, 4, 1), False
    while not finished:
        home = Home(str(tmp_path / f"home{interruptions}"))
        shutil.copytree(memory.home.root, home.root)
        tried = Memory(home, memory.project, FakeEmbedder(window=100))
        writes.left = step * interruptions
        try:
            tried.sync()
            finished = True
        except KeyboardInterrupt:
            interruptions += 1
            writes.left = 1000
            tried.sync()
        assert tried.contents() == expected
        assert rows_in_chroma(tried) == rows
    assert interruptions * step > 20


@only_in_ci
def test_killed_at_any_moment(tmp_path: Path, model_home: Home) -> None:
    sections = (f"# Section {n}\n\n" + f"Fact {n} is number{n}. " * 8 for n in range(60))
    memory = make_memory(tmp_path, {"notes.md": "\n\n".join(sections)}, models=model_home.models)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MEMKIT")}
    environment |= {"MEMKIT_HOME": memory.home.root, "PYTHONPATH": str(REPOSITORY)}
    if not AT_NIGHT:  # loading the model takes most of the time
        environment["MEMKIT_EMBEDDING_PROVIDER"] = "none"
    command = [sys.executable, "-m", "memkit", "index", "--json"]

    def run(seconds: float) -> None:
        process = subprocess.Popen(
            command, cwd=memory.project.root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            _, errors = process.communicate(timeout=seconds)
            assert (process.returncode, errors) == (0, b"")
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            assert seconds < 300

    started = time.monotonic()
    run(300)
    seconds = time.monotonic() - started
    contents, answers = memory.contents(), memory.answers(QUERIES)
    assert len(contents) == 60
    shutil.rmtree(memory.home.index)
    moments = random.Random(7)
    for _ in range(sized(1, 1, 4)):
        run(moments.uniform(0.4, 1.0) * seconds)
    run(300)
    assert memory.contents() == contents
    assert memory.answers(QUERIES) == answers


@pytest.fixture
def no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """No source on this machine has the weights."""

    def missing() -> Path:
        raise SourceError("not here")

    monkeypatch.setattr(weights, "installed_package", missing)


@pytest.mark.usefixtures("no_weights")
def test_without_and_with_weights(tmp_path: Path, embedder: CountingEmbedder, written: list[str]) -> None:
    memory = make_memory(tmp_path, DAYS, embedding={"download": False})
    report = memory.sync(embedder=None)
    assert report.missing == report.chunks == 6
    assert report.embedded == 0
    assert "all-MiniLM-L6-v2" in report.degraded
    ids = list(memory.contents())
    assert memory.search("which port").results[0].dense is None

    written.clear()
    snapshot = memory.snapshot.name
    assert memory.sync(embedder=None).missing == 6  # nothing is written again and again
    assert written == []
    assert memory.snapshot.name == snapshot

    report = memory.sync(embedder=embedder)
    assert (report.missing, report.embedded, report.added) == (0, 6, 0)
    assert list(memory.contents()) == ids
    fresh = make_memory(tmp_path / "fresh", embedder=embedder)
    fresh.project = memory.project
    fresh.sync()
    assert memory.contents() == fresh.contents()


def test_what_waits_for_a_model_is_not_read_in_vain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = make_memory(tmp_path, DAYS, embedding={"provider": "none"})
    memory.sync(embedder=None)
    read: list[str] = []
    rows_of = Snapshot.rows_of
    monkeypatch.setattr(Snapshot, "rows_of", lambda self, name: read.append(name) or rows_of(self, name))
    memory.write("2026-11-20.md", memory.path("2026-11-20.md").read_text() + "\nOne more line.\n")
    report = memory.sync(embedder=None)
    assert report.missing == report.chunks
    assert {name.rpartition("/")[2] for name in read} == {"2026-11-20.md"}
    report = memory.sync()
    assert (report.missing, report.embedded) == (0, report.chunks)
    memory.sync(compare=True)
    fresh = make_memory(tmp_path / "fresh", embedder=memory.embedder)
    fresh.project = memory.project
    fresh.sync()
    assert memory.contents() == fresh.contents()


@pytest.mark.parametrize("before", [True, False])
def test_no_provider_with_vectors_of_another_length(tmp_path: Path, before: bool) -> None:
    """Placeholders go with vectors of any model, whichever came first."""
    memory = make_memory(tmp_path, DAYS, embedding={"provider": "none"})
    memory.embedder = FakeEmbedder(dimensions=12)
    if before:
        memory.sync()
    memory.write("new.md", LONG)
    report = memory.sync(embedder=None)
    assert report.missing == (5 if before else 11)
    assert report.degraded == "embedding.provider is none"
    memory.embedder.texts.clear()
    assert memory.sync().missing == 0
    assert len(memory.embedder.texts) == report.missing
    memory.write("newer.md", "# Newer\n\n" + "and more " * 20)
    memory.sync()
    assert all(row.vectors is not None for row in memory.snapshot.rows())


def test_vectors_of_another_length_are_replaced(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, DAYS)
    memory.sync()
    memory.write("new.md", LONG)
    memory.embedder = FakeEmbedder(dimensions=12)
    assert memory.sync().embedded == 11
    assert {row.vectors.shape[1] for row in memory.snapshot.rows() if row.vectors is not None} == {12}


def test_every_model_has_a_collection(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, DAYS)
    models = [
        "org/paraphrase-multilingual-MiniLM-L12-v2", "org/paraphrase-multilingual-mpnet-base-v2", "org/model", "org-model",
    ]  # fmt: skip
    assert len({collection_name(memory.project, memory.home, model) for model in models}) == 4
    for model in models[2:]:
        memory.settings = msgspec.convert({"embedding": {"model": model}}, Settings)
        memory.embedder.texts.clear()
        memory.sync()
        assert len(memory.embedder.texts) == 6


def test_other_chunk_settings_chunk_again(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, {"notes.md": LONG})
    memory.sync()
    contents = memory.contents()
    usual, memory.settings = memory.settings, msgspec.convert(
        {"chunking": {"max_characters": 200, "min_characters": 20, "overlap_lines": 0}}, Settings
    )
    files = read_files(memory.project, memory.home, memory.settings)
    assert not is_up_to_date(memory.snapshot, files, memory.settings)
    memory.sync()
    assert is_up_to_date(memory.snapshot, files, memory.settings)
    assert len(memory.contents()) > len(contents)
    assert max(memory.snapshot.columns["length"]) <= 200
    memory.settings = usual
    memory.sync()
    assert memory.contents() == contents


def test_another_language_costs_no_embedding(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, {"notes.md": "# Häuser\n\n" + "Die Häuser waren alt. " * 9})
    memory.sync()
    memory.embedder.texts.clear()
    memory.settings = msgspec.convert({"search": {"language": "german"}}, Settings)
    memory.sync()
    assert memory.embedder.texts == []
    assert memory.search("Haus alte").results[0].lexical > 0


def test_invalid_utf8_is_counted(tmp_path: Path) -> None:
    memory = make_memory(tmp_path)
    memory.write("latin.md", b"# Caf\xe9\n\n" + b"cr\xe8me " * 20)
    memory.write("fine.md", "# Café \ufffd\n")
    report = memory.sync()
    assert report.replaced == {".memkit/memory/latin.md": 21}
    assert memory.search("caf").results


def test_two_projects_in_one_home(tmp_path: Path) -> None:
    one = make_memory(tmp_path / "one", {"notes.md": LONG}, home=Home(str(tmp_path / "home")))
    two = make_memory(tmp_path / "two", DAYS, home=one.home)
    one.sync()
    expected = one.contents()
    two.sync()
    assert one.contents() == expected
    assert len(two.contents()) == 6
    two.sync(rebuild=True)
    one.embedder.texts.clear()
    one.sync()
    assert one.embedder.texts == []
    assert one.contents() == expected


class Failing(FakeEmbedder):
    def embed(self, texts: Any, progress: Any = None) -> Any:
        raise RuntimeError("killed")


def test_the_unindexed_mark_stays_until_the_index_is_up_to_date(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, DAYS)
    unindexed.mark(memory.home, memory.project.root)
    unindexed.mark(memory.home, "/another/project")
    with pytest.raises(RuntimeError):
        memory.sync(embedder=Failing())
    assert sorted(unindexed.roots(memory.home)) == sorted([memory.project.root, "/another/project"])
    memory.sync()
    assert unindexed.roots(memory.home) == ["/another/project"]
