"""A question in, ranked chunks out; whatever the question, and whatever happens to the index."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.embedding import Embedder
from memkit.errors import EmbeddingError, IndexBusyError, IndexStoreError
from memkit.index import index_lock, sync
from memkit.paths import Home
from memkit.search import ranking as search_module
from memkit.search.ranking import Searcher, open_searcher
from memkit.search.results import SearchRequest
from memkit.settings.load import Settings
from tests.ci import IN_CI, examples
from tests.memory import DAYS, Memory, day, make_memory
from tests.search.corpora import embedded

MODES = ("context", "lexical", "dense")


@pytest.fixture(scope="module")
def searcher(tmp_path_factory: pytest.TempPathFactory, real_embedder: Embedder) -> Searcher:
    """Over three days of memory, with the real model."""
    root = tmp_path_factory.mktemp("searched")
    memory = embedded(root, DAYS, real_embedder)
    return Searcher([memory.snapshot], memory.settings.search, real_embedder)


def in_mode(searcher: Searcher, mode: str, **options: object) -> Searcher:
    chosen = msgspec.convert({"search": {"mode": mode, **options}}, Settings).search
    return Searcher(searcher.corpus, chosen, searcher.embedder)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("query", "heading"),
    [
        ("which port does the staging gateway use", "staging gateway"),
        ("PolicyController", "login page"),
        ("ERR_404", "login page"),
        ("compilation takes forever overnight", "nightly build"),  # in other words
    ],
)
def test_the_answer_is_first(searcher: Searcher, mode: str, query: str, heading: str) -> None:
    answer = in_mode(searcher, mode).search(query, 50)
    assert answer.mode == mode
    if mode != "lexical" or heading != "nightly build":
        assert heading in answer.results[0].chunk.heading
    found = [result.score for result in answer.results]
    assert found == sorted(found, reverse=True)
    assert all(score > 0 for score in found)
    if " " in query:  # what holds a name is raised
        assert found == [getattr(result, mode) for result in answer.results]


def test_the_number_of_results(searcher: Searcher) -> None:
    query = "the service and the gateway"
    assert len(searcher.answer(SearchRequest(query, minimum=0)).results) == 5
    assert len(in_mode(searcher, "context", k=2).search(query).results) == 2
    everything = [result.id for result in searcher.search(query, 1000).results]
    assert [result.id for result in searcher.search(query, 3).results] == everything[:3]


@pytest.mark.parametrize("query", ["", " ", "\n\t\u3000", "?!…", "xyzzy", "the of and", "的"])
def test_an_empty_question_and_unknown_words_find_nothing(searcher: Searcher, query: str) -> None:
    for mode in MODES if not query.strip() else ["lexical"]:
        assert in_mode(searcher, mode).search(query).results == []


@pytest.mark.parametrize(
    "query",
    [
        "--help", "-k 3", "'; DROP TABLE embeddings; --", "(.*)+$ [a-z]{2,", '{"query": "port", "$ne": 1}',
        "%s %n {0} {query}", "../../etc/passwd\x00", "\ud800 lone", "Wo läuft der 端口 😀 שער", "e\u0301" * 100,
        "port " * 20_000, "x" * 100_000, "\u202eport",
    ],
    ids=range(13),
)  # fmt: skip
def test_any_text_is_a_question(searcher: Searcher, query: str) -> None:
    for mode in MODES if IN_CI or len(query) < 1000 else MODES[:1]:
        answer = in_mode(searcher, mode).search(query)
        assert answer.query == query
        assert len(answer.results) <= 5


@settings(max_examples=examples(60))
@given(query=st.text(max_size=60))
def test_every_text_is_a_question(searcher: Searcher, query: str) -> None:
    for mode in MODES:
        results = in_mode(searcher, mode).search(query, 100).results
        assert len(results) <= 6
        assert len({result.id for result in results}) == len(results)


def test_the_shape_of_an_answer(searcher: Searcher) -> None:
    value = searcher.search("ERR_404", 1).as_dict()
    assert list(value) == ["query", "mode", "degraded", "took_ms", "best_relevance", "chunks", "results"]
    assert (value["query"], value["mode"], value["degraded"]) == ("ERR_404", "context", False)
    result = value["results"][0]
    assert list(result) == [
        "id", "chunk_id", "score", "relevance", "project", "root", "source", "start_line", "end_line", "heading",
        "breadcrumb", "kind", "date", "session", "turns", "citations", "branch", "content", "node", "merged",
        "scores",
    ]  # fmt: skip
    assert list(result["scores"]) == ["lexical", "dense", "context"]
    assert result["source"] == ".memkit/memory/2026-11-19.md"
    assert result["date"] == "2026-11-19"
    assert result["session"] == "5e550002"
    assert result["branch"] == "main"
    assert result["kind"] == "turn"
    assert len(result["turns"]) == 1
    assert result["breadcrumb"].startswith("2026-11-19 > 09:00 Work > 09:02")
    assert [result["id"]] == result["turns"]
    assert len(result["chunk_id"]) == 12
    assert "<!--" not in result["content"]


def opened(memory: Memory, **options: object) -> Searcher:
    return open_searcher(memory.project, memory.home, memory.settings, memory.said.append)


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Memory:
    memory = make_memory(tmp_path, DAYS)
    monkeypatch.setattr(search_module, "WAIT_SECONDS", 0.1)
    monkeypatch.setattr("memkit.embedding.load_embedder", lambda *_: memory.embedder)
    return memory


def test_edits_are_found(memory: Memory, real_embedder: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memkit.embedding.load_embedder", lambda *_: real_embedder)
    assert "gateway" in opened(memory).search("staging port").results[0].chunk.heading
    memory.write("notes.md", "# Zebra\n\n" + "The zebra crossing is painted on Tuesdays. " * 4)
    assert opened(memory).search("zebra").results[0].chunk.heading == "Zebra"
    memory.path("notes.md").unlink()
    assert opened(memory).answer(SearchRequest("zebra", minimum=0)).results[0].chunk.heading != "Zebra"
    assert opened(memory).search("zebra").results == []
    assert memory.said == []


def test_no_memory_and_no_provider_are_no_defects(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, embedding={"provider": "none"})
    answer = opened(memory).search("anything")
    assert (answer.results, answer.degraded) == ([], "")
    assert not Path(memory.home.root).exists()
    memory.write("2026-11-17.md", "\n")
    assert opened(memory).search("anything").results == []
    memory.write("2026-11-19.md", DAYS["2026-11-19.md"])
    answer = opened(memory).search("PolicyController")
    assert (answer.degraded, answer.results[0].dense) == ("", None)


class HoldingTheLock:
    """Another one at work on the index."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.held, self.leave = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._hold)

    def _hold(self) -> None:
        with index_lock(self.home, 10):
            self.held.set()
            self.leave.wait(60)

    def __enter__(self) -> HoldingTheLock:
        self.thread.start()
        assert self.held.wait(10)
        return self

    def __exit__(self, *exception: object) -> None:
        self.leave.set()
        self.thread.join()


