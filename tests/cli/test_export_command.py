"""`memkit export`."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import stat
from html.parser import HTMLParser
from pathlib import Path

import pytest

from memkit.journal.day_overview import slug
from tests.cli.conftest import REPOSITORY, Run
from tests.memory import DAYS, Memory, day, make_memory

SCRIPT = REPOSITORY / "memkit" / "export" / "page.js"

HOSTILE = (
    "<script>alert(1)</script> <img src=x onerror=alert(2)> [a](javascript:alert(3)) "
    "![b](http://evil.example/track.png) <javascript:alert(4)> </article></section></body>\n\n"
    "<script>\nalert(5)\n</script>\n\n<style>@import 'http://evil.example'</style>\n\n"
    "<iframe src=//evil.example></iframe> <!-- x --> &lt;script&gt;\n\n"
    '[c](http://example.com/"onmouseover="alert(6)) [d](data:text/html,<script>alert(7)</script>)\n\n'
    "```<script>\n</code></pre><script>alert(8)</script>\n```\n\n| <script> |\n|---|\n| <b>x</b> |\n"
)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return make_memory(tmp_path, DAYS)


class Elements(HTMLParser):
    """All elements of a page, and whether each that was opened was closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "hr", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_markdown_is_the_days_without_anchors(run: Run, memory: Memory) -> None:
    whole = run(memory, "export").output
    assert "<!--" not in whole
    assert [line for line in whole.splitlines() if line.startswith("# ")] == [
        "# 2026-11-18", "# 2026-11-19", "# 2026-11-20", "# not a heading",
    ]  # fmt: skip
    with_anchors = run(memory, "export", "--with-anchors").output
    assert with_anchors == "\n".join(DAYS.values())
    some = run(memory, "export", "--since", "2026-11-19", "--until", "2026-11-19").output
    assert some == re.sub(r" <!--.*?-->", "", DAYS["2026-11-19.md"])


def test_json_lines(run: Run, memory: Memory) -> None:
    memory.write("2026-11-21.md", "# 2026-11-21\n\nA note of my own.\n\n" + day("", ("Why?", "So."))[3:])
    lines = run(memory, "export", "--format", "jsonl").lines
    assert [line["date"] for line in lines if line["turn"]] == [
        "2026-11-18", "2026-11-18", "2026-11-19", "2026-11-19", "2026-11-19", "2026-11-20", "2026-11-21",
    ]  # fmt: skip
    assert lines[1] == {
        "date": "2026-11-18",
        "session": "5e550001",
        "branch": "main",
        "turn": re.findall(r"turn:(\w+)", DAYS["2026-11-18.md"])[0],
        "heading": "09:00 Which port does the staging gateway use?",
        "text": "**Asked** Which port does the staging gateway use?\n"
        "**Answered** It listens on 7443, 443 is taken.",
    }
    memory.write("2026-11-22.md", b"# 2026-11-22\n\n\xff \xe2\x80\xa8 line\n")
    assert json.loads(run(memory, "export", "--format", "jsonl").output.splitlines()[-1])["text"]
    (note,) = [line for line in lines if not line["session"]]
    assert (note["heading"], note["text"]) == ("", "A note of my own.")


def test_the_page_is_self_contained_whatever_the_memory_holds(run: Run, memory: Memory) -> None:
    text = day("2026-11-21", ("<script>alert(0)</script>", HOSTILE))
    text = text.replace("## 09:00 Work", '## 09:00 "><img src=x>').replace("turn:", 'turn:"><script>')
    memory.write("2026-11-21.md", f"# 2026-11-21\n\n{HOSTILE}\n\n{text.partition('2026-11-21')[2]}")
    memory.write("2026-11-22.md", b"# 2026-11-22\n\n\xff\xfe no UTF-8\n")
    page = run(memory, "export", "--format", "html").output
    elements = Elements(page)
    assert elements.open == []
    names = {tag for tag, _ in elements.found}
    assert not names & {"img", "iframe", "link", "object", "embed", "form", "base", "b", "svg"}
    tags = [tag for tag, _ in elements.found]
    assert (tags.count("style"), tags.count("script"), tags.count("input")) == (1, 1, 1)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert script == SCRIPT.read_text()
    (policy,) = [found["content"] for _, found in elements.found if found.get("http-equiv")]
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert str(policy).endswith(f"; script-src 'sha256-{allowed}'") and "default-src 'none'" in str(policy)
    attributes = {(tag, name) for tag, found in elements.found for name in found}
    assert attributes <= {
        ("html", "lang"), ("meta", "charset"), ("meta", "http-equiv"), ("meta", "content"),
        ("meta", "name"), ("table", "id"), ("section", "id"), ("article", "id"), ("article", "class"),
        ("a", "href"), ("p", "class"), ("code", "class"), ("p", "id"), ("p", "hidden"), ("span", "id"),
        ("input", "id"), ("input", "type"), ("input", "placeholder"), ("input", "aria-label"),
    }  # fmt: skip
    ids = [found["id"] for _, found in elements.found if "id" in found]
    assert len(ids) == len(set(ids))
    links = [str(found["href"]) for tag, found in elements.found if tag == "a"]
    inside = {link[1:] for link in links if link.startswith("#")}
    own = {"search", "find", "found", "2026-11-21-notes", "2026-11-22-notes"}  # notes have no heading
    assert inside | own == set(ids)
    assert {link.partition(":")[0] for link in links if not link.startswith("#")} == {"http"}
    assert "alert(8)" in elements.text
    assert "no UTF-8" in elements.text


