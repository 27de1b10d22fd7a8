"""Columns of a snapshot."""

from __future__ import annotations

import dataclasses
from datetime import date
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.index.chunk import Chunk
from memkit.index.segment import DTYPE, NAMED, join_columns, make_columns
from tests.ci import examples
from tests.memory import DAYS, make_chunk, make_memory

NAMES = st.sampled_from(["", "a", "b", "ä/ö"])
CHUNKS = st.builds(
    make_chunk, content=st.text(max_size=5), date=st.dates().map(date.isoformat) | st.just(""), session=NAMES,
    kind=st.sampled_from(["turn", "summary", "instruction", "note"]),
    turns=st.sampled_from([(), ("t1",), ("t1", "t2")]), citations=st.sampled_from([(), ("g1",)]),
    branch=NAMES, source=NAMES, domain=NAMES,
)  # fmt: skip


@settings(max_examples=examples(100))
@given(st.lists(CHUNKS, max_size=8))
def test_one_row_per_chunk(chunks: list[Chunk]) -> None:
    columns, names = make_columns(chunks)
    assert columns.dtype == DTYPE
    assert len(columns) == len(chunks)
    assert set(names) == set(NAMED)
    for row, chunk in zip(columns, chunks, strict=True):
        assert row["length"] == len(chunk.content)
        assert row["day"] == (date.fromisoformat(chunk.date).toordinal() if chunk.date else 0)
        for name in NAMED:
            found = "" if row[name] == -1 else names[name][row[name]]
            assert found == getattr(chunk, name)
    for name in NAMED:
        assert "" not in names[name]
        assert len(set(names[name])) == len(names[name])
    entries = columns["entry"].tolist()  # the pieces of a turn are one entry
    assert sorted(set(entries)) == list(range(len(set(entries))))
    for one in range(len(chunks)):
        for other in range(one):
            a, b = chunks[one], chunks[other]
            same = (a.source, a.session, a.turns) == (b.source, b.session, b.turns)
            assert (entries[one] == entries[other]) == (a.kind == b.kind == "turn" and same)


@settings(max_examples=examples(100))
@given(st.lists(st.lists(CHUNKS, max_size=5), max_size=4), st.data())
def test_joined_columns_equal_columns_made_at_once(files: list[list[Chunk]], data: st.DataObject) -> None:
    """Parts made alone, or cut out of a larger text, whose numbers are other ones."""
    parts, chunks = [], []
    for number, file in enumerate(files):
        own = [dataclasses.replace(chunk, source=f"{number}") for chunk in file]
        chunks += own
        if data.draw(st.booleans(), "cut out"):
            others = [make_chunk(source="before", session="b", domain="d", branch="x")] * 2
            columns, names = make_columns([*others, *own, make_chunk(source="after", session="a")])
            parts.append((columns[2:-1], names))
        else:
            parts.append(make_columns(own))
    joined, expected = join_columns(parts), make_columns(chunks)
    assert joined[0].tolist() == expected[0].tolist()
    assert joined[1] == expected[1]
    assert joined[0].dtype == DTYPE


def test_chunks_of_real_markdown(tmp_path: Path) -> None:
    long = "A sentence of the answer to this. " * 200
    name, text = next(iter(DAYS.items()))
    memory = make_memory(tmp_path, {name: text.replace("It listens", long + "It listens")})
    memory.write("docs/notes.md", f"# Notes\n\n{long}")
    memory.sync()
    snapshot = memory.snapshot
    chunks = snapshot.chunks()
    assert (len(snapshot.columns), snapshot.root) == (len(chunks), memory.project.root)
    turns = [chunk.turns for chunk in chunks]
    for position, chunk in enumerate(chunks):
        row = snapshot.columns[position]
        assert snapshot.names["source"][row["source"]] == chunk.source
        same = np.flatnonzero(snapshot.columns["entry"] == row["entry"]).tolist()
        if chunk.kind == "turn":
            assert same == [n for n, other in enumerate(turns) if other == chunk.turns]
        else:
            assert same == [position]
            assert row["day"] == 0
    assert max(turns.count(turn) for turn in turns if turn) > 3
    assert snapshot.names["domain"] == ["docs"], (snapshot.names["source"], memory.said)
