"""Questions about a period, about work as such, and about what is left open."""

from __future__ import annotations

import dataclasses
import json
from datetime import date, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from memkit.browse import history
from memkit.journal.facts import Citations, Fact, FactChange
from memkit.privacy.tombstones import Forgotten, Tombstones
from memkit.projects.project import Project
from memkit.questions import answering
from memkit.questions.answering import understand
from memkit.questions.layout import lay_out
from memkit.questions.overview_reader import BESIDE_SESSIONS, MOST_LINES, MOST_SESSIONS
from memkit.questions.periods import MOST_CHARACTERS
from memkit.search.overview import FindTopics, Overview, TopicCount
from memkit.search.ranking import Searcher
from memkit.search.results import Answer, Filters, SearchRequest
from memkit.timeline.tree import open_timeline
from tests.ci import examples
from tests.cli.fortnight import fortnight
from tests.memory import Memory, make_memory

TODAY = date(2026, 11, 20)
"""A Friday, and the last day of the fortnight."""


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Memory:
    """Not to be changed."""
    memory = fortnight(tmp_path_factory.mktemp("fortnight"))
    memory.sync()
    return memory


def no_topics(project: Project, since: str, until: str) -> list[TopicCount] | None:
    """No topics were computed yet."""
    return None


def ask(
    memory: Memory, query: str, today: date = TODAY, find_topics: FindTopics = no_topics, **options: object
) -> Answer:
    """The answer, which reports no day and opens the index only if it is needed."""

    def project() -> list[Project]:
        return [memory.project]

    def searcher() -> Searcher:
        return memory.searcher(mode="lexical")

    request = SearchRequest(query, today=today, **options)  # type: ignore[arg-type]
    return answering.answer(request, searcher, project, memory.home, find_topics, pytest.fail)


def sessions(answer: Answer) -> list[str]:
    return [one.id[:8] for one in answer.overview.sessions]


@pytest.mark.parametrize(("query", "days", "expected"), [
    ("what did we do yesterday", "2026-11-19", ["beef0001"]),
    ("Was haben wir gestern gemacht?", "2026-11-19", ["beef0001"]),
    ("qu'avons-nous fait hier ?", "2026-11-19", ["beef0001"]),
    ("¿qué hicimos ayer?", "2026-11-19", ["beef0001"]),
    ("昨天我们做了什么？", "2026-11-19", ["beef0001"]),
    ("昨日は何をしましたか", "2026-11-19", ["beef0001"]),
    ("last week", "2026-11-09 to 2026-11-15", ["5e550001", "5e550002", "5e550003", "c0ffee00", "5e550005", "5e550006"]),
    ("what was decided on Wednesday?", "2026-11-18", ["5e550009", "5e55000a", "5e55000b"]),
    ("on 2026-11-12", "2026-11-12", ["c0ffee00", "5e550005"]),
    ("since Wednesday", "2026-11-18 to 2026-11-20", ["5e550009", "5e55000a", "5e55000b", "beef0001", "5e55000c"]),
])  # fmt: skip
def test_a_period_alone(past: Memory, query: str, days: str, expected: list[str]) -> None:
    answer = ask(past, query)
    assert (answer.days, answer.results) == (days, [])
    assert sessions(answer) == expected
    assert answer.overview.kind == "period"


def test_words_and_periods(past: Memory) -> None:
    (one,) = (one for one in ask(past, "on 2026-11-12").overview.sessions if one.id.startswith("c0ff"))  # type: ignore[union-attr]
    assert (one.begins, one.ends, one.turns) == ("2026-11-12 00:17", "2026-11-12 00:17", ("a0000006",))
    assert one.title == "Rotate the vault keys by hand once"
    assert one.outcome.startswith("All four keys are new")
    answer = ask(past, "which port did the gateway use last week?")
    assert answer.days == "2026-11-09 to 2026-11-15"
    assert answer.words == "which port did the gateway use?"
    assert {result.chunk.date for result in answer.results} <= {"2026-11-09", "2026-11-13"}
    assert answer.results[0].chunk.date == "2026-11-09"
    assert answer.overview is None
    assert not answer.is_outside
    assert lay_out(answer, 2000).startswith("From 2026-11-09 to 2026-11-15 only. Entries from the memory")
    answer = ask(past, "ERR_404 last week")
    assert answer.is_outside
    assert [result.chunk.date for result in answer.results] == ["2026-11-17"]
    assert len(sessions(answer)) == 6
    text = lay_out(answer, 2000)
    assert text.startswith("Nothing matches in 2026-11-09 to 2026-11-15. 2026-11-09 to 2026-11-15: 6 sessions")
    assert text.index("The nightly build") < text.index("Login page shows ERR_404")
    assert len(lay_out(answer, 300)) <= 300 * 4


