from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memkit import anchors
from memkit.errors import ConfigError
from memkit.index.chunker import Chunk, ChunkOptions, chunk_markdown, decode

DEFAULT = ChunkOptions()
SMALL = ChunkOptions(max_characters=240, min_characters=40, overlap_lines=2)
HASH = "0" * 64


def chunked(text: str, source: str = "notes.md", options: ChunkOptions = DEFAULT) -> list[Chunk]:
    return chunk_markdown(text, source, source_hash=HASH, options=options)


def prose(words: int, word: str = "word") -> str:
    return " ".join(f"{word}{number}" for number in range(words))


def lines_of(text: str) -> list[str]:
    return [line.removesuffix("\r") for line in text.split("\n")]


def check(text: str, chunks: list[Chunk], options: ChunkOptions) -> None:
    """What holds for every text."""
    lines = [anchors.strip(line) for line in lines_of(text)]
    covered: dict[int, list[str]] = {}
    for chunk in chunks:
        assert 1 <= chunk.start_line <= chunk.end_line <= len(lines)
        source = "\n".join(lines[chunk.start_line - 1 : chunk.end_line])
        is_whole = chunk.content == source
        is_part_of_long_line = any(
            len(lines[number - 1]) > options.max_characters // 2
            for number in (chunk.start_line, chunk.end_line)
        )
        assert is_whole or (is_part_of_long_line and chunk.content in source)
        assert chunk.content.strip()
        assert len(chunk.content) <= options.max_characters or re.search("```|~~~", chunk.content)
        for number in range(chunk.start_line, chunk.end_line + 1):
            covered.setdefault(number, []).append(chunk.content)
    for number, line in enumerate(lines, start=1):
        if line.strip():
            words = {word for word in line.split() if len(word) < 30}
            held = " ".join(covered[number]).split()
            assert words <= set(held)
    ids = [chunk.id("model") for chunk in chunks]
    assert len(set(ids)) == len(ids)
    assert [chunk.start_line for chunk in chunks] == sorted(chunk.start_line for chunk in chunks)


# Text that must not be read as structure says "hidden" behind a number sign.
word = st.sampled_from(["port", "gateway", "naïve", "漢字", "7443", "`code`", "a|b", "**bold**", "[x]"])
sentence = st.lists(word, min_size=1, max_size=30).map(" ".join)
heading = st.builds(
    lambda level, text, close: f"{'#' * level} {text}{close}",
    st.integers(1, 6),
    sentence,
    st.sampled_from(["", " ##", "  <!-- user's own -->"]),
)
setext = st.builds(lambda text, line: f"{text}\n{line}", sentence, st.sampled_from(["===", "---"]))
paragraph = st.lists(sentence, min_size=1, max_size=6).map("\n".join)
code = st.lists(st.sampled_from(["# hidden", "", "x = 1", "## hidden", "- no item"]), max_size=8)
fence = st.builds(
    lambda fence, code, before: "\n".join([*before, fence, *code, fence[:3]]),
    st.sampled_from(["```", "~~~", "```python"]),
    code,
    st.sampled_from([[], ["see:"], ["see:", ""]]),
)
indented = st.lists(st.sampled_from(["    # hidden", "", "    y = 2"]), min_size=1, max_size=6).map(
    lambda lines: "\n".join(["    z", *lines, "    z"])
)
items = st.lists(sentence, min_size=1, max_size=8)
list_block = items.map(lambda items: "\n".join(f"- {item}" for item in items))
nested_list = st.builds(
    lambda items, code: "\n\n".join(
        f"{number}. {item}\n\n   - {item}\n\n     ```\n"
        + "".join(f"     {line}\n" for line in code)
        + "     ```"
        for number, item in enumerate(items, start=1)
    ),
    items,
    code,
)
table = items.map(lambda items: "| a | b |\n|---|---|\n" + "\n".join(f"| 1 | {i} |" for i in items))
quote = items.map(lambda items: "> # hidden\n>\n" + "\n".join(f"> {item}" for item in items))
comment = sentence.map(lambda text: f"<!-- {text}\n\n# hidden\n\n{text} -->")
html = sentence.map(lambda text: f"<div>\n# hidden\n{text}\n</div>")
long_line = st.builds(
    lambda words, blanks: (" " * blanks).join(words),
    st.lists(word, min_size=60, max_size=300),
    st.integers(1, 3),
)
unbroken = st.integers(200, 2000).map(lambda size: "x" * size)
oddities = st.sampled_from(
    [
        "\x0c",
        "a\u2028b",
        "a\rb",
        "\x00",
        "[a]: https://example.org",
        "#",
        "####### seven",
        "#no heading",
        "---",
        "- + " * 20 + "deep",
        ">" * 40 + " deep",
        "-\n\n  x",
        "* ",
        "\t# hidden",
        "<!-- turn:8ad3df7f -->",
        "text <!-- grip:k3f9a1 turns:8ad3df7f,77c1e09b --> text",
    ]
)
block = st.one_of(
    heading, heading, setext, paragraph, fence, indented, list_block, nested_list, table, quote,
    comment, html, long_line, unbroken, oddities,
)  # fmt: skip
front_matter = st.sampled_from(["", "---\ntitle: x\n# hidden\n\ntags: [a]\n---\n"])
ending = st.sampled_from(["", "\n", "\n\n```\n# hidden\n\n## hidden", "\n\n<!-- open\n\n# hidden"])
documents = st.builds(
    lambda front, blocks, gap, ending: front + gap.join(blocks) + ending,
    front_matter,
    st.lists(block, max_size=12),
    st.sampled_from(["\n\n", "\n\n\n"]),
    ending,
)
sizes = st.builds(
    ChunkOptions,
    max_characters=st.integers(120, 600),
    min_characters=st.integers(0, 50),
    overlap_lines=st.integers(0, 3),
)


