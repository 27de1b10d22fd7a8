"""The ranking, against its formula written out slowly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkit.config import SearchSettings
from memkit.recall import fusion
from memkit.recall.fusion import Layout


def stretch(values: list[float]) -> list[float]:
    if not values:
        return []
    low, high = min(values), max(values)
    if low == high:
        return [1.0 if high > 0 else 0.0 for _ in values]
    return [(value - low) / (high - low) for value in values]


def reference(
    bm25: list[float],
    cosine: list[float] | None,
    lengths: list[int],
    sessions: list[int],
    settings: SearchSettings,
) -> list[float]:
    """The docstring of `memkit.recall.fusion`, line by line."""
    size = len(bm25)
    a = 0.0 if cosine is None else settings.dense_weight
    second = [0.0] * size if cosine is None else stretch(cosine)
    s = [(1 - a) * x + a * y for x, y in zip(stretch(bm25), second, strict=True)]
    w = [min(1.0, (settings.own_length / max(length, 1)) ** 2) for length in lengths]
    borrowed, support = [], []
    for i in range(size):
        own = [j for j in range(size) if sessions[j] == sessions[i] and sessions[i] >= 0]
        if not own:
            borrowed.append(0.0)
            support.append(0.0)
            continue
        place = own.index(i)
        total = 0.0
        for step, weight in ((1, settings.near_weight), (2, settings.far_weight)):
            for other in (place - step, place + step):
                if 0 <= other < len(own):
                    total += weight * s[own[other]]
        borrowed.append(total)
        support.append(sum(sorted((s[j] for j in own), reverse=True)[:3]))
    if support and max(support) == min(support):
        support = [0.0] * size
    first = stretch([s[i] + w[i] * borrowed[i] for i in range(size)])
    second = stretch(support)
    return [first[i] + settings.session_weight * w[i] * second[i] for i in range(size)]


SCORES = st.floats(0, 30, allow_subnormal=False).map(lambda x: round(x, 3)) | st.just(0.0)
COSINES = st.floats(-1, 1).map(lambda x: round(x, 3))


@st.composite
def problems(
    draw: st.DrawFn,
) -> tuple[list[float], list[float] | None, list[int], list[int], SearchSettings]:
    size = draw(st.integers(0, 12))
    constant = draw(st.booleans())

    def column(values: st.SearchStrategy[float]) -> list[float]:
        if constant and draw(st.booleans()):
            return [draw(values)] * size
        return draw(st.lists(values, min_size=size, max_size=size))

    sessions = draw(st.lists(st.integers(-1, 3), min_size=size, max_size=size))
    lengths = draw(st.lists(st.integers(0, 3000), min_size=size, max_size=size))
    weights = st.floats(0, 1).map(lambda x: round(x, 2))
    settings = SearchSettings(
        dense_weight=draw(weights),
        near_weight=draw(weights),
        far_weight=draw(weights),
        session_weight=draw(weights),
        own_length=draw(st.integers(1, 2000)),
    )
    dense = None if draw(st.booleans()) else column(COSINES)
    return column(SCORES), dense, lengths, sessions, settings


@given(problems())
def test_the_formula(
    problem: tuple[list[float], list[float] | None, list[int], list[int], SearchSettings],
) -> None:
    bm25, cosine, lengths, sessions, settings = problem
    found = fusion.context(
        np.array(bm25, dtype=np.float64),
        None if cosine is None else np.array(cosine, dtype=np.float64),
        Layout(np.array(lengths, dtype=np.int32), np.array(sessions, dtype=np.int32)),
        settings,
    )
    assert found.shape == (len(bm25),)
    assert np.isfinite(found).all()
    expected = reference(bm25, cosine, lengths, sessions, settings)
    # Sums of floats in another order may make equal values differ, and stretching widens that.
    if len(set(np.round(expected, 9))) > 1:
        assert found == pytest.approx(expected, abs=1e-6)


def scores(bm25: list[float], sessions: list[int], lengths: int = 100) -> list[float]:
    layout = Layout(
        np.full(len(bm25), lengths, dtype=np.int32), np.array(sessions, dtype=np.int32)
    )
    found: list[float] = fusion.context(np.array(bm25), None, layout, SearchSettings()).tolist()
    return found


def test_neighbours_never_cross_sessions() -> None:
    alone = scores([0, 9, 0, 0, 0, 1], [0, 1, 2, 3, 4, 5])
    assert alone[0] == alone[2] == 0
    beside = scores([0, 9, 0, 0, 0, 1], [1, 1, 1, 3, 4, 5])
    assert beside[0] == beside[2] > beside[4] == 0


def test_chunks_without_a_session_borrow_nothing() -> None:
    assert scores([0, 9, 0, 0], [-1, -1, -1, -1])[0] == 0


def test_neighbours_stand_apart_where_another_session_lies_between() -> None:
    assert scores([9, 0, 0], [0, 1, 0])[2] > scores([9, 0, 0], [0, 1, 2])[2]


def test_a_long_chunk_stands_alone() -> None:
    short = scores([0, 9, 0, 0], [0, 0, 1, 2], lengths=100)
    long = scores([0, 9, 0, 0], [0, 0, 1, 2], lengths=60_000)
    assert short[0] > 0.5
    assert 0 <= long[0] < 0.01


@pytest.mark.parametrize(("value", "expected"), [(2.5, 1.0), (0.0, 0.0)])
def test_one_chunk_alone(value: float, expected: float) -> None:
    assert scores([value], [0]) == [expected]


def test_no_chunks() -> None:
    assert scores([], []) == []
    assert fusion.minmax(np.zeros(0)).tolist() == []


def test_the_best_window_counts() -> None:
    found = fusion.best_window(
        np.array([0.2, 0.9, -0.5, -0.7]), np.array([0, 0, 2, 2], dtype=np.int32), 4
    )
    assert found.tolist() == [0.9, 0.0, -0.5, 0.0]
