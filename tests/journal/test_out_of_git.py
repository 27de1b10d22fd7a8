"""With `memory.shared = false` nothing private gets into git, whatever the repository brings."""

from __future__ import annotations

from pathlib import Path

import pytest

from memkit.doctor import open_subject
from memkit.doctor.home import check_git
from memkit.errors import JournalError
from memkit.export import Days
from memkit.hook.entries import days, read_days
from memkit.hook.guide import session_facts
from memkit.journal.digest import Note
from memkit.journal.facts import FactChange
from memkit.journal.files import MemoryDirectory
from memkit.journal.journal import Journal
from memkit.maintenance.merge import merge
from memkit.projects.git import EXCLUDED, is_ignored, remote_of
from memkit.projects.project import Project
from memkit.stats import gather
from tests.builders import Lines, git
from tests.capture.stage import Stage, prompt_id

pytestmark = pytest.mark.usefixtures("unsynced")

DAY = "2026-03-04"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path.resolve())
    git(stage.project.root, "init", "-q")
    return stage


def capture(stage: Stage, number: int = 1, project: str = "") -> None:
    stage.write(Lines().prompt("What port?", prompt_id(number)).answer("private 7443."))
    fields = {"project": project, "cwd": project} if project else {}
    stage.handle("Stop", prompt_id=prompt_id(number), message="private 7443.", late=True, **fields)


def staged(root: str) -> str:
    git(root, "add", "-A")
    return git(root, "diff", "--cached")


def test_a_repositorys_ignore_file_does_not_expose_the_memory(stage: Stage) -> None:
    ignore = Path(stage.project.root, ".memkit", ".gitignore")
    ignore.parent.mkdir()
    ignore.write_text("# keep\n")
    git(stage.project.root, "add", "-A")
    git(stage.project.root, "commit", "-qm", "one")
    capture(stage)
    assert "private" not in staged(stage.project.root)
    assert ignore.read_text() == "# keep\n"
    exclude = Path(stage.project.root, ".git", "info", "exclude")
    before = exclude.read_text()
    capture(stage, 2)
    assert exclude.read_text() == before
    assert before.count(EXCLUDED) == 1


