"""Forgotten text is in no file, and does not come back."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import time
from datetime import date, datetime
from pathlib import Path

import pytest

from memkit.browse.transcript import find_original
from memkit.capture.capture import Capture
from memkit.capture.summary_queue import Attempt, SummaryQueue
from memkit.errors import DamagedFileError, MemkitError, NewerFileError, NotFoundError
from memkit.forget.selection import ForgetSelection, of_days, of_everything, of_session
from memkit.index import open_chunks
from memkit.ipc import spool
from memkit.journal.day_summaries import extracted, turns_of
from memkit.journal.extracts import extract_line
from memkit.privacy.tombstones import VERSION, Tombstones
from memkit.settings.load import Settings
from tests.builders import SESSION, Lines, entries, make_note
from tests.capture.stage import NOW, prompt_id
from tests.ci import every
from tests.forget.remembered import WORD, Remembered, ask, index_with_another_file

DAY = date(2026, 3, 4)
LATER = NOW + 86_400


def test_a_turn_is_erased_from_every_file_and_not_imported_again(remembered: Remembered) -> None:
    first, second, third = remembered.turns
    sections = _sections(remembered)
    assert {Path(name).parts[0] for name in remembered.holders()} == {"home", "project"}
    found = remembered.find(remembered.select(second))
    assert [entry.id for entry in found.turns] == [second]
    assert {session: len(turns) for session, turns in found.archived.items()} == {SESSION: 1}
    assert remembered.forget(remembered.select(second)) == []
    assert remembered.holders() == []
    assert _sections(remembered) == {name: sections[name] for name in (first, third)}
    assert Tombstones(remembered.stage.home).unfinished() is None
    captured = remembered.take_in()
    assert (captured.turns, captured.written, captured.left_out) == (2, 0, 1)
    assert remembered.holders() == []
    assert remembered.holders("parsnip") != []


NAMES = ("cellar/2026-03-04.md", "cellar/deep/kept.md", "the cellar.md")
WAYS = ("id", "chunk", "days", "session", "everything")


@pytest.mark.parametrize(("by", "name"), every(2, list(itertools.product(WAYS, NAMES))))
def test_a_day_that_a_person_renamed_or_moved(remembered: Remembered, name: str, by: str) -> None:
    """Also a copy: the turn stands in two files then."""
    turn = remembered.turns[1]
    target = remembered.journal.directory / name
    target.parent.mkdir(parents=True, exist_ok=True)
    note = make_note(f"The {WORD} again", [], datetime(2026, 3, 4, 11).astimezone(), str)
    remembered.journal.add_note(note)
    if by in ("id", "days"):
        shutil.copy(remembered.day, target)
    else:
        remembered.day.rename(target)
    remembered.sync()
    home, project = remembered.stage.home, remembered.stage.project
    if by == "id":
        selection = remembered.select(turn, note.id)
    elif by == "chunk":
        chunks = open_chunks(project, home, remembered.settings)
        assert chunks is not None
        places = [place for place in range(len(chunks)) if WORD in chunks.chunk(place).content]
        selection = remembered.select(*(chunks.id(place)[:12] for place in places))
    elif by == "days":
        selection = of_days(project, home, DAY, DAY, LATER)
    elif by == "session":
        selection = of_session(project, home, SESSION, LATER)
        selection.forgotten |= remembered.select(note.id).forgotten
    else:
        selection = of_everything(project, home, LATER)
    assert remembered.forget(selection) == []
    assert remembered.holders() == []
    if by in ("id", "chunk"):
        assert "parsnip" in target.read_text()


def _sections(remembered: Remembered) -> dict[str, str]:
    content = remembered.journal.day(remembered.day.stem)
    return {s.pairs["turn"]: content.text(s) for s in content.sections if "turn" in s.pairs}


def test_chunk_ids_name_turns(remembered: Remembered) -> None:
    chunks = open_chunks(remembered.stage.project, remembered.stage.home, remembered.settings)
    assert chunks is not None
    names = [
        chunks.id(place)[:12]
        for place in range(len(chunks))
        if WORD in chunks.chunk(place).content
    ]
    remembered.forget(remembered.select(*names))
    assert remembered.holders() == []
    assert len(remembered.turns) == 2


def test_a_session_title_that_repeats_the_turn_is_erased(remembered: Remembered) -> None:
    assert entries(remembered.day.read_text()).split("\n")[2].startswith("## 10:00 Where is the carrot kept")
    remembered.forget(remembered.select(remembered.turns[0]))
    assert entries(remembered.day.read_text()).split("\n")[2].startswith(f"## 10:00 Where is the {WORD} kept")
    assert remembered.holders("carrot") == []


def test_a_title_by_the_user_stays(remembered: Remembered) -> None:
    lines = entries(remembered.day.read_text()).split("\n")
    lines[2] = "## 10:00 In the kitchen " + lines[2][lines[2].index("<!--") :]
    remembered.day.write_text("\n".join(lines))
    remembered.forget(remembered.select(remembered.turns[0]))
    assert remembered.day.read_text().split("\n")[2] == lines[2]


def test_waiting_events_and_the_summary_queue_bring_nothing_back(remembered: Remembered) -> None:
    stage, (_, second, _) = remembered.stage, remembered.turns
    for folder in ("failed", "claimed", "new"):
        name = spool.put(stage.home, stage.record("Stop", prompt_id=prompt_id(2)))
        Path(stage.home.spool, "new", name).rename(Path(stage.home.spool, folder, name))
    kept = spool.put(stage.home, stage.record("Stop", prompt_id=prompt_id(3)))
    Path(stage.home.archive, ".a.tmp").write_text(WORD)
    remembered.day.with_name(".b.tmp").write_text(WORD)
    SummaryQueue(stage.home).add(stage.project.root, SESSION, ["2026-03-04"], NOW)
    (waiting,) = SummaryQueue(stage.home)
    waiting.tries[second] = Attempt(1)
    SummaryQueue(stage.home).update(waiting, ())

    remembered.forget(remembered.select(second))
    assert remembered.holders() == []
    assert kept in spool.waiting(stage.home)
    (waiting,) = SummaryQueue(stage.home)
    assert waiting.tries == {}
    for item in (*spool.failed(stage.home), *spool.unfinished(stage.home)):
        Capture(stage.home, Settings()).handle(item.record, stage.project, NOW + 60)
    assert remembered.holders() == []
    assert second not in remembered.turns


def test_a_forgotten_session_can_continue(remembered: Remembered) -> None:
    stage = remembered.stage
    remembered.forget(of_session(stage.project, stage.home, SESSION[:6], NOW))
    assert [remembered.holders(word) for word in (WORD, "carrot", "parsnip")] == [[], [], []]
    assert not Path(stage.project.memory, "2026-03-04.md").exists()
    assert not list(Path(stage.home.archive).iterdir())
    assert remembered.take_in().turns == 0
    with stage.transcript.open("a") as file:
        later = ask(Lines(), 9, "celery")
        for number, entry in enumerate(later.entries):
            entry |= {"uuid": f"9{number:07d}-aaaa-4bbb-8ccc-ddddeeeeffff", "timestamp": "2026-03-06T10:00:00.000Z"}
        file.write(later.text)
    assert remembered.take_in().turns == 1
    assert remembered.holders("parsnip") == []
    with pytest.raises(NotFoundError):
        of_session(stage.project, stage.home, "ffff", NOW)


@pytest.mark.parametrize("what", ["days", "everything"])
def test_days_are_erased_with_text_by_the_user(remembered: Remembered, what: str) -> None:
    project = remembered.stage.project
    with remembered.day.open("a") as file:
        file.write("\nAnd my own salsify.\n")
    other = Path(project.memory, "notes.md")
    other.write_text("# Notes\n\nThe rutabaga.\n")
    remembered.sync()
    selection = of_days(project, remembered.stage.home, DAY, DAY, LATER) if what == "days" else of_everything(project, remembered.stage.home, LATER)
    remembered.forget(selection)
    words = (WORD, "carrot", "parsnip", "salsify")
    assert [remembered.holders(word) for word in words] == [[]] * 4
    assert other.exists() == (what == "days")
    assert (remembered.holders("rutabaga") != []) == (what == "days")
    assert remembered.take_in().turns == 0


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/Lima"])
def test_days_at_the_ends_of_the_calendar(remembered: Remembered, monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    """A repository may bring them; they stop no forgetting."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    own = remembered.day
    for day in ("0001-01-01", "9999-12-31"):
        text = own.read_text().replace(f"# {DAY}\n", f"# {day}\n")
        own.with_name(f"{day}.md").write_text(text)
    assert remembered.forget(remembered.select(remembered.turns[1])) == []
    assert remembered.holders() == []
    project, home = remembered.stage.project, remembered.stage.home
    assert not remembered.find(of_days(project, home, None, date.min, LATER)).turns
    assert not remembered.find(of_days(project, home, date.max, None, LATER)).turns
    assert remembered.forget(of_days(project, home, date.min, date.max, LATER)) == []
    assert not own.exists()