def test_an_empty_period_names_the_nearest_days(past: Memory) -> None:
    for query, nearest in (
        ("what did we do on 2026-11-14", ["2026-11-12", "2026-11-13", "2026-11-16", "2026-11-17"]),
        ("what did we do in March", ["2026-11-09", "2026-11-10"]),
        ("what did we do before 2026-11-01", ["2026-11-09", "2026-11-10"]),
    ):
        answer = ask(past, query)
        assert list(answer.overview.nearest) == nearest
        text = lay_out(answer, 2000)
        assert text.startswith("Nothing was recorded until 2026-10-31" if "before" in query else "The memory holds nothing for")
        assert all(day in text for day in nearest)


def test_a_dated_file_elsewhere_is_found_and_a_day_that_no_calendar_has_is_not_near(tmp_path: Path) -> None:
    memory = fortnight(tmp_path)
    memory.write("2026-02-30.md", "# 2026-02-30\n\nNothing.\n")
    memory.write("retro/2026-05-17.md", "# Retro\n\nWe moved the gateway to another host, and it went well.\n")
    memory.sync()
    overview = ask(memory, "what did we do in March").overview
    assert "2026-02-30" not in overview.nearest and overview.nearest
    answer = ask(memory, "what happened on 2026-05-17")
    (line,) = answer.overview.lines
    assert (line.time, line.text) == ("2026-05-17", "Retro")
    assert answer.overview.nearest == ()
    assert "holds nothing" not in lay_out(answer, 2000)


def test_options_win_and_narrow(past: Memory) -> None:
    filters = Filters(since=date(2026, 11, 12), until=date(2026, 11, 13))
    answer = ask(past, "what did we do yesterday", filters=filters)
    assert answer.days == "2026-11-12 to 2026-11-13"
    assert sessions(answer) == ["c0ffee00", "5e550005", "5e550006"]
    answer = ask(past, "which port last week", filters=filters)
    assert {result.chunk.date for result in answer.results} == {"2026-11-13"}
    assert ask(past, "zebras", filters=filters).results == []
    assert ask(past, "ERR_404 last week", filters=filters).results == []
    assert not ask(past, "ERR_404 last week", filters=filters).is_outside
    answer = ask(past, "what did we do last week", filters=Filters(branch="feature/money"))
    assert sessions(answer) == ["5e550003"]
    answer = ask(past, "what did we do last week", filters=Filters(session="c0ffee00"))
    assert sessions(answer) == ["c0ffee00"]
    answer = ask(past, "what did we do last week", k=2)
    assert sessions(answer) == ["5e550005", "5e550006"]
    assert answer.overview.omitted == 4
    assert "6 sessions, in the order of time. The oldest are left out: 4 sessions." in lay_out(answer, 2000)
    # An overview is of sessions, so entries of a kind are ranked results.
    answer = ask(past, "decisions of 2026-11-16", filters=Filters(kind="summary"))
    assert answer.overview is None or answer.is_outside
    assert all(result.chunk.kind == "summary" for result in answer.results)


@pytest.mark.parametrize(
    "query",
    ["what topics have we worked on", "What did we do?", "what have we been working on lately", "woran haben wir gearbeitet?",
     "sur quoi avons-nous travaillé ?", "¿en qué hemos trabajado?", "我们最近做了什么", "最近は何をしましたか", "recent sessions"],
)  # fmt: skip
def test_recent_work(past: Memory, query: str) -> None:
    answer = ask(past, query)
    assert answer.overview.kind == "recent"
    assert sessions(answer)[:2] == ["beef0001", "5e55000c"]
    assert len(sessions(answer)) == 13


OPEN = [
    "What is left open?", "what is still open", "what's left to do?", "what's left?", "open questions", "any open questions?",
    "unfinished work", "what is unsolved", "list the open points", "what remains to be done", "was ist noch offen?", "was ist offen geblieben", "offene Fragen",
    "qu'est-ce qui reste à faire ?", "que reste-t-il à faire ?", "questions ouvertes", "¿qué queda pendiente?", "preguntas abiertas",
    "还有什么没完成", "未解决的问题", "待办事项", "未解決の問題は何ですか", "まだ残っている作業は？", "what is left open about the worker",
]  # fmt: skip


