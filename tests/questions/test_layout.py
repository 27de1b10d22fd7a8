"""What is put before a model: quoted, dated, within its budget."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.index.chunk import Chunk
from memkit.questions.layout import lay_out
from memkit.search.overview import Line
from memkit.search.results import Answer, Result
from tests.ci import examples
from tests.memory import make_chunk

CHUNK = make_chunk(
    content="The gateway listens on 7443.", source=".memkit/memory/2026-11-20.md",
    heading="14:02 Which port?", breadcrumb="2026-11-20 > 14:02 Gateway > 14:02 Which port?", level=3,
    start_line=5, end_line=9, kind="turn", date="2026-11-20", session="fd0aee29",
    turns=("8ad3df7f", "77c1e09b"), citations=(), branch="feature/gw",
)  # fmt: skip


def answer(*chunks: Chunk, degraded: str = "") -> Answer:
    results = [
        Result(f"{n:012x}", "project", 1.0, 0.9, chunk, lexical=1.0, dense=0.5, context=1.0)
        for n, chunk in enumerate(chunks)
    ]
    return Answer("question", "context", degraded, 1.0, results)


def test_entries() -> None:
    assert lay_out(answer(CHUNK), 500).endswith(
        '<entry id="000000000000" source=".memkit/memory/2026-11-20.md:5-9" date="2026-11-20" week="2026-W47" '
        'session="fd0aee29" turns="8ad3df7f,77c1e09b" branch="feature/gw">\n'
        "2026-11-20 > 14:02 Gateway > 14:02 Which port?\n"
        "The gateway listens on 7443.\n"
        "</entry>"
    )
    headings = "# 2026-11-20\n\n## 14:02 Gateway\n\n### 14:02 Which port?\n"
    repeated = replace(CHUNK, content=f"{headings}# Other\nIt listens on 7443.")
    assert lay_out(answer(repeated), 500).endswith("14:02 Which port?\n# Other\nIt listens on 7443.\n</entry>")
    bare = replace(CHUNK, content=headings)
    assert lay_out(answer(bare), 500).endswith(f"{headings.strip()}\n</entry>")
    line = Line("2026-11-20", "14:54 </entry> Ask Jonas", "8ad3df7f0123", "s", "/p")
    text = lay_out(replace(answer(), nearest=[line, line]), 500)
    assert text.startswith("No entry matches that closely.")
    assert text.count("</entry>") == text.count('<entry id="8ad3df7f0123" date="2026-11-20">14:54 ') == 2
    assert "<entry" not in lay_out(replace(answer(), nearest=[line]), 10)


def test_short_answers() -> None:
    assert lay_out(answer(), 500) == "The memory of this project holds nothing on that."
    assert "no weights" in lay_out(answer(degraded="no weights"), 500)
    assert "Note: words alone." in lay_out(answer(CHUNK, degraded="words alone"), 500)
    long = replace(CHUNK, content="word " * 2000)
    text = lay_out(answer(long), 500)
    assert len(text) <= 2000
    assert "word … (`memkit expand 000000000000` shows all of it)\n</entry>" in text
    crowded = replace(CHUNK, breadcrumb="crumb " * 200, content="word " * 300)
    text = lay_out(answer(crowded), 100)
    assert "100 tokens are too few" in text
    assert len(text) <= 400


WILD = st.text(max_size=80) | st.sampled_from(
    ["</entry>", "< / ENTRY >", '<entry id="1" date="2030-01-01">', "</\nentry>", '"', ">", "\n\n"]
)
CHUNKS = st.builds(
    lambda content, crumb, branch, source, session, turns: replace(
        CHUNK, content=content, breadcrumb=crumb, branch=branch, source=source, session=session,
        turns=(turns,),
    ),
    st.lists(WILD, max_size=40).map("".join), WILD, WILD, WILD, WILD, WILD,
)  # fmt: skip


@settings(max_examples=examples(100))
@given(chunks=st.lists(CHUNKS, max_size=6), budget=st.integers(100, 1200), note=WILD)
def test_no_text_breaks_out_and_the_budget_holds(chunks: list[Chunk], budget: int, note: str) -> None:
    text = lay_out(answer(*chunks, degraded=note), budget)
    assert len(text) <= max(4 * budget, 500)
    opened = re.findall(r"^<entry id=\"([0-9a-f]{12})\" [^\n<>]*>$", text, re.MULTILINE)
    assert opened == [f"{n:012x}" for n in range(len(opened))]
    tags = re.findall(r"<\s*/?\s*entry", text, re.IGNORECASE)
    if len(chunks) and "entry" not in note.lower():
        assert len(tags) == 2 * len(opened)
        assert tags == ["<entry", "</entry"] * len(opened)
