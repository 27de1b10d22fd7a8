"""Which project a directory belongs to, and what its index is called."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.index.catalog import identity
from memkit.ipc import unindexed
from memkit.paths import Home
from memkit.projects.git import normalize_remote, remote_of, run_git
from memkit.projects.project import Project
from tests.ci import examples

PACKAGE = Path(__file__).resolve().parents[2] / "memkit"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path.resolve()


@pytest.fixture
def home(root: Path) -> Home:
    return Home(str(root / "home"))


def git(directory: Path, *arguments: str) -> None:
    settings = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", "-C", str(directory), *settings, *arguments], check=True, capture_output=True)


def repository(path: Path, remote: str = "") -> Path:
    path.mkdir(parents=True)
    git(path, "init", "-q")
    git(path, "commit", "-q", "--allow-empty", "-m", "one")
    if remote:
        git(path, "remote", "add", "origin", remote)
    return path


def found(directory: Path) -> Path:
    return Path(Project.containing(str(directory)).root)


def test_worktrees_share_the_memory_of_the_main_one(root: Path) -> None:
    main = repository(root / "main")
    (main / "src" / "deep").mkdir(parents=True)
    git(main, "worktree", "add", "-q", str(root / "linked"))
    git(main, "worktree", "add", "-q", str(main / ".trees" / "inside"))
    (root / "shortcut").symlink_to(root / "linked")
    for directory in (main, main / "src" / "deep", root / "linked", main / ".trees" / "inside", root / "shortcut"):
        assert found(directory) == main
    repository(root / "library")
    git(main, "submodule", "add", "-q", str(root / "library"), "vendor/library")
    assert found(main / "vendor" / "library") == main / "vendor" / "library"  # a submodule is its own
    assert found(main / "vendor") == main
    git(root, "clone", "-q", "--bare", str(main), str(root / "bare.git"))
    git(root / "bare.git", "worktree", "add", "-q", str(root / "one"))
    assert found(root / "one") == root / "one"  # of a bare repository


def test_a_git_file_that_leads_nowhere(root: Path) -> None:
    (root / "sub").mkdir()
    for content in (b"", b"gitdir:", b"gitdir: nowhere", b"gitdir: a\0b", b"\xff\xfe", b"gitdir: /dev/null", b"x" * 10_000):
        (root / ".git").write_bytes(content)
        assert found(root / "sub") == root
    (root / ".git").unlink()
    (root / "link").symlink_to(root / "sub")
    for name, place in (("sub", "sub"), ("link", "sub"), ("gone", "gone")):  # no repository
        assert found(root / name) == root / place


def test_a_worktree_whose_way_back_is_damaged(root: Path) -> None:
    main = repository(root / "main")
    git(main, "worktree", "add", "-q", str(root / "linked"))
    for content in (b"", b"\xff", b"a\0b", b"nowhere/else"):
        (main / ".git" / "worktrees" / "linked" / "commondir").write_bytes(content)
        assert found(root / "linked") == root / "linked"


def forge_commondir(main: Path, forged: Path) -> None:
    """A git directory of its own that says that it belongs to another repository."""
    own = forged / "fake"
    own.mkdir()
    (own / "HEAD").write_text("ref: refs/heads/main\n")
    (own / "commondir").write_text(str(main / ".git"))
    (own / "gitdir").write_text(str(forged / ".git"))
    (forged / ".git").write_text(f"gitdir: {own}\n")


def forge_git_directory(main: Path, forged: Path) -> None:
    (forged / ".git").mkdir()
    (forged / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (forged / ".git" / "commondir").write_text(str(main / ".git"))


def forge_worktree(main: Path, forged: Path) -> None:
    """A file that leads to a real worktree's git directory, which names another place."""
    (forged / ".git").write_text(f"gitdir: {main / '.git' / 'worktrees' / 'linked'}\n")


def forge_link(main: Path, forged: Path) -> None:
    (forged / ".git").symlink_to(main / ".git" / "worktrees" / "linked")


def forge_link_to_file(main: Path, forged: Path) -> None:
    (forged / ".git").symlink_to(main.parent / "linked" / ".git")


