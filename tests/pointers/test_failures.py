"""Failures that are the same, how a turn got past one, and which commands worked."""

from __future__ import annotations

from pathlib import Path

import pytest

from memkit.archive.archive import Archive
from memkit.archive.turn import ArchivedTurn
from memkit.conversation.turn import Message, ToolCall, ToolUse
from memkit.journal.tool_lines import read_call, tool_line
from memkit.memory import Memory
from memkit.pointers.failures import error_met, failure_of, family, way_past
from tests.pointers.test_moments import ERROR, FILES, day, remember


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("pytest -q tests/x.py", "pytest"),
        ("cd /x/y && FOO=1 python3.12 -m pytest -q", "pytest"),
        ("sudo git push origin main", "git push"),
        ("npm run build", "npm run build"),
        ("LIBS=$(brew --prefix ssl)/lib A='b c' make all", "make all"),
        ("uv run --frozen pytest", "pytest"),
        ("/usr/bin/python3 scripts/load.py --all", "python load.py"),
        ("./deploy.sh staging", "deploy.sh staging"),
        ("", ""),
    ],
)
def test_the_family_of_a_command(command: str, expected: str) -> None:
    assert family(command) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ERROR: relation 'users' missing at 0x7ff1 in /a/b/seed.sql:12", 'ERROR: relation "users" missing at 0x1234abcd in /c/x.sql:99'),
        ("Error: release 'loam-one' failed and was rolled back: timed out while it waited for the condition", "Error: release 'loam-two' failed and was rolled back: timed out while it waited for the condition"),
        ("An error occurred (TokenGone) when calling the ListHats operation: The token that you gave is gone", "An error occurred (TokenGone) when calling the PutHat operation: The token that you gave is gone"),
        ("error: no such command: `lint`", "error: no such command: `lint`"),
        ('migrate: relation "hats" already exists in it', 'migrate: relation "caps" already exists in it'),
        ("pod 'ingest-7d9f' exceeded its quota", "pod 'ingest-81ab' exceeded its quota"),
        ("Error: Cannot process file src/Results.tsx: Support for the experimental syntax …", "Error: Cannot process file src/a/Profile.tsx: Support for the experimental syntax 'decorators' isn't enabled"),
        ("ERROR [etl.loader] The partition of the snapshot is locked by another …", "load-2  | FATAL: The partition of the snapshot is locked by another writer; retry"),
        ("Error: sync failed: An error occurred while it looked for plugins: listed in plugins.toml, but absent from vendor: geo", "FATA[0003] sync failed: Error: listed in plugins.toml, but absent from vendor: maps"),
        ("ERROR tests/a.py::test_hold - ConnectionRefusedError: [Errno …", "ERROR tests/b/c.py::test_other_one - ConnectionRefusedError: [Errno 111] Connect call failed"),
    ],
)
def test_numbers_paths_hashes_and_quotes_do_not_tell_failures_apart(one: str, other: str) -> None:
    assert failure_of(one).matches(failure_of(other))
    assert failure_of(other).matches(failure_of(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ERROR: relation 'users' missing in /c/seed.sql:9", "ERROR: relation 'orders' missing in /c/seed.sql:9"),
        ("(psycopg.errors.UndefinedTable) relation 'users' does not exist or is hidden", "(psycopg.errors.UndefinedTable) relation 'orders' does not exist or is hidden"),
        ("error: unexpected argument --stat found in the command line", "error: unexpected argument --name found in the command line"),
        ("error TS2339: the type of this argument is wrong", "error TS2322: the type of this argument is wrong"),
        ("ERROR: Could not find a version that satisfies the requirement foo==1.2", "ERROR: Could not find a version that satisfies the requirement bar==1.2"),
        ("Error: Cannot find module '/a/one.js'", "Error: Cannot find module '/a/two.js'"),
        ("viewer: error while loading shared libraries: libGLU.so.1: cannot open shared object file", "viewer: error while loading shared libraries: libxcb.so.1: cannot open shared object file"),
        ("An error occurred (AccessDenied) when calling the GetObject operation: denied", "An error occurred (AccessDenied) when calling the CopyObject operation: denied"),
        ("Error response from the daemon of the cluster: the port is taken", "Error response from the daemon of the cluster: the name is reserved by another"),
        ("An error occurred (404) when calling the ListHats operation: gone", "An error occurred (TokenGone) when calling the ListHats operation: gone"),
        ("OSError: Cannot read the archive file (wrong magic number, 12)", "OSError: Cannot read the archive file (disk quota: 4096)"),
        ("Error: Cannot find module 'sharp'", "Error: Cannot find package 'yaml' imported"),
    ],
)
def test_names_codes_and_options_tell_failures_apart(one: str, other: str) -> None:
    assert not failure_of(one).matches(failure_of(other))


@pytest.mark.parametrize(
    "reason",
    ["1 failed, 2 passed", "Exit code 1", "assert 1 == 2", "ls: /a/b: No such file or directory", "[lint:go] ERROR task failed", "Sibling tool call errored", "panic: runtime error: index out of range [5]"],
)
def test_a_message_without_a_cause_tells_nothing(reason: str) -> None:
    assert not failure_of(reason).matches(failure_of(reason))