@given(documents, sizes, st.booleans())
@settings(max_examples=300, deadline=None)
def test_nothing_is_lost_and_every_place_is_true(
    text: str, options: ChunkOptions, windows: bool
) -> None:
    chunks = chunked(text, options=options)
    check(text, chunks, options)
    if windows:
        text = re.sub("(?<!\r)\n", "\r\n", text)
        assert chunked(text, options=options) == chunks


@given(documents, sizes)
@settings(max_examples=200, deadline=None)
def test_code_quotes_and_comments_hold_no_headings(text: str, options: ChunkOptions) -> None:
    for chunk in chunked(text, options=options):
        assert "hidden" not in chunk.breadcrumb
        assert not re.match(r"[ \t]*#+ hidden", chunk.content)


@given(documents, sizes)
@settings(max_examples=200, deadline=None)
def test_fences_are_never_cut(text: str, options: ChunkOptions) -> None:
    for chunk in chunked(text, options=options):
        marks = re.findall(r"^ *(?:```|~~~)", chunk.content, re.MULTILINE)
        assert len(marks) % 2 == 0 or text.endswith("```\n# hidden\n\n## hidden")


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 120)), min_size=1, max_size=12), sizes)
@settings(max_examples=200, deadline=None)
def test_breadcrumbs_name_headings_above_the_text(
    shape: list[tuple[int, int]], options: ChunkOptions
) -> None:
    path: list[str] = []
    lines: list[str] = []
    paths: list[list[str]] = []
    levels: list[int] = []
    for number, (level, words) in enumerate(shape):
        while levels and levels[-1] >= level:
            levels.pop()
            path.pop()
        levels.append(level)
        path.append(f"H{number}")
        body = [f"{'#' * level} H{number}", "", *(prose(10) for _ in range(words // 10)), ""]
        lines += body
        paths += [list(path)] * len(body)
    for chunk in chunked("\n".join(lines), options=options):
        within = paths[chunk.start_line - 1 : chunk.end_line]
        named = chunk.breadcrumb.split(" > ") if chunk.breadcrumb else []
        assert any(named == path[: len(named)] for path in within)
        assert chunk.heading == (named[-1] if named else "")
        sections = {path[-1] for path in within}
        if not named or named not in within:  # named after what is common to several fragments
            assert len(sections) > 1
            assert len(chunk.content) < options.max_characters


@given(documents, sizes)
@settings(max_examples=200, deadline=None)
def test_fragments_join_a_neighbour(text: str, options: ChunkOptions) -> None:
    text = anchors.strip(text)
    chunks = chunked(text, options=options)
    if len(chunks) > 1:
        assert all(len(chunk.content) >= options.min_characters for chunk in chunks)


def place(chunk: Chunk) -> Chunk:
    return replace(chunk, source_hash="")


@given(st.lists(block, max_size=10), heading, paragraph, sizes)
@settings(max_examples=200, deadline=None)
def test_appended_sections_leave_earlier_chunks_alone(
    blocks: list[str], title: str, body: str, options: ChunkOptions
) -> None:
    text = "\n\n".join(blocks)
    before = chunked(text, options=options)
    after = chunked(f"{text}\n\n{title}\n\n{body}\n", options=options)
    assert after[: max(0, len(before) - 2)] == before[:-2]
    is_fragment = len(f"{title}\n\n{body}") < options.min_characters
    if before and not is_fragment and len(text.split("\n\n")[-1]) >= options.min_characters:
        assert after[: len(before)] == before


@given(st.lists(st.integers(0, 60), min_size=1, max_size=8), sizes, st.booleans())
@settings(max_examples=100, deadline=None)
def test_each_turn_is_found_as_itself(
    lengths: list[int], options: ChunkOptions, summary: bool
) -> None:
    text = "# 2026-11-20\n\n## 14:02 Gateway <!-- session:fd0a branch:main -->\n\n"
    text += "- Port. <!-- grip:k3 turns:t0 -->\n\n" if summary else ""
    for number, length in enumerate(lengths):
        text += f"### 14:0{number} Question{number} <!-- turn:t{number} -->\n**Asked** {prose(length)}\n\n"
    chunks = chunked(text, options=options)
    check(text, chunks, options)
    turns = [chunk for chunk in chunks if chunk.kind == "turn"]
    assert {chunk.turns for chunk in turns} == {(f"t{number}",) for number in range(len(lengths))}
    for chunk in turns:
        (turn,) = chunk.turns
        assert chunk.heading == f"14:0{turn[1:]} Question{turn[1:]}"
        assert {f"Question{turn[1:]}"} >= set(re.findall(r"Question\d", chunk.content))
    assert all(chunk.session == "fd0a" and chunk.branch == "main" for chunk in turns)
    assert all(chunk.date == "2026-11-20" for chunk in chunks)
    assert sum(chunk.kind == "summary" for chunk in chunks) == summary


@given(st.text(st.characters(codec="utf-8") | st.sampled_from("#-`>| \t\n\r*<!"), max_size=400), sizes)
@settings(max_examples=500, deadline=None)
@example("#", SMALL)
@example("\ufeff", SMALL)
@example("```", SMALL)
def test_any_text_is_chunked(text: str, options: ChunkOptions) -> None:
    check(text, chunked(text, options=options), options)


@given(st.binary(max_size=400))
def test_any_bytes_are_decoded(data: bytes) -> None:
    text, replaced = decode(data)
    check(text, chunked(text), DEFAULT)
    try:
        assert (data.decode().removeprefix("\ufeff"), 0) == (text, replaced)
    except UnicodeDecodeError:
        assert replaced > 0
