"""Finding memkit's environment and running memkit in it: requirements, stamp, arguments, exit codes, signals, isolation."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
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


# Running memkit in an existing environment: arguments, exit codes, signals, isolation.


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
