"""`memkit resume`: find a session by what was said, and resume it where it began."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from memkit.cli.screen import cells
from tests.cli.conftest import Run, lexical_memory
from tests.cli.fortnight import check_screen, fortnight
from tests.memory import Memory, make_memory

GATEWAY = "5e55000c-1111-4222-8333-444455556666"
LATE = "c0ffee00-1111-4222-8333-444455556666"


def write_transcript(directory: str, session: str, folder: str = "") -> Path:
    """A transcript of a session that began in `directory`."""
    claude = Path(os.environ["CLAUDE_CONFIG_DIR"], "projects", folder or directory.replace("/", "-"))
    claude.mkdir(parents=True, exist_ok=True)
    path = claude / f"{session}.jsonl"
    entry = {"type": "user", "uuid": "1", "sessionId": session, "cwd": directory, "message": {"content": "x"}}
    path.write_text(json.dumps(entry) + "\n")
    return path


@pytest.fixture
def past(tmp_path: Path) -> Memory:
    """A fortnight; Claude Code still has the transcript of one session."""
    memory = fortnight(tmp_path.resolve())
    place = Path(memory.project.root, "it's $(touch pwned)")
    place.mkdir()
    write_transcript(str(place), LATE, "any")
    day = memory.path("2026-11-20.md")
    day.write_text(day.read_text().replace("session:5e55000c ", f"session:{GATEWAY} "))
    return memory


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `claude` that writes down where it runs and with which arguments."""
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\npwd -P > {tmp_path}/ran\nprintf "%s\\n" "$@" >> {tmp_path}/ran\nexit 7\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return tmp_path / "ran"


@pytest.mark.parametrize("columns", [80, 120])
def test_screen(run: Run, past: Memory, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    write_transcript(past.project.root, GATEWAY)
    found = run(past, "resume", "does anything else use 7443, then document it")
    assert (found.status, found.errors) == (0, "")
    shown = found.output.replace(past.project.root, "/home/you/shop")
    assert max(map(cells, shown.splitlines())) <= columns
    assert "\x1b" not in shown
    check_screen(f"resume-{columns}", shown)


@pytest.mark.parametrize("words", [["rotate", "the", "vault", "keys"], ["c0ffee00"], [LATE], ["a0000006"]])
def test_the_command_is_safe_in_a_shell(run: Run, past: Memory, words: list[str], client: Path) -> None:
    found = run(past, "resume", *words, "--json").json
    assert found["session"] == LATE
    place = f"{past.project.root}/it's $(touch pwned)"
    assert found["directory"] == place
    assert shlex.split(found["command"]) == ["cd", place, "&&", "claude", "--resume", LATE]
    assert found["command"] in run(past, "resume", *words).output.splitlines()
    subprocess.run(["sh", "-c", found["command"]], check=False, cwd=past.project.root)
    assert client.read_text().splitlines() == [place, "--resume", LATE]
    assert not Path(past.project.root, "pwned").exists()


def test_go(spawn: Run, run: Run, past: Memory, client: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = spawn(past, "resume", "--go", "rotate vault keys")
    assert found.status == 7
    assert client.read_text().splitlines() == [f"{past.project.root}/it's $(touch pwned)", "--resume", LATE]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "there is no `claude` on PATH" in run(past, "resume", "--go", LATE).complaint
    Path(past.project.root, "it's $(touch pwned)").rmdir()
    assert "is gone" in run(past, "resume", "--go", LATE).complaint
    assert "no session matches" in run(past, "resume", "zeppelin").complaint


def test_claude_cannot_start_another(spawn: Run, past: Memory, client: Path) -> None:
    found = spawn(past, "resume", "--go", LATE, CLAUDECODE="1")
    assert "cannot start another" in found.complaint
    assert not client.exists()


def test_a_transcript_that_is_gone(run: Run, past: Memory) -> None:
    found = run(past, "resume", GATEWAY[:8])
    assert found.status == 0
    assert "cannot be resumed: Claude Code no longer has its transcript" in found.output
    assert "claude --resume" not in found.output
    value = run(past, "resume", "--json", GATEWAY[:8]).json
    assert (value["command"], value["directory"], value["others"]) == (None, None, [])
    assert "no longer has its transcript" in value["problem"]
    assert "no longer has its transcript" in run(past, "resume", "--go", GATEWAY[:8]).complaint


@pytest.mark.parametrize("cwd", ["", "relative", "/tmp/a\nb", "/tmp/a\x1b[2J", "/dev/null", "-x"])
def test_a_directory_that_is_none(run: Run, past: Memory, cwd: str) -> None:
    write_transcript(cwd, GATEWAY, "any")
    found = run(past, "resume", "--go", GATEWAY)
    assert found.complaint
    assert "\x1b" not in found.errors


def test_the_directory_that_its_folder_is_named_after(run: Run, past: Memory) -> None:
    path = write_transcript("/tmp", GATEWAY, past.project.root.replace("/", "-"))
    second = {"type": "user", "uuid": "2", "sessionId": GATEWAY, "cwd": past.project.root}
    path.write_text(path.read_text() + json.dumps({**second, "message": {"content": "x"}}) + "\n")
    folder = path.parent.rename(path.parent.with_name("".join(c if c.isalnum() else "-" for c in past.project.root)))
    assert folder.is_dir()
    assert run(past, "resume", "--json", GATEWAY).json["directory"] == past.project.root


@pytest.mark.parametrize(
    "session", ["--dangerously-skip-permissions", "x;touch${IFS}pwned", "../../x", "5e550001.jsonl", "agent-1"]
)
def test_an_id_that_a_memory_made_up(run: Run, tmp_path: Path, session: str, client: Path) -> None:
    text = f"# 2026-11-20\n\n## 09:00 Gateway <!-- session:{session} turn:a0000001 -->\n\n**Answered** A gateway.\n"
    memory = lexical_memory(tmp_path, {"2026-11-20.md": text})
    if "/" not in session:
        write_transcript(str(tmp_path), session)
    found = run(memory, "resume", "a0000001")
    assert "cannot be resumed" in found.output
    assert "claude --resume" not in found.output
    assert run(memory, "resume", "--go", "a0000001").status == 1
    assert not client.exists()


def test_all_projects(run: Run, past: Memory, tmp_path: Path) -> None:
    here = make_memory(tmp_path / "other", {"2026-11-01.md": "# x\n"}, home=past.home)
    run(past, "index")
    assert "no session matches" in run(here, "resume", "rotate the vault keys").complaint
    for words in ("rotate the vault keys", LATE[:8]):
        found = run(here, "resume", "--all-projects", words)
        assert "project: Rotate the vault keys" in found.output
        assert LATE in found.output


def test_a_session_of_claude_stays_in_its_project(spawn: Run, past: Memory, tmp_path: Path) -> None:
    """A memory that a repository brings can name any session of the user."""
    refused = spawn(past, "resume", "--all-projects", "x", CLAUDECODE="1")
    assert "can use only its own project's memory" in refused.complaint
    found = spawn(past, "resume", "c0ffee00", CLAUDECODE="1")
    assert "can use only its own project's memory" in found.output
    assert "touch pwned" not in found.output
