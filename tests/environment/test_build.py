"""The first use builds the environment once and completely; if that fails or is stopped, one line says so and nothing remains."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from memkit import environment
from memkit.environment.build import make_environment
from memkit.environment.install import EnvironmentBuildError
from memkit.ipc import spool
from memkit.paths import Home
from tests.ci import only_in_ci
from tests.environment.conftest import StandIn


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


def test_a_session_waits_a_while_and_hears_what_is_missing(stand_in):
    """Claude Code ends a command after two minutes, and nobody saw a line of it."""
    script = stand_in.script.read_text()
    stand_in.script.write_text(script.replace("SESSION_SECONDS = 45.0", "SESSION_SECONDS = 0.5"))
    build = stand_in.root / "memkit" / "environment" / "build.py"
    build.write_text(build.read_text().replace("SIGN_SECONDS = 10.0", "SIGN_SECONDS = 0.1"))
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
    second = stand_in.start("x")
    assert "waiting for another process" in second.stderr.readline()
    for process in (first, second):
        assert any("still building the environment (" in line for line in process.stderr)
    stand_in.release()
    assert first.wait(60) == second.wait(60) == 0
    assert len(stand_in.builds) == len(stand_in.environments) == 1
    assert json.load(first.stdout)["prefix"] == json.load(second.stdout)["prefix"]
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
    assert "no such luck" in environment.last_failure(str(stand_in.home)).message
    process = stand_in.start_held()
    process.stderr.close()  # does not stop the build
    stand_in.release()
    assert process.wait(60) == 0
    assert environment.last_failure(str(stand_in.home)) is None


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


# A failed build: one line with the reason, and no remains.


def assert_refused(stand_in, done, *words: str) -> None:
    """Assert that the last line has `words`, the others are announcements, and nothing is left."""
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert all(line.startswith("memkit: ") for line in lines[:-1]), done.stderr
    for word in words:
        assert word in lines[-1]
    failure = environment.last_failure(str(stand_in.home))
    assert failure is not None
    assert failure.message == lines[-1]
    assert stand_in.environments == ["failed.json"]


def test_every_python_is_too_old(stand_in):
    # A version manager's launcher that finds no such version, and one that is no program at all.
    stand_in.add_program("python3.13", "#!/bin/sh\nexit 127\n")
    stand_in.add_program("python3.12", "nothing to run\n")
    stand_in.run_by_python("3 9 6 1")
    done = stand_in.run()
    assert_refused(stand_in, done, "needs Python 3.10 to 3.14; found 3.9.6 (", "MEMKIT_PYTHON")
    stand_in.run_by_python("3 11 2 0")  # without venv
    done = stand_in.run()
    assert_refused(stand_in, done, "cannot make one: install the package python3.11-venv")
    stand_in.add_fast_tool()  # and uv, where pip has the index, but cannot run
    assert stand_in.run(PIP_INDEX_URL="http://127.0.0.1:9/").returncode == 0


@pytest.mark.parametrize("has_newer", [True, False])
def test_a_newer_python_on_path_is_used_instead_or_uv_brings_one(stand_in, has_newer):
    stand_in.add_fast_tool()
    newer = stand_in.path / "python3.12"
    if has_newer:
        newer.symlink_to(sys.executable)
    stand_in.run_by_python("3 9 6 1")
    assert stand_in.run().returncode == 0
    log = (stand_in.home / "log" / "environment.log").read_text()
    assert f"uv venv --no-project --python {newer if has_newer else '>=3.10,<3.15'} " in log


@only_in_ci
def test_a_package_that_does_not_exist_is_named(stand_in):
    stand_in.depend_on("memkit-no-such-package")
    done = stand_in.run(PIP_NO_INDEX="1")
    assert_refused(stand_in, done, "No matching distribution found for memkit-no-such-package")


@only_in_ci
def test_pip_is_used_where_it_has_settings_and_an_unreachable_index_is_reported(stand_in, tmp_path):
    stand_in.add_fast_tool()
    stand_in.depend_on("memkit-no-such-package")
    settings = tmp_path / ".config" / "pip" / "pip.conf"
    settings.parent.mkdir(parents=True)
    settings.write_text("[global]\nindex-url = http://127.0.0.1:9/simple\n")
    done = stand_in.run(HOME=str(tmp_path), PIP_CONFIG_FILE="")
    assert_refused(stand_in, done, "check the network and the package index", "environment.log)")
    assert "127.0.0.1" in (stand_in.home / "log" / "environment.log").read_text()
    assert not stand_in.counter.exists()


def test_a_home_that_cannot_be_made(stand_in):
    stand_in.home.write_text("in the way")
    done = stand_in.run()
    assert done.returncode == 1
    assert done.stderr.startswith(f"memkit cannot write to {stand_in.home}")
    assert "MEMKIT_HOME" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.fixture
def small_disk(stand_in):
    """The home of the stand-in on a disk of 4 MB."""
    stand_in.home.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(stand_in.home)]
    try:
        mounted = subprocess.run(mount, capture_output=True).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("mounting a small disk needs root on Linux")
    yield stand_in.home
    subprocess.run(["umount", str(stand_in.home)], check=True)


def test_too_little_room(stand_in, small_disk):
    done = stand_in.run()
    assert_refused(stand_in, done, f"needs 0.5 GB in {small_disk}, where the disk is full")


@only_in_ci
def test_a_disk_that_fills_up(stand_in, small_disk, monkeypatch):
    monkeypatch.setenv("PATH", str(stand_in.path))
    monkeypatch.setattr("memkit.environment.build.NEEDED_BYTES", 0)
    with pytest.raises(EnvironmentBuildError, match="where the disk is full"):
        make_environment(str(small_disk), "name", "making it", [str(stand_in.lock)])
    assert stand_in.environments == ["failed.json"]


# An update without a network uses the environment of the version before, if it is complete.


@pytest.fixture
def updated(stand_in: StandIn) -> StandIn:
    """A memkit that was used once and then updated to a version with an unavailable requirement."""
    stand_in.add_fast_tool()
    assert stand_in.run().returncode == 0
    (old,) = stand_in.environments
    lib = next((stand_in.home / "env" / old / "lib").glob("python*"))
    (lib / "site-packages" / "memkit_stand_in_dependency-1.dist-info").mkdir()
    stand_in.depend_on("memkit-stand.in_dependency>=2", 'only-elsewhere; sys_platform == "other"'.replace('"', "'"))
    return stand_in


def prefix(output: str) -> str:
    return os.path.basename(json.loads(output)["prefix"])


def test_the_earlier_environment_is_used_until_the_new_one_can_be_built(updated: StandIn) -> None:
    (old,) = [name for name in updated.environments if name != "failed.json"]
    first = updated.run(TEST_FAILURE="dns error: no network", PIP_NO_INDEX="1")
    assert first.returncode == 0, first.stderr
    assert prefix(first.stdout) == old
    said = first.stderr.splitlines()[-1]
    assert said.endswith("memkit uses the environment from before the update.")
    builds = len(updated.builds)
    second = updated.run(TEST_FAILURE="dns error: no network", PIP_NO_INDEX="1")
    assert (second.returncode, second.stderr) == (0, "")
    assert prefix(second.stdout) == old
    assert len(updated.builds) == builds  # not tried again at once
    failed = Path(environment.failure_file(str(updated.home)))
    record = json.loads(failed.read_text())
    failed.write_text(json.dumps({**record, "time": record["time"] - 7200}))
    done = updated.run()
    assert done.returncode == 0, done.stderr
    assert prefix(done.stdout) != old
    assert not failed.exists()


@pytest.mark.parametrize("lack", ["a package", "its Python"])
@only_in_ci
def test_an_incomplete_environment_is_not_used(updated: StandIn, lack: str) -> None:
    (old,) = [name for name in updated.environments if name != "failed.json"]
    if lack == "a package":
        updated.depend_on("memkit-stand-in-dependency", "memkit-of-tomorrow")
    else:
        shutil.rmtree(updated.home / "env" / old / "lib")
    done = updated.run(TEST_FAILURE="dns error: no network", PIP_NO_INDEX="1")
    assert done.returncode == 1
    assert "from before" not in done.stderr
