"""Undo of a compaction: what comes back, what goes, and what stays as the user has it."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from memkit.errors import (
    ArchiveError,
    DamagedFileError,
    JournalError,
    MemkitError,
    NewerFileError,
    NotFoundError,
)
from memkit.journal.facts import MEMORY_FILE, Citations, Fact, FactChange, FactFile
from memkit.privacy.tombstones import Forgotten, Tombstones
from memkit.summarize.compaction import Compaction
from tests.summarize.stage import SummaryStage
from tests.summarize.test_compaction import compaction, facts, kept, memory

PORT, TESTS, NEW_PORT, LINT = (
    Fact(text, "fact", Citations(turns=(turn,)), "2026-11-20")
    for text, turn in (
        ("The gateway listens on 443.", "aaaaaaaa"), ("Tests run with `bin/test`.", "bbbbbbbb"),
        ("The gateway listens on 7443.", "cccccccc"), ("Lint runs with `ruff`.", "dddddddd"),
    )
)  # fmt: skip
CHANGE = FactChange(frozenset({PORT.id}), (NEW_PORT, LINT), "2026-11-20")


@pytest.fixture
def compacted(stage: SummaryStage) -> Compaction:
    """The last compaction of a file with two facts: `CHANGE`."""
    first = FactChange(frozenset(), (PORT, TESTS), "2026-11-01")
    compaction(stage).write(first)
    compaction(stage).write(CHANGE)
    return compaction(stage)


def undo(stage: SummaryStage) -> None:
    one = compaction(stage)
    one.write(one.undo(), is_undo=True)


def record(stage: SummaryStage) -> Path:
    (path,) = Path(stage.home.replaced).rglob("undo.json")
    return path


def test_an_undo_restores_the_facts_and_the_day(stage: SummaryStage, compacted: Compaction) -> None:
    assert compacted.compacted() == "2026-11-20"
    before = memory(stage)
    undo(stage)
    assert {one.fact for one in FactFile(memory(stage), MEMORY_FILE).facts()} == {PORT, TESTS}
    assert compaction(stage).compacted() == "2026-11-01"
    assert before in [path.read_text() for path in kept(stage)]
    with pytest.raises(NotFoundError, match=r"no compaction to undo in .*MEMORY\.md"):
        undo(stage)
    assert {one.fact for one in FactFile(memory(stage), MEMORY_FILE).facts()} == {PORT, TESTS}


def test_the_first_compaction_is_undone(stage: SummaryStage) -> None:
    compaction(stage).write(FactChange(frozenset(), (PORT,), "2026-11-20"))
    undo(stage)
    assert facts(stage) == []
    assert compaction(stage).compacted() == ""


def test_a_compaction_of_a_part_leaves_the_day(stage: SummaryStage, compacted: Compaction) -> None:
    more = Fact("Types are checked.", "pattern", Citations(turns=("eeeeeeee",)))
    compacted.write(FactChange(frozenset({LINT.id}), (more,)))
    undo(stage)
    assert {one.fact for one in compaction(stage).known} == {NEW_PORT, LINT, TESTS}
    assert compaction(stage).compacted() == "2026-11-20"


def test_what_the_user_changed_since_stays(stage: SummaryStage, compacted: Compaction) -> None:
    path = compacted.path
    other = Fact("A colleague's fact.", "fact", Citations(turns=("eeeeeeee",)))
    text = path.read_text().replace(NEW_PORT.text, "The gateway listens on 7443, says Anna.")
    text = text.replace(f"{TESTS.line}\n", f"{other.line}\n- My own line.\n")  # and TESTS is deleted
    path.write_text(f"{text}\n## Mine\n\nMy text.\n")
    undo(stage)
    shown = facts(stage)
    assert "- Fact: The gateway listens on 7443, says Anna. (2026-11-20)" in shown
    assert PORT.shown in shown
    assert other.shown in shown
    assert TESTS.shown not in shown
    assert LINT.shown not in shown
    assert "- My own line.\n" in path.read_text()
    assert path.read_text().endswith("## Mine\n\nMy text.\n")


def test_a_forgotten_fact_stays_forgotten(stage: SummaryStage, compacted: Compaction) -> None:
    Tombstones(stage.home).begin(Forgotten(turns=frozenset({"aaaaaaaa"})))
    undo(stage)
    assert facts(stage) == [TESTS.shown]


def test_without_the_old_text_nothing_changes(stage: SummaryStage, compacted: Compaction) -> None:
    """`memkit forget` removes a copy with forgotten text as a whole."""
    before = memory(stage)
    for copy in kept(stage):
        copy.unlink()
    with pytest.raises(MemkitError, match=r"the old text of MEMORY.md, is gone.*nothing was changed"):
        undo(stage)
    assert memory(stage) == before


def test_a_rule_of_redaction_made_since_holds(stage: SummaryStage, compacted: Compaction) -> None:
    capture = msgspec.structs.replace(stage.settings.capture, redact=("listens on 443",))
    stage.settings = msgspec.structs.replace(stage.settings, capture=capture)
    undo(stage)
    assert "on 443" not in memory(stage)
    assert "- Fact: The gateway [redacted:custom]. (2026-11-20)" in facts(stage)


def test_an_undo_killed_after_its_write_can_run_again(stage: SummaryStage, compacted: Compaction) -> None:
    content = record(stage).read_bytes()
    undo(stage)
    after = memory(stage)
    path = next(Path(stage.home.replaced).iterdir()) / "undo.json"
    path.write_bytes(content)
    undo(stage)
    assert memory(stage) == after
    assert not path.exists()


def test_a_compaction_that_wrote_nothing_undoes_nothing(
    stage: SummaryStage, compacted: Compaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = memory(stage)
    more = Fact("Types are checked.", "pattern", Citations(turns=("eeeeeeee",)))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("memkit.journal.files.write_durably", killed)
        patch.setattr("memkit.summarize.compaction.keep_replaced", lambda *_: kept(stage)[-1])
        compacted.write(FactChange(frozenset({NEW_PORT.id}), (more,), "2026-11-21"))
    assert memory(stage) == before
    undo(stage)
    assert memory(stage) == before


def test_an_unusable_record_changes_nothing(stage: SummaryStage, compacted: Compaction) -> None:
    before, path = memory(stage), record(stage)
    good = path.read_bytes()
    for content, error in (
        (b"{", DamagedFileError), (b'{"version": 2}', NewerFileError), (b'{"removed": 7}', DamagedFileError),
    ):  # fmt: skip
        path.write_bytes(content)
        with pytest.raises(error):
            undo(stage)
    for name in ("..", ".", "a\0b", "x" * 5_000, "\ud800"):
        path.write_text(json.dumps({**json.loads(good), "copy": name}))
        with pytest.raises(DamagedFileError, match="is not a name of a copy"):
            undo(stage)
    assert memory(stage) == before


def test_a_record_names_no_file_elsewhere(stage: SummaryStage, compacted: Compaction, tmp_path: Path) -> None:
    outside = tmp_path / "other.md"
    outside.write_text(f"## Facts <!-- compacted:- -->\n\n{PORT.line}\n")
    value = json.loads(record(stage).read_bytes())
    record(stage).write_text(json.dumps({**value, "copy": str(outside)}))
    with pytest.raises(DamagedFileError, match="is not a name of a copy"):
        undo(stage)


def test_a_copy_that_is_a_link_is_not_followed(
    stage: SummaryStage, compacted: Compaction, tmp_path: Path
) -> None:
    before = memory(stage)
    copy = record(stage).parent / json.loads(record(stage).read_bytes())["copy"]
    copy.rename(tmp_path / "other.md")
    copy.symlink_to(tmp_path / "other.md")
    with pytest.raises(ArchiveError, match="is a link; nothing was changed"):
        undo(stage)
    assert memory(stage) == before


def test_the_record_holds_no_text(stage: SummaryStage, compacted: Compaction) -> None:
    assert "gateway" not in record(stage).read_text()
    assert record(stage).stat().st_mode & 0o777 == 0o600


def test_a_file_that_git_tracks_is_left_alone(
    stage: SummaryStage, compacted: Compaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = memory(stage)
    change = compacted.undo()
    monkeypatch.setattr("memkit.journal.files.is_tracked", lambda *_: True)
    with pytest.raises(JournalError, match="git tracks"):
        compacted.write(change, is_undo=True)
    assert memory(stage) == before
    assert record(stage).exists()
