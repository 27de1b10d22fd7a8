from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Plus

from memkit.index import tokens
from memkit.index.lexical import ARRAYS, LexicalIndex, fingerprint
from memkit.index.tokens import Tokenizer
from tests.ci import examples

DOCUMENTS = {
    "c3": "The staging gateway listens on 7443; deploy/gateway.yaml says so.",
    "a1": "PolicyController rejects the request with ERR_404.",
    "b2": "Gateways, gateways, gateways. Nothing but gateways.",
    "d4": "東京タワーに行く",
    "e5": "",
}

WORDS = ["gateway", "port", "policy", "staging", "retry", "ERR_404", "a/b.py", "東京", "the"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
QUERIES = st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=6).map(" ".join)
CORPORA = st.dictionaries(st.text(max_size=4), TEXTS, max_size=12)


def index_of(documents: dict[str, str]) -> LexicalIndex:
    return LexicalIndex().updated(documents.items())


def assert_same(index: LexicalIndex, documents: dict[str, str], queries: list[str]) -> None:
    """The index is to the bit what a fresh one of `documents` is."""
    fresh = index_of(documents)
    assert list(index.ids) == list(fresh.ids) == sorted(documents)
    assert len(index) == len(documents)
    for query in queries:
        match, expected = index.query(query), fresh.query(query)
        assert match.scores.dtype == match.coverage.dtype == np.float64
        assert match.scores.tobytes() == expected.scores.tobytes()
        assert match.coverage.tobytes() == expected.coverage.tobytes()


def assert_is_bm25_plus(index: LexicalIndex, documents: dict[str, str], query: str) -> None:
    """Scores are those of rank-bm25, weighted, less what it adds to every document alike."""
    tokenize = Tokenizer().tokenize
    corpus = [tokenize(documents[name]) for name in sorted(documents)]
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


def loaded(index: LexicalIndex) -> LexicalIndex:
    """The same index, over arrays as a snapshot has them."""
    arrays = {name: np.frombuffer(a.tobytes(), a.dtype) for name, a in index.arrays.items()}
    return LexicalIndex("english", lambda: list(index.ids), arrays)


def assert_same_arrays(index: LexicalIndex, other: LexicalIndex) -> None:
    assert list(index.ids) == list(other.ids)
    for name in ARRAYS:
        one, two = index.arrays[name], other.arrays[name]
        assert (one.dtype, one.tobytes()) == (two.dtype, two.tobytes())


@settings(max_examples=examples(100))
@given(CORPORA, QUERIES)
def test_scores_equal_rank_bm25(documents: dict[str, str], query: str) -> None:
    assert_is_bm25_plus(index_of(documents), documents, query)


@settings(max_examples=examples(100))
@given(
    CORPORA,
    st.lists(st.tuples(st.text(max_size=2), TEXTS), max_size=15),
    st.lists(QUERIES, min_size=1, max_size=3),
)
def test_additions_and_removals_leave_no_trace(
    documents: dict[str, str], changes: list[tuple[str, str]], queries: list[str]
) -> None:
    index = index_of(documents)
    present = dict(documents)
    for name, text in changes:
        if name in present:
            index = index.updated([], [name])
            del present[name]
        else:
            index = index.updated([(name, text)])
            present[name] = text
        assert_same(index, present, queries)
        assert_is_bm25_plus(index, present, queries[0])


@settings(max_examples=examples(40))
@given(saved=CORPORA, later=CORPORA, queries=st.lists(QUERIES, min_size=1, max_size=3))
def test_a_loaded_index_is_updated_like_any_other(
    saved: dict[str, str], later: dict[str, str], queries: list[str]
) -> None:
    index = loaded(index_of(saved))
    assert_same(index, saved, queries)
    index = index.updated(
        [(name, text) for name, text in later.items() if saved.get(name) != text],
        [name for name in saved if saved[name] != later.get(name)],
    )
    assert_same(index, later, queries)
    assert_same_arrays(index, index_of(later))
    assert_same(loaded(index), later, queries)


