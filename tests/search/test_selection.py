"""Which chunks become results, against the rule written out slowly."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.search.selection import Selection
from tests.ci import examples

CHUNKS = st.lists(
    st.tuples(st.integers(0, 20).map(lambda n: n / 10), st.integers(0, 6), st.booleans(), st.integers(0, 2)),
    max_size=60,
)


def select(
    scores: list[float], entries: list[int], allowed: list[bool], days: list[int], size: int, cost: float
) -> list[tuple[float, int]]:
    found = Selection(
        scores=np.array(scores, float), own=np.zeros(len(scores)), exact=None,
        allowed=np.array(allowed, bool), lengths=np.zeros(len(scores), np.int32),
        entries=np.array(entries, np.int32), days=np.array(days, np.int32), repeat_cost=cost,
        about=np.zeros(len(scores), bool), raisable=np.array(allowed, bool),
    )  # fmt: skip
    return [(place.score, place.position) for place in islice(found.places(), size)]


@settings(max_examples=examples(100))
@given(CHUNKS, st.integers(1, 60), st.sampled_from([0.0, 0.1, 0.5]))
def test_repeats_of_an_entry_cost(chunks: list[tuple[float, int, bool, int]], size: int, cost: float) -> None:
    """Of equal scores the newer entry comes first; its pieces keep the order of the text."""
    seen: Counter[int] = Counter()
    expected = []
    rows = [(-score, -day, -entry, n) for n, (score, entry, ok, day) in enumerate(chunks) if ok]
    for negated, _, entry, place in sorted(rows):
        expected.append((-negated - cost * seen[entry], place))
        seen[entry] += 1
    expected = sorted(expected, key=lambda pair: -pair[0])[:size]
    columns = zip(*chunks, strict=True) if chunks else ([], [], [], [])
    assert select(*map(list, columns), size, cost) == expected


def test_repeats_of_many_equal_scores_are_not_lost() -> None:
    found = select([0.0] * 30, [0] * 30, [True] * 30, [0] * 30, 30, 0.1)
    assert [place for _, place in found] == list(range(30))
