"""What the tests of forgetting share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.capture.stage import Stage
from tests.ci import reset_zone, set_zone
from tests.forget.remembered import Prepared, Remembered
from tests.memory import FakeEmbedder


def set_up(patch: pytest.MonkeyPatch) -> None:
    """Use UTC, embed chunks at no cost, and wait for no disk: durability has tests of its own."""
    find = lambda *_: (FakeEmbedder(), "")  # noqa: E731
    patch.delenv("MEMKIT_HOME", raising=False)
    set_zone(patch, "UTC")
    patch.setattr("memkit.embedding.find_embedder", find)
    patch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture(scope="session")
def prepare(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a function that builds something on a stage once, and makes a fresh copy of it for each test."""
    known: dict[str, Prepared[Any]] = {}

    def copy(name: str, build: Any) -> Any:
        if name not in known:
            known[name] = Prepared(tmp_path_factory.mktemp(name).resolve(), build)
        return known[name].copy()

    return copy


@pytest.fixture(autouse=True)
def utc() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        set_up(patch)
        yield
    reset_zone()


@pytest.fixture
def remembered(prepare: Any) -> Remembered:
    found: Remembered = prepare("remembered", lambda root: Remembered(Stage(root)))
    return found
