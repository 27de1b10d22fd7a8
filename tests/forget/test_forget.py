"""Forgotten text is in no file, and does not come back."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import time
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path

import chromadb
import msgspec
import pytest

from memkit.agents.claude_code.files import TypedPrompt
from memkit.browse.transcript import find_original
from memkit.capture.capture import Capture
from memkit.capture.summary_queue import Attempt, SummaryQueue
from memkit.conversation.values import parse_time
from memkit.errors import DamagedFileError, MemkitError, NewerFileError, NotFoundError
from memkit.forget.audit import Audit
from memkit.forget.selection import ForgetSelection, of_days, of_everything, of_session
from memkit.index import index_lock, open_chunks
from memkit.index import server as server_module
from memkit.ipc import spool
from memkit.journal.day_summaries import extracted, turns_of
from memkit.journal.extracts import extract_line
from memkit.memory import Memory
from memkit.privacy.tombstones import VERSION, Forgotten, Tombstones
from memkit.settings.load import Settings
from memkit.timeline.cache import MonthCache
from tests.builders import SESSION, Lines, entries, make_note
from tests.capture.stage import NOW, prompt_id
from tests.chroma_server import chroma_server
from tests.ci import every, set_zone
from tests.forget.remembered import WORD, Remembered, ask, index_with_another_file
from tests.index.test_server import SLOW_SECONDS
from tests.raw_bytes import files_holding

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


def test_a_session_title_that_repeats_the_turn_is_erased(remembered: Remembered) -> None:
    assert entries(remembered.day.read_text()).split("\n")[2].startswith("## 10:00 Where is the carrot kept")
    remembered.forget(remembered.select(remembered.turns[0]))
    assert entries(remembered.day.read_text()).split("\n")[2].startswith(f"## 10:00 Where is the {WORD} kept")
    assert remembered.holders("carrot") == []
    lines = entries(remembered.day.read_text()).split("\n")
    lines[2] = "## 10:00 In the kitchen " + lines[2][lines[2].index("<!--") :]
    remembered.day.write_text("\n".join(lines))
    remembered.forget(remembered.select(remembered.turns[0]))
    assert remembered.day.read_text().split("\n")[2] == lines[2]  # a title by the user stays
    original = find_original(remembered.stage.home, SESSION)
    assert original is not None and original.archive is None
    said = json.dumps([message.as_dict() for message in original.messages(str)])
    assert WORD not in said and "parsnip" in said  # nor is it read in the transcript


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
    assert not remembered.find(of_days(project, remembered.stage.home, date(2026, 3, 5), None, LATER))
    assert remembered.find(of_days(project, remembered.stage.home, None, DAY, LATER))
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
    set_zone(monkeypatch, zone)
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
    other = Path(remembered.stage.project.root, "README.md")  # a file of the user is refused
    other.write_text(f"# Two\n\nThe {WORD}. " + "So be it. " * 20)
    remembered.settings = Settings(memory=type(Settings().memory)(paths=(".memkit/memory", "README.md")))
    remembered.sync()
    chunks = open_chunks(remembered.stage.project, remembered.stage.home, remembered.settings)
    assert chunks is not None
    (place,) = (n for n in range(len(chunks)) if chunks.chunk(n).source == "README.md")
    with pytest.raises(MemkitError, match=r"README\.md:1-3 is in a file of your own"):
        remembered.select(chunks.id(place)[:12])


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
    "archive": "memkit.archive.archive.Archive.rewrite", "sync": "memkit.forget.erase.sync_project",
    "erase": "memkit.forget.erase.erase_dead", "finish": "memkit.privacy.tombstones.Tombstones.finish",
}  # fmt: skip


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
    tombstones, first = Tombstones(remembered.stage.home), remembered.turns[0]
    before = tombstones.forgotten().turns
    tombstones.begin(Forgotten(turns=frozenset({first})))  # they add up
    assert tombstones.begin(Forgotten(grips=frozenset({"b"}))).turns == {first}
    tombstones.finish()
    tombstones.begin(Forgotten(turns=frozenset({"cccccccc"})))
    assert tombstones.forgotten().turns == before | {first, "cccccccc"}
    assert tombstones.unfinished() == Forgotten(turns=frozenset({"cccccccc"}))
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


# The client's history of prompts does not bring back what was forgotten.


def test_a_prompt_of_a_forgotten_minute_stays_out(remembered: Remembered) -> None:
    remembered.forget(remembered.select(*remembered.turns))
    assert not remembered.journal.days()
    began = parse_time("2026-03-04T10:00:00.000Z")
    assert began is not None
    root = remembered.stage.project.root
    times = [began - timedelta(seconds=2), began + timedelta(minutes=5)]
    words = [f"Where is the {WORD}?", "Where is the celery?"]
    turns = [TypedPrompt(text, time, root, "").turn for text, time in zip(words, times, strict=True)]
    capture = Capture(remembered.stage.home, remembered.settings)
    captured = capture.import_turns(turns, remembered.stage.project)
    assert (captured.turns, captured.left_out) == (1, 1)
    assert remembered.holders() == []
    assert remembered.holders("celery") != []


# Forgetting reaches the rows on a Chroma server, and says so while it cannot.


def documents(port: int) -> list[str]:
    client = chromadb.HttpClient("127.0.0.1", port)
    found = [
        str(text)
        for one in client.list_collections()
        for text in client.get_collection(one.name, embedding_function=None).get()["documents"] or []
    ]
    client.close()
    return found


def test_a_turn_is_forgotten_on_the_server_too(
    remembered: Remembered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "ANSWER_SECONDS", SLOW_SECONDS)
    server_module.reset()
    with chroma_server(tmp_path) as running:
        remembered.settings = msgspec.convert({"index": {"uri": running.uri}}, Settings)
        remembered.sync()
        assert any(WORD in text for text in documents(running.port))
        others = sum(WORD not in text for text in documents(running.port))
        running.stop()
        selection = remembered.select(remembered.turns[1])
        (problem,) = remembered.forget(selection)
        assert "may still be on the server" in problem
        assert Tombstones(remembered.stage.home).unfinished() is not None
        server_module.reset()
        running.start()
        assert remembered.forget(selection) == []
        assert Tombstones(remembered.stage.home).unfinished() is None
        left = documents(running.port)
        assert len(left) == others
        assert not any(WORD in text for text in left)


# What is kept of a timeline goes with a forgotten turn, and does not return.


def look(remembered: Remembered) -> str:
    """Go through the timeline, down to the turns, as `memkit timeline` does. Return all that it said."""
    memory = Memory(
        remembered.stage.project, home=remembered.stage.home, settings_of=lambda _: remembered.settings
    )
    whole = memory.timeline(depth=5)
    parts = [memory.timeline(one["id"]) for one in whole["children"] if one["kind"] != "turn"]
    return json.dumps([whole, parts, memory.scan(WORD), memory.events()])


def kept(remembered: Remembered) -> list[Path]:
    return sorted(Path(remembered.stage.home.index, "timeline").glob("*/*"))


def test_a_forgotten_turn_is_in_no_timeline(remembered: Remembered) -> None:
    assert WORD in look(remembered)
    (month,) = kept(remembered)
    assert str(month.relative_to(remembered.stage.root)) in " ".join(remembered.holders())
    assert remembered.forget(remembered.select(remembered.turns[1])) == []
    assert (kept(remembered), remembered.holders()) == ([], [])
    after = look(remembered)
    assert WORD not in after.replace(f'"search": "{WORD}"', "")
    assert "carrot" in after and "parsnip" in after
    assert kept(remembered) == [month]
    assert remembered.holders() == []
    day, stage = date.fromisoformat(remembered.day.stem), remembered.stage
    assert remembered.forget(of_days(stage.project, stage.home, day, day, time.time())) == []
    assert "carrot" not in look(remembered)
    assert (kept(remembered), remembered.holders("carrot")) == ([], [])


def test_one_that_was_being_read_meanwhile_does_not_return(
    remembered: Remembered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look reads the days, a turn is forgotten, and the look wants to keep what it read."""
    write = MonthCache._write
    asked: Iterator[bool] = iter([True])

    def late(self: MonthCache, month: str, file: object) -> None:
        if next(asked, False):
            assert remembered.forget(remembered.select(remembered.turns[1])) == []
        write(self, month, file)  # type: ignore[arg-type]

    monkeypatch.setattr(MonthCache, "_write", late)
    look(remembered)
    assert remembered.holders() == []


def test_an_audit_removes_a_secret_from_timelines(remembered: Remembered) -> None:
    look(remembered)
    settings = msgspec.convert({"capture": {"redact": [f"(?i){WORD}"]}}, Settings)
    audit = Audit(remembered.stage.home, remembered.stage.project, lambda _: settings, lambda _: None)
    assert any("timeline" in str(one) for one in audit.search().found)
    with index_lock(remembered.stage.home, 5):
        assert audit.fix().remaining == []
    remembered.settings = settings
    look(remembered)
    assert len(kept(remembered)) == 1
    assert files_holding(remembered.stage.root, WORD, lambda path: path.suffix == ".jsonl") == []
