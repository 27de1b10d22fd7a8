"""A budget of tokens, filled with the best text, nothing in it twice."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.index.blocks import Document
from memkit.index.chunk import Chunk
from memkit.index.chunker import chunk_markdown
from memkit.search.pieces import SMALLEST_PIECE, fill
from memkit.settings import ChunkingSettings, Settings
from memkit.text import CHARACTERS_PER_TOKEN
from tests.ci import examples
from tests.memory import make_chunk

REPOSITORY = Path(__file__).resolve().parents[2]

LONG_LINE = " ".join(f"w0rd{n}" for n in range(600))
FILES = {
    "README.md": (REPOSITORY / "README.md").read_text(encoding="utf-8"),
    "long.md": f"# Title\n\n## First\n\nBefore it.\n{LONG_LINE}\nBehind it.\n\n## Second\n\nThe end.\n",
}
LINES = {name: Document(text).body.split("\n") for name, text in FILES.items()}
"""As they are shown, without anchors."""

OPTIONS = st.builds(
    ChunkingSettings,
    max_characters=st.integers(400, 1500),
    min_characters=st.just(100),
    overlap_lines=st.integers(0, 5),
)


def chunked(options: ChunkingSettings) -> list[Chunk]:
    return [
        chunk
        for name, text in FILES.items()
        for chunk in chunk_markdown(text, name, source_hash="0" * 64, options=options)
    ]


def text_of(chunk: Chunk) -> set[tuple[str, int, str]]:
    """The lines of a chunk that say something, less the headings that open it."""
    lines = list(enumerate(chunk.content.split("\n"), chunk.start_line))
    while lines and (not lines[0][1].strip() or lines[0][1].startswith("#")):
        del lines[0]
    return {(chunk.source, number, line) for number, line in lines if line.strip()}


@settings(max_examples=examples(60))
@given(OPTIONS, st.randoms(use_true_random=False), st.integers(50, 12_000))
def test_the_best_that_fits(options: ChunkingSettings, chance: random.Random, tokens: int) -> None:
    ranked = list(enumerate(chunked(options)))
    chance.shuffle(ranked)
    found = list(fill(ranked, tokens))

    assert sum(len(chunk.content) for _, chunk in found) <= tokens * CHARACTERS_PER_TOKEN
    order = [number for number, _ in ranked]
    places = [order.index(number) for number, _ in found]
    assert places == sorted(set(places))
    assert found[0][0] == next(number for number, chunk in ranked if text_of(chunk))

    shown: set[tuple[str, int, str]] = set()
    for _, chunk in found:
        parts = chunk.content.split("\n")
        own = {(chunk.source, *line) for line in enumerate(parts, chunk.start_line) if line[1].strip()}
        assert own
        assert not own & shown
        shown |= own
        lines = LINES[chunk.source][chunk.start_line - 1 : chunk.end_line]  # the numbers point at the text
        assert len(parts) == len(lines)
        assert parts[1:-1] == lines[1:-1]
        assert parts[0] in lines[0] and parts[-1] in lines[-1]

    room = tokens * CHARACTERS_PER_TOKEN - sum(len(chunk.content) for _, chunk in found)
    numbers = {number for number, _ in found}
    if room >= SMALLEST_PIECE:
        for number, chunk in ranked:
            if number not in numbers and text_of(chunk) - shown:
                assert len(chunk.content) > room  # even now

    every = [chunk for _, chunk in fill(ranked, 1_000_000)]  # with room enough, all is shown once
    held = [line for chunk in every for line in text_of(chunk)]
    assert set(held) == set().union(*(text_of(chunk) for _, chunk in ranked))
    assert len(held) == len(set(held))
    words = " ".join(chunk.content for chunk in every).split()
    assert sorted(w for w in words if w.startswith("w0rd")) == sorted(LONG_LINE.split())


def test_headings_are_left_to_the_breadcrumb() -> None:
    chunk = make_chunk("# A\n\n## B\n\ntext\n\n# no opening heading\n", start_line=11, end_line=17)
    [(_, piece)] = fill([(0, chunk)], 100)
    assert piece.content == "text\n\n# no opening heading"
    assert (piece.start_line, piece.end_line) == (15, 17)


def test_a_chunk_that_does_not_fit_is_skipped_for_a_shorter_one() -> None:
    chunks = [make_chunk(letter * size, source=letter) for letter, size in zip("abcd", (300, 600, 100, 250), strict=True)]
    found = [piece.source for _, piece in fill(enumerate(chunks), 200)]
    assert found == ["a", "c", "d"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("line\n" * 100, ("line\n" * 40).rstrip()),
        ("words and " * 100, ("words and " * 20).rstrip()),
        ("x" * 900, "x" * 200),
        # A line that leaves most of the room unused is no place for the cut.
        ("**Asked** why?\n" + "because " * 100, "**Asked** why?\n" + ("because " * 23).rstrip()),
        (" " * 900 + "x", " " * 200),
    ],
)
def test_the_best_is_cut_rather_than_left_out(content: str, expected: str) -> None:
    end = 1 + content.rstrip().count("\n")
    [(_, piece)] = fill([(0, make_chunk(content, end_line=end))], 50)
    assert piece.content == expected
    assert (piece.start_line, piece.end_line) == (1, 1 + expected.count("\n"))


def test_nothing_to_fill_with() -> None:
    assert list(fill([], 100)) == []
    assert list(fill([(0, make_chunk("# Heading\n\n")), (1, make_chunk("\n"))], 100)) == []
    chunks = [make_chunk("one line", source=name) for name in ("a.md", "b.md", "a.md")]
    assert [number for number, _ in fill(enumerate(chunks), 100)] == [0, 1]


def test_a_prompt_that_only_a_heading_has_is_within_the_budget() -> None:
    text = "# 2026-11-20\n\n## 14:02 Ports <!-- session:aaaa -->\n\n### 14:02 Which port? <!-- turn:8ad3df7f -->\n**Answered** 7443.\n"
    (chunk,) = chunk_markdown(text, "2026-11-20.md", source_hash="", options=Settings().chunking)
    ((_, shown),) = fill([(0, chunk)], 100)
    assert shown.content == "### 14:02 Which port?\n**Answered** 7443."
    assert chunk.lexical_text == "2026-11-20\nWhich port?\n 7443."
