"""What the tests of events share."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from .stage import Stage


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path.resolve())