@settings(max_examples=examples(100))
@given(CORPORA, QUERIES)
def test_coverage_is_the_share_of_the_query(documents: dict[str, str], query: str) -> None:
    index = index_of(documents)
    match = index.query(query)
    asked = set(Tokenizer().tokenize(query))
    for name, score, coverage in zip(index.ids, match.scores, match.coverage, strict=True):
        held = asked & set(Tokenizer().tokenize(documents[name]))
        assert (coverage > 0) == (score > 0) == bool(held)
        assert coverage <= 1
        assert (coverage == 1) == bool(asked and held == asked)


def test_rare_and_unknown_terms_weigh_most_in_the_coverage() -> None:
    index = index_of({"a": "gateway port", "b": "gateway retry", "c": "gateway"})
    common, rare = np.log(4 / 3), np.log(4 / 1)
    assert index.query("gateway port").coverage == pytest.approx(
        [1, common / (common + rare), common / (common + rare)]
    )
    assert index.query("gateway unknown").coverage == pytest.approx(
        [common / (common + rare)] * 3
    )


@settings(max_examples=examples(100))
@given(CORPORA, st.permutations(["gateway", "port", "policy", "staging", "retry"]))
def test_the_order_of_the_words_makes_no_difference(
    documents: dict[str, str], words: list[str]
) -> None:
    index = index_of(documents)
    match, turned = index.query(" ".join(words)), index.query(" ".join(sorted(words)))
    assert match.scores.tobytes() == turned.scores.tobytes()
    assert match.coverage.tobytes() == turned.coverage.tobytes()


def test_finds_what_was_asked_for() -> None:
    index = index_of(DOCUMENTS)
    ids = list(index.ids)
    for query, best in [
        ("Which port does the staging gateway use?", "c3"),
        ("gateways", "b2"),
        ("policy controllers", "a1"),
        ("gateway.yaml", "c3"),
        ("err_404", "a1"),
        ("東京タワー", "d4"),
    ]:
        assert ids[int(np.argmax(index.query(query).scores))] == best
    nothing = index.query("the who?")
    assert nothing.scores.tolist() == nothing.coverage.tolist() == [0.0] * len(ids)


def test_repeated_frequencies_past_a_byte_are_kept() -> None:
    documents = {"many": "gateway " * 70_000, "some": "gateway " * 300 + "port"}
    assert_same(loaded(index_of(documents)), documents, ["gateway port"])


def test_the_arrays_do_not_depend_on_their_history() -> None:
    documents = {f"id {n * 37 % 400}": f"gateway {n % 7} port {n}" for n in range(400)}
    index = index_of({**documents, "passing": "policy"})
    index = index.updated([], ["passing", *list(documents)[:50]])
    index = index.updated(list(documents.items())[:50])
    assert_same_arrays(index, index_of(dict(sorted(documents.items()))))


@pytest.mark.filterwarnings("error")
def test_an_empty_index_answers() -> None:
    index = LexicalIndex()
    assert index.query("gateway").scores.shape == (0,)
    assert_same(loaded(index), {}, ["gateway"])
    index = index.updated([("a", "gateway")]).updated([], ["a"])
    assert index.query("gateway").coverage.shape == (0,)


def test_an_id_is_added_once_and_removed_once() -> None:
    index = index_of(DOCUMENTS)
    with pytest.raises(ValueError, match="'a1'"):
        index.updated([("new", "text"), ("a1", "other text")])
    with pytest.raises(KeyError, match="absent"):
        index.updated([], ["a1", "absent"])
    assert_same(index, DOCUMENTS, ["policy"])


def test_the_fingerprint_is_of_the_set_of_ids() -> None:
    assert fingerprint(["a", "b"]) == fingerprint(iter(["b", "a"]))
    assert len({fingerprint(ids) for ids in ([], ["a"], ["ab"], ["a", "b"], ['a", "b'])}) == 5


def test_the_signature_differs_by_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    signature = LexicalIndex().signature
    assert signature == index_of(DOCUMENTS).signature != LexicalIndex("german").signature
    monkeypatch.setattr(tokens, "VERSION", tokens.VERSION + 1)
    assert LexicalIndex().signature != signature
