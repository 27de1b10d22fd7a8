"""What is answered from memory: as new as the files, and only to those who may ask."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from memkit.interface import InterfaceMemory as FrontDoor
from memkit.serve import limits
from memkit.serve.keys import Keys
from tests.memory import Memory, day
from tests.serve.conftest import Client

PATHS = ("/timeline", "/timeline/2026-W47/children?limit=2", "/timeline/2026-11/search?query=vault", "/calendar/2026")


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The memory was looked into for these."""
    found: list[str] = []
    for name in ("timeline", "scan", "calendar", "session_list"):
        real = getattr(FrontDoor, name)

        def look(*arguments: Any, real: Any = real, name: str = name, **options: Any) -> Any:
            found.append(name)
            return real(*arguments, **options)

        monkeypatch.setattr(FrontDoor, name, look)
    return found


def test_an_equal_request_looks_into_no_file(connect: Client, looks: list[str], caplog: pytest.LogCaptureFixture) -> None:
    client, other = connect("read"), connect("read")
    for path in (*PATHS, "/sessions"):
        with caplog.at_level(logging.INFO, "memkit.serve.access"):
            first, again = client.get(path), client.get(path)
        assert (first.status_code, first.content, again.content) == (200, again.content, first.content)
        assert first.headers == {**again.headers, "ratelimit-remaining": first.headers["ratelimit-remaining"]}
        assert len({one.getMessage().split()[1] for one in caplog.records[-2:]}) == 1  # the route
    assert looks == ["timeline", "timeline", "scan", "calendar", "session_list"]
    other.get("/timeline")  # of another server
    assert len(looks) == 6


def test_it_is_as_new_as_the_files(
    connect: Client, memory: Memory, looks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LIST_SECONDS", 1e9)
    client = connect("write")

    def turns() -> int:
        found: int = client.get("/timeline/2026").json()["node"]["turns"]
        return found

    before = turns()
    memory.write("2026-11-21.md", day("2026-11-21", ("Is it new?", "Yes.")))  # changes its directory
    assert (turns(), turns()) == (before + 1, before + 1)
    Path(memory.project.memory, "2026-11-21.md").unlink()
    assert turns() == before
    client.post("/memory/store", json={"text": "A wombat digs."})
    assert client.get("/timeline/today").json()["node"]["notes"] == 1
    assert turns() == before
    monkeypatch.setattr(limits, "LIST_SECONDS", 0.0)  # the time has passed
    with Path(memory.project.memory, "2026-11-19.md").open("a") as file:
        file.write("\n## 16:00 In place <!-- note:ab12cd34 -->\n\nIt was written in place.\n")
    assert client.get("/timeline/2026-11-19").json()["node"]["notes"] == 1
    count = len(looks)
    assert client.get("/timeline/2026-11-19").json()["node"]["notes"] == 1
    assert len(looks) == count


def test_everyone_is_checked_as_ever(connect: Client, keys: Keys, looks: list[str]) -> None:
    client = connect("read", rate=3)
    assert [client.get("/timeline").status_code for _ in range(2)] == [200, 200]
    assert client.get("/timeline", headers={"Host": "evil.example"}).status_code == 421
    assert client.get("/timeline", headers={"Origin": "http://evil.example"}).status_code == 403
    for wrong in ("Bearer x", "Basic x", "", "Bearer"):
        assert client.get("/timeline", headers={"Authorization": wrong}).status_code == 401
    assert client.get("/timeline?other=1").status_code == 422
    assert client.post("/timeline").status_code == 405
    left = client.get("/timeline")
    assert left.headers["ratelimit-remaining"] == "0"
    refused = client.get("/timeline")
    assert (refused.status_code, refused.headers["content-type"]) == (429, "application/problem+json")
    assert int(refused.headers["retry-after"]) >= 1
    keys.revoke(keys.all()[-1].id)
    assert client.get("/timeline").status_code == 401
    assert looks == ["timeline"]


def test_it_is_bounded_and_failures_are_not_kept(
    connect: Client, looks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_KEPT_BYTES", 10)
    client = connect("read")
    assert [client.get(path).status_code for path in (*PATHS[:2], *PATHS[:2])] == [200] * 4
    assert len(looks) == 4
    assert [client.get("/timeline/2030").status_code for _ in range(2)] == [404, 404]
    assert len(looks) == 6
