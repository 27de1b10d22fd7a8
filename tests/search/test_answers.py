"""Whole answers: ranked as the formulas say, the same each time, a name answered by what holds it."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from memkit.embedding import Embedder
from memkit.search.ranking import Searcher
from memkit.search.results import SearchRequest
from memkit.text import CHARACTERS_PER_TOKEN
from tests.memory import DAYS, Memory, day, make_memory
from tests.search import reference
from tests.search.corpora import embedded
from tests.search.reference import Problem

MODES = ("context", "rrf", "weighted", "lexical", "dense")
QUERIES = (
    "which port does the staging gateway use", "PolicyController", "remind me who rotates the secrets",
    "slow build", "ERR_404",
)  # fmt: skip
LONG = "\n\n".join(f"Paragraph {n} on how the gateway was built and why. " * 6 for n in range(9))
FILES = {
    **DAYS,
    "2026-11-17.md": day(
        "2026-11-17", ("How was it built?", LONG), ("And the port?", "7443."), session="5e550004"
    ),
    "notes.md": f"# Notes\n\nThe PolicyController is documented in `deploy/gateway.yaml`.\n\n{LONG}",
}


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory, real_embedder: Embedder) -> Memory:
    """Short turns, a long one, and a note, with the real model."""
    root = tmp_path_factory.mktemp("answered")
    return embedded(root, FILES, real_embedder)


def problem(searcher: Searcher, query: str) -> Problem:
    """What a search for `query` knows, for the formulas."""
    corpus = searcher.corpus
    assert corpus is not None
    bm25, passages, documents, _ = corpus.lexical(query)
    cosines = None
    if searcher.embedder is not None:
        means, _ = corpus.cosines(searcher.embedder.embed_query(query))
        cosines = [None if math.isnan(cosine) else cosine for cosine in means.tolist()]
    today = date.today()
    ages = [today.toordinal() - day if day else None for day in corpus.columns["day"].tolist()]
    life = searcher.settings.half_life_days
    return Problem(
        bm25=bm25.tolist(),
        passages=passages.tolist(),
        documents=documents.tolist(),
        cosines=cosines,
        recency=[0.0 if age is None else 0.5 ** (max(age, 0) / life) for age in ages],
        lengths=corpus.columns["length"].tolist(),
        entries=corpus.columns["entry"].tolist(),
        sessions=corpus.columns["session"].tolist(),
        numbers=[
            session if session >= 0 else 1000 + source
            for session, source in corpus.columns[["session", "source"]].tolist()
        ],
        weights=searcher.weights,
    )


@pytest.mark.parametrize("by_words_alone", [False, True])
@pytest.mark.parametrize("mode", ["context", "rrf", "weighted"])
def test_scores_are_those_of_the_formulas(memory: Memory, mode: str, by_words_alone: bool) -> None:
    searcher = memory.searcher(mode=mode, half_life_days=36_500)
    searcher.weights = replace(searcher.weights, repeat_cost=0.0, wording_weight=0.0)
    searcher.embedder = None if by_words_alone else searcher.embedder
    for query in ("which port does the staging gateway use", "remind me who rotates the secrets"):
        known = problem(searcher, query)
        expected = getattr(reference, mode)(known)
        results = searcher.answer(SearchRequest(query, k=1000, minimum=0)).results
        corpus = searcher.corpus
        assert corpus is not None
        entries = corpus.columns["entry"].tolist()
        entry_of = {corpus.id(n)[:12]: entry for n, entry in enumerate(entries)}
        best: dict[int, float] = {}  # a turn is one result, at its best piece
        for entry, score in zip(entries, expected, strict=True):
            if mode == "context" or score > 1e-6:  # the others score 0 what they did not find
                best[entry] = max(score, best.get(entry, score))
        found = {entry_of[result.chunk_id]: result.score for result in results}
        assert found == pytest.approx(best, abs=1e-4)
        assert len(found) == len(results)
        order = sorted(best.items(), key=lambda pair: -pair[1])
        scores = [score for _, score in order]
        if min((a - b for a, b in pairwise(scores)), default=1) > 1e-5:
            assert [entry_of[result.chunk_id] for result in results] == [entry for entry, _ in order]


def explained(memory: Memory, modes: tuple[str, ...] = MODES) -> list[Any]:
    """All that searches say, but for the time they took and where the project is."""
    answers = [
        memory.searcher(mode=mode).answer(SearchRequest(query, k=1000, minimum=0, explain=True))
        for mode in modes
        for query in QUERIES
    ]
    return [[replace(one, root="").as_dict() for one in answer.results] for answer in answers]


def test_scores_do_not_depend_on_the_history_of_the_index(tmp_path: Path) -> None:
    """Built twice at once, and bit by bit with changes and detours: the same to the last digit."""
    one = make_memory(tmp_path / "one", FILES)
    one.sync()
    expected = explained(one)
    assert all(expected)
    other = make_memory(tmp_path / "other", dict(reversed(FILES.items())))
    other.sync()
    assert explained(other) == expected

    slow = make_memory(tmp_path / "slow", {"passing.md": "# Passing\n\n" + "the gateway " * 20})
    slow.sync()
    for name, text in FILES.items():
        slow.write(name, text.replace("gateway", "portal"))
        slow.sync()
        slow.write(name, text)
    slow.path("passing.md").unlink()
    slow.sync()
    assert explained(slow) == expected
    assert explained(slow) == expected  # and asked again


@pytest.mark.parametrize(
    ("query", "headings"),
    [
        ("PolicyController", {"Notes", "09:02 What broke the login page?"}),
        ("`policyController`", {"Notes", "09:02 What broke the login page?"}),
        ("deploy/gateway.yaml", {"Notes"}),
        ("ERR_404", {"09:02 What broke the login page?"}),
        ('"bin/rotate"', {"09:01 How are secrets rotated?"}),
    ],
)
def test_a_name_finds_the_chunks_that_hold_it(memory: Memory, query: str, headings: set[str]) -> None:
    request = SearchRequest(query, k=50, minimum=0, explain=True)
    for mode in MODES:
        results = memory.searcher(mode=mode).answer(request).results
        is_held = [result.explanation["identifier"] for result in results]
        assert is_held == sorted(is_held, reverse=True)
        assert {result.chunk.heading for result in results if result.explanation["identifier"]} == headings
        assert results[0].lexical > 0


def test_an_explanation_adds_up(memory: Memory) -> None:
    request = SearchRequest("secrets of the gateway", k=50, minimum=0, explain=True)
    results = memory.searcher().answer(request).results
    by_words = sorted(results, key=lambda result: result.explanation["lexical"]["rank"])
    by_cosine = sorted(results, key=lambda result: result.explanation["dense"]["rank"])
    assert [r.lexical for r in by_words] == sorted((r.lexical for r in results), reverse=True)
    cosines = [r.dense for r in results if r.dense is not None]
    assert [r.dense for r in by_cosine] == sorted(cosines, reverse=True)
    for result in results:
        said = result.explanation
        assert (said["lexical"]["score"], said["dense"]["score"], said["boost"]) == (result.lexical, result.dense, 1)
        assert {"passage", "own", "neighbors", "session", "document"} <= said.keys()
    # What is stretched to [0, 1] is the own score and what the neighbours lend.
    lent = [r.explanation["own"] + r.explanation["neighbors"] for r in results]
    added = ("session", "document", "place")
    first = [r.score - sum(r.explanation[name] for name in added) for r in results]
    repeated = sorted({round(r.explanation["place"], 6) for r in results}, reverse=True)
    assert repeated == [round(-0.1 * n, 6) for n in range(len(repeated))]
    assert [lent.index(x) for x in sorted(lent)] == [first.index(x) for x in sorted(first)]
    plain = memory.searcher().answer(replace(request, explain=False)).results
    assert plain == [replace(result, explanation={}) for result in results]


@pytest.mark.parametrize("tokens", [50, 120, 400, 5_000])
def test_a_budget_in_place_of_a_number(memory: Memory, tokens: int) -> None:
    query = "how was the gateway built"
    everything = memory.searcher().answer(SearchRequest(query, k=1000, minimum=0)).results
    ranked = [result.id for result in everything]
    pieces = {one["id"] for result in everything for one in result.merged} - set(ranked)
    found = memory.searcher().answer(SearchRequest(query, budget=tokens, minimum=0)).results
    assert 0 < sum(len(r.chunk.content) for r in found) <= tokens * CHARACTERS_PER_TOKEN
    places = [ranked.index(name) for name in dict.fromkeys(one.id for one in found) if name not in pieces]
    assert places == sorted(places)
    assert not any(result.merged for result in found)  # the rest of a turn follows by itself
    assert places[0] == 0
    lines = [(r.chunk.source, n) for r in found for n in range(r.chunk.start_line, r.chunk.end_line + 1)]
    assert len(lines) == len(set(lines))
    if tokens == 5_000:
        assert len(found) > memory.settings.search.k
