"""Forgetting reaches the rows on a Chroma server, and says so while it cannot."""

from __future__ import annotations

from pathlib import Path

import chromadb
import msgspec
import pytest

from memkit.index import server as server_module
from memkit.privacy.tombstones import Tombstones
from memkit.settings.load import Settings
from tests.chroma_server import chroma_server
from tests.forget.remembered import WORD, Remembered
from tests.index.test_server import SLOW_SECONDS


def documents(port: int) -> list[str]:
    client = chromadb.HttpClient("127.0.0.1", port)
    found = [
        str(text)
        for one in client.list_collections()
        for text in client.get_collection(one.name, embedding_function=None).get()["documents"] or []
    ]
    client.close()
    return found


def test_a_turn_is_forgotten_on_the_server_too(
    remembered: Remembered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "ANSWER_SECONDS", SLOW_SECONDS)
    server_module.reset()
    with chroma_server(tmp_path) as running:
        remembered.settings = msgspec.convert({"index": {"uri": running.uri}}, Settings)
        remembered.sync()
        assert any(WORD in text for text in documents(running.port))
        others = sum(WORD not in text for text in documents(running.port))
        running.stop()
        selection = remembered.select(remembered.turns[1])
        (problem,) = remembered.forget(selection)
        assert "may still be on the server" in problem
        assert Tombstones(remembered.stage.home).unfinished() is not None
        server_module.reset()
        running.start()
        assert remembered.forget(selection) == []
        assert Tombstones(remembered.stage.home).unfinished() is None
        left = documents(running.port)
        assert len(left) == others
        assert not any(WORD in text for text in left)
