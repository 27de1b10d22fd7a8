"""Which project a directory belongs to, and what its index is called."""

from __future__ import annotations

import ast
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.errors import MemkitError
from memkit.index.catalog import identity
from memkit.ipc import unindexed
from memkit.paths import Home
from memkit.projects import project as project_module
from memkit.projects.git import normalize_remote, remote_of, run_git
from memkit.projects.project import REGISTRY_VERSION, Project, Registry, registry_path
from memkit.projects.registry import changing
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


# Which project remembers what is done in a directory: all the ways in which directories lie and move.


@pytest.fixture
def user(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's home directory. No file of their own git configuration decides."""
    path = root / "homes" / "me"
    path.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(path))
    monkeypatch.delenv("TMPDIR", raising=False)
    return path


@pytest.fixture
def own_home(user: Path) -> Home:
    return Home(str(user / ".memkit"))


def remembered(directory: Path | str, own_home: Home) -> str:
    return Project.remembering(str(directory), own_home).root


def test_a_repository_in_another_is_its_own(root: Path) -> None:
    outer = repository(root / "outer")
    inner = repository(outer / "tools" / "inner")
    (inner / "src").mkdir()
    assert found(inner / "src") == inner
    assert found(outer / "tools") == outer
    assert found(outer / ".git" / "hooks") == outer
    (root / "work").mkdir()
    git(root / "work", "init", "-q", "--separate-git-dir", str(root / "work.git"))
    assert found(root / "work") == root / "work"
    git(outer, "submodule", "add", "-q", str(inner), "vendor")
    git(outer / "vendor", "worktree", "add", "-q", str(root / "linked"))
    assert found(root / "linked") == outer / "vendor"


def test_worktrees_around_a_hidden_bare_repository_share_one_memory(root: Path) -> None:
    main = repository(root / "main")
    around = root / "around"
    git(root, "clone", "-q", "--bare", str(main), str(around / ".bare"))
    (around / ".git").write_text("gitdir: ./.bare\n")
    git(around, "worktree", "add", "-q", str(around / "one"))
    git(around, "worktree", "add", "-q", str(root / "two"))
    assert found(around / "one") == found(root / "two") == found(around) == around


def test_links_are_followed_to_one_root(root: Path) -> None:
    main = repository(root / "main")
    (main / "src").mkdir()
    (root / "repo").symlink_to(main)
    (root / "src").symlink_to(main / "src")
    (main / "out").symlink_to(root)
    assert found(root / "repo") == found(root / "src") == found(root / "repo" / "src") == main
    assert found(main / "out") == root
    for name in ("Shop", "shop", "sHOP"):  # their case matters here
        (root / name).mkdir()
        assert found(root / name) == root / name


