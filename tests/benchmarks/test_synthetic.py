"""The memory that is measured on is the same everywhere, and reads like a journal."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from itertools import islice
from pathlib import Path

from memkit import anchors
from memkit.index.chunker import chunk_markdown
from memkit.settings import ChunkingSettings
from tests.benchmarks.conftest import BENCHMARKS


def digest(days: list[tuple[str, str]]) -> str:
    return hashlib.sha256(repr(days).encode()).hexdigest()


def test_same_seed_same_memory() -> None:
    from synthetic import SyntheticMemory

    days = list(islice(SyntheticMemory(7).days(), 5))
    assert days == [SyntheticMemory(7).day(number) for number in range(5)]
    assert days != list(islice(SyntheticMemory(8).days(), 5))
    assert SyntheticMemory(7).questions(5, 10) == SyntheticMemory(7).questions(5, 10)
    # Another process hashes strings differently, so sets come in another order.
    other = subprocess.run(
        [
            sys.executable,
            "-c",
            "from synthetic import *; from itertools import islice; import hashlib; "
            "print(hashlib.sha256(repr(list(islice(SyntheticMemory(7).days(), 5))).encode()).hexdigest())",
        ],
        cwd=BENCHMARKS,
        env={"PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert other.stdout.strip() == digest(days)


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


def test_words_follow_zipf() -> None:
    from collections import Counter

    from synthetic import SyntheticMemory

    text = " ".join(text for _, text in islice(SyntheticMemory().days(), 30))
    counts = Counter(text.lower().split()).most_common()
    words = [count for word, count in counts if word.isalpha()]
    assert words[0] > 10 * words[100] > 50 * words[3000] > 0


def test_a_memory_of_a_size(tmp_path: Path) -> None:
    from synthetic import SyntheticMemory, write_memory

    days = write_memory(SyntheticMemory(), tmp_path, 60)
    files = sorted(tmp_path.iterdir())
    chunks = [
        len(chunk_markdown(file.read_text(), file.name, source_hash="", options=ChunkingSettings()))
        for file in files
    ]
    assert len(files) == days
    assert sum(chunks) >= 60 > sum(chunks[:-1])