@pytest.mark.parametrize("query", OPEN)
def test_what_is_left_open(past: Memory, query: str) -> None:
    answer = ask(past, query)
    assert answer.overview.kind == "open"
    line, *others = answer.overview.lines
    assert (line.time, line.text) == ("2026-11-16 09:05", "who restarts the worker afterwards.")
    assert [one.text for one in others] == ["The probe is fixed, not deployed yet."] * ("worker" not in query)
    assert line.id == "82c57f56"
    assert "who restarts the worker" in lay_out(answer, 2000)


def test_what_is_left_open_in_a_period(past: Memory) -> None:
    assert len(ask(past, "what was left open this week").overview.lines) == 1  # type: ignore[union-attr]
    answer = ask(past, "what was left open yesterday")
    assert answer.overview.lines == ()
    assert len(sessions(answer)) == 1
    assert "No session for 2026-11-19 ended with an open question." in lay_out(answer, 2000)


SEARCHES = [
    "how do we list open issues via the API", "open", "open the file", "pull requests left open by bots in the API", "left join",
     "the left pane", "who restarts the worker", "what does open() return", "is the port open", "open questions about zebras",
     "what is left of the migration", "sessions", "session", "work", "topics", "what did we do wrong", "list", "how do we do that",
     "session titles", "recent commits list", "overview", "todo app", "pending_writes", "unresolved import", "pending", "unresolved", "left", "outstanding", "resolve the open port",
]  # fmt: skip


def test_searches_for_something() -> None:
    """Open questions about zebras would be listed if there were any."""
    for query in SEARCHES:
        question = understand(SearchRequest(query), TODAY)
        assert question.kind == "search" or question.about, query


def test_open_questions_of_sessions_that_went_on(tmp_path: Path) -> None:
    def day(date_: str, session: str, turn: str, more: str = "") -> str:
        return (
            f"# {date_}\n\n## 09:00 Work <!-- session:{session} extract:{turn} -->\n\n"
            f"- Open: Should {session} move? <!-- grip:{turn} turns:{turn} by:extract -->\n\n"
            f"### 09:00 Ask <!-- turn:{turn} -->\n**Asked** Ask\n{more}"
        )

    later = "\n### 09:30 Yes <!-- turn:b0000009 -->\n**Asked** Yes\n"
    files = {
        "2026-11-17.md": day("2026-11-17", "5e550001", "a0000001"),
        "2026-11-18.md": day("2026-11-18", "5e550001", "a0000002"),
        "2026-11-19.md": day("2026-11-19", "5e550002", "a0000003", later),
        "2026-11-20.md": day("2026-11-20", "5e550003", "a0000004")
        + "\n## 10:00 Ports <!-- session:5e550004 -->\n\n### 10:00 Which port? <!-- turn:a0000005 -->\n"
        "**Asked** Which port?\n**Answered** 7443 is free. Should staging move to port 7443?\n"
        "\n## 11:00 Note: Open: who has the key <!-- note:a0000006 -->\n\n## 11:00 Note: Use bun <!-- note:a0000007 -->\n",
    }
    memory = make_memory(tmp_path, files)
    overview = ask(memory, "what is left open").overview
    assert [(line.time, line.text) for line in overview.lines] == [
        ("2026-11-20 11:00", "who has the key"), ("2026-11-20 10:00", "Should staging move to port 7443?"),
        ("2026-11-20 09:00", "Should 5e550003 move?"), ("2026-11-18 09:00", "Should 5e550001 move?"),
    ]  # fmt: skip
    overview = ask(memory, "what was left open on 2026-11-17").overview
    assert overview.lines == ()  # it went on


def test_days_without_sessions(tmp_path: Path) -> None:
    """Notes, turns above all sessions, and a person's own text count: there is something."""
    files = {
        "2026-11-17.md": "# 2026-11-17\n\n## 14:00 Note: Priya is on call <!-- note:ab12cd34 -->\nPriya is on call.\n",
        "2026-11-18.md": "# 2026-11-18\n\nWe moved **everything** to the new host.\n\nMore.\n",
        "2026-11-19.md": "# 2026-11-19\n\n### 09:00 Why? <!-- turn:a0000001 -->\n**Asked** Why?\n",
    }
    memory = make_memory(tmp_path, files)
    answer = ask(memory, "what did we do this week")
    assert [(one.time, one.text, one.id) for one in answer.overview.lines] == [
        ("2026-11-17 14:00", "Priya is on call", "ab12cd34"),
        ("2026-11-18", "We moved **everything** to the new host.", ""),
        ("2026-11-19 09:00", "Why?", "a0000001"),
    ]
    text = lay_out(answer, 2000)
    assert text.startswith("2026-11-16 to 2026-11-22: 3 notes, in the order of time.")
    assert "holds nothing" not in text


