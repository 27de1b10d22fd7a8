"""The first use builds the environment once and completely; if it is stopped, nothing remains."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess

import pytest

from memkit import environment
from memkit.ipc import spool
from memkit.paths import Home
from tests.ci import only_in_ci


@only_in_ci
def test_the_first_use_makes_an_environment_with_pip_and_the_second_uses_it(stand_in):
    first = stand_in.run("import", "memkit_stand_in_dependency")
    assert first.returncode == 0, first.stderr
    # A slow machine gets a line every ten seconds.
    begun, ready = (line for line in first.stderr.splitlines() if "still building" not in line)
    assert begun.startswith("memkit: building its Python environment in")
    assert ready.startswith("memkit: the environment is ready")
    (name,) = stand_in.environments
    assert json.loads(first.stdout)["prefix"] == str(stand_in.home / "env" / name)
    second = stand_in.run("import", "memkit_stand_in_dependency")
    assert (second.returncode, second.stderr) == (0, "")
    log = stand_in.home / "log" / "environment.log"
    assert "Successfully installed memkit" in log.read_text()
    # With its dependencies, pip would look for `uvicorn[standard]` beyond the lock, and refuse a newer release.
    assert "--no-deps --require-hashes --only-binary :all:" in log.read_text()
    script = stand_in.home / "env" / name / "bin" / "memkit_stand_in_dependency"
    assert subprocess.run([script], capture_output=True, check=True).stdout == b"it runs\n"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    for directory in (stand_in.home, stand_in.home / "env", stand_in.home / "log"):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_a_closed_stderr_does_not_stop_the_build(stand_in):
    stand_in.add_fast_tool()
    process = stand_in.start_held()
    process.stderr.close()
    stand_in.release()
    assert process.wait(60) == 0
    assert len(stand_in.environments) == 1


def test_a_second_first_use_waits_and_uses_the_same_environment(stand_in):
    stand_in.add_fast_tool()
    first = stand_in.start_held()
    second = stand_in.start("x")
    assert "waiting" in second.stderr.readline()
    stand_in.release()
    assert first.wait(60) == second.wait(60) == 0
    assert len(stand_in.builds) == len(stand_in.environments) == 1
    assert json.load(first.stdout)["prefix"] == json.load(second.stdout)["prefix"]


def in_a_hurry(stand_in):
    """Let commands of a session wait a moment only, and report often."""
    script = stand_in.script.read_text()
    stand_in.script.write_text(script.replace("SESSION_SECONDS = 45.0", "SESSION_SECONDS = 0.5"))
    build = stand_in.root / "memkit" / "environment" / "build.py"
    build.write_text(build.read_text().replace("SIGN_SECONDS = 10.0", "SIGN_SECONDS = 0.1"))


def test_the_build_shows_signs_of_life(stand_in):
    in_a_hurry(stand_in)
    stand_in.add_fast_tool()
    first = stand_in.start_held()
    second = stand_in.start("x")
    assert "waiting for another process" in second.stderr.readline()
    for process in (first, second):
        assert any("still building the environment (" in line for line in process.stderr)
    stand_in.release()
    assert first.wait(60) == second.wait(60) == 0


def test_a_session_waits_a_while_and_hears_what_is_missing(stand_in):
    """Claude Code ends a command after two minutes, and nobody saw a line of it."""
    in_a_hurry(stand_in)
    stand_in.add_fast_tool()
    first = stand_in.start_held()
    for number in range(2):
        spool.put(Home(str(stand_in.home)), {"event": "Stop", "session": f"s{number}"})
    done = stand_in.run("recall", "--stdin", CLAUDECODE="1")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == (
        "memkit is still building its Python environment (once; about a minute): it cannot search or write yet. "
        "2 events wait for it. Run the same command again in a minute."
    )
    stand_in.release()
    assert first.wait(60) == 0
    assert stand_in.run("recall", CLAUDECODE="1").returncode == 0
    assert environment.last_failure(str(stand_in.home)) is None


def test_a_waiting_process_reports_the_failure_of_the_first(stand_in):
    stand_in.add_fast_tool()
    first = stand_in.start_held(TEST_FAILURE="no such luck")
    second = stand_in.start("x")
    assert "waiting" in second.stderr.readline()
    stand_in.release()
    assert first.wait(60) == second.wait(60) == 1
    assert first.stderr.read().splitlines()[-1] == second.stderr.read().splitlines()[-1]
    assert len(stand_in.builds) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing_behind(stand_in, number):
    stand_in.add_fast_tool()
    process = stand_in.start_held()
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "Traceback" not in errors
    assert stand_in.environments == []
    with pytest.raises(ProcessLookupError):
        os.kill(stand_in.builds[0], 0)


@pytest.mark.parametrize("is_updated", [False, True])
def test_the_next_use_removes_what_a_killed_one_left(stand_in, is_updated):
    stand_in.add_fast_tool()
    killed = stand_in.start_held()
    killed.kill()
    killed.wait()
    marker, incomplete = stand_in.environments
    assert marker == f".building-{incomplete}"
    assert not environment.is_usable(str(stand_in.home / "env" / incomplete))
    if is_updated:
        stand_in.depend_on(stand_in.wheel("memkit_newer_dependency"))
    next_use = stand_in.start("x")
    assert "waiting" in next_use.stderr.readline()  # for the orphan, which still writes
    stand_in.release()
    assert next_use.wait(60) == 0
    (name,) = stand_in.environments
    assert (name != incomplete) == is_updated
    assert len(stand_in.builds) == 2


def test_an_environment_whose_python_is_gone_is_rebuilt(stand_in):
    stand_in.add_fast_tool()
    assert stand_in.run().returncode == 0
    (name,) = stand_in.environments
    python = stand_in.home / "env" / name / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere/python3.12")
    assert stand_in.run().returncode == 0
    assert stand_in.environments == [name]
    assert len(stand_in.builds) == 2


def test_older_environments_are_removed_except_the_youngest(stand_in):
    stand_in.add_fast_tool()
    for age, name in enumerate(["youngest", "older", "oldest", "kind-older"]):
        directory = stand_in.home / "env" / name
        directory.mkdir(parents=True)
        os.utime(directory, (1e9 - age, 1e9 - age))
    assert stand_in.run().returncode == 0
    made = os.path.basename(environment.environment_directory("", str(stand_in.root)))
    assert stand_in.environments == sorted([made, "youngest", "kind-older"])


def test_a_success_clears_the_recorded_failure(stand_in):
    stand_in.add_fast_tool()
    assert stand_in.run(TEST_FAILURE="no such luck").returncode == 1
    assert "no such luck" in environment.last_failure(str(stand_in.home)).message
    assert stand_in.run().returncode == 0
    assert environment.last_failure(str(stand_in.home)) is None
