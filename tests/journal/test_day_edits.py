"""Taking things out of a day leaves everything else as it was, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit import anchors
from memkit.journal.day_edits import Removal, merge, remove, removed_bullets
from memkit.journal.day_file import DayFile
from memkit.journal.day_summaries import turns_of
from tests.ci import IN_CI

TEXTS = st.lists(
    st.sampled_from(["", "said", "  indented", "- item", "```", "### a heading", "# 1", "\ttab", "é \u2028 x"]),
    max_size=5,
).map(lambda lines: "\n".join(lines).rstrip("\n"))


@st.composite
def days(draw: st.DrawFn) -> tuple[str, list[str], list[str]]:
    """A day with sessions, bullets and notes; the ids of its turns and of its notes."""
    lines = ["# 2026-11-20", ""]
    turns: list[str] = []
    notes: list[str] = []
    for session in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            notes.append(f"eeee{session:04x}")
            lines += [f"## 08:00 Note: a note <!-- note:{notes[-1]} -->", draw(TEXTS), ""]
            continue
        own = [f"{session:04x}{number:04x}" for number in range(draw(st.integers(0, 3)))]
        summary = f" summary:{draw(st.sampled_from(own))}" if own and draw(st.booleans()) else ""
        lines += [f"## 09:00 title {session} <!-- session:s{session}{summary} -->", ""]
        for number in range(draw(st.integers(0, 2)) if own else 0):
            rest = ",".join(draw(st.lists(st.sampled_from(own), min_size=1, max_size=2, unique=True)))
            lines.append(f"- Found: it. <!-- grip:{session}{number}aaaaaa turns:{rest} -->")
        for name in own:
            lines += ["", f"### 09:00 asked {name} <!-- turn:{name} -->", draw(TEXTS)]
        lines.append("")
        turns += own
    return "\n".join(lines).rstrip("\n") + "\n", turns, notes


def texts(content: DayFile) -> dict[str, str]:
    return {
        s.pairs[key]: content.text(s) for s in content.sections for key in ("turn", "note") if key in s.pairs
    }


@settings(max_examples=50 if IN_CI else 15)
@given(days(), st.data())
def test_the_others_stay(day: tuple[str, list[str], list[str]], data: st.DataObject) -> None:
    text, turns, notes = day
    gone = data.draw(st.sets(st.sampled_from(turns)) if turns else st.just(set()))
    gone_notes = data.draw(st.sets(st.sampled_from(notes)) if notes else st.just(set()))
    content = DayFile(text)
    before = texts(content)
    removal = Removal(gone, (), gone_notes)
    is_changed = remove(content, removal)
    assert is_changed == bool(gone or gone_notes)
    if not is_changed:
        assert content.render() == text
    after = DayFile(content.render())
    assert texts(after) == {name: one for name, one in before.items() if name not in gone | gone_notes}
    rest = [line for line in text.split("\n") if "grip:" in line]
    stays = [line for line in rest if not gone & set(anchors.parse(line)["turns"].split(","))]
    assert [line for line in content.render().split("\n") if "grip:" in line] == stays
    # A summary stands for the same turns as before.
    for session in after.sessions():
        done = {t.section.pairs["turn"] for t in turns_of(DayFile(text), session) if t.is_summarized}
        assert {t.section.pairs["turn"] for t in turns_of(after, session) if t.is_summarized} == done - gone
    again = DayFile(content.render())
    assert not remove(again, removal)
    assert again.render() == content.render()


def test_wrapped_bullets_are_removed_whole_and_headings_updated() -> None:
    text = (
        "# 2026-11-20\n\n## 09:00 Other <!-- session:s summary:bb -->\n\n- Found: what\n  stands here.\n"
        "  <!-- grip:12345678 turns:bb -->\n- Kept. <!-- grip:87654321 turns:aa -->\n\n"
        "### 09:00 One <!-- turn:aa -->\nfirst\n\n### 09:01 Two <!-- turn:bb -->\nsecond\n\n\n"
        "### 09:02 Three <!-- turn:cc -->\nthird\n"
    )
    content = DayFile(text)
    assert remove(content, Removal({"bb"}))
    assert content.render() == (
        "# 2026-11-20\n\n## 09:00 One <!-- session:s summary:aa -->\n\n"
        "- Kept. <!-- grip:87654321 turns:aa -->\n\n"
        "### 09:00 One <!-- turn:aa -->\nfirst\n\n### 09:02 Three <!-- turn:cc -->\nthird\n"
    )


@settings(max_examples=50 if IN_CI else 15)
@given(days(), st.data())
def test_an_edit_is_merged(day: tuple[str, list[str], list[str]], data: st.DataObject) -> None:
    text, turns, _ = day
    assert merge(text, "mine", text) == "mine"
    gone = set(data.draw(st.sets(st.sampled_from(turns)) if turns else st.just(set())))
    present = DayFile(text)
    remove(present, Removal(gone))
    new = "## 23:00 Late <!-- session:late -->\n\n### 23:00 Late <!-- turn:ffffffff -->\nlate"
    now = present.render() + "\n" + new + "\n"
    edited = text.replace("# 2026-11-20", "# 2026-11-20\n\nMy own words.", 1)
    merged = DayFile(merge(text, edited, now))
    assert "My own words." in merged.lines
    expected = {name: one for name, one in texts(DayFile(text)).items() if name not in gone}
    assert texts(merged) == {**expected, "ffffffff": "### 23:00 Late <!-- turn:ffffffff -->\nlate"}


def test_the_users_change_of_a_section_wins() -> None:
    text = "# 2026-11-20\n\n## 09:00 A <!-- session:s -->\n\n### 09:00 A <!-- turn:aa -->\nold\n"
    text += "\n### 09:01 B <!-- turn:bb -->\nold\n"
    edited = text.replace("aa -->\nold", "aa -->\nmine")
    now = text.replace("old", "grown")
    assert merge(text, edited, now) == text.replace("aa -->\nold", "aa -->\nmine").replace("bb -->\nold", "bb -->\ngrown")


@pytest.mark.parametrize(
    ("removal", "words"),
    [(Removal(notes=["93229958"]), "merger"), (Removal(grips=["bbbb1111"]), "900k")],
)
def test_an_edited_line_of_the_overview_goes_with_what_it_tells_of(removal: Removal, words: str) -> None:
    content = DayFile(
        "# 2026-11-20\n\n"
        "- 14:02 [Pay](#1402-pay) · one turn → Bob earns 900k. <!-- overview:11111111 turns:8ad3df7f -->\n"
        "- 14:30 [Note: The merger!](#1430-note-the-merger) <!-- overview:22222222 note:93229958 -->\n\n"
        "## 14:02 Pay <!-- session:5e55aaaa summary:8ad3df7f -->\n\n"
        "- Found: Bob earns 900k. <!-- grip:bbbb1111 turns:8ad3df7f -->\n\n"
        "### 14:02 Who earns what? <!-- turn:8ad3df7f -->\n**Answered** See the list.\n\n"
        "## 14:30 Note: The merger <!-- note:93229958 -->\nThe merger is on Monday.\n"
    )
    assert remove(content, removal)
    text = content.render()
    assert words not in text
    assert "See the list." in text


def test_an_edited_line_of_the_overview_goes_though_its_stretch_was_cut_in_two() -> None:
    content = DayFile(
        "# 2026-11-20\n\n"
        "- 14:02 [Pay](#1402-pay) · all of it → Bob earns 900k. <!-- overview:11111111 turns:8ad3df7f -->\n\n"
        "## 14:02 Pay <!-- session:5e55aaaa -->\n\n"
        "### 14:02 Hello? <!-- turn:8ad3df7f -->\n**Answered** Hello.\n\n"
        "## 14:30 Pay again <!-- session:5e55aaaa -->\n\n"
        "### 14:30 Who earns what? <!-- turn:9ad3df7f -->\n**Answered** Bob earns 900k.\n"
    )
    assert remove(content, Removal(turns=["9ad3df7f"]))
    assert "900k" not in content.render()


def test_a_fact_that_speaks_of_a_citation_is_no_bullet() -> None:
    content = DayFile(
        "# 2026-11-20\n\n## Facts <!-- compacted:2026-11-20 -->\n\n"
        "- Fact: The anchor is `grip:bbbb1111`. (2026-11-20) <!-- fact:1f0c44a2 turns:8ad3df7f -->\n"
    )
    assert not list(removed_bullets(content, Removal(turns=["8ad3df7f"], grips=["bbbb1111"])))