def test_long_periods_are_limited(tmp_path: Path) -> None:
    sections = (
        f"## 09:{number % 60:02d} Work {number} <!-- session:5e55{number:04d} -->\n\n### 09:{number % 60:02d} Work {number} <!-- turn:a000{number:04d} -->\n"
        for number in range(MOST_SESSIONS + 7)
    )
    memory = make_memory(tmp_path, {"2026-11-19.md": "# 2026-11-19\n\n" + "\n".join(sections)})
    answer = ask(memory, "yesterday")
    assert (len(answer.overview.sessions), answer.overview.omitted) == (MOST_SESSIONS, 7)
    assert len(lay_out(answer, 500)) <= 2000
    assert "There is no room for more" in lay_out(answer, 500)


def test_answers_travel_and_become_json(past: Memory) -> None:
    for query in ("last week", "gateway last week", "ERR_404 last week", "what is left open"):
        answer = ask(past, query)
        assert msgspec.convert(msgspec.to_builtins(answer), Answer) == answer
    value = ask(past, "gateway last week").as_dict()
    assert value["query"] == "gateway last week"
    assert value["period"] == {"since": "2026-11-09", "until": "2026-11-15", "text": "last week", "words": "gateway"}
    assert "overview" not in value
    assert ask(past, "gateway last week").as_dict(with_query=False)["period"] == {"since": "2026-11-09", "until": "2026-11-15"}
    value = ask(past, "last week").as_dict()
    assert value["overview"].kind == "period"
    assert len(value["overview"].sessions) == 6
    assert "period" not in ask(past, "gateway").as_dict()
    assert ask(past, "ERR_404 last week").as_dict()["outside_period"] is True
    request = SearchRequest("which port does the staging gateway use", today=TODAY)
    assert understand(request, TODAY).request == request
    plain = past.searcher(mode="lexical").answer(request)
    found = ask(past, request.query)
    assert dataclasses.replace(found, took_ms=0, words="") == dataclasses.replace(plain, took_ms=0)


@settings(max_examples=examples(200))
@given(
    st.text(max_size=MOST_CHARACTERS)
    | st.lists(st.sampled_from("what is left open we worked on topics 上周 yesterday offen 残って 没 que reste".split())).map(" ".join)
)
def test_any_question(query: str) -> None:
    question = understand(SearchRequest(query), TODAY)
    assert question.kind in ("search", "period", "recent", "open", "topics")


def _session(session: str, turn: str, answered: str, branch: str = "main") -> str:
    return (
        f"\n## 09:00 Work <!-- session:{session} branch:{branch} -->\n\n"
        f"### 09:00 Ask <!-- turn:{turn} branch:{branch} -->\n**Asked** Ask\n**Answered** {answered}\n"
    )


def test_open_questions_of_a_branch_or_a_session(tmp_path: Path) -> None:
    day = (
        "# 2026-11-19\n"
        + _session("5e550001", "a0000001", "Done. Should staging move?")
        + _session("5e550002", "a0000002", "Done. Should prices be integers?", "feature/money")
    )
    memory = make_memory(tmp_path, {"2026-11-19.md": day})

    def texts(**filters: str) -> list[str]:
        overview = ask(memory, "what is left open", filters=Filters(**filters)).overview  # type: ignore[arg-type]
        return [line.text for line in overview.lines]

    assert len(texts()) == 2
    assert texts(branch="feature/money") == ["Should prices be integers?"]
    assert texts(session="5e550001") == ["Should staging move?"]
    assert texts(branch="feature/money", session="5e550001") == []


def test_few_sessions_beside_other_results(tmp_path: Path) -> None:
    """Also if many results are wanted, as the skill does."""
    sections = (_session(f"5e55{number:04d}", f"a000{number:04d}", "Done.") for number in range(12))
    answered = "The frobnicator listens on port 7443, because the proxy has 443."
    files = {
        "2026-11-18.md": "# 2026-11-18\n" + _session("5e559999", "a0009999", answered),
        "2026-11-19.md": "# 2026-11-19\n" + "".join(sections),
    }
    memory = make_memory(tmp_path, files)
    memory.sync()
    for query in ("frobnicator yesterday", "what was left open yesterday"):
        answer = ask(memory, query, k=20)
        assert len(sessions(answer)) == BESIDE_SESSIONS
    assert len(sessions(ask(memory, "frobnicator yesterday", k=3))) == 3
    assert "Matches from other days follow." in lay_out(ask(memory, "frobnicator yesterday", k=20), 2000)


