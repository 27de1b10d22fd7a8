"""Files of other versions: newer ones are refused in one line and stay as they are; older ones are read."""

from __future__ import annotations

import json
import shutil
import time
from datetime import datetime, timezone
from pathlib import Path

import pytest
import zstandard

import memkit
from memkit.agents.sources import Source
from memkit.archive.archive import Archive
from memkit.archive.turn import ArchivedTurn
from memkit.capture.capture import Capture
from memkit.capture.importer import ImportRecord
from memkit.capture.sessions import LiveSessions, Session, Sessions
from memkit.capture.summary_queue import SummaryQueue
from memkit.errors import ArchiveVersionError, MemkitError, NewerFileError
from memkit.hook import notices
from memkit.index.catalog import identity
from memkit.index.memory_files import added_paths, change_paths
from memkit.ipc import spool, unindexed
from memkit.journal.facts import FactFile
from memkit.journal.journal import Journal
from memkit.llm.ledger import Call, Ledger
from memkit.paths import Home
from memkit.privacy.tombstones import Forgotten, Tombstones
from memkit.projects.project import Project, Registry, registry_path
from memkit.projects.registry import changing
from memkit.service.jobs import JobBook, JobState, due_jobs
from memkit.service.operations import PointerHistory
from memkit.settings import Settings, load
from memkit.topics.topic_store import read_kept
from tests.builders import Lines
from tests.fixtures.homes.make import HERE, ROOT, SESSION, TURN, WHEN, make


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(str(tmp_path / "home"))


def newer(path: Path) -> bytes:
    """Let the JSON in a file be of a newer version, with something that only that one knows."""
    value = {**json.loads(path.read_bytes()), "version": 2, "only-newer": True}
    path.write_text(json.dumps(value))
    return path.read_bytes()


