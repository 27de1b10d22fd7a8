"""Lines of extracts in the day file: recognizable, replaced by a summary, and the user's once edited."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from memkit import anchors
from memkit.journal.day_edits import Removal, remove
from memkit.journal.day_file import DayFile
from memkit.journal.day_summaries import extracted, summarize, turns_of
from memkit.journal.day_writes import insert_turn
from memkit.journal.digest import make_digest
from memkit.journal.extracts import extract_line, is_unedited, without_derived
from tests.builders import turn_of

NOON = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)
BULLET = "- Found: it. <!-- grip:ab12cd34 turns:{} -->"


def day_of(*turns: tuple[int, str, str]) -> DayFile:
    """A day with turns of one session: minute, id, prompt."""
    content = DayFile("# 2026-11-20")
    for minute, name, prompt in turns:
        time = NOON + timedelta(minutes=minute)
        insert_turn(content, make_digest(turn_of(prompt, "That.", id=name, session="a", time=time), "/x", str))
    return content


def three_turns() -> DayFile:
    return day_of((0, "t1", "yes."), (2, "t2", "Move the gateway to 7443"), (90, "t3", "Which port?"))


def test_a_line_is_known_until_somebody_edits_it() -> None:
    line = extract_line("Edited: src/app.ts ×3, README.md", ["t1", "t2"])
    assert line.startswith("- Edited: src/app.ts ×3, README.md <!-- grip:")
    assert line.endswith(" turns:t1,t2 by:extract -->")
    assert is_unedited(line)
    assert not is_unedited(line.replace("×3", "×4"))
    assert not is_unedited(line.replace("t1,t2", "t1"))
    assert not is_unedited(f"  {line}")
    assert not is_unedited(line.replace(" by:extract", ""))
    assert not is_unedited(BULLET.format("t1"))


def test_lines_go_above_their_turns_once() -> None:
    content = three_turns()
    first, second = extract_line("Edited: a.py", ["t1"]), extract_line("Open: Why?", ["t3"])
    assert summarize(content, ["t1", "t2"], [first], key="extract")
    assert summarize(content, ["t3"], [second], key="extract")
    text = content.render()
    assert [line for line in text.splitlines() if "session:" in line] == [
        f"## {content.sections[0].minute} Move the gateway to 7443 <!-- session:a extract:t2 -->",
        f"## {content.find_turn('t3').minute} Which port? <!-- session:a extract:t3 -->",  # type: ignore[union-attr]
    ]
    assert extracted(content, "a") == {"t1", "t2", "t3"}
    assert not any(turn.is_summarized for turn in turns_of(content, "a"))
    for names, line in ((["t1", "t2"], first), (["t2"], first), (["t3"], second)):
        assert not summarize(content, names, [line], key="extract")  # twice is once
    assert content.render() == DayFile(text).render() == text


def test_a_summary_replaces_the_unedited_lines_of_its_turns() -> None:
    content = three_turns()
    mine = extract_line("Edited: a.py", ["t1"]).replace("a.py", "a.py, by hand")
    lines = [extract_line("Edited: a.py", ["t1", "t2"]), mine, extract_line("Open: Why?", ["t2"])]
    summarize(content, ["t1", "t2"], lines, "Move the gateway to 7443", key="extract")
    summarize(content, ["t3"], [extract_line("Open: Which?", ["t3"])], key="extract")
    assert summarize(content, ["t1", "t2"], [BULLET.format("t1")], "Port of the gateway")
    text = content.render()
    assert lines[0] not in text
    assert lines[2] in text  # no bullet answers it
    assert mine in text
    assert BULLET.format("t1") in text
    minute = content.sections[0].minute
    assert content.sections[0].heading == f"## {minute} Port of the gateway <!-- session:a summary:t2 -->"
    assert "Open: Which?" in text
    assert "\n\n\n" not in text
    assert not summarize(content, ["t1", "t2"], lines, key="extract")  # the summary stays
    assert content.render() == text


def test_a_summary_of_the_later_turns_leaves_the_others_their_lines() -> None:
    content = day_of((0, "t1", "One?"), (1, "t2", "Two?"), (2, "t3", "Three?"), (3, "t4", "Four?"))
    own = {name: extract_line(f"Open: {name}?", [name]) for name in ("t1", "t2", "t3")}
    summarize(content, ["t1", "t2", "t3"], list(own.values()), key="extract")
    assert summarize(content, ["t2"], [BULLET.format("t2").replace("Found:", "Open:")])
    text = content.render()
    assert (own["t1"] in text, own["t2"] in text, own["t3"] in text) == (True, False, True)
    assert extracted(content, "a") == {"t1", "t2", "t3"}
    assert [turn.is_summarized for turn in turns_of(content, "a")] == [False, True, False, False]


def test_without_lines_no_heading_is_added() -> None:
    content = three_turns()
    before = content.render()
    assert summarize(content, ["t1", "t2"], [], key="extract")
    assert summarize(content, ["t3"], [], "Which port?", key="extract")
    assert not summarize(content, ["t3"], [], key="extract")
    assert content.render() == before.replace("session:a -->", "session:a extract:t3 -->")
    assert extracted(content, "a") == {"t1", "t2", "t3"}


def test_a_title_of_the_users_own_stays() -> None:
    content = three_turns()
    heading = content.sections[0]
    content.lines[heading.start] = heading.heading.replace("Move the gateway to 7443", "My words")
    content = DayFile(content.render())
    summarize(content, ["t1", "t2"], [], "Move the gateway to 7443", key="extract")
    summarize(content, ["t1", "t2"], [], "Port of the gateway")
    assert "My words <!-- session:a summary:t2 -->" in content.sections[0].heading


def test_lines_are_forgotten_with_each_of_their_turns() -> None:
    content = three_turns()
    lines = [extract_line("Edited: a.py", ["t1", "t2"]), extract_line("Open: Why?", ["t1"])]
    summarize(content, ["t1", "t2"], lines, "Move the gateway to 7443", key="extract")
    assert remove(content, Removal(turns={"t2"}))
    text = content.render()
    assert lines[0] not in text
    assert lines[1] in text
    assert "7443" not in text  # the title was the forgotten turn's
    assert content.sections[0].pairs["extract"] == "t1"
    assert extracted(content, "a") == {"t1"}


steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "extract", "extract", "summary", "edit"]), st.integers(0, 300), st.integers(1, 4)
    ),
    max_size=25,
)


@given(steps)
def test_nothing_is_written_twice_or_lost(made: list[tuple[str, int, int]]) -> None:
    """Extracts and summaries in any order, of segments of any cut, with edits in between."""
    content = DayFile("# 2026-11-20")
    added: list[str] = []
    edited: list[str] = []
    for number, (action, minute, count) in enumerate(made):
        if action == "add":
            added.append(f"t{number}")
            time = NOON + timedelta(minutes=minute)
            turn = turn_of(f"Prompt {number}?", "That.", id=added[-1], session="a", time=time)
            insert_turn(content, make_digest(turn, "/x", str))
            continue
        if action == "edit":
            places = [n for n, line in enumerate(content.lines) if is_unedited(line)]
            if places:
                line = content.lines[places[0]].replace("- Open", "- Still open")
                content.lines[places[0]] = line
                edited.append(line)
                content = DayFile(content.render())
            continue
        covered = extracted(content, "a") if action == "extract" else set()
        waiting = [
            turn for turn in turns_of(content, "a")
            if not turn.is_summarized and turn.section.pairs["turn"] not in covered
        ]  # fmt: skip
        group = [turn for turn in waiting if turn.heading == waiting[0].heading][:count]
        names = [turn.section.pairs["turn"] for turn in group]
        line = extract_line(f"Open: {number}?", names) if action == "extract" else BULLET.format(names[:1])
        assert summarize(content, names, [line], key=action) is bool(names)
        before = content.render()
        assert not summarize(content, names, [line], key=action)
        assert content.render() == before
        if names and action == "summary":
            left = [one for one in content.lines if is_unedited(one) and "- Open" not in one]
            cited = {name for line in left for name in anchors.parse(line)["turns"].split(",")}
            assert cited.isdisjoint(names)
    text = content.render()
    assert DayFile(text).render() == text
    assert [text.count(f" turn:{name} -->") for name in added] == [1] * len(added)
    assert all(text.count(line) == edited.count(line) for line in edited)


def test_text_without_derived_is_the_text_before_them() -> None:
    content = three_turns()
    before = content.render()
    summarize(content, ["t1", "t2"], [extract_line("Edited: a.py", ["t1"])], key="extract")
    lines = content.render().split("\n")
    left = "\n".join(lines[number] for number in without_derived(lines))
    assert anchors.strip(left) == anchors.strip(before).rstrip("\n") + "\n" * left.endswith("\n")
