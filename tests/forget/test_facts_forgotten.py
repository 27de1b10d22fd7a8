"""Facts about forgotten entries are erased, and so are copies of replaced files."""

from __future__ import annotations

from datetime import date, datetime, timezone
from pathlib import Path

import pytest

from memkit.forget.selection import ForgetSelection, of_days, of_session
from memkit.index import open_chunks
from memkit.journal.facts import MEMORY_FILE, Citations, Fact, FactChange
from memkit.journal.files import keep_replaced
from memkit.journal.journal import Journal
from memkit.llm.calls import Calls
from memkit.privacy.tombstones import Tombstones
from memkit.summarize.compaction import Compaction
from tests.builders import SESSION, make_note
from tests.capture.stage import NOW
from tests.forget.remembered import WORD, Remembered

DAY = date(2026, 3, 4)


def fact(text: str, **citations: tuple[str, ...]) -> Fact:
    return Fact(text, "fact", Citations(**citations), DAY.isoformat())


def compact(remembered: Remembered, *facts: Fact) -> None:
    """Make two compactions, so that a version with the facts is kept: first `facts`, then another one."""
    stage = remembered.stage
    calls = Calls(stage.home, lambda _: pytest.fail("no model is asked"))
    compaction = Compaction(stage.project, stage.home, remembered.settings, calls, DAY)
    for added in (facts, (fact("The celery is green.", turns=("99999999",)),)):
        compaction.write(FactChange(frozenset(), added, DAY.isoformat()))
    remembered.sync()


def write_into_day(remembered: Remembered, name: str, *facts: Fact) -> None:
    """Add facts to the page of a day, and keep an old version of it, as earlier versions of memkit did."""
    stage, path = remembered.stage, remembered.journal.directory / name
    text = path.read_text() if path.exists() else f"# {name.removesuffix('.md')}\n"
    celery = fact("The celery is green.", turns=("99999999",))
    lines = "\n".join(one.line for one in (*facts, celery))
    section = f"## Facts <!-- compacted:{DAY.isoformat()} -->\n\n{lines}\n"
    first, separator, rest = text.partition("\n## ")
    path.write_text(f"{first}\n{section}{separator}{rest}")
    keep_replaced(stage.home, stage.project, name, path.read_text(), DAY.isoformat())
    remembered.sync()


def memory(remembered: Remembered, name: str = MEMORY_FILE) -> str:
    """A memory file as it is."""
    return remembered.journal.text(name)


@pytest.mark.parametrize("name", [MEMORY_FILE, "2026-03-04.md", "2026-03-05.md"])
def test_a_fact_is_erased_with_its_turn(remembered: Remembered, name: str) -> None:
    first, second, _ = remembered.turns
    mine, other = fact("The carrot is orange.", turns=(first,)), fact(f"A {WORD}.", turns=(first, second))
    if name == MEMORY_FILE:
        compact(remembered, mine, other)
    else:
        write_into_day(remembered, name, mine, other)
    assert any("replaced" in path for path in remembered.holders())
    selection = remembered.select(second)
    assert [set(one.facts) for one in remembered.find(selection).facts] == [{other.id}]
    assert remembered.forget(selection) == []
    assert remembered.holders() == []
    assert mine.line in memory(remembered, name)
    assert "celery" in memory(remembered, name)
    assert remembered.take_in().written == 0
    assert remembered.holders() == []


def test_a_fact_is_erased_with_its_bullet(remembered: Remembered) -> None:
    first, second, third = remembered.turns
    bullet = f"- Found: the {WORD}. <!-- grip:bbbbbbbb turns:{second} -->"
    remembered.journal.summarize(remembered.day.stem, [first, second, third], [bullet])
    many = tuple(f"{number:08x}" for number in range(20))
    full = Fact(f"A full {WORD}.", "fact", Citations.joined([Citations(turns=many)]), DAY.isoformat())
    assert full.citations.is_full  # so it may rest on the turn, too
    compact(remembered, fact(f"A {WORD}.", grips=("bbbbbbbb",)), fact("A carrot.", turns=(first,)), full)
    remembered.forget(remembered.select(second))
    assert remembered.holders() == []
    assert "A carrot." in memory(remembered)


