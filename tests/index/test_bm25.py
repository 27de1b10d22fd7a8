"""BM25 of the passages around documents, and the documents that hold a name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from rank_bm25 import BM25Plus

from memkit.index.lexical import PASSAGE_REACH, LexicalIndex, ReadingOrder
from memkit.index.tokens import Tokenizer
from tests.ci import examples
from tests.index.parts import in_parts

WORDS = ["gateway", "port", "policy", "staging", "ERR_404", "a/b.py", "東京", "the", "remember"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
QUERIES = st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=5).map(" ".join)
TOKENIZER = Tokenizer()


@dataclass
class Conversations:
    """Documents in the order in which they are read, with a session each; -1: none."""

    ids: list[str]
    texts: list[str]
    sessions: list[int]

    @property
    def documents(self) -> dict[str, str]:
        return dict(zip(self.ids, self.texts, strict=True))

    @property
    def order(self) -> ReadingOrder:
        """The slots are in another order: that of the ids."""
        places = {name: place for place, name in enumerate(sorted(self.ids))}
        return ReadingOrder(
            np.array([places[name] for name in self.ids], np.intp),
            np.array(self.sessions, np.int32),
        )

    def passage(self, place: int) -> list[str]:
        """The terms of what stands around the document at `place`, as one document."""
        terms = []
        for other in range(place - PASSAGE_REACH, place + PASSAGE_REACH + 1):
            inside = 0 <= other < len(self.ids)
            if other == place or (
                inside and self.sessions[other] == self.sessions[place] and self.sessions[place] >= 0
            ):
                terms += TOKENIZER.tokenize(self.texts[other])
        return terms

    def scores(self, query: str) -> dict[str, float]:
        """By rank-bm25 itself over all passages, less what it adds to every document alike."""
        passages = [self.passage(place) for place in range(len(self.ids))]
        if not any(passages):  # rank-bm25 divides by the mean length
            return dict.fromkeys(self.ids, 0.0)
        plain = BM25Plus(passages)
        scores = sum(
            weight * (plain.get_scores([term]) - plain.delta * plain.idf.get(term, 0))
            for term, weight in TOKENIZER.question(query).items()
        )
        return dict(zip(self.ids, scores + np.zeros(len(self.ids)), strict=True))


@st.composite
def conversations(draw: st.DrawFn, most: int = 10) -> Conversations:
    ids = draw(st.lists(st.text("abc", max_size=3), max_size=most, unique=True))
    texts = draw(st.lists(TEXTS, min_size=len(ids), max_size=len(ids)))
    sessions = draw(st.lists(st.integers(-1, 2), min_size=len(ids), max_size=len(ids)))
    return Conversations(ids, texts, sorted(sessions))


def index_of(documents: dict[str, str]) -> LexicalIndex:
    return LexicalIndex.of(documents[name] for name in sorted(documents))


@pytest.mark.filterwarnings("error")
@settings(max_examples=examples(100))
@given(conversations(), QUERIES)
def test_passage_scores_equal_rank_bm25(read: Conversations, query: str) -> None:
    index = index_of(read.documents)
    found = dict(zip(sorted(read.ids), index.passages(read.order)(query), strict=True))
    assert found == pytest.approx(read.scores(query), rel=0, abs=1e-9)
    terms = set(TOKENIZER.question(query))
    for place, name in enumerate(read.ids):
        assert (found[name] > 0) == bool(terms & set(read.passage(place)))


@settings(max_examples=examples(60))
@given(conversations(), st.data(), st.lists(QUERIES, min_size=1, max_size=3))
def test_parts_score_as_a_whole(read: Conversations, data: st.DataObject, queries: list[str]) -> None:
    """To the last bit, whatever parts hold the documents, and whatever else they hold."""
    texts = [read.documents[name] for name in sorted(read.ids)]
    index, fresh = data.draw(in_parts(texts)), index_of(read.documents)
    for query in queries:
        found = index.passages(read.order)(query)
        assert found.dtype == np.float64
        assert found.tobytes() == fresh.passages(read.order)(query).tobytes()
    for name in ("gateway", "ERR_404", "a/b.py"):
        held, expected = index.holders(name), fresh.holders(name)
        assert held is not None
        assert expected is not None
        assert held.tolist() == expected.tolist()


def passages(query: str, texts: list[str], sessions: list[int]) -> NDArray[np.float64]:
    read = Conversations([str(n) for n in range(len(texts))], texts, sessions)
    return index_of(read.documents).passages(read.order)(query)


def test_two_remarks_answer_together() -> None:
    texts = ["the port is taken", "and the gateway moved", "port port", "gateway", "lunch", "tea"]
    together = passages("gateway port", texts, [0, 0, 1, 2, 3, 3])
    assert together[0] == together[1] > together[2:4].max()
    assert together[4:].tolist() == [0, 0]


def test_a_passage_reaches_two_steps_and_stays_in_its_session() -> None:
    texts = ["lunch", "lunch", "lunch", "port", "lunch", "lunch", "lunch"]
    assert (passages("port", texts, [0] * 7) > 0).tolist() == [False, True, True, True, True, True, False]
    assert (passages("port", texts, [0, 0, 1, 1, 2, 2, 2]) > 0).tolist() == [
        False, False, True, True, False, False, False,
    ]  # fmt: skip
    assert (passages("port", texts, [-1] * 7) > 0).tolist() == [n == 3 for n in range(7)]


NAMED = {
    "class": "PolicyController rejects the request.",
    "lower": "the policycontroller of old",
    "apart": "a policy for each controller",
    "file": "See deploy/gateway.yaml, line 3.",
    "other file": "See other/gateway.yaml and deploy/gateway.yml.",
    "code": "It failed with ERR_404.",
    "numbers": "ERR_405, and 404 of them",
    "call": "call foo() twice",
    "words": "the foo of bars",
}


def test_holders_of_a_name() -> None:
    index = index_of(NAMED)
    for query, held in {
        "PolicyController": {"class", "lower"}, "`policyController`": {"class", "lower"}, "deploy/gateway.yaml": {"file"},
        '"deploy/gateway.yaml"': {"file"}, "gateway.yaml": {"file", "other file"}, "ERR_404": {"code"}, " “err_404” ": {"code"},
        "`foo()`": {"call", "words"}, "bar": {"words"}, "nothing_like_it": set(),
    }.items():  # fmt: skip
        found = index.holders(query)
        assert found is not None
        assert {name for name, holds in zip(sorted(NAMED), found, strict=True) if holds} == held, query
    for query in ("policy controller", "ERR_404?!, no", "東京", "", "()", "the"):  # not one name
        assert index.holders(query) is None
    found = LexicalIndex.of([]).holders("ERR_404")
    assert found is not None and found.tolist() == []
