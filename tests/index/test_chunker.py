from __future__ import annotations

import hashlib
import re
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memkit import anchors
from memkit.index.chunk import Chunk
from memkit.index.chunker import chunk_markdown, decode
from memkit.settings import ChunkingSettings
from tests.ci import examples

DEFAULT = ChunkingSettings()
SMALL = ChunkingSettings(max_characters=240, min_characters=40, overlap_lines=2)
HASH = "0" * 64


def chunked(text: str, source: str = "notes.md", options: ChunkingSettings = DEFAULT) -> list[Chunk]:
    return chunk_markdown(text, source, source_hash=HASH, options=options)


def prose(words: int, word: str = "word") -> str:
    return " ".join(f"{word}{number}" for number in range(words))


def check(text: str, chunks: list[Chunk], options: ChunkingSettings) -> None:
    """What holds for every text."""
    lines = [anchors.strip(line.removesuffix("\r")) for line in text.split("\n")]
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
    for before, after in pairwise(chunks):
        assert before.start_line <= after.start_line
        assert before.end_line <= after.end_line


# Text that must not be read as structure says "hidden" or, in a fence, "fenced" behind its `#`.
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
code = st.lists(st.sampled_from(["# fenced", "", "x = 1", "## fenced", "- no item"]), max_size=8)
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
oddities = st.sampled_from([
    "\x0c", "a\u2028b", "a\rb", "\x00", "[a]: https://example.org", "#", "####### seven", "#no heading", "---",
    "- + " * 20 + "deep", ">" * 40 + " deep", "-\n\n  x", "* ", "\t# hidden", "<!-- turn:8ad3df7f -->",
    "text <!-- grip:k3f9a1 turns:8ad3df7f,77c1e09b --> text",
])  # fmt: skip
block = st.one_of(
    heading, heading, setext, paragraph, fence, indented, list_block, nested_list, table, quote,
    comment, html, long_line, unbroken, oddities,
)  # fmt: skip
front_matter = st.sampled_from(["", "---\ntitle: x\n# hidden\n\ntags: [a]\n---\n"])
ending = st.sampled_from(["", "\n", "\n\n```\n# fenced\n\n## fenced", "\n\n<!-- open\n\n# hidden"])
documents = st.builds(
    lambda front, blocks, gap, ending: front + gap.join(blocks) + ending, front_matter,
    st.lists(block, max_size=12), st.sampled_from(["\n\n", "\n\n\n"]), ending,
)  # fmt: skip
sizes = st.builds(
    ChunkingSettings,
    max_characters=st.integers(120, 600),
    min_characters=st.integers(0, 30),
    overlap_lines=st.integers(0, 3),
)


@given(documents, sizes, st.booleans())
@settings(max_examples=examples(150))
def test_what_holds_for_every_document(text: str, options: ChunkingSettings, windows: bool) -> None:
    """No line is lost, code and comments hold no headings, fences are not cut, fragments join a neighbor."""
    chunks = chunked(text, options=options)
    check(text, chunks, options)
    for chunk in chunks:
        assert not re.search("hidden|fenced", chunk.breadcrumb)
        assert not re.match(r"[ \t]*#+ fenced", chunk.content)
        marks = re.findall(r"^ *(?:```|~~~)", chunk.content, re.MULTILINE)
        assert len(marks) % 2 == 0 or text.endswith("```\n# fenced\n\n## fenced")
    if windows:
        assert chunked(re.sub("(?<!\r)\n", "\r\n", text), options=options) == chunks
    stripped = chunked(anchors.strip(text), options=options)
    assert len(stripped) <= 1 or all(len(chunk.content) >= options.min_characters for chunk in stripped)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 120)), min_size=1, max_size=12), sizes)
@settings(max_examples=examples(100))
def test_breadcrumbs_name_headings_above(shape: list[tuple[int, int]], options: ChunkingSettings) -> None:
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


