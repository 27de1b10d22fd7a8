"""Waiting for what other processes do: polling, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

INTERVAL = 0.05
"""Seconds between two looks."""


def wait_until(
    look: Callable[[], Found],
    timeout: float = 120.0,
    failure: Callable[[], str] = lambda: "What was waited for did not happen.",
) -> Found:
    """The first true value of `look()`, or an `AssertionError` after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        if found := look():
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"{failure()} (waited {timeout:g} s)")
        time.sleep(INTERVAL)
