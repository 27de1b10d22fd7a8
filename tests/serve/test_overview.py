"""The calendar of a year, and the memory at a glance."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from time import time
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

import memkit
from memkit import llm
from memkit.capture.summary_queue import SummaryQueue
from memkit.ipc import spool
from memkit.journal.journal import Journal
from memkit.llm.ledger import OK, Call, Ledger
from memkit.settings import SummarizeSettings
from tests.memory import Memory, day
from tests.serve.conftest import Client, front_door, local
from tests.summarize.stage import ScriptedProvider


def test_a_year_of_the_calendar(admin: TestClient, memory: Memory) -> None:
    memory.write("2026-11-20.local.md", day("2026-11-20", ("Is it private?", "Yes."), session="5e550003"))
    memory.write("2027-01-01.md", day("2027-01-01", ("New year?", "Yes.")))  # in the last ISO week of 2026
    found = admin.get("/calendar/2026").json()
    assert (found["year"], found["years"]) == (2026, [2026, 2027])
    assert [(one["day"], one["turns"], one["sessions"]) for one in found["days"]] == [
        ("2026-11-18", 2, 1), ("2026-11-19", 3, 1), ("2026-11-20", 2, 1),
    ]  # fmt: skip
    assert [one["day"] for one in admin.get("/calendar/2027").json()["days"]] == ["2027-01-01"]
    assert admin.get("/calendar/1999").json()["days"] == []


def test_the_memory_at_a_glance(admin: TestClient, memory: Memory) -> None:
    today = date.today()
    ledger = Ledger(memory.home)
    for number, (model, usd) in enumerate((("small", 0.25), ("small", 0.5), ("large", None))):
        ledger.record(Call(str(number), 1e9 if number else time(), "segment", "test", model, "/elsewhere", 10, 5, usd, OK))
    Path(memory.home.root, "spool", "new").mkdir(parents=True, exist_ok=True)
    found = admin.get("/overview").json()
    assert found["version"] == memkit.__version__
    assert (found["first"], found["last"]) == ("2026-11-18", "2026-11-20")
    assert found["counts"] == {"days": 3, "sessions": 3, "turns": 6, "notes": 0, "entries": 6}
    assert found["bytes"]["memory"] == sum(path.stat().st_size for path in Path(memory.project.memory).iterdir())
    assert found["index"] == {"in_step": True, "missing": 6, "model": memory.settings.embedding.model}
    assert found["last_turn"]["time"] == local("2026-11-20T09:00")
    assert found["last_turn"]["session"] == "5e550003"
    assert found["waiting"] == len(spool.waiting(memory.home))
    cost = found["cost"]
    assert (cost["total"]["calls"], cost["total"]["usd"], cost["total"]["unpriced"]) == (3, 0.75, 1)
    assert cost["today"]["calls"] == cost["month"]["calls"] == 1
    assert [one["day"] for one in cost["days"]] == ["2001-09-09", today.isoformat()]
    assert {one["model"]: one["calls"] for one in cost["models"]} == {"test small": 2, "test large": 1}
    assert (found["captured"], found["sends"]) == (None, [])
    assert all({"level", "what", "meaning", "fix"} <= one.keys() for one in found["health"])
    assert "/elsewhere" not in str(cost)


def test_health_tells_an_admin_what_is_wrong(connect: Client, memory: Memory) -> None:
    assert connect("write").get("/overview").status_code == 403
    admin = connect()
    before = {one["code"]: one for one in admin.get("/overview").json()["health"]}
    Path(memory.home.root, "config.toml").write_text("search = 7\n")
    after = {one["code"]: one for one in admin.get("/overview").json()["health"]}
    (code,) = after.keys() - before.keys() - {"checks-left-out"}
    assert (after[code]["level"], "config.toml" in after[code]["what"]) == ("error", True)
    assert next(iter(after)) == code  # errors first


def test_what_the_doctor_can_fix_is_fixed(connect: Client, memory: Memory) -> None:
    admin = connect()
    Path(memory.home.root, "ledger.jsonl").touch(0o644)

    def found() -> list[str]:
        return [one["code"] for one in admin.get("/overview").json()["health"]]

    assert "open-to-others" in found()
    assert connect("write").post("/fix", json={"code": "open-to-others"}).status_code == 403
    done = admin.post("/fix", json={"code": "open-to-others"}).json()
    assert (done["failed"], "to other users" in done["message"]) == (False, True)
    assert "open-to-others" not in found()
    for code in ("disk-low", "forgetting-unfinished", "nothing"):
        assert admin.post("/fix", json={"code": code}).status_code == 404


def test_an_empty_memory(admin: TestClient, memory: Memory) -> None:
    for path in Path(memory.project.memory).iterdir():
        path.unlink()
    found = admin.get("/overview").json()
    assert (found["first"], found["last"], found["last_turn"]) == (None, None, None)
    assert found["counts"]["turns"] == 0
    assert admin.get("/calendar/2026").json() == {"year": 2026, "years": [], "days": []}
    assert front_door(memory).session_list() == {"sessions": [], "notes": [], "next": None}


def test_what_waits_is_summarized_as_far_as_agreed(
    connect: Client, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = ScriptedProvider()
    monkeypatch.setattr(llm, "find_provider", lambda settings: provider)
    admin, queue = connect(), SummaryQueue(memory.home)
    for path in sorted(Path(memory.project.memory).glob("2026-*.md")):
        for session in Journal(memory.project).day(path.stem).sessions():
            queue.add(memory.project.root, session, [path.stem], 0.0)

    def summaries(**options: Any) -> None:
        memory.settings = msgspec.structs.replace(memory.settings, summarize=SummarizeSettings(**options))

    summaries(provider="none")
    assert admin.get("/summaries").json() == {"segments": [], "tokens": 0, "usd": None, "model": "", "left": 0}
    assert admin.post("/summaries", json={"segments": ["00000000"]}).status_code == 404
    summaries(provider="anthropic")
    assert connect("write").get("/summaries").status_code == 403
    plan = admin.get("/summaries").json()
    assert (len(plan["segments"]) > 1, plan["tokens"] > 0, plan["usd"] > 0) == (True, True, True)
    assert (plan["model"], plan["left"], provider.tasks) == ("claude-haiku-4-5", 60_000, [])
    first, *others = plan["segments"]
    done = admin.post("/summaries", json={"segments": [first]}).json()
    assert done == {"message": "1 part summarized in 2 lines", "failed": False}
    assert admin.get("/summaries").json()["segments"] == others
    summaries(provider="anthropic", daily_tokens=1000)
    done = admin.post("/summaries", json={"segments": others}).json()
    assert (done["failed"], "the daily budget of 1,000 tokens is reached" in done["message"]) == (True, True)
