"""The section of facts in a memory file: what is memkit's in it, and what a person wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from memkit.errors import ArchiveError
from memkit.journal.facts import LABELS, Citations, Fact, FactChange, FactFile, superseding_facts
from memkit.journal.journal import Journal
from memkit.projects.project import Project

PORT = Fact("The gateway listens on 7443.", "decision", Citations(("k3f9a1aa",), ("8ad3df7f",)), "2026-11-20")
TESTS = Fact("Tests run with `bin/test`.", "preference", Citations(chunks=("20e3d2c8274c",)))
OLD = Fact("The gateway listened on 443.", "superseded", Citations(turns=("77c1e09b",)), "2026-11-18", False)
NAME = "MEMORY.md"


def added(*facts: Fact, day: str = "2026-11-20") -> FactChange:
    return FactChange(frozenset(), facts, day)


def removed(*facts: Fact) -> FactChange:
    return FactChange(frozenset(fact.id for fact in facts), ())


def test_a_file_is_made_and_read_again() -> None:
    text = added(OLD, PORT, TESTS).apply("", NAME)
    assert text.split("\n") == [
        "# Memory", "", "## Facts <!-- compacted:2026-11-20 -->", "", PORT.line, TESTS.line, OLD.line, "",
    ]  # fmt: skip
    assert PORT.line.startswith("- Decided: The gateway listens on 7443. (2026-11-20) <!-- fact:")
    assert " (2026-11-18) (unverified) <!-- " in OLD.line
    file = FactFile(text, NAME)
    assert file.compacted == "2026-11-20"
    assert [one.fact for one in file.facts()] == [PORT, TESTS, OLD]
    assert [one.id for one in file.facts()] == [PORT.id, TESTS.id, OLD.id]
    assert not any(one.is_own for one in file.facts())


@pytest.mark.parametrize(
    "text",
    ["It ended (2026-11-19)", "It is so (unverified)", "Label: with <b> and `--x`", "a (2026-11-19) (unverified)"],
)
def test_a_text_that_looks_like_the_rest_of_a_line_is_still_memkits(text: str) -> None:
    for fact in (Fact(text, "fact", PORT.citations), Fact(text, "fact", PORT.citations, "2026-11-20", False)):
        (found,) = FactFile(added(fact).apply("", NAME), NAME).facts()
        assert (found.id, found.fact.shown, found.is_own) == (fact.id, fact.shown, False)


def test_applying_a_change_twice_is_the_same_as_once() -> None:
    before = "# Mine\n\nMy text.\n\n## Facts <!-- compacted:2026-11-01 -->\n\nA word before.\n\n## After\n\nMore.\n\n\n"
    once = added(PORT).apply(before, NAME)
    assert once == (
        "# Mine\n\nMy text.\n\n## Facts <!-- compacted:2026-11-20 -->\n\nA word before.\n\n"
        f"{PORT.line}\n\n## After\n\nMore.\n"
    )
    assert added(PORT).apply(once, NAME) == once
    more = added(TESTS, OLD).apply(once, NAME)
    assert more == once.replace(PORT.line, f"{PORT.line}\n{TESTS.line}\n{OLD.line}")
    assert FactChange(frozenset({TESTS.id, OLD.id}), ()).apply(more, NAME) == once
    unchanged = "No facts\n\n\n"
    assert removed(PORT).apply(unchanged, NAME) == unchanged


@pytest.mark.parametrize(
    "edit",
    [
        lambda line: line.replace("7443", "8443"), lambda line: line.replace("Decided:", "Decided at last:"),
        lambda line: line.replace("8ad3df7f", "8ad3df7f,11111111"),
        lambda line: f"{line}\n  My reason for it.", lambda line: f"{line}\nA lazy line of mine.",
        lambda line: f"* {line[2:]}", lambda line: f"  {line}",
    ],
)  # fmt: skip
def test_a_line_that_a_person_changed_is_theirs(edit: object) -> None:
    assert callable(edit)
    text = added(PORT, OLD).apply("", NAME)
    edited = text.replace(PORT.line, edit(PORT.line))
    assert edited != text
    assert FactFile(edited, NAME).facts()[0].is_own
    assert removed(PORT).apply(edited, NAME) == edited
    more = added(TESTS).apply(edited, NAME)
    assert edit(PORT.line) in more
    assert more.replace(f"{TESTS.line}\n", "") == edited


def test_facts_in_a_day_file_precede_the_sessions() -> None:
    day = "# 2026-11-20\n\nMy note.\n\n## 09:00 Work <!-- session:s1 -->\n\n### 09:00 What? <!-- turn:aaaaaaaa -->\n**Asked** What?\n"
    text = added(PORT).apply(day, "2026-11-20.md")
    section = f"## Facts <!-- compacted:2026-11-20 -->\n\n{PORT.line}\n\n"
    assert text == day.replace("## 09:00", f"{section}## 09:00", 1)
    alone = added(PORT, day="").apply("", "2026-11-21.md")
    assert alone.startswith("# 2026-11-21\n\n## Facts <!-- compacted:- -->\n\n- ")
    assert FactFile(alone, "2026-11-21.md").compacted == ""


def test_every_kind_is_read_as_it_was_written() -> None:
    facts = [Fact(f"Of kind {kind}.", kind, PORT.citations) for kind in LABELS]
    text = added(*facts).apply("", NAME)
    assert [one.fact for one in FactFile(text, NAME).facts()] == facts
    assert "- Pattern: Of kind pattern. <!-- fact:" in text
    assert PORT.id == "3e824404"  # files of earlier versions hold such IDs
    text = added(PORT, OLD).apply("", NAME).replace("\n", "\r\n")
    assert [one.is_own for one in FactFile(text, NAME).facts()] == [False, False]
    assert PORT.line not in removed(PORT).apply(text, NAME)


def test_a_fact_names_what_it_supersedes() -> None:
    moved = Fact("The gateway moved.", "superseded", PORT.citations, "2026-11-21", supersedes=("77c1e09b",))
    new = Fact("It is 7443.", "decision", PORT.citations, "2026-11-20", supersedes=("77c1e09b", "k3f9a1aa"))
    newer = Fact("It is 7444.", "decision", PORT.citations, "2026-11-22", supersedes=("k3f9a1aa",))
    doubtful = Fact("It is 7445.", "fact", PORT.citations, "2026-11-23", False, supersedes=("k3f9a1aa",))
    text = added(moved, newer, new, doubtful).apply("", NAME)
    assert new.line.endswith(" turns:8ad3df7f supersedes:77c1e09b,k3f9a1aa -->")
    found = FactFile(text, NAME).facts()
    assert [one.fact for one in found] == [newer, new, doubtful, moved]
    assert not any(one.is_own for one in found)
    assert superseding_facts(text, NAME) == {"77c1e09b": new, "k3f9a1aa": newer}
    assert superseding_facts("# Nothing\n", NAME) == {}
    forged = text.replace("supersedes:77c1e09b,k3f9a1aa", "supersedes:77c1e09b")
    assert FactFile(forged, NAME).facts()[1].is_own


def test_citations_have_the_room_of_an_anchor() -> None:
    many = Citations.joined([Citations(turns=tuple(f"{n:08x}" for n in range(50)))] * 2)
    assert len(many.turns) == 13
    (found,) = FactFile(added(Fact("x is so", "fact", many)).apply("", NAME), NAME).facts()
    assert found.fact.citations == many
    assert not found.is_own


def test_nothing_is_written_if_the_old_text_cannot_be_kept(tmp_path: Path) -> None:
    journal = Journal(Project(str(tmp_path)))
    journal.change_facts(NAME, added(PORT), lambda text: None)
    before = journal.text(NAME)

    def refuse(text: str) -> None:
        assert text == before
        raise ArchiveError("no room")

    with pytest.raises(ArchiveError):
        journal.change_facts(NAME, added(TESTS), refuse)
    assert journal.text(NAME) == before
    assert not journal.change_facts(NAME, added(PORT), refuse)  # nothing to change, nothing to keep


def test_a_fact_whose_line_the_user_wrapped_is_forgotten() -> None:
    text = added(PORT, TESTS).apply("", NAME)
    for one in (PORT, TESTS):
        head, anchor = one.line.split(" <!--")
        wrapped = text.replace(one.line, f"{head.replace(' ', chr(10) + '  ', 2)}\n  more <!--{anchor}")
        file = FactFile(wrapped, NAME)
        assert file.forget([one.id])
        assert file.render() == text.replace(f"{one.line}\n", "")
    file = FactFile(text.replace(TESTS.line, f"  {TESTS.line}"), NAME)
    assert file.forget([PORT.id, TESTS.id])
    assert file.facts() == []
