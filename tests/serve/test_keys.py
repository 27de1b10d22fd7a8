"""Keys: made once, kept as hashes, and what each may do."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from memkit.errors import DamagedFileError, NewerFileError, NotFoundError
from memkit.privacy.redact import redact
from memkit.serve import keys as module
from memkit.serve.keys import PREFIX, ROLES, Keys
from tests.memory import Memory
from tests.serve.conftest import Client
from tests.serve.running import run


def test_keys_are_kept_as_hashes_and_revoked_at_once(memory: Memory, keys: Keys) -> None:
    made, secret = keys.create("an\neditor", "write")
    path = Path(memory.home.serve_keys)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert secret not in path.read_text()
    assert secret.removeprefix(PREFIX) not in path.read_text()
    assert (made.name, made.role) == ("an editor", "write")
    assert secret not in redact(f"curl -H 'X: {secret}' localhost")  # in a conversation
    assert keys.find(secret) == made
    assert keys.find(secret[:-1]) is None
    assert keys.find(made.hash) is None
    assert keys.find("") is None
    made, secret = keys.create("", "read")
    other, kept = Keys(memory.home).create("", "read")
    assert keys.find(kept) == other
    Keys(memory.home).revoke(made.id)
    assert keys.find(secret) is None
    assert keys.find(kept) == other
    with pytest.raises(NotFoundError):
        keys.revoke(made.id)


def test_all_keys_are_compared_in_constant_time(
    memory: Memory, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, first = keys.create("", "read")
    for _ in range(3):
        keys.create("", "read")
    compared: list[str] = []
    real = module.hmac.compare_digest

    def compare(one: str, other: str) -> bool:
        compared.append(one)
        return real(one, other)

    monkeypatch.setattr(module.hmac, "compare_digest", compare)
    keys.find(first)
    keys.find("wrong")
    assert len(compared) == 8


def test_a_file_that_cannot_be_trusted(memory: Memory, keys: Keys) -> None:
    _, secret = keys.create("", "read")
    path = Path(memory.home.serve_keys)
    good = json.loads(path.read_text())
    for change, error in (
        ("{", DamagedFileError), (json.dumps({"version": 99, "keys": []}), NewerFileError),
        (json.dumps({**good, "keys": [{**good["keys"][0], "role": "root"}]}), DamagedFileError),
        (json.dumps({**good, "keys": [{**good["keys"][0], "hash": 5}]}), DamagedFileError),
    ):  # fmt: skip
        path.write_text(change)
        with pytest.raises(error):
            Keys(memory.home).find(secret)
        with pytest.raises(error):  # and it is not replaced
            Keys(memory.home).create("", "admin")


def test_a_link_and_a_file_that_others_may_change_count_for_nothing(
    memory: Memory, keys: Keys, tmp_path: Path
) -> None:
    _, secret = keys.create("", "read")
    path = Path(memory.home.serve_keys)
    path.chmod(0o622)
    with pytest.raises(DamagedFileError):
        keys.find(secret)
    path.chmod(0o600)
    path.rename(tmp_path / "keys.json")
    path.symlink_to(tmp_path / "keys.json")
    with pytest.raises(DamagedFileError):
        Keys(memory.home).all()


def test_a_damaged_file_tells_a_stranger_nothing(connect: Client, memory: Memory) -> None:
    client = connect()
    Path(memory.home.serve_keys).write_text("{")
    for headers in ({}, {"Authorization": "Bearer memkit_key_wrong"}):
        refused = client.get("/timeline", headers=headers)
        assert refused.status_code == 503
        assert memory.home.root not in refused.text
        refused = client.post("/memory/store", json={"text": "a"}, headers=headers)
        assert refused.status_code == 503


ROUTES = {
    "read": [
        ("GET", "/memory/search?query=port"), ("GET", "/memory/2026-11-18"), ("GET", "/timeline"),
        ("GET", "/events"), ("GET", "/search/lexical?query=a"), ("GET", "/topics/status"),
    ],
    "write": [("POST", "/memory/store"), ("POST", "/events")],
    "admin": [("DELETE", "/memory/2026-11-18?dry_run=true"), ("GET", "/jobs"), ("GET", "/jobs/index")],
}  # fmt: skip


def status(client: TestClient, method: str, path: str) -> int:
    body = {"/memory/store": {"text": "a note"}, "/events": {"session": "a", "role": "user", "text": "a"}}
    sent = {"json": body[path]} if method == "POST" and path in body else {}
    return client.request(method, path, **sent).status_code


@pytest.mark.parametrize("role", ["", *ROLES])
def test_what_a_role_may_do(connect: Client, role: str) -> None:
    client = connect(role)
    allowed = ROLES[: ROLES.index(role) + 1] if role else ()
    for needed, routes in ROUTES.items():
        for method, path in routes:
            found = status(client, method, path)
            if needed in allowed:
                assert found not in (401, 403), path
            else:
                assert found == (403 if role else 401), path


def test_no_key(connect: Client) -> None:
    client = connect("")
    for given in ("", "Bearer", "Bearer memkit_", "Basic bWU6bWU=", "Bearer \xff", "bearer x y"):
        refused = client.get("/timeline", headers={"Authorization": given.encode("latin-1")})
        assert refused.status_code == 401, given
        assert refused.headers["www-authenticate"] == "Bearer"
        assert refused.headers["content-type"] == "application/problem+json"


def test_every_other_route_needs_a_key(connect: Client) -> None:
    client = connect("")
    document = client.get("/openapi.json").json()
    for path, operations in document["paths"].items():
        for method in operations:
            found = client.request(method, path.replace("{", "").replace("}", ""), params={"query": "a"})
            is_open = path in ("/health", "/page/key")  # the token of a link is a key, too
            body = method == "post" and found.status_code == 422  # a body is checked first
            assert is_open or body or found.status_code in (401, 422), path
            if not is_open:
                assert operations[method]["security"], path


def test_the_commands(memory: Memory) -> None:
    made = run(memory, "key", "--role", "write", "--name", "ci")
    assert made.returncode == 0
    secret = made.stdout.strip()
    assert secret.startswith(PREFIX)
    found = Keys(memory.home).find(secret)
    listed = run(memory, "keys")
    assert f"{found.id}  write" in listed.stdout
    assert secret not in listed.stdout + made.stderr
    assert run(memory, "revoke", found.id).returncode == 0
    assert Keys(memory.home).all() == []
    again = run(memory, "revoke", found.id)
    assert (again.returncode, "there is no key" in again.stderr) == (1, True)
    assert run(memory, "key", "--role", "root").returncode == 2
    refused = run(memory, "key", CLAUDECODE="1")  # a session is shown no key
    assert refused.returncode == 1
    assert "in a terminal" in refused.stderr
    assert Keys(memory.home).all() == []