def test_a_repositorys_patterns_do_not_expose_the_memory(stage: Stage) -> None:
    root = Path(stage.project.root)
    Path(stage.project.memory).mkdir(parents=True)
    (root / ".gitignore").write_text("!/.memkit/\n!/.memkit/**\n")
    (root / ".memkit" / ".gitignore").write_text("# keep\n")
    (root / ".memkit" / "memory" / ".gitignore").write_text("!*.md\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "one")
    capture(stage)
    assert "private" not in staged(str(root))
    assert list(check_git(open_subject(stage.home, stage.project)))[1:] == []
    Journal(stage.project, shared=True).add_note(Note("a", DAY, "14:30", "## 14:30 Note: b <!-- note:a -->"))
    assert "private 7443." in staged(str(root))


def test_a_day_that_git_tracks_is_not_written_to(stage: Stage) -> None:
    tracked = Path(stage.project.memory, f"{DAY}.md")
    tracked.parent.mkdir(parents=True)
    tracked.write_text(f"# {DAY}\n\n## 08:00 Theirs <!-- session:s -->\n\n### 08:00 Theirs <!-- turn:a1a1a1a1 -->\n")
    git(stage.project.root, "add", "-A")
    git(stage.project.root, "commit", "-qm", "one")
    before = tracked.read_text()
    capture(stage)
    capture(stage)
    assert gather(stage.home, stage.project).tally.days[DAY].turns == 2
    journal = Journal(stage.project)
    journal.add_note(Note("ab12cd34", DAY, "14:30", "## 14:30 Note: mine <!-- note:ab12cd34 -->\nmine"))
    assert tracked.read_text() == before
    local = tracked.with_name(f"{DAY}.local.md").read_text()
    assert local.startswith(f"# {DAY}\n")
    assert local.count("**Answered** private 7443.") == 1
    assert "private" not in staged(stage.project.root)
    assert days(stage.project) == [DAY, f"{DAY}.local"]
    assert [day for day, _ in read_days(stage.project, days(stage.project), 10_000)] == [DAY] * 2
    assert f"1 day ({DAY})" in session_facts(stage.project, 4000)
    found = Days(stage.project, DAY, DAY)
    assert [found.entries(name)[0].date for name in found.dates] == [DAY, DAY]
    assert journal.remove_older("2026-03-05") == [DAY, f"{DAY}.local"]


def test_the_doctor_says_what_git_sees(stage: Stage) -> None:
    capture(stage)
    assert list(check_git(open_subject(stage.home, stage.project))) == []
    git(stage.project.root, "add", "-f", f".memkit/memory/{DAY}.md")
    Path(stage.project.root, ".gitignore").write_text("!/.memkit/\n!/.memkit/**\n")
    Path(stage.project.root, ".memkit", ".gitignore").write_text("# keep\n")
    codes = [finding.code for finding in check_git(open_subject(stage.home, stage.project))]
    assert codes == ["memory-tracked", "memory-not-ignored"]


def test_a_link_that_git_tracks_is_not_written_to(stage: Stage) -> None:
    """Capture goes on where a repository brings today's file as a link out of it."""
    victim = stage.root / "bashrc"
    victim.write_text("# mine\n")
    Path(stage.project.memory).mkdir(parents=True)
    Path(stage.project.memory, f"{DAY}.md").symlink_to(victim)
    git(stage.project.root, "add", "-A")
    capture(stage)
    assert victim.read_text() == "# mine\n"
    assert "private 7443." in Path(stage.project.memory, f"{DAY}.local.md").read_text()


def test_a_day_that_becomes_tracked_is_left(stage: Stage) -> None:
    capture(stage)
    git(stage.project.root, "add", "-f", f".memkit/memory/{DAY}.md")
    stage.handle("Stop", prompt="What host?", prompt_id=prompt_id(2), message="private alpha.", late=True)
    assert "alpha" not in Path(stage.project.memory, f"{DAY}.md").read_text()
    assert "alpha" in Path(stage.project.memory, f"{DAY}.local.md").read_text()


def test_a_shared_memory_is_seen_by_git(stage: Stage) -> None:
    capture(stage)
    note = Note("ab12cd34", DAY, "14:30", "## 14:30 Note: ours <!-- note:ab12cd34 -->\nours")
    Journal(stage.project, shared=True).add_note(note)
    assert "private 7443." in staged(stage.project.root)
    Journal(stage.project, shared=True).add_note(note)
    assert days(stage.project) == [DAY]


def test_a_submodule_has_a_list_of_its_own(stage: Stage) -> None:
    library = stage.root / "library"
    library.mkdir()
    git(library, "init", "-q")
    git(library, "commit", "-q", "--allow-empty", "-m", "one")
    git(stage.project.root, "submodule", "add", "-q", str(library), "vendor")
    vendor = str(Path(stage.project.root, "vendor"))
    Path(vendor, ".memkit").mkdir()
    Path(vendor, ".memkit", ".gitignore").write_text("# keep\n")
    capture(stage, project=vendor)
    assert Path(vendor, ".memkit", "memory", f"{DAY}.md").exists()
    assert "private" not in staged(vendor)


@pytest.mark.parametrize("kind", ["file", "link", "commondir", "exclude"])
def test_a_forged_git_file_causes_no_write_elsewhere(stage: Stage, kind: str) -> None:
    victim = stage.root / "victim"
    victim.mkdir()
    git(victim, "init", "-q")
    exclude = victim / ".git" / "info" / "exclude"
    before = exclude.read_text()
    forged = stage.root / "forged"
    forged.mkdir()
    if kind == "file":
        (forged / ".git").write_text(f"gitdir: {victim / '.git'}\n")
    elif kind == "link":
        (forged / ".git").symlink_to(victim / ".git")
    else:
        git(forged, "init", "-q")
        if kind == "commondir":
            (forged / ".git" / "commondir").write_text(str(victim / ".git"))
        else:
            (forged / ".git" / "info" / "exclude").unlink()
            (forged / ".git" / "info" / "exclude").symlink_to(exclude)
    try:
        MemoryDirectory(Project(str(forged)), shared=False).prepare()
    except OSError as error:
        assert kind == "exclude", error
    assert exclude.read_text() == before


@pytest.mark.parametrize("tracks", [False, True])
def test_a_memory_that_is_a_link_into_tracked_files_stays_out(stage: Stage, tracks: bool) -> None:
    """A repository brings the memory as a link to a directory that git looks into."""
    root = Path(stage.project.root)
    (root / "notes").mkdir()
    (root / "notes" / "a.md").write_text("# a\n")
    if tracks:
        (root / "notes" / f"{DAY}.md").write_text(f"# {DAY}\n")
    (root / ".memkit").mkdir()
    (root / ".memkit" / "memory").symlink_to("../notes")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "one")
    with pytest.raises(JournalError, match=r"git tracks|it is a link to files that git does not ignore"):
        capture(stage)
    assert "private" not in staged(str(root))


def test_both_names_of_a_day_may_be_tracked(stage: Stage) -> None:
    memory = Path(stage.project.memory)
    memory.mkdir(parents=True)
    for name in (DAY, f"{DAY}.local"):
        (memory / f"{name}.md").write_text(f"# {DAY}\n")
    git(stage.project.root, "add", "-Af")
    git(stage.project.root, "commit", "-qm", "one")
    with pytest.raises(JournalError, match=r"git tracks .* writes nothing private"):
        capture(stage)
    assert "private" not in staged(stage.project.root)


