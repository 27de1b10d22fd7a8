"""What `memkit search` shows on a terminal."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from memkit.cli.search import show_short
from memkit.search.results import Answer, Excerpt, Result
from tests.cli.conftest import Run, lexical_memory
from tests.memory import Memory, make_chunk, make_memory

DAYS = {
    "2025-09-20.md": """# 2025-09-20

## 04:34 Streaming platform fixes <!-- session:67a8478e-78dc-44ab -->

### 04:37 The streaming test hangs in the pipeline again and again, what is the reason? <!-- turn:aaaaaaa1 -->
**Asked** The streaming test hangs in the pipeline again and again, what is the reason?
**Answered** Great question! The server never closed its socket. It does now.

### 04:44 Token streaming shows [object][object] <!-- turn:aaaaaaa2 -->
**Asked** Token streaming shows [object][object]
**Did** Edit app/ai-chat.ts · Bash `npm test` → 12 passed
**Answered** Perfect! The params were stringified in ai-chat.ts; fixed in dbc87e8.
""",
    "2025-09-22.md": """# 2025-09-22

## 09:00 Push up and make a PR for streaming <!-- session:0fae0449-64d3-4788 -->

### 09:00 Push up and make a PR for streaming <!-- turn:aaaaaaa3 -->
**Asked** Push up and make a PR for streaming
**Did** Bash `gh pr create` → https://example.com/pull/17

## 10:00 Note: The streaming branch is deployed on Mondays <!-- note:ab12cd34 -->
The streaming branch is deployed on Mondays.
""",
    "MEMORY.md": "# Facts\n\n- Decided: Streaming uses server-sent events and no web sockets, because the proxy in "
    "front of it closes them after a minute. <!-- fact:0badcafe turns:aaaaaaa1 -->\n",
}

AT_80 = """\
.memkit/memory/2025-09-22.md
      9  10:00 Note: The streaming branch is deployed on Mondays        ID

.memkit/memory/MEMORY.md
      3  Decided: Streaming uses server-sent events and no web          ID
         sockets, because the proxy in front of it closes them after a minute.

2025-09-20  Streaming platform fixes                            session 67a8478e
  04:37  The streaming test hangs in the pipeline again and again, wh…  ID
         → The server never closed its socket.
  04:44  Token streaming shows [object][object]                         ID
         → The params were stringified in ai-chat.ts; fixed in dbc87e8.

2025-09-22                                                      session 0fae0449
  09:00  Push up and make a PR for streaming                            ID
         → Pull request: https://example.com/pull/17
"""


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Memory:
    return lexical_memory(tmp_path_factory.mktemp("shown"), DAYS)


def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a fixture: pytest replaces stdout before each test."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


def search(run: Run, memory: Memory, *words: str) -> str:
    found = run(memory, "search", "-k", "10", *(words or ("streaming",)))
    assert (found.status, found.errors) == (0, "")
    return found.output


def without_ids(text: str) -> str:
    return re.sub(r"(?<=  )(?<!session )[0-9a-f]{8}$", "ID", text, flags=re.MULTILINE)


def test_a_screen_of_80_columns(run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = search(run, memory)
    assert without_ids(shown) == AT_80
    assert max(map(len, shown.splitlines())) == 80
    for identifier in re.findall(r"  ([0-9a-f]{8})$", shown, re.MULTILINE)[:5]:
        assert "treaming" in run(memory, "expand", identifier).output


def test_wide_and_narrow_screens(run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    for columns in (40, 60, 120, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        shown = search(run, memory)
        assert max(map(len, shown.splitlines())) == min(columns, 120)
        assert ("what is the reason?" in shown) == (columns >= 120)
        assert shown.count("\n") <= 22


def test_colors_and_links(run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", "80")
    shown = search(run, memory)
    assert "\x1b[32m\x1b[1mstreaming\x1b[0m" in shown
    day = Path(memory.project.memory, "2025-09-20.md").as_uri()
    assert f"\x1b]8;;{day}#9\x1b\\Token" in shown
    # No yellow and no white: they are hard to read on light backgrounds.
    assert set(re.findall(r"\x1b\[(\d+)m", shown)) <= {"0", "1", "2", "32", "35", "36"}
    bare = re.sub(r"\x1b\]8;;[^\x1b]*\x1b\\|\x1b\[\d+m", "", shown)
    assert without_ids(bare) == AT_80
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in search(run, memory)


def test_unverified_bullets_are_marked(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bullet = f"- Fact: the yak grazes {'on the high meadow ' * 4}in May. (unverified)"
    anchor = "<!-- grip:05ac16a2 turns:8b52f4fb check:unverified -->"
    text = f"# 2026-11-20\n\n## 09:00 Yaks <!-- session:5e550001 -->\n\n{bullet} {anchor}\n"
    monkeypatch.setenv("MEMKIT_EMBEDDING_PROVIDER", "none")
    memory = make_memory(tmp_path, {"2026-11-20.md": text})
    for columns in (60, 80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        (line, *_) = search(run, memory, "yak", "grazes").splitlines()[1:]
        assert re.search(r"Fact: the yak .* \(unverified\) +05ac16a2$", line)
        assert len(line) == columns


def hostile_answer(text: str) -> Answer:
    def result(kind: str, **known: str) -> Result:
        chunk = make_chunk(
            text, kind=kind, source=f".memkit/{text}.md", heading=text, breadcrumb=text, date=text, **known
        )
        excerpt = Excerpt(text, text, text, text, tuple(text.split()), text)
        superseded = {"date": text, "text": text} if kind == "fact" else {}
        return Result(text, text, 1, 1, chunk, 1, None, 1, "/home/shop", [], superseded, {}, excerpt)

    return Answer("", "context", "", 0, [result("turn", session=text), result("note"), result("fact")])


def test_nothing_in_a_result_steers_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_terminal(monkeypatch)
    text = (
        "a\x1b]8;;https://evil.example\x1b\\b \x1b]52;c;ZXZpbA==\x07 \x1b[2J\x1b[33mc \x9b31m\x9c \r\n\x08 d\u202egnp"
        " \x1b \x00 %41 e"
    )
    show_short(hostile_answer(text), "/home/other")
    shown = capsys.readouterr().out
    links = re.findall(r"\x1b\]8;;([^\x1b\x07]*)\x1b\\", shown)
    assert len(links) == 6
    for address in filter(None, links):
        assert re.fullmatch(r"file:///home/shop/\.memkit/[\w%./:;()&=#~-]+", address, re.ASCII)
        assert "%1B" in address
        assert "%2541" in address
    left = re.sub(r"\x1b\]8;;[^\x1b]*\x1b\\|\x1b\[(?:0|1|2|32|35|36)m", "", shown)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", left)


def test_text_that_memkit_did_not_cut_into_an_excerpt(capsys: pytest.CaptureFixture[str]) -> None:
    """An older service sends none."""
    chunk = make_chunk("It is.", kind="turn", heading="09:00 Is it?", session="5e550001", date="2026-11-18")
    show_short(Answer("", "context", "", 0, [Result("0123456789ab", "p", 1, 1, chunk, 1, None, 1)]), "")
    first, second = capsys.readouterr().out.splitlines()
    assert first.split() == ["2026-11-18", "session", "5e550001"]
    assert second.split() == ["09:00", "Is", "it?", "01234567"]
