"""The memory that is measured on is the same at each run, and reads like a journal."""

from __future__ import annotations

from itertools import islice


def test_same_seed_same_memory() -> None:
    from synthetic import SyntheticMemory

    days = list(islice(SyntheticMemory(7).days(), 5))
    assert days == [SyntheticMemory(7).day(number) for number in range(5)]
    assert days != list(islice(SyntheticMemory(8).days(), 5))
    assert SyntheticMemory(7).questions(5, 10) == SyntheticMemory(7).questions(5, 10)