def test_letter_case_where_it_does_not_matter(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a file system takes any spelling: here the questions put to it are answered as it would."""
    (root / "Work" / "Shop").mkdir(parents=True)
    stored = {str(path).lower(): path for path in (root / "Work", root / "Work" / "Shop")}
    real_exists = os.path.exists

    def exists(path: str) -> bool:
        return str(path).lower() in stored or real_exists(path)

    monkeypatch.setattr(project_module.os.path, "exists", exists)
    monkeypatch.setattr(project_module.os.path, "samefile", lambda a, b: a.lower() == b.lower())
    for name in ("work/shop", "WORK/Shop", "Work/Shop"):
        assert project_module._as_stored(str(root / name)) == str(root / "Work" / "Shop")


def test_a_bare_place_is_no_project(own_home: Home, user: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = set()
    for place in ("/", "/tmp", "~", "~/.."):
        directory = os.path.realpath(os.path.expanduser(place))
        kept = remembered(directory, own_home)
        places.add(kept)
        assert os.path.dirname(kept) == own_home.projects
        assert kept == remembered(directory, own_home)
        assert Project.at_root(kept, own_home).root == kept  # as events carry it
        assert remembered(kept, own_home) == kept  # as `--project` can name it
    assert len(places) == 4
    notes = repository(root / "notes")
    with changing(own_home) as registry:
        registry.link(str(user), str(notes))
    assert remembered(user, own_home) == str(notes)
    (root / "scratch" / "work").mkdir(parents=True)
    monkeypatch.setenv("TMPDIR", str(root / "scratch"))
    assert os.path.dirname(remembered(root / "scratch", own_home)) == own_home.projects
    assert remembered(root / "scratch" / "work", own_home) == str(root / "scratch" / "work")


def test_a_home_under_version_control_absorbs_no_project(user: Path, own_home: Home) -> None:
    """Dotfiles are often a repository at the home itself: what lies below it is no part of them."""
    git(user, "init", "-q")
    git(user, "commit", "-q", "--allow-empty", "-m", "one")
    (user / "notes" / "sub").mkdir(parents=True)
    assert remembered(user / "notes" / "sub", own_home) == str(user / "notes" / "sub")
    assert os.path.dirname(remembered(user, own_home)) == own_home.projects
    git(user, "worktree", "add", "-q", str(user / "linked"))
    assert remembered(user / "linked", own_home) == str(user / "linked")
    shop = repository(user / "shop")
    (shop / "src").mkdir()
    assert remembered(shop / "src", own_home) == str(shop)


def test_the_users_memory_is_separate_from_that_of_the_home_directory(user: Path, own_home: Home) -> None:
    """With the usual memory home the one would lie where the other would."""
    assert Project(str(user)).memory == own_home.memory
    assert Project.remembering(str(user), own_home).memory != own_home.memory
    assert Project.at_root(own_home.root, own_home).memory == own_home.memory
    Path(own_home.log).mkdir(parents=True)
    kept = remembered(own_home.root, own_home)  # the memory home is no project
    assert os.path.dirname(kept) == own_home.projects
    assert remembered(own_home.log, own_home) == remembered(own_home.memory, own_home) == kept


def test_a_renamed_repository_is_found_under_its_new_path(root: Path, own_home: Home) -> None:
    first = repository(root / "first", REMOTE)
    name = identity(Project(str(first)), own_home)
    for target in ("second", "third", "first", "fourth"):
        moved = root / target
        found_at = next(path for path in root.iterdir() if (path / ".git").exists())
        found_at.rename(moved)
        assert identity(Project(str(moved)), own_home) == name
    for old in ("first", "second", "third"):
        assert Project.at_root(str(root / old), own_home).root == str(root / "fourth")
    # Another one at a former place is itself.
    other = repository(root / "second")
    assert Project.at_root(str(other), own_home).root == str(other)


def test_names_and_links_move_along(root: Path, own_home: Home) -> None:
    first, guest = repository(root / "first", REMOTE), repository(root / "guest")
    identity(Project(str(first)), own_home)
    with changing(own_home) as registry:
        registry.names[str(first)] = "Shop"
        registry.link(str(guest), str(first))
    first.rename(root / "second")
    identity(Project(str(root / "second")), own_home)
    assert remembered(guest, own_home) == str(root / "second")
    assert Registry.read(own_home).name_of(str(root / "second")) == "Shop"


def test_a_link_shares_a_memory(root: Path, own_home: Home) -> None:
    one, two, three = (repository(root / name) for name in ("one", "two", "three"))
    with changing(own_home) as registry:
        registry.link(str(one), str(two))
    (one / "src").mkdir()
    assert remembered(one / "src", own_home) == remembered(two, own_home) == str(two)
    with changing(own_home) as registry:
        registry.link(str(two), str(three))
    assert {remembered(path, own_home) for path in (one, two, three)} == {str(three)}
    odd = os.path.join(root, os.fsdecode(b"b\xff d"))  # of any bytes
    os.mkdir(odd)
    with changing(own_home) as registry:
        registry.link(str(root), odd)
    assert remembered(root, own_home) == odd


def test_a_damaged_registry_breaks_no_hook(root: Path, own_home: Home) -> None:
    one = repository(root / "one")
    os.makedirs(own_home.projects)
    for content in ("", "{", "[]", "null", '{"version": 1, "links": {"a": 5}, "names": {}, "moves": {}}'):
        Path(registry_path(own_home)).write_text(content)
        assert remembered(one, own_home) == str(one)
        assert "restore it from a backup" in Registry.read(own_home).problem
        with pytest.raises(MemkitError, match="restore it from a backup"), changing(own_home):
            pass
        assert Path(registry_path(own_home)).read_text() == content


def test_a_newer_registry_is_not_overwritten(root: Path, own_home: Home) -> None:
    os.makedirs(own_home.projects)
    content = json.dumps({"version": REGISTRY_VERSION + 1, "links": {}})
    Path(registry_path(own_home)).write_text(content)
    with pytest.raises(MemkitError, match="update memkit"), changing(own_home):
        pass
    first = repository(root / "first", REMOTE)
    name = identity(Project(str(first)), own_home)
    first.rename(root / "second")
    assert identity(Project(str(root / "second")), own_home) == name
    assert Path(registry_path(own_home)).read_text() == content
