"""What stands before the app: names, origins, sizes, headers, and the access log."""

from __future__ import annotations

import logging

import pytest
from starlette.testclient import TestClient

from memkit.memory import Memory
from memkit.serve.guard import BODY_BYTES, STRANGER_BYTES
from memkit.serve.limits import FAILURES_PER_MINUTE
from tests.serve.conftest import Client


def test_names_of_this_machine_and_foreign_ones(admin: TestClient) -> None:
    for host in ("127.0.0.1", "127.0.0.1:8377", "localhost:1", "LOCALHOST", "[::1]", "[::1]:8377"):
        assert admin.get("/timeline", headers={"Host": host}).status_code == 200, host
    own = {"Origin": "http://127.0.0.1", "Sec-Fetch-Site": "same-origin"}
    assert admin.get("/timeline", headers=own).status_code == 200
    assert admin.get("/timeline", headers={"Sec-Fetch-Site": "none"}).status_code == 200
    for host in (
        "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8377", "evil.example@localhost",
        "localhost@evil.example", "localhost:x", "", "127.0.0.1, evil.example", "[::1", "localhost/x",
    ):  # fmt: skip
        refused = admin.get("/timeline", headers={"Host": host})
        assert refused.status_code == refused.json()["status"] == 421, host
        assert refused.headers["content-type"] == "application/problem+json"
        assert admin.get("/health", headers={"Host": host}).status_code == 421
        assert admin.get("/openapi.json", headers={"Host": host}).status_code == 421
    hosts = [("Host", "localhost"), ("Host", "evil.example")]
    assert admin.get("/timeline", headers=hosts).status_code == 421


def test_what_a_proxy_says_of_a_client_counts_for_nothing(connect: Client) -> None:
    client = connect("")
    for number in range(FAILURES_PER_MINUTE):
        claims = {"X-Forwarded-For": f"203.0.113.{number}", "Forwarded": f"for=203.0.113.{number}"}
        assert client.get("/timeline", headers=claims).status_code == 401
    assert client.get("/timeline", headers={"X-Forwarded-For": "203.0.113.99"}).status_code == 429
    assert client.get("/health", headers={"X-Forwarded-Host": "evil.example"}).status_code == 200
    assert client.get("/health", headers={"Host": "evil.example", "X-Forwarded-Host": "localhost"}).status_code == 421


