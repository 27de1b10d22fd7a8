"""Other projects: which there are, who may read them, and that nobody changes them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from memkit.projects.project import Project
from memkit.serve.app import make_app
from memkit.serve.keys import Keys
from memkit.serve.link import Link
from memkit.serve.server import LOOPBACK
from tests.memory import Memory, day
from tests.serve.conftest import Client, front_door


def add_project(memory: Memory, root: Path, date: str, question: str, session: str) -> Project:
    """A further project of the same memory home, which the index knows."""
    other = dataclasses.replace(memory, project=Project(str(root)))
    other.write(f"{date}.md", day(date, (question, "Yes."), session=session))
    other.sync(embedder=None)
    return other.project


@pytest.fixture
def shipping(memory: Memory, tmp_path: Path) -> Project:
    return add_project(memory, tmp_path / "shipping", "2026-11-21", "Which carrier?", "5e55000a")


@pytest.fixture
def page(memory: Memory, keys: Keys) -> TestClient:
    """The page of the first project."""
    link = Link()
    app = make_app(lambda: front_door(memory), keys, LOOPBACK, 600, [link])
    client = TestClient(app, base_url="http://127.0.0.1")
    key = client.post("/page/key", json={"token": link.token}).json()["key"]
    client.headers["Authorization"] = f"Bearer {key}"
    return client


def test_the_page_lists_and_reads_every_project(page: TestClient, shipping: Project) -> None:
    found = {one["name"]: one for one in page.get("/projects").json()["projects"]}
    assert (found["project"]["served"], found["shipping"]["served"]) == (True, False)
    assert (found["shipping"]["last"], found["project"]["last"]) == ("2026-11-21", "2026-11-20")
    (session,) = page.get("/sessions", params={"project": "shipping"}).json()["sessions"]
    assert session["session"] == "5e55000a"
    assert page.get(f"/sessions/{session['session']}").status_code == 404
    assert page.get(f"/sessions/{session['session']}", params={"project": "shipping"}).status_code == 200
    assert page.get("/timeline/2026-11-21", params={"project": "shipping"}).status_code == 200
    assert page.get("/sessions", params={"project": "nowhere"}).status_code == 422
    assert page.get("/overview", params={"project": "shipping"}).json()["counts"]["days"] == 1


def test_sessions_of_all_projects_come_page_by_page(page: TestClient, shipping: Project) -> None:
    own = [one["session"] for one in page.get("/sessions").json()["sessions"]]
    found, after = [], ""
    while after is not None:
        answer = page.get("/sessions", params={"all_projects": True, "limit": 2, "after": after}).json()
        found += [one["session"] for one in answer["sessions"]]
        after = answer["next"]
    assert found == ["5e55000a", *own]


def test_nothing_of_another_project_is_changed(page: TestClient, shipping: Project) -> None:
    (session,) = page.get("/sessions", params={"project": "shipping"}).json()["sessions"]
    (turn,) = session["turns"]
    assert page.delete(f"/memory/{turn}", params={"dry_run": True}).status_code == 404
    for more in ({}, {"dry_run": True}):
        assert page.delete(f"/memory/{turn}", params={**more, "project": "shipping"}).status_code == 422
    assert page.post("/memory/store", params={"project": "shipping"}, json={"text": "x"}).status_code == 422
    assert [one.name for one in Path(shipping.memory).glob("2*")] == ["2026-11-21.md"]


def test_a_key_reads_other_projects_only_where_the_settings_allow_it(connect: Client, shipping: Project) -> None:
    refused = connect("admin").get("/sessions", params={"project": "shipping"})
    assert (refused.status_code, "recall.other_projects" in refused.json()["detail"]) == (403, True)
    assert connect("read", other_projects=True).get("/sessions", params={"project": "shipping"}).status_code == 200
    assert connect("write").get("/projects").status_code == 403
    assert connect("admin").get("/sessions", params={"all_projects": True}).status_code == 403


def test_projects_of_one_name_are_told_apart(page: TestClient, shipping: Project, memory: Memory, tmp_path: Path) -> None:
    add_project(memory, tmp_path / "old" / "shipping", "2026-11-22", "Which truck?", "5e55000b")
    found = [one["name"] for one in page.get("/projects").json()["projects"] if not one["served"]]
    assert found == ["shipping", shipping.root]
    sessions = [page.get("/sessions", params={"project": name}).json()["sessions"][0]["session"] for name in found]
    assert sessions == ["5e55000b", "5e55000a"]
