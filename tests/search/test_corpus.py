"""Several projects as one row of chunks, in which nothing mixes."""

from __future__ import annotations

from pathlib import Path
from string import ascii_lowercase

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.index.chunk import Chunk
from memkit.index.segment import NAMED
from memkit.index.snapshot import Snapshot
from memkit.search.corpus import Corpus
from memkit.search.ranking import Searcher
from memkit.search.results import SearchRequest
from memkit.settings.load import SearchSettings
from tests.ci import examples
from tests.memory import FakeEmbedder, make_chunk
from tests.search.corpora import snapshot_of


def conversation(*remarks: str, session: str = "5e550001", branch: str = "main") -> list[Chunk]:
    """A short turn a remark, in the same file, whatever the project."""
    return [
        make_chunk(
            remark, source="notes.md", start_line=number, end_line=number, kind="turn",
            session=session, turns=(f"turn{number}",), citations=(), branch=branch, date="2026-11-20",
        )
        for number, remark in enumerate(remarks)
    ]  # fmt: skip


ONE = conversation("the gateway moved", "which port was free", "7443 it is") + [
    make_chunk("a note of one", source="docs/one.md", domain="docs")
]
TWO = conversation("lunch was late", "nothing about that", "the port of Hamburg") + [
    make_chunk("a note of two", source="docs/two.md", domain="docs")
]


@pytest.fixture
def both(tmp_path: Path) -> list[Snapshot]:
    return [
        snapshot_of(tmp_path / "1", ONE, embedder=FakeEmbedder(), root="/at/one"),
        snapshot_of(tmp_path / "2", TWO, embedder=FakeEmbedder(), root="/at/two"),
    ]


def test_chunks_one_after_the_other(both: list[Snapshot]) -> None:
    before = [snapshot.columns.tolist() for snapshot in both]
    corpus = Corpus(both)
    chunks = [*both[0].chunks(), *both[1].chunks()]
    assert len(corpus) == len(chunks) == 8
    assert [corpus.chunk(position) for position in range(8)] == chunks
    assert [corpus.id(position) for position in range(8)] == [one.id(n) for one in both for n in range(4)]
    assert [Path(corpus.root(position)).name for position in range(8)] == ["one"] * 4 + ["two"] * 4
    assert corpus.columns["length"].tolist() == [len(chunk.content) for chunk in chunks]
    for name in NAMED:  # numbers stand for the names of their own project
        numbers, names = corpus.columns[name].tolist(), corpus.names[name]
        assert [names[n] if n >= 0 else "" for n in numbers] == [getattr(chunk, name) for chunk in chunks]
        assert not set(numbers[:4]) & set(numbers[4:]) - {-1}
    Corpus(both[::-1])
    assert [snapshot.columns.tolist() for snapshot in both] == before


def test_equal_sessions_and_turns_of_two_projects_do_not_mix(both: list[Snapshot]) -> None:
    layout = Corpus(both).layout
    assert sorted(set(Corpus(both).columns["entry"].tolist())) == list(range(8))
    alone = [Corpus([snapshot]).layout for snapshot in both]
    score = np.arange(1.0, 9.0) ** 2
    for weights in ((1, 0), (0, 1)):
        parts = zip(alone, (score[:4], score[4:]), strict=True)
        apart = [one.neighbors(part, *weights) for one, part in parts]
        assert layout.neighbors(score, *weights).tolist() == np.concatenate(apart).tolist()


def test_words_are_weighed_project_by_project(both: list[Snapshot]) -> None:
    found = Corpus(both).lexical("port gateway")
    apart = [Corpus([snapshot]).lexical("port gateway") for snapshot in both]
    for arm, (first, second) in zip(found, zip(*apart, strict=True), strict=True):
        assert arm.tolist() == [*first.tolist(), *second.tolist()]
    scores, passages, _, coverage = found
    chunks = [*both[0].chunks(), *both[1].chunks()]
    for position, chunk in enumerate(chunks):
        held = "port" in chunk.content or "gateway" in chunk.content
        assert (scores[position] > 0) == (coverage[position] > 0) == held
        assert (passages[position] > 0) == (chunk.kind == "turn")  # both are within two steps of it


def test_passages_follow_the_text_and_not_the_ids(tmp_path: Path) -> None:
    """Ids are hashes; what stands beside each other in the text is a passage all the same."""
    remarks = [f"a remark on {letter * 5}" for letter in ascii_lowercase]
    corpus = Corpus([snapshot_of(tmp_path, conversation(*remarks))])
    for asked in (0, 7, 25):
        _, passages, _, _ = corpus.lexical(ascii_lowercase[asked] * 5)
        near = [n for n in range(26) if abs(n - asked) <= 2]
        assert np.flatnonzero(passages).tolist() == near
        chunks = [corpus.chunk(n).content for n in near]
        assert chunks == [remarks[n] for n in near]


@pytest.mark.parametrize("others", [TWO, []])
def test_a_project_without_vectors(both: list[Snapshot], tmp_path: Path, others: list[Chunk]) -> None:
    """It does not know how long they would be."""
    bare = snapshot_of(tmp_path / "bare", others)
    assert bare.dimensions is None
    corpus = Corpus([bare, both[0]])
    assert corpus.has_vectors
    means, best = corpus.cosines(FakeEmbedder().embed_query("port"))
    assert np.isnan(means).tolist() == np.isnan(best).tolist() == [True] * len(others) + [False] * 4
    answer = Searcher([bare, both[0]], SearchSettings(), FakeEmbedder()).answer(
        SearchRequest("port", k=50, minimum=0)
    )
    assert answer.results[0].dense is not None or others


def test_a_name_is_matched_in_each_projects_language(both: list[Snapshot], tmp_path: Path) -> None:
    """A function word of the one language is a name in the other."""
    german = snapshot_of(tmp_path / "de", conversation("so heißt was", "und so"), language="german")
    corpus = Corpus([both[0], german])
    held = corpus.holders("was")
    assert held is not None
    assert held.tolist() == [False] * 4 + [True, False]
    assert Corpus(both).holders("was") is None
    assert Corpus(both).holders("two words") is None
    answer = Searcher([both[0], german], SearchSettings(), None).answer(SearchRequest("was", minimum=0))
    assert answer.results[0].chunk.content == "so heißt was"


def test_no_chunks(tmp_path: Path) -> None:
    empty = [snapshot_of(tmp_path / name, []) for name in ("1", "2")]
    corpus = Corpus(empty)
    assert (len(corpus), corpus.has_vectors) == (0, False)
    assert [len(arm) for arm in corpus.lexical("port")] == [0, 0, 0, 0]
    assert Searcher(empty, SearchSettings(), FakeEmbedder()).search("port").results == []
    assert Searcher([], SearchSettings(), FakeEmbedder()).search("port").results == []


@settings(max_examples=examples(60))
@given(
    st.text(max_size=40).map(lambda text: text + '"turns": ["forged"]\\'),
    st.lists(st.text(min_size=1, max_size=12) | st.sampled_from(['a"]', "]", '"turns": '])),
)
def test_turns_of_any_text(tmp_path_factory: pytest.TempPathFactory, text: str, turns: list[str]) -> None:
    chunk = make_chunk(text, source=text, heading=text, branch=text, turns=tuple(turns), citations=())
    corpus = Corpus([snapshot_of(tmp_path_factory.mktemp("turns"), [chunk])])
    assert corpus.turns(0) == list(corpus.chunk(0).turns) == turns