@given(st.lists(block, max_size=10), heading, paragraph, sizes)
@settings(max_examples=examples(100))
# Without its anchor the last section is a fragment.
@example(
    ["# port", "<!-- turn:8ad3df7f -->"], "# port", "port", ChunkingSettings(max_characters=120, min_characters=7)
)
def test_earlier_chunks_stay(blocks: list[str], title: str, body: str, options: ChunkingSettings) -> None:
    text = "\n\n".join(blocks)
    before = chunked(text, options=options)
    after = chunked(f"{text}\n\n{title}\n\n{body}\n", options=options)
    assert after[: max(0, len(before) - 2)] == before[:-2]
    is_fragment = len(f"{title}\n\n{body}") < options.min_characters
    # Anchors are no text of a chunk, so they do not count.
    last = anchors.strip(text).rstrip().split("\n\n")[-1]
    if before and not is_fragment and len(last) >= options.min_characters:
        assert after[: len(before)] == before


@given(st.lists(st.integers(0, 60), min_size=1, max_size=8), sizes, st.booleans())
@settings(max_examples=examples(100))
def test_each_turn_is_its_own_chunk(lengths: list[int], options: ChunkingSettings, summary: bool) -> None:
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


@given(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("#-`>| \t\n\r*<!"), max_size=400), sizes)
@settings(max_examples=examples(200))
@example("#", SMALL)
@example("\ufeff", SMALL)
@example("```", SMALL)
def test_any_text_is_chunked(text: str, options: ChunkingSettings) -> None:
    check(text, chunked(text, options=options), options)


@given(st.binary(max_size=400))
@settings(max_examples=examples(100))
@example(b"\xef\xbb\xbf# A")
@example(b"a\xffb\xe2\x82")
@example("own \ufffd".encode() + b"\xe0")
def test_any_bytes_are_decoded(data: bytes) -> None:
    text, replaced = decode(data)
    check(text, chunked(text), DEFAULT)
    try:
        assert (data.decode().removeprefix("\ufeff"), 0) == (text, replaced)
    except UnicodeDecodeError:
        assert replaced == text.count("\ufffd") - data.count("\ufffd".encode()) > 0


DAY = """\
# 2026-11-20

## 14:02 Staging gateway port  <!-- session:fd0aee29 branch:feature/gw -->

- Decided: the staging gateway listens on 7443. <!-- grip:k3f9a1 turns:8ad3df7f -->
- Changed `deploy/gateway.yaml`; 12 tests pass. <!-- grip:p20c44 turns:8ad3df7f,77c1e09b -->

### 14:02 Which port does the staging gateway use? <!-- turn:8ad3df7f -->
**Asked** Which port does the staging gateway use?
**Did** Read deploy/gateway.yaml · Bash `pytest -q` → 12 passed
**Answered** 7443, because 443 is taken:

```yaml
# gateway
port: 7443
```

### 14:09 ok <!-- turn:77c1e09b -->
**Asked** ok

## 16:30 Release notes <!-- session:aa01 branch:main -->

### 16:30 Write them <!-- turn:0b5e -->
**Asked** Write them
"""


