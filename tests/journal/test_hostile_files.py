"""A repository whose memory is links, devices, pipes, and giants gains nothing by being opened."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from memkit.doctor import open_subject
from memkit.doctor.home import check_memory
from memkit.errors import JournalError
from memkit.files import MOST_BYTES, RefusedFileError, inside, open_regular, read_regular
from memkit.hook.entries import days, read_days
from memkit.hook.guide import session_facts
from memkit.index import read_files
from memkit.journal.files import MOST_TRIES, MemoryDirectory
from memkit.journal.journal import Journal
from memkit.maintenance import remove_old_days
from memkit.maintenance.merge import merge
from memkit.paths import Home
from memkit.projects.git_files import worktree_root
from memkit.projects.project import Project
from memkit.settings.load import Settings, load
from tests.builders import Lines
from tests.capture.stage import Stage, prompt_id

pytestmark = pytest.mark.usefixtures("unsynced")

DAY = "2026-03-04"
PRIVATE = "### 10:00 private diary <!-- turn:a1a1a1a1 -->\n**Answered** nobody's business\n"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path.resolve())


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A folder of the user's own, with what looks like a memory."""
    folder = tmp_path.resolve() / "private"
    folder.mkdir()
    (folder / f"{DAY}.md").write_text(PRIVATE)
    (folder / "2020-01-01.md").write_text(PRIVATE)
    return folder


def capture_one(stage: Stage) -> None:
    stage.handle("Stop", prompt="What port?", prompt_id=prompt_id(1), message="7443.", late=True)


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def lay_memory_link(project: Project, private: Path) -> None:
    Path(project.root, ".memkit").mkdir()
    Path(project.memory).symlink_to(private)


def lay_memkit_link(project: Project, private: Path) -> None:
    (private / "memory").mkdir()
    for name in (f"{DAY}.md", "2020-01-01.md"):
        (private / name).rename(private / "memory" / name)
    Path(project.root, ".memkit").symlink_to(private)


def lay_day_links(project: Project, private: Path) -> None:
    Path(project.memory).mkdir(parents=True)
    for name in (f"{DAY}.md", "2020-01-01.md"):
        Path(project.memory, name).symlink_to(os.path.relpath(private / name, project.memory))


@pytest.mark.parametrize("lay", [lay_memory_link, lay_memkit_link, lay_day_links])
def test_no_link_leads_out(stage: Stage, private: Path, lay: Callable[[Project, Path], None]) -> None:
    project = stage.project
    lay(project, private)
    real = {path: path.read_text() for path in private.rglob("*.md")}
    with pytest.raises(JournalError, match="it leads out of"):
        capture_one(stage)
    journal = Journal(project)
    assert days(project) == [] == list(read_days(project, [DAY], 10_000))
    assert "private" not in session_facts(project, 4000).replace(str(private), "")
    assert read_files(project, stage.home, Settings()) == {}
    with pytest.raises(JournalError):
        journal.day(DAY)
    Path(stage.home.memory).mkdir(parents=True)
    keep = load(stage.home, environ={"MEMKIT_MEMORY_KEEP_DAYS": "30"}).settings
    assert remove_old_days(stage.home, lambda _: keep, date(2026, 3, 5)) == {}
    with pytest.raises(JournalError):
        journal.remove_file(journal.path(DAY))
    merge(project, Project.of_user(stage.home), stage.home, Journal(Project.of_user(stage.home)))
    assert list(Path(stage.home.memory).glob("*.md")) == []
    assert {path: path.read_text() for path in private.rglob("*.md")} == real
    assert not [path for path in private.rglob("*") if path.name in (".gitignore", "journal.lock")]


def test_the_users_own_memory_lies_in_the_home(stage: Stage, private: Path) -> None:
    Path(stage.home.root).mkdir()
    Path(stage.home.memory).symlink_to(private)
    user = Project.of_user(stage.home)
    assert days(user) == []
    assert Journal(user).remove_older("2027-01-01") == []
    with pytest.raises(JournalError):
        Journal(user).take_over("a.md", b"# A\n", ())
    assert len(contents(private)) == 2


def test_no_link_into_gits_files(stage: Stage) -> None:
    hooks = Path(stage.project.root, ".git", "hooks")
    hooks.mkdir(parents=True)
    Path(stage.project.root, ".memkit").mkdir()
    Path(stage.project.memory).symlink_to("../.git/hooks")
    with pytest.raises(JournalError, match="git's own files"):
        capture_one(stage)
    assert list(hooks.iterdir()) == []


