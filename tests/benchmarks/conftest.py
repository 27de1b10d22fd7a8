"""The benchmarks are scripts, not a package: their directory is where they find each other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memkit.paths import Home

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.fixture
def home_with_model(tmp_path: Path, model_home: Home, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with the embedding model, as `MEMKIT_HOME`."""
    home = tmp_path / "memkit"
    home.mkdir(mode=0o700)
    os.symlink(model_home.models, home / "models")
    monkeypatch.setenv("MEMKIT_HOME", str(home))
    return home