def test_other_days_stay(remembered: Remembered) -> None:
    project = remembered.stage.project
    assert not remembered.find(of_days(project, remembered.stage.home, date(2026, 3, 5), None, LATER))
    assert remembered.find(of_days(project, remembered.stage.home, None, DAY, LATER))


def test_bullets_about_a_forgotten_turn_are_erased(remembered: Remembered) -> None:
    first, second, third = remembered.turns
    bullets = [
        f"- Found: the carrot. <!-- grip:aaaaaaaa turns:{first} -->",
        f"- Found: the {WORD} beside it. <!-- grip:bbbbbbbb turns:{first},{second} -->",
        f"- Found: the parsnip. <!-- grip:cccccccc turns:{third} -->",
    ]
    remembered.journal.summarize(remembered.day.stem, [first, second, third], bullets)
    remembered.sync()
    remembered.forget(remembered.select(second))
    lines = remembered.day.read_text().split("\n")
    assert [line for line in lines if "grip" in line] == [bullets[0], bullets[2]]
    assert remembered.holders() == []
    remembered.forget(remembered.select("cccccccc"))
    assert third in remembered.turns
    assert "grip:cccccccc" not in remembered.day.read_text()
    turns = turns_of(remembered.journal.day(remembered.day.stem), SESSION)
    assert all(turn.is_summarized for turn in turns)