def test_a_project_and_a_home_may_be_reached_through_links(tmp_path: Path) -> None:
    real = Stage(tmp_path.resolve())
    Path(real.home.root).mkdir()
    (tmp_path / "short").symlink_to(real.project.root)
    (tmp_path / "dot").symlink_to(real.home.root)
    real.project, real.home = Project(str(tmp_path / "short")), Home(str(tmp_path / "dot"))
    capture_one(real)
    assert days(real.project) == [DAY]
    assert "7443" in session_facts(Project(str(tmp_path / "project")), 4000)


@pytest.mark.parametrize("name", [f"{DAY}.md", "../.gitignore", "../journal.lock", "../off-times"])
def test_a_pipe_blocks_nothing(stage: Stage, name: str) -> None:
    Path(stage.project.memory).mkdir(parents=True)
    os.mkfifo(os.path.normpath(os.path.join(stage.project.memory, name)))
    if name == "../off-times":
        capture_one(stage)
    else:
        with pytest.raises(JournalError, match="not a regular file"):
            capture_one(stage)
    assert len(list(read_days(stage.project, [DAY], 10_000))) <= 1
    session_facts(stage.project, 4000)
    read_files(stage.project, stage.home, Settings())


def test_a_pipe_in_place_of_a_transcript_or_git_file_blocks_nothing(stage: Stage) -> None:
    os.mkfifo(stage.transcript)
    stage.handle("Stop", prompt_id=prompt_id(1), late=True)
    os.mkfifo(os.path.join(stage.project.root, ".git"))
    assert worktree_root(stage.project.root) == stage.project.root


def test_a_device_costs_nothing(stage: Stage) -> None:
    Path(stage.project.memory).mkdir(parents=True)
    Path(stage.project.memory, f"{DAY}.md").symlink_to("/dev/zero")
    assert run_brief(stage.project).count("memory") >= 1
    with pytest.raises(JournalError):
        capture_one(stage)


def test_a_giant_day_costs_a_bounded_read(stage: Stage) -> None:
    """400 MB, of which the end is read; the process may take 200 MB in all."""
    Path(stage.project.memory).mkdir(parents=True)
    with Path(stage.project.memory, f"{DAY}.md").open("wb") as file:
        file.truncate(400_000_000)
        file.seek(0, os.SEEK_END)
        file.write(b"\n### 10:00 the newest <!-- turn:a1a1a1a1 -->\n**Answered** 7443\n")
    assert "10:00 the newest" in run_brief(stage.project)
    assert read_files(stage.project, stage.home, Settings()) == {}
    with pytest.raises(JournalError, match=f"larger than {MOST_BYTES:,} bytes"):
        capture_one(stage)


def run_brief(project: Project) -> str:
    """The newest entries, read by a process that may take 200 MB."""
    code = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_AS, (200_000_000, 200_000_000))\n"
        "from memkit.hook.guide import session_facts\n"
        "from memkit.projects.project import Project\n"
        "project = Project(sys.argv[1])\n"
        "print(session_facts(project, 4000))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, project.root], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_settings_of_a_project_are_its_own(stage: Stage, private: Path) -> None:
    (private / "credentials.toml").write_text("[registry]\ntoken_of_mine = 'x'\n")
    Path(stage.project.root, ".memkit.toml").symlink_to(private / "credentials.toml")
    (line,) = load(stage.home, stage.project).refused
    assert "it leads out of" in line
    assert "token_of_mine" not in line


@pytest.mark.parametrize("name", ["off", "off-times"])
def test_switching_writes_nowhere_else(stage: Stage, private: Path, name: str) -> None:
    target = private / f"{DAY}.md"
    Path(stage.project.root, ".memkit").mkdir()
    Path(stage.project.root, ".memkit", name).symlink_to(target)
    for switch in (stage.project.switch_off, stage.project.switch_on):
        try:
            switch(5.0)
        except RefusedFileError:
            continue
    assert target.read_text() == PRIVATE
    assert target.exists()


