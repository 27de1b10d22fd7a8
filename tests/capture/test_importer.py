"""Sessions that memkit did not see: imported, they leave what live capture would have left."""

from __future__ import annotations

import json
import os
import shutil
import tracemalloc
from collections.abc import Callable, Iterable
from datetime import date, datetime, timezone
from pathlib import Path

import pytest

from memkit.agents.claude_code.transcript import Transcript
from memkit.agents.sources import Source, find_sources, project_of
from memkit.agents.turns import read_turns
from memkit.archive.archive import Archive
from memkit.capture.capture import Capture
from memkit.capture.importer import (
    Importer,
    ImportRecord,
    ImportReport,
    ImportSelection,
    preview_import,
)
from memkit.paths import OFF_MARKER, Home
from memkit.projects.project import Project
from memkit.settings.load import Settings
from tests.builders import Lines
from tests.capture.places import RECORDED
from tests.capture.stage import Stage, prompt_id
from tests.ci import only_in_ci
from tests.memory import FakeEmbedder, Memory

OTHER = "99999999-7d4e-4b8a-9f15-0c6d2e8b7a44"
SWEPT = "77777777-7d4e-4b8a-9f15-0c6d2e8b7a44"


def nothing(read: int) -> None:
    pass


class Client:
    """The client's own directory, and imports of what is in it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.directory = stage.root / "claude"
        self.history = self.directory / "history.jsonl"
        (self.directory / "projects").mkdir(parents=True)

    def write(self, lines: Lines, cwd: str = "") -> Path:
        """A transcript of a session held in `cwd`, by default the project."""
        cwd = cwd or self.stage.project.root
        for entry in lines.entries:
            entry["cwd"] = cwd
        folder = self.directory / "projects" / cwd.replace("/", "-")
        folder.mkdir(exist_ok=True)
        return lines.write(folder)

    def typed(self, *lines: object) -> None:
        with self.history.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)

    def selection(self, **chosen: object) -> ImportSelection:
        sources = find_sources([self.directory / "projects"])
        values = {"history": self.history, **chosen}
        return ImportSelection(self.stage.home, sources, self.stage.project, **values)  # type: ignore[arg-type]

    def run(self, **chosen: object) -> ImportReport:
        running = Importer(self.selection(**chosen), Settings())
        report = running.run(nothing)
        running.record.finish()
        return report


@pytest.fixture
def client(stage: Stage) -> Client:
    return Client(stage)


def days(project: Project) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(Path(project.memory).glob("*.md"))}


def recorded_in(project: Project, directory: Path) -> list[Path]:
    """The recorded transcripts, as if they had been held in `project`, where the client keeps them."""
    copies = []
    for path in sorted(RECORDED.glob("*.jsonl")):
        text = path.read_text().replace("/home/shop", project.root)
        session = next(entry.session for entry in Transcript(path) if entry.session)
        copy = directory / f"{session}.jsonl"
        copy.write_text(text)
        copies.append(copy)
    return copies


def play(stage: Stage, path: Path, whole: bytes) -> Iterable[None]:
    """The events of a session, its transcript growing under them; hands over after each turn."""
    turns = list(read_turns(Transcript(path)))
    path.write_bytes(b"")
    for turn, end in zip(turns, [*(turn.start for turn in turns[1:]), len(whole)], strict=True):
        path.write_bytes(whole[:end])
        place = {"session": path.stem, "transcript": str(path), "prompt_id": turn.prompt_id}
        name = "Stop" if turn.answer and not turn.interrupted else "StopFailure"
        stage.handle(name, late=True, message=turn.answer, **place)
        yield
    stage.handle("SessionEnd", late=True, session=path.stem, transcript=str(path))


def contents(home: Home, project: Project) -> object:
    """Everything in the index of the project."""
    memory = Memory(home, project, FakeEmbedder())
    memory.sync()
    return memory.contents()


def test_the_same_as_live_capture_byte_for_byte(stage: Stage, client: Client) -> None:
    folder = client.directory / "projects" / "-project"
    folder.mkdir()
    paths = recorded_in(stage.project, folder)
    whole = {path: path.read_bytes() for path in paths}
    running = [iter(play(stage, path, whole[path])) for path in reversed(paths)]
    while running:  # a turn of each session in turn
        running = [one for one in running if next(one, "over") != "over"]
    live, index = days(stage.project), contents(stage.home, stage.project)
    archived = {name: Archive(stage.home).turns(name) for name in Archive(stage.home).sessions()}
    assert sum(day.count(b"<!-- session:") for day in live.values()) > 5

    shutil.rmtree(stage.project.memory)
    shutil.rmtree(stage.home.root)
    assert {path: path.read_bytes() for path in paths} == whole
    assert client.run().problems == []
    assert days(stage.project) == live
    assert contents(stage.home, stage.project) == index
    assert {n: Archive(stage.home).turns(n) for n in Archive(stage.home).sessions()} == archived


class TestPlaces:
    """Each session goes to the project it was held in."""

    def test_several_projects_one_of_them_gone(self, stage: Stage, client: Client) -> None:
        gone = str(stage.root / "gone" / "shop")
        client.write(Lines().prompt("Here", prompt_id(1)).answer("1"))
        client.write(Lines(OTHER).prompt("There", prompt_id(2)).answer("2"), gone)
        assert client.run().total.written == 2
        assert "Here" in stage.journal
        assert "There" not in stage.journal
        kept = Project.at_root(gone, stage.home)
        assert Path(kept.root).parent == Path(stage.home.projects)
        (day,) = days(kept).values()
        assert b"There" in day

    def test_below_a_repository_that_is_still_there(self, stage: Stage) -> None:
        (Path(stage.project.root) / ".git").mkdir()
        found = project_of(f"{stage.project.root}/deleted/since", stage.home)
        assert found == stage.project

    @pytest.mark.parametrize("cwd", ["", "shop", "../shop", "-rf"])
    def test_a_path_that_is_not_a_directory_names_no_project(self, stage: Stage, cwd: str) -> None:
        assert project_of(cwd, stage.home) is None

    @pytest.mark.parametrize("cwd", ["/", "/..", "/a/..", "/x" * 3000, "/\n", "/ü/<b>\x7f", "/a/-rf", "/.."])
    def test_a_name_is_safe_and_stays_below_the_home(self, stage: Stage, cwd: str) -> None:
        found = project_of(cwd, stage.home)
        assert found is not None
        if not os.path.isdir(os.path.realpath(cwd)):
            assert os.path.dirname(os.path.realpath(found.root)) == os.path.realpath(stage.home.projects)

    def test_one_that_is_switched_off_stays_off(self, stage: Stage, client: Client) -> None:
        marker = Path(stage.project.root, OFF_MARKER)
        marker.parent.mkdir()
        marker.touch()
        client.write(Lines().prompt("Here", prompt_id(1)).answer("1"))
        client.typed({"display": "typed", "timestamp": 1_600_000_000_000, "project": stage.project.root})
        assert client.run().total.turns == 0
        assert preview_import(client.selection(), nothing).turns == 0
        assert stage.days == []

    def test_all_into_one_where_one_is_named(self, stage: Stage, client: Client) -> None:
        client.write(Lines().prompt("There", prompt_id(2)).answer("2"), "/no/such/place")
        assert client.run(into=stage.project).total.projects == {stage.project.root}


def test_one_unreadable_transcript_is_named_and_the_others_are_read(stage: Stage, client: Client) -> None:
    client.write(Lines().prompt("Here", prompt_id(1)).answer("1"))
    selection = client.selection()
    lost = client.write(Lines(OTHER).prompt("Lost", prompt_id(2)).answer("2"))
    both = client.selection()
    lost.unlink()
    assert len(both.sources) == len(selection.sources) + 1
    report = Importer(both, Settings()).run(nothing)
    assert len(report.problems) == 1
    assert str(lost) in report.problems[0]
    assert report.total.written == 1
    assert len(preview_import(both, nothing).problems) == 1


def test_a_fork_does_not_take_the_turns_of_its_origin(stage: Stage, client: Client) -> None:
    origin = Lines().prompt("One", prompt_id(1)).answer("1")
    fork = Lines(OTHER)
    fork.entries = [{**entry, "sessionId": OTHER} for entry in origin.entries]
    fork.prompt("Two", prompt_id(2)).answer("2")
    forked = client.write(fork)
    original = client.write(origin)
    os.utime(original, (1_700_000_000, 1_700_000_000))
    assert forked.stat().st_mtime > original.stat().st_mtime
    client.run()
    assert stage.journal.index(f"session:{origin.session}") < stage.journal.index("Two")
    assert stage.journal.index("**Answered** 1") < stage.journal.index(f"session:{OTHER}")


def test_the_turns_that_a_fork_copied_are_known(stage: Stage, client: Client) -> None:
    origin = Lines().prompt("One", prompt_id(1)).answer("1").prompt("Two", prompt_id(2)).answer("2")
    path = client.write(origin)
    client.write(origin.fork(OTHER, prompt_id(3)).prompt("Three", prompt_id(3)).answer("3"))
    assert client.run().total.written == 3
    assert [title for title, _ in stage.turns] == ["One", "Two", "Three"]
    assert client.run().total.written == 0
    path.unlink()  # Claude Code keeps 30 days
    assert client.run().total.written == 0


class TestSince:
    """Only the turns from a day on."""

    def test_turns_before_it_are_left_out(self, stage: Stage, client: Client) -> None:
        lines = Lines().prompt("Old", prompt_id(1), timestamp="2026-03-03T10:00:00Z")
        lines.answer("1", timestamp="2026-03-03T10:00:01Z").prompt("New", prompt_id(2)).answer("2")
        client.write(lines)
        assert client.run(since=date(2026, 3, 4)).total.turns == 1
        assert preview_import(client.selection(since=date(2026, 3, 4)), nothing).turns == 1
        assert "Old" not in stage.journal
        assert client.run().total.written == 1
        assert "Old" in stage.journal

    def test_transcripts_not_written_to_since_are_not_read(self, client: Client) -> None:
        path = client.write(Lines().prompt("Old", prompt_id(1)).answer("1"))
        before = datetime(2026, 3, 3, 23, 59, 59, tzinfo=timezone.utc).timestamp()
        os.utime(path, (before, before))
        assert client.selection(since=date(2026, 3, 4)).wanted == []
        assert len(client.selection(since=date(2026, 3, 3)).wanted) == 1


class TestHistory:
    """The client's own history fills in what it has no transcript of any more."""

    def line(self, stage: Stage, text: str, minute: int, session: str = "", **fields: object) -> object:
        time = datetime(2026, 3, 5, 9, minute, tzinfo=timezone.utc)
        named = {"sessionId": session} if session else {}
        placed = {"timestamp": int(time.timestamp() * 1000), "project": stage.project.root}
        return {"display": text, "pastedContents": {}, **placed, **named, **fields}

    def test_prompts_of_deleted_sessions(self, stage: Stage, client: Client) -> None:
        lines = Lines().prompt("Still there", prompt_id(1)).answer("1")
        client.write(lines)
        pasted = {"1": {"id": 1, "type": "text", "content": "the log\nof it"}}
        client.typed(
            self.line(stage, "Still there", 0, lines.session),
            self.line(stage, "Why does it fail? [Pasted text #1 +1 lines]", 1, SWEPT, pastedContents=pasted),
            self.line(stage, "/clear", 2, SWEPT),
            self.line(stage, "! ls", 3, SWEPT),
            self.line(stage, "not this #skip", 4, SWEPT),
            self.line(stage, "elsewhere", 5, OTHER, project="/no/such/shop"),
            self.line(stage, "the key is sk-ant-api03-" + "aB3dE5gH7jK9mN1pQ3rS", 6, SWEPT),
        )
        report = client.run(only=stage.project)
        assert report.history.written == 2
        assert preview_import(client.selection(only=stage.project), nothing).typed == 2
        assert stage.turns == [
            ("Still there", "1"),
            ("Why does it fail? the log", ""),
            ("the key is [redacted:anthropic-key]", ""),
        ]
        assert f"session:{SWEPT}" in stage.journal
        before = days(stage.project)
        assert client.run().history.written == 1  # elsewhere
        assert days(stage.project) == before

    def test_a_session_that_was_remembered_live_is_not_doubled(self, stage: Stage, client: Client) -> None:
        path = client.write(Lines().prompt("Seen", prompt_id(1)).answer("1"))
        client.run()
        path.unlink()
        client.typed(self.line(stage, "Seen", 0, path.stem))
        assert client.run().history.turns == 0
        shutil.rmtree(stage.home.sessions)  # the archive knows it as well
        assert client.run().history.turns == 0

    def test_prompts_without_a_session_fill_only_empty_days(self, stage: Stage, client: Client) -> None:
        client.typed(self.line(stage, "One", 1), self.line(stage, "Two", 2))
        assert client.run().history.written == 2
        assert stage.journal.count("## 09:01 One <!-- session:history-2026-03-05-") == 1
        before = days(stage.project)
        assert client.run().history.written == 0
        assert days(stage.project) == before
        shutil.rmtree(stage.project.memory)
        day = Lines(OTHER).prompt("Seen", prompt_id(1), timestamp="2026-03-05T12:00:00Z")
        client.write(day.answer("1", timestamp="2026-03-05T12:00:01Z"))
        assert client.run().history.written == 0
        assert stage.turns == [("Seen", "1")]

    def test_lines_of_any_form(self, client: Client) -> None:
        whole = {"display": "x", "timestamp": 1, "project": "/x"}
        odd = [{"display": 5}, {"display": " "}, {"project": None}]
        odd += [{"timestamp": one} for one in (1e300, True, "soon")]
        client.typed(5, [], None, {}, *({**whole, **one} for one in odd))
        with client.history.open("ab") as file:
            file.write(b'{"display": "\xff\n\x00\n' + b"[" * 100_000 + b"\n{")
        assert client.run().problems == []

    def test_a_missing_and_an_unreadable_history(self, client: Client) -> None:
        assert client.run().problems == []
        client.history.mkdir()
        (problem,) = client.run().problems
        assert str(client.history) in problem
        assert len(preview_import(client.selection(), nothing).problems) == 1


