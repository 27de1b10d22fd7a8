from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Plus

from memkit.index.lexical import ARRAYS, Arrays, LexicalIndex, Postings, join_arrays, make_arrays
from memkit.index.tokens import Tokenizer
from tests.ci import examples
from tests.index.parts import joined, parts_of

WORDS = ["gateway", "port", "policy", "staging", "retry", "ERR_404", "a/b.py", "東京", "the"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
QUERIES = st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=6).map(" ".join)
CORPORA = st.dictionaries(st.text(max_size=4), TEXTS, max_size=12)


def index_of(documents: dict[str, str]) -> LexicalIndex:
    return LexicalIndex.of(documents.values())


def assert_same(index: LexicalIndex, documents: dict[str, str], queries: list[str]) -> None:
    """The index scores to the bit what a fresh one of `documents` does."""
    fresh = index_of(documents)
    assert len(index) == len(documents)
    for query in queries:
        match, expected = index.query(query), fresh.query(query)
        assert match.scores.dtype == match.coverage.dtype == np.float64
        assert match.scores.tobytes() == expected.scores.tobytes()
        assert match.coverage.tobytes() == expected.coverage.tobytes()
        assert index.rarities(query) == fresh.rarities(query)


def assert_is_bm25_plus(index: LexicalIndex, documents: dict[str, str], query: str) -> None:
    """Scores are those of rank-bm25, weighted, less what it adds to every document alike."""
    tokenize = Tokenizer().tokenize
    corpus = [tokenize(text) for text in documents.values()]
    scores = index.query(query).scores
    if not any(corpus):  # rank-bm25 divides by the mean length
        assert not scores.any()
        return
    plain = BM25Plus(corpus)
    terms = Tokenizer().question(query)
    expected = sum(
        weight * (plain.get_scores([term]) - plain.delta * plain.idf.get(term, 0))
        for term, weight in terms.items()
    )
    np.testing.assert_allclose(scores, expected + np.zeros(len(corpus)), rtol=0, atol=1e-9)
    held = [bool(set(terms) & set(document)) for document in corpus]
    assert (scores > 0).tolist() == held


def assert_same_arrays(arrays: Arrays, expected: Arrays) -> None:
    for name in ARRAYS:
        one, two = arrays[name], expected[name]
        assert (one.dtype, one.tobytes()) == (two.dtype, two.tobytes()), name


@settings(max_examples=examples(150))
@given(CORPORA, QUERIES)
def test_scores_equal_rank_bm25_and_the_coverage_is_a_share(documents: dict[str, str], query: str) -> None:
    index = index_of(documents)
    assert_is_bm25_plus(index, documents, query)
    match, turned = index.query(query), index.query(" ".join(sorted(query.split())))
    assert match.scores.tobytes() == turned.scores.tobytes()  # the order of the words makes no difference
    assert match.coverage.tobytes() == turned.coverage.tobytes()
    asked = set(Tokenizer().tokenize(query))
    for name, score, coverage in zip(documents, match.scores, match.coverage, strict=True):
        held = asked & set(Tokenizer().tokenize(documents[name]))
        assert (coverage > 0) == (score > 0) == bool(held)
        assert coverage <= 1
        assert (coverage == 1) == bool(asked and held == asked)


@settings(max_examples=examples(100))
@given(CORPORA, st.data(), st.lists(QUERIES, min_size=1, max_size=3))
def test_parts_leave_no_trace(documents: dict[str, str], data: st.DataObject, queries: list[str]) -> None:
    """Joined or merged, they are what an index made at once is; so are merged parts merged again."""
    texts = list(documents.values())
    parts = data.draw(parts_of(texts))
    assert_same(joined(parts, len(texts)), documents, queries)
    assert_is_bm25_plus(joined(parts, len(texts)), documents, queries[0])
    merged = join_arrays(parts)
    expected = make_arrays(texts, "english")
    assert_same_arrays(merged, expected)
    assert_same_arrays(join_arrays([(merged, np.arange(len(texts), dtype=np.int32))]), expected)
    terms = [(term, slots.tolist()) for term, slots in joined(parts, len(texts)).postings()]
    assert terms == [(term, slots.tolist()) for term, slots in Postings(expected).items()]


def test_rare_and_unknown_terms_weigh_most_in_the_coverage() -> None:
    index = index_of({"a": "gateway port", "b": "gateway retry", "c": "gateway"})
    common, rare = np.log(4 / 3), np.log(4 / 1)
    assert index.query("gateway port").coverage == pytest.approx(
        [1, common / (common + rare), common / (common + rare)]
    )
    assert index.query("gateway unknown").coverage == pytest.approx([common / (common + rare)] * 3)


def test_repeated_frequencies_past_a_byte_are_kept() -> None:
    texts = ["gateway " * 70_000, "gateway " * 300 + "port", "port"]
    expected = make_arrays(texts, "english")
    assert expected["frequencies"].max() == 70_000
    parts = [(make_arrays([text], "english"), np.array([slot], np.int32)) for slot, text in enumerate(texts)]
    assert_same_arrays(join_arrays(parts), expected)
    assert_same(joined(parts, 3), dict(enumerate(texts)), ["gateway port"])  # type: ignore[arg-type]


@pytest.mark.filterwarnings("error")
def test_an_empty_index_answers() -> None:
    for index in (LexicalIndex.of([]), joined([], 0)):
        assert index.query("gateway").scores.shape == index.query("gateway").coverage.shape == (0,)
        assert list(index.postings()) == []
    gone = [(make_arrays(["gateway"], "english"), np.array([-1], np.int32))]
    assert joined(gone, 0).query("gateway").coverage.shape == (0,)
    assert_same_arrays(join_arrays(gone), make_arrays([], "english"))


def test_wording_is_the_share_of_pairs() -> None:
    index = LexicalIndex.of(["archive transcript chunk files", "files", "of the archive"])
    share = index.wording("archive transcript chunks")
    assert share("the archived transcripts, chunk by chunk") == 1
    assert 0 < share("a transcript chunk of the archive") < 1
    assert share("chunk, transcript, archive") == 0
    assert index.wording("archive")("archive") == 0  # no pair