def test_a_day_of_the_journal() -> None:
    summary, second, asked, agreed, notes = chunked(DAY, ".memkit/memory/2026-11-20.md")
    assert [(c.start_line, c.end_line) for c in (summary, second, asked, agreed, notes)] == [
        (1, 5), (6, 6), (8, 16), (18, 19), (21, 24),
    ]  # fmt: skip
    assert summary.content == anchors.strip("\n".join(DAY.split("\n")[:5]))
    assert second.content == anchors.strip(DAY.split("\n")[5])
    assert (summary.kind, summary.turns, summary.citations) == ("summary", ("8ad3df7f",), ("k3f9a1",))
    assert (second.kind, second.turns, second.citations) == ("summary", ("8ad3df7f", "77c1e09b"), ("p20c44",))
    assert second.breadcrumb == summary.breadcrumb
    assert summary.breadcrumb == "2026-11-20 > 14:02 Staging gateway port"
    assert summary.heading == "14:02 Staging gateway port"
    assert (asked.kind, asked.turns, asked.level) == ("turn", ("8ad3df7f",), 3)
    assert asked.breadcrumb == f"{summary.breadcrumb} > {asked.heading}"
    assert summary.text == summary.content.removeprefix("# 2026-11-20\n\n").removeprefix("## 14:02 Staging gateway port\n\n")
    assert asked.text == asked.content.removeprefix(f"### {asked.heading}\n")  # a whole turn
    assert asked.lexical_text == f"2026-11-20\n{asked.text.replace('**Asked**', '').replace('**Did**', '').replace('**Answered**', '')}"
    assert (agreed.kind, agreed.turns, agreed.session) == ("turn", ("77c1e09b",), "fd0aee29")
    assert (notes.kind, notes.turns, notes.session) == ("turn", ("0b5e",), "aa01")
    assert [chunk.branch for chunk in (summary, asked, agreed, notes)] == ["feature/gw"] * 3 + ["main"]
    assert {chunk.date for chunk in (summary, asked, agreed, notes)} == {"2026-11-20"}
    assert {chunk.domain for chunk in (summary, asked, agreed, notes)} == {""}


def test_the_pieces_of_a_long_turn_are_that_turn() -> None:
    answer = "\n\n".join(prose(40, f"p{number}w") for number in range(20))
    text = f"# 2026-11-20\n\n## A <!-- session:s -->\n\n### B <!-- turn:t1 -->\n{answer}\n\n"
    text += "### C <!-- turn:t2 -->\nshort\n"
    chunks = chunked(text)
    assert len(chunks) > 3
    assert {chunk.turns for chunk in chunks[:-1]} == {("t1",)}
    assert {chunk.breadcrumb for chunk in chunks[:-1]} == {"2026-11-20 > A > B"}
    assert chunks[-1].turns == ("t2",)


def test_the_id_follows_the_design() -> None:
    (chunk,) = chunked("# A\n\ntext\n", "docs/a.md")
    content_hash = hashlib.sha256(b"# A\n\ntext").hexdigest()[:16]
    assert chunk.content_hash == content_hash
    name = f"markdown:docs/a.md:1:3:{content_hash}:all-MiniLM-L6-v2"
    assert chunk.id("all-MiniLM-L6-v2") == hashlib.sha256(name.encode()).hexdigest()
    assert chunk.source_hash == HASH


@pytest.mark.parametrize(
    ("source", "domain", "instruction", "date"),
    [
        ("notes.md", "", False, ""),
        ("src/payments/notes.md", "payments", False, ""),
        (".memkit/memory/2026-11-20.md", "", False, "2026-11-20"),
        ("memory/2026-11-20.md", "", False, "2026-11-20"),
        ("memory/2026-11-20-evening.md", "memory", False, "2026-11-20"),
        ("memory/2026-13-20.md", "", False, ""),
        ("src/memory/2026-11-20.md", "memory", False, "2026-11-20"),
        (".github/style.instructions.md", ".github", True, ""),
    ],
)
def test_date_and_kind_from_the_file_name(source: str, domain: str, instruction: bool, date: str) -> None:
    (chunk,) = chunked("text <!-- grip:a turns:b -->", source)
    assert (chunk.domain, chunk.instruction, chunk.date) == (domain, instruction, date)
    assert chunk.kind == ("instruction" if instruction else "summary")


def test_a_date_heading_overrides_the_file_name() -> None:
    body = prose(30)
    chunks = chunked(f"# 2026-11-20\n\n{body}\n\n# 2026-02-30\n\n{body}", "2026-01-01.md")
    assert [chunk.date for chunk in chunks] == ["2026-11-20", "2026-01-01"]


