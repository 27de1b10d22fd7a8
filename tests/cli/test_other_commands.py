"""Commands that need few tests here: audit, jobs, demo, fix, how, statusline, setup, and the examples of the manual."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

import pytest

from memkit import environment
from memkit.capture.sessions import Session, Sessions
from memkit.environment import build
from memkit.environment.extras import EXTRAS
from memkit.environment.install import EnvironmentBuildError
from memkit.files import MOST_BYTES
from memkit.mcp import clients
from memkit.service.jobs import JobBook
from tests.cli.conftest import REPOSITORY, Run, holders, lexical_memory
from tests.memory import DAYS, Memory
from tests.pointers.test_moments import ERROR, remember

# `memkit audit`: its output and exit status.


KEY = "ghp" + "_" + "a1B2c3D4e5" * 4


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """Two days, one of them with a key, indexed without a model."""
    day = DAYS["2026-11-18.md"].replace("443 is taken.", f"443 is taken, the key is {KEY}.")
    return lexical_memory(tmp_path, {"2026-11-18.md": day, "2026-11-19.md": DAYS["2026-11-19.md"]})


def test_a_found_secret_is_fixed(run: Run, memory: Memory) -> None:
    run(memory, "index")
    assert holders(KEY, memory.home.root)
    path = memory.path("2026-11-18.md")
    found = run(memory, "audit")
    assert found.status == 1
    assert f"found  github-token  journal  {path}:7\n" in found.output
    assert "index" in found.output
    assert found.output.endswith("2 secrets found; `memkit audit --fix` redacts them.\n")
    fixed = run(memory, "audit", "--fix")
    assert fixed.status == 0
    assert fixed.output.endswith("2 secrets redacted.\n")
    assert KEY not in found.output + found.errors + fixed.output + fixed.errors
    assert "443 is taken, the key is [redacted:github-token]." in path.read_text()
    assert holders(KEY, memory.home.root) == []
    again = run(memory, "audit")
    assert (again.status, again.output) == (0, "Nothing found.\n")
    memory.write("notes.md", f"# Notes\n\n{KEY}\n")
    fixed = run(memory, "audit", "--fix", "--json")
    assert (fixed.status, fixed.json["left"]) == (1, 2)  # also in the index
    (left,) = (one for one in fixed.json["findings"] if one["where"] == "markdown")
    place = str(memory.path("notes.md"))
    assert left == {"where": "markdown", "place": place, "line": 3, "kind": "github-token", "fixed": False}
    assert KEY not in fixed.output


def test_a_file_that_cannot_be_read_is_reported(run: Run, memory: Memory) -> None:
    memory.write("2026-11-20.md", "")
    os.truncate(memory.path("2026-11-20.md"), MOST_BYTES + 1)
    found = run(memory, "audit")
    assert found.status == 1
    assert "cannot read" in found.errors
    assert "2026-11-20.md" in found.errors
    assert "journal" in found.output


# `memkit jobs`.


def test_list_and_run(run: Run, fresh: Memory) -> None:
    listed = run(fresh, "jobs")
    assert "reconcile" in listed.output
    assert "never" in listed.output
    done = run(fresh, "jobs", "run", "index", "--json").json
    assert done["index"]["result"] == "0 projects up to date"  # none has an index yet
    run(fresh, "index")
    done = run(fresh, "jobs", "run", "index", "--json").json
    assert done["index"]["result"] == "1 project up to date"
    assert done["index"]["next"] == done["index"]["last"] + done["index"]["every_seconds"]
    listed = run(fresh, "jobs").output
    assert "\n    1 project up to date\n" in listed
    assert all(len(line) <= 80 for line in listed.splitlines())


def test_show(run: Run, fresh: Memory) -> None:
    assert "    last run  never\n" in run(fresh, "jobs", "show", "index").output
    run(fresh, "jobs", "run", "index")
    shown = run(fresh, "jobs", "show", "index").output
    assert shown.startswith("index: daily: update the index of every project\n")
    assert re.search(r"    last run  \d{4}-.*, took \d+\.\d s: 0 projects up to date\n    next run  \d{4}-", shown)
    JobBook(fresh.home).update("index", failed=True, result="no room")
    assert "failed: no room" in run(fresh, "jobs", "show", "index").output
    assert run(fresh, "jobs", "show", "index", "--json").json["failed"] is True
    assert run(fresh, "config", "set", "jobs.index", "daily").status == 1
    run(fresh, "config", "set", "jobs.index", "off")
    assert "next run  off\n" in run(fresh, "jobs", "show", "index").output
    assert "there is no job" in run(fresh, "jobs", "run", "nothing").complaint
    for words in ("run", "list index"):
        assert run(fresh, "jobs", *words.split()).status == 2
    assert run(fresh, "work").status == 0  # runs what is due
    states = run(fresh, "jobs", "--json").json
    assert all(state["last"] > 0 for name, state in states.items() if name != "index")


# `memkit demo`.


def test_demo_goes_from_a_session_to_the_original_exchange(
    run: Run, fresh: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    result = run(fresh, "demo", "--json").json
    assert result["day_file"].endswith(".md")
    assert "7443" in result["section"]["content"]
    assert any("7443" in message["text"] for message in result["messages"])
    assert result["degraded"] is False
    assert not list(tmp_path.glob("memkit-demo-*"))
    text = run(fresh, "demo").output
    assert "memkit expand" in text and "which is now deleted" in text
    assert not Path(fresh.home.index).exists()


# `memkit fix` and `memkit how`.


def test_what_was_run_after_an_error(tmp_path: Path, run: Run) -> None:
    memory = remember(tmp_path)
    found = run(memory, "fix", "--json", ERROR).json["fixes"]
    assert [(one["date"], one["session"], one["passed"]) for one in found] == [
        ("2026-11-20", "5e550003", "pytest -q"),
        ("2026-11-18", "5e550001", "pytest -q"),
    ]
    assert run(memory, "fix", "-n", "1", *ERROR.split()).output == (
        "2026-11-20  session 5e550003  aaaa0003\n  pytest -q\n    failed: ModuleNotFoundError: No module named 'yaml'\n"
        "    then: pip install pyyaml\n    then: Edit deploy/load.py\n    passed: pytest -q\n"
    )
    assert run(memory, "fix", "1 failed").output.startswith("No command failed with this message")


def test_the_commands_of_a_tool(tmp_path: Path, run: Run) -> None:
    memory = remember(tmp_path)
    assert run(memory, "how", "pytest").output == "pytest -q\n  2 times, last on 2026-11-20  aaaa0004\n"
    assert run(memory, "how", "--json", "pip").json["commands"][0]["times"] == 2
    assert run(memory, "how", "cargo").output == "No command with cargo has worked here.\n"


# `memkit setup --with`. The installation itself is in tests/environment/test_extras.py.


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """What is installed into memkit's own environment, which this Python is."""
    found: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(environment, "is_own", lambda home: True)
    monkeypatch.setattr(build, "add_extras", lambda home, extras: found.append((home, extras)))
    return found


