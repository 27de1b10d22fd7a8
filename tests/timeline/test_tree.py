"""The tree: what each node holds, and its way down to the turn."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.errors import AmbiguousIdError, NotFoundError
from memkit.journal.facts import Citations, Fact
from memkit.text import estimate_tokens
from memkit.timeline.events import find_words
from memkit.timeline.nodes import day_of, parent_of, parse_span, path_of, week_of
from memkit.timeline.summary import MOST_LINES, telling, words_of
from memkit.timeline.tree import Timeline, open_timeline
from memkit.timeline.view import MOST_TOKENS, markdown, view
from tests.ci import examples
from tests.memory import DAYS, Memory, make_memory
from tests.timeline.conftest import subject, timeline_of


def test_parents_sum_up_their_children(timeline: Timeline) -> None:
    def check(name: str, depth: int) -> None:
        node = timeline.node(name)
        children = list(timeline.children(node))
        for field in ("days", "turns", "notes", "failed"):
            assert sum(getattr(one.summary, field) for one in children) == getattr(node.summary, field), name
        assert {one for child in children for one in child.summary.sessions} == set(node.summary.sessions)
        assert [one.parent for one in children] == [name] * len(children)
        assert all(before.first < after.first for before, after in pairwise(children))
        for child in children[:: max(1, len(children) // 3)] if depth else ():
            check(child.id, depth - 1)

    check("", 3)
    everything = timeline.node()
    assert (everything.first, everything.last) == ("2025-09-14", "2026-11-20")
    assert everything.summary.days == 217


def test_what_months_and_days_hold(timeline: Timeline) -> None:
    for month in timeline.children(timeline.node("2026")):
        middle = date.fromisoformat(f"{month.id}-15")
        assert subject(middle) in month.words[:3]
        assert f"src/{subject(middle)}.py" in month.summary.files
    text = markdown(view(timeline, "2026-W47", as_rows=True))
    assert text.startswith("# 2026-W47\n\n2026-11-16 to 2026-11-20: 3 days, 3 sessions, 6 turns")
    assert "- 2026-11-20: 1 session, 2 turns" in text
    day = timeline.node("2026-11-20")
    about = subject(date(2026, 11, 20))
    assert (day.summary.turns, day.summary.failed, day.summary.notes) == (2, 1, 0)
    assert day.summary.files == {f"src/{about}.py": 2}
    assert day.summary.failures == {f"make {about}: no rule for {about}": 1}
    assert [one.text for one in timeline.decisions(day)] == [f"{about} uses port 261120."]
    assert timeline.path(day) == ["2026", "2026-11", "2026-W47", "2026-11-20"]
    (segment,) = timeline.children(day)
    assert (segment.id, segment.kind, segment.session) == ("a2611200", "segment", "5e55261120")
    assert [one.id for one in timeline.children(segment)] == ["a2611200", "a2611201"]


def test_names_that_are_no_node(timeline: Timeline) -> None:
    for name in ("2024", "2026-W52", "2027-01-01", "2025-09-15"):
        with pytest.raises(NotFoundError, match="the nearest day"):
            timeline.node(name)
    for name in ("../../etc", "a", "x y", "ffffffff", "*", "2026-", "'; ls", "a261\n"):
        with pytest.raises(NotFoundError, match="has no node"):
            timeline.node(name)
    with pytest.raises(AmbiguousIdError, match="several turns: a26"):
        timeline.node("a2611")
    for name in ("a2611200", "a2611201", "a26112"):  # a turn names its segment
        node = timeline.node(name)
        assert (node.id, node.parent, node.summary.turns) == ("a2611200", "2026-11-20", 2)
        assert timeline.path(node) == ["2026", "2026-11", "2026-W47", "2026-11-20", "a2611200"]


def test_a_question_after_which_the_session_went_on_is_not_open(tmp_path: Path, long_memory: Memory) -> None:
    def text(day: str, turn: str, session: str, answer: str) -> str:
        return (
            f"# {day}\n\n## 10:00 Title <!-- session:{session} -->\n\n### 10:00 Ask <!-- turn:{turn} -->\n"
            f"**Answered** {answer}\n"
        )

    memory = make_memory(tmp_path, {
        "2026-10-05.md": text("2026-10-05", "aaaa0001", "5e550001", "It is red. Shall I paint the wall?"),
        "2026-10-06.md": text("2026-10-06", "aaaa0002", "5e550002", "It is old. Shall I sell the car?"),
        "2026-11-20.md": text("2026-11-20", "aaaa0003", "5e550001", "The wall is painted."),
    })  # fmt: skip
    timeline = timeline_of(memory)
    for name in ("2026-W41", "2026-10", "2026", ""):
        assert [one.text for one in timeline.open_questions(timeline.node(name))] == ["Shall I sell the car?"]
    assert timeline.open_questions(timeline.node("2026-10-05")) == []


def test_facts_stand_for_their_bullets(tmp_path: Path) -> None:
    facts = [
        Fact("the port is 7443.", "decision", Citations(grips=("91111111",)), "2026-11-20"),
        Fact("tabs.", "preference", Citations(turns=("aaaa0001",)), "2026-10-05"),
        Fact("a rumor.", "fact", Citations(turns=("aaaa0001",)), "2026-11-20", is_verified=False),
    ]
    day = (
        "# 2026-11-20\n\n## 10:00 Title <!-- session:5e550001 summary:aaaa0001 -->\n\n"
        "- Decided: 7443 it is. <!-- grip:91111111 turns:aaaa0001 -->\n"
        "- Decided: forged. <!-- grip:92222222 turns:aaaa0001 check:unverified -->\n"
        "- Found: nobody else uses it. (not checked yet) <!-- grip:93333333 turns:aaaa0001 check:unchecked -->\n"
        "- Edited: made without a model <!-- grip:94444444 turns:aaaa0001 by:extract -->\n"
        "- Decided: no id.\n\n### 10:00 Ask <!-- turn:aaaa0001 -->\n**Answered** Yes.\n"
    )
    lines = "\n".join(fact.line for fact in facts)
    memory = make_memory(
        tmp_path, {"2026-11-20.md": day, "MEMORY.md": f"# M\n\n## Facts <!-- compacted:2026-11-20 -->\n\n{lines}\n"}
    )
    timeline = timeline_of(memory)
    assert [one.text for one in timeline.decisions(timeline.node("2026-W47"))] == ["the port is 7443."]
    assert [one.text for one in timeline.decisions(timeline.node(""))] == ["the port is 7443.", "tabs."]
    for name in ("2026-11-20", "aaaa0001"):  # the rest of a day has its own places in an overview
        assert timeline.node(name).bullets == ("Found: nobody else uses it. (not checked yet)",)


@pytest.mark.parametrize("as_rows", [False, True])
@pytest.mark.parametrize(("name", "depth"), [("", 5), ("2026", 5), ("", 2), ("2026-11", 3)])
def test_pages_meet_and_keep_the_limits(timeline: Timeline, name: str, depth: int, as_rows: bool) -> None:
    whole = [(level, child.cursor) for level, child in timeline.walk(timeline.node(name), depth)]
    found, after = [], ""
    for _ in range(len(whole)):
        answer = view(timeline, name, depth, 100, after, as_rows=as_rows)
        assert len(answer["children"]) <= 100
        if not as_rows:
            assert estimate_tokens(json.dumps(answer, ensure_ascii=False)) <= MOST_TOKENS
        found += [(row["level"], row["id"]) for row in answer["children"]]
        after = answer["next"]
        if after is None:
            break
    assert found == [(level, cursor.partition(".")[0]) for level, cursor in whole]


def test_a_page_of_one_node_ends(timeline: Timeline) -> None:
    """A segment and its first turn have one id."""
    after, ids = "", []
    for _ in range(20):
        answer = view(timeline, "2026-11-20", 2, 1, after)
        ids += [row["id"] for row in answer["children"]]
        if (after := answer["next"]) is None:
            break
    assert ids == ["a2611200", "a2611200", "a2611201"]
    with pytest.raises(NotFoundError, match="to go on after"):
        view(timeline, "2026-11-20", 2, 1, "2026-11-20")


def test_an_empty_memory(tmp_path: Path) -> None:
    timeline = timeline_of(make_memory(tmp_path))
    assert view(timeline)["children"] == []
    with pytest.raises(NotFoundError, match="no day yet"):
        timeline.node("2026")


_LINE = st.sampled_from(
    ["## 10:00 T <!-- session:5e550001 -->", "### 10:01 Q <!-- turn:aaaa0001 -->", "### 10:02 Q <!-- turn:aaaa0002 -->",
     "## 11:00 Note: n <!-- note:bbbb0001 -->", "- Decided: x. <!-- grip:cccc0001 turns:aaaa0001 -->", "",
     "**Did** Bash `x` → failed: y · Edit a.py ×999999999", "**Answered** Shall we? <!-- turn:aaaa0003 -->",
     "## <!-- session: -->", "### <!-- turn:2026 -->", "## 25:99 T <!-- session:2026-W47 turn:2026-11 -->", "\x1b[2J\u202e"]
)  # fmt: skip


@given(st.lists(_LINE | st.text(max_size=30), max_size=12))
@settings(max_examples=examples(60))
def test_any_day_has_a_place(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    memory = make_memory(tmp_path_factory.mktemp("any"))
    memory.write("2026-11-20.md", "\n".join(lines).encode("utf-8", "surrogatepass"))
    memory.write("2026-13-45.md", "# not a day\n")
    timeline = open_timeline(memory.project, memory.home, memory.said.append)
    day = timeline.node("2026-11-20")
    assert parse_span(day.id) is not None
    shown = view(timeline, "", 5)
    assert json.loads(json.dumps(shown)) == shown
    for _, node in timeline.walk(timeline.node(), 5):
        assert timeline.path(node)[0] == "2026"


# Memory files of a cloned repository: any bytes, any length


def test_bytes_that_are_not_utf_8_hide_nothing(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, DAYS)
    damaged = (
        b"# 2026-11-17\n\n## 09:00 Caf\xe9 <!-- session:5e550009 -->\n\n"
        b"- Decided: \xff. <!-- grip:ab12cd34 turns:aaaa0009 -->\n\n"
        b"### 09:00 Caf\xe9 <!-- turn:aaaa0009 -->\n**Answered** It is \xff open.\n"
    )
    memory.path("2026-11-17.md").write_bytes(damaged)
    memory.path("2026-W47.md").write_bytes(
        b"# 2026-W47 \xff\n\n## Facts <!-- compacted:- -->\n\n- Fact: \xff. <!-- fact:ab12 -->\n"
    )
    memory.path("MEMORY.md").write_bytes(
        b"## Facts <!-- compacted:- -->\n\n- Decided: \xff. (2026-11-17) <!-- fact:ab12 -->\n"
    )
    timeline = timeline_of(memory)
    for name in ("", "2026-W47", "2026-11-17", "aaaa0009"):
        found = view(timeline, name, 5)
        json.dumps(found, ensure_ascii=False).encode()
    assert timeline.node("2026-11").summary.days == 4
    assert timeline.node("aaaa0009").title == "Caf?"
    json.dumps(find_words(timeline, timeline.node(), "open", 9, "", print), ensure_ascii=False).encode()


def test_no_text_of_a_file_makes_an_answer_longer(tmp_path: Path) -> None:
    long = "word " * 4_000
    fact = "(2026-11-20) <!-- fact:{} turns:aaaa0009 -->\n"
    facts = "## Facts <!-- compacted:- -->\n\n" + "".join(f"- Decided: {long}{fact.format(n)}" for n in range(30))
    memory = make_memory(tmp_path, {
        "2026-W47.md": f"# 2026-W47 {long} <!-- rollup:ab12 -->\n\n{facts}",
        "MEMORY.md": facts,
        "2026-11-20.md": (
            f"# 2026-11-20\n\n## 09:00 {long} <!-- session:5e550009 -->\n\n"
            f"### 09:00 {long} <!-- turn:aaaa0009 -->\n"
            f"**Did** Edit {'x/' * 4_000}y.py · Bash `{long}` → failed: {long}\n\n**Answered** {long}. {long}?\n"
        ),
    })  # fmt: skip
    timeline = timeline_of(memory)
    for name in ("", "2026", "2026-11", "2026-W47", "2026-11-20", "aaaa0009"):
        found = view(timeline, name, 5)
        assert estimate_tokens(json.dumps(found)) <= MOST_TOKENS, name
        assert found["children"]
    assert len(timeline.node("2026-W47").bullets) == MOST_LINES


# Names of nodes: years, months, and ISO weeks, and which is in which


ALL_DAYS = st.dates()


@pytest.mark.parametrize(("name", "kind", "first", "last", "parent"), [
    ("2026", "year", "2025-12-29", "2027-01-03", ""),
    ("2026-11", "month", "2026-11-02", "2026-11-29", "2026"),
    ("2026-W47", "week", "2026-11-16", "2026-11-22", "2026-11"),
    ("2026-11-20", "day", "2026-11-20", "2026-11-20", "2026-W47"),
    ("2026-W01", "week", "2025-12-29", "2026-01-04", "2026-01"),
    ("2026-W53", "week", "2026-12-28", "2027-01-03", "2026-12"),
    ("2026-11-01", "day", "2026-11-01", "2026-11-01", "2026-W44"),
    ("2024-02-29", "day", "2024-02-29", "2024-02-29", "2024-W09"),
])  # fmt: skip
def test_periods(name: str, kind: str, first: str, last: str, parent: str) -> None:
    span = parse_span(name)
    assert (span.kind, str(span.first), str(span.last), parent_of(span)) == (kind, first, last, parent)


def test_other_names_are_none() -> None:
    for name in (
        "2026-W54", "2025-W53", "2026-W00", "2026-13", "2026-00", "2026-02-30", "0000", "0000-01", "20261120", "2026-1",
        "2026-W7", "2026-w47", "2026-11-20 ", " 2026", "2026\n", "٢٠٢٦", "-2026", "2026-11-20T00", "W47", "today",
    ):  # fmt: skip
        assert parse_span(name) is None, name


@given(ALL_DAYS)
def test_each_day_is_in_one_node_of_each_level_and_their_parents(day: date) -> None:
    path = path_of(day)
    spans = [parse_span(name) for name in path]
    for span in spans:
        assert span.name in path
        assert span.holds(day)
    above = ["", *path[:-1]]
    assert [parent_of(span) for span in spans if span] == above
    assert path[2] == week_of(day)
    assert day_of(f"{day.isoformat()}.local") == day


@given(st.dates(date(2, 1, 1), date(9998, 1, 1)))
def test_neighbors_meet_without_a_gap(day: date) -> None:
    for name in path_of(day)[:3]:
        span = parse_span(name)
        after = span.last + timedelta(days=1)
        level = ["year", "month", "week"].index(span.kind)
        following = parse_span(path_of(after)[level])
        assert following.first == after
        assert (span.first.weekday(), span.last.weekday()) == (0, 6)


@given(st.text(max_size=12) | st.from_regex(r"[0-9]{4}(-[W0-9]{1,3}){0,3}", fullmatch=True))
def test_any_text_is_a_node_or_none(name: str) -> None:
    span = parse_span(name)
    assert span is None or (span.name == name and span.first <= span.last)


# The words that set a stretch of time apart


def test_words_that_name_a_subject_and_tell_a_time() -> None:
    found = words_of("Please fix the Gateway: src/app.py, PolicyController, ERR_404 (again!) and 12 tests, a --flag.")
    assert found == {"gateway", "src/app.py", "PolicyController", "ERR_404", "flag"}
    assert words_of("x" * 41 + " --- 2026-11-20 7443 é") == set()
    assert {"請求", "求書"} <= words_of("請求書を直す")
    november = Counter({"gateway": 9, "deploy": 9, "typo": 2, "once": 1})
    everything = november + Counter({"deploy": 90, "typo": 40, "billing": 50})
    assert telling(november, 20, everything, 220, 5) == ["gateway"]
    assert telling(november, 20, everything, 220, 0) == []
    words = {"gateway": 3, "billing": 5, "once": 1}
    assert telling(words, 9, words, 9, 5) == ["billing", "gateway"]
    assert telling({"once": 1}, 1, {"once": 1}, 1, 5) == ["once"]