def test_facts_do_not_go_to_a_file_that_git_tracks(stage: Stage) -> None:
    facts = Path(stage.project.memory, "MEMORY.md")
    facts.parent.mkdir(parents=True)
    facts.write_text("# Memory\n")
    git(stage.project.root, "add", "-Af")
    with pytest.raises(JournalError, match=r"git tracks .* writes nothing private"):
        Journal(stage.project).change_facts("MEMORY.md", FactChange([], {}), lambda text: None)


def test_a_pulled_ignore_file_is_corrected(stage: Stage) -> None:
    """Git overwrites an ignored file, as the ignore file of memkit is, with the one that it pulls."""
    capture(stage)
    root = Path(stage.project.root)
    (root / ".memkit" / ".gitignore").write_text("!*\n")
    (root / ".gitignore").write_text("!/.memkit/\n")
    git(root, "add", "-f", ".memkit/.gitignore", ".gitignore")
    stage.handle("Stop", prompt="What host?", prompt_id=prompt_id(2), message="private alpha.", late=True)
    assert "private" not in staged(str(root))


def test_a_git_that_does_not_answer_is_asked_once_and_not_trusted(stage: Stage) -> None:
    """A pipe among git's files, as an archive of a repository can bring it, stops every git."""
    root = stage.project.root
    asked = stage.root / "asked"
    programs = stage.root / "programs"
    programs.mkdir()
    (programs / "git").write_text(f"#!/bin/sh\necho x >> {asked}\nexec sleep 1000\n")
    (programs / "git").chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{programs}:/usr/bin:/bin")
        patch.setattr("memkit.projects.git.GIT_SECONDS", 2.0)  # git has to begin
        assert not is_ignored(root, str(Path(stage.project.memory, "a.md")))
        assert not is_ignored(root, str(Path(stage.project.memory, "b.md")))
        assert remote_of(root) is None
    assert asked.read_text() == "x\n"


def test_an_unwritable_exclude_list_stops_nothing(stage: Stage) -> None:
    """As where a repository's `.git/info` is a link into shared settings."""
    info = Path(stage.project.root, ".git", "info")
    elsewhere = stage.root / "elsewhere"
    info.rename(elsewhere)
    info.symlink_to(elsewhere)
    capture(stage)
    assert "private 7443." in Path(stage.project.memory, f"{DAY}.md").read_text()
    assert "private" not in staged(stage.project.root)


def test_a_merge_puts_nothing_private_into_a_day_that_git_tracks(stage: Stage) -> None:
    other = stage.root / "other"
    other.mkdir()
    git(other, "init", "-q")
    tracked = other / ".memkit" / "memory" / f"{DAY}.md"
    tracked.parent.mkdir(parents=True)
    tracked.write_text(f"# {DAY}\n")
    git(other, "add", "-Af")
    git(other, "commit", "-qm", "one")
    capture(stage)
    target = Project(str(other))
    merge(stage.project, target, stage.home, Journal(target, home=stage.home))
    assert "private" not in staged(str(other))
    assert "private 7443." in tracked.with_name(f"{DAY}.local.md").read_text()


def test_a_turn_grows_on_where_git_does_not_take_it(stage: Stage) -> None:
    stage.write(Lines().prompt("What port?", prompt_id(1)).answer("First half."))
    stage.handle("PreCompact")
    day = Path(stage.project.memory, f"{DAY}.md")
    assert "First half." in day.read_text()
    git(stage.project.root, "add", "-f", str(day))
    stage.write(Lines().prompt("What port?", prompt_id(1)).answer("First half.").answer("private 7443."))
    stage.handle("Stop", prompt_id=prompt_id(1), message="private 7443.", late=True)
    assert "private" not in day.read_text()
    local = day.with_name(f"{DAY}.local.md")
    assert "private 7443." in local.read_text()
    before = local.read_text()
    stage.handle("Stop", prompt_id=prompt_id(1), message="private 7443.", late=True)
    assert local.read_text() == before


def test_another_users_repository_is_asked_too(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container, where git itself refuses it unless told otherwise."""
    Path(stage.project.root, ".gitignore").write_text("!/.memkit/**\n")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert not is_ignored(stage.project.root, str(Path(stage.project.memory, "x.md")))
    capture(stage)
    monkeypatch.delenv("GIT_TEST_ASSUME_DIFFERENT_OWNER")
    assert "private" not in staged(stage.project.root)


def test_the_lock_stays_out_of_a_shared_memory(stage: Stage) -> None:
    root = Path(stage.project.root)
    (root / ".memkit").mkdir()
    (root / ".memkit" / ".gitignore").write_text("# keep\n")
    with MemoryDirectory(stage.project, shared=True).locked():
        assert (root / ".memkit" / "journal.lock").is_file()
        assert "journal.lock" not in staged(str(root))
