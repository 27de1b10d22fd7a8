"""What `capture.exclude` names is captured nowhere: neither sessions held there nor calls on its files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

from memkit.capture.capture import Capture
from memkit.privacy.exclusion import Exclusion
from memkit.projects.project import Project
from memkit.settings.load import Settings
from tests.builders import Lines
from tests.capture.stage import Stage, prompt_id

WORD = "zqhorseradishzq"


@pytest.mark.parametrize(
    ("pattern", "path", "is_covered"),
    [
        ("secrets", "secrets/a.txt", True), ("secrets", "src/secrets/a.txt", True),
        ("secrets", "src/mysecrets/a.txt", False), ("secrets/", "secrets", True),
        ("./secrets", "secrets/deep/a.txt", True), ("./secrets", "src/secrets/a.txt", False),
        ("src/*.key", "src/a.key", True), ("src/*.key", "a.key", False),
        ("*.pem", "deep/down/server.pem", True), ("*.pem", "/etc/ssl/server.pem", True),
        ("*.pem", "server.pem.txt", False), (".env", "./.env", True), (".env", "src/../.env", True),
        ("**/private/*.md", "private/a.md", True), ("**/private/*.md", "x/y/private/a.md", True),
        ("{root}/secrets", "secrets/a", True), ("{root}/secrets", "secretsandmore", False),
        ("{root}/../elsewhere", "../elsewhere/a", True), ("~/vault", "~/vault/a", True),
        ("~/vault", "vault/a", False), ("project", "src/a.txt", False), ("", "a.txt", False),
        ("/", "a.txt", True), ("[", "a.txt", False), ("secrets", "a\0b", False),
    ],
)  # fmt: skip
def test_patterns(tmp_path: Path, pattern: str, path: str, is_covered: bool) -> None:
    root = str(tmp_path / "project")
    exclusion = Exclusion([os.path.normpath(pattern.format(root=root)) if "{" in pattern else pattern], root)
    assert exclusion.covers(path, root) is is_covered


def test_links_count_as_both_their_ends(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "real").mkdir()
    (root / "link").symlink_to(root / "real")
    for pattern in ("./real", "./link", f"{root}/link", f"{root}/li*/", f"{root}/link/*.txt"):
        for path in ("real/a.txt", "link/a.txt"):
            is_glob_of_link = pattern.endswith("li*/") and path.startswith("real")
            assert Exclusion([pattern], str(root)).covers(path, str(root)) is not is_glob_of_link


def settings(*patterns: str) -> Settings:
    return msgspec.convert({"capture": {"exclude": list(patterns)}}, Settings)


def everything(stage: Stage) -> str:
    """All that memkit wrote, archives opened."""
    text = ""
    for path in sorted(stage.root.rglob("*")):
        if path.is_file() and path != stage.transcript:
            data = path.read_bytes()
            while path.suffix == ".zst" and data:
                frame = zstandard.ZstdDecompressor().decompressobj()
                text += frame.decompress(data).decode()
                data = frame.unused_data
            text += path.read_bytes().decode("utf-8", "replace")
    return text


CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("Read", {"file_path": "{root}/vault/key.txt"}, WORD),
    ("Edit", {"file_path": "vault/key.txt", "old_string": WORD, "new_string": f"{WORD}2"}, "done"),
    ("Bash", {"command": "cat vault/key.txt | head -1"}, WORD),
    ("Bash", {"command": f"echo {WORD} > './vault/key.txt'"}, ""),
    ("Bash", {"command": "cd vault && cat key.txt"}, WORD),
    ("Grep", {"pattern": "a", "path": "."}, f"src/a.py:1:a\nvault/key.txt:1:{WORD}"),
    ("Bash", {"command": "git show HEAD"}, f"diff --git a/vault/key.txt b/vault/key.txt\n+{WORD}"),
    ("mcp__files__read", {"uri": "vault/key.txt"}, WORD),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call[0]} {next(iter(call[1].values()))}")
def test_calls_on_excluded_files_keep_nothing(stage: Stage, call: tuple[str, dict[str, Any], str]) -> None:
    name, given, result = call
    root = stage.project.root
    lines = Lines().prompt("Look at it", prompt_id(1), cwd=root)
    given = {key: value.format(root=root) for key, value in given.items()}
    block = {"type": "tool_use", "id": "t1", "name": name, "input": given}
    lines.add("assistant", [block], cwd=root)
    lines.result("t1", result, cwd=root)
    lines.add("assistant", [{"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "make"}}], cwd=root)
    lines.result("t2", "all is built", cwd=root).answer("Seen.", cwd=root)
    stage.write(lines)
    capture = Capture(stage.home, settings("vault/", "*.pem"))
    capture.import_file(stage.transcript, stage.project)
    text = everything(stage)
    assert WORD not in text
    assert "[excluded]" in text
    assert "all is built" in text
    assert "**Answered** Seen." in stage.journal


@pytest.mark.parametrize("pattern", ["{root}", "{root}/../pro*", "work", "{root}/work"])
def test_a_session_held_in_an_excluded_place_is_not_captured(stage: Stage, pattern: str) -> None:
    root = stage.project.root
    work = os.path.join(root, "work")
    os.mkdir(work)
    stage.write(Lines().prompt(f"The {WORD}?", prompt_id(1), cwd=work).answer(f"A {WORD}.", cwd=work))
    capture = Capture(stage.home, settings(os.path.normpath(pattern.format(root=root))))
    captured = capture.import_file(stage.transcript, stage.project)
    assert (captured.turns, captured.left_out) == (0, 1)
    for event in ("SessionStart", "Stop", "SessionEnd"):
        record = stage.record(event, cwd=work, prompt_id=prompt_id(1))
        capture.handle(record, stage.project, record["time"] + 60)
    assert WORD not in everything(stage)
    assert stage.days == []


def test_turns_while_memkit_is_off_stay_out(stage: Stage) -> None:
    lines = Lines().prompt("Before?", prompt_id(1)).answer("Before.")  # 10:00:00
    lines.prompt(f"The {WORD}?", prompt_id(2)).answer(f"A {WORD}.")
    lines.prompt("After?", prompt_id(3)).answer("After.")
    start = 1772618400.0
    stage.project.switch_off(start + 1.5)
    assert stage.project.is_off
    stage.project.switch_off(start + 2.5)
    stage.project.switch_on(start + 3.5)
    stage.project.switch_on(start + 9)
    assert not stage.project.is_off
    stage.write(lines)
    for _ in range(2):
        stage.handle("Stop", late=True, prompt_id=prompt_id(3))
        Capture(stage.home, Settings()).import_file(stage.transcript, stage.project)
    assert [title for title, _ in stage.turns] == ["Before?", "After?"]
    assert WORD not in everything(stage)


def test_an_import_leaves_out_a_project_that_is_off(stage: Stage) -> None:
    stage.project.switch_off(0.0)
    stage.write(Lines().prompt(f"The {WORD}?", prompt_id(1)).answer(f"A {WORD}."))
    captured = Capture(stage.home, Settings()).import_file(stage.transcript, stage.project)
    assert (captured.turns, captured.left_out) == (0, 1)
    assert WORD not in everything(stage)
    stage.project.switch_on(1.0)
    assert Capture(stage.home, Settings()).import_file(stage.transcript, stage.project).turns == 1


def test_the_times_of_another_version_or_a_person_do_no_harm(tmp_path: Path) -> None:
    project = Project(str(tmp_path))
    directory = tmp_path / ".memkit"
    directory.mkdir()
    (directory / "off").touch()
    (directory / "off-times").write_text("x y\n1 2 3\n\n-1 nan\n10 20\n")
    project.switch_on(2e9)
    assert project.off_periods()[0] == (10, 20)
    assert len(project.off_periods()) == 2
