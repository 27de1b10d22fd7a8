"""The routes of topics, with topics."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from memkit.topics import compute
from memkit.topics.compute import refresh
from memkit.topics.files import derived_path
from tests.memory import Memory
from tests.serve.conftest import Client
from tests.topics.subjects import make_subjects


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    found = make_subjects(tmp_path, embedding={"download": False}, service={"enabled": False})
    refresh(found.project, found.home, found.settings)
    return found


def test_topics_and_the_graph(admin: TestClient) -> None:
    status = admin.get("/topics/status").json()
    assert (status["topics"], status["entries"]) == (3, 24)
    assert status["computed"]
    top = admin.get("/topics", params={"limit": 2}).json()
    assert (len(top["topics"]), top["all"]) == (2, 3)
    assert top["topics"][0]["importance"] >= top["topics"][1]["importance"]
    name = top["topics"][0]["id"]
    related = admin.get(f"/topics/{name[:6]}/related").json()
    assert related["id"] == name
    assert all(set(one) == {"id", "label", "strength", "together", "alike"} for one in related["related"])
    found = admin.get("/topics/search", params={"query": "tomato compost greenhouse", "limit": 1}).json()
    assert "tomato" in " ".join(found["topics"][0]["words"])
    assert found["topics"][0]["score"] > 0
    assert admin.get("/topics/ffffffff/related").status_code == 404
    topic = f"topic:{name}"
    near = admin.get("/graph", params={"around": topic, "limit": 5}).json()
    assert topic in [one["id"] for one in near["nodes"]]
    assert len(near["nodes"]) <= 5
    assert set(near["edges"][0]) == {"from", "to"}
    wrong = {"": 422, "around=": 404, "around=x": 404, "around=topic:ffffffff": 404}
    limits = {f"around={topic}&limit=2001": 422, f"around={topic}&limit=0": 422}
    for query, status in (wrong | limits).items():
        assert admin.get(f"/graph?{query}").status_code == status


def test_files_and_the_history_of_one(admin: TestClient) -> None:
    found = admin.get("/files").json()
    assert found == {"weeks": found["weeks"], "groups": [], "largest": [], "all": 0}
    history = admin.get("/files/history", params={"file": "src/app.py"}).json()
    assert history == {"file": "src/app.py", "names": ["src/app.py"], "git": False, "events": [], "all": 0}
    assert admin.get("/files/history").status_code == admin.get("/files?limit=0").status_code == 422


def test_two_requests_compute_topics_once(
    connect: Client, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    monkeypatch.setattr(compute, "refresh", lambda *given: made.append(refresh(*given)))
    derived_path(memory.project, memory.home, memory.settings).unlink()
    writer = connect("write")
    with ThreadPoolExecutor(2) as threads:
        counts = list(threads.map(lambda _: writer.post("/topics").json()["all"], range(2)))
    assert (counts, len(made)) == ([3, 3], 1)


def test_a_request_may_compute_topics_for_the_first_time(connect: Client, memory: Memory) -> None:
    derived_path(memory.project, memory.home, memory.settings).unlink()
    reader, writer = connect("read"), connect("write")
    assert reader.get("/topics").status_code == 404
    assert reader.post("/topics").status_code == 403
    assert writer.post("/topics", params={"limit": 2}).json()["all"] == 3
    assert len(reader.get("/topics").json()["topics"]) == 3
