"""Which project remembers what is done in a directory: all the ways in which directories lie and move."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from memkit.errors import MemkitError
from memkit.index.catalog import identity
from memkit.paths import Home
from memkit.projects import project as project_module
from memkit.projects.project import REGISTRY_VERSION, Project, Registry, registry_path
from memkit.projects.registry import changing
from tests.projects.test_project import REMOTE, found, git, repository

# A clean start: no file of the user's own git configuration decides.
pytestmark = pytest.mark.usefixtures("user")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path.resolve()


@pytest.fixture
def user(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's home directory."""
    path = root / "homes" / "me"
    path.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(path))
    monkeypatch.delenv("TMPDIR", raising=False)
    return path


@pytest.fixture
def home(user: Path) -> Home:
    return Home(str(user / ".memkit"))


def remembered(directory: Path | str, home: Home) -> str:
    return Project.remembering(str(directory), home).root


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


def test_a_bare_place_is_no_project(home: Home, user: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = set()
    for place in ("/", "/tmp", "~", "~/.."):
        directory = os.path.realpath(os.path.expanduser(place))
        kept = remembered(directory, home)
        places.add(kept)
        assert os.path.dirname(kept) == home.projects
        assert kept == remembered(directory, home)
        assert Project.at_root(kept, home).root == kept  # as events carry it
        assert remembered(kept, home) == kept  # as `--project` can name it
    assert len(places) == 4
    notes = repository(root / "notes")
    with changing(home) as registry:
        registry.link(str(user), str(notes))
    assert remembered(user, home) == str(notes)
    (root / "scratch" / "work").mkdir(parents=True)
    monkeypatch.setenv("TMPDIR", str(root / "scratch"))
    assert os.path.dirname(remembered(root / "scratch", home)) == home.projects
    assert remembered(root / "scratch" / "work", home) == str(root / "scratch" / "work")


def test_a_home_under_version_control_absorbs_no_project(user: Path, home: Home) -> None:
    """Dotfiles are often a repository at the home itself: what lies below it is no part of them."""
    git(user, "init", "-q")
    git(user, "commit", "-q", "--allow-empty", "-m", "one")
    (user / "notes" / "sub").mkdir(parents=True)
    assert remembered(user / "notes" / "sub", home) == str(user / "notes" / "sub")
    assert os.path.dirname(remembered(user, home)) == home.projects
    git(user, "worktree", "add", "-q", str(user / "linked"))
    assert remembered(user / "linked", home) == str(user / "linked")
    shop = repository(user / "shop")
    (shop / "src").mkdir()
    assert remembered(shop / "src", home) == str(shop)


def test_the_users_memory_is_separate_from_that_of_the_home_directory(user: Path, home: Home) -> None:
    """With the usual memory home the one would lie where the other would."""
    assert Project(str(user)).memory == home.memory
    assert Project.remembering(str(user), home).memory != home.memory
    assert Project.at_root(home.root, home).memory == home.memory
    Path(home.log).mkdir(parents=True)
    kept = remembered(home.root, home)  # the memory home is no project
    assert os.path.dirname(kept) == home.projects
    assert remembered(home.log, home) == remembered(home.memory, home) == kept


def test_a_renamed_repository_is_found_under_its_new_path(root: Path, home: Home) -> None:
    first = repository(root / "first", REMOTE)
    name = identity(Project(str(first)), home)
    for target in ("second", "third", "first", "fourth"):
        moved = root / target
        found_at = next(path for path in root.iterdir() if (path / ".git").exists())
        found_at.rename(moved)
        assert identity(Project(str(moved)), home) == name
    for old in ("first", "second", "third"):
        assert Project.at_root(str(root / old), home).root == str(root / "fourth")
    # Another one at a former place is itself.
    other = repository(root / "second")
    assert Project.at_root(str(other), home).root == str(other)


def test_names_and_links_move_along(root: Path, home: Home) -> None:
    first, guest = repository(root / "first", REMOTE), repository(root / "guest")
    identity(Project(str(first)), home)
    with changing(home) as registry:
        registry.names[str(first)] = "Shop"
        registry.link(str(guest), str(first))
    first.rename(root / "second")
    identity(Project(str(root / "second")), home)
    assert remembered(guest, home) == str(root / "second")
    assert Registry.read(home).name_of(str(root / "second")) == "Shop"


def test_a_link_shares_a_memory(root: Path, home: Home) -> None:
    one, two, three = (repository(root / name) for name in ("one", "two", "three"))
    with changing(home) as registry:
        registry.link(str(one), str(two))
    (one / "src").mkdir()
    assert remembered(one / "src", home) == remembered(two, home) == str(two)
    with changing(home) as registry:
        registry.link(str(two), str(three))
    assert {remembered(path, home) for path in (one, two, three)} == {str(three)}
    odd = os.path.join(root, os.fsdecode(b"b\xff d"))  # of any bytes
    os.mkdir(odd)
    with changing(home) as registry:
        registry.link(str(root), odd)
    assert remembered(root, home) == odd


def test_a_damaged_registry_breaks_no_hook(root: Path, home: Home) -> None:
    one = repository(root / "one")
    os.makedirs(home.projects)
    for content in ("", "{", "[]", "null", '{"version": 1, "links": {"a": 5}, "names": {}, "moves": {}}'):
        Path(registry_path(home)).write_text(content)
        assert remembered(one, home) == str(one)
        assert "restore it from a backup" in Registry.read(home).problem
        with pytest.raises(MemkitError, match="restore it from a backup"), changing(home):
            pass
        assert Path(registry_path(home)).read_text() == content


def test_a_newer_registry_is_not_overwritten(root: Path, home: Home) -> None:
    os.makedirs(home.projects)
    content = json.dumps({"version": REGISTRY_VERSION + 1, "links": {}})
    Path(registry_path(home)).write_text(content)
    with pytest.raises(MemkitError, match="update memkit"), changing(home):
        pass
    first = repository(root / "first", REMOTE)
    name = identity(Project(str(first)), home)
    first.rename(root / "second")
    assert identity(Project(str(root / "second")), home) == name
    assert Path(registry_path(home)).read_text() == content