def forge_submodule(main: Path, forged: Path) -> None:
    """A repository of its own, with a worktree, whose settings name another project's directory."""
    repository(forged / "bare")
    git(forged / "bare", "config", "core.worktree", str(main))
    (forged / "bare" / ".git").rename(forged / "store")
    (forged / "store" / "worktrees" / "x").mkdir(parents=True)
    own = forged / "store" / "worktrees" / "x"
    (own / "commondir").write_text("../..")
    (own / "gitdir").write_text(str(forged / ".git"))
    (forged / ".git").write_text(f"gitdir: {own}\n")


@pytest.mark.parametrize(
    "forge",
    [
        forge_commondir, forge_git_directory, forge_worktree, forge_link, forge_link_to_file,
        forge_submodule,
    ],
)  # fmt: skip
def test_a_forged_git_file_gives_no_other_projects_memory(
    root: Path, forge: Callable[[Path, Path], None]
) -> None:
    main = repository(root / "main")
    git(main, "worktree", "add", "-q", str(root / "linked"))
    forged = root / "forged"
    forged.mkdir()
    forge(main, forged)
    assert found(forged) == forged
    assert found(root / "linked") == main


def test_git_runs_no_program_that_a_repository_names(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main = repository(root / "main")
    other = repository(root / "other")
    git(other, "remote", "add", "origin", "https://example.com/other")
    git(main, "remote", "add", "origin", "https://example.com/main")
    program = root / "program"
    program.write_text(f"#!/bin/sh\ntouch {root}/ran\n")
    program.chmod(0o755)
    git(main, "config", "core.fsmonitor", str(program))
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert remote_of(str(main)) == "https://example.com/main"
    assert run_git(str(main), "ls-files", "--error-unmatch", "--", "nothing.md") == (1, b"")
    run_git(str(main), "status")
    assert not (root / "ran").exists()


def test_spellings_of_one_remote() -> None:
    for url in (
        "git@Example.com:Team/app.git", "https://example.com/Team/app", "https://example.com/Team/app.git/",
        "https://user:secret@example.com:8443/Team/app.git", "https://user:p@ss@example.com/Team/app.git",
        "ssh://git@example.com:2222/Team/app.git", "git://EXAMPLE.com/Team/app", " example.com:Team/app\n",
        "ssh://git@example.com//Team/app.git",
    ):  # fmt: skip
        assert normalize_remote(url) == "example.com/Team/app"
    for directory, name in (("/srv/git/app.git", "/srv/git/app"), ("../app/", "../app"), ("C:\\repos\\app", "C:\\repos\\app")):
        assert normalize_remote(directory) == name
    assert normalize_remote("file:///srv/git/app.git") == normalize_remote("file:///srv/git/app")


@settings(max_examples=examples(100))
@given(st.text())
def test_any_text_can_be_a_remote(url: str) -> None:
    name = normalize_remote(url)
    assert not name.endswith("/")
    assert normalize_remote(f" {url}\n") == name


REMOTE = "git@example.com:team/app.git"


@pytest.mark.parametrize("failure", ["exit 128", "kill -9 $$", "missing"])
def test_a_failure_of_git_changes_no_name(
    root: Path, home: Home, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    project = Project(str(repository(root / "first", REMOTE)))
    unknown = Project(str(repository(root / "unknown", "git@example.com:team/other.git")))
    name = identity(project, home)
    programs = root / "programs"
    programs.mkdir()
    if failure != "missing":
        (programs / "git").write_text(f"#!/bin/sh\n{failure}\n")
        (programs / "git").chmod(0o755)
    with monkeypatch.context() as broken:
        broken.setenv("PATH", str(programs))
        assert remote_of(project.root) is None
        assert identity(project, home) == name
        by_path = identity(unknown, home)
    assert identity(unknown, home) != by_path
    git(Path(project.root), "remote", "remove", "origin")
    removed = identity(project, home)  # a definite answer
    assert removed != name
    with monkeypatch.context() as broken:
        broken.setenv("PATH", str(programs))
        assert identity(project, home) == removed


def test_a_name_that_another_project_took_over_is_not_kept(
    root: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = repository(root / "first", REMOTE)
    name = identity(Project(str(first)), home)
    first.rename(root / "second")
    assert identity(Project(str(root / "second")), home) == name
    repository(first, REMOTE)
    monkeypatch.setenv("PATH", str(root / "nothing"))
    assert identity(Project(str(first)), home) != name
    assert identity(Project(str(root / "second")), home) == name


def test_a_second_clone_gets_a_name_of_its_own(root: Path, home: Home) -> None:
    one, two = repository(root / "one", REMOTE), repository(root / "two", REMOTE)
    first, second = (identity(Project(str(path)), home) for path in (one, two))
    assert first != second
    for _ in range(2):
        assert [identity(Project(str(path)), home) for path in (two, one)] == [second, first]
    for record in ("", "{", "[]", '{"root": 5}', "{}"):  # a damaged claim is taken over
        for path in Path(home.projects).glob("*.json"):
            if str(one) in path.read_text():
                path.write_text(record)
        assert identity(Project(str(one)), home) == first
        assert identity(Project(str(one)), home) == first
    (root / "plain").mkdir()  # without a remote, the path is the name
    assert len({identity(Project(str(path)), home) for path in (root / "plain", repository(root / "git"))}) == 2


def test_a_submodule_that_is_there_keeps_its_name(root: Path, home: Home) -> None:
    main = repository(root / "main")
    repository(root / "library")
    git(main, "submodule", "add", "-q", str(root / "library"), "vendor")
    vendor = main / "vendor"
    git(vendor, "remote", "set-url", "origin", REMOTE)
    other = repository(root / "other", REMOTE)
    first = identity(Project(str(vendor)), home)
    assert identity(Project(str(other)), home) != first
    assert identity(Project(str(vendor)), home) == first


def test_the_memory_of_a_project_that_is_gone(root: Path, home: Home) -> None:
    gone = Project.at_root(str(root / "Gone & away"), home)
    assert Path(gone.root).parent == Path(home.projects)
    assert Path(gone.root).name.startswith("Gone-away-")
    assert gone == Project.at_root(str(root / "Gone & away"), home)
    assert gone != Project.at_root(str(root / "x" / "Gone & away"), home)
    assert Project.at_root(str(root), home) == Project(str(root))


def test_marks_of_projects_to_index(home: Home) -> None:
    assert unindexed.roots(home) == []
    assert not unindexed.names(home)
    roots = ["/b", "/a", "/ünï\udcff"]
    for name in [*roots, "/a"]:
        unindexed.mark(home, name)
    assert unindexed.roots(home) == sorted(roots)
    for name in roots:
        assert unindexed.names(home)
        unindexed.claim(home, name)
        unindexed.clear(home, name)
        unindexed.clear(home, name)
    assert not unindexed.names(home)
    directory = Path(home.run, "unindexed")
    (directory / ".half.tmp").write_text("{")  # a killed process leaves that
    assert not unindexed.names(home)
    for number, damage in enumerate(("", "[]", "{}", '{"root": 5}', "\xff")):
        (directory / f"{number}.json").write_text(damage, encoding="latin-1")
    assert unindexed.names(home)
    assert unindexed.roots(home) == []
    assert not unindexed.names(home)
    unindexed.mark(home, "/a")
    unindexed.claim(home, "/a")
    assert unindexed.roots(home) == ["/a"]  # the pass may be killed
    unindexed.mark(home, "/a")  # during the pass
    unindexed.clear(home, "/a")
    assert unindexed.roots(home) == ["/a"]
    unindexed.claim(home, "/a")
    unindexed.clear(home, "/a")
    assert unindexed.roots(home) == []


def test_every_project_knows_its_home() -> None:
    """Without the home, it does not know in which folder its days are."""
    calls = [
        (path.name, node)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Project"
    ]
    assert len(calls) > 30
    assert [(name, node.lineno) for name, node in calls if len(node.args) != 2] == []