def test_the_doctor_names_what_is_refused(stage: Stage) -> None:
    memory = Path(stage.project.memory)
    memory.mkdir(parents=True)
    os.mkfifo(memory / "2026-03-05.md")
    (memory / "2026-03-06.md").symlink_to("/etc/hostname")
    with (memory / "2026-03-07.md").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    (memory / "2026-03-08.md").symlink_to("2026-03-04.md")
    told = [finding.what for finding in check_memory(open_subject(stage.home, stage.project))]
    assert [line.split(": ")[1].split(" /")[0] for line in told] == [
        "it is not a regular file",
        "it leads out of",
        "it is larger than 67,108,864 bytes",
    ]


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_bytes(b"12345")
    assert read_regular(str(plain), 5) == b"12345"
    with pytest.raises(RefusedFileError, match="larger than 4"):
        read_regular(str(plain), 4)
    (tmp_path / "link").symlink_to(plain)
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "link", tmp_path / "pipe", tmp_path, Path("/dev/null")):
        with pytest.raises(RefusedFileError):
            open_regular(str(path))
    with pytest.raises(FileNotFoundError):
        open_regular(str(tmp_path / "gone"))


@pytest.mark.parametrize("path", ["a/../../b", "out/x", ".git/config", "a/.GIT/x", "../root-2/x"])
def test_paths_outside_the_root_are_refused(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "out").symlink_to(tmp_path)
    assert inside(str(root), str(root)) == inside(str(root / "a" / ".."), str(root))
    with pytest.raises(RefusedFileError):
        inside(str(root / path), str(root))


def test_links_below_a_real_root_are_resolved(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path), "root")
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "day.md").write_text("a day")
    (root / "link").symlink_to("a")
    (root / "a" / "link.md").symlink_to("day.md")
    names = ("a/day.md", "a/b", "link/day.md", "a/link.md", "link/link.md", "a/../link/b", "a//b", "gone/x")
    for name in names:
        path = f"{root}/{name}"
        assert inside(path, str(root)) == inside(path, str(root), is_real=True) == os.path.realpath(path)
    (root / "a" / "out").symlink_to(tmp_path.parent)
    for name in ("a/out", "link/out", "a/out/x"):
        with pytest.raises(RefusedFileError):
            inside(f"{root}/{name}", str(root), is_real=True)


def test_temporary_files_of_killed_writers_go(stage: Stage) -> None:
    capture_one(stage)
    memory = Path(stage.project.memory)
    old, new, other = (memory / name for name in (".abcd_123.tmp", ".abcd_124.tmp", ".mine.tmp"))
    for path in (old, new, other):
        path.write_text("a day")
        if path is not new:
            os.utime(path, (time.time() - 3600,) * 2)
    stage.handle("Stop", prompt="What host?", prompt_id=prompt_id(2), message="alpha.", late=True)
    assert sorted(path.name for path in memory.iterdir()) == [".abcd_124.tmp", ".mine.tmp", f"{DAY}.md"]


def test_what_a_person_appends_during_a_write_is_kept(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The person saves after the file was read and before it is replaced, twice in each write."""
    capture_one(stage)
    day = Path(stage.project.memory, f"{DAY}.md")
    put = MemoryDirectory._put
    lines: list[str] = []
    saves: list[str] = []

    def save_first(journal: MemoryDirectory, *arguments: object) -> None:
        if saves:
            lines.append(f"by hand {len(lines)}")
            text = day.read_text() + lines[-1] + "\n"
            if saves.pop() == "append":
                with day.open("a") as file:
                    file.write(lines[-1] + "\n")
            else:  # as editors save: another file takes the place
                copy = day.with_suffix(".swp")
                copy.write_text(text)
                copy.replace(day)
        put(journal, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(MemoryDirectory, "_put", save_first)
    for number in range(2, 12):
        saves += ["append", "replace"]
        stage.handle("Stop", prompt=f"Q{number}", prompt_id=prompt_id(number), message=f"yes {number}.", late=True)
    text = day.read_text()
    assert len(lines) == 20
    assert [line for line in lines if f"{line}\n" not in text] == []
    assert all(f" Q{number} <!--" in text for number in range(2, 12))


def test_a_file_that_keeps_changing_is_reported(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    capture_one(stage)
    day = Path(stage.project.memory, f"{DAY}.md")
    put = MemoryDirectory._put

    def save_first(journal: MemoryDirectory, *arguments: object) -> None:
        with day.open("a") as file:
            file.write("by hand\n")
        put(journal, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(MemoryDirectory, "_put", save_first)
    stage.write(Lines().prompt("Q2", prompt_id(2)).answer("yes."))
    with pytest.raises(JournalError, match="keeps changing"):
        stage.handle("Stop", prompt_id=prompt_id(2), message="yes.", late=True)
    assert day.read_text().count("by hand\n") == MOST_TRIES
    monkeypatch.undo()
    stage.handle("Stop", prompt_id=prompt_id(2), message="yes.", late=True)
    assert " Q2 <!--" in day.read_text()