def test_the_last_exception_of_a_chain_identifies_the_failure() -> None:
    error = f"Exit code 1\nE   asyncpg.InterfaceError: lost\nE   {ERROR}\n1 failed, 2 passed in 0.5s"
    assert error_met(error, str).reason == f"E {ERROR}"
    lines = "Exit code 1\nFAILURE: Build failed with an exception.\n> Broken class file of major version 70"
    assert error_met(lines, str).matches(failure_of("parse error in phase 'check': Broken class file of major version 69"))
    assert not error_met(lines, str).matches(failure_of("FAILURE: Build failed with an exception."))
    chain = "Exit code 1\nError: no reply of b.toml\n\nCaused by:\n    0: in a link\n    1: the socket is gone\n"
    assert error_met(chain, str).reason == "1: the socket is gone"
    assert error_met("Exit code 1\nweb install$ build\n│ Error: no compiler here\nELIFECYCLE Command failed", str).reason == "│ Error: no compiler here"
    assert error_met("Exit code 1\nError: P12\nCannot find the hats. To get them, run:\nmake hats", str).reason == "Cannot find the hats. To get them, run:"
    wrapped = "Exit code 1\n[lint] $ golangci-lint run\nmain.go:3: error: no such field\n[lint] ERROR task failed"
    assert error_met(wrapped, str).reason == "main.go:3: error: no such field"


YAML = "Bash `pytest -q` → failed: ModuleNotFoundError: No module named 'yaml'"


def told(*lines: str, turns: str = "") -> str:
    way = way_past([read_call(line) for line in lines], failure_of(ERROR).matches, turns)
    return way.text if way else ""


def test_the_steps_before_the_call_that_passed() -> None:
    assert told(YAML, "Read a.py", "Bash `cd x && ls`", "Bash `jq . a.json`", "Bash `sed -i s/a/b/ x`", "Edit a.py ×2", "Bash `pytest -q` → 2 passed") == (
        "`pytest -q` failed: ModuleNotFoundError: No module named 'yaml'; "
        "it passed after `sed -i s/a/b/ x`, then Edit a.py"
    )
    assert told(YAML, "Bash `cd x && pytest -q` → 2 passed").endswith("yaml'; `cd x && pytest -q` passed")
    # Another command, after an edit in the same turn; the same command rather than one of its kind.
    lines = YAML, "Edit a.py", "Bash `git commit -m x`", "Bash `make run` → up"
    assert told(*lines, turns="aaaa").endswith("`make run` passed after Edit a.py, then `git commit -m x`")
    assert "not solved" in told(*lines, turns="aaab")
    lines = YAML, "Bash `pytest --version` → 8", "Edit a.py", "Bash `pytest -q` → 2 passed"
    assert told(*lines, turns="aaaa").endswith("it passed after `pytest --version`, then Edit a.py")
    # The command in a chain; without an edit, the next one of the turn that does not look.
    assert told(YAML, "Bash `make deps`", "Bash `. venv/bin/activate && pytest -q` → 2 passed").endswith("`. venv/bin/activate && pytest -q` passed after `make deps`")
    lines = YAML, "Bash `docker ps -a`", "Bash `make deps`", "Bash `make docs`"
    assert told(*lines, turns="aaaa").endswith("; `make deps` passed")
    assert "not solved" in told(*lines, turns="abbb")
    # What was run after a failure that came back did not help.
    assert told(YAML, "Edit a.py", YAML, "Edit b.py", "Bash `pytest -q` → 2 passed").endswith("it passed after Edit b.py")


@pytest.mark.parametrize(
    "later",
    ["Bash `pytest -q` → failed: other", "Bash `pytest | tail` → 1 failed", "Bash `pytest | tail` → ImportError: x", "Bash `make`", "Bash `pytest -q` → no result"],
)
def test_a_failure_that_was_not_solved(later: str) -> None:
    assert "not solved" in told(YAML, "Edit a.py", later)
    assert told("Bash `pytest -q` → 2 passed", YAML).endswith("failed the same way: ModuleNotFoundError: No module named 'yaml'; not solved")
    assert told(YAML, "Edit a.py").endswith("not solved (then Edit a.py; not run again)")
    assert told("Bash `pytest -q` → 2 passed", "Bash `make` → failed: other") == ""


def test_fixes_are_newest_first_and_unsolved_ones_last(tmp_path: Path) -> None:
    files = {**FILES, "2026-11-21.md": day("2026-11-21", "5e550009", ("aaaa0009", YAML, "No idea."))}
    memory = remember(tmp_path, files)
    found = Memory(memory.project, home=memory.home).fix(f"Exit code 1\n{ERROR}")
    assert [(one.date, one.session, one.id, one.passed) for one in found] == [
        ("2026-11-20", "5e550003", "aaaa0003", "pytest -q"),
        ("2026-11-18", "5e550001", "aaaa0001", "pytest -q"),
        ("2026-11-21", "5e550009", "aaaa0009", ""),
    ]
    assert found[0].steps == ["pip install pyyaml", "Edit deploy/load.py"]
    assert Memory(memory.project, home=memory.home).fix("1 failed") == []


def test_the_commands_of_a_tool_that_worked(tmp_path: Path) -> None:
    long = f"npx playwright test {'--project=webkit ' * 9}--last"
    calls = [YAML, "Bash `uv run pytest -q` → 2 passed", f"{tool_line(ToolCall('Bash', {'command': long}), (), str)} → 3 passed", "Bash `grep pytest a` → a", "Bash `pip install pytest` → done"]
    memory = remember(tmp_path, {"2026-11-21.md": day("2026-11-21", "5e550009", ("aaaa0009", "\n- ".join(calls), "Done."))})
    opened = Memory(memory.project, home=memory.home)
    assert [(one.command, one.times, one.date, one.id) for one in opened.how("pytest")] == [("uv run pytest -q", 1, "2026-11-21", "aaaa0009")]
    assert [one.command for one in opened.how("pip")] == ["pip install pytest"]
    assert opened.how("playwright")[0].command.endswith("…")
    used = ToolUse("Bash", {"command": long})
    Archive(memory.home).append("5e550009", [ArchivedTurn("aaaa0009", (Message("assistant", None, "", (used,), "aaaa0009"),))])
    assert opened.how("playwright")[0].command == long
