"""Extracts repeat their turns, so what searches find is the same with and without them."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from memkit import anchors
from memkit.browse.expand import expand_known
from memkit.embedding import Embedder
from memkit.index import open_chunks
from memkit.index.chunk import Chunk
from memkit.index.chunker import chunk_markdown
from memkit.journal.day_file import DayFile
from memkit.journal.day_summaries import summarize, turns_of
from memkit.journal.extracts import extract_line
from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.settings import ChunkingSettings
from tests.memory import DAYS, CountingEmbedder, Memory, make_memory

QUERIES = ["Which port does the gateway use?", "slow build", "ERR_404", "Who is on call?", "gateway.yaml", "09:00 Work"]


def add_extracts(memory: Memory) -> int:
    """Put an extract above the turns of each session; return how many."""
    journal = Journal(memory.project)
    for day in journal.days():
        content = journal.day(day)
        (session,) = content.sessions()
        turns = [one.section.pairs["turn"] for one in turns_of(content, session)]
        lines = [
            extract_line("Decided: Let's move the staging gateway to port 7443 instead.", turns),
            extract_line("Edited: deploy/gateway.yaml ×3, build.py", turns[:1]),
        ]
        assert journal.summarize(day, turns, lines, key="extract")
    return len(journal.days())


def found(memory: Memory) -> list[list[tuple[object, ...]]]:
    """What searches find in which order, with all scores; IDs depend on line numbers."""
    return [
        [
            (r.chunk.content, r.chunk.turns, r.chunk.breadcrumb, r.score, r.lexical, r.dense, r.context, r.relevance)
            for r in memory.search(query).results
        ]
        for query in QUERIES
    ]


def test_searches_find_the_same(tmp_path: Path, model_home: Home, real_embedder: Embedder) -> None:
    embedder = CountingEmbedder(real_embedder)
    memory = make_memory(tmp_path, DAYS, embedder=embedder, models=model_home.models)
    memory.sync()
    before = found(memory)
    assert all(before)
    embedder.texts.clear()
    assert add_extracts(memory) == len(DAYS)
    memory.sync()
    assert embedder.texts == []  # nothing is new
    assert found(memory) == before


def test_results_and_sections_with_extracts(tmp_path: Path) -> None:
    memory = make_memory(tmp_path, DAYS)
    add_extracts(memory)
    memory.sync()
    for row in memory.snapshot.rows():  # the lines of results are those of the file
        lines = memory.path(Path(row.chunk.source).name).read_text().split("\n")
        held = "\n".join(anchors.strip(line) for line in lines[row.chunk.start_line - 1 : row.chunk.end_line])
        kept = re.sub(r"\n- (?:Decided|Edited): .*", "", held).replace("\n\n\n", "\n\n")
        assert kept == row.chunk.content
    chunks = open_chunks(memory.project, memory.home, memory.settings)
    assert chunks is not None
    names = [chunks.id(n) for n in range(len(chunks))]
    shown = [expand_known(memory.project, memory.home, lambda one: memory.settings, name)["content"] for name in names]
    assert sum("- Edited: deploy/gateway.yaml ×3, build.py" in one for one in shown) == len(DAYS)
    path = memory.path("2026-11-18.md")
    path.write_text(path.read_text().replace("×3, build.py", "×3 for Priya's zebra"))
    memory.sync()
    (first, *_) = memory.search("Priya's zebra").results  # an edited line is the user's
    assert "\n- Edited: deploy/gateway.yaml ×3 for Priya's zebra\n" in first.chunk.content


def plain(chunks: list[Chunk]) -> list[dict[str, object]]:
    """The chunks without what an added line changes."""
    moving = ("start_line", "end_line")
    return [{k: v for k, v in dataclasses.asdict(chunk).items() if k not in moving} for chunk in chunks]


@given(
    st.lists(st.integers(1, 400), min_size=1, max_size=4),
    st.lists(st.integers(1, 60), min_size=1, max_size=4),
    st.sampled_from([ChunkingSettings(), ChunkingSettings(max_characters=240, min_characters=40)]),
)
def test_chunks_are_the_same(words: list[int], sizes: list[int], options: ChunkingSettings) -> None:
    text = "# 2026-11-20\n\n## 09:00 Work <!-- session:a -->\n"
    for number, count in enumerate(words):
        said = " ".join(f"word{n}" for n in range(count))
        text += f"\n### 09:{number:02d} Turn {number} <!-- turn:t{number} -->\n**Asked** {said}\n"
    content = DayFile(text)
    names = [f"t{number}" for number in range(len(words))]
    lines = [extract_line("Open: " + "x " * size, names) for size in sizes]
    assert summarize(content, names, lines, key="extract")
    before, after = (
        chunk_markdown(one, "2026-11-20.md", source_hash="0" * 64, options=options)
        for one in (text, content.render())
    )
    assert plain(before) == plain(after)
