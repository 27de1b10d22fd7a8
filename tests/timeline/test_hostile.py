"""Memory files of a cloned repository: any bytes, any length."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from memkit.text import estimate_tokens
from memkit.timeline.events import find_words
from memkit.timeline.summary import MOST_LINES
from memkit.timeline.tree import Timeline
from memkit.timeline.view import MOST_TOKENS, view
from tests.memory import DAYS, Memory, make_memory

Open = Callable[[Memory], Timeline]


def test_bytes_that_are_not_utf_8_hide_nothing(tmp_path: Path, timeline_of: Open) -> None:
    memory = make_memory(tmp_path, DAYS)
    damaged = (
        b"# 2026-11-17\n\n## 09:00 Caf\xe9 <!-- session:5e550009 -->\n\n"
        b"- Decided: \xff. <!-- grip:ab12cd34 turns:aaaa0009 -->\n\n"
        b"### 09:00 Caf\xe9 <!-- turn:aaaa0009 -->\n**Answered** It is \xff open.\n"
    )
    memory.path("2026-11-17.md").write_bytes(damaged)
    memory.path("2026-W47.md").write_bytes(
        b"# 2026-W47 \xff\n\n## Facts <!-- compacted:- -->\n\n- Fact: \xff. <!-- fact:ab12 -->\n"
    )
    memory.path("MEMORY.md").write_bytes(
        b"## Facts <!-- compacted:- -->\n\n- Decided: \xff. (2026-11-17) <!-- fact:ab12 -->\n"
    )
    timeline = timeline_of(memory)
    for name in ("", "2026-W47", "2026-11-17", "aaaa0009"):
        found = view(timeline, name, 5)
        json.dumps(found, ensure_ascii=False).encode()
    assert timeline.node("2026-11").summary.days == 4
    assert timeline.node("aaaa0009").title == "Caf?"
    json.dumps(find_words(timeline, timeline.node(), "open", 9, "", print), ensure_ascii=False).encode()


def test_no_text_of_a_file_makes_an_answer_longer(tmp_path: Path, timeline_of: Open) -> None:
    long = "word " * 20_000
    fact = "(2026-11-20) <!-- fact:{} turns:aaaa0009 -->\n"
    facts = "## Facts <!-- compacted:- -->\n\n" + "".join(f"- Decided: {long}{fact.format(n)}" for n in range(30))
    memory = make_memory(tmp_path, {
        "2026-W47.md": f"# 2026-W47 {long} <!-- rollup:ab12 -->\n\n{facts}",
        "MEMORY.md": facts,
        "2026-11-20.md": (
            f"# 2026-11-20\n\n## 09:00 {long} <!-- session:5e550009 -->\n\n"
            f"### 09:00 {long} <!-- turn:aaaa0009 -->\n"
            f"**Did** Edit {'x/' * 20_000}y.py · Bash `{long}` → failed: {long}\n\n**Answered** {long}. {long}?\n"
        ),
    })  # fmt: skip
    timeline = timeline_of(memory)
    for name in ("", "2026", "2026-11", "2026-W47", "2026-11-20", "aaaa0009"):
        found = view(timeline, name, 5)
        assert estimate_tokens(json.dumps(found)) <= MOST_TOKENS, name
        assert found["children"]
    assert len(timeline.node("2026-W47").bullets) == MOST_LINES