def test_a_run_after_a_kill_goes_on(stage: Stage, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        name = f"{number:08d}-7d4e-4b8a-9f15-0c6d2e8b7a44"
        client.write(Lines(name).prompt(f"P{number}", prompt_id(number)).answer("1"))
    selection = client.selection()
    killed = Importer(selection, Settings())

    def die(read: int) -> None:
        if read > sum(source.size for source in selection.sources[:2]):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        killed.run(die)
    changed = Lines(selection.sources[0].path.stem).prompt("P0", prompt_id(0)).answer("1")
    client.write(changed.prompt("more", prompt_id(9)).answer("2"))
    read: list[Path] = []
    original = Capture.import_file

    def note(self: Capture, path: Path, *rest: object) -> object:
        read.append(path)
        return original(self, path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Capture, "import_file", note)
    report = client.run()
    assert report.done_before == 1  # of the two, one has grown since
    assert len(read) == 3
    assert sorted(title for title, _ in stage.turns) == ["P0", "P1", "P2", "P3", "more"]
    assert client.run().done_before == 0  # complete: another one looks at everything


def test_days_wait_on_after_a_kill(stage: Stage, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{number:08d}-7d4e-4b8a-9f15-0c6d2e8b7a44" for number in range(2)]
    client.write(Lines(names[0]).prompt("P0", prompt_id(0)).answer("1"))
    client.write(Lines(names[1]).prompt("P1", prompt_id(1)).answer("2"))
    original = ImportRecord.add

    def die(self: ImportRecord, source: Source) -> None:
        original(self, source)
        if source.path.stem == names[0]:
            raise KeyboardInterrupt

    monkeypatch.setattr(ImportRecord, "add", die)
    killed = Importer(client.selection(), Settings())
    with pytest.raises(KeyboardInterrupt):
        killed.run(nothing)
    with killed.record.path.open("a") as file:
        file.write('{"root": "/half')
    resumed = Importer(client.selection(), Settings())
    assert resumed.run(nothing).done_before == 1
    root = stage.project.root
    assert {session: len(days) for session, days in resumed.record.days[root].items()} == dict.fromkeys(names, 1)
    other = ImportRecord(stage.home, "another import")  # takes the days over, not the transcripts
    assert other.days == resumed.record.days
    assert not any(map(other.has, client.selection().sources))
    other.finish()
    assert Importer(client.selection(), Settings()).record.days == {}


@pytest.mark.parametrize(
    "look", [preview_import, lambda chosen, told: Importer(chosen, Settings()).run(told)]
)
@only_in_ci
def test_memory_is_bounded(stage: Stage, client: Client, look: Callable[..., object]) -> None:
    output = "0123456789 " * 2000
    path = client.write(Lines())
    read: list[int] = []

    def measure(turns: int) -> int:
        with path.open("w") as file:
            for number in range(turns):
                lines = Lines().prompt("make", prompt_id(number)).call("Bash", "t", command="make")
                for entry in lines.result("t", output).answer("done").entries:
                    day = f"2026-01-{1 + number // 25:02d}T10:00:00Z"
                    fields = {"uuid": f"{number}-{entry['uuid']}", "timestamp": day}
                    file.write(json.dumps({**entry, **fields, "cwd": stage.project.root}) + "\n")
        tracemalloc.start()
        try:
            look(client.selection(), read.append)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    measure(50)  # what is imported and compiled once
    small, large = measure(50), measure(300)
    assert path.stat().st_size > 6_000_000
    assert large < small + 1_000_000
    assert read[-1] == max(read) == path.stat().st_size


@pytest.mark.parametrize("name", ["2026-03-04-release.md", "old/2026-03-04.md", "März.md"])
def test_a_day_that_a_person_renamed_is_not_written_again(stage: Stage, client: Client, name: str) -> None:
    lines = Lines().prompt("One", prompt_id(1)).answer("1").prompt("Two", prompt_id(2)).answer("2")
    client.write(lines)
    assert client.run().total.written == 2
    (day,) = Path(stage.project.memory).glob("*.md")
    renamed = Path(stage.project.memory, name)
    renamed.parent.mkdir(exist_ok=True)
    day.rename(renamed)
    assert (client.run().total.written, days(stage.project)) == (0, days(stage.project))
    assert not day.exists()
    client.write(lines.prompt("Three", prompt_id(3)).answer("3"))
    assert client.run().total.written == 1
    assert day.read_text().count(" turn:") == 1