def test_headings_of_both_kinds_bound_chunks() -> None:
    body = prose(30)
    text = f"{body}\n\nA\nb\n===\n{body}\n\nC\n---\n{body}\n\n###### D ##\n{body}\n\n## E\n{body}\n"
    chunks = chunked(text)
    assert [(chunk.level, chunk.breadcrumb, chunk.start_line) for chunk in chunks] == [
        (0, "", 1), (1, "A b", 3), (2, "A b > C", 8), (6, "A b > C > D", 12), (2, "A b > E", 15),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "block",
    [
        "```\n# hidden\n\n# hidden\n```", "~~~~ text\n```\n# hidden\n~~~\n# hidden\n~~~~",
        "> # hidden\n> text", "- # hidden\n\n  # hidden", "1. a\n\n   ```\n   # hidden\n   ```",
        "    # hidden\n\n    # hidden", "<!-- a\n\n# hidden\n-->", "<script>\n\n# hidden\n</script>",
        "- + " * 30 + "text", "| a | b |\n|---|---|\n| # hidden | 2 |\n---",
    ],
)  # fmt: skip
def test_only_top_level_headings_bound(block: str) -> None:
    body = prose(30)
    chunks = chunked(f"# A\n\n{block}\n\n{body}\n\n# B\n\n{body}\n")
    assert [chunk.breadcrumb for chunk in chunks] == ["A", "B"]
    assert block in chunks[0].content


def test_a_fence_left_open_runs_to_the_end() -> None:
    text = f"# A\n\n{prose(30)}\n\n```\n" + f"# code {prose(9)}\n\n" * 40
    chunks = chunked(text)
    assert [chunk.start_line for chunk in chunks] == [1, 5]
    assert chunks[1].heading == "A"


def test_a_long_section_is_cut_at_blank_lines_with_two_lines_of_overlap() -> None:
    paragraphs = [f"{prose(12, f'a{n}b')}\n{prose(12, f'c{n}d')}" for n in range(30)]
    chunks = chunked("# A\n\n" + "\n\n".join(paragraphs))
    lines = ("# A\n\n" + "\n\n".join(paragraphs)).split("\n")
    assert len(chunks) > 2
    for before, after in pairwise(chunks):
        assert after.start_line == before.end_line - 1
        assert lines[before.end_line] == ""
        assert len(after.content) <= 1500


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        # The second line before would make more than half a chunk of overlap.
        ([400] * 6, [(1, 5), (5, 9), (9, 11)]),
        # The third piece would repeat all that is new in the second.
        ([900, 500, 400, 700], [(1, 3), (3, 5), (7, 7)]),
        # No room at all.
        ([1490] * 3, [(1, 1), (3, 3), (5, 5)]),
    ],
)
def test_overlap_of_long_lines(sizes: list[int], expected: list[tuple[int, int]]) -> None:
    chunks = chunked("\n\n".join(str(number) * size for number, size in enumerate(sizes)))
    assert [(chunk.start_line, chunk.end_line) for chunk in chunks] == expected


def test_code_and_headings_are_no_overlap() -> None:
    fence = "```\n" + "x = 1\n" * 240 + "```"
    for before in (f"{fence}\n\n", f"# {prose(20)}\n\n"):
        assert chunked(f"{before}{fence}\n")[1].content == fence
    # The overlap is dropped to fit the neighbor of a fragment.
    first, second = chunked("\n".join(letter * 298 for letter in "abcde") + "\n\nshort\n\n" + "f" * 900)
    assert (first.end_line, second.start_line, second.end_line) == (5, 7, 9)


def test_a_fence_stays_with_its_paragraph_unless_it_is_over_the_limit() -> None:
    fence = "```\n" + "x = 1\n" * 60 + "```"
    first, second = chunked(f"{prose(200)}\n\nLike so:\n\n{fence}\n")
    assert (first.content, second.content[-len(fence) - 10 :]) == (prose(200), f"Like so:\n\n{fence}")
    fence = "```\n" + "x = 1\n\n" * 900 + "```"
    before, code, after = chunked(f"# A\n\n{prose(30)}\n\n{fence}\n\n{prose(30)}\n")
    assert (before.content, code.content, after.content) == (f"# A\n\n{prose(30)}", fence, prose(30))


