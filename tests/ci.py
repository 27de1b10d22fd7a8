"""How much of the slow tests to run: for each commit, in CI, and at night.

CI runs every kind of test (`tools/test --all`). For a commit, properties are tried with fewer examples, and storms,
soaks, and other slow tests are left out. `tools/test --nightly` runs all of them in full size.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TypeVar

import pytest

T = TypeVar("T")

_LEVEL = os.environ.get("MEMKIT_TEST_LEVEL", "commit")
AT_NIGHT = _LEVEL == "nightly"
IN_CI = _LEVEL in ("all", "nightly")

only_in_ci = pytest.mark.skipif(not IN_CI, reason="slow: tools/test --all runs it")
only_at_night = pytest.mark.skipif(not AT_NIGHT, reason="very slow: tools/test --nightly runs it")


def sized(elsewhere: T, in_ci: T, at_night: T) -> T:
    """Return the size of a test for where it runs."""
    return at_night if AT_NIGHT else in_ci if IN_CI else elsewhere


def examples(count: int) -> int:
    """Return how many examples of a property to try: all at night, a third in CI, a fifth elsewhere, at least 8.

    Each run tries others.
    """
    return max(8, count // sized(5, 3, 1))


def set_zone(patch: pytest.MonkeyPatch, zone: str) -> None:
    """Set the time zone of this process. Windows cannot: there, a test of another zone than UTC is skipped."""
    if not hasattr(time, "tzset"):
        if zone != "UTC":
            pytest.skip("Windows has no tzset")
        return
    patch.setenv("TZ", zone)
    time.tzset()


def reset_zone() -> None:
    """Take the time zone from the variables again."""
    if hasattr(time, "tzset"):
        time.tzset()


def first(count: int, cases: list[T]) -> list[T]:
    """Return the cases to try: all in CI, elsewhere the first `count`. Put the most telling ones first."""
    return cases if IN_CI else cases[:count]


def every(step: int, cases: Sequence[T]) -> Sequence[T]:
    """Return the cases to try: all in CI, elsewhere every `step`-th one."""
    return cases if IN_CI else cases[::step]