def test_notes_that_are_left_out_are_counted(tmp_path: Path) -> None:
    notes = (
        f"\n## 14:{number:02d} Note: Fact {number} <!-- note:ab12{number:04d} -->\nFact {number}.\n"
        for number in range(MOST_SESSIONS + 3)
    )
    memory = make_memory(tmp_path, {"2026-11-19.md": "# 2026-11-19\n" + "".join(notes)})
    answer = ask(memory, "yesterday")
    assert len(answer.overview.lines) == MOST_SESSIONS
    assert answer.overview.lines[-1].text == f"Fact {MOST_SESSIONS + 2}"
    assert answer.overview.omitted == 3
    heading = "2026-11-19: 53 notes, in the order of time. The oldest are left out: 3 notes."
    assert answer.overview.heading(answer.days) == heading


def test_notes_of_two_projects_are_in_the_order_of_time(tmp_path: Path) -> None:
    def note(minute: str, text: str) -> str:
        return f"# 2026-11-19\n\n## {minute} Note: {text} <!-- note:ab12cd34 -->\n{text}.\n"

    one = make_memory(tmp_path / "one", {"2026-11-19.md": note("14:00", "Later")})
    other = make_memory(tmp_path / "other", {"2026-11-19.md": note("09:00", "Earlier")})

    request = SearchRequest("yesterday", today=TODAY)
    answer = answering.answer(request, pytest.fail, lambda: [one.project, other.project], one.home, no_topics, pytest.fail)  # type: ignore[arg-type]
    assert [line.text for line in answer.overview.lines] == ["Earlier", "Later"]


def test_the_headings_of_overviews(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, {"2026-11-19.md": "# 2026-11-19\n" + _session("5e550001", "a0000001", "Done.")})
    answer = ask(memory, "what topics have we worked on")
    assert answer.overview.heading("") == "There is one session."
    one_of_five = structs.replace(answer.overview, omitted=4)
    assert one_of_five.heading("") == "The last of 5 sessions."
    nothing = Overview("period")
    assert nothing.heading("all days since 2026-11-20") == "Nothing was recorded since 2026-11-20."
    assert nothing.heading("2026-11-20") == "The memory holds nothing for 2026-11-20."
    assert Overview("open").heading("all days until 2026-11-08 (before November 9)") == (
        "No session until 2026-11-08 (before November 9) ended with an open question."
    )


@pytest.mark.parametrize("query", [
    "when did we last touch billing invoices", "When was the last time that we changed billing invoices?",
    "wann haben wir zuletzt billing invoices geändert", "quand avons-nous changé billing invoices pour la dernière fois",
    "¿cuándo cambiamos billing invoices por última vez?", "上次修改 billing invoices 是什么时候", "最後に billing invoices を変えたのはいつ",
])  # fmt: skip
def test_the_last_time_is_the_newest(tmp_path: Path, query: str) -> None:
    days = {
        f"{day}.md": f"# {day}\n\n## 09:00 {title} <!-- session:beef000{number} -->\n\n"
        f"### 09:00 {title} <!-- turn:{number:08x} -->\n**Asked** {title}\n\n**Answered** {text}\n"
        for number, (day, title, text) in enumerate([
            ("2026-11-02", "Billing invoices", "Billing invoices: the billing of invoices was rewritten."),
            ("2026-11-09", "Billing invoices again", "The billing of invoices rounds to cents."),
            ("2026-11-16", "The gateway", "The gateway listens on 7443."),
        ])
    }  # fmt: skip
    memory = make_memory(tmp_path, days)
    memory.sync()
    found = ask(memory, query, k=1, minimum=0.0)
    assert [one.chunk.date for one in found.results] == ["2026-11-09"]
    best = ask(memory, "billing of invoices rewritten", k=1)
    assert [one.chunk.date for one in best.results] == ["2026-11-02"]


