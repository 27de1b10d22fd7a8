"""A real server on loopback, from its start to its end."""

from __future__ import annotations

import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from memkit.environment import extras
from memkit.errors import MissingPackageError
from memkit.serve.keys import Keys
from memkit.serve.server import LOOPBACK, check_packages, is_loopback, names_for
from tests.memory import DAYS, Memory, make_memory
from tests.serve.running import RunningServer, environment, run
from tests.service.running import RunningService, wait_until


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    found = make_memory(tmp_path, DAYS)
    Keys(found.home).create("", "read")
    return found


@pytest.fixture
def server(memory: Memory) -> Iterator[RunningServer]:
    running = RunningServer(memory)
    yield running
    running.stop(signal.SIGKILL)


def test_from_a_note_to_its_end(server: RunningServer) -> None:
    with server.client() as client:
        stored = client.post("/memory/store", json={"text": "The quokka port is 7447.", "tags": ["quokka"]})
        assert stored.status_code == 201
        assert client.post("/events", json={"session": "a", "role": "user", "text": "A question"}).status_code == 201
        found = client.get("/memory/search", params={"query": "quokka"}).json()
        assert "7447" in found["results"][0]["content"]
        name = stored.json()["id"]
        assert client.delete(f"/memory/{name}").json()["erased"]
        assert client.get("/memory/search", params={"query": "quokka"}).json()["results"] == []
    assert server.stop() == 0
    assert "quokka" not in server.output
    assert "POST /memory/store 201" in server.output
    assert "Traceback" not in server.output
    log = Path(server.memory.home.log_file)
    assert not log.exists() or "quokka" not in log.read_text()
    for path in Path(server.memory.home.root).rglob("*"):
        assert stat.S_IMODE(path.lstat().st_mode) & 0o077 == 0, path


def test_an_interrupt_ends_it_and_leaves_nothing(server: RunningServer) -> None:
    children = psutil.Process(server.process.pid).children(recursive=True)
    assert server.stop(signal.SIGINT) == 0
    assert not any(one.is_running() for one in children)
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{server.address}/health", timeout=60)


def test_a_request_in_progress_is_answered_before_the_end(server: RunningServer) -> None:
    from filelock import FileLock

    answers: list[int] = []
    with server.client("write") as client:
        event = {"session": "a", "role": "user", "text": "What about the dugong?"}
        with FileLock(server.memory.home.capture_lock):
            asking = threading.Thread(
                target=lambda: answers.append(client.post("/events", json=event).status_code)
            )
            asking.start()
            held = Path(server.memory.home.root, "sessions")
            wait_until(lambda: _established(server) >= 1, "the request to arrive")
            assert not held.exists()
            server.process.send_signal(signal.SIGTERM)
        asking.join(60)
    # A second signal, once the server is done with signals, would kill it.
    assert server.process.wait(60) == 0
    assert answers == [201]


def _established(server: RunningServer) -> int:
    connections = psutil.Process(server.process.pid).net_connections("tcp")
    return sum(one.status == psutil.CONN_ESTABLISHED for one in connections)


def test_without_a_key_or_a_port_it_does_not_start(memory: Memory, tmp_path: Path) -> None:
    refused = run(make_memory(tmp_path / "empty", DAYS), "--port", "0")
    assert refused.returncode == 1
    assert "memkit serve key" in refused.stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = run(memory, "--port", str(taken.getsockname()[1]))
    assert refused.returncode == 1
    assert "another --port" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_another_address_is_warned_about_and_answers_by_its_name(memory: Memory) -> None:
    server = RunningServer(memory, "--host", "127.0.0.1", "--allow-host", "memory.example")
    try:
        assert "warning" not in server.output
        for name, status in (("memory.example", 200), ("memory.example:80", 200), ("other.example", 421)):
            assert httpx.get(f"{server.address}/health", headers={"Host": name}, timeout=60).status_code == status
    finally:
        server.stop()
    refused = run(memory, "--host", "203.0.113.7")  # nobody's address
    assert refused.returncode == 1
    assert "warning: other machines" in refused.stderr


def test_the_names_of_a_server() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.1.5", "localhost.example", "")))
    assert names_for("127.0.0.1", []) == set(LOOPBACK)
    assert names_for("192.168.1.5", ["memory.example"]) == {*LOOPBACK, "192.168.1.5", "memory.example"}
    for every in ("0.0.0.0", "::", ""):
        assert names_for(every, []) == set(LOOPBACK)


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    check_packages()
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "uvicorn" else object())
    with pytest.raises(MissingPackageError, match="uvicorn"):
        check_packages()


def test_with_the_background_service(memory: Memory) -> None:
    own = {"MEMKIT_EMBEDDING_PROVIDER": "none"}
    service = RunningService(memory, **own).start()
    pid = service.status()["pid"]
    server = RunningServer(memory, MEMKIT_SERVICE_ENABLED="true")
    try:
        with server.client() as client:
            name = client.post("/memory/store", json={"text": "The quokka port is 7447."}).json()["id"]
            query = {"query": "quokka"}
            found = wait_until(
                lambda: client.get("/memory/search", params=query).json()["results"], "the note to be found"
            )
            assert "7447" in found[0]["content"]
            event = {"session": "a", "role": "user", "text": "Where is the numbat?"}
            assert client.post("/events", json=event).status_code == 201
            assert client.delete(f"/memory/{name}").status_code == 200
            assert client.get("/memory/search", params=query).json()["results"] == []
        assert service.status()["pid"] == pid
        assert server.stop() == 0
    finally:
        server.stop(signal.SIGKILL)
        service.stop()


FOREIGN = "('fastapi', 'h11', 'limits', 'starlette', 'uvicorn')"
"""Packages of the HTTP API. Chroma imports pydantic, too."""

_CHECK = f"""
import sys
found = [name for name in sys.modules if name.split('.')[0] in {FOREIGN} or name.startswith('memkit.serve.')]
assert not set(found) - allowed, found
"""


def command(*words: str) -> str:
    return (
        f"from memkit.cli import main\nimport sys\nsys.argv[1:] = {list(words)}\n"
        "try: main()\nexcept SystemExit: pass"
    )


@pytest.mark.parametrize("code", [
    "import memkit.hook.events, memkit.hook.notices, memkit.hook.status_line\n"
    "import memkit, memkit.memory, memkit.questions.client, memkit.search.ranking, memkit.capture.ingest\n"
    "import memkit.service.server, memkit.service.operations, memkit.capture.capture",
    "\n".join(command(*words) for words in (["--help"], ["status"], ["search", "port"], ["doctor"])),
])  # fmt: skip
def test_nothing_of_it_is_imported_elsewhere(memory: Memory, code: str) -> None:
    done = isolated(memory, f"allowed = set()\n{code}\n{_CHECK}")
    assert done.returncode == 0, done.stderr


def test_a_refusal_imports_no_server(tmp_path: Path) -> None:
    empty = make_memory(tmp_path, DAYS)
    allowed = "allowed = {f'memkit.serve.{name}' for name in ('server', 'keys', 'link')}"
    done = isolated(empty, f"{allowed}\n{command('serve')}\n{command('serve', 'keys')}\n{_CHECK}")
    assert done.returncode == 0, done.stderr
    assert "memkit serve key" in done.stderr + done.stdout


def isolated(memory: Memory, code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env=environment(memory), cwd=memory.project.root,
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
