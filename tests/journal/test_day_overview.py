"""The overview of a day: what it says, where it links, and that the user's word counts."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from memkit import anchors
from memkit.hook.entries import entries_of, quotable
from memkit.index.chunk import Chunk
from memkit.index.chunker import chunk_markdown
from memkit.journal.day_edits import Removal, remove
from memkit.journal.day_file import DayFile, section_hash
from memkit.journal.day_overview import DayOverview, slug, without_overview
from memkit.journal.day_summaries import extracted, summarize, turns_of
from memkit.journal.day_writes import Growing, insert_note, write_turn
from memkit.journal.digest import Digest, make_digest
from memkit.journal.extracts import extract_line, is_overview
from memkit.journal.journal import Journal
from memkit.projects.project import Project
from memkit.settings import ChunkingSettings
from tests.builders import make_note, turn_of
from tests.ci import examples

NOON = datetime(2026, 11, 20, 12, tzinfo=timezone.utc).astimezone()
DAY = NOON.date().isoformat()
MARKDOWN = MarkdownIt("commonmark").enable("table")


def at(minute: int, name: str, session: str = "s1", prompt: str = "", answer: str = "It is 7443.") -> Digest:
    time = NOON + timedelta(minutes=minute)
    turn = turn_of(prompt or f"Which port is {name}?", answer, id=name, session=session, time=time)
    return make_digest(turn, "/x", str)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(Project(str(tmp_path.resolve())))


def overview(journal: Journal) -> list[str]:
    """The lines of the overview, without anchors."""
    return [anchors.strip(line) for line in journal.day(DAY).opening if is_overview(line)]


def minutes(*after: int) -> list[str]:
    return [(NOON + timedelta(minutes=one)).strftime("%H:%M") for one in after]


def test_a_line_for_each_session_and_note_brought_up_to_date(journal: Journal) -> None:
    a, b, c = minutes(0, 5, 9)
    journal.write([at(0, "t1")])
    link = f"#{a.replace(':', '')}-which-port-is-t1"
    assert overview(journal) == [f"- {a} [Which port is t1?]({link}) · 1 turn → It is 7443."]
    journal.write([at(5, "t2", answer="Great! Now it is 7444. And more.")])
    journal.add_note(make_note("Buy milk", [], NOON + timedelta(minutes=9), str))
    assert overview(journal) == [
        f"- {a}–{b} [Which port is t1?]({link}) · 2 turns → Now it is 7444.",
        f"- {c} [Note: Buy milk](#{c.replace(':', '')}-note-buy-milk)",
    ]
    lines = [extract_line(f"{what}.", ["t1"]) for what in ("Edited: a.py", "Committed: Move the port", "Open: c?")]
    journal.summarize(DAY, ["t1", "t2"], lines, "Ports", key="extract")
    assert overview(journal)[0] == (
        f"- {a}–{b} [Ports](#{a.replace(':', '')}-ports) · 2 turns → Committed: Move the port. · Open: c?."
    )
    journal.summarize(DAY, ["t1", "t2"], ["- Decided: 7443. <!-- grip:ab12cd34 turns:t1 -->"])
    assert overview(journal)[0].endswith(
        f"[Ports](#{a.replace(':', '')}-ports) · 2 turns → Decided: 7443. · Open: c?."
    )


def test_links_lead_to_the_headings_that_a_renderer_shows(journal: Journal) -> None:
    prompts = ["Fix `a_b` & **c**!", "Fix `a_b` & **c**!", "[x](http://e.example) <!-- turn:t9 -->", "Größe: ok 🎉 really"]
    for number, prompt in enumerate(prompts):
        journal.write([at(0, f"t{number}", f"s{number}", prompt)])
    tokens = MARKDOWN.parse(journal.path(DAY).read_text())
    shown = [tokens[n + 1] for n, token in enumerate(tokens) if token.type == "heading_open"]
    names: dict[str, int] = {}
    for token in shown:
        children = token.children or []
        words = "".join(one.content for one in children if one.type in ("text", "code_inline")).strip().lower()
        name = "".join(one for one in words if one.isalnum() or one in " -_").replace(" ", "-")
        names[f"#{name}-{names[f'#{name}']}" if f"#{name}" in names else f"#{name}"] = 1
    items = [t for n, t in enumerate(tokens) if t.type == "inline" and tokens[n - 2].type == "list_item_open"]
    links = [[str(c.attrs["href"]) for c in t.children or [] if c.type == "link_open"] for t in items]
    assert [len(one) for one in links] == [1] * len(prompts)
    assert {MARKDOWN.normalizeLink(name) for name in names} >= {one[0] for one in links}
    assert len({one[0] for one in links}) == len(prompts)


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("14:02 Staging gateway port ", "1402-staging-gateway-port"),
        ("Sample_section (with) *emphasis*, `code` & [a link](http://x)", "sample_section-with-emphasis-code--a-link"),
        ("This'll  be a Helpful Section", "thisll--be-a-helpful-section"),
        ("日本語 – ok… done", "日本語--ok-done"),
    ],
)
def test_slugs(heading: str, expected: str) -> None:
    assert slug(heading) == expected


def test_what_the_user_removed_or_edited_stays_so(journal: Journal) -> None:
    journal.write([at(0, "t1"), at(1, "t2", "s2"), at(2, "t3", "s3")])
    path = journal.path(DAY)
    first, second, third = [line for line in path.read_text().split("\n") if is_overview(line)]
    path.write_text(path.read_text().replace(f"{second}\n", "").replace(first, first.replace("7443", "8000")))
    journal.write([at(3, "t4"), at(4, "t5", "s2"), at(5, "t6", "s3"), at(6, "t7", "s4")])
    mine, other, new = [line for line in path.read_text().split("\n") if is_overview(line)]
    assert mine == first.replace("7443", "8000")
    assert "t3?" in other and other != third and "t7?" in new
    for line in (mine, other, new):
        path.write_text(path.read_text().replace(f"{line}\n", ""))
    journal.write([at(7, "t8", "s5")])
    assert overview(journal) == []


@pytest.mark.parametrize("text", [
    "# {}\n\n## 08:00 a <!-- session:s0 -->\n\n### 08:00 a <!-- turn:t0 -->\n**Asked** a\n\n### 08:01 b <!-- turn:t00 -->\n",
    "# {}\n\nMy own words.\n",
    "# Mine\n\n## 10:00 mine\n",
])  # fmt: skip
def test_days_of_others_get_no_overview(journal: Journal, text: str) -> None:
    path = journal.path(DAY)
    path.parent.mkdir(parents=True)
    path.write_text(text.format(DAY))
    journal.write([at(0, "t1")])
    assert path.read_text().startswith(text.format(DAY).rstrip())
    assert overview(journal) == []


def test_nothing_forgotten_survives_in_the_overview(journal: Journal) -> None:
    secret = "the merger with Initech"
    journal.write([at(0, "t1", answer=f"It is about {secret}."), at(1, "t2", "s2"), at(2, "t3", "s2", f"Is it {secret}?")])
    journal.write([at(3, "t4", "s3"), at(4, "t5", "s3", answer="About Initech.")])
    path = journal.path(DAY)
    edited = path.read_text().replace("about the merger", "surely about the merger", 1)
    path.write_text(edited.replace("→ About Initech", "→ It was about Initech", 1))
    assert secret in overview(journal)[0]
    assert journal.remove(DAY, Removal(["t5"]))  # the edited line goes with it, and comes back without it
    assert "bout Initech" not in path.read_text() and len(overview(journal)) == 3
    assert journal.remove(DAY, Removal(["t1"]))
    assert secret not in "".join(overview(journal))
    assert journal.remove(DAY, Removal(["t3", "t4"]))
    assert secret not in path.read_text()
    assert len(overview(journal)) == 1 and " 1 turn " in overview(journal)[0]
    assert journal.remove(DAY, Removal(["t2"]))
    assert not path.exists()


def test_redaction_reaches_the_overview(journal: Journal) -> None:
    journal.write([at(0, "t1", answer="The code is hunter22.")])
    found: list[int] = []

    def redact(line: int, text: str) -> str:
        found.extend(line + n for n, one in enumerate(text.split("\n")) if "hunter22" in one)
        return text.replace("hunter22", "[x]")

    assert journal.redact(DAY, redact, {}, lambda turn, section: None)
    lines = journal.path(DAY).read_text().split("\n")
    assert "hunter22" not in "\n".join(lines)
    assert all(is_overview(line, unedited=True) for line in lines if is_overview(line))
    assert sorted(found) == [n for n, line in enumerate(lines, start=1) if "[x]" in line]


def test_an_edit_keeps_what_memkit_added_meanwhile(journal: Journal) -> None:
    journal.write([at(0, "t1"), at(1, "t2", "s2")])
    before = journal.data(f"{DAY}.md")
    edited = before.decode().replace("[Which port is t1?]", "[My port]", 1)
    journal.write([at(2, "t3", "s2"), at(3, "t4", "s3")])
    journal.edit(DAY, before, edited.encode())
    mine, second, third = overview(journal)
    assert "[My port]" in mine and "2 turns" in second and "t4?" in third
    without = "\n".join(line for line in journal.text(f"{DAY}.md").split("\n") if not is_overview(line))
    before = journal.data(f"{DAY}.md")
    journal.write([at(4, "t5", "s4")])
    journal.edit(DAY, before, without.encode())
    assert overview(journal) == []
    assert journal.day(DAY).find_turn("t5")


def test_a_title_forges_nothing_in_the_overview(journal: Journal) -> None:
    journal.write([at(0, "t1", prompt="a](http://evil.example) [b &lt;!-- turn:t9 --&gt; `c")])
    journal.write([at(1, "t2", "s2", answer="Done: &lt;!-- overview:x turns:t1 --> <img src=x>")])
    assert {s.pairs["turn"] for s in journal.day(DAY).sections if "turn" in s.pairs} == {"t1", "t2"}
    line = next(line for line in journal.day(DAY).opening if "evil" in line)
    (inline,) = MARKDOWN.parseInline(line)
    links = [one.attrs["href"] for one in inline.children or [] if one.type == "link_open"]
    assert all(str(link).startswith("#") for link in links) and len(links) == 1
    assert all(set(anchors.parse(one)) == {"overview", "turns"} for one in journal.day(DAY).opening if is_overview(one))


def test_a_lone_turn_shares_the_heading_until_a_second_one_comes(journal: Journal) -> None:
    journal.write([at(0, "t1")])
    path = journal.path(DAY)
    heading = f"## {minutes(0)[0]} Which port is t1? <!-- session:s1 turn:t1 -->"
    assert [line for line in path.read_text().split("\n") if line.startswith("##")] == [heading]
    assert journal.summarize(DAY, ["t1"], [], "", key="extract")
    assert " extract:t1 turn:t1 -->" in path.read_text()
    assert extracted(journal.day(DAY), "s1") == {"t1"}
    path.write_text(path.read_text().replace("Which port is t1? <!-- s", "My title  <!-- s"))
    before = path.read_text()
    journal.add_note(make_note("Buy milk", [], NOON + timedelta(minutes=9), str))
    assert "My title  <!-- session:s1" in path.read_text()
    assert before.partition("\n## ")[2].strip() in path.read_text()
    journal.write([at(1, "t2")])
    headings = [line.split()[0] for line in path.read_text().split("\n") if line.startswith("##")]
    assert headings == ["##", "###", "###", "##"]
    assert journal.day(DAY).sessions() == ["s1"]


def test_searches_do_not_find_the_overview_but_a_users_line(journal: Journal) -> None:
    journal.write([at(0, "t1"), at(1, "t2", "s2")])
    text = journal.text(f"{DAY}.md")

    def chunks(text: str) -> list[Chunk]:
        return chunk_markdown(text, f".memkit/memory/{DAY}.md", source_hash="0" * 64, options=ChunkingSettings())

    assert not any("overview:" in one.content for one in chunks(text))
    assert any("8000" in one.content for one in chunks(text.replace("7443", "8000", 1)))
    lines = text.split("\n")
    for chunk in chunks(text):
        assert lines[chunk.start_line - 1].startswith(chunk.content.split("\n")[0])


def test_the_title_is_the_first_that_says_something(journal: Journal) -> None:
    journal.write([at(0, "t1", prompt="yes.")])
    journal.write([at(1, "t2", prompt="Move the gateway"), at(2, "t3", prompt="Fix CI")])
    assert f"## {minutes(0)[0]} Move the gateway <!-- session:s1" in journal.path(DAY).read_text()
    journal.summarize(DAY, ["t1", "t2", "t3"], ["- Decided: x. <!-- grip:ab12cd34 turns:t1 -->"], "Gateway")
    assert f"## {minutes(0)[0]} Gateway <!-- session:s1" in journal.path(DAY).read_text()


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add", "grow", "extract", "summary", "forget", "note", "edit"]),
        st.integers(0, 7),
        st.integers(0, 2),
    ),
    max_size=14,
)


def act(content: DayFile, action: str, number: int, session: int, step: int) -> None:
    """Do one of the things that happen to a day."""
    names = [turn.section.pairs["turn"] for turn in turns_of(content, f"s{session}")]
    if action in ("add", "grow"):
        answer = "Half." if action == "add" else "Whole."
        prompt = ["yes.", "Fix it", "Why?\n\n## not a heading"][number % 3]
        one = at(number, f"t{number}{session}", f"s{session}", prompt, answer)
        half = at(number, f"t{number}{session}", f"s{session}", prompt, "Half.")
        write_turn(content, one, Growing((section_hash(half.section),), is_written=False), NoOthers())  # type: ignore[arg-type]
    elif action in ("extract", "summary") and names:
        waiting = [name for name in names if name not in extracted(content, f"s{session}")]
        line = f"- Decided: {step}. <!-- grip:ab12cd{step:02d} turns:{waiting[0]} -->" if waiting else ""
        if action == "extract" and waiting:
            line = extract_line(f"Edited: {step}", waiting[:1])
        if waiting:
            summarize(content, waiting[: number % 3 + 1], [line] * (number % 2), "Words" * (number % 2), key=action)
    elif action == "forget":
        remove(content, Removal([name for name in names if name.startswith(f"t{number}")]))
    elif action == "note":
        insert_note(content, make_note(f"Note {number}", [], NOON + timedelta(minutes=number), str))
    elif action == "edit":
        for place, line in enumerate(content.lines):
            if line == "**Answered** Half.":
                content.lines[place] = "**Answered** Half, I say."
                break


class NoOthers:
    """No other day holds a turn."""

    def find(self, turn: str) -> list[tuple[str, str]]:
        return []


def shape(content: DayFile) -> list[tuple[dict[str, str], str]]:
    start = content.sections[0].start if content.sections else len(content.lines)
    assert not any(is_overview(line) for line in content.lines[start:])
    return [(dict(section.pairs), content.text(section)) for section in content.sections]


@settings(max_examples=examples(60))
@given(ACTIONS)
def test_a_written_day_reads_as_without_overview(made: list[tuple[str, int, int]]) -> None:
    """`plain` is the day as it was before both: never written out, so that no heading is shared."""
    plain, text = DayFile(f"# {DAY}"), f"# {DAY}\n"
    for step, (action, number, session) in enumerate(made):
        act(plain, action, number, session, step)
        content = DayFile(text)
        before = DayOverview(content)
        act(content, action, number, session, step)
        before.update(content)
        text = content.render()
        read = DayFile(text)
        assert shape(read) == shape(plain) == shape(content)
        assert read.lines == content.lines
        assert read.render() == text
        again = DayOverview(read)
        again.update(read)
        assert read.render() == text
        assert len(read.file_lines()) == len(read.lines) + 1
        rendered = text.split("\n")
        for line, place in zip(read.lines, read.file_lines(), strict=False):
            assert line in ("", rendered[place - 1]) or "session:" in rendered[place - 1]
        expanded = "\n".join(line for line in read.lines if not is_overview(line))
        assert list(entries_of(text)) == list(entries_of(f"{expanded}\n"))
        words = [one for one in quotable(without_overview(text)) if one]
        assert sorted(words) == sorted(one for one in quotable(expanded) if one)
        assert "\n\n\n" not in text
        own = [line for line in rendered if is_overview(line, unedited=True)]
        if any("session" in s.pairs for s in read.sections) and not any(a == "note" for a, *_ in made):
            assert len(own) == sum(bool(turns) for one, turns in read.groups() if one)


@settings(max_examples=examples(60))
@given(st.lists(st.sampled_from([
    "", "text", "# title", "## own", "### own", "## 10:00 a <!-- session:s1 turn:t1 -->",
    "## 10:00 a  <!-- session:s1 branch:main extract:t2 turn:t2 -->", "### 10:00 a <!-- turn:t1 -->",
    "## a <!-- turn:t3 session:s2 -->", "## <!-- session:s turn:t:4 -->", "## 11:00 n <!-- note:n1 turn:t5 session:s1 -->",
    "## 10:00 a <!-- session:s1 --> <!-- turn:t1 -->", "- x <!-- overview:aa turns:t1 -->",
]), max_size=12))  # fmt: skip
def test_reading_changes_nothing(lines: list[str]) -> None:
    text = "\n".join(lines).rstrip("\n") + "\n"
    content = DayFile(text)
    assert content.render() == text or second_turns(content)
    assert DayFile(content.render()).lines == content.lines


def second_turns(content: DayFile) -> bool:
    """Whether a shared heading has more turns below it than it may: they get the usual form."""
    return any(one is not None and len(turns) > 1 for one, turns in content.groups())
