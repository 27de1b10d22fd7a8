"""The pieces of a turn are one result."""

from __future__ import annotations

import pytest

from memkit.embedding import Embedder
from memkit.index.chunk import Chunk
from memkit.search.pieces import MOST_JOINED, joined
from memkit.search.results import Result, SearchRequest
from tests.memory import Memory, make_chunk
from tests.search.corpora import embedded

QUESTION = "which port does the staging gateway use"


def piece(first: int, last: int, letter: str = "x", length: int = 0) -> Chunk:
    lines = [f"{letter} {number}" for number in range(first, last + 1)]
    return make_chunk("\n".join(lines) + " " * length, start_line=first, end_line=last)


def test_pieces_are_joined_in_the_order_of_the_text() -> None:
    chunk = joined([(1, piece(4, 5)), (0, piece(1, 2)), (3, piece(9, 9))])
    assert chunk.content == "x 1\nx 2\n\nx 4\nx 5\n…\nx 9"
    assert (chunk.start_line, chunk.end_line) == (1, 9)


def test_the_best_pieces_are_joined_as_far_as_they_fit() -> None:
    best, second, third = piece(9, 9), piece(4, 4, "y", MOST_JOINED - 50), piece(1, 1, "z", 100)
    assert joined([(2, best), (1, second), (0, third)]).content.startswith("y 4")
    long = piece(9, 9, length=2 * MOST_JOINED)
    assert joined([(2, long), (0, third)]) is long


def test_pieces_of_one_long_line_keep_their_order_and_show_gaps() -> None:
    pieces = [(number, make_chunk(f"part {number}", start_line=7, end_line=7)) for number in range(4)]
    assert joined([pieces[1], pieces[0]]).content == "part 0 part 1"
    assert joined([pieces[3], pieces[1]]).content == "part 1\n…\npart 3"


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory, real_embedder: Embedder) -> Memory:
    """One turn with a long answer, all about the question, and three short ones about parts of it."""
    told = [
        f"Step {number}: the staging gateway uses port {7440 + number}, because "
        + "it must. " * 150
        for number in range(4)
    ]
    turns = [("aaaaaaa0", QUESTION, "\n\n".join(told))]
    turns += [
        (f"bbbbbbb{n}", f"Is the gateway {word}?", f"The gateway is {word}.")
        for n, word in enumerate(("up", "new", "red"))
    ]
    text = "".join(
        f"### 09:0{number} {asked} <!-- turn:{name} -->\n**Asked** {asked}\n\n**Answered** {answer}\n\n"
        for number, (name, asked, answer) in enumerate(turns)
    )
    text = f"# 2026-11-20\n\n## 09:00 Work <!-- session:5e550001 -->\n\n{text}"
    return embedded(tmp_path_factory.mktemp("pieces"), {"2026-11-20.md": text}, real_embedder)


def found(memory: Memory, **options: object) -> list[Result]:
    return memory.searcher().answer(SearchRequest(QUESTION, minimum=0, **options)).results  # type: ignore[arg-type]


def test_a_turn_has_one_place(memory: Memory) -> None:
    results = found(memory, k=10)
    assert sorted(one.chunk.turns[0] for one in results) == ["aaaaaaa0", "bbbbbbb0", "bbbbbbb1", "bbbbbbb2"]
    long = results[0]
    pieces = [n for n, chunk in enumerate(memory.snapshot.chunks()) if chunk.turns == ("aaaaaaa0",)]
    ids = {memory.snapshot.id(n)[:12] for n in pieces}
    assert len(ids) >= 4
    assert long.chunk_id in ids
    assert {long.id, *(one["id"] for one in long.merged)} == {"aaaaaaa0"}
    assert {one["kind"] for one in long.merged} == {"turn"}
    assert long.turn_entries == []  # expanding it shows all of it
    assert [one.chunk.turns for one in found(memory, k=2)] == [one.chunk.turns for one in results[:2]]
    filled = found(memory, budget=4000)  # takes the pieces one by one
    assert [one.chunk.turns[0] for one in filled].count("aaaaaaa0") >= 4
    assert not any(one.merged for one in filled)
