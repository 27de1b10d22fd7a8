"""Fixtures of the tests of providers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.llm.chat_server import ChatServer, running


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with running() as server:
        yield server