def test_foreign_pages_are_refused(admin: TestClient) -> None:
    for headers in (
        {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:9999"}, {"Origin": "file://"},
        {"Origin": "http://127.0.0.1/x"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
    ):  # fmt: skip
        refused = admin.get("/timeline", headers=headers)
        assert refused.status_code == 403, headers
        assert "access-control-allow-origin" not in refused.headers
    asks = {"Origin": "http://evil.example", "Access-Control-Request-Method": "GET"}
    preflight = admin.options("/timeline", headers=asks)
    assert preflight.status_code == 403
    assert not [name for name in preflight.headers if name.startswith("access-control")]


def test_a_large_body_is_refused_before_it_is_read(admin: TestClient) -> None:
    large = b'{"text": "' + b"a" * BODY_BYTES + b'"}'
    headers = {"Content-Type": "application/json"}
    for content in (large, iter([large[:9], large[9:]])):
        refused = admin.post("/memory/store", content=content, headers=headers)
        assert refused.status_code == 413
        assert refused.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("key", [None, "Bearer memkit_key_wrong", "Basic bWU6bWU="])
def test_strangers_send_little(admin: TestClient, key: str | None) -> None:
    text = b'{"text": "' + b"a" * STRANGER_BYTES + b'"}'
    headers = {"Content-Type": "application/json"}
    assert admin.post("/memory/store", content=text, headers=headers).status_code == 201
    if key is None:
        admin.headers.pop("Authorization")
    else:
        headers["Authorization"] = key
    for content in (text, iter([text[:9], text[9:]])):
        refused = admin.post("/memory/store", content=content, headers=headers)
        assert (refused.status_code, "without a valid key" in refused.json()["detail"]) == (413, True)
    assert admin.post("/memory/store", content=text[-100:], headers=headers).status_code == 400


def test_safe_headers_are_everywhere(admin: TestClient) -> None:
    for found in (admin.get("/timeline"), admin.get("/nothing"), admin.get("/health", headers={"Host": "x"})):
        assert found.headers["x-content-type-options"] == "nosniff"
        assert found.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in found.headers["content-security-policy"]
        assert "server" not in found.headers


UNDESCRIBED = [
    ("/memory/search?query=port&other=1", None), ("/memory/search?query=port&query=gateway", None),
    ("/timeline/2026?x=", None), ("/jobs?x=1", None), ("/health?x=1", None), ("/memory/search?query=", None),
    ("/memory/search?query=a&limit=101", None), ("/memory/search?query=a&limit=1.5", None),
    ("/memory/store", {"text": "a", "extra": 1}), ("/memory/store", {"text": 1}),
    ("/memory/store", {"text": ""}), ("/memory/store", {"text": "a", "tags": "b"}),
    ("/memory/store", {"text": "a", "tags": [None]}), ("/memory/store", {"text": "a", "metadata": []}),
    ("/memory/store", {"text": "a", "metadata": {"a": "b" * 5000}}),
    ("/memory/store", {"text": "a" * 20_001}), ("/memory/store", ["text"]),
]


def test_whatever_is_not_described_is_refused(admin: TestClient) -> None:
    for path, sent in UNDESCRIBED:
        refused = admin.get(path) if sent is None else admin.post(path, json=sent)
        assert refused.status_code == 422, (path, sent)
        assert refused.headers["content-type"] == "application/problem+json"
        assert "bbbb" not in refused.text
    for kind in ("text/plain", "application/x-www-form-urlencoded"):  # a form of a foreign page is no JSON
        refused = admin.post("/memory/store", content=b'{"text": "a"}', headers={"Content-Type": kind})
        assert refused.status_code == 415
    assert admin.post("/memory/store", content=b"{", headers={"Content-Type": "application/json"}).status_code == 400
    for body in (
        b"{", b'{"text": "\\ud800"}', b'{"text": "a", "metadata": {"n": 1e999}}', b'{"text": "a", "n": ' + b"9" * 5000,
        b'{"text": "a", "metadata": {"n": NaN}}', b"[" * 100_000, b"\xff",
    ):  # fmt: skip
        refused = admin.post("/memory/store", content=body, headers={"Content-Type": "application/json"})
        assert refused.status_code in (400, 422), body[:50]
        assert refused.headers["content-type"] == "application/problem+json"


def test_a_failure_of_memkit_shows_no_traceback(connect: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client = connect()

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("secret of the memory")

    monkeypatch.setattr(Memory, "timeline", fail)
    failed = client.get("/timeline")
    assert failed.status_code == 500
    assert failed.headers["content-type"] == "application/problem+json"
    assert failed.headers["x-content-type-options"] == "nosniff"
    assert "secret" not in failed.text
    assert "ZeroDivisionError" in failed.json()["detail"]


def test_the_access_log_has_no_words_of_requests(
    connect: Client, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("memkit.serve.access"), "propagate", True)
    caplog.set_level(logging.INFO, "memkit.serve.access")
    client = connect()
    client.get("/memory/search", params={"query": "capybara"})
    client.get("/timeline/capybara/search", params={"query": "capybara"})
    client.get("/capybara")
    client.post("/memory/store", json={"text": "capybara", "tags": ["capybara"]})
    client.get("/timeline?query=capybara", headers={"Host": "capybara"})
    lines = [one.getMessage() for one in caplog.records if one.name == "memkit.serve.access"]
    assert "capybara" not in "\n".join(lines)
    assert any(line.startswith("GET /memory/search 200") for line in lines)
    assert any(line.startswith("GET /timeline/{node}/search 404") for line in lines)
    assert any(line.startswith("GET - 404") for line in lines)