def test_a_passage_without_id_is_erased_by_its_chunk(remembered: Remembered) -> None:
    notes = Path(remembered.stage.project.memory, "notes.md")
    text = "# One\n\n" + "A carrot. " * 20 + f"\n\n# Two\n\nThe {WORD}. " + "So be it. " * 20 + "\n\n# Three\n\n"
    text += "A parsnip. " * 20 + "\n"
    notes.write_text(text)
    remembered.sync()
    chunks = open_chunks(remembered.stage.project, remembered.stage.home, remembered.settings)
    assert chunks is not None
    (place,) = (n for n in range(len(chunks)) if "# Two" in chunks.chunk(n).content)
    remembered.forget(remembered.select(remembered.turns[1], chunks.id(place)[:12]))
    assert remembered.holders() == []
    assert notes.read_text() == text[: text.index("# Two")] + text[text.index("# Three") :]


def test_files_of_the_user_are_refused(remembered: Remembered) -> None:
    other = Path(remembered.stage.project.root, "README.md")
    other.write_text(f"# Two\n\nThe {WORD}. " + "So be it. " * 20)
    remembered.settings = Settings(memory=type(Settings().memory)(paths=(".memkit/memory", "README.md")))
    remembered.sync()
    chunks = open_chunks(remembered.stage.project, remembered.stage.home, remembered.settings)
    assert chunks is not None
    (place,) = (n for n in range(len(chunks)) if chunks.chunk(n).source == "README.md")
    with pytest.raises(MemkitError, match=r"README\.md:1-3 is in a file of your own"):
        remembered.select(chunks.id(place)[:12])


