"""Marks from git, in real repositories: what changed since an entry, and what a stranger's repository may do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import psutil
import pytest

from memkit.browse import git_marks
from memkit.browse.git_marks import EntryText, GitMarks, find_marks, named_commits, named_files
from tests.builders import git

AMPLE = 60.0
"""Seconds for git: these tests are about what it says, not how fast."""


def commit(directory: Path, day: str, **files: str | None) -> str:
    """Commit these files at noon; None deletes one, `__` stands for `/` and `_` for a dot."""
    for name, text in files.items():
        path = directory / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.unlink()
        else:
            path.write_text(text)
    git(directory, "add", "-A")
    git(directory, "commit", "-qm", "change", "--allow-empty", day=day)
    return git(directory, "rev-parse", "HEAD")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("template")
    git(root, "init", "-qb", "main")
    commit(root, "2026-11-01", deploy__gateway_yaml="1", src__a_py="1", old_py="1")
    return root


@pytest.fixture
def repository(tmp_path: Path, template: Path) -> Path:
    return shutil.copytree(template, tmp_path.resolve() / "project", symlinks=True)


def mark(
    root: Path, text: str, date: str = "2026-11-20", time: str = "", branch: str = "main", **more: str
) -> GitMarks:
    (found,) = find_marks([EntryText(str(root), text, date, branch, time)], seconds=AMPLE, **more)
    return found


def test_a_file_changed_since(repository: Path) -> None:
    commit(repository, "2026-11-19", deploy__gateway_yaml="2")
    commit(repository, "2026-11-21", deploy__gateway_yaml="3", src__a_py="3")
    commit(repository, "2026-11-22", deploy__gateway_yaml="4")
    found = mark(repository, "The port is in `deploy/gateway.yaml`, not in old.py.")
    assert found.changed == {"deploy/gateway.yaml": 2}
    assert found.line == "deploy/gateway.yaml changed in 2 commits"


def test_a_day_without_a_time_counts_as_of_its_end(repository: Path) -> None:
    commit(repository, "2026-11-20", src__a_py="2")
    assert not mark(repository, "src/a.py")
    assert mark(repository, "src/a.py", time="11:00").changed == {"src/a.py": 1}
    assert not mark(repository, "src/a.py", time="13:00")
    assert not mark(repository, "src/a.py", date="")
    assert not mark(repository, "src/a.py", date="2026-99-99")


def test_the_commit_of_an_edit_is_no_change_since(repository: Path) -> None:
    own = commit(repository, "2026-11-20", src__a_py="2")
    turn = "### 11:00 Change it\n**Did** Edit src/a.py · Read old.py\n\n**Answered** Done."
    assert not mark(repository, turn, time="11:00")
    commit(repository, "2026-11-21", src__a_py="3", old_py="3")
    assert mark(repository, turn, time="11:00").changed == {"src/a.py": 1, "old.py": 1}
    named = turn.replace("Read old.py", f"Bash `git commit` → [main {own[:7]}] Change")
    assert mark(repository, named, time="11:00").changed == {"src/a.py": 1}


def test_a_deleted_file(repository: Path) -> None:
    commit(repository, "2026-11-21", old_py=None)
    assert mark(repository, "see old.py").deleted == ("old.py",)
    assert mark(repository, "see old.py").line == "old.py deleted"
    commit(repository, "2026-11-22", old_py="back")
    found = mark(repository, "see old.py")
    assert (found.deleted, found.changed) == ((), {"old.py": 2})


def test_a_renamed_file_is_followed(repository: Path) -> None:
    (repository / "old.py").write_text("one\ntwo\nthree\nfour\n")
    commit(repository, "2026-11-10")
    for day, old, new in (("2026-11-21", "old.py", "new.py"), ("2026-11-22", "new.py", "src/newest.py")):
        git(repository, "mv", old, new)
        commit(repository, day)
    found = mark(repository, "see old.py")
    assert (found.renamed, found.changed, found.deleted) == ({"old.py": "src/newest.py"}, {}, ())
    assert found.line == "old.py (now src/newest.py)"
    commit(repository, "2026-11-23", src__newest_py="one\ntwo\nthree\n4\n")
    assert mark(repository, "see old.py").line == "old.py (now src/newest.py) changed in 1 commit"
    commit(repository, "2026-11-24", src__newest_py=None)
    assert mark(repository, "see old.py").line == "old.py deleted"


def test_white_space_is_not_a_rewrite(repository: Path) -> None:
    commit(repository, "2026-11-21", src__a_py="  1  ")
    assert not mark(repository, "src/a.py")
    commit(repository, "2026-11-22", src__a_py="  2  ")
    assert mark(repository, "src/a.py").changed == {"src/a.py": 1}


def test_uncommitted_changes(repository: Path) -> None:
    (repository / "src" / "a.py").write_text("2")
    (repository / "old.py").write_bytes(b"1\r\n")
    commit(repository, "2026-11-10", old_py="1\n")
    (repository / "src" / "a.py").write_text("3")
    (repository / "old.py").write_bytes(b"1\r\n")
    (repository / "deploy" / "gateway.yaml").unlink()
    found = mark(repository, "src/a.py, old.py, deploy/gateway.yaml, and none.py")
    assert (found.uncommitted, found.deleted) == (("src/a.py",), ("deploy/gateway.yaml",))
    assert found.line == "deploy/gateway.yaml deleted, src/a.py has uncommitted changes"
    edit = "### 11:00 Change it\n**Did** Edit src/a.py\n\n**Answered** Done."
    now = datetime.now()
    assert not mark(repository, edit, date=f"{now:%Y-%m-%d}", time=f"{now:%H:%M}")  # its own work
    assert mark(repository, edit, time="11:00").uncommitted == ("src/a.py",)
    assert not mark(repository, "src/a.py", date="2999-01-01")


def test_what_git_itself_leaves_out_or_converts_has_no_mark(repository: Path) -> None:
    (repository / ".gitattributes").write_text("src/* filter=lfs\n")
    commit(repository, "2026-11-10", src__a_py="1")
    (repository / "src" / "a.py").write_text("as a filter writes it")
    assert not mark(repository, "src/a.py")
    git(repository, "sparse-checkout", "set", "--no-cone", "/src")
    assert not (repository / "old.py").exists()
    assert not mark(repository, "old.py")


def test_a_history_that_failed_is_asked_for_again(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(repository, "2026-11-21", src__a_py="2")
    with monkeypatch.context() as patch:
        patch.setattr(git_marks, "_HISTORY_BYTES", 1)
        assert not mark(repository, "src/a.py")
    assert not mark(repository, "src/a.py")  # not at once
    monkeypatch.setattr(git_marks, "_RETRY_SECONDS", 0.0)
    assert mark(repository, "src/a.py").changed == {"src/a.py": 1}


def test_history_that_comes_late_is_there_for_the_next_search(repository: Path) -> None:
    commit(repository, "2026-11-21", src__a_py="2")
    entry = EntryText(str(repository), "src/a.py", "2026-11-20", "main")
    find_marks([entry], seconds=0.0)
    assert git_marks._histories[str(repository)].wait(AMPLE)
    assert find_marks([entry], seconds=0.0)[0].changed == {"src/a.py": 1}
    commit(repository, "2026-11-22", src__a_py="3")
    assert find_marks([entry], seconds=AMPLE)[0].changed == {"src/a.py": 2}
    git(repository, "commit", "-q", "--amend", "-m", "other", day="2026-11-22")
    assert find_marks([entry], seconds=AMPLE)[0].changed == {"src/a.py": 2}
    git(repository, "mv", "src/a.py", "src/b.py")
    commit(repository, "2026-11-23", src__b_py="3")
    assert find_marks([entry], seconds=AMPLE)[0].line == "src/a.py (now src/b.py) changed in 2 commits"
    older = EntryText(str(repository), "src/b.py", "2026-10-20", "main")
    assert find_marks([older], seconds=AMPLE)[0].changed == {}


def test_a_file_that_never_was_has_no_mark(repository: Path) -> None:
    assert not mark(repository, "e.g. write src/new.py, or and/or and 1.5 and v2.0 or README.md.")


def test_a_commit_on_another_branch(repository: Path) -> None:
    git(repository, "checkout", "-qb", "side")
    side = commit(repository, "2026-11-10", src__a_py="side")
    before = commit(repository, "2026-11-11")
    git(repository, "checkout", "-q", "main")
    here = commit(repository, "2026-11-12", src__a_py="main")
    found = mark(repository, f"[side {side[:7]}] x, {here[:8]}, fixed in {before}; turn 8ad3df7f")
    assert found.commits == tuple(sorted((side[:7], before)))
    assert found.line.endswith("are not on main")
    git(repository, "checkout", "-q", "--detach")
    assert mark(repository, f"`{side[:9]}`").line == f"{side[:9]} is not part of what is checked out"
    git(repository, "checkout", "-q", "side")
    assert mark(repository, f"`{side[:9]}`", branch="side").commits == ()


def test_a_branch_that_is_gone(repository: Path) -> None:
    git(repository, "branch", "feature/a+b")
    git(repository, "branch", "kept/ünï--code")
    git(repository, "pack-refs", "--all")
    git(repository, "branch", "loose/one")
    for branch in ("main", "feature/a+b", "kept/ünï-code", "loose/one", "HEAD", "", "x-[redacted:key]"):
        assert not mark(repository, "text", branch=branch), branch
    git(repository, "branch", "-D", "loose/one")
    found = mark(repository, "text", branch="loose/one")
    assert (found.gone_branch, found.line) == ("loose/one", "branch loose/one is gone")
    entries = [EntryText(str(repository), "text", "2026-11-20", branch) for branch in ("loose/one", "main")]
    assert [marks.gone_branch for marks in find_marks(entries)] == ["loose/one", ""]
    assert not any(find_marks(entries[:1] * 2))  # on every line it says nothing
    git(repository, "branch", "-m", "main", "trunk")
    assert not mark(repository, "text", branch="main")  # a default branch


def test_a_worktree_is_compared_with_what_it_has(repository: Path, tmp_path: Path) -> None:
    linked = tmp_path.resolve() / "linked"
    git(repository, "worktree", "add", "-q", "-b", "side", str(linked))
    side = commit(linked, "2026-11-21", src__a_py="side")
    text = f"src/a.py, {side[:10]}"
    assert mark(repository, text).commits == (side[:10],)
    assert mark(repository, text).changed == {}
    below = linked / "src"
    assert mark(repository, text, directory=str(below)).changed == {}  # by the entry's own commit
    assert mark(repository, "src/a.py", directory=str(below)).changed == {"src/a.py": 1}
    assert mark(repository, text, directory=str(below)).commits == ()
    assert mark(repository, text, directory=str(tmp_path)).commits == (side[:10],)


def test_a_shallow_clone_says_only_what_it_knows(repository: Path, tmp_path: Path) -> None:
    side = commit(repository, "2026-11-21", src__a_py="2")
    commit(repository, "2026-11-22", src__a_py="3")
    shallow = tmp_path.resolve() / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repository}", str(shallow))
    assert not mark(shallow, f"src/a.py and deploy/gateway.yaml, {side[:8]}")
    commit(shallow, "2026-11-23", src__a_py="4")
    assert mark(shallow, "src/a.py and deploy/gateway.yaml").changed == {"src/a.py": 1}


def test_no_repository_and_no_commit(tmp_path: Path) -> None:
    assert not mark(tmp_path, "src/a.py 1a2b3c4", branch="other")
    git(tmp_path, "init", "-qb", "main")
    assert not mark(tmp_path, "src/a.py 1a2b3c4", branch="")


def test_no_git(repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commit(repository, "2026-11-21", src__a_py="2")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert mark(repository, "src/a.py") == GitMarks(branch="main")
    assert mark(repository, "text", branch="gone").gone_branch == "gone"  # read from files


def test_a_git_that_does_not_end(repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    os.mkfifo(tmp_path / "pipe")
    fake.write_text(f"#!/bin/sh\nread x < {tmp_path}/pipe\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    code = (
        "import sys; from memkit.browse.git_marks import *; "
        "print(find_marks([EntryText(sys.argv[1], 'src/a.py 1a2b3c4', '2026-11-20', 'main')]))"
    )
    command = [sys.executable, "-c", code, str(repository)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == f"{[GitMarks(branch='main')]}\n"
    left = [one for one in psutil.process_iter(["cmdline"]) if str(fake) in (one.info["cmdline"] or ())]
    assert left == []  # also none that a thread waited for


HOSTILE = [
    "--output=pwned.txt", "-Opwned.txt", ":(exclude)src/a.py", ":!src/a.py", ":/src/a.py", "../outside.txt",
    "src/../../outside.txt", "/etc/passwd.txt", "$(touch pwned).txt", "`touch pwned`.txt",
    "; touch pwned.txt", "a\x00b.txt", "a\nb.txt", "*.py", "src/[a].py", ".git/config.txt", "~/x.txt",
    "x" * 5000 + ".txt", "@{-1}.txt", "\ud800.txt",
]  # fmt: skip


def test_hostile_names_are_data(repository: Path) -> None:
    commit(repository, "2026-11-21", src__a_py="2")
    before = sorted(path for path in repository.rglob("*") if ".git" not in path.parts)
    for name in HOSTILE:
        turn = f"### 11:00 x\n**Did** Edit {name} · Edit src/a.py · Read {name}\n\n**Answered** {name} `{name}`"
        found = mark(repository, turn, time="11:00", branch=name)
        assert found.changed in ({}, {"src/a.py": 1}) and not found.deleted, name
        found = mark(repository, f"{name} and src/a.py", branch="main")
        assert found.changed == {"src/a.py": 1}, name
        assert sorted(path for path in repository.rglob("*") if ".git" not in path.parts) == before, name


def test_paths_stay_inside(repository: Path) -> None:
    files, edited = named_files(
        "### 11:00 x\n**Did** Edit ../x.py · Write /etc/x.py · Edit a/../../x.py · Read ./src//a.py · "
        "Edit docs/my file.md · Edit .memkit/memory/x.md · LS src\n\n**Answered** See `src/b.py:12`, "
        "https://example.com/c.py, ../d.py, ~/e.py, and C:\\f.py."
    )
    assert files == {"src/a.py", "docs/my file.md", "file.md", "src", "src/b.py"}
    assert edited == {"docs/my file.md"}


def test_words_that_may_be_commits() -> None:
    text = "[main 1a2b3c4] x 1a2b3c4d5 deadbeef abc1234-x v1a2b3c4 src/1a2b3c4 " + "a1" * 20 + " " + "a1" * 21
    assert named_commits(text) == {"1a2b3c4", "1a2b3c4d5", "a1" * 20}


def test_a_repository_cannot_run_a_program(repository: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/pwned\ncat\n")
    program.chmod(0o755)
    (repository / ".gitattributes").write_text("* diff=evil filter=evil\n")
    side = commit(repository, "2026-11-21", src__a_py="2", deploy__gateway_yaml="2")
    raw = git(repository, "cat-file", "commit", side).replace(
        "\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n", 1
    )
    made = subprocess.run(
        ["git", "-C", str(repository), "hash-object", "-t", "commit", "-w", "--stdin"],
        input=raw + "\n", capture_output=True, text=True, check=True,
    )  # fmt: skip
    git(repository, "reset", "-q", "--soft", made.stdout.strip())
    for setting in (
        "core.fsmonitor", "core.pager", "pager.log", "gpg.program", "diff.external", "diff.evil.textconv",
        "diff.evil.command", "filter.evil.smudge", "filter.evil.clean", "alias.log", "core.sshCommand",
        "core.alternateRefsCommand",
    ):  # fmt: skip
        git(repository, "config", setting, str(program))
    git(repository, "config", "log.showSignature", "true")
    git(repository, "config", "log.follow", "true")
    (repository / ".git" / "hooks" / "post-checkout").symlink_to(program)
    subprocess.run(["git", "-C", str(repository), "log", "-1"], capture_output=True, check=False)
    assert (tmp_path / "pwned").exists()  # git itself would run one
    (tmp_path / "pwned").unlink()
    assert mark(repository, f"src/a.py and {side[:8]}").changed == {"src/a.py": 1}
    assert not (tmp_path / "pwned").exists()


def test_the_environment_is_ignored(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(repository, "2026-11-21", src__a_py="2")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "none"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    assert mark(repository, "src/a.py").changed == {"src/a.py": 1}


def test_many_entries_and_projects(repository: Path, tmp_path: Path) -> None:
    commit(repository, "2026-11-21", src__a_py="2")
    entries = [EntryText(str(repository), f"src/a.py src/{n}.py", "2026-11-20", "main") for n in range(300)]
    entries += [EntryText(str(tmp_path / str(n)), "src/a.py", "2026-11-20", "") for n in range(20)]
    found = find_marks(entries, seconds=AMPLE)
    assert len(found) == 320
    assert found[0].changed == {"src/a.py": 1} and not found[-1]


def test_many_files_on_one_line() -> None:
    found = GitMarks(changed={"a.py": 1, "b.py": 3, "c.py": 2, "d.py": 1}, deleted=("e.py",))
    assert found.line == "e.py deleted, b.py changed in 3 commits, and 3 more files"
    assert git_marks.GitMarks().as_dict() == {}
