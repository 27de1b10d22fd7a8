"""Which chunks become results, against the rule written out slowly."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.recall.fusion import select
from tests.ci import examples

CHUNKS = st.lists(
    st.tuples(st.integers(0, 20).map(lambda n: n / 10), st.integers(0, 6), st.booleans()),
    max_size=60,
)


@settings(deadline=None, max_examples=examples(100))
@given(CHUNKS, st.integers(1, 12), st.sampled_from([0.0, 0.1, 0.5]))
def test_repeats_of_an_entry_cost(
    chunks: list[tuple[float, int, bool]], size: int, cost: float
) -> None:
    seen: Counter[int] = Counter()
    expected = []
    for score, place in sorted((-score, n) for n, (score, _, ok) in enumerate(chunks) if ok):
        entry = chunks[place][1]
        expected.append((-score - cost * seen[entry], place))
        seen[entry] += 1
    expected = sorted(expected, key=lambda pair: -pair[0])[:size]
    places, scores = select(
        np.array([score for score, _, _ in chunks]),
        np.array([entry for _, entry, _ in chunks], np.int32),
        np.array([ok for _, _, ok in chunks], bool),
        size,
        cost,
    )
    assert list(zip(scores.tolist(), places.tolist(), strict=True)) == expected


def test_one_long_answer_does_not_fill_all_places() -> None:
    """Forty pieces of one entry, a little better than all others."""
    scores = np.array([1.0] * 40 + [0.7, 0.6])
    entries = np.array([0] * 40 + [1, 2], np.int32)
    places, final = select(scores, entries, np.ones(42, bool), 5, 0.1)
    assert sorted(places.tolist()) == [0, 1, 2, 3, 40]
    assert np.allclose(sorted(final), [0.7, 0.7, 0.8, 0.9, 1.0])
