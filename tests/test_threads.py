"""Threads that meet in a fresh process: they import, and use msgspec's types for the first time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.ci import sized
from tests.memory import DAYS, make_memory

REPOSITORY = Path(__file__).resolve().parents[1]
RUNS = sized(1, 2, 5)

AT_ONCE = """
import importlib, sys, threading
import msgspec
sys.setswitchinterval(1e-6)
failures = []
def at_once(actions):
    barrier = threading.Barrier(len(actions))
    def run(act):
        barrier.wait()
        try:
            act()
        except Exception as error:
            failures.append(repr(error))
    threads = [threading.Thread(target=run, args=(one,)) for one in actions]
    for one in threads: one.start()
    for one in threads: one.join()
"""

PACKAGES = AT_ONCE + """
names = ("journal.digest", "capture.ingest", "timeline.tree", "browse.session_view", "topics.graph", "forget.audit")
at_once([lambda name=name: importlib.import_module(f"memkit.{name}") for name in names])
sys.exit("; ".join(failures) or None)
"""

ROUTES = AT_ONCE + """
import re
from starlette.testclient import TestClient
from memkit.interface import InterfaceMemory
from memkit.paths import Home
from memkit.serve.app import make_app
from memkit.serve.keys import Keys
from memkit.serve.server import LOOPBACK
root, home = sys.argv[1], Home(sys.argv[2])
keys = [{"Authorization": f"Bearer {Keys(home).create(name, 'admin')[1]}"} for name in "abc"]  # 16 at once for each
app = make_app(lambda: InterfaceMemory(root, home=home), Keys(home), LOOPBACK, 10_000)
with TestClient(app, base_url="http://127.0.0.1") as client:
    values = {"id": "5e550001", "year": "2026", "node": "2026-11", "name": "index"}
    def get(path):
        queries = {"query": "staging"} if "search" in path and not path.endswith("status") else {}
        answer = client.get(re.sub(r"{(\\w+)}", lambda found: values[found[1]], path), params=queries, headers=keys[len(path) % 3])
        if answer.status_code >= 500 and path != "/health":
            failures.append(f"{path}: {answer.status_code} {answer.text}")
    def post(path, body):
        answer = client.post(path, json=body, headers=keys[0])
        if not answer.is_success:
            failures.append(f"{path}: {answer.status_code} {answer.text}")
    paths = client.get("/openapi.json", headers=keys[0]).json()["paths"]
    gets = [path for path, methods in paths.items() if "get" in methods and path != "/live"]
    at_once([
        *(lambda path=path: get(path) for path in gets),
        lambda: post("/memory/store", {"text": "A note."}),
        lambda: post("/events", {"session": "1", "role": "user", "text": "Why?"}),
    ])
sys.exit("; ".join(failures) or None)
"""


def run(code: str, *arguments: str, **variables: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env={**os.environ, **variables}, cwd=REPOSITORY,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_threads_import_packages_at_once() -> None:
    for _ in range(RUNS):
        run(PACKAGES)


def test_the_first_requests_come_at_once(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, DAYS)
    own = {"MEMKIT_SERVICE_ENABLED": "false", "MEMKIT_EMBEDDING_PROVIDER": "none"}
    for _ in range(RUNS):
        run(ROUTES, memory.project.root, memory.home.root, **own)
