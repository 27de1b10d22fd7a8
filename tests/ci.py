"""What runs in CI only, so that the suite on a developer's machine stays short.

CI runs every test. Elsewhere, properties are tried with fewer examples, and storms, soaks, large
sizes, and other slow tests are left out.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

import pytest

T = TypeVar("T")

IN_CI = bool(os.environ.get("CI"))

only_in_ci = pytest.mark.skipif(not IN_CI, reason="slow: CI runs it")


def examples(count: int) -> int:
    """Return how many examples of a property to try: half of `count` in CI, a fifth elsewhere, at least 8.

    Each run tries others.
    """
    return max(8, count // (2 if IN_CI else 5))


def first(count: int, cases: list[T]) -> list[T]:
    """Return the cases to try: all in CI, elsewhere the first `count`. Put the most telling ones first."""
    return cases if IN_CI else cases[:count]


def every(step: int, cases: Sequence[T]) -> Sequence[T]:
    """Return the cases to try: all in CI, elsewhere every `step`-th one."""
    return cases if IN_CI else cases[::step]
