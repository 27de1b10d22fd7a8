"""Fixtures of the e2e tests, all of which carry the marker `e2e`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.client import ClaudeHome, install_claude
from tests.messages_api import MessagesApi

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def claude() -> Path:
    """The real client."""
    return install_claude()


@pytest.fixture
def api() -> Iterator[MessagesApi]:
    """The scripted API; a test sets `api.script`."""
    with MessagesApi() as api:
        yield api


@pytest.fixture
def claude_home(claude: Path, api: MessagesApi) -> Iterator[ClaudeHome]:
    """An empty home whose client talks to `api`."""
    with ClaudeHome(claude, api.url) as home:
        yield home
