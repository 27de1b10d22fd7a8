"""Threads that meet in a fresh process: they import, and use msgspec's types for the first time."""

from __future__ import annotations

import ast
import functools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.memory import DAYS, make_memory

REPOSITORY = Path(__file__).resolve().parents[1]
RUNS = 3

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
names = ("journal.digest", "capture.ingest", "timeline.tree", "recall.session_view", "topics.graph", "forget.audit")
at_once([lambda name=name: importlib.import_module(f"memkit.{name}") for name in names])
sys.exit("; ".join(failures) or None)
"""

ROUTES = AT_ONCE + """
import re
from starlette.testclient import TestClient
from memkit import Memory
from memkit.paths import Home
from memkit.serve.app import make_app
from memkit.serve.keys import Keys
from memkit.serve.server import LOOPBACK
root, home = sys.argv[1], Home(sys.argv[2])
_, secret = Keys(home).create("a test", "admin")
app = make_app(lambda: Memory(root, home=home), Keys(home), LOOPBACK, 10_000)
headers = {"Authorization": f"Bearer {secret}"}
with TestClient(app, base_url="http://127.0.0.1", headers=headers) as client:
    values = {"id": "5e550001", "year": "2026", "node": "2026-11", "name": "index"}
    def get(path):
        queries = {"query": "staging"} if "search" in path and not path.endswith("status") else {}
        answer = client.get(re.sub(r"{(\\w+)}", lambda found: values[found[1]], path), params=queries)
        if answer.status_code >= 500 and path != "/health":
            failures.append(f"{path}: {answer.status_code} {answer.text}")
    def post(path, body):
        answer = client.post(path, json=body)
        if not answer.is_success:
            failures.append(f"{path}: {answer.status_code} {answer.text}")
    paths = client.get("/openapi.json").json()["paths"]
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
        capture_output=True, text=True, timeout=120, check=False,
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


def modules() -> dict[str, Path]:
    found = {}
    for path in (REPOSITORY / "memkit").rglob("*.py"):
        name = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return found


MODULES = modules()


@functools.cache
def parsed(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text("utf-8"))


def imports(body: list[ast.stmt], *, is_deep: bool) -> Iterator[str]:
    """The modules of memkit that statements import, in order; those of functions only if `is_deep`."""
    for one in body:
        if isinstance(one, ast.If) and "TYPE_CHECKING" in ast.dump(one.test):
            continue
        if isinstance(one, ast.ImportFrom) and one.module:
            yield one.module
            yield from (name for alias in one.names if (name := f"{one.module}.{alias.name}") in MODULES)
        elif isinstance(one, ast.Import):
            yield from (alias.name for alias in one.names)
        elif is_deep or not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for field in ("body", "orelse", "finalbody", "handlers"):
                yield from imports(getattr(one, field, []), is_deep=is_deep)


@functools.cache
def loaded_by(name: str) -> frozenset[str]:
    """The modules that are complete when this one is."""
    found, waiting = {name}, [name]
    while waiting:
        for one in imports(parsed(waiting.pop()).body, is_deep=False):
            parents = {one.rsplit(".", count)[0] for count in range(one.count(".") + 1)}
            new = (parents & MODULES.keys()) - found
            found |= new
            waiting += new
    return frozenset(found)


@pytest.mark.parametrize("package", ["archive", "forget", "journal", "topics"])
def test_a_part_of_a_package_is_imported_after_the_package(package: str) -> None:
    """Python locks a module before its package. Two threads that take these locks in turn get half modules."""
    whole = f"memkit.{package}"
    parts = {name for name in loaded_by(whole) if name.startswith(f"{whole}.")}
    for name in MODULES:
        if name.startswith((f"{whole}.", "memkit.cli")) or name == whole:
            continue
        complete = loaded_by(name.rpartition(".")[0]) if name.count(".") > 1 else set()
        for one in imports(parsed(name).body, is_deep=True):
            assert one not in parts or whole in complete, f"{name} imports {one}: import {whole} first"
            if one in MODULES and one not in parts:
                complete = complete | loaded_by(one)


def test_types_are_converted_where_it_is_safe() -> None:
    """msgspec's first use of a type is not: see `memkit.typed`."""
    for name, path in MODULES.items():
        if name == "memkit.typed" or name.startswith(("memkit.cli", "memkit.maintenance", "memkit.summarize.undo")):
            continue  # these run in one thread
        text = path.read_text("utf-8")
        assert name == "memkit.settings.validate" or "msgspec.convert(" not in text, name  # plain types
        assert "json.decode(" not in text, name
