"""The command `memkit` for terminals."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from memkit.environment import (
    installed_launcher,
    launcher_path,
    launcher_text,
    write_launcher,
)


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))


def test_a_launcher_of_an_installed_plugin_runs_its_newest_version(tmp_path: Path) -> None:
    for age, version in ((100, "1.2.9"), (0, "1.2.10")):
        program = tmp_path / "it's a cache" / version / "bin" / "memkit"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\necho {version} "$@"\n')
        program.chmod(0o755)
        os.utime(program, (1e9 - age, 1e9 - age))
    write_launcher(launcher_text(str(tmp_path / "it's a cache" / "1.2.9"), "1.2.9"))
    done = subprocess.run([launcher_path(), "two words", "x"], capture_output=True, text=True, check=True)
    assert done.stdout == "1.2.10 two words x\n"

def test_a_launcher_of_a_clone_runs_the_clone(tmp_path: Path) -> None:
    program = tmp_path / "my clone" / "bin" / "memkit"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$0" "$@"\nexit 3\n')
    program.chmod(0o755)
    assert installed_launcher() == []
    write_launcher(launcher_text(str(tmp_path / "my clone"), "1.2.9"))
    assert installed_launcher() == [launcher_path()]
    assert len(launcher_path().read_text().splitlines()) == 2
    done = subprocess.run([launcher_path(), "*", "x y"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, f"{program} * x y\n")


def test_another_program_of_that_name_is_not_ours(tmp_path: Path) -> None:
    launcher_path().parent.mkdir(parents=True)
    launcher_path().write_text("#!/bin/sh\nexec memkit-of-somebody-else\n")
    assert installed_launcher() == []
    launcher_path().unlink()
    launcher_path().symlink_to(tmp_path)
    assert installed_launcher() == []