def test_extras_are_installed(run: Run, fresh: Memory, added: list[tuple[str, list[str]]]) -> None:
    done = run(fresh, "setup", "--with", "topics", "--with", "google", "--with", "topics", "--yes")
    assert (done.status, done.output) == (0, "Installed google, topics.\n")
    assert run(fresh, "setup", "--with", "mcp", "--yes", "--json").json == {"installed": ["mcp"]}
    assert added == [(fresh.home.root, ["google", "topics"]), (fresh.home.root, ["mcp"])]


def test_nothing_is_installed_unasked(
    run: Run, fresh: Memory, added: list[tuple[str, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = run(fresh, "setup", "--with", "topics").complaint
    assert said == "memkit: no terminal to ask on; run it, or agree with --yes, in a terminal of your own"
    assert run(fresh, "setup", "--with", "requests", "--yes").status == 2
    assert run(fresh, "setup", "--with", "mcp", "--mcp", "codex", "--yes").status == 2
    assert added == []
    def fail(home: str, extras: list[str]) -> None:
        raise EnvironmentBuildError("no network")

    monkeypatch.setattr(build, "add_extras", fail)
    assert run(fresh, "setup", "--with", "topics", "--yes").complaint == "memkit: no network"
    monkeypatch.setattr(environment, "is_own", lambda home: False)
    said = run(fresh, "setup", "--with", "topics", "--yes").complaint
    assert f"does not manage its Python environment {sys.prefix}; run `" in said
    assert f"install '{EXTRAS['topics'][0]}'`" in said


def test_codex_gets_what_is_shown(
    run: Run, fresh: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.setattr(clients, "own_command", lambda: ["/opt/memkit"])
    shown = run(fresh, "setup", "--agent", "codex").output
    assert "Not written: there is no terminal to ask on." in shown
    assert run(fresh, "status", "--json").json["codex"] is None
    assert run(fresh, "setup", "--agent", "codex", "--yes").status == 0
    for path, content in run(fresh, "setup", "--agent", "codex", "--json").json["files"].items():
        text = Path(path).read_text()
        assert text.rstrip() in shown and content == (json.loads(text) if path.endswith(".json") else text)
    assert "codex      memkit's hooks are set up; none has run yet" in run(fresh, "status").output
    assert "claude-code, codex captured" in run(fresh, "status").output
    Sessions(fresh.home).save(Session("x@codex", project="/x", last_event=1_772_618_400.0))
    assert run(fresh, "status", "--json").json["codex"] == {"last_hook": 1_772_618_400.0}


# The examples of docs/commands.md, run as they stand there.


MANUAL = Path(REPOSITORY, "docs", "commands.md").read_text()
EXAMPLES = [
    line for block in re.findall(r"```sh\n(.*?)```", MANUAL, re.DOTALL) for line in block.splitlines()
]


def test_the_examples(run: Run, fresh: Memory) -> None:
    names: dict[str, str] = {}
    outputs = {}
    for example in EXAMPLES:
        program, *arguments = shlex.split(example, comments=True)
        assert program == "memkit"
        done = run(fresh, *(names.get(word, word) for word in arguments))
        assert done.status == 0, (example, done.errors)
        outputs[example.partition("#")[0].strip()] = done.output
        if "--json" in arguments:
            assert isinstance(done.json, dict)
        if "$ID" not in names:
            names["$ID"] = run(fresh, "search", "--json", *arguments[1:]).json["results"][0]["id"]
        if found := re.search(r"[0-9a-f]{8}", done.output) if "--tag" in arguments else None:
            names["$NOTE"] = found[0]
    assert "7443" in outputs["memkit search which port does the staging gateway use"]
    assert "7443" in outputs['memkit expand "$ID"']
    assert "5e550002" in outputs["memkit sessions --since 2026-11-19"]
    assert "Staging moves to port 7444." in outputs['memkit forget "$NOTE" --dry-run']
    assert '"mode":"lexical"' in outputs["memkit --set search.mode=lexical search --json staging gateway"].replace(" ", "")
