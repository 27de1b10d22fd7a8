"""Branch and commit of each turn: read from git's files, kept, and asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memkit import anchors
from memkit.archive.archive import Archive
from memkit.capture.capture import Capture
from memkit.index.chunker import chunk_markdown
from memkit.paths import Home
from memkit.projects.git_files import SHORT_HASH, Head, head
from memkit.projects.project import Project
from memkit.settings import ChunkingSettings
from memkit.settings.load import Settings
from tests.builders import SESSION, Lines, entries, git
from tests.capture.stage import Stage, prompt_id


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "repository"
    path.mkdir()
    git(path, "init", "-q")
    git(path, "commit", "-q", "--allow-empty", "-m", "one")
    return path


def at(directory: Path) -> Head:
    """What git itself says."""
    branch = git(directory, "branch", "--show-current")
    return Head(branch, git(directory, "rev-parse", "HEAD")[:SHORT_HASH])


def test_a_branch(repository: Path, tmp_path: Path) -> None:
    (repository / "src").mkdir()
    assert head(repository / "src") == at(repository) == Head("main", at(repository).commit)
    git(repository, "branch", "main2")  # a name that begins like it
    git(repository, "checkout", "-q", "-b", "feature/gw")
    git(repository, "commit", "-q", "--allow-empty", "-m", "two")
    assert head(str(repository)) == at(repository) == Head("feature/gw", at(repository).commit)
    git(repository, "pack-refs", "--all")
    assert not (repository / ".git" / "refs" / "heads" / "main").exists()
    for name in ("main", "feature/gw"):
        git(repository, "checkout", "-q", name)
        assert head(str(repository)) == at(repository)
    git(repository, "checkout", "-q", "--detach")
    assert head(str(repository)) == at(repository) == Head("", at(repository).commit)
    git(repository, "checkout", "-q", "-b", "broken")
    (repository / ".git" / "refs" / "heads" / "broken").write_text("the password is hunter2")
    assert head(str(repository)) == Head("broken", "")  # no hash, no commit
    assert head(str(tmp_path)) == head(str(tmp_path / "gone")) == Head()
    git(tmp_path, "init", "-q")
    assert head(str(tmp_path)) == Head("main", "")


def test_a_linked_worktree_has_its_own(repository: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    git(repository, "worktree", "add", "-q", "-b", "fix", str(linked))
    git(linked, "commit", "-q", "--allow-empty", "-m", "two")
    assert head(str(linked)) == at(linked) != at(repository)
    git(repository, "pack-refs", "--all")
    assert head(str(linked)) == at(linked)


@pytest.mark.parametrize(
    "said",
    ["", "ref:", "ref: refs/heads/../../secret", "ref: /etc/hostname", "ref: secret", "x" * 40, "ref: refs/a\0b"],
)
def test_a_damaged_head_leads_nowhere(repository: Path, said: str) -> None:
    (repository / ".git" / "secret").write_text("a" * 40)
    (repository / ".git" / "HEAD").write_text(said)
    assert head(str(repository)) == Head()


def play(stage: Stage) -> Lines:
    """Three turns, live; the branch changes in between, each ends at a commit of its own."""
    lines = Lines()
    for number, branch in ((1, "main"), (2, "feature/gw"), (3, "main")):
        lines.prompt(f"question {number}", prompt_id(number), gitBranch=branch)
        lines.answer(f"answer {number}", gitBranch=branch)
        stage.write(lines)
        stage.handle("Stop", prompt_id=prompt_id(number), commit=f"{number}" * SHORT_HASH)
    stage.handle("SessionEnd")
    return lines


def test_each_turn_has_its_branch(stage: Stage) -> None:
    play(stage)
    found = [anchors.parse(line) for line in stage.journal.splitlines() if line.startswith("##")]
    assert [pairs.get("branch") for pairs in found] == ["main", "main", "feature/gw", "main"]
    (day,) = stage.days
    # A turn without a branch has that of its session.
    for text, second in ((day, "feature/gw"), (day.replace(" branch:feature/gw -->", " -->"), "main")):
        chunks = chunk_markdown(text, source="2026-03-04.md", source_hash="", options=ChunkingSettings())
        assert [chunk.branch for chunk in chunks if chunk.kind == "turn"] == ["main", second, "main"]


def test_import_makes_the_same_days_and_knows_no_commits(stage: Stage, tmp_path: Path) -> None:
    """The transcript does not tell commits: they are in the archive, or the journals would differ."""
    play(stage)
    live = Archive(stage.home).turns(SESSION)
    assert [turn.commit[0] for turn in live] == ["1", "2", "3"]
    assert [turn.branch for turn in live] == ["main", "feature/gw", "main"]
    other = Project(str(tmp_path / "other"))
    home = Home(str(tmp_path / "other-home"))
    Capture(home, Settings()).import_file(stage.transcript, other)
    assert [entries(path.read_text()) for path in sorted(Path(other.memory).glob("*.md"))] == stage.days
    imported = Archive(home).turns(SESSION)
    assert [replace(turn, commit="", project="") for turn in live] == [replace(turn, project="") for turn in imported]
    days = stage.days
    Capture(stage.home, Settings()).import_file(stage.transcript, stage.project)  # takes no commit away
    assert (Archive(stage.home).turns(SESSION), stage.days) == (live, days)


def test_an_edited_turn_is_not_given_a_branch(stage: Stage) -> None:
    lines = play(stage)
    (path,) = Path(stage.project.memory).glob("*.md")
    text = path.read_text().replace("**Answered** answer 3", "**Answered** answer three")
    text = text.replace(" branch:main -->\n**Answered** answer three", " -->\n**Answered** answer three")
    path.write_text(text)
    stage.write(lines.answer("and more", gitBranch="main"))
    stage.handle("SessionEnd")
    Capture(stage.home, Settings()).import_file(stage.transcript, stage.project)
    assert path.read_text() == text
