"""Finding memkit's environment: the list of requirements, the stamp, and usable environments."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from memkit import environment
from memkit.environment import (
    installed_launcher,
    launcher_path,
    launcher_text,
    write_launcher,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def no_given_interpreter(monkeypatch):
    monkeypatch.delenv("MEMKIT_PYTHON", raising=False)


def write(directory: Path, text: str) -> str:
    (directory / "pyproject.toml").write_text(text, encoding="utf-8")
    return str(directory)


def requirements(directory: str) -> list[str]:
    return environment.declared_requirements(directory, "project", "dependencies")


def test_the_reader_agrees_with_a_toml_parser():
    declared = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    for table, key, expected in (
        ("project", "dependencies", declared["project"]["dependencies"]),
        ("dependency-groups", "dev", declared["dependency-groups"]["dev"]),
        ("dependency-groups", "docs", declared["dependency-groups"]["docs"]),
        (
            "project.optional-dependencies",
            "sentence-transformers",
            declared["project"]["optional-dependencies"]["sentence-transformers"],
        ),
    ):
        assert environment.declared_requirements(str(REPOSITORY), table, key) == expected
        assert expected


def test_the_reader_rejects_any_other_style(tmp_path):
    start = "[project]\ndependencies = ["
    for text in (
        "", "[project]\nname = 'x'\n", "[other]\ndependencies = [\n]\n", f'{start}\n    "a",\n',
        f'{start}\n    "a", "b",\n]\n', f"{start}\n    'a',\n]\n", f'{start}\n    "a\\"b",\n]\n',
        f'{start}\n    "a\n]\n', f'{start}\n    """a""",\n]\n', f'{start}"a", "b"]\n',
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"pyproject\.toml"):
            requirements(write(tmp_path, text))


def test_the_stamp_follows_requirements_and_nothing_else(tmp_path):
    home = str(tmp_path / "home")

    def stamp(lines: str) -> str:
        root = write(tmp_path, f"[project]\ndependencies = [\n{lines}]\n")
        return environment.environment_directory(home, root)

    first = stamp('"a>=1",\n"b",\n')
    assert first == stamp('    "a>=1",   # why\n\n    # more\n    "b"\n')
    assert first.startswith(home)
    assert len({first, stamp('"a>=2",\n"b",\n'), stamp('"a>=1",\n'), stamp('"a>=1b",\n')}) == 4


def make_environment(directory: str, base: Path, library: str) -> Path:
    """Create the parts of a virtual environment that memkit checks, linked to the interpreter `base`."""
    base.parent.mkdir(parents=True, exist_ok=True)
    base.touch()
    (Path(directory) / "lib" / library).mkdir(parents=True)
    (Path(directory) / "bin").mkdir()
    python = Path(directory) / "bin" / "python"
    python.symlink_to(base)
    return python


def test_an_environment_is_found_once_it_is_there(tmp_path, monkeypatch):
    home, root = str(tmp_path / "home"), write(tmp_path, "[project]\ndependencies = [\n]\n")
    assert environment.environment_python(home, root) is None
    directory = environment.environment_directory(home, root)
    python = make_environment(directory, tmp_path / "usr" / "python3.12", "python3.12")
    assert environment.environment_python(home, root) == str(python)
    assert environment.environment_python(str(tmp_path / "lib"), str(tmp_path / "lib")) == sys.executable  # no clone
    monkeypatch.setenv("MEMKIT_PYTHON", "/somewhere/python")
    assert environment.environment_python(home, write(tmp_path, "broken")) == "/somewhere/python"


@pytest.mark.parametrize(
    ("base", "library", "is_usable"),
    [
        ("python3.12", "python3.12", True),
        ("python3.12-intel64", "python3.12", True),  # an unusual name is trusted
        ("python3.13", "python3.12", False),  # the system was upgraded
        (None, "python3.12", False),  # its Python was removed
    ],
)
def test_an_environment_needs_the_python_it_was_made_with(
    tmp_path: Path, base: str | None, library: str, is_usable: bool
) -> None:
    link = tmp_path / "usr" / "python3"
    make_environment(str(tmp_path / "env"), link, library)
    link.unlink()
    if base is not None:
        (tmp_path / "usr" / base).touch()
        link.symlink_to(tmp_path / "usr" / base)
    assert environment.is_usable(str(tmp_path / "env")) == is_usable


def test_the_last_failure_is_read_back(tmp_path):
    file = Path(environment.failure_file(str(tmp_path)))
    assert environment.last_failure(str(tmp_path)) is None
    file.parent.mkdir()
    file.write_text(json.dumps({"time": 5.5, "message": "no network"}))
    failure = environment.last_failure(str(tmp_path))
    assert failure is not None
    assert (failure.time, failure.message) == (5.5, "no network")
    os.truncate(file, 9)
    assert environment.last_failure(str(tmp_path)) is None


@pytest.mark.skipif("MEMKIT_TEST_NEWEST" in os.environ, reason="installed without the lock")
@pytest.mark.parametrize("name", ["kubernetes", "uvloop", "hf_xet"])
def test_all_other_tests_run_without_what_the_lock_leaves_out(name: str) -> None:
    lock = Path(environment.lock_path(str(REPOSITORY))).read_text("utf-8")
    assert not re.search(rf"^{name.replace('_', '-')}==", lock, re.MULTILINE)
    assert importlib.util.find_spec(name) is None


# The command `memkit` for terminals.


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
