"""Totals are the sums of what the days hold."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from memkit.files import MOST_BYTES
from memkit.journal.day_file import DayFile
from memkit.journal.day_writes import insert_note
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.stats import FileCount, Tally, gather
from memkit.timeline.summary import count_day
from tests.builders import make_note

TURN = st.fixed_dictionaries(
    {
        "hour": st.integers(0, 23),
        "words": st.integers(0, 5),
        "edits": st.lists(st.sampled_from(["a.py", "b.py", "c d.py"]), max_size=3),
        "reads": st.lists(st.sampled_from(["a.py", "z.md"]), max_size=3),
    }
)
SESSION = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["s1", "s2", "s3"]),
        "bullets": st.integers(0, 3),
        "turns": st.lists(TURN, max_size=3),
    }
)
DAY = st.lists(SESSION, max_size=3)
DAYS = st.dictionaries(st.dates().map(str), DAY, max_size=4)


def text_of(day: str, sessions: list[dict]) -> str:
    lines = [f"# {day}", "", "- not a bullet", ""]
    for session in sessions:
        lines += [f"## 09:00 Work <!-- session:{session['id']} -->", ""]
        lines += [f"- Decided: {n} <!-- grip:{n} turns:t -->" for n in range(session["bullets"])]
        for turn in session["turns"]:
            calls = [f"Edit {path}" for path in turn["edits"]]
            calls += [f"Read {path}" for path in turn["reads"]]
            did = [f"**Did** {' · '.join(calls)}"] if calls else []
            lines += ["", f"### {turn['hour']:02}:07 ### Why? <!-- turn:t -->"]
            lines += [f"**Asked** {'word ' * turn['words']}", *did, "**Answered**"]
            lines += ["", "## A heading of a person's", ""] if turn["words"] > 4 else []
    return "\n".join(lines)


@given(DAYS)
def test_totals_are_sums(days: dict[str, list[dict]]) -> None:
    tally = Tally()
    for day, sessions in days.items():
        tally.add("/p", day, count_day(DayFile(text_of(day, sessions))))
    every = [session for sessions in days.values() for session in sessions]
    turns = [turn for session in every for turn in session["turns"]]
    notes = 6 * sum(turn["words"] > 4 for turn in turns)
    assert (
        tally.turns == len(turns) == sum(tally.turns_by_day.values()) == sum(tally.hours.values())
    )
    assert tally.hours == Counter(turn["hour"] for turn in turns)
    assert tally.words == sum(turn["words"] for turn in turns) + notes
    assert tally.bullets == sum(session["bullets"] for session in every)
    assert tally.sessions == len({session["id"] for session in every})
    assert list(tally.turns_by_day) == sorted(days)
    edited = Counter(path for turn in turns for path in turn["edits"])
    mentioned = edited + Counter(path for turn in turns for path in turn["reads"])
    files = tally.files(100)
    assert {file.path: file.mentioned for file in files} == mentioned
    assert {file.path: file.edited for file in files if file.edited} == edited
    assert [file.edited for file in files] == sorted((file.edited for file in files), reverse=True)
    assert tally.files(2) == files[:2]


@given(DAY, DAY)
def test_two_projects_are_added_up(one: list[dict], other: list[dict]) -> None:
    day = "2026-11-20"
    days = {"/one": count_day(DayFile(text_of(day, one))), "/two": count_day(DayFile(text_of(day, other)))}
    there, back = Tally(), Tally()
    for root in ("/one", "/two"):
        there.add(root, day, days[root])
    for root in ("/two", "/one"):
        back.add(root, day, days[root])
    assert there.files(10) == back.files(10)
    assert there.days == back.days
    assert there.turns == sum(len(session["turns"]) for session in [*one, *other])
    assert {file.root for file in there.files(10)} <= {"/one", "/two"}


def test_a_heading_without_a_time_counts_no_hour() -> None:
    text = "## x <!-- session:s -->\n### Why? <!-- turn:a -->\n### 31:00 Why? <!-- turn:b -->"
    tally = Tally()
    tally.add("/p", "2026-11-20", count_day(DayFile(text)))
    assert (tally.turns, tally.hours) == (2, Counter())


def test_a_note_counts_as_no_session() -> None:
    note = make_note("The gateway moves.", ["deploy"], datetime(2026, 11, 20, 14, 30), str)
    content = DayFile(text_of("2026-11-20", [{"id": "s1", "bullets": 2, "turns": []}]))
    before, after = Tally(), Tally()
    before.add("/p", "2026-11-20", count_day(content))
    assert insert_note(content, note)
    after.add("/p", "2026-11-20", count_day(content))
    assert after.days == before.days


def test_a_day_that_cannot_be_read_is_named_and_the_others_count(tmp_path: Path) -> None:
    project = Project(str(tmp_path / "p"))
    memory = Path(project.memory)
    memory.mkdir(parents=True)
    text = "## 09:00 x <!-- session:s -->\n### 09:01 y <!-- turn:t -->\n**Did** Edit a.py"
    (memory / "2026-11-20.md").write_text(text)
    with (memory / "2026-11-19.md").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    (memory / "2026-13-45.md").write_text(text)  # a person's
    stats = gather(Home(str(tmp_path / "home")), project)
    (problem,) = stats.problems
    assert "2026-11-19.md" in problem
    assert list(stats.tally.days) == ["2026-11-20"]
    assert stats.tally.files(9) == [FileCount(project.root, "a.py", 1, 1)]
