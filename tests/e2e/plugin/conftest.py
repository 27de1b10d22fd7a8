"""Fixtures of the tests of the plugin."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memkit.embedding.weights import ensure_weights
from memkit.paths import Home
from tests.e2e.client import REPOSITORY, ClaudeHome
from tests.e2e.plugin.user import MemkitUser, copy_plugin


@pytest.fixture(scope="session")
def models() -> Path:
    """A directory with the verified weights; a test fails, and is not skipped, without them."""
    home = Home(str(REPOSITORY / ".cache" / "test-home"))
    home.models = os.path.abspath(os.environ.get("MEMKIT_TEST_MODELS") or home.models)
    ensure_weights(home)
    return Path(home.models)


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin as users get it: a copy, because the client writes where it loads from."""
    return copy_plugin(tmp_path_factory.mktemp("clone") / "memkit")


@pytest.fixture
def user(claude_home: ClaudeHome, plugin: Path, models: Path) -> MemkitUser:
    """A user of the client who has memkit and no memory yet."""
    return MemkitUser(claude_home, plugin, models)