TWO_STRETCHES = (
    "# 2026-11-23\n\n[Work](#0900-work-was-done) [again](#1100-work-1) [out](#nowhere) [web](https://a.example/#x)\n\n"
    "## 09:00 **Work** was `done`! <!-- session:5e550009 -->\n\n"
    "### 09:00 **Work** was `done`! <!-- turn:aaaa0001 -->\n**Asked** One?\n\n"
    "## 10:00 Other <!-- session:5e55000a -->\n\n### 11:00 Work <!-- turn:aaaa0002 -->\n**Asked** Two?\n\n"
    "## 11:00 Work <!-- session:5e550009 -->\n\n- A bullet.\n\n### 11:00 Work <!-- turn:aaaa0003 -->\n**Asked** Three?\n"
)


def test_links_lead_to_the_headings_of_the_day(run: Run, memory: Memory) -> None:
    page = run(memory, "export", "--format", "html", "--until", "2026-11-19").output
    link = '<a href="#2026-11-19-5e550002">09:00 Work</a>'
    assert f'<tr><td><a href="#2026-11-19">2026-11-19</a></td><td>3</td><td>{link}</td></tr>' in page
    assert '<article class="session" id="2026-11-19-5e550002">' in page
    assert "2026-11-20" not in page
    assert page.count("<br />\n<strong>Answered</strong>") == page.count("<strong>Asked</strong>") == 5
    memory.write("2026-11-23.md", TWO_STRETCHES)
    page = run(memory, "export", "--format", "html", "--since", "2026-11-23").output
    for title, name in {
        "09:00 Work was done!": "5e550009", "10:00 Other": "5e55000a", "11:00 Work": "5e550009-2",
    }.items():  # fmt: skip
        assert f'<a href="#2026-11-23-{name}">{title}</a>' in page
        assert page.count(f' id="2026-11-23-{name}"') == 1
    assert page.count("Work was done!") == 2  # in the table and once as a heading
    assert '<a href="#2026-11-23-5e550009">Work</a>' in page
    assert '<a href="#2026-11-23-5e550009-2">again</a>' in page
    assert '<a href="#2026-11-23">out</a>' in page
    assert '<a href="https://a.example/#x">web</a>' in page


def test_to_a_file(run: Run, memory: Memory, tmp_path: Path) -> None:
    target = tmp_path / "memory.html"
    done = run(memory, "export", "--format", "html", "--output", str(target), "--json").json
    assert done == {"file": str(target), "days": 3}
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert target.read_text() == run(memory, "export", "--format", "html").output
    assert "cannot write" in run(memory, "export", "--output", str(tmp_path / "no" / "x")).complaint
    assert [*tmp_path.glob(".*")] == []
    assert run(memory, "export", "--json").status == 2
    assert run(memory, "export", "--format", "html", "--with-anchors").status == 2
    assert "no memory of that time" in run(memory, "export", "--until", "2020-01-01").complaint


def test_the_overview_links_to_a_heading_in_any_script(run: Run, tmp_path: Path) -> None:
    title = "स्टेजिंग पोर्ट café ½"
    name = slug(f"14:02 {title}")
    written = (
        f"# 2026-11-20\n\n- 14:02 [{title}](#{name}) <!-- overview:11111111 turns:8ad3df7f -->\n\n"
        f"## 14:02 {title} <!-- session:5e55aaaa -->\n\n"
        "### 14:02 Which port? <!-- turn:8ad3df7f -->\n**Answered** 7443.\n"
    )
    page = run(make_memory(tmp_path, {"2026-11-20.md": written}), "export", "--format", "html").output
    assert f'14:02 <a href="#2026-11-20-5e55aaaa">{title}</a>' in page
