"""The rankings, against their formulas written out slowly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.recall import fusion
from memkit.recall.fusion import Arms, Layout, Weights
from tests.ci import examples
from tests.recall.reference import Problem, Values, context, known, rrf, weighted


def rounded(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda value: round(value, 3) + 0.0)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    size = draw(st.integers(0, 12))

    def column(values: st.SearchStrategy[float]) -> Values:
        if draw(st.integers(0, 5)) == 0:
            return [draw(values)] * size
        return draw(st.lists(values, min_size=size, max_size=size))

    def numbers(low: int, high: int) -> list[int]:
        return draw(st.lists(st.integers(low, high), min_size=size, max_size=size))

    cosines: list[float | None] | None = None
    if draw(st.booleans()):
        cosines = [
            None if draw(st.integers(0, 4)) == 0 else value for value in column(rounded(-1, 1))
        ]
    of_entry: dict[int, int] = {}
    weight = rounded(0, 1)
    sessions = numbers(-1, 3)
    return Problem(
        bm25=column(rounded(0, 30) | st.just(0.0)),
        passages=column(rounded(0, 40) | st.just(0.0)),
        documents=column(rounded(0, 50) | st.just(0.0)),
        cosines=cosines,
        recency=column(rounded(0, 1)),
        lengths=numbers(0, 1500),
        entries=[of_entry.setdefault(number, len(of_entry)) for number in numbers(0, 8)],
        sessions=sessions,
        numbers=[session if session >= 0 else 99 for session in sessions],
        weights=Weights(
            dense_weight=draw(weight),
            long_weight=draw(weight),
            passage_weight=draw(weight),
            near_weight=draw(weight),
            far_weight=draw(weight),
            session_weight=draw(weight),
            document_weight=draw(weight),
            mean_weight=draw(weight),
            neutral=draw(weight),
            semantic_weight=draw(weight),
            keyword_weight=draw(weight),
            recency_weight=draw(weight),
            own_length=draw(st.integers(1, 2000)),
            rrf_k=draw(st.integers(1, 100)),
        ),
    )


@settings(max_examples=examples(100))
@given(problems())
def test_context_is_its_formula(problem: Problem) -> None:
    assert problem.ranked("context") == pytest.approx(context(problem), abs=1e-6)


@settings(max_examples=examples(100))
@given(problems())
def test_rrf_is_its_formula(problem: Problem) -> None:
    assert problem.ranked("rrf") == pytest.approx(rrf(problem), abs=1e-12)


def test_a_worked_example_of_rrf() -> None:
    """Each arm has weight 1, and k is 60. A chunk that an arm did not find gets nothing from it."""
    found = fusion.fuse(
        Arms(
            lexical=np.array([9.0, 5.0, 3.0, 0.0, 0.0]),  # ranks 1, 2, 3, none, none
            passages=np.zeros(5),
            documents=np.zeros(5),
            dense=np.array([0.5, 0.6, np.nan, 0.8, -0.1]),  # ranks 3, 2, none, 1, none
            recency=np.zeros(5),
        ),
        Layout(
            np.full(5, 100, np.int32),
            np.arange(5, dtype=np.int32),
            np.full(5, -1, np.int32),
            np.zeros(5, np.int32),
        ),
        "rrf",
        fusion.WEIGHTS,
    )
    assert found.scores == pytest.approx([
        0.0322664585,  # 1/61 + 1/63
        0.0322580645,  # 1/62 + 1/62
        0.0158730159,  # 1/63
        0.0163934426,  # 1/61
        0.0,
    ], abs=1e-10)  # fmt: skip
    assert np.argsort(-found.scores).tolist() == [0, 1, 3, 2, 4]
    assert found.found.tolist() == [True, True, True, True, False]


@settings(max_examples=examples(100))
@given(problems())
def test_weighted_is_its_formula(problem: Problem) -> None:
    assert problem.ranked("weighted") == pytest.approx(weighted(problem), abs=1e-9)


@settings(max_examples=examples(100))
@given(problems())
def test_the_single_arms(problem: Problem) -> None:
    assert problem.ranked("lexical") == problem.bm25
    assert problem.ranked("dense") == (problem.bm25 if problem.cosines is None else known(problem))


@settings(max_examples=examples(100))
@given(st.lists(st.integers(0, 4), max_size=12))
def test_ranks_count_from_one_and_equals_keep_their_order(scores: list[int]) -> None:
    places = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
    found = fusion.ranks(np.array(scores, np.float64))
    assert [int(found[place]) for place in places] == list(range(1, len(scores) + 1))


LENDING = Weights(own_length=700, near_weight=0.3, far_weight=0.1, session_weight=0.4)


def scores(bm25: Values, sessions: list[int], length: int = 100) -> Values:
    """By words alone; each chunk is an entry."""
    layout = Layout(
        np.full(len(bm25), length, dtype=np.int32),
        np.arange(len(bm25), dtype=np.int32),
        np.array(sessions, dtype=np.int32),
        np.array(sessions, dtype=np.int32),
    )
    nothing = np.zeros(len(bm25))
    arms = Arms(np.array(bm25, np.float64), nothing, nothing, None, nothing)
    found: Values = fusion.context(arms, layout, LENDING).scores.tolist()
    return found


def test_neighbours_never_cross_sessions() -> None:
    alone = scores([0, 9, 0, 0, 0, 1], [0, 1, 2, 3, 4, 5])
    assert alone[0] == alone[2]
    beside = scores([0, 9, 0, 0, 0, 1], [1, 1, 1, 3, 4, 5])
    assert beside[0] == beside[2] > beside[4]


def test_chunks_without_a_session_borrow_nothing() -> None:
    assert scores([0, 9, 0, 0], [-1, -1, -1, -1])[0] == 0


def test_neighbours_stand_apart_where_another_session_lies_between() -> None:
    assert scores([9, 0, 0], [0, 1, 0])[2] > scores([9, 0, 0], [0, 1, 2])[2]


def test_a_long_chunk_stands_alone() -> None:
    short = scores([0, 9, 0, 0], [0, 0, 1, 2], length=100)
    long = scores([0, 9, 0, 0], [0, 0, 1, 2], length=60_000)
    assert short[0] > short[2] + 0.3
    assert 0 <= long[0] < 0.01


def test_the_short_last_piece_of_a_long_entry_does_not_borrow() -> None:
    def last_piece(*, alone: bool) -> float:
        """The long piece is the first chunk, the short one the second; the third matches, and many are short."""
        size = 400
        columns = (
            [5_000, *[300] * (size - 1)],
            [0, 0 if alone else size, *range(1, size - 1)],
            [0] * size,
        )
        lengths, entries, sessions = (np.array(column, np.int32) for column in columns)
        nothing, bm25 = np.zeros(size), np.zeros(size)
        bm25[2] = 9.0
        arms = Arms(bm25, nothing, nothing, None, nothing)
        layout = Layout(lengths, entries, sessions, sessions)
        return float(fusion.context(arms, layout, LENDING).scores[1])

    assert 0 <= last_piece(alone=True) < 0.01 < 0.1 < last_piece(alone=False)


@pytest.mark.parametrize("value", [2.5, 0.0])
def test_one_chunk_alone(value: float) -> None:
    assert scores([value], [0]) == [1.0]


def test_no_chunks() -> None:
    assert scores([], []) == []
    assert fusion.minmax(np.zeros(0)).tolist() == []
    assert fusion.standard(np.zeros(0)).tolist() == []


def test_windows_of_a_chunk() -> None:
    means, best = fusion.window_means(
        np.array([0.2, 0.8, -0.5, -0.7]), np.array([0, 0, 2, 2], dtype=np.int32), 4
    )
    assert means.tolist() == pytest.approx([0.5, np.nan, -0.6, np.nan], nan_ok=True)
    assert best.tolist() == pytest.approx([0.8, np.nan, -0.5, np.nan], nan_ok=True)
