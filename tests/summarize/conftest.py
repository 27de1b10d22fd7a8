"""Fixtures of the summary tests."""

from __future__ import annotations

import os

import pytest

from memkit.embedding import Embedder, load_embedder
from memkit.paths import Home
from memkit.settings import EmbeddingSettings


@pytest.fixture(autouse=True)
def no_waiting_for_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What survives a power failure is not the subject here."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture(scope="session")
def local_embedder(model_home: Home) -> Embedder:
    """The real embedding model."""
    return load_embedder(model_home, EmbeddingSettings(download=False))
