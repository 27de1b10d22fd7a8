"""Homes with short paths for sockets, and running services."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memkit.embedding import Embedder
from memkit.hook.entries import note_own
from memkit.ipc import address, client, launch
from memkit.paths import Home
from tests.memory import DAYS, CountingEmbedder, Memory, make_memory, real_embedder
from tests.service.running import SECONDS, RunningService

__all__ = ["real_embedder"]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, a service may answer nothing for seconds: it does not count as hung or absent."""
    monkeypatch.setattr(client, "PING_AFTER_SECONDS", SECONDS)
    monkeypatch.setattr(launch, "NOTIFY_SECONDS", SECONDS)


@pytest.fixture
def home() -> Iterator[Home]:
    """A home whose socket path is short enough. That of `tmp_path` may not be."""
    root = tempfile.mkdtemp(prefix="memkit-test-", dir="/tmp")
    yield Home(root)
    shutil.rmtree(root)


@pytest.fixture
def over_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    """The platform has no Unix sockets."""
    monkeypatch.setattr(address, "uses_unix_sockets", lambda: False)


@pytest.fixture(params=["unix", "tcp"])
def any_transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test with Unix sockets, and without."""
    monkeypatch.setattr(address, "uses_unix_sockets", lambda: request.param == "unix")
    return str(request.param)


def make_days(directory: Path, model_home: Home, embedder: Embedder) -> Memory:
    """Three days of memory, which the home wrote itself: pointers quote nothing else."""
    memory = make_memory(directory, DAYS, embedder=CountingEmbedder(embedder), models=model_home.models)
    for text in DAYS.values():
        note_own(memory.home, memory.project.root, "", text)
    return memory


@pytest.fixture
def memory(tmp_path: Path, model_home: Home, real_embedder: Embedder) -> Memory:
    return make_days(tmp_path, model_home, real_embedder)


@pytest.fixture(scope="module")
def shared(
    tmp_path_factory: pytest.TempPathFactory, model_home: Home, real_embedder: Embedder
) -> Iterator[RunningService]:
    """A warm service for the tests of a module that only ask it; each uses sessions of its own."""
    directory = tmp_path_factory.mktemp("shared")
    running = RunningService(make_days(directory, model_home, real_embedder)).start()
    running.found("port")
    yield running
    running.stop()


@pytest.fixture
def service(memory: Memory) -> Iterator[RunningService]:
    running = RunningService(memory).start()
    yield running
    running.stop()
