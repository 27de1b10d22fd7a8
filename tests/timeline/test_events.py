"""Scans and original messages, page by page."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memkit.archive.archive import Archive
from memkit.archive.turn import ArchivedTurn
from memkit.conversation.turn import Message
from memkit.errors import NotFoundError
from memkit.text import estimate_tokens
from memkit.timeline.events import events, find_in_children, find_words
from memkit.timeline.tree import Timeline
from memkit.timeline.view import MOST_TOKENS
from tests.memory import Memory, make_memory
from tests.timeline.conftest import timeline_of

SMALL = {"2026-11-20.md": "# 2026-11-20\n\n## 10:00 T <!-- session:5e550009 -->\n\n### 10:00 Q <!-- turn:aaaa0009 -->\n"}


def scan(timeline: Timeline, words: str, name: str = "", limit: int = 100, after: str = "") -> dict[str, object]:
    return find_words(timeline, timeline.node(name), words, limit, after, lambda line: None)


def ids(found: dict[str, object]) -> list[str]:
    matches = found["matches"]
    assert isinstance(matches, list)
    return [one["id"] for one in matches]


def test_a_scan_finds_turns_and_bullets_page_by_page(timeline: Timeline) -> None:
    found = scan(timeline, "PORT 261120", "2026-11")
    assert ids(found) == ["92611200"]
    assert found["next"] is None
    (match,) = found["matches"]  # type: ignore[misc]
    assert (match["kind"], match["session"], match["time"]) == ("bullet", "5e55261120", "2026-11-20 09:00")
    assert match["line"].endswith("uses port 261120.")
    assert ids(scan(timeline, "warm cache", "2026-11-20")) == ["a2611200", "a2611201"]
    assert ids(scan(timeline, "warm cache", "a2611200")) == ["a2611200", "a2611201"]
    assert ids(scan(timeline, "cold", "2026-W47")) == ["a2611160", "a2611180", "a2611200"]
    assert ids(scan(timeline, "zebra")) == []
    whole, after = [], ""
    while after is not None:
        found = scan(timeline, "cold", "2026", 100, after)
        assert estimate_tokens(json.dumps(found)) <= MOST_TOKENS
        whole += ids(found)
        after = found["next"]  # type: ignore[assignment]
    assert len(whole) == len(set(whole)) == timeline.node("2026").summary.days
    assert whole == sorted(whole)
    with pytest.raises(NotFoundError, match="to go on after"):
        scan(timeline, "cold", "2026", 3, "nothing")


def search_children(timeline: Timeline, words: str, name: str = "", limit: int = 20) -> dict[str, Any]:
    return find_in_children(timeline, timeline.node(name), words, limit, lambda line: None)


def test_the_children_that_hold_words(timeline: Timeline) -> None:
    found = search_children(timeline, "warm cache", "2026-W47")
    assert [one["node"]["id"] for one in found["children"]] == ["2026-11-16", "2026-11-18", "2026-11-20"]
    assert [ids(one) for one in found["children"]][-1] == ["a2611200", "a2611201"]
    assert not found["more"]
    first = search_children(timeline, "warm cache", "2026-W47", 2)
    assert (len(first["children"]), first["more"]) == (2, True)
    assert first["children"][0]["next"] is None
    (turn,) = search_children(timeline, "was cold", "a2611200")["children"]
    assert (turn["node"]["kind"], turn["node"]["id"], ids(turn)) == ("turn", "a2611200", ["a2611200"])
    assert search_children(timeline, "zebra")["children"] == []


def test_notes_and_copied_turns_are_scanned(tmp_path: Path) -> None:
    notes = "".join(f"## 1{n}:00 Note: Horse {n} <!-- note:ab12cd3{n} -->\n\n" for n in range(3))
    turn = "### 10:00 Zebra <!-- turn:aaaa0001 -->\n**Answered** Zebra.\n\n"
    copied = f"# 2026-11-19\n\n## 10:00 T <!-- session:5e55 -->\n\n{turn * 3}"
    timeline = timeline_of(make_memory(tmp_path, {"2026-11-20.md": f"# 2026-11-20\n\n{notes}", "2026-11-19.md": copied}))
    assert scan(timeline, "zebra", "", 1)["next"] is None  # a copied turn does not lead in a circle
    assert ids(scan(timeline, "horse", "ab12cd31")) == ["ab12cd31"]
    found = search_children(timeline, "horse", "2026-11-20")
    assert [ids(one) for one in found["children"]] == [["ab12cd30"], ["ab12cd31"], ["ab12cd32"]]


def original(timeline: Timeline, memory: Memory, name: str, limit: int = 100, after: str = "", **options: Any) -> dict[str, object]:
    def redact(text: str) -> str:
        return text.replace("Step 3", "[redacted]")

    return events(timeline, timeline.node(name), memory.home, limit, after, redact, **options)


def test_original_messages_page_by_page(timeline: Timeline, long_memory: Memory) -> None:
    found, after = [], ""
    for _ in range(50):
        page = original(timeline, long_memory, "2026-W47", 7, after)
        assert estimate_tokens(json.dumps(page)) <= MOST_TOKENS
        found += page["events"]  # type: ignore[operator]
        after = page["next"]  # type: ignore[assignment]
        if after is None:
            break
    assert [(one["turn"], one["number"]) for one in found] == [
        *(("a2611200", number) for number in range(1, 31)), ("a2611201", 1), ("a2611201", 2)
    ]  # fmt: skip
    assert found[0]["text"] == "Why is it slow?"
    assert found[4]["text"].startswith("[redacted]: word")
    assert found[4]["text"].endswith("characters more)")
    assert original(timeline, long_memory, "2026-11-18")["missing"] == ["a2611180", "a2611181"]
    with pytest.raises(NotFoundError, match="to go on after"):
        original(timeline, long_memory, "2026-11-20", 7, "ffff.3")
    times = [datetime.fromisoformat(one["time"]) for one in found]
    for since, until in ((times[3], times[8]), (times[3], None), (None, times[8]), (times[-1], times[0])):
        some = original(timeline, long_memory, "", 100, since=since, until=until)["events"]
        kept = [time for time in times if (since is None or time >= since) and (until is None or time < until)]
        shown = [datetime.fromisoformat(one["time"]) for one in some]  # type: ignore[union-attr]
        assert shown == kept[: len(shown)]
        assert bool(shown) == bool(kept)
    for nonsense in ("", ".", ".x", ".\u00b2", f".{'9' * 5000}"):  # the turn is known, the number means nothing
        page = original(timeline, long_memory, "2026-11-20", 7, f"a2611200{nonsense}")
        assert page["events"][0]["number"] == 1  # type: ignore[index]


def test_a_memory_cannot_name_the_turns_of_another_project(tmp_path: Path) -> None:
    """It may have come with a repository; in a session, only what the archive assigns to the project counts."""
    memory = make_memory(tmp_path, SMALL)
    other = tmp_path / "other"
    other.mkdir()
    secret = ArchivedTurn("aaaa0009", (Message("user", None, "a secret plan", (), "aaaa0009"),), project=str(other))
    Archive(memory.home).append("5e550009", [secret])
    timeline = timeline_of(memory)
    inside = original(timeline, memory, "2026-11-20", other_projects=False)
    assert (inside["events"], inside["missing"]) == ([], ["aaaa0009"])
    assert "secret plan" in str(original(timeline, memory, "2026-11-20")["events"])


def test_a_damaged_archive_is_reported(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, SMALL)
    path = Archive(memory.home).path("5e550009")
    path.parent.mkdir(parents=True)
    path.mkdir()
    found = original(timeline_of(memory), memory, "2026-11-20")
    assert found["events"] == []
    assert found["problems"]
