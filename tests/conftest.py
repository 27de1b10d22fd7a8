"""Fixtures that all tests may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memkit.errors import WeightsUnavailableError
from memkit.index.embedding.weights import ensure_weights
from memkit.paths import Home

REPOSITORY = Path(__file__).resolve().parents[1]


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
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    return home
