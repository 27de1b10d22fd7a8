"""The file that a session edited last, from its transcript."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from memkit.capture.sessions import Session, Sessions
from memkit.paths import Home
from memkit.questions.caller import TAIL_BYTES, last_edited

SESSION = "8bb06550-1111-4222-8333-444455556666"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return Home(str(tmp_path.resolve() / "home"))


@pytest.fixture
def root(tmp_path: Path) -> str:
    (tmp_path / "project").mkdir()
    return str((tmp_path / "project").resolve())


def call(name: str, **given: Any) -> str:
    block = {"type": "tool_use", "id": "t1", "name": name, "input": given}
    message = {"role": "assistant", "content": [block]}
    return json.dumps({"type": "assistant", "uuid": os.urandom(4).hex(), "sessionId": SESSION, "message": message})


def write(*lines: str, folder: str = "-x", session: str = SESSION) -> Path:
    path = Path(os.environ["CLAUDE_CONFIG_DIR"], "projects", folder, f"{session}.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_last_edit_counts(home: Home, root: str) -> None:
    write(
        call("Write", file_path=f"{root}/src/a.py"), call("Edit", file_path=f"{root}/src/billing/b.py"),
        call("Read", file_path=f"{root}/src/c.py"), call("Bash", command="touch src/d.py"),
    )  # fmt: skip
    assert last_edited(home, SESSION, [root]) == "src/billing/b.py"
    for session in ("", "*", "../x", "8bb0", "a\0b", "8bb06550*"):
        assert last_edited(home, session, [root]) == ""
    write(call("NotebookEdit", notebook_path=f"{root}/n.ipynb"))
    assert last_edited(home, SESSION, [root]) == "n.ipynb"


def test_the_state_leads_to_the_transcript(home: Home, root: str, tmp_path: Path) -> None:
    write(call("Edit", file_path=f"{root}/other.py"))
    path = tmp_path / "t.jsonl"
    path.write_text(call("Edit", file_path=f"{root}/own.py") + "\n")
    Sessions(home).save(Session(SESSION, transcript=str(path)))
    assert last_edited(home, SESSION, [root]) == "own.py"
    path.unlink()
    assert last_edited(home, SESSION, [root]) == "other.py"


def test_only_files_of_the_project(home: Home, root: str, tmp_path: Path) -> None:
    (Path(root) / "out").symlink_to(tmp_path)
    outside = ["/etc/passwd", f"{root}/../x.py", f"{root}/out/x.py", "relative.py", "", root, f"{root}-2/x.py", "/a\0b"]
    write(call("Edit", file_path=f"{root}/in.py"), *(call("Edit", file_path=one) for one in outside))
    assert last_edited(home, SESSION, [root]) == "in.py"
    write(*(call("Edit", file_path=one) for one in outside))
    assert last_edited(home, SESSION, [root]) == ""


def test_a_worktree(home: Home, root: str, tmp_path: Path) -> None:
    linked = str(tmp_path.resolve() / "linked")
    write(call("Edit", file_path=f"{linked}/src/a.py"))
    assert last_edited(home, SESSION, [linked, root]) == "src/a.py"
    assert last_edited(home, SESSION, ["", root]) == ""


def test_a_long_transcript_is_read_from_its_end(home: Home, root: str) -> None:
    filling = call("Bash", command="x" * 10_000)
    lines = [call("Edit", file_path=f"{root}/early.py"), *[filling] * (TAIL_BYTES // 10_000 + 2)]
    write(*lines)
    assert last_edited(home, SESSION, [root]) == ""
    write(*lines, call("Edit", file_path=f"{root}/late.py"))
    assert last_edited(home, SESSION, [root]) == "late.py"


def test_a_transcript_that_tells_nothing(home: Home, root: str) -> None:
    for line in ("", "{", "[]", '{"type": "assistant"}', call("Edit"), call("Edit", file_path=7)):
        path = write(line)
        assert last_edited(home, SESSION, [root]) == "", line
    path.unlink()
    os.mkfifo(path)
    assert last_edited(home, SESSION, [root]) == ""
