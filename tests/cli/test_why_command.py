"""What git knows: `memkit why` of a file, and the marks on results."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from memkit import anchors
from memkit.browse import git_marks
from memkit.cli.screen import cells
from tests.browse.test_git_marks import AMPLE, commit, git
from tests.cli.conftest import Run
from tests.cli.fortnight import check_screen, fortnight
from tests.memory import Memory, make_memory

BATCH = "src/orders/batch.py"
SQL = "db/migrate/0042_orders.sql"


@pytest.fixture
def past(tmp_path: Path) -> Memory:
    return fortnight(tmp_path.resolve())


@pytest.fixture
def in_git(past: Memory) -> Memory:
    """The same, in a repository: a file was renamed, and changed by hand afterwards."""
    root = Path(past.project.root)
    git(root, "init", "-qb", "main")
    (root / ".git" / "info" / "exclude").write_text("/.memkit/\n")
    text = "".join(f"{number} rows\n" for number in range(50))
    commit(root, "2026-11-01", src__money_py=text)
    (root / "src" / "money.py").rename(root / "src" / "amounts.py")
    commit(root, "2026-11-14")
    commit(root, "2026-11-21", src__amounts_py=text + "changed by hand\n")
    return past


def events(run: Run, memory: Memory, *arguments: str) -> list[tuple[str, str]]:
    return [(one["kind"], one["id"]) for one in run(memory, "why", "--json", *arguments).json["events"]]


@pytest.mark.parametrize("columns", [80, 120])
def test_screen(run: Run, in_git: Memory, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    found = run(in_git, "why", "src/amounts.py")
    assert (found.status, found.errors) == (0, "")
    assert max(map(cells, found.output.splitlines())) <= columns
    assert "\x1b" not in found.output
    value = run(in_git, "why", "--json", "src/amounts.py").json
    assert value["names"] == ["src/amounts.py", "src/money.py"]  # renames are followed
    assert [one["kind"] for one in value["events"]] == ["commit", "read", "fact", "commit", "commit"]
    hashes = git(Path(in_git.project.root), "log", "--format=%H", "--", "src").split()
    text = found.output
    for number, one in enumerate(hashes):
        text = text.replace(one[:8], f"commit-{number}")
    check_screen(f"why-{columns}", text)


def test_turns_without_git(run: Run, past: Memory) -> None:
    found = run(past, "why", "--json", SQL).json
    assert (found["file"], found["git"], found["names"]) == (SQL, False, [SQL])
    assert events(run, past, SQL) == [("read", "a000000a"), ("bullet", "82c57f55"), ("read", "a000000e")]
    assert events(run, past, "batch.py") == events(run, past, f"./{BATCH}") == events(run, past, BATCH)
    assert events(run, past, "atch.py") == []
    (edit,) = run(past, "why", BATCH, "--json").json["events"]
    assert edit["title"] == "Orders: batches run twice"
    assert edit["outcome"].startswith("The lock was released before the commit.")
    assert edit["session"].startswith("beef0001")


def test_a_path_that_is_cut_or_part_of_another(run: Run, past: Memory) -> None:
    day = past.path("2026-11-19.md")
    day.write_text(day.read_text().replace(f"Edit {BATCH}", "Edit …/orders/batch.py"))
    assert events(run, past, BATCH) == [("edit", "a000000e")]
    assert events(run, past, "src/other/batch.py") == []
    fact = f"- Decided: src/webapp.py has no state. (2026-11-19) {anchors.render(fact='abcdef01', turns='a0000001')}"
    past.write("MEMORY.md", f"# Facts\n\n{fact}\n")
    assert events(run, past, "webapp.py") == [("fact", "abcdef01")]
    assert events(run, past, "app.py") == []


def test_a_commit_that_a_turn_names_is_shown_with_it(run: Run, in_git: Memory) -> None:
    root = Path(in_git.project.root)
    own = commit(root, "2026-11-22", src__amounts_py="3")
    in_git.write(
        "2026-11-22.md",
        f"# 2026-11-22\n\n## 11:58 Shorter <!-- session:5e5500aa turn:a00000aa -->\n\n"
        f"**Did** Edit src/amounts.py · Bash `git commit` → [main {own[:7]}] Shorter\n\n**Answered** The module is half as long.\n",
    )
    *_, last = run(in_git, "why", "--json", "src/amounts.py").json["events"]
    assert (last["id"], last["commits"]) == ("a00000aa", [own[:8]])
    assert f"→ Committed: Shorter {own[:8]}" in run(in_git, "why", "src/amounts.py").output


def test_a_linked_worktree(run: Run, in_git: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    linked = tmp_path.resolve() / "linked"
    git(Path(in_git.project.root), "worktree", "add", "-qb", "side", str(linked))
    side = commit(linked, "2026-11-23", src__amounts_py="side")
    path = str(linked / "src" / "amounts.py")
    assert ("commit", side[:8]) in events(run, in_git, path, "--project", str(linked))
    assert ("commit", side[:8]) not in events(run, in_git, "src/amounts.py")


def test_each_sessions_last_edit_comes_before_the_rest(run: Run, past: Memory) -> None:
    text = "# 2026-11-22\n"
    for number, tool in enumerate(("Edit", "Edit", "Read", "Write", "Read", "Read")):
        session = f"\n## 11:0{number} Part <!-- session:5e5500{min(number, 2)} turn:b000000{number} -->\n"
        text += f"{session}\n**Did** {tool} src/new.py\n\n**Answered** So.\n"
    text += "\n### 11:09 Part <!-- turn:b0000009 -->\n\n**Did** Edit src/new.py\n"
    past.write("2026-11-22.md", text)
    kept = [name for kind, name in events(run, past, "src/new.py", "-n", "3")]
    assert kept == ["b0000000", "b0000001", "b0000009"]
    more = [name for kind, name in events(run, past, "src/new.py", "-n", "5")]
    assert more == ["b0000000", "b0000001", "b0000003", "b0000005", "b0000009"]


def test_the_hint_quotes_the_file(run: Run, in_git: Memory) -> None:
    root = Path(in_git.project.root)
    name = "it's; $(x).py"
    for number in range(3):
        (root / name).write_text(str(number))
        git(root, "add", "-A")
        git(root, "commit", "-qm", str(number), day=f"2026-11-2{number + 1}")
    whole = events(run, in_git, "src/amounts.py")
    assert events(run, in_git, "src/amounts.py", "-n", "2") == whole[-2:]
    (hint,) = [line for line in run(in_git, "why", name, "-n", "2").output.splitlines() if "More:" in line]
    assert shlex.split(hint)[1:] == ["memkit", "why", "-n", "8", name]


def test_git_that_does_not_answer_is_named(run: Run, in_git: Memory) -> None:
    missing = "Commits are missing: git did not answer, or has none yet."
    assert missing not in run(in_git, "why", BATCH).output
    assert run(in_git, "why", "nothing.py").output == (
        "Nothing is known of nothing.py: no turn read or edited it, and git has no commit of it.\n"
    )
    (Path(in_git.project.root) / ".git" / "refs" / "heads" / "main").write_text(f"{'1' * 40}\n")
    assert run(in_git, "why", BATCH).output.splitlines()[0] == missing
    assert run(in_git, "why", "nothing.py").output == (
        f"Nothing is known of nothing.py: no turn read or edited it. {missing}\n"
    )


def test_nothing(run: Run, past: Memory, tmp_path: Path) -> None:
    for memory in (past, make_memory(tmp_path / "empty")):
        for name in ("nothing.py", "../../etc/passwd", "/etc/passwd", "--output", ":(top)x"):
            found = run(memory, "why", "--", name)
            assert found.status == 0
            assert found.output.startswith("Nothing is known of ")
    for name in ("", ".", "./", ".."):
        assert "is not a file" in run(past, "why", name).complaint


def test_hostile_subjects_and_names(run: Run, in_git: Memory) -> None:
    root = Path(in_git.project.root)
    (root / "src" / "amounts.py").write_text("x")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "\x1b[2J\x1b]0;title\x07 \u202e gnp", day="2026-11-23")
    found = run(in_git, "why", "src/amounts.py").output
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", found)


# Marks from git on the screen, in JSON, and in what the model reads.


LINE = "deploy/gateway.yaml changed in 1 commit"


@pytest.fixture
def changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """A fortnight on `main`, and a repository that has moved on."""
    monkeypatch.setattr(git_marks, "SECONDS", AMPLE)
    memory = fortnight(tmp_path.resolve())
    root = Path(memory.project.root)
    git(root, "init", "-qb", "trunk")
    (root / ".git" / "info" / "exclude").write_text("/.memkit/\n")
    commit(root, "2026-11-01", deploy__gateway_yaml="1")
    commit(root, "2026-11-12", deploy__gateway_yaml="2")
    return memory


def test_search_expand_and_recall(run: Run, changed: Memory) -> None:
    question = "which port does the staging gateway use"
    lines = run(changed, "search", question).output.splitlines()
    assert f"         git: {LINE}" in lines
    assert max(map(cells, lines)) <= 80
    assert f"\ngit: {LINE}\n" in run(changed, "search", "--full", question).output
    (one,) = [one for one in run(changed, "search", "--json", question).json["results"] if one["turns"] == ["a0000001"]]
    assert one["git"] == {"changed": {"deploy/gateway.yaml": 1}, "line": LINE}
    (section,) = run(changed, "expand", "--json", one["id"]).json["sections"]
    assert section["git"] == one["git"]
    assert f"git: {LINE}" in run(changed, "expand", one["id"]).output.splitlines()
    assert f' git="{LINE}"' in run(changed, "recall", "--stdin", stdin=question.encode()).output


def test_rank_stays(run: Run, changed: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    with_marks = run(changed, "search", "--json", "--all", "gateway port orders").json["results"]
    monkeypatch.setattr(git_marks, "SECONDS", 0.0)
    monkeypatch.setenv("PATH", "")
    without = run(changed, "search", "--json", "--all", "gateway port orders").json["results"]
    assert [(one["id"], one["score"]) for one in with_marks] == [(one["id"], one["score"]) for one in without]
    assert len(with_marks) > 3
