"""A memory of 14 months: more than 200 sessions, each about the subject of its month."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from memkit.archive.archive import Archive
from memkit.archive.turn import ArchivedTurn
from memkit.conversation.turn import Message
from memkit.journal.journal import Journal
from memkit.timeline.tree import Timeline, open_timeline
from tests.memory import Memory, make_memory

FIRST, LAST = date(2025, 9, 14), date(2026, 11, 20)
SUBJECTS = (
    "billing", "gateway", "invoices", "login", "migration", "vault", "search", "exports", "couriers", "queue",
    "avatars", "payments", "webhooks", "themes", "sitemap",
)  # fmt: skip
OPEN_SESSION = "0be00000"


def subject(day: date) -> str:
    return SUBJECTS[(day.year * 12 + day.month) % len(SUBJECTS)]


def day_text(day: date) -> str:
    about, stamp = subject(day), f"{day:%y%m%d}"
    return (
        f"# {day}\n\n"
        f"## 09:00 Work on {about} of {day} <!-- session:5e55{stamp} branch:main -->\n\n"
        f"- Decided: {about} uses port {stamp}. <!-- grip:9{stamp}0 turns:a{stamp}0 -->\n\n"
        f"### 09:00 Why is {about} slow on {day}? <!-- turn:a{stamp}0 -->\n"
        f"**Did** Edit src/{about}.py ×2 · Bash `make {about}` → failed: no rule for {about}\n\n"
        f"**Answered** The {about} cache was cold. Shall I warm it for {stamp}?\n\n"
        f"### 09:10 Then warm the cache of {about} <!-- turn:a{stamp}1 -->\n"
        f"**Answered** It is warm now.\n"
    )


@pytest.fixture(scope="session")
def long_memory(tmp_path_factory: pytest.TempPathFactory) -> Memory:
    """Every second day from `FIRST` to `LAST`. The archive has the newest session. Not to be changed."""
    days = [FIRST + timedelta(days=number) for number in range(0, (LAST - FIRST).days + 1, 2)]
    assert len(days) >= 200
    memory = make_memory(tmp_path_factory.mktemp("long"), {f"{day}.md": day_text(day) for day in days})
    archive(memory, days[-1])
    return memory


def archive(memory: Memory, day: date) -> None:
    """Keep the original of a day's turns: 30 messages of the first, two of the second."""
    stamp = f"{day:%y%m%d}"
    now = datetime(day.year, day.month, day.day, 9, tzinfo=timezone.utc)

    def turn(number: int, texts: list[str]) -> ArchivedTurn:
        name = f"a{stamp}{number}"
        messages = tuple(
            Message("assistant" if place else "user", now + timedelta(seconds=place), text, (), name)
            for place, text in enumerate(texts)
        )
        return ArchivedTurn(name, messages, time=now, project=memory.project.root)

    long = ["Why is it slow?", *(f"Step {number}: " + "word " * 500 for number in range(29))]
    Archive(memory.home).append(f"5e55{stamp}", [turn(0, long), turn(1, ["Then warm it", "It is warm now."])])


def timeline_of(memory: Memory) -> Timeline:
    return open_timeline(memory.project, memory.home, memory.said.append)


@pytest.fixture
def timeline(long_memory: Memory) -> Timeline:
    return open_timeline(long_memory.project, long_memory.home)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The days that the journal reads from now on."""
    found: list[str] = []
    read = Journal.day

    def counted(self: Journal, day: str) -> object:
        found.append(day)
        return read(self, day)

    monkeypatch.setattr(Journal, "day", counted)
    return found


def shards(memory: Memory) -> list[Path]:
    return sorted(Path(memory.home.index).glob("timeline/*/*.json"))