def test_while_another_process_has_the_index(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "FIRST_WAIT_SECONDS", 0.1)
    with HoldingTheLock(memory.home), pytest.raises(IndexBusyError):  # there is nothing to answer from yet
        opened(memory)
    memory.said.clear()
    opened(memory)
    with HoldingTheLock(memory.home):  # a current index needs no lock
        answer = opened(memory).search("staging port")
    assert answer.results and answer.degraded == ""
    memory.write("notes.md", "# Zebra\n\n" + "The zebra crossing is painted on Tuesdays. " * 4)
    with HoldingTheLock(memory.home):
        answer = opened(memory).search("staging port")
    assert "gateway" in answer.results[0].chunk.heading
    assert "newest entries may be missing" in answer.degraded
    assert (answer.as_dict()["degraded"], answer.as_dict()["degraded_reason"]) == (True, answer.degraded)
    assert memory.said == ["waiting for another memkit process that is working on the index"]


def test_entries_indexed_during_the_wait_are_kept(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker writes and indexes an entry between the search's first look and its turn."""
    opened(memory)
    memory.write("one.md", "# Zebra\n\n" + "The zebra crossing is painted on Tuesdays. " * 4)
    monkeypatch.setattr(search_module, "WAIT_SECONDS", 30.0)

    def work(line: str) -> None:
        memory.write("two.md", "# Yak\n\n" + "The yak was shaved again on Wednesday. " * 4)
        other.leave.set()
        other.thread.join()
        memory.sync()

    with HoldingTheLock(memory.home) as other:
        searcher = open_searcher(memory.project, memory.home, memory.settings, work)
    headings = {row.chunk.heading for row in memory.snapshot.rows()}
    assert {"Zebra", "Yak"} <= headings
    assert searcher.search("yak shaved").results[0].chunk.heading == "Yak"


@pytest.mark.parametrize("error", [IndexStoreError("no space left"), EmbeddingError("it failed")])
def test_a_failed_update_is_told(memory: Memory, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    opened(memory)
    memory.write("notes.md", "# Zebra\n\n" + "The zebra crossing is painted on Tuesdays. " * 4)

    def fail(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(sync, "sync_project", fail)
    answer = opened(memory).search("staging port")
    assert answer.results
    assert str(error) in answer.degraded


def test_without_the_model_words_are_searched(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*arguments: object, **options: object) -> None:
        raise EmbeddingError("no weights")

    with monkeypatch.context() as patch:
        patch.setattr("memkit.embedding.load_embedder", missing)
        answer = opened(memory).search("PolicyController")
        assert answer.degraded == "searched by words alone: no weights"
        assert answer.results[0].dense is None
        assert "login" in answer.results[0].chunk.heading
        memory.settings = msgspec.convert({"search": {"mode": "dense"}}, Settings)
        assert opened(memory).search("PolicyController").results[0].chunk == answer.results[0].chunk
    memory.settings = Settings()
    answer = opened(memory).search("PolicyController")  # what is missing is embedded now
    assert answer.degraded == ""
    assert answer.results[0].dense is not None


def test_the_heading_of_a_session_alone_is_no_result(tmp_path: Path, real_embedder: Embedder) -> None:
    """A long prompt makes a heading that is long enough for a chunk of its own, and matches best."""
    prompt = "Which port should the staging gateway listen on, now that port 443 is in use there? Which …"
    text = day("2026-11-18", (prompt, "7443. " + "The ingress has the other. " * 10))
    text = text.replace("## 09:00 Work", f"## 09:00 {prompt}", 1)
    memory = embedded(tmp_path, {"2026-11-18.md": text}, real_embedder)
    assert [one.is_bare for one in memory.snapshot.chunks()] == [True, False]
    found = memory.searcher().search("which port does the gateway listen on").results
    assert [one.chunk.kind for one in found] == ["turn"]


@pytest.mark.parametrize(("query", "count"), [("deploy/gateway.yaml", 1), ("deploy/gateway.yml", 2), ("deploy/gateway", 2)])
def test_a_path_finds_what_names_it(tmp_path: Path, query: str, count: int) -> None:
    asked = ("Move the port", "I edited deploy/gateway.yaml."), ("Which gateway?", "The yaml of the gateway, deploy it.")
    memory = make_memory(tmp_path, {"2026-11-20.md": day("2026-11-20", *asked)})
    memory.sync()
    assert len(memory.search(query).results) == count


def test_words_next_to_each_other_count(tmp_path: Path, real_embedder: Embedder) -> None:
    answers = "Checkpoints of a session we restore.", "We restore session checkpoints, a few.", "Priya cooks soup."
    days = {
        f"2026-11-{number:02}.md": day(f"2026-11-{number:02}", ("And now?", answer))
        for number, answer in enumerate(answers, start=1)
    }
    request = SearchRequest("restore session checkpoints", minimum=0.0, explain=True)
    first, second, _ = embedded(tmp_path, days, real_embedder).searcher().answer(request).results
    assert first.chunk.date == "2026-11-02"
    assert first.explanation["wording"] > second.explanation["wording"] == 0
