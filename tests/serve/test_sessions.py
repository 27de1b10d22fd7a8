"""Sessions: their list, one of them, and the original messages of a turn; and a search with details."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from memkit.archive.archive import Archive
from memkit.archive.turn import ArchivedTurn
from memkit.conversation.turn import Message, ToolUse
from memkit.serve.answers import published
from memkit.serve.timeline import TEXT_CHARACTERS
from tests.browse.test_git_marks import commit, git
from tests.memory import Memory, day
from tests.serve.conftest import front_door, local

LATE = "5e550001"


def whole_pages(client: TestClient, **parameters: str | int) -> list[dict[str, Any]]:
    found, after = [], ""
    while True:
        found.append(client.get("/sessions", params={**parameters, "after": after}).json())
        after = found[-1]["next"]
        if not after:
            return found


def pages(client: TestClient, **parameters: str | int) -> list[list[str]]:
    return [[one["session"] for one in page["sessions"]] for page in whole_pages(client, **parameters)]


def test_newest_first_as_the_command_lists_them(admin: TestClient, memory: Memory) -> None:
    found = admin.get("/sessions").json()
    assert found["next"] is None
    assert found["sessions"] == json.loads(published(list(front_door(memory).sessions()), memory.project.root).body)
    assert [one["session"] for one in found["sessions"]] == ["5e550003", "5e550002", "5e550001"]
    assert pages(admin, since="2026-11-19") == [["5e550003", "5e550002"]]
    assert pages(admin, until="2026-11-19", limit=1) == [["5e550002"], ["5e550001"]]
    assert pages(admin, since="2026-11-19", until="2026-11-19") == [["5e550002"]]
    assert pages(admin, branch="main", limit=2) == [["5e550003", "5e550002"], ["5e550001"]]
    assert pages(admin, branch="other") == pages(admin, file="nothing.py") == [[]]
    for query in (
        "after=x", "after=a~b~c", "after=2026-11-18~", "day=never", "day=2026-11-18&since=2d", "limit=0", "limit=101",
    ):  # fmt: skip
        assert admin.get(f"/sessions?{query}").status_code == 422, query


def test_pages_hold_each_session_once(admin: TestClient, memory: Memory) -> None:
    # The first session goes on after the others, and one has no time.
    memory.write("2026-12-24.md", day("2026-12-24", ("And now?", "It still listens on 7443."), session=LATE))
    memory.write("2026-12-24.local.md", "## Work <!-- session:5e550009 -->\n\n### A question <!-- turn:a1b2c3d4 -->\nNo.\n")
    whole = json.loads(msgspec.json.encode(list(front_door(memory).sessions())))
    for limit in (1, 2, 3, 50):
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
    assert admin.get("/sessions", params={"day": "2026-11-22"}).json() == {"sessions": [], "notes": [], "next": None}


def test_each_note_is_on_one_page(admin: TestClient, memory: Memory) -> None:
    for day_name, minute in (("2026-11-20", "23:50"), ("2026-11-19", "23:01"), ("2026-11-18", "23:00"), ("2026-11-10", "07:00")):
        heading = f"## {minute} Note: Of &lt;{minute}&gt; <!-- note:0a{minute.replace(':', '')}ff -->\n"
        memory.write(f"{day_name}.local.md", heading)
    notes = [[one["text"] for one in page["notes"]] for page in whole_pages(admin, limit=1)]
    assert notes == [["Of <23:50>"], ["Of <23:01>"], ["Of <23:00>", "Of <07:00>"]]
    (only,) = whole_pages(admin, day="2026-11-18")
    assert only["notes"] == [{"time": datetime(2026, 11, 18, 23).astimezone().isoformat(), "text": "Of <23:00>", "id": "0a2300ff"}]
    assert [page["notes"] for page in whole_pages(admin, branch="main")] == [[]]


RICH = {
    "2026-11-20.md": "# 2026-11-20\n\n"
    "## 14:02 Staging &lt;gateway&gt; <!-- session:5e55aaaa branch:main summary:a1b2c3d5 -->\n\n"
    "- Decided: it listens on **7443**. <!-- grip:82c57f55 turns:a1b2c3d4 -->\n"
    "- Open: who owns it? (unverified) <!-- grip:82c57f56 turns:a1b2c3d5 check:unverified -->\n\n"
    "### 14:02 Which port? <!-- turn:a1b2c3d4 branch:feature/gw -->\n"
    "**Asked** Which port does `deploy/gateway.yaml` set?\n\n"
    "**Did** Read deploy/gateway.yaml · Edit src/port.py ×2\n\n"
    "**Answered** It is **7443**: <script>alert(1)</script>\n\n"
    "### 14:10 And <now>? <!-- turn:a1b2c3d5 -->\n**Interrupted** I was about to\n",
    "2026-11-21.md": "# 2026-11-21\n\n## 09:00 More <!-- session:5e55aaaa branch:main -->\n\n"
    + "\n".join(f"### 09:{n:02d} Step {n} <!-- turn:b{n:07x} -->\n**Answered** Done {n}.\n" for n in range(50)),
    "MEMORY.md": "# Memory\n\n## Facts <!-- compacted:2026-11-21 -->\n\n"
    "- Decided: it listens on 7444. (2026-11-21) "
    "<!-- fact:0123abcd turns:b0000001 grips:82c57f55 supersedes:82c57f55,a1b2c3d4 -->\n",
}


@pytest.fixture
def rich(memory: Memory) -> Memory:
    for name, text in RICH.items():
        memory.write(name, text)
    return memory


def test_a_session_with_its_turns(admin: TestClient, rich: Memory) -> None:
    found = admin.get("/sessions/5e55aaaa", params={"limit": 20}).json()
    assert (found["title"], found["begins"], found["ends"]) == ("Staging <gateway>", local("2026-11-20T14:02"), local("2026-11-21T09:49"))
    assert (found["turn"], found["offset"], len(found["turns"]), len(found["entries"])) == (None, 0, 52, 20)
    (summary,) = found["summaries"]
    assert (summary["day"], summary["time"], summary["title"]) == ("2026-11-20", local("2026-11-20T14:02"), "Staging <gateway>")
    decided, left = summary["bullets"]
    assert (decided["text"], decided["turns"], decided["verified"]) == ("Decided: it listens on **7443**.", ["a1b2c3d4"], True)
    assert decided["superseded"]["text"] == "it listens on 7444."
    assert (left["verified"], left["superseded"]) == (False, None)
    first, second = found["entries"][:2]
    assert first["prompt"] == "Which port does `deploy/gateway.yaml` set?"
    assert first["tools"] == ["Read deploy/gateway.yaml", "Edit src/port.py ×2"]
    assert first["answer"] == "It is **7443**: <script>alert(1)</script>"  # data, for the page to show as text
    assert first["files"] == [{"file": "deploy/gateway.yaml", "edited": False}, {"file": "src/port.py", "edited": True}]
    assert (first["outcome"], first["branch"], first["bullets"]) == ("answered", "feature/gw", ["82c57f55"])
    assert first["superseded"]["date"] == "2026-11-21"
    assert (second["outcome"], second["answer"], second["superseded"]) == ("interrupted", "I was about to", None)
    assert second["title"] == "And <now>?"
    seen = []
    for offset in range(0, 60, 20):
        found = admin.get("/sessions/5e55aaaa", params={"limit": 20, "offset": offset}).json()
        assert found["offset"] == offset
        seen += [one["id"] for one in found["entries"]]
    assert seen == found["turns"]
    assert admin.get("/sessions/5e55aaaa", params={"offset": 1000}).json()["entries"] == []
    found = admin.get("/sessions/b0000030", params={"limit": 20}).json()
    assert (found["session"], found["turn"], found["offset"]) == ("5e55aaaa", "b0000030", 40)
    assert "b0000030" in [one["id"] for one in found["entries"]]
    assert admin.get("/sessions/a1b2c3d").json()["session"] == "5e55aaaa"  # two turns of one session
    for name, status in (("5e55", 409), ("nothing1", 404), ("%2e%2e", 404), ("b00000", 200)):
        assert admin.get(f"/sessions/{name}").status_code == status, name


def test_a_gone_branch_is_told_once(admin: TestClient, memory: Memory) -> None:
    assert admin.get("/sessions/5e550001").json()["gone_branch"] == ""
    git(memory.project.root, "init", "-q")
    commit(Path(memory.project.root), "2026-11-01", a_py="1")
    turns = "".join(f"### 09:0{n} Why? <!-- turn:c{n:07x} branch:fix/a -->\n**Answered** So.\n\n" for n in range(2))
    memory.write("2026-11-22.md", f"## 09:00 Why? <!-- session:5e55cccc branch:fix/a -->\n\n{turns}")
    found = admin.get("/sessions/5e55cccc").json()
    assert found["gone_branch"] == "fix/a"
    assert [one["git"] for one in found["entries"]] == [None, None]


def test_the_transcript_of_a_turn_and_what_changed_since(admin: TestClient, rich: Memory) -> None:
    now = datetime(2026, 11, 20, 14, 2, tzinfo=timezone.utc)
    call, result = ToolUse("Bash", {"command": "cat <x>", "n": [1, "y" * 30_000]}), ToolUse("Bash", result="z" * 30_000)
    messages = (
        Message("user", now, "Which port?", (), "a1b2c3d4"),
        Message("assistant", now, "x" * 30_000, (call,), "a1b2c3d4"),
        Message("user", now, "", (result,), "a1b2c3d4"),
    )
    kept = ArchivedTurn("a1b2c3d4", messages, time=now, project=rich.project.root)
    Archive(rich.home).append("5e55aaaa", [kept])
    found = admin.get("/turns/a1b2c3d4/transcript").json()
    assert (found["session"], found["turn"], found["archived"]) == ("5e55aaaa", "a1b2c3d4", True)
    asked, answered, done = found["messages"]
    assert (asked["role"], asked["text"], asked["tools"]) == ("user", "Which port?", [])
    assert len(answered["text"]) == TEXT_CHARACTERS + 2
    assert answered["tools"][0]["input"]["command"] == "cat <x>"
    assert len(answered["tools"][0]["input"]["n"][1]) == len(done["tools"][0]["result"]) == TEXT_CHARACTERS + 2
    assert admin.get("/turns/a1b2c3d5/transcript").status_code == 404  # not in the archive
    assert admin.get("/turns/ffffffff/transcript").status_code == 404
    root = Path(rich.project.root)
    git(root, "init", "-qb", "main")
    commit(root, "2026-11-21", deploy__gateway_yaml="2")
    (first, second) = admin.get("/sessions/5e55aaaa", params={"limit": 2}).json()["entries"]
    assert first["git"]["changed"] == {"deploy/gateway.yaml": 1}
    assert "changed in 1 commit" in first["git"]["line"]
    assert second["git"] is None


def test_a_search_with_what_a_person_reads(admin: TestClient) -> None:
    query = {"query": "staging port"}
    plain = admin.get("/memory/search", params=query).json()["results"][0]
    assert not {"excerpt", "explanation"} & plain.keys()
    found = admin.get("/memory/search", params={**query, "details": True}).json()["results"][0]
    assert found["excerpt"]["title"] == "Which port does the staging gateway use?"
    assert set(found["excerpt"]["words"]) == {"port", "staging"}
    assert found["excerpt"]["outcome"].startswith("It listens on 7443")
    assert found["explanation"]["lexical"]["rank"] == 1
    assert {**plain, "excerpt": found["excerpt"], "explanation": found["explanation"]} == found
