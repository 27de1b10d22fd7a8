"""Bullets in the day file: above their turns, only once, and nothing else changes."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from memkit.journal.day_edits import Removal, remove
from memkit.journal.day_file import DayFile
from memkit.journal.day_summaries import summarize, turns_of
from memkit.journal.day_writes import insert_turn
from memkit.journal.digest import make_digest
from tests.builders import turn_of

NOON = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)


def day_of(turns: list[tuple[int, str, str]]) -> DayFile:
    """A day with turns (minute, session, id) put in as they come."""
    content = DayFile("# 2026-11-20")
    for minute, session, name in turns:
        time = NOON + timedelta(minutes=minute)
        turn = turn_of("Which?", "That.", id=name, session=session, time=time)
        insert_turn(content, make_digest(turn, "/x", str))
    return content


steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "summarize"]), st.integers(0, 300), st.sampled_from("ab"), st.integers(1, 4)
    ),
    max_size=25,
)


@given(steps)
def test_every_turn_once_and_no_bullet_twice(made: list[tuple[str, int, str, int]]) -> None:
    content = DayFile("# 2026-11-20")
    added: list[str] = []
    written: list[str] = []
    for number, (action, minute, session, count) in enumerate(made):
        if action == "add":
            name = f"t{number}"
            time = NOON + timedelta(minutes=minute)
            turn = turn_of("Which?", "That.", id=name, session=session, time=time)
            insert_turn(content, make_digest(turn, "/x", str))
            added.append(name)
            continue
        waiting = [t for t in turns_of(content, session) if not t.is_summarized]
        first = waiting[:1]
        group = [t for t in waiting if t.heading == first[0].heading][:count] if first else []
        names = [t.section.pairs["turn"] for t in group]
        line = f"- Found: it. <!-- grip:g{number} turns:{','.join(names)} -->"
        assert summarize(content, names, [line]) is bool(names)
        before = content.render()
        assert not summarize(content, names, [line])  # twice is once
        assert content.render() == before
        if names:
            written.append(line)
            done = {t.section.pairs["turn"] for t in turns_of(content, session) if t.is_summarized}
            assert set(names) <= done
    text = content.render()
    for name in added:
        assert text.count(f" turn:{name} -->") == 1
    for line in written:
        assert text.count(line) == 1
    # Read again it is the same, and each turn stands below a heading of its own session.
    again = DayFile(text)
    assert again.render() == text
    assert sorted(t.section.pairs["turn"] for s in again.sessions() for t in turns_of(again, s)) == sorted(added)


def test_marks_of_summaries() -> None:
    content = day_of([(0, "a", "t1")])
    before = content.render()
    assert not summarize(content, ["gone"], ["- x"])
    assert content.render() == before
    assert summarize(content, ["t1"], [])
    assert content.render() == before.replace("session:a ", "session:a summary:t1 ")
    assert all(turn.is_summarized for turn in turns_of(content, "a"))
    content = day_of([(0, "a", "t1"), (5, "a", "t2")])
    summarize(content, ["t1", "t2"], ["- Found: it. <!-- grip:g1 turns:t1 -->"])
    text = content.render()
    without = DayFile(text[: text.rindex("### ")])
    assert [turn.section.pairs["turn"] for turn in turns_of(without, "a")] == ["t1"]
    assert all(turn.is_summarized for turn in turns_of(without, "a"))


def test_a_title_replaces_only_words_that_memkit_wrote() -> None:
    turns = [(0, "a", "t1"), (5, "a", "t2")]
    content, edited = day_of(turns), day_of(turns)
    time = content.sections[0].minute
    summarize(content, ["t1"], [], "Port of the gateway")
    summarize(content, ["t2"], [], "Second half")
    openings = [one.heading for one in content.sections if "session" in one.pairs]
    later = content.find_turn("t2")
    assert openings[0] == f"## {time} Port of the gateway <!-- session:a summary:t1 -->"
    assert openings[1] == f"## {later.minute} Second half <!-- session:a summary:t2 -->"
    edited.lines[edited.sections[0].start] = f"## {time} My own words <!-- session:a -->"
    edited = DayFile("\n".join(edited.lines))
    summarize(edited, ["t1"], [], "Port of the gateway")
    assert edited.sections[0].heading == f"## {time} My own words <!-- session:a summary:t1 -->"


def test_forgetting_a_turn_forgets_the_title_of_its_summary() -> None:
    content = day_of([(0, "a", "t1"), (5, "a", "t2")])
    summarize(content, ["t1", "t2"], ["- Found: it. <!-- grip:g1 turns:t2 -->"], "The secret wedding")
    assert remove(content, Removal(turns=["t2"]))
    assert "wedding" not in content.render()
    assert content.sections[0].heading.endswith(" Which? <!-- session:a summary:t1 -->")
    # Without a summary, the words are the user's own.
    content = day_of([(0, "a", "t1"), (5, "a", "t2")])
    first = content.sections[0]
    content.lines[first.start] = f"## {first.minute} My own words <!-- session:a -->"
    content = DayFile("\n".join(content.lines))
    assert remove(content, Removal(turns=["t2"]))
    assert "My own words" in content.render()