def test_an_edited_fact_is_erased_by_its_id(remembered: Remembered) -> None:
    first, second, _ = remembered.turns
    one = fact(f"A {WORD} is here.", turns=(first,), grips=("bbbbbbbb",))
    compact(remembered, one, fact("A carrot.", turns=(first,)))
    path = remembered.journal.directory / MEMORY_FILE
    path.write_text(path.read_text().replace(one.line, one.line.replace("is here", "was here") + f"\n  The {WORD}!"))
    remembered.sync()
    remembered.forget(remembered.select(second))
    remembered.forget(remembered.select(one.id))
    assert remembered.holders() == []
    assert first in remembered.turns
    assert "A carrot." in memory(remembered)


def test_the_id_of_a_facts_chunk_stands_for_the_fact_not_for_its_bullets(remembered: Remembered) -> None:
    first, second, third = remembered.turns
    bullet = f"- Found: the parsnip. <!-- grip:bbbbbbbb turns:{third} -->"
    remembered.journal.summarize(remembered.day.stem, [first, second, third], [bullet])
    compact(remembered, fact("A zqleekzq.", grips=("bbbbbbbb",), turns=(third,)))
    chunks = open_chunks(remembered.stage.project, remembered.stage.home, remembered.settings)
    assert chunks is not None
    names = [chunks.id(n)[:12] for n in range(len(chunks)) if "zqleekzq" in chunks.chunk(n).content]
    remembered.forget(remembered.select(*names))
    assert remembered.holders("zqleekzq") == []
    assert bullet in remembered.day.read_text()


def test_a_fact_is_erased_with_its_note_even_if_the_note_moved(remembered: Remembered) -> None:
    note = make_note(f"The {WORD}.", [], datetime.fromtimestamp(NOW, timezone.utc), str)
    remembered.journal.add_note(note)
    remembered.sync()
    chunks = open_chunks(remembered.stage.project, remembered.stage.home, remembered.settings)
    assert chunks is not None
    (name,) = (chunks.id(n)[:12] for n in range(len(chunks))
               if chunks.chunk(n).content.startswith("## 10:30 Note"))  # fmt: skip
    turn = remembered.turns[0]
    compact(remembered, fact(f"A {WORD}.", chunks=(name,)), fact("A carrot.", turns=(turn,)))
    remembered.day.write_text(remembered.day.read_text().replace("\n", "\n\nMy own words.\n", 1))
    remembered.sync()
    remembered.forget(remembered.select(remembered.turns[1]))
    remembered.forget(remembered.select(note.id))
    assert remembered.holders() == []
    assert "A carrot." in memory(remembered)


@pytest.mark.parametrize("what", ["session", "days"])
def test_facts_of_a_period_are_erased(remembered: Remembered, what: str) -> None:
    stage = remembered.stage
    compact(remembered, fact(f"A {WORD}.", turns=(remembered.turns[1],)))
    selection = {
        "session": of_session(stage.project, stage.home, SESSION[:6], NOW),
        "days": of_days(stage.project, stage.home, DAY, DAY, NOW + 86_400),
    }[what]
    assert remembered.forget(selection) == []
    assert remembered.holders() == []


def test_a_run_killed_after_the_bullets_erases_the_facts_next_time(
    remembered: Remembered, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = remembered.turns
    bullet = f"- Found: the {WORD}. <!-- grip:bbbbbbbb turns:{second} -->"
    remembered.journal.summarize(remembered.day.stem, [first, second, third], [bullet])
    compact(remembered, fact(f"A {WORD}.", grips=("bbbbbbbb",)))

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "remove_facts", die)
        with pytest.raises(KeyboardInterrupt):
            remembered.forget(remembered.select("bbbbbbbb", second))
    assert "MEMORY.md" in str(remembered.holders())
    assert remembered.forget(ForgetSelection()) == []
    assert remembered.holders() == []
    assert Tombstones(remembered.stage.home).unfinished() is None


def test_copies_by_a_restore_are_erased(remembered: Remembered) -> None:
    stage, second = remembered.stage, remembered.turns[1]
    kept = Path(stage.home.before_restore, "2026-03-05T000000")
    copies = {
        "projects/0/memory/2026-03-04.md": remembered.day,
        f"home/archive/{SESSION}.jsonl.zst": Path(stage.home.archive, f"{SESSION}.jsonl.zst"),
    }
    for name, source in copies.items():
        (kept / name).parent.mkdir(parents=True, exist_ok=True)
        (kept / name).write_bytes(source.read_bytes())
    other = kept / "projects" / "0" / "memory" / "2026-03-03.md"
    other.write_text("# 2026-03-03\n\nA leek.\n")
    remembered.forget(remembered.select(second))
    assert remembered.holders() == []
    assert other.exists()
