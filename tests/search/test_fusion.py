"""The rankings, against their formulas written out slowly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.search import fusion
from memkit.search.fusion import Weights
from tests.ci import examples
from tests.search.reference import Problem, Values, context, known, rrf, weighted


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
        cosines = [None if draw(st.integers(0, 4)) == 0 else value for value in column(rounded(-1, 1))]
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
            **{name: draw(weight) for name in Weights.__dataclass_fields__ if name not in ("own_length", "rrf_k")},
            own_length=draw(st.integers(1, 2000)), rrf_k=draw(st.integers(1, 100)),
        ),
    )


@settings(max_examples=examples(100))
@given(problems())
def test_each_mode_is_its_formula(problem: Problem) -> None:
    assert problem.ranked("rrf") == pytest.approx(rrf(problem), abs=1e-12)
    assert problem.ranked("lexical") == problem.bm25
    assert problem.ranked("dense") == (problem.bm25 if problem.cosines is None else known(problem))
    assert problem.ranked("weighted") == pytest.approx(weighted(problem), abs=1e-9)
    assert problem.ranked("context") == pytest.approx(context(problem), abs=1e-6)


def test_windows_of_a_chunk() -> None:
    means, best = fusion.window_means(
        np.array([0.2, 0.8, -0.5, -0.7]), np.array([0, 0, 2, 2], dtype=np.int32), 4
    )
    assert means.tolist() == pytest.approx([0.5, np.nan, -0.6, np.nan], nan_ok=True)
    assert best.tolist() == pytest.approx([0.8, np.nan, -0.5, np.nan], nan_ok=True)
