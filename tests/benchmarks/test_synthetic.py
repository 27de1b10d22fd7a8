"""The memory that is measured on is the same at each run, and reads like a journal."""

from __future__ import annotations

from itertools import islice

from memkit import anchors
from memkit.index.chunker import chunk_markdown
from memkit.settings import ChunkingSettings


def test_same_seed_same_memory() -> None:
    from synthetic import SyntheticMemory

    days = list(islice(SyntheticMemory(7).days(), 5))
    assert days == [SyntheticMemory(7).day(number) for number in range(5)]
    assert days != list(islice(SyntheticMemory(8).days(), 5))
    assert SyntheticMemory(7).questions(5, 10) == SyntheticMemory(7).questions(5, 10)


def test_it_reads_like_a_journal() -> None:
    from synthetic import SyntheticMemory

    chunks, turns = [], 0
    for name, text in islice(SyntheticMemory().days(), 10):
        turns += sum("turn" in anchors.parse(line) for line in text.splitlines())
        chunks += chunk_markdown(text, name, source_hash="", options=ChunkingSettings())
    assert {chunk.kind for chunk in chunks if chunk.turns} == {"turn"}
    assert len({turn for chunk in chunks for turn in chunk.turns}) == turns
    sessions = {(chunk.date, chunk.session) for chunk in chunks if chunk.session}
    assert len({day for day, _ in sessions}) == 10
    assert len(sessions) >= 20
    assert any("```python" in chunk.content for chunk in chunks)
