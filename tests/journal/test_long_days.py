"""A day of thousands of turns costs in line with what is added to it."""

from __future__ import annotations

import dataclasses
import random
from datetime import date, timedelta
from pathlib import Path

import pytest

from memkit.journal.day_file import DayFile
from memkit.journal.day_writes import insert_turn
from memkit.journal.digest import Digest
from memkit.journal.files import MemoryDirectory
from memkit.journal.journal import Journal
from memkit.projects.project import Project
from tests.ci import every

pytestmark = pytest.mark.usefixtures("unsynced")

DAY = "2026-01-05"


def digest_of(number: int, session: str = "s1", minute: str = "12:00") -> Digest:
    """A turn; what else a digest has does not matter here."""
    values: dict[str, object] = {}
    for field in dataclasses.fields(Digest):
        values[field.name] = ""
    section = f"### {minute} Which? <!-- turn:{number:08x} -->\n**Asked** Which?\n**Answered** {number}."
    known = {"day": DAY, "minute": minute, "session": session, "title": "Work", "section": section}
    return Digest(**{**values, **known, "turn": f"{number:08x}"})  # type: ignore[arg-type]


def test_sections_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0
    original = DayFile._read_sections

    def counting(self: DayFile, first: int) -> object:
        nonlocal read
        read += len(self.lines) - first
        return original(self, first)

    monkeypatch.setattr(DayFile, "_read_sections", counting)
    content = DayFile(f"# {DAY}")
    for number in range(500):
        assert content.find_turn(f"{number:08x}") is None
        insert_turn(content, digest_of(number))
        assert content.find_turn(f"{number:08x}") is not None
    assert len(content.sections) == 501
    assert read <= 2 * len(content.lines)  # before: 500 times half of them


def test_nearby_days_are_read_once_per_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(Project(str(tmp_path)))
    beside = (date.fromisoformat(DAY) - timedelta(days=1)).isoformat()
    other = dataclasses.replace(digest_of(7), day=beside)
    assert journal.write([other]) == [other]
    read: list[str] = []
    real = MemoryDirectory.read_if_used

    def noting(self: MemoryDirectory, path: Path) -> str:
        read.append(path.name)
        return real(self, path)

    monkeypatch.setattr(MemoryDirectory, "read_if_used", noting)
    written = journal.write([digest_of(number) for number in range(50)])
    assert [one.turn for one in written] == [f"{n:08x}" for n in range(50) if n != 7]
    assert read == [f"{beside}.md"]


@pytest.mark.parametrize("seed", every(5, range(30)))
def test_an_updated_day_file_equals_one_read_again(seed: int) -> None:
    chance = random.Random(seed)
    content = DayFile(f"# {DAY}\n\nBy hand.")
    text = content.render()
    for number in range(40):
        session = f"s{chance.randrange(3)}"
        minute = f"{min(23, number // 2 + chance.randrange(3)):02d}:{chance.randrange(60):02d}"
        digest = digest_of(number, session, minute)
        anew = DayFile(text)
        assert content.find_turn(digest.turn) is None
        insert_turn(content, digest)
        insert_turn(anew, digest)
        text = anew.render()
        assert content.render() == text
        assert content.sections == DayFile(text).sections
        assert content.find_turn(digest.turn) == DayFile(text).find_turn(digest.turn)