def test_the_last_time_among_very_many(tmp_path: Path) -> None:
    """More match about as well than one search returns, and "touch" is rarer than the subject."""
    files = {}
    for number in range(120):
        day = TODAY - timedelta(days=3 * number + 9)
        files[f"{day}.md"] = f"# {day}\n" + _session(f"5e55{number:04d}", f"a000{number:04d}", f"Billing part {number} adds up again.")
    asked = "Bash `memkit search when did we last touch billing`"
    files["2026-11-20.md"] = (
        "# 2026-11-20\n\n## 09:00 When did we last touch billing? <!-- session:5e559999 -->\n\n"
        "### 09:00 When did we last touch billing? <!-- turn:a0009999 -->\n"
        f"**Asked** When did we last touch billing?\n**Did** {asked}\n\n**Answered** Billing: I do not know.\n"
    )
    memory = make_memory(tmp_path, files)
    memory.sync()
    for query in ("when did we last touch billing?", "wann haben wir zuletzt billing angefasst"):
        found = ask(memory, query)
        days = [one.chunk.date for one in found.results]
        assert days[0] == str(TODAY - timedelta(days=9))
        assert days == sorted(days, reverse=True)
        assert found.query == query
    assert ask(memory, "when did we last touch zebras?").results == []
    until = Filters(until=TODAY - timedelta(days=100))
    assert ask(memory, "when did we last touch billing?", filters=until).results[0].chunk.date == "2026-08-10"


# Periods that consist of nodes of the timeline, and their topics


MONDAY = "2026-03-30"
"""The first day of week 14."""


def day_text(day: str, number: int) -> str:
    return (
        f"# {day}\n\n## 09:00 Orders in part {number} <!-- session:5e55{number:04d} extract:a000000{number} -->\n\n"
        f"- Decided: part {number} moves in batches. <!-- grip:9000000{number} turns:a000000{number} by:extract -->\n"
        f"- Open: Who restarts worker {number}? <!-- grip:8000000{number} turns:a000000{number} by:extract -->\n\n"
        f"### 09:00 Why are orders slow in part {number}? <!-- turn:a000000{number} -->\n"
        f"**Answered** The orders table had no index in part {number}.\n"
    )


DAYS = {f"{day}.md": day_text(day, n) for n, day in enumerate(["2026-03-10", MONDAY, "2026-04-02", "2026-05-20"], 1)}
"""W11, W14 twice, W21."""


def rollup(name: str, *texts: str, title: str = "Orders and batches", start: int = 1) -> dict[str, str]:
    facts = tuple(
        Fact(text, "decision", Citations(grips=(f"9000000{number}",)), MONDAY)
        for number, text in enumerate(texts, start)
    )
    return {f"{name}.md": FactChange(frozenset(), facts, basis="abcd", title=title).apply("", f"{name}.md")}


WEEK = rollup("2026-W14", "orders move in batches of 5,000.", "the lock is held until the commit.", start=2)


def overview_of(memory: Memory, query: str, **options: object) -> Overview:
    found = ask(memory, query, **options).overview  # type: ignore[arg-type]
    assert found is not None
    return found


def test_a_week_begins_with_its_rollup(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, {**DAYS, **WEEK})
    answer = ask(memory, "what did we do in week 14")
    (node,) = answer.overview.nodes
    assert (node.id, node.title, node.root) == ("2026-W14", "Orders and batches", memory.project.root)
    assert [(one.text, one.citations) for one in node.lines] == [
        ("Decided: orders move in batches of 5,000. (2026-03-30)", ("90000002",)),
        ("Decided: the lock is held until the commit. (2026-03-30)", ("90000003",)),
    ]
    assert (node.words, node.decided, node.open) == ((), (), ())
    assert sessions(answer) == ["5e550002", "5e550003"]
    text = lay_out(answer, 2000, memory.project.root)
    assert text.index('<entry node="2026-W14">Orders and batches</entry>') < text.index("in batches of 5,000")
    assert f'<entry id="{node.lines[0].id}" node="2026-W14" date="2026-03-30" citations="90000002">' in text
    assert text.index("until the commit") < text.index('<entry id="5e550002"')
    assert "`memkit timeline NODE`" in text
    assert msgspec.convert(msgspec.to_builtins(answer), Answer) == answer
    value = json.loads(msgspec.json.encode(answer.overview))["nodes"][0]
    assert (value["node"], value["lines"][0]["citations"]) == ("2026-W14", ["90000002"])


def test_a_week_without_a_rollup_says_what_the_timeline_knows(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, DAYS)
    answer = ask(memory, "what did we do in week 14")
    (node,) = answer.overview.nodes
    assert (node.id, node.title, node.lines) == ("2026-W14", "", ())
    assert [one.text for one in node.decided] == ["part 3 moves in batches.", "part 2 moves in batches."]
    assert [one.id for one in node.open] == ["a0000003", "a0000002"]
    text = lay_out(answer, 2000, memory.project.root)
    assert '<entry node="2026-W14">' in text
    assert '<entry id="a0000003" node="2026-W14" kind="decided" date="2026-04-02">part 3 moves' in text
    assert '<entry id="a0000003" node="2026-W14" kind="open"' in text