def test_the_state_of_a_session(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    sessions = Sessions(home)
    sessions.save(Session("s"))
    planted = newer(sessions.path("s"))
    with pytest.raises(NewerFileError, match=r"written by a newer memkit .*; update memkit$"):
        sessions.load("s")
    assert list(sessions) == []
    assert "update memkit" in caplog.text
    project = str(Path(home.root).parent)
    record = {"event": "Stop", "session": "s", "transcript": f"{project}/s.jsonl", "project": project,
              "cwd": project, "time": time.time()}  # fmt: skip
    with pytest.raises(NewerFileError):  # so the event waits, and is kept when it was tried in vain
        Capture(home, Settings()).handle(record, Project(project), time.time())
    assert sessions.path("s").read_bytes() == planted


def test_files_of_a_newer_version_are_refused_and_stay(home: Home) -> None:
    ledger = Ledger(home)
    ledger.record(Call("1", 1.0, "summary", "p", "m", "/r"))
    with ledger.path.open("a") as file:
        file.write('{"version": 2, "id": "2"}\n')
    with pytest.raises(NewerFileError, match="update memkit"):
        ledger.today()
    waiting, book, project = SummaryQueue(home), JobBook(home), Project(str(Path(home.root).parent))
    waiting.add("/r", "s", ["2026-11-20"], 1.0)
    change_paths(home, project, add=["/notes"])
    book.update("tidy", last=1.0)
    (queued,), (paths,) = waiting.directory.glob("*.json"), Path(home.projects).glob("*.paths.json")
    for path, acts in (
        (queued, [lambda: waiting.add("/r", "s", ["2026-11-21"], 2.0)]),
        (paths, [lambda: added_paths(home, project), lambda: change_paths(home, project, add=["/other"])]),
        (Path(home.run, "jobs.json"), [lambda: due_jobs(home, Settings(), 0.0), lambda: book.update("tidy", last=2.0)]),
    ):
        planted = newer(path)
        for act in acts:
            with pytest.raises(NewerFileError):
                act()
        assert path.read_bytes() == planted
    assert list(waiting) == []


def test_the_archive(home: Home) -> None:
    archive = Archive(home)
    archive.append("s", [ArchivedTurn("a", ())])
    header = json.dumps({"format": "memkit archive", "version": 2, "session": "s"}) + "\n"
    planted = zstandard.ZstdCompressor().compress(header.encode())
    archive.path("s").write_bytes(planted)
    for act in (lambda: archive.turns("s"), lambda: archive.append("s", [ArchivedTurn("b", ())])):
        with pytest.raises(ArchiveVersionError, match="update memkit"):
            act()
    assert archive.path("s").read_bytes() == planted


def test_an_event_is_kept(home: Home) -> None:
    name = spool.put(home, {"event": "Stop", "session": "s"})
    path = Path(home.spool, "new", name)
    path.write_text(json.dumps({"event": "Stop", "schema": spool.SCHEMA + 1, "only-newer": [1]}))
    assert spool.claim(home, name, time.time()) is None
    (item,) = spool.failed(home)
    assert item.record["only-newer"] == [1]
    assert "newer memkit" in item.record["error"]


@pytest.mark.parametrize("text", ['{"version": 2}', '[2, {"only": "newer"}]', '"newer"', "2"])
def test_what_is_under_way_is_no_worse_than_missing(home: Home, tmp_path: Path, text: str) -> None:
    run = Path(home.run)
    for name in ("live/a.json", "shown/a.json", "unindexed/a.json", "notices/a.json", "hooks.json",
                 "../projects/0123456789abcdef.json", "../env/failed.json", "../log/events.jsonl"):  # fmt: skip
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text(text)
    shutil.copy(run / "shown" / "a.json", PointerHistory(home)._path("s"))
    from memkit import environment
    from memkit.search import usage

    assert list(LiveSessions(home)) == []
    assert isinstance(PointerHistory(home).of("s"), set)
    assert unindexed.roots(home) == []
    assert notices.take(home, "/r") == []
    assert environment.last_failure(home.root) is None
    assert usage.usage(home).searches == 0
    assert identity(Project(str(tmp_path)), home)
    load.publish_hook_settings(home)
    assert json.loads((run / "hooks.json").read_bytes())["inject"] == "pointers"


@pytest.fixture(params=sorted(path.name for path in HERE.iterdir() if path.is_dir() and path.name[0] != "_"))
def released(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of what a released version wrote."""
    copy = Path(shutil.copytree(HERE / request.param, tmp_path / "released"))
    for name in ("tmp", "claimed", "failed"):  # empty, so git does not keep them
        (copy / "home" / "spool" / name).mkdir(exist_ok=True)
    return copy


def test_this_version_reads_what_released_ones_wrote(released: Path) -> None:
    home = Home(str(released / "home"))
    assert load.load(home).settings.search.k == 7
    (session,) = Sessions(home)
    assert (session.id, session.offset, session.size, session.last_event) == (SESSION, 120, 340, WHEN.timestamp())
    assert set(session.growing_in(ROOT)[TURN].hashes) == {"0123456789abcdef"}
    (turn,) = Archive(home).turns(SESSION)
    assert (turn.id, turn.project, turn.messages[1].text) == (TURN, ROOT, "7443.")
    assert turn.messages[1].tools[0].input == {"file_path": "a.py"}
    (call,) = Ledger(home).calls()
    assert (call.tokens_in, call.usd, call.outcome) == (900, 0.001, "ok")
    (waiting,) = SummaryQueue(home)
    assert (waiting.root, waiting.days) == (ROOT, ["2026-11-20"])
    assert added_paths(home, Project(ROOT)) == ["/home/you/notes"]
    forgotten = Tombstones(home).forgotten()
    assert forgotten.covers("0badcafe", "", "", None)
    assert forgotten.covers("", "/home/you/gone", "", WHEN.timestamp() - 1)
    assert forgotten.covers_typed(datetime.fromtimestamp(29_719_562 * 60, timezone.utc))
    registry = Registry.read(home)
    assert (registry.name_of(ROOT), registry.earlier_roots(ROOT)) == ("The shop", ["/home/you/old-shop"])
    assert JobBook(home).state("tidy") == JobState(WHEN.timestamp(), result="done")
    (name,) = spool.waiting(home)
    item = spool.claim(home, name, time.time())
    assert item is not None
    assert (item.record["event"], item.record["session"]) == ("Stop", SESSION)


def test_this_version_goes_on_with_what_released_ones_wrote(released: Path) -> None:
    home = Home(str(released / "home"))
    (session,) = Sessions(home)
    Sessions(home).save(session)
    assert list(Sessions(home)) == [session]
    Ledger(home).record(Call("call-2", WHEN.timestamp() + 1, "summary", "anthropic", "small", ROOT))
    assert [one.id for one in Ledger(home).calls()] == ["call-1", "call-2"]
    assert Archive(home).append(SESSION, [*Archive(home).turns(SESSION), ArchivedTurn("b", ())]) == 1
    assert JobBook(home).update("tidy", last=2.0).result == "done"
    project = Project(str(released / "project"))
    Path(project.memory).mkdir(parents=True)
    shutil.copy(released / "2026-11-20.md", project.memory)
    assert Journal(project).summarize("2026-11-20", [TURN], ["- It listens on 7443."])
    assert "- It listens on 7443." in Path(project.memory, "2026-11-20.md").read_text()


def test_topics_and_rollups_of_released_versions(released: Path) -> None:
    kept = read_kept(Home(str(released / "home")), Project(ROOT))
    assert kept.topics["c0ffee00"].label == "Gateway"
    assert kept.topics["c0ffee00"].current_model_label is not None
    assert [one.words for one in kept.changes] == ["was merged into c0ffee00"]
    rollup = FactFile((released / "2026-W47.md").read_text(), "2026-W47.md")
    assert (rollup.title, rollup.basis) == ("The gateway moves", "0123456789abcdef")
    assert [one.fact.text for one in rollup.facts()] == ["The gateway listens on 7443."]


def test_the_fixture_of_this_version_is_made_by_the_script(tmp_path: Path) -> None:
    make(tmp_path)

    def files(directory: Path) -> set[Path]:
        """Git keeps no empty directories."""
        found = (path for path in directory.rglob("*") if path.is_file() and path.suffix != ".lock")
        return {path.relative_to(directory) for path in found}

    assert files(HERE / memkit.__version__) == files(tmp_path)


def test_what_was_forgotten(home: Home, tmp_path: Path) -> None:
    tombstones = Tombstones(home)
    tombstones.begin(Forgotten(turns=frozenset({TURN})))
    planted = newer(tombstones.path)
    transcript = Lines().prompt("Which port?", "p").answer("7443.").write(tmp_path)
    record = {"event": "Stop", "session": "s", "transcript": str(transcript), "project": str(tmp_path), "cwd": str(tmp_path),
              "time": time.time(), "prompt_id": "p"}  # fmt: skip
    for act in (tombstones.forgotten, tombstones.finish, lambda: tombstones.begin(Forgotten()),
                lambda: Capture(home, Settings()).handle(record, Project(str(tmp_path)), time.time() + 60)):  # fmt: skip
        with pytest.raises(NewerFileError, match=r"written by a newer memkit .*; update memkit$"):
            act()
    assert tombstones.path.read_bytes() == planted


def test_the_registry_of_projects(home: Home) -> None:
    with changing(home) as registry:
        registry.names["/r"] = "R"
    path = Path(registry_path(home))
    planted = newer(path)
    read = Registry.read(home)
    assert read.names == {}
    assert read.problem.endswith("; update memkit")
    with pytest.raises(MemkitError, match="written by a newer memkit"), changing(home):
        pass
    assert path.read_bytes() == planted


def test_the_record_of_an_import_is_begun_anew(home: Home, tmp_path: Path) -> None:
    path = Path(home.run, "import.jsonl")
    path.parent.mkdir(parents=True)
    path.write_text('{"version": 2}\n["/a.jsonl", 1, 2]\n')
    source = Source(Path("/a.jsonl"), 1, 2, "", 0.0)
    record = ImportRecord(home, "all")
    assert not record.has(source)
    record.add(source)
    assert ImportRecord(home, "all").has(source)
