"""Fixtures of the summary tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from memkit.embedding import Embedder, load_embedder
from memkit.paths import Home
from memkit.settings import EmbeddingSettings
from tests.summarize.stage import SummaryStage


@pytest.fixture(autouse=True)
def no_waiting_for_disks(unsynced: None) -> None:
    """What survives a power failure is not the subject here."""


@pytest.fixture
def stage(tmp_path: Path) -> SummaryStage:
    return SummaryStage(tmp_path)


@pytest.fixture(scope="session")
def local_embedder(model_home: Home) -> Embedder:
    return load_embedder(model_home, EmbeddingSettings(download=False))
