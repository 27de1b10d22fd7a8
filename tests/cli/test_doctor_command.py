"""`memkit doctor` and `memkit logs`."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memkit.archive.archive import SUFFIX
from memkit.cli.log_file import LOG_BYTES, LOG_FILES, log_to_file
from memkit.paths import Home
from tests.cli.conftest import Run, environment
from tests.memory import Memory


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(str(tmp_path / "logged"))
    Path(home.root).mkdir(mode=0o700)
    return home


@pytest.fixture(autouse=True)
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which Claude Code lists memkit."""
    listed = tmp_path / "claude" / "plugins" / "installed_plugins.json"
    listed.parent.mkdir(parents=True)
    listed.write_text('{"plugins": {"memkit@memkit": []}}')
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return listed


def test_findings_with_meaning_and_fix(run: Run, fresh: Memory) -> None:
    Path(fresh.home.root).chmod(0o755)
    found = run(fresh, "doctor")
    assert found.status == 0  # a warning is no error
    assert "warning: other users may read or change" in found.output
    assert "means: they can read or change your conversations with Claude" in found.output
    assert "fix:   `memkit doctor --fix`" in found.output
    fixed = run(fresh, "doctor", "--fix")
    assert "fixed: closed 1 file to other users" in fixed.output
    assert "fixed: 6 chunks of" in fixed.output
    assert fixed.output.endswith("No problems found.\n")
    agents, summaries, said = run(fresh, "doctor", "--fix").output.splitlines()
    assert agents == "agents: claude-code captured; codex, copilot, cursor, gemini, opencode not"
    assert summaries.startswith("summaries: off, because ")
    assert said == "No problems found."


def test_a_missing_plugin_is_named(run: Run, fresh: Memory, plugin: Path) -> None:
    run(fresh, "doctor", "--fix")
    plugin.unlink()
    found = run(fresh, "doctor").output
    assert "warning: memkit's plugin is not in Claude Code" in found and "`memkit setup`" in found


def test_an_error_that_remains(run: Run, fresh: Memory) -> None:
    os.umask(0o077)  # as the command line sets it; the fixture sets it back
    Path(fresh.home.root).chmod(0o700)
    fresh.sync()
    Path(fresh.home.config_file).write_text("[nonsense]\nkey = 1\n")
    Path(fresh.home.config_file).chmod(0o600)
    found = run(fresh, "doctor", "--fix", "--json")
    assert found.status == 1
    finding, left_out = found.json["findings"]
    assert left_out["code"] == "checks-left-out"
    assert finding["code"] == "unknown-setting"
    assert set(finding) == {"code", "level", "what", "meaning", "fix", "fixable"}
    assert found.json["fixed"] == []
    assert "1 error, 1 note.\n`memkit doctor --deep` also reads" in run(fresh, "doctor").output


def test_deep_checks_on_demand(run: Run, fresh: Memory) -> None:
    """A damaged archive is found when it is asked for, and before a fix."""
    os.umask(0o077)
    Path(fresh.home.root).chmod(0o700)
    fresh.sync()
    damaged = Path(fresh.home.archive, f"5e550001{SUFFIX}")
    damaged.parent.mkdir(mode=0o700, exist_ok=True)
    damaged.write_bytes(b"no archive")
    os.utime(damaged, (0, 0))
    for options, is_deep in (([], False), (["--deep"], True), (["--fix"], True)):
        found = run(fresh, "doctor", "--json", *options).json
        assert found["deep"] is is_deep
        assert ("archive-damaged" in [one["code"] for one in found["findings"]]) is is_deep


def test_the_log_is_bounded_and_private(home: Home) -> None:
    log_to_file(home)
    logger = logging.getLogger("memkit.test")
    for _ in range(60):
        logger.info("x" * 10_000_000 if _ == 30 else "y" * 190_000)
    for number in range(600):
        logger.info("%d %s", number, "z" * 19_000)
    files = sorted(Path(home.log).iterdir())
    assert len(files) == 1 + LOG_FILES
    assert all(file.stat().st_size <= LOG_BYTES + 30_000 for file in files)
    assert all(file.stat().st_mode & 0o077 == 0 for file in files)


def test_the_last_lines(run: Run, fresh: Memory) -> None:
    assert run(fresh, "logs").output == "The logs are empty.\n"
    Path(fresh.home.log).mkdir(exist_ok=True)
    Path(f"{fresh.home.log_file}.1").write_text("one\ntwo\n")
    Path(fresh.home.log_file).write_text("three\nfo\x1bur\n")
    Path(fresh.home.hook_log).write_text("a hook\n")
    assert run(fresh, "logs", "--lines", "3").output == (
        "==> hooks.log <==\na hook\n==> memkit.log <==\ntwo\nthree\nfo\ufffdur\n"
    )
    assert run(fresh, "logs", "-n", "1", "--json").json == {
        "hooks.log": ["a hook"],
        "memkit.log": ["fo\x1bur"],
    }
    assert "three" in run(fresh, "service", "logs").output
    assert run(fresh, "logs", "--follow", "--json").status == 2


def test_following(fresh: Memory) -> None:
    """New lines of a log that grows, is rotated, appears, or is emptied."""
    log = Path(fresh.home.log_file)
    log.parent.mkdir()
    log.write_text("before\n")
    following = subprocess.Popen(
        [sys.executable, "-u", "-m", "memkit", "logs", "--follow"], cwd=fresh.project.root,
        env=environment(fresh), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert following.stdout is not None
    try:
        assert [following.stdout.readline() for _ in range(2)] == ["==> memkit.log <==\n", "before\n"]

        def expect(text: str) -> None:
            assert following.stdout is not None
            assert following.stdout.readline() == text

        with log.open("a") as file:
            file.write("added\nhalf ")
        expect("memkit.log: added\n")
        with log.open("a") as file:
            file.write("a line\n")
        expect("memkit.log: half a line\n")
        os.replace(log, f"{log}.1")
        log.write_text("anew\n")
        expect("memkit.log: anew\n")
        Path(fresh.home.hook_log).write_text("a hook\n")
        expect("hooks.log: a hook\n")
        os.truncate(log, 0)
        log.write_text("x\n")
        expect("memkit.log: x\n")
    finally:
        following.terminate()
        following.wait()
        following.stdout.close()
