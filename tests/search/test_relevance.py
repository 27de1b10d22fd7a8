"""How much a chunk has to do with a question, and the empty answer to what memory does not know."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.embedding import Embedder
from memkit.search.fusion import COVERAGE_WEIGHT, relevance
from memkit.search.ranking import NEAR_RELEVANCE, NEAR_SCORE, Searcher
from memkit.search.results import SearchRequest
from tests.ci import examples
from tests.memory import DAYS, Memory
from tests.search.corpora import embedded

KNOWN = "which port does the staging gateway use"
UNKNOWN = "how long must sourdough rise before baking"

PAIRS = st.lists(st.tuples(st.floats(0, 1), st.floats(-1, 1) | st.just(math.nan)), max_size=8)


@settings(max_examples=examples(100))
@given(PAIRS)
def test_the_share_of_the_words_and_the_cosine(pairs: list[tuple[float, float]]) -> None:
    coverage = np.array([share for share, _ in pairs], np.float64)
    dense = np.array([cosine for _, cosine in pairs], np.float64)
    found = relevance(coverage, dense).tolist()
    for value, (share, cosine) in zip(found, pairs, strict=True):
        assert 0 <= value <= 1
        if math.isnan(cosine):
            assert value == share
        else:
            weights = 1 + COVERAGE_WEIGHT
            assert value == pytest.approx((max(cosine, 0) + COVERAGE_WEIGHT * share) / weights)
    assert relevance(coverage, None).tolist() == coverage.tolist()


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory, real_embedder: Embedder) -> Memory:
    return embedded(tmp_path_factory.mktemp("relevant"), DAYS, real_embedder)


def cutting(memory: Memory) -> Searcher:
    """A searcher that lets pass what is nearer to what is known than to what is not."""
    known, unknown = (memory.search(query).best for query in (KNOWN, UNKNOWN))
    assert unknown < known
    return memory.searcher(best_relevance=(known + unknown) / 2)


def test_a_question_off_the_topic_finds_nothing(memory: Memory) -> None:
    searcher = cutting(memory)
    answer = searcher.search(UNKNOWN)
    assert answer.results == []
    assert 0 < answer.best < searcher.settings.best_relevance
    assert answer.as_dict()["best_relevance"] == answer.best
    assert "gateway" in searcher.search(KNOWN).results[0].chunk.heading


def test_vectors_alone_return_the_nearest(memory: Memory) -> None:
    searcher = memory.searcher(mode="dense", best_relevance=1.0)
    assert searcher.search(UNKNOWN).results
    assert searcher.answer(SearchRequest(UNKNOWN, minimum=1.0)).results == []


@pytest.mark.parametrize("mode", ["context", "rrf", "weighted", "lexical", "dense"])
def test_results_far_below_the_best_or_a_minimum_are_left_out(memory: Memory, mode: str) -> None:
    """In relevance and in rank; the others keep their order."""
    searcher = memory.searcher(mode=mode)
    answer = searcher.search(KNOWN, 50)
    everything = searcher.answer(SearchRequest(KNOWN, 50, minimum=0)).results
    near, high = answer.best * NEAR_RELEVANCE, everything[0].score * NEAR_SCORE
    assert answer.results == [one for one in everything if one.relevance >= near or one.score >= high]
    for minimum in (*sorted({result.relevance for result in everything}), 1.0):
        found = searcher.answer(SearchRequest(KNOWN, k=50, minimum=minimum - 1e-4)).results
        assert found == [one for one in everything if one.relevance >= minimum - 1e-4]
    if mode in ("context", "rrf", "dense"):  # the relevance does not depend on the mode
        assert {one.id: one.relevance for one in everything}.items() <= memory_relevance(memory).items()
    if mode == "context":
        assert 0 < len(answer.results) < len(everything)
        filled = searcher.answer(SearchRequest(KNOWN, budget=10_000)).results
        assert filled == searcher.answer(SearchRequest(KNOWN, budget=10_000, minimum=0)).results
        assert min(one.relevance for one in filled) < answer.best * NEAR_RELEVANCE


def memory_relevance(memory: Memory) -> dict[str, float]:
    return {one.id: one.relevance for one in memory.search(KNOWN).results}


def test_relevance_without_vectors_is_the_share_of_words(memory: Memory) -> None:
    searcher = Searcher([memory.snapshot], memory.settings.search, None)
    assert searcher.search("staging gateway").results[0].relevance == 1
    assert searcher.search("sourdough").results == []
    assert searcher.search("sourdough").best == 0