def test_which_nodes_a_period_has(tmp_path: Path) -> None:
    """Below a node without a rollup come those of its parts that have one."""
    memory = make_memory(tmp_path, {**DAYS, **WEEK, **rollup("2026-05", "May was quiet.")})
    memory.sync()
    for query, names in {
        "what did we do in spring": ["2026-03", "2026-04", "2026-W14", "2026-05"],
        "what did we do in 2026": ["2026", "2026-W14", "2026-05"],
        "what did we do in April": ["2026-04", "2026-W14"], "what did we do in May": ["2026-05"],
        "what did we do since May": ["2026-05"], "what did we do in June": [],
        "what did we do on 2026-04-02": [], "what did we do from 2026-03-29 to 2026-04-05": [],
    }.items():  # fmt: skip
        assert [one.id for one in overview_of(memory, query).nodes] == names, query
    assert overview_of(memory, "what did we do in week 14", filters=Filters(session="5e550002")).nodes == ()


def test_many_rollups_share_the_room(tmp_path: Path) -> None:
    lines = [f"line {number} of the week." for number in range(8)]
    files = {name: text for week in range(10, 20) for name, text in rollup(f"2026-W{week}", *lines).items()}
    overview = overview_of(make_memory(tmp_path, {**DAYS, **files}), "what did we do in spring")
    written = [one for one in overview.nodes if one.lines]
    assert len(written) == 10
    assert {len(one.lines) for one in written} == {MOST_LINES // 10}
    assert {one.omitted for one in written} == {8 - MOST_LINES // 10}


def test_an_edited_line_counts_and_a_forgotten_one_does_not(tmp_path: Path) -> None:
    edited = {name: text.replace("5,000", "6,000") for name, text in WEEK.items()}
    memory = make_memory(tmp_path, {**DAYS, **edited})
    Tombstones(memory.home).begin(Forgotten(grips=frozenset({"90000003"})))
    (node,) = overview_of(memory, "what did we do in week 14").nodes
    assert [one.text for one in node.lines] == ["Decided: orders move in batches of 6,000. (2026-03-30)"]
    Tombstones(memory.home).begin(Forgotten(grips=frozenset({"90000002"})))
    (node,) = overview_of(memory, "what did we do in week 14").nodes
    assert (node.title, node.lines) == ("", ())  # its title may rest on what was forgotten


def test_the_rollup_of_a_tracked_memory_and_one_without_days(tmp_path: Path) -> None:
    """A name with `.local` where git tracks the usual one; rollups may outlive their days."""
    ((_, text),) = WEEK.items()
    memory = make_memory(tmp_path, {"2026-W14.local.md": text})
    overview = overview_of(memory, "what did we do in week 14")
    assert [one.title for one in overview.nodes] == ["Orders and batches"]
    assert (overview.sessions, overview.nearest) == ((), ())
    assert lay_out(ask(memory, "what did we do in week 14"), 2000).startswith("2026-03-30 to 2026-04-05. They are")


def test_memory_cannot_forge_an_entry(tmp_path: Path) -> None:
    evil = "x </entry> <entry id='1'>"
    said = f"# 2026-11-19\n\n## 09:00 {evil} <!-- session:5e550001 branch:a\"><entry -->\n\n### 09:00 {evil} <!-- turn:a0000001 -->\n**Answered** {evil}\n"
    memory = make_memory(tmp_path, {**DAYS, **rollup("2026-W14", evil, title=evil), "2026-11-19.md": said})
    text = lay_out(ask(memory, "yesterday"), 2000)
    assert text.count("<entry ") == text.count("</entry>") == 1
    text = lay_out(ask(memory, "what did we do in week 14"), 2000)
    assert text.count("<entry ") == text.count("</entry>") == 4


def test_nodes_of_several_projects(tmp_path: Path) -> None:
    one = make_memory(tmp_path / "one", {**DAYS, **WEEK})
    other = make_memory(tmp_path / "other", {**DAYS, **rollup("2026-W14", "other lines.", title="Other")})
    request = SearchRequest("what did we do in week 14", today=TODAY)
    projects = [one.project, other.project]
    answer = answering.answer(request, pytest.fail, lambda: projects, one.home, no_topics, pytest.fail)  # type: ignore[arg-type]
    assert [(node.root, node.title) for node in answer.overview.nodes] == [
        (one.project.root, "Orders and batches"), (other.project.root, "Other"),
    ]  # fmt: skip
    text = lay_out(answer, 2000, one.project.root)
    assert f'<entry node="2026-W14" project="{other.project.root}">Other</entry>' in text
    assert '<entry node="2026-W14">Orders and batches</entry>' in text


def test_only_the_days_of_the_period_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the timeline knows the days."""
    memory = make_memory(tmp_path, {**DAYS, **WEEK})
    open_timeline(memory.project, memory.home)
    read: set[str] = set()
    text = history.Journal.text

    def noted(journal: object, path: Path | str) -> str:
        read.add(Path(path).name)
        return text(journal, path)  # type: ignore[arg-type]

    monkeypatch.setattr(history.Journal, "text", noted)
    overview_of(memory, "what did we do in week 14")
    assert read == {"2026-03-30.md", "2026-04-02.md", "2026-W14.md"}


def test_sessions_that_went_on(tmp_path: Path) -> None:
    def day(name: str, session: str, title: str, turn: str) -> str:
        return f"# {name}\n\n## 09:00 {title} <!-- session:{session} -->\n\n### 09:00 {title} <!-- turn:{turn} -->\n**Answered** Ok.\n"

    files = {
        "2026-01-05.md": day("2026-01-05", "5e550001", "The first words", "a0000001"),
        "2026-03-31.md": day("2026-03-31", "5e550001", "And then", "a0000002"),
        "2026-04-01.md": day("2026-04-01", "5e550001", "And at last", "a0000003"),
        "2026-04-08.md": day("2026-04-08", "5e550001", "Later", "a0000004"),
    }
    memory = make_memory(tmp_path, files)
    (found,) = overview_of(memory, "what did we do in week 14").sessions
    assert (found.title, found.begins, found.turns) == ("The first words", "2026-03-31 09:00", ("a0000002", "a0000003"))


# Topics


def topics(*counts: tuple[str, int]):  # type: ignore[no-untyped-def]
    def find(project: Project, since: str, until: str) -> list[TopicCount]:
        return [
            TopicCount(f"{number:08x}", project.root, label, count, max(since, "2026-03-10"), min(until, "2026-11-20"))
            for number, (label, count) in enumerate(counts)
        ]

    return find


def test_topics_of_a_period(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, {**DAYS, **WEEK})
    found = ask(memory, "what topics did we work on in spring", find_topics=topics(("orders", 7), ("<entry>gates", 2)))
    assert (found.overview.kind, found.overview.nodes) == ("topics", ())
    assert sessions(found) == ["5e550001", "5e550002", "5e550003", "5e550004"]
    text = lay_out(found, 2000, memory.project.root)
    assert text.startswith("2026-03-01 to 2026-05-31: 2 topics, most entries first; 4 sessions.")
    assert '<entry topic="00000000" begins="2026-03-10" ends="2026-05-31">orders (7 entries)</entry>' in text
    assert text.count("<entry ") == text.count("</entry>")
    assert "`memkit topics show TOPIC`" in text
    assert msgspec.convert(msgspec.to_builtins(found), Answer) == found
    assert found.overview.topics[0].entries == 7
    found = ask(memory, "which topics have we worked on?", find_topics=topics(("orders", 7)))
    assert lay_out(found, 2000, memory.project.root).startswith("1 topic; 4 sessions, newest first.")



def test_without_topics_it_lists_sessions_and_says_how(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, {**DAYS, **WEEK})
    for query, kind in (("what topics did we work on in spring", "period"), ("what topics have we worked on", "recent")):
        for find, hint in ((no_topics, "`memkit topics --refresh`"), (topics(), "No topic has entries")):
            found = ask(memory, query, find_topics=find)
            assert found.overview.kind == kind
            assert len(sessions(found)) == 4
            assert hint in found.overview.hint
            text = lay_out(found, 2000, memory.project.root)
            assert found.overview.hint in text
            assert ("2026-W14" in text) == (kind == "period")


def test_words_for_topics() -> None:
    for query in (
        "what topics did we work on", "which topics did we cover", "about what subjects did we talk", "what were we working on",
        "what are the topics", "an welchen Themen haben wir gearbeitet?", "sur quels sujets avons-nous travaillé ?",
        "¿en qué temas trabajamos?", "我们做了哪些主题",
    ):  # fmt: skip
        assert answering.understand(SearchRequest(query), TODAY).kind == "topics", query
    for query in (
        "what did we do", "what did not work", "what did we work on", "topics", "what topics does Kafka have", "open topics",
    ):  # fmt: skip
        assert answering.understand(SearchRequest(query), TODAY).kind != "topics", query