def test_a_note_is_erased(remembered: Remembered) -> None:
    from datetime import datetime, timezone

    note = make_note("The salsify.", ["roots"], datetime.fromtimestamp(NOW, timezone.utc), str)
    assert remembered.journal.add_note(note)
    assert not remembered.journal.add_note(note)
    remembered.sync()
    before = _sections(remembered)
    assert remembered.holders("salsify")
    remembered.forget(remembered.select(note.id))
    assert remembered.holders("salsify") == []
    assert _sections(remembered) == before


def test_recall_hides_forgotten_turns_of_the_transcript(remembered: Remembered) -> None:
    remembered.forget(remembered.select(remembered.turns[1]))
    original = find_original(remembered.stage.home, SESSION)
    assert original is not None
    assert original.archive is None
    said = [message.as_dict() for message in original.messages(str)]
    assert WORD not in json.dumps(said)
    assert "parsnip" in json.dumps(said)


def test_the_index_of_a_deleted_project_is_erased(remembered: Remembered) -> None:
    project, second = remembered.stage.project, remembered.turns[1]
    selection = remembered.select(second)
    shutil.rmtree(project.root)
    assert any("snapshots" in name for name in remembered.holders())
    assert remembered.forget(selection) == []
    assert remembered.holders() == []


STEPS = {
    "tombstone": "memkit.privacy.tombstones.write_state",
    "journal": "memkit.journal.files.MemoryDirectory._put",
    "archive": "memkit.archive.archive.Archive.rewrite",
    "sync": "memkit.forget.erase.sync_project",
    "erase": "memkit.forget.erase.erase_dead",
    "finish": "memkit.privacy.tombstones.Tombstones.finish",
}


@pytest.mark.parametrize("step", STEPS)
def test_the_next_run_finishes_a_killed_one(
    remembered: Remembered, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    selection = remembered.select(remembered.turns[1])
    index_with_another_file(remembered.stage.project, remembered.stage.home, remembered.settings)

    def killed(*arguments: object, **named: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(STEPS[step], killed)
        remembered.forget(selection)
    unfinished = Tombstones(remembered.stage.home).unfinished()
    assert (unfinished is None) == (step == "tombstone")
    assert (remembered.holders() == []) == (step == "finish")
    if step != "tombstone":  # an import does not bring it back meanwhile
        assert remembered.take_in().left_out == 1
    remembered.forget(selection if step == "tombstone" else ForgetSelection())
    assert remembered.holders() == []
    assert Tombstones(remembered.stage.home).unfinished() is None


def test_tombstones_hold_no_text_and_are_not_read_as_empty(remembered: Remembered) -> None:
    path = Path(remembered.stage.home.forgotten)
    remembered.forget(remembered.select(remembered.turns[1]))
    assert path.stat().st_mode & 0o777 == 0o600
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "version": VERSION + 1}))
    with pytest.raises(NewerFileError, match="newer memkit"):
        remembered.take_in()
    path.write_text("{")
    with pytest.raises(DamagedFileError, match="restore it from a backup"):
        remembered.take_in()


def test_lines_of_an_extract_are_erased_with_their_turns(remembered: Remembered) -> None:
    first, second, third = remembered.turns
    lines = [
        extract_line("Edited: carrot.py", [first]),
        extract_line(f"Edited: carrot.py, {WORD}.py", [first, second]),
        extract_line("Open: Where is the parsnip?", [third]),
    ]
    remembered.journal.summarize(remembered.day.stem, remembered.turns, lines, key="extract")
    remembered.sync()
    remembered.forget(remembered.select(second))
    text = remembered.day.read_text()
    assert [line for line in text.split("\n") if "grip" in line] == [lines[0], lines[2]]
    assert remembered.holders() == []
    (grip,) = re.findall(r"carrot.py <!-- grip:(\w+)", text)
    remembered.forget(remembered.select(grip))
    assert lines[0] not in remembered.day.read_text()
    remembered.forget(remembered.select(third))
    assert "by:extract" not in remembered.day.read_text()
    assert extracted(remembered.journal.day(remembered.day.stem), SESSION) == {first}
