"""Three machines and a folder or a git repository, both real."""

from __future__ import annotations

import re
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from memkit.browse.names import find_day
from memkit.index import index_lock, sync_project
from memkit.journal.journal import Journal
from memkit.maintenance import sync
from memkit.projects.project import Project
from tests.builders import git, make_note
from tests.raw_bytes import files_holding
from tests.sync.machines import BEGAN, Machine, same


@pytest.fixture(params=["folder", "git"])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    path = tmp_path / "place"
    path.mkdir()
    if request.param == "git":
        git(path, "init", "-q", "--bare")
    return f"{request.param} {path}"


@pytest.fixture
def machines(tmp_path: Path, place: str) -> list[Machine]:
    clocks = {"laptop": timedelta(), "desk": timedelta(hours=1), "server": timedelta(minutes=-1)}
    return [Machine(tmp_path, name, place, ahead) for name, ahead in clocks.items()]


def settle(machines: list[Machine]) -> None:
    for machine in [*machines, *machines]:
        assert not machine.sync().problems


def test_three_machines_have_one_memory(machines: list[Machine]) -> None:
    laptop, desk, server = machines
    for number, machine in enumerate(machines * 2):
        machine.work(number)
    desk.note("The gateway is slow.")
    settle(machines)
    assert same(*machines)
    assert len(laptop.turns) == 7
    for machine in machines:  # twice changes nothing
        report = machine.sync()
        assert (report.sent, report.taken, report.problems) == (0, 0, [])
    server.work(9, day=7)
    server.sync()
    laptop.work(10, day=7)
    settle(machines)
    assert same(*machines)
    assert len(laptop.turns) == 9
    assert f"2026-03-11.{server.machine}" in laptop.journal.days()


def test_what_is_forgotten_anywhere_is_gone_everywhere(machines: list[Machine], tmp_path: Path) -> None:
    laptop, desk, server = machines
    secret = laptop.work(0, words="zqhorseradishzq")
    kept = laptop.work(1)
    desk.work(2)
    settle(machines)
    desk.forget(secret)  # not its own
    (week_later,) = [server.work(9, day=7)]
    desk.sync()
    server.sync()  # before the laptop: it must not bring it back
    laptop.sync()
    settle(machines)
    assert same(*machines)
    assert secret not in laptop.turns
    assert {kept, week_later} < set(laptop.turns)
    assert not files_holding(tmp_path, "zqhorseradishzq", lambda path: path.suffix == ".jsonl")
    place = tmp_path / "place"
    if (place / "HEAD").exists():
        for ref in git(place, "for-each-ref", "--format=%(refname)").split():
            with pytest.raises(subprocess.CalledProcessError):
                git(place, "grep", "-q", "zqhorseradishzq", ref)
            assert len(git(place, "log", "--oneline", ref).splitlines()) == 1
        for machine in machines:  # nor the local copies, in what no branch has
            copy = Path(machine.home.sync_repository)
            command = ["git", "-C", copy, "cat-file", "--batch-all-objects", "--batch", "--unordered"]
            assert b"zqhorseradishzq" not in subprocess.run(command, capture_output=True, check=True).stdout


def test_an_edited_day_keeps_the_edit_and_gets_new_turns(machines: list[Machine]) -> None:
    laptop, desk, _ = machines
    first, second = laptop.work(0), laptop.work(1)
    settle(machines)
    path = desk.journal.path(f"2026-03-04.{laptop.machine}")
    text = path.read_text().replace("It is laptop-0-answer", "It is what I say")
    section = next(part for part in text.split("\n## ") if f"turn:{second}" in part)
    path.write_text(text.replace("\n## " + section, "\n"))  # the user removes one turn and edits the other
    third = laptop.work(3)
    settle(machines)
    now = dict(desk.entries)
    assert "It is what I say" in now[first]
    assert second not in now
    assert third in now
    desk.forget(first)
    settle(machines)
    assert laptop.turns == sorted([second, third])


def test_a_forgotten_turn_does_not_make_a_day_edited(machines: list[Machine]) -> None:
    laptop, desk, _ = machines
    first, second = laptop.work(0), laptop.work(1)
    settle(machines)
    desk.forget(first)
    settle(machines)
    path = laptop.journal.path("2026-03-04")
    path.write_text(path.read_text().replace("It is laptop-1-answer", "It is my edit"))
    settle(machines)
    assert same(*machines)
    assert "It is my edit" in dict(desk.entries)[second]


def test_the_users_own_memory_reaches_a_new_machine(machines: list[Machine]) -> None:
    laptop, desk, _ = machines
    user = Project.of_user(laptop.home)
    Journal(user).add_note(make_note("I prefer tabs.", (), BEGAN, str))
    for machine in (laptop, desk):
        assert not machine.sync().elsewhere
    (day,) = Path(Project.of_user(desk.home).memory).glob("*.md")
    assert "I prefer tabs." in day.read_text()


