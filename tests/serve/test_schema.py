"""The OpenAPI document, and requests of all kinds made from it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from memkit.serve.keys import Keys
from tests.ci import sized
from tests.memory import DAYS, make_memory
from tests.serve.conftest import Client
from tests.serve.running import RunningServer

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
MANUAL = Path(__file__).resolve().parents[2] / "docs" / "integrations.md"


@pytest.fixture
def document(connect: Client) -> dict[str, Any]:
    found: dict[str, Any] = connect().get("/openapi.json").json()
    return found


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def test_the_document(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    text = json.dumps(document)
    references = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert references <= set(document["components"]["schemas"])
    assert "HTTPValidationError" not in text
    for method, path, operation in operations(document):
        assert operation["description"], path
        if path not in ("/health", "/page/key"):
            assert operation["security"], path
            for status, answer in operation["responses"].items():
                kind = "text/event-stream" if path == "/live" else "application/json"
                kind = "application/problem+json" if int(status) >= 400 else kind
                assert list(answer["content"]) == [kind], (method, path, status)
                if kind == "text/event-stream":
                    continue
                named = answer["content"][kind]["schema"]["$ref"].rpartition("/")[2]
                assert document["components"]["schemas"][named]["properties"], (method, path, status)


def test_the_manual_names_every_route(document: dict[str, Any]) -> None:
    named = set(re.findall(r"`(GET|POST|PATCH|DELETE) (/[^\s`?]*)`", MANUAL.read_text()))
    assert named == {(method, path) for method, path, _ in operations(document)}
    names = {(method, path): one["operationId"] for method, path, one in operations(document)}
    calls = re.findall(r"\| `(\w+)` \| `(GET|POST) (/\S*)` \|", MANUAL.read_text())
    assert len(calls) == 19
    assert [(name, names[method, path]) for name, method, path in calls if name != names[method, path]] == []
    assert len(set(names.values())) == len(names)


def test_operations_have_tags_and_examples(document: dict[str, Any]) -> None:
    for _, path, operation in operations(document):
        assert len(operation["tags"]) == 1, path
        needed = [one for one in operation.get("parameters", ()) if one["required"]]
        assert all(one["schema"].get("examples") for one in needed), (path, needed)
    for name in ("NoteBody", "NoteEdit", "EventBody"):
        assert document["components"]["schemas"][name]["properties"]["text"]["examples"]


def test_no_request_makes_it_fail(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, DAYS)
    Keys(memory.home).create("", "read")
    server = RunningServer(memory, "--rate", "1000000")
    try:
        with server.client() as client, requests.Session() as session:
            session.headers["Authorization"] = client.headers["Authorization"]
            schema = schemathesis.openapi.from_dict(client.get("/openapi.json").json())
            for found in schema.exclude(path="/live").get_all_operations():  # has no end; see test_live
                _try_all(found.ok(), GenerationMode.POSITIVE, server.address, session)
                if found.ok().path not in ("/health", "/jobs", "/projects"):  # nothing to get wrong
                    _try_all(found.ok(), GenerationMode.NEGATIVE, server.address, session)
            assert client.get("/health").json() == {"status": "SERVING"}
    finally:
        assert server.stop() == 0
    assert "Traceback" not in server.output
    log = Path(memory.home.log_file)
    assert not log.exists() or "Traceback" not in log.read_text()


def _try_all(operation: Any, mode: GenerationMode, address: str, session: requests.Session) -> None:
    @settings(
        max_examples=sized(2, 3, 20), deadline=None, derandomize=True, database=None,
        phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=mode))
    def try_one(case: Any) -> None:
        response = case.call(base_url=address, session=session)
        case.validate_response(response, checks=CHECKS)

    try_one()
