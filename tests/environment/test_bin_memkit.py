"""Running memkit in an existing environment: arguments, exit codes, signals, isolation."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

ODD_ARGUMENTS = ["two words", "it's", 'a "b"', "$(x) `y` \\", "naïve 記憶", "", "-I", "--", "\n"]


def report(done: subprocess.CompletedProcess[str]) -> dict:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_arguments_variables_streams_and_ends_pass_through(stand_in):
    """`bin/` of a plugin that is on is on the PATH of its user."""
    assert {path.name for path in (REPOSITORY / "bin").iterdir()} == {"memkit", "memkit.cmd"}
    said = report(stand_in.run(*ODD_ARGUMENTS, b"caf\xe9", MEMKIT_PYTHON=sys.executable))
    assert [a.encode("latin-1").decode() for a in said["arguments"][:-1]] == ODD_ARGUMENTS
    assert said["arguments"][-1] == "caf\xe9"
    given = stand_in.variables(MEMKIT_PYTHON=sys.executable)
    for variables in (given, said["variables"]):
        variables.pop("LC_CTYPE", None)  # Python itself sets it where the locale is C
    assert said["variables"] == given
    assert said["prefix"] == sys.prefix
    assert not stand_in.home.exists()  # a given interpreter needs no environment
    for words, status in ((("exit", "7"), 7), (("die", str(int(signal.SIGTERM))), -signal.SIGTERM)):
        assert stand_in.run(*words, MEMKIT_PYTHON=sys.executable).returncode == status
    main = stand_in.root / "memkit" / "cli" / "__init__.py"
    main.write_text("import sys\ndef main():\n    sys.stdout.write(sys.stdin.read().upper())\n")
    command = [sys.executable, stand_in.script]
    done = subprocess.run(command, input="text", stdout=subprocess.PIPE, text=True, env=given)
    assert done.stdout == "TEXT"


def test_the_package_beside_the_script_is_used_through_a_link(stand_in, tmp_path):
    link = tmp_path / "elsewhere" / "memkit"
    link.parent.mkdir()
    link.symlink_to(stand_in.script)
    environment = stand_in.variables(MEMKIT_PYTHON=sys.executable)
    done = subprocess.run([sys.executable, link], stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=environment)
    path = json.loads(done.stdout)["path"]
    assert path[0] == str(stand_in.root)
    assert str(stand_in.script.parent) not in path


def test_foreign_packages_stay_out_of_memkits_environment(stand_in, tmp_path):
    stand_in.add_fast_tool()
    said = report(stand_in.run(PYTHONPATH=str(tmp_path)))
    assert said["isolated"]
    assert str(tmp_path) not in said["path"]
    assert Path(said["prefix"]).parent == stand_in.home / "env"


@pytest.mark.parametrize("kind", ["absent", "a directory", "not executable", "no program"])
def test_a_given_interpreter_that_cannot_be_run_is_named(stand_in, tmp_path, kind):
    given = tmp_path / "python"
    if kind == "a directory":
        given.mkdir()
    elif kind != "absent":
        given.write_bytes(b"\0\1\2")
        given.chmod(0o600 if kind == "not executable" else 0o700)
    done = stand_in.run(MEMKIT_PYTHON=str(given))
    assert done.returncode == 1
    assert done.stderr.startswith(f"memkit cannot run {given} (")
    assert "MEMKIT_PYTHON" in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.count("\n") == 1


def test_what_is_missing_or_damaged_is_one_line(stand_in):
    (stand_in.root / "memkit" / "cli" / "__init__.py").write_text("import not_installed_anywhere\n")
    done = stand_in.run(MEMKIT_PYTHON=sys.executable)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "lacks the module not_installed_anywhere" in done.stderr and sys.prefix in done.stderr
    (stand_in.root / "pyproject.toml").write_text("[project]\ndependencies = [\n  oops\n")
    done = stand_in.run()
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "pyproject.toml, line 3" in done.stderr
    assert os.listdir(stand_in.root.parent).count("home") == 0
