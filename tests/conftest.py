"""Fixtures that all tests may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from memkit.embedding.weights import ensure_weights
from memkit.errors import WeightsUnavailableError
from memkit.paths import Home
from tests.capture.stage import Stage
from tests.ci import IN_CI, reset_zone, set_zone, sized
from tests.memory import real_embedder

__all__ = ["real_embedder"]

REPOSITORY = Path(__file__).resolve().parents[1]

# A busy machine fails no property.
settings.register_profile("untimed", max_examples=sized(50, 50, 100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def model_home() -> Home:
    """A home whose `models` holds the verified weights, kept from run to run.

    Without them a test is skipped, but in CI it fails.

    A test with a home of its own takes over `model_home.models`. `MEMKIT_TEST_MODELS` names a
    models directory to use instead. Safe with xdist: memkit itself locks the download.
    """
    home = Home(str(REPOSITORY / ".cache" / "test-home"))
    home.models = os.path.abspath(os.environ.get("MEMKIT_TEST_MODELS") or home.models)
    try:
        ensure_weights(home)
    except WeightsUnavailableError as error:
        if IN_CI:
            raise
        pytest.skip(str(error))
    return home


@pytest.fixture(autouse=True)
def utc() -> Iterator[None]:
    """Run every test in UTC. Not through `monkeypatch`, which tests may want undone before their fixtures."""
    with pytest.MonkeyPatch.context() as patch:
        set_zone(patch, "UTC")
        yield
    reset_zone()


@pytest.fixture(autouse=True)
def logged_out(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hide the developer's own login: by default, summaries would use it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path_factory.getbasetemp() / "no-claude"))
        patch.setenv("CODEX_HOME", str(tmp_path_factory.getbasetemp() / "no-codex"))
        patch.setenv("CURSOR_DATA_DIR", str(tmp_path_factory.getbasetemp() / "no-cursor"))
        patch.setenv("GEMINI_CLI_HOME", str(tmp_path_factory.getbasetemp() / "no-gemini"))
        yield


@pytest.fixture(scope="module")
def unsynced() -> Iterator[None]:
    """Skip `os.fsync` where no test is about durability."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A memory home and a project whose events are handled in this process."""
    return Stage(tmp_path.resolve())
