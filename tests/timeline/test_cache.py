"""What is kept of the days: only what changed is read again, and nothing depends on it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from memkit.home_files import kind_of
from memkit.projects.project import digest16
from memkit.timeline import cache
from memkit.timeline.cache import directory_of_timelines, erase_timelines
from memkit.timeline.view import view
from tests.memory import DAYS, Memory, day, make_memory
from tests.timeline.conftest import shards, timeline_of


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    others = {f"2025-{month:02d}-10.md": day(f"2025-{month:02d}-10", ("Why?", "So.")) for month in range(1, 13)}
    return make_memory(tmp_path, {**DAYS, **others})


def test_an_added_turn_reads_one_day_and_writes_one_file(memory: Memory, reads: list[str]) -> None:
    before = view(timeline_of(memory), "", 2)
    assert len(shards(memory)) == 13
    assert len(reads) == len(set(reads)) == 15
    reads.clear()
    stamps = {path: path.stat().st_mtime_ns for path in shards(memory)}
    assert view(timeline_of(memory), "", 2) == before
    assert reads == []
    with memory.path("2026-11-19.md").open("a") as file:
        file.write("\n### 12:00 One more <!-- turn:ffff0001 -->\n**Answered** Done.\n")
    after = view(timeline_of(memory), "", 2)
    assert reads == ["2026-11-19"]
    changed = [path.name for path in shards(memory) if path.stat().st_mtime_ns != stamps[path]]
    assert changed == ["2026-11.json"]
    assert after["node"]["turns"] == before["node"]["turns"] + 1
    assert timeline_of(memory).node("ffff0001").parent == "2026-11-19"


def test_a_damaged_file_is_made_again(memory: Memory) -> None:
    before = view(timeline_of(memory), "2026-11", 4)
    path = shards(memory)[-1]
    good = path.read_bytes()
    start, _, _ = good.partition(b'"days":{"2026')
    for damage in (
        b"", b"{", b'{"version": 99}', b"[]", b"\xff\x00", b'{"stamps": {}, "total": 7, "days": 1}',
        start + b'"days":{"2026-11-18":7},"version":1}',  # days of another shape
    ):  # fmt: skip
        path.write_bytes(damage)
        assert view(timeline_of(memory), "2026-11", 4) == before
        assert path.read_bytes() == good


def test_without_a_place_to_keep_it(memory: Memory) -> None:
    Path(memory.home.index).mkdir(parents=True)
    Path(memory.home.index, "timeline").write_text("in the way")
    assert timeline_of(memory).node("").summary.days == 15


def test_files_are_private_and_go_with_their_day(memory: Memory) -> None:
    timeline_of(memory)
    for path in shards(memory):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        kind = kind_of(path.relative_to(memory.home.root).as_posix())
        assert kind.is_derived and kind.has_text
    assert stat.S_IMODE(shards(memory)[0].parent.stat().st_mode) == 0o700
    memory.path("2025-03-10.md").unlink()
    assert timeline_of(memory).node("2025").summary.days == 11
    assert "2025-03.json" not in {path.name for path in shards(memory)}


def test_days_of_two_files_and_unreadable_ones(memory: Memory) -> None:
    path = memory.path("2026-11-19.md")
    text = path.read_bytes()
    os.truncate(path, 65 * 1024 * 1024)
    assert timeline_of(memory).node("2026-11").summary.days == 2
    assert "larger than" in memory.said[-1]
    path.write_bytes(text)
    assert timeline_of(memory).node("2026-11").summary.days == 3
    memory.write("2026-11-20.local.md", day("2026-11-20", ("Private?", "Yes."), session="5e55000f"))
    node = timeline_of(memory).node("2026-11-20")
    assert (node.summary.days, node.summary.turns, len(node.summary.sessions)) == (1, 2, 2)
    assert timeline_of(memory).node("2026-11").summary.days == 3


def test_what_was_read_before_a_change_is_not_kept(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """`forget` may run between the reading of a day and the writing of what was read."""
    secret = "zqhorseradishzq"
    memory.write("2026-11-20.md", day("2026-11-20", (f"Where is the {secret} kept?", "There.")))
    write = cache.write_durably

    def forget_first(path: str, data: bytes, **options: object) -> None:
        if secret.encode() in data:
            memory.write("2026-11-20.md", day("2026-11-20", ("Where is it kept?", "There.")))
            erase_timelines(memory.home, [])
            Path(path).parent.mkdir(parents=True)
        write(path, data, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(cache, "write_durably", forget_first)
    timeline_of(memory)
    assert all(secret not in path.read_text() for path in Path(memory.home.root).rglob("*") if path.is_file())


def test_erasing_follows_no_link(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "kept").touch()
    Path(memory.home.index).mkdir(parents=True)
    Path(memory.home.index, "timeline").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="leads out"):
        erase_timelines(memory.home, [])
    assert (tmp_path / "other" / "kept").exists()


def test_erasing_keeps_what_the_days_still_say(memory: Memory) -> None:
    memory.write("2026-10-20.md", day("2026-10-20", ("Where is the saffron kept?", "There.")))
    memory.write("2026-11-20.md", day("2026-11-20", ("Where is the horseradish kept?", "There.")))
    timeline_of(memory)
    kept = Path(directory_of_timelines(memory.home), digest16(memory.project.root))
    (kept / ".2026-09.json.abcdefgh.tmp").write_text("horseradish")
    others = kept.with_name("0123456789abcdef")
    others.mkdir()
    (others / "2026-09.json").write_text("horseradish")
    memory.write("2026-11-20.md", day("2026-11-20", ("Where is it kept?", "There.")))
    erase_timelines(memory.home, [memory.project])
    assert "2026-10.json" in os.listdir(kept)
    files = [path for path in kept.parent.rglob("*") if path.is_file()]
    assert all("horseradish" not in path.read_text() for path in files)
    assert timeline_of(memory).node("2026-11-20").summary.turns == 1
