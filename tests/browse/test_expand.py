"""The whole section around a result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from memkit.browse.expand import Section, expand_known
from memkit.errors import AmbiguousIdError, NotFoundError
from memkit.settings import Settings
from tests.memory import Memory, day, make_memory

FENCED = """\
Steps:

```sh
# not a heading

make all
```

""" + "\n\n".join(f"Paragraph {n} of the answer. " * 12 for n in range(12))


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Memory:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return make_memory(tmp_path)


def expand(memory: Memory, name: str) -> Section:
    return expand_known(memory.project, memory.home, lambda project: memory.settings, name)


def found(memory: Memory, query: str) -> dict[str, Any]:
    memory.sync()
    return expand(memory, memory.search(query).results[0].id)


def test_a_turn_of_several_chunks_is_whole(memory: Memory) -> None:
    text = day("2026-11-20", ("How is it built?", FENCED), ("And then?", "Nothing more to say."))
    memory.write("2026-11-20.md", text)
    section = found(memory, "Paragraph 11 of the answer")
    lines = text.split("\n")
    assert lines[section["start_line"] - 1].startswith("### 09:00 How is it built?")
    assert "And then?" in lines[section["end_line"] + 1]
    assert section["content"].startswith("### 09:00 How is it built?\n**Asked**")
    assert "```sh\n# not a heading\n\nmake all\n```" in section["content"]
    assert section["content"].endswith("Paragraph 11 of the answer.")
    assert "<!--" not in section["content"]
    assert section["turns"] == list(memory.search("Paragraph 11 of the answer").results[0].chunk.turns) != []
    assert section["path"] == str(memory.path("2026-11-20.md"))
    assert section["transcript"] is None
    for row in memory.snapshot.rows():
        if row.chunk.heading.startswith("09:00 How"):
            again = expand(memory, row.id[:12])
            assert (again["start_line"], again["end_line"]) == (section["start_line"], section["end_line"])


@pytest.mark.parametrize("title", ["Same", "A " * 150 + "long title", "Title  with\tblanks `x`"])
def test_sections_of_one_name_are_told_apart(memory: Memory, title: str) -> None:
    parts = [f"## {title}\n\n" + f"word{n} " * 30 for n in range(3)]
    memory.write("notes.md", "# Notes\n\n" + "\n\n".join(parts) + "\n")
    for number in range(3):
        section = found(memory, f"word{number}")
        assert section["content"] == f"## {title}\n\n" + (f"word{number} " * 30).rstrip()


def test_subsections_belong_to_the_section(memory: Memory) -> None:
    inner = "## Inner\n\n" + "inner words " * 20
    text = "# Outer\n\n" + "outer text " * 20 + f"\n\n{inner}\n\n# Next\n\n" + "next " * 40
    memory.write("notes.md", text)
    assert found(memory, "outer text")["content"] == text.partition("\n\n# Next")[0].rstrip()
    assert found(memory, "inner words")["content"] == inner.rstrip()
    memory.write("notes.md", "\n\n" + "preamble " * 30 + "\n\n# First\n\n" + "first " * 40)
    assert found(memory, "preamble")["content"].strip() == ("preamble " * 30).strip()
    memory.write("notes.md", "# One\n\nabout apples\n\n# Two\n\nabout pears\n")
    section = found(memory, "pears")
    assert section["content"] == "# One\n\nabout apples\n\n# Two\n\nabout pears"
    assert section["content"] == memory.search("pears").results[0].chunk.content.strip()
    assert list(section) == [
        "id", "root", "path", "start_line", "end_line", "source", "heading", "breadcrumb", "kind", "date",
        "session", "branch", "turns", "citations", "transcript", "archived", "missing", "content",
    ]  # fmt: skip


def test_any_file_shape_keeps_the_chunk(memory: Memory) -> None:
    shapes = ["tiny", "tiny\n\n# A\n\nshort\n", "# A\n# B\n\n## C\n\nx\n# D\n\n" + "d " * 90,
              "a " * 90 + "\n\n# A\n\nb\n\n## B\n\nc\n", "# A\n\n" + "a " * 2000 + "\n## B\n\nb\n",
              "Title\n=====\n\ntext\n\nOther\n---\n\nmore\n"]  # fmt: skip
    for number, text in enumerate(shapes):
        memory.write(f"{number}.md", text)
    memory.sync()
    for row in memory.snapshot.rows():
        section = expand(memory, row.id)
        for line in row.chunk.content.split("\n"):
            assert line.startswith("#") or line.rstrip() in section["content"]


def test_shortened_ids_are_accepted(memory: Memory) -> None:
    memory.write("notes.md", "".join(f"# S{n}\n\n{'word ' * 30}{n}\n\n" for n in range(40)))
    memory.sync()
    ids = [row.id for row in memory.snapshot.rows()]
    assert expand(memory, ids[0])["id"] == ids[0][:12]
    letters = [one[0] for one in ids]
    with pytest.raises(AmbiguousIdError):
        expand(memory, max(letters, key=letters.count))
    with pytest.raises(NotFoundError, match="'nonsense'"):
        expand(memory, "nonsense")


def changed(memory: Memory, text: str) -> Section:
    """A section of a file that is not what it was when it was indexed."""
    parts = [f"# Part {n}\n\n" + f"word{n} " * 30 + "\n" for n in range(3)]
    memory.write("notes.md", "\n".join(parts))
    memory.sync()
    id_ = memory.search("word1").results[0].id
    memory.write("notes.md", text.replace("PARTS", "\n".join(parts)))
    return expand(memory, id_)


def test_after_a_change_the_current_text_is_shown_where_it_is(memory: Memory) -> None:
    for before in ("# New\n\n" + "new\n" * 300, ""):
        assert changed(memory, before + "PARTS")["content"] == "# Part 1\n\n" + ("word1 " * 30).rstrip()
    assert changed(memory, "# Part 1\n\nrewritten\n\n# Part 2\n")["content"] == "# Part 1\n\nrewritten"
    with pytest.raises(NotFoundError, match=r"notes\.md has changed .*'Part 1'"):
        changed(memory, "# Part 0\n\nno more\n")
    memory.sync()
    memory.path("notes.md").unlink()
    with pytest.raises(NotFoundError, match=r"notes\.md cannot be read"):
        expand(memory, memory.snapshot.id(0))


def test_a_file_outside_the_project(memory: Memory, tmp_path: Path) -> None:
    outside = tmp_path / "shared.md"
    outside.write_text("# Shared\n\n" + "shared words " * 20)
    memory.settings = msgspec.convert({"memory": {"paths": [str(outside)]}}, Settings)
    assert found(memory, "shared words")["path"] == str(outside)
