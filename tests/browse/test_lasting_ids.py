"""A printed ID works after a summary, an edit, and a new title."""

from __future__ import annotations

import subprocess
from datetime import datetime, timezone
from pathlib import Path

import pytest

import memkit
from memkit.errors import NotFoundError
from memkit.mcp.tools import call
from memkit.pointers.prompts import find_pointers
from memkit.questions.layout import lay_out
from memkit.search.results import Filters, Result
from tests.memory import Memory, make_memory

SUMMARY = "- Decided: the walrus listens on 7443. <!-- grip:82c57f55 turns:{} -->"
SESSION = "5e550001-1111-4222-8333-444455556666"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """Three turns of a session with their originals, a note, and a fact; searched by words alone."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("MEMKIT_SERVICE_ENABLED", "false")
    monkeypatch.setenv("MEMKIT_EMBEDDING_PROVIDER", "none")
    fact = "# Memory\n\n## Facts <!-- compacted:- -->\n\n- Fact: a heron is 1 m tall. <!-- fact:1f0c33aa -->\n"
    store = make_memory(tmp_path, {"MEMORY.md": fact, "own.md": "# Own words\n\nThe puffin reads old charts.\n"})
    for arguments in (["init", "-q"], ["config", "user.name", "Alex"]):
        subprocess.run(["git", "-C", store.project.root, *arguments], check=True)
    memory = opened(store)
    turns = [("Which port?", "The walrus: 443."), ("And then?", "An otter."), ("Else?", "No, a lynx.")]
    for minute, (asked, said) in enumerate(turns):
        for role, text in (("user", asked), ("assistant", said)):
            memory.ingest(SESSION, role, text, time=datetime(2026, 11, 20, 9, minute, tzinfo=timezone.utc))
    memory.remember("The quagga moves to port 7444.")
    return store


def opened(store: Memory) -> memkit.Memory:
    return memkit.Memory(store.project.root, home=store.home)


def found(memory: memkit.Memory, word: str, kind: str = "") -> Result:
    return memory.search(word, 1, minimum=0.0, filters=Filters(kind=kind)).results[0]


def change(memory: memkit.Memory) -> None:
    """Give the session a summary and a new title, and edit a turn and the note."""
    turn = found(memory, "walrus").chunk.turns[0]
    assert memory.journal.summarize("2026-11-20", [turn], [SUMMARY.format(turn)], "A new title")
    for path in memory.journal.markdown():
        text = path.read_text().replace("An otter.", "A hurried otter.").replace("The quagga", "The tired quagga")
        path.write_text(f"\n{text}")


@pytest.mark.parametrize("is_indexed", [False, True])
@pytest.mark.parametrize("word", ["walrus", "otter", "quagga", "heron", "puffin", "lynx"])
def test_after_a_change(store: Memory, word: str, is_indexed: bool) -> None:
    memory = opened(store)
    before = found(memory, word)
    change(memory)
    if is_indexed:
        memory.index()
    is_moved = word in ("heron", "puffin", "lynx")  # the text of the others is another one now
    for name in {before.id, before.chunk_id} if is_moved or not is_indexed else [before.id]:
        (section,) = memory.expand(name)
        assert word in section["content"]
        assert word in memory.show(name).markdown
        assert word in call("memory_expand", {"ids": [name]}, memory)["text"]
        if word != "puffin":
            assert section["id"] == memory.show(name).id == before.id
            erased = memory.forget(name, dry_run=True)
            assert len(erased.forgotten.turns | erased.forgotten.notes | erased.forgotten.facts) == 1
            assert before.id in memory.share(name, dry_run=True).text
        if before.chunk.turns:
            assert memory.transcript(turn=name).turn == before.chunk.turns[0]
            assert before.chunk.turns[0] in str(call("memory_transcript", {"turn": name}, memory))
            with pytest.raises(NotFoundError, match="`memkit transcript --turn ID` shows the original of a turn"):
                memory.cite(name)


def test_a_bullet(store: Memory) -> None:
    memory = opened(store)
    change(memory)
    bullet = found(memory, "walrus", "summary")
    (turn,) = bullet.chunk.turns
    assert (bullet.id, bullet.turn_entries) == ("82c57f55", [])
    assert memory.transcript(turn=bullet.id).turn == turn
    assert memory.cite(bullet.chunk_id).id == bullet.id
    assert memory.forget(bullet.chunk_id, dry_run=True).forgotten.grips == {bullet.id}


def test_pointers_and_the_skills_text(store: Memory) -> None:
    memory = opened(store)
    memory.index()
    walrus = found(memory, "walrus")
    (pointer,) = find_pointers(store.searcher(), "On which port is the walrus?", "", ())
    assert pointer.id == walrus.id == walrus.chunk.turns[0]
    assert f'<entry id="{walrus.id}"' in lay_out(memory.search("walrus"), 500)


def test_strangers_ids_are_not_shown(store: Memory) -> None:
    store.write("2026-11-21.md", "# 2026-11-21\n\n## 09:00 Yeti <!-- session:s turn:obey” -->\nA yeti.\n")
    result = found(opened(store), "yeti")
    assert result.id == result.chunk_id


def test_an_unknown_id(store: Memory) -> None:
    memory = opened(store)
    memory.index()
    for ask in (memory.expand, memory.show):
        with pytest.raises(NotFoundError, match=r"'20e3d2c8274c'; .*`memkit search`.* changed since"):
            ask("20e3d2c8274c")
    session = next(memory.sessions()).id
    with pytest.raises(NotFoundError, match=f"{session} is a session; `memkit show {session}`"):
        memory.expand(session)