def test_a_block_that_fits_is_not_cut() -> None:
    items = "\n\n".join(f"- {prose(18)}" for _ in range(10))
    code = "\n\n".join(f"    {prose(18)}" for _ in range(10))
    comment = "<!--\n" + "\n\n".join(prose(18) for _ in range(10)) + "\n-->"
    for block in (items, code, comment):
        contents = [chunk.content for chunk in chunked(f"{prose(100)}\n\n{block}\n\n{prose(100)}")]
        assert any(block in content for content in contents)


def test_a_block_over_the_limit_is_cut_between_lines_or_at_blank_ones() -> None:
    kinds = [("", "- {0} {1}"), ("| a | b |\n|---|---|\n", "| {0} | {1} |"), ("", "{0} {1}"), ("", "> {0} {1}")]
    for head, line in kinds:
        lines = [line.format(number, prose(18)) for number in range(40)]
        chunks = chunked(head + "\n".join(lines))
        assert len(chunks) > 3
        assert {part for chunk in chunks for part in chunk.content.split("\n")} >= set(lines)
        assert all(len(chunk.content) <= 1500 for chunk in chunks)
    stanzas = [f"{prose(15, f'a{n}b')}\n    {prose(15, f'c{n}d')}" for n in range(20)]
    for block in ("<!--\n{0}\n-->", "    {0}", "<script>\n{0}\n</script>"):
        chunks = chunked(block.format("\n\n    ".join(stanzas)))
        assert len(chunks) > 2
        assert all(sum(stanza in chunk.content for chunk in chunks) == 1 for stanza in stanzas)


def test_an_empty_list_marker_stays_with_its_item() -> None:
    text = "-\n  " + "\n  ".join(prose(30, f"i{n}w") for n in range(16))
    chunks = chunked(text)
    check(text, chunks, DEFAULT)
    assert len(chunks) > 1
    assert chunks[0].content.startswith("-\n  i0w0")


def test_a_fragment_next_to_code_joins_it_over_the_limit() -> None:
    fence = "```\n" + "x = 1\n" * 400 + "```"
    for text in (f"# A\n\n{fence}", f"{fence}\n\nend", f"like so:\n{fence}"):
        assert [chunk.content for chunk in chunked(text)] == [text]


def test_a_line_of_a_megabyte_without_words() -> None:
    unlike = "".join(f"{number:07}" for number in range(150_000))
    chunks = chunked(unlike)
    assert "".join(chunk.content for chunk in chunks) == unlike
    assert len({chunk.id("m") for chunk in chunks}) == len(chunks)
    assert {chunk.content.strip("a") for chunk in chunked("a" * 1_000_000)} == {""}


def test_front_matter_is_kept_whole_and_holds_no_heading() -> None:
    front = "---\ntitle: a\n# hidden\n\n" + "".join(f"key{n}: {prose(3)}\n" for n in range(20)) + "---"
    first, second = chunked(f"{front}\n# A\n\n{prose(200)}")
    assert (first.content, first.level) == (front, 0)
    assert (second.breadcrumb, second.start_line) == ("A", 26)


BODY = prose(40)


