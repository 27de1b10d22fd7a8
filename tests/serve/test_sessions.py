"""The list of sessions, page by page."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from tests.memory import Memory, day
from tests.serve.conftest import front_door

LATE = "5e550001"


def pages(client: TestClient, **parameters: str | int) -> list[list[str]]:
    found, after = [], ""
    while True:
        answer = client.get("/sessions", params={**parameters, "after": after}).json()
        found.append([one["session"] for one in answer["sessions"]])
        after = answer["next"]
        if not after:
            return found


def test_newest_first_as_the_command_lists_them(admin: TestClient, memory: Memory) -> None:
    found = admin.get("/sessions").json()
    assert found["next"] is None
    assert found["sessions"] == [one.as_dict() for one in front_door(memory).sessions()]
    assert [one["session"] for one in found["sessions"]] == ["5e550003", "5e550002", "5e550001"]


@pytest.mark.parametrize("limit", [1, 2, 3, 50])
def test_pages_hold_each_session_once(admin: TestClient, memory: Memory, limit: int) -> None:
    # The first session goes on after the others, and one has no time.
    memory.write("2026-12-24.md", day("2026-12-24", ("And now?", "It still listens on 7443."), session=LATE))
    memory.write("2026-12-24.local.md", "## Work <!-- session:5e550009 -->\n\n### A question <!-- turn:a1b2c3d4 -->\nNo.\n")
    whole = [one.as_dict() for one in front_door(memory).sessions()]
    found = pages(admin, limit=limit)
    assert [name for page in found for name in page] == [one["session"] for one in whole]
    assert all(len(page) == limit for page in found[:-1])
    assert {len(one["turns"]) for one in whole if one["session"] == LATE} == {3}


def test_a_day_has_what_was_done_on_it(admin: TestClient, memory: Memory) -> None:
    memory.write("2026-12-24.md", day("2026-12-24", ("And now?", "It still listens on 7443."), session=LATE))
    (first,) = admin.get("/sessions", params={"day": "2026-11-18"}).json()["sessions"]
    assert (first["session"], len(first["turns"])) == (LATE, 2)
    (last,) = admin.get("/sessions", params={"day": "2026-12-24"}).json()["sessions"]
    assert (last["session"], len(last["turns"]), last["title"]) == (LATE, 1, "Work")
    assert admin.get("/sessions", params={"day": "2026-11-22"}).json() == {"sessions": [], "next": None}


def test_filters(admin: TestClient) -> None:
    assert pages(admin, since="2026-11-19") == [["5e550003", "5e550002"]]
    assert pages(admin, until="2026-11-19", limit=1) == [["5e550002"], ["5e550001"]]
    assert pages(admin, since="2026-11-19", until="2026-11-19") == [["5e550002"]]
    assert pages(admin, branch="main", limit=2) == [["5e550003", "5e550002"], ["5e550001"]]
    assert pages(admin, branch="other") == [[]]
    assert pages(admin, file="nothing.py") == [[]]


@pytest.mark.parametrize(
    "query",
    ["after=x", "after=a~b~c", "after=2026-11-18~", "day=never", "day=2026-11-18&since=2d", "limit=0", "limit=101",
     "all_projects=true"],
)  # fmt: skip
def test_what_is_refused(admin: TestClient, query: str) -> None:
    assert admin.get(f"/sessions?{query}").status_code == 422
