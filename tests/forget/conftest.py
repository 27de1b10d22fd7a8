"""What the tests of forgetting share."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.capture.stage import Stage
from tests.forget.remembered import Remembered
from tests.memory import FakeEmbedder


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("MEMKIT_HOME", raising=False)
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture(autouse=True)
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks are embedded at no cost."""
    find = lambda *_: (FakeEmbedder(), "")  # noqa: E731
    monkeypatch.setattr("memkit.embedding.find_embedder", find)


@pytest.fixture
def remembered(tmp_path: Path) -> Remembered:
    return Remembered(Stage(tmp_path.resolve()))
