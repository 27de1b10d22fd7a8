"""A memory, its app in this process, and keys for it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from starlette.testclient import TestClient

from memkit.interface import InterfaceMemory as FrontDoor
from memkit.serve import answers
from memkit.serve.app import make_app
from memkit.serve.keys import Keys
from memkit.serve.server import LOOPBACK, RATE
from tests.memory import DAYS, Memory, make_memory
from tests.service.running import wait_until

Client = Callable[..., TestClient]


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return make_memory(tmp_path, DAYS, embedding={"provider": "none"}, service={"enabled": False})


@pytest.fixture
def keys(memory: Memory) -> Keys:
    return Keys(memory.home)


def front_door(memory: Memory, *, other_projects: bool = False) -> FrontDoor:
    """The memory as requests get it."""
    return FrontDoor(
        memory.project, home=memory.home, settings_of=lambda _: memory.settings, other_projects=other_projects
    )


def responses_of(document: dict[str, Any]) -> dict[str, Any]:
    """The name of the type of each response, by `GET /path` as a pattern."""
    found = {}
    for path, methods in document["paths"].items():
        pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))
        for method, operation in methods.items():
            for status, answer in operation["responses"].items():
                reference = answer["content"].get("application/json", {}).get("schema", {}).get("$ref", "")
                found[f"{method.upper()} {pattern} {status}"] = reference.rpartition("/")[2]
    return found


def check_schema(response: httpx.Response, schemas: dict[str, str]) -> None:
    """Check that a response has all and only the fields of its type."""
    request = f"{response.request.method} {response.request.url.path} {response.status_code}"
    # The first pattern: `/memory/search` comes before `/memory/{id}`.
    name = next((name for pattern, name in schemas.items() if re.fullmatch(pattern, request)), "")
    kind = next((one for one in answers._kinds if one.__name__ == name), None)
    if kind is not None:
        body = response.read()
        again = json.loads(msgspec.json.encode(msgspec.json.decode(body, type=kind)))
        assert again == json.loads(body), name


TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:\d\d|Z)")
OTHER_TIME = re.compile(r"(\d{4}-\d\d-\d\d )?\d\d:\d\d(:\d\d)?")


def local(time: str) -> str:
    """A time of this machine as answers have it."""
    return datetime.fromisoformat(time).astimezone().isoformat()


def check_published(response: httpx.Response, directory: str) -> None:
    """Check that an answer has one form of times, and no path of this machine."""
    text = response.read().decode()
    assert directory not in text
    if text and response.headers["content-type"].endswith("json") and response.request.url.path != "/openapi.json":
        json.loads(text, object_hook=_check_times)


def _check_times(one: dict[str, Any]) -> dict[str, Any]:
    for name, value in one.items():
        assert not isinstance(value, str) or not OTHER_TIME.fullmatch(value), (name, value)
        if name in ("begins", "ends", "time", "computed") and value and len(value) > len("2026-11-20"):
            assert TIME.fullmatch(value), (name, value)
    return one


@pytest.fixture
def connect(memory: Memory, keys: Keys) -> Iterator[Client]:
    """Makes clients of a new app, each with a key of a role; "" is none."""
    open_clients = []
    schemas: dict[str, Any] = {}

    def make(role: str = "admin", rate: int = RATE, **options: bool) -> TestClient:
        app = make_app(lambda: front_door(memory, **options), keys, LOOPBACK, rate)
        headers = {"Authorization": f"Bearer {keys.create('a test', role)[1]}"} if role else {}
        client = TestClient(app, base_url="http://127.0.0.1", headers=headers, raise_server_exceptions=False)
        client.__enter__()
        schemas.update(schemas or responses_of(client.get("/openapi.json").json()))
        place = str(Path(memory.project.root).parent)
        client.event_hooks = {
            "response": [
                lambda response: check_schema(response, schemas), lambda response: check_published(response, place)
            ]
        }  # fmt: skip
        open_clients.append(client)
        wait_until(lambda: client.get("/health").status_code == 200, "the app to be ready")
        return client

    yield make
    for one in open_clients:
        one.__exit__(None, None, None)


@pytest.fixture
def admin(connect: Client) -> TestClient:
    return connect()
