"""Foreign text in a memory file: it reads as it did, and forges nothing for any reader."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from memkit import anchors
from memkit.conversation.turn import ToolCall
from memkit.journal.digest import PROMPT_CHARACTERS, TITLE_CHARACTERS, make_digest
from memkit.journal.markup import LEAST_GAP, cut_middle, one_line, printable, safe_block
from memkit.privacy.redact import redact
from tests.builders import turn_of
from tests.ci import IN_CI, examples, sized

READERS = (MarkdownIt("commonmark"), MarkdownIt("commonmark").enable("table"))

pieces = st.sampled_from(
    "#|##|# a|####### a|===|---|- - -|***|```|````|~~~|``` a`b|    ```|  ```|- ```|> ```|<div>|</div>|<script>|"
    "<!-- x|-->|<!-- turn:deadbeef -->|<!--\tsession:x -->|<?php|<![CDATA[|]]>|<!X|<a href='|<b>|- a|  - b|1. c|"
    "  ===|   ---|> q|>|> # h|- # h|1) # h|[a]: b|[a]:|a \\| b|-\\|-|--- \\| ---|\\||    code|\tcode|text|\\|&lt;!--|"
    "<!-- memkit:end -->|<!DOCTYPE html>|a<!--b-->c|`x`|- ```\n  # in fence|[x]: http://a|\r\n|\x0c|\u2028|\x1b[31m|"
    "**Asked** x|**Answered** y|### 10:00 x <!-- turn:deadbeef -->|## 1 <!-- session:a -->".replace("\\|", "\0").split("|")
).map(lambda piece: piece.replace("\0", "|"))
texts = st.lists(pieces | st.just("") | st.text(max_size=6), max_size=9).flatmap(
    lambda parts: st.sampled_from(["\n", "\n\n", " ", "\r\n", "\n  "]).map(lambda by: by.join(parts))
)


def digest_of(prompt: str = "", answer: str = "", *calls: ToolCall, **fields: object) -> str:
    return make_digest(turn_of(prompt, answer, *calls, **fields), "/home/shop", redact).section


def assert_forges_nothing(section: str) -> None:
    lines = section.split("\n")
    assert [number for number, line in enumerate(lines) if anchors.parse(line)] == [0]
    for reader in READERS:
        tokens = reader.parse(f"{section}\n\n### next\n\nafter\n")
        headings = [token.map for token in tokens if token.type == "heading_open"]
        assert headings == [[0, 1], [len(lines) + 1, len(lines) + 2]]
        assert not [token for token in tokens if token.type == "html_block"]
        outside = [token for token in tokens if token.type == "inline" and token.map != [0, 1]]
        assert not [
            child
            for token in outside
            for child in token.children or ()
            if child.type == "html_inline" and child.content.startswith("<!--")
        ]


@settings(max_examples=200 if IN_CI else 30)
@given(prompt=texts, answer=texts, name=texts, command=texts, output=texts, error=st.booleans())
@example("x", "<script>\n# a", "", "", "", False)
@example("x\n===", "- a\n\n      ```\n# b", "", "", "", False)
@example("x", "~~~\n```\n### 1 <!-- turn:deadbeef -->", "", "", "", False)
@example("***\n---", "a|b\n-|-\nx\n===", "", "", "", False)
@example("[a]: b\n===", "```\nx\n    ```", "- -", "", "", False)
@example("<div>\n" * 20 + "# a", "- a\n  <pre>\n\n# b", "<div>", "", "", True)
@example("a\n" + "===\n" * 30, "- ```\n# a", "[a]: b", "`` ` ``", "\x1b[31m# x", False)
def test_nothing_forged(prompt: str, answer: str, name: str, command: str, output: str, error: bool) -> None:
    calls = [ToolCall(name, {"command": command, "file_path": command}, output, is_error=error)] * 3
    section = digest_of(prompt, answer, *calls)
    assert_forges_nothing(section)
    assert section == digest_of(prompt, answer, *calls)


def test_longer_random_texts_forge_nothing() -> None:
    """Deeper than the property goes: whole documents of the same pieces, cut where they are too long."""
    choice = random.Random(5)
    parts = ["# a", "===", "---", "```", "~~~", "    x", "<div>", "<script>", "- a", "  - b", "> q", "1. x",
             "<!-- turn:deadbeef -->", "a | b", "- | -", "", "", "word " * 30, "  ```", "\t", "<!--", "|"]  # fmt: skip
    for _ in range(sized(30, 50, 150)):
        prompt, answer = ("\n".join(choice.choices(parts, k=choice.randint(1, 120))) for _ in range(2))
        assert_forges_nothing(digest_of(prompt, answer))


@settings(max_examples=examples(150))
@given(text=texts)
def test_only_escapes_are_added_and_only_marks_of_headings_are_removed(text: str) -> None:
    def letters(shown: str) -> str:
        shown = shown.replace("&lt;!--", "<!--").replace("<!- -", "<!--")
        return re.sub(r"[\s\\`~#=*_-]", "", shown)

    once = safe_block(text)
    assert letters(once) == letters(printable(text))
    assert safe_block(once) == once


@pytest.mark.parametrize(
    "text",
    [
        "plain *words*, `code <b>`, [a](b) and **bold**\nsecond line",
        "- a\n  - b\n\n1. c\n\n> quoted\n> more",
        "```python\n# no heading\n<div>\n<!-- a comment -->\n=== \\ &lt;\n```\n\nafter",
        "~~~~\n```\n~~~~",
        "    # indented code\n\n    <div>",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "***\n\nC# and #hashtag and 1 < 2",
        "- ```sh\n  make # all\n  ```\n- next",
    ],
)
def test_ordinary_markdown_is_unchanged(text: str) -> None:
    assert safe_block(text) == "\n".join(line.rstrip() for line in text.split("\n"))


def test_pasted_html_stays_readable() -> None:
    html = "\n".join(f"<div class='{n}'>\n  <p>text {n}</p>\n</div>" for n in range(20))
    shown = safe_block(html)
    assert shown.replace("\\<", "<") == html
    assert_forges_nothing(digest_of(html, html))


def test_terminal_colors_are_removed_completely() -> None:
    output = "\x1b[1m=== 2 passed ===\x1b[0m\n\x1b]8;;http://x\x07link\x1b]8;;\x07 \x1b[38;2;1;2;3mred\x1b[m\n\x1b[0m"
    section = digest_of("Test", "Done.", ToolCall("Bash", {"command": "pytest"}, output))
    assert "Bash `pytest` → === 2 passed ===\n" in section


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("write it in C#", "write it in C#"), ("-5 degrees", "-5 degrees"), ("# Plan\n\ntext", "Plan"),
        ("> - quoted item", "quoted item"), ("--help me", "--help me"), ("#hashtag", "#hashtag"),
        ("```\ncode first\n```", "code first"), ("\n\n  spread \t out ", "spread out"), ("", ""), ("# ", ""),
    ],
)  # fmt: skip
def test_the_line_that_says_something(text: str, line: str) -> None:
    assert one_line(text, 80) == line


@settings(max_examples=examples(150))
@given(text=texts | st.text(), limit=st.integers(10, 100))
def test_one_line_is_one_line_within_its_limit(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert "\n" not in line
    assert "<!--" not in line
    assert line == line.strip()


def test_tool_input_is_shown_unchanged() -> None:
    section = digest_of(
        "Look",
        "Found.",
        ToolCall("Glob", {"pattern": "**/*.py"}, "a.py"),
        ToolCall("Grep", {"pattern": "#define X"}, ""),
        ToolCall("Bash", {"command": "echo -5"}, "-5"),
        ToolCall("Read", {"file_path": "/home/shop/a/b.py"}, "x"),
        ToolCall("mcp__files__list", {"path": {"not": "text"}, "name": ["nor", 1]}, None),
        ToolCall("", {}, ""),
    )
    did = section.split("**Did** ")[1].split("\n")[0]
    assert did.split(" · ") == [
        "Glob `**/*.py`", "Grep `#define X`", "Bash `echo -5` → -5", "Read a/b.py",
        "mcp__files__list → no result", "tool",
    ]  # fmt: skip


def test_a_turn_without_a_prompt_asks_nothing() -> None:
    assert digest_of("", "7443.").split("\n") == [
        "### 14:02 7443. <!-- turn:8ad3df7f -->",
        "**Answered** 7443.",
    ]
    assert digest_of("Stop!", interrupted=True).endswith("### 14:02 Stop! <!-- turn:8ad3df7f -->\n**Interrupted**")


@settings(max_examples=examples(100))
@given(lines=st.lists(st.text("ab \n", max_size=400), max_size=30), limit=st.integers(60, 600))
def test_the_limits_and_the_count_hold(lines: list[str], limit: int) -> None:
    text = "\n".join(lines)
    cut = cut_middle(text, limit, "see there")
    match = re.search(r"\n\n\[… ([\d,]+) characters left out: see there\]\n\n", cut)
    if match is None:
        assert cut == text
        assert len(text) < limit + LEAST_GAP
        return
    assert len(text) > limit
    head, tail = cut[: match.start()], cut[match.end() :]
    assert len(head) + len(tail) <= limit
    assert text.startswith(head)
    assert text.endswith(tail)
    left_out = len(text) - len(head) - len(tail)
    blanks = left_out - int(match[1].replace(",", ""))
    gap = text[len(head) : len(text) - len(tail)]
    assert 0 <= blanks <= len(gap) - len(gap.strip())


@pytest.mark.parametrize(
    "text",
    [
        "```python\n" + "x = 1\n" * 2000 + "```\nlast words",
        "- item\n\n  ```python\n" + "  x = 1\n" * 2000 + "  ```\n\nlast words",
        "1.  item\n\n    ~~~\n" + "    x = 1\n" * 2000 + "    ~~~\n\nlast words",
    ],
)
def test_code_that_is_cut_stays_code_and_the_gap_does_not(text: str) -> None:
    section = digest_of("Show", text)
    for reader in READERS:
        tokens = reader.parse(section)
        shown = [token.content for token in tokens if token.type == "inline"]
        assert any(content.startswith("[… ") for content in shown)
        assert "last words" in shown
        code = "".join(token.content for token in tokens if token.type in ("fence", "code_block"))
        assert code.count("x = 1") > 300


@pytest.mark.parametrize(
    "unit", ["> ", "- ", "- a\n", "a\n=\n", "```\n", "[", "`", "<div>\n", "<!-- ", "a|b\n", "\x1b[", "\x1b]", " "]
)
def test_a_prompt_of_a_million_characters_is_a_section_like_any_other(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    section = make_digest(turn_of(text), "/home/shop", str).section
    assert len(section) < 3 * (PROMPT_CHARACTERS + TITLE_CHARACTERS)  # fences, however long, are closed
    assert_forges_nothing(section)
