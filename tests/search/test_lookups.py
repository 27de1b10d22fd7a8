"""Turns that only asked the memory do not stand before what they asked about."""

from __future__ import annotations

from pathlib import Path

from memkit.embedding import Embedder
from memkit.search.ranking import only_asked
from tests.search.corpora import embedded

QUESTION = "which port does the staging gateway use"
LOOKUPS = (
    "**Did** Skill `memkit:memory-recall`",
    "**Did** Skill `memkit:memory-recall` ×3",
    "**Did** Bash `memkit search 'staging gateway port'`",
    "**Did** Bash `memkit topics show 0a1b2c3d`",
    "**Did**\n\n- Bash `memkit recall --stdin`\n- Bash `memkit expand 0123456789ab`",
    "**Did** ↳ Bash `memkit search gateway` · Read .memkit/memory/2026-11-18.md",
)
WORK = (
    "",
    "**Did** Read deploy/gateway.yaml",
    "**Did** Bash `memkit search gateway` · Edit deploy/gateway.yaml",
    "**Did** Bash `echo memkit search` → memkit search",
    "**Did**\n\n- Bash `memkit search gateway`\n- … and 5 more",
)


def turn(did: str, name: str = "cccccccc") -> str:
    return (
        f"### 10:00 Which port does the staging gateway use? <!-- turn:{name} -->\n"
        f"**Asked** Which port does the staging gateway use?\n\n{did}\n\n"
        "**Answered** The staging gateway uses port 7443 (2026-11-18, 3fa9c1d07b52).\n"
    )


def test_turns_that_only_asked() -> None:
    assert [did for did in (*LOOKUPS, *WORK) if only_asked(turn(did))] == [*LOOKUPS]


def test_they_come_last(tmp_path: Path, real_embedder: Embedder) -> None:
    """Alone they would be the best match: they repeat the question and the answer. A bullet is no better."""
    asked = "".join(turn(did, f"cccccc{number:02}") for number, did in enumerate(LOOKUPS))
    files = {
        "2026-11-18.md": (
            "# 2026-11-18\n\n## 09:00 Deploy <!-- session:5e550001 -->\n\n"
            "### 09:00 The gateway does not come up on staging <!-- turn:aaaaaaaa -->\n"
            "**Asked** The gateway does not come up on staging.\n"
            "**Did** Edit deploy/gateway.yaml\n"
            "**Answered** 443 is taken there. It uses port 7443 now.\n"
        ),
        "2026-11-20.md": (
            "# 2026-11-20\n\n## 10:00 Questions <!-- session:5e550002 -->\n\n"
            f"- Found: The staging gateway uses port 7443. <!-- grip:bbbbbbb1 turns:cccccc00 -->\n\n{asked}"
        ),
    }
    memory = embedded(tmp_path, files, real_embedder)
    found = memory.searcher().search(QUESTION, 10).results
    assert [one.chunk.date for one in found] == ["2026-11-18"] + ["2026-11-20"] * (len(found) - 1)
    assert len(found) > 1
    alone = memory.searcher().search("Which port does the staging gateway use? Questions", 1).results
    assert [one.chunk.date for one in alone] == ["2026-11-18"]
