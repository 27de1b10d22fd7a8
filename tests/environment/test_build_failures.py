"""A failed build: one line with the reason, and no remains."""

from __future__ import annotations

import subprocess
import sys

import pytest

from memkit import environment
from memkit.environment.build import make_environment
from memkit.environment.install import EnvironmentBuildError
from tests.ci import only_in_ci


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


def test_a_newer_python_on_path_is_used_instead(stand_in):
    stand_in.add_fast_tool()
    newer = stand_in.path / "python3.12"
    newer.symlink_to(sys.executable)
    stand_in.run_by_python("3 9 6 1")
    assert stand_in.run().returncode == 0
    log = (stand_in.home / "log" / "environment.log").read_text()
    assert f"uv venv --no-project --python {newer} " in log


def test_without_a_python_that_is_new_enough_uv_brings_one(stand_in):
    stand_in.add_fast_tool()
    stand_in.run_by_python("3 9 6 1")
    assert stand_in.run().returncode == 0
    log = (stand_in.home / "log" / "environment.log").read_text()
    assert "uv venv --no-project --python >=3.10,<3.15 " in log


def test_a_python_without_venv(stand_in):
    stand_in.run_by_python("3 11 2 0")
    done = stand_in.run()
    assert_refused(stand_in, done, "cannot make one: install the package python3.11-venv")


def test_uv_is_used_where_pip_has_the_index_but_cannot_run(stand_in):
    stand_in.add_fast_tool()
    stand_in.run_by_python("3 11 2 0")
    assert stand_in.run(PIP_INDEX_URL="http://127.0.0.1:9/").returncode == 0


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