@pytest.mark.parametrize(("text", "expected"), [
    # A heading alone joins its child, and one with nothing before it what follows.
    (f"# A\n\n## B\n\n### C\n\n{prose(100)}", [("A > B > C", "# A")]),
    (f"# A\n\n# B\n\n{BODY}", [("B", "# A")]),
    # A fragment without children joins the section before.
    (f"# A\n\n## B\n\n{BODY}\n\n## C\n\nshort\n\n## D\n\n{BODY}", [("A > B", "# A"), ("A > D", "## D")]),
    # Fragments gather under what they have in common.
    ("# P\n\n" + "".join(f"## {n}\n\nlistens on {n}443 {prose(8)}\n\n" for n in range(4)), [("P", "# P"), ("P", "## 2")]),
    # The next chapter does not gather with the last section, an empty heading not with the section before.
    (f"# A\n\n## B\n\n{BODY}\n\n### C\n\nc\n\n## D\n\nd\n\n### E\n\n{BODY}\n", [("A > B", "# A"), ("A > D > E", "## D")]),
    (f"# A\n\n{BODY}\n\n## B\n\nb\n\n## C\n\n### D\n\n{BODY}\n", [("A", "# A"), ("A > C > D", "## C")]),
    # A rule at the start is no front matter.
    (f"---\n# A\n\n{BODY}\n\n---\n\n# B\n\n{BODY}\n", [("A", "---"), ("B", "# B")]),
])  # fmt: skip
def test_where_fragments_go(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(chunk.breadcrumb, chunk.content.split("\n")[0]) for chunk in chunked(text)] == expected


@pytest.mark.parametrize(("text", "expected"), [
    # A short turn under a short note keeps its name; a summary is no part of a turn.
    ("## A <!-- session:s -->\nnote\n\n### B <!-- turn:t -->\nyes\n", [("s", ("t",), "B", "turn")]),
    (
        "## A <!-- session:s -->\n- b <!-- grip:k turns:t -->\n\n### B <!-- turn:t -->\nyes\n",
        [("s", ("t",), "A", "summary"), ("s", ("t",), "B", "turn")],
    ),
    # Nothing crosses sessions and turns.
    (
        "# 2026-11-20\n\n" + "".join(f"## A <!-- session:s{n} -->\nnote\n\n" for n in range(3)),
        [(f"s{n}", (), "A", "note") for n in range(3)],
    ),
    (
        f"## A <!-- session:s1 -->\n\n{prose(50)}\n\n## B <!-- session:s2 -->\n\n"
        "### C <!-- turn:t1 -->\na\n\n### D\nb\n\n#### E\nc\n",
        [("s1", (), "A", "note"), ("s2", ("t1",), "C", "turn"), ("s2", (), "D", "note")],
    ),
])  # fmt: skip
def test_fragments_of_turns_and_sessions(text: str, expected: list[tuple[object, ...]]) -> None:
    assert [(chunk.session, chunk.turns, chunk.heading, chunk.kind) for chunk in chunked(text)] == expected


def test_lines_are_counted_as_editors_do() -> None:
    text = f"a\u2028b\x0cc\rd\r\n\r\n# A\r\n\r\n{prose(50)}\r\n\x0c\r\nend"
    first, second = chunked(text, options=ChunkingSettings(min_characters=0))
    assert (first.content, first.start_line, first.end_line) == ("a\u2028b\x0cc\rd", 1, 1)
    assert (second.heading, second.start_line, second.end_line) == ("A", 3, 7)
    assert "\r" not in second.content


def test_anchors_in_code_are_not_ours_and_others_are_no_text() -> None:
    text = "## A\n\n```\n- b <!-- grip:k turns:t1 -->\n```\n\n- c <!-- turns:t2,t3 -->\n"
    (chunk,) = chunked(text)
    assert (chunk.kind, chunk.turns) == ("note", ("t2", "t3"))
    assert chunked("<!-- turn:8ad3df7f -->\n\n \t\n") == []
    (chunk,) = chunked(f"<!-- turn:8ad3df7f -->\n{prose(30)}\n<!-- grip:k -->\n")
    assert (chunk.start_line, chunk.end_line) == (2, 2)


def test_a_heading_without_end_is_shortened() -> None:
    chunks = chunked(f"# {prose(2000)}\n\n{prose(200)}")
    assert {len(chunk.heading) for chunk in chunks} == {200}
    check(f"# {prose(2000)}\n\n{prose(200)}", chunks, DEFAULT)