def test_a_day_of_two_machines_is_one_day(machines: list[Machine]) -> None:
    laptop, desk, _ = machines
    for number, machine in enumerate([laptop, desk, laptop]):
        machine.work(number * 70)  # with its clock an hour ahead, between the others
    settle(machines)
    entry = find_day(laptop.journal, "2026-03-04", BEGAN.date())
    assert entry is not None
    assert re.findall("^## (.....)", entry.markdown, re.MULTILINE) == ["10:00", "12:10", "12:20"]
    assert len(re.findall("overview:", entry.markdown)) == 3
    assert entry.markdown.count("# 2026-03-04") == 1


def test_a_session_that_several_machines_imported_is_there_once(machines: list[Machine]) -> None:
    laptop, desk, server = machines
    turn = laptop.work(0)
    desk.work(0, by="laptop")
    settle(machines)
    server.work(0, by="laptop")  # when it has come from the others
    laptop.work(1)
    settle(machines)
    for machine in machines:
        assert machine.turns.count(turn) == 1
        assert len(machine.turns) == 2
    laptop.forget(turn)
    settle(machines)
    assert same(*machines)


def test_what_is_removed_of_another_machine_stays_away(machines: list[Machine]) -> None:
    laptop, desk, server = machines
    _, kept = laptop.work(0), laptop.work(1, day=1)
    for mine in map(laptop.journal.path, laptop.journal.days()):
        mine.write_text(mine.read_text().replace("\n\n", "\n\nWithout an ID.\n\n", 1))
    settle(machines)
    gone, theirs = desk.journal.path(f"2026-03-04.{laptop.machine}"), server.journal.path(f"2026-03-05.{laptop.machine}")
    gone.unlink()
    assert server.journal.remove_lines(theirs, 3, 3)
    new, other = laptop.work(2), laptop.work(3, day=1)
    settle(machines)
    assert set(desk.turns) == {kept, new, other}
    assert "Without an ID." not in gone.read_text() + theirs.read_text()
    shutil.rmtree(desk.project.memory)  # a deleted project that is back gets all
    laptop.work(4)
    settle(machines)
    assert len(desk.turns) == 5


def test_a_cloned_disk_is_another_machine(machines: list[Machine]) -> None:
    laptop, _, server = machines
    laptop.work(0)
    laptop.sync()
    shutil.copytree(laptop.home.sync, server.home.sync, dirs_exist_ok=True)
    laptop.work(1)
    server.work(2)
    settle(machines)
    assert server.machine != laptop.machine
    assert same(*machines)
    (Path(laptop.home.sync) / "state.json").unlink()  # what is in the place counts
    assert (laptop.sync().sent, server.sync().sent) == (0, 0)


def test_the_clone_that_is_used_gets_the_days(machines: list[Machine]) -> None:
    laptop, desk, server = machines
    shutil.copytree(desk.base / "shop", desk.base / "a-clone")  # a stranger's: it is the first by name
    with index_lock(desk.home, 5):
        sync_project(Project.remembering(str(desk.base / "a-clone"), desk.home), desk.home, desk.settings)
    desk.work(0)
    turn = laptop.work(1)
    settle([laptop, desk])
    assert turn in desk.turns
    for machine in (laptop, server):  # now their projects have the same name, and no more
        git(machine.base / "shop", "remote", "remove", "origin")
    settle([laptop])
    assert "name shop" in server.sync().elsewhere


def test_a_deleted_project_stays_forgotten(machines: list[Machine]) -> None:
    laptop, desk, _ = machines
    laptop.work(0)
    desk.work(1)
    settle([laptop, desk])
    laptop.forget()
    laptop.sync()
    shutil.rmtree(laptop.base / "shop")
    laptop.sync()
    desk.work(2)  # the other one does not know it
    settle([desk])
    assert not desk.turns


def test_only_ones_own_days_are_sent_in_small_parts(machines: list[Machine], monkeypatch: pytest.MonkeyPatch) -> None:
    laptop, desk, server = machines
    days, lock, held = Journal.days, sync.capture_lock, list[object]()
    laptop.work(0)
    laptop.journal.path("2026-03-01").write_text("# 2026-03-01\n\nA colleague's.\n")
    git(laptop.base / "shop", "add", "--force", ".memkit/memory/2026-03-01.md")
    turns = {desk.work(number, day=number) for number in range(4)}
    monkeypatch.setattr(Journal, "days", lambda self: [*days(self), "2026-02-01"])  # one that is deleted meanwhile
    for name in ("sync._SENT_AT_ONCE", "sync._TAKEN_AT_ONCE", "places._READ_AT_ONCE"):
        monkeypatch.setattr(f"memkit.maintenance.{name}", 600)
    monkeypatch.setattr(sync, "capture_lock", lambda *arguments: held.append(arguments) or lock(*arguments))
    desk.sync()
    laptop.sync()
    assert len(held) > 1
    monkeypatch.undo()
    settle(machines)
    assert turns < set(server.turns)
    assert "2026-03-01" not in {day[:10] for day in server.journal.days()}
