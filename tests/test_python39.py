"""What runs in the user's own `python3` keeps to Python 3.9 and to the standard library.

That is the hooks, the scripts in `bin/` and `tools/`, every module of memkit they reach, and every module that
says of itself "Standard library only".
"""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "memkit"
SCRIPTS = [
    *sorted((REPOSITORY / "hooks").glob("*.py")),
    REPOSITORY / "bin" / "memkit",
    *sorted(file for file in (REPOSITORY / "tools").iterdir() if file.is_file() and file.name != "graph"),
]
PROMISE = "Standard library only"

INSIDE = {"memkit.cli", "memkit.memory"}
"""Imported by `bin/memkit` only once it runs in memkit's own environment, or by the user's own programs."""


def module_file(name: str) -> Path | None:
    """The file of a module of this package."""
    path = REPOSITORY.joinpath(*name.split("."))
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


def module_name(file: Path) -> str:
    """The name a file of this package is imported by."""
    parts = file.relative_to(REPOSITORY).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(file: Path) -> set[str]:
    """The names of all modules that `file` imports, at its top or inside a function."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: a relative import"
            names.add(node.module or "")
            submodules = (f"{node.module}.{alias.name}" for alias in node.names)
            names.update(name for name in submodules if name.startswith("memkit."))
    names = {name for name in names if not name.startswith("memkit.") or module_file(name)}
    parents = {name.rpartition(".")[0] for name in names if name.startswith("memkit.")}
    return (names | parents) - INSIDE


def reached() -> list[Path]:
    """The scripts, the modules that promise it, and every module of memkit those import."""
    found: set[Path] = set()
    waiting = [*SCRIPTS]
    waiting += [file for file in PACKAGE.rglob("*.py") if PROMISE in file.read_text("utf-8")]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            modules = (module_file(name) for name in imported(file) if name.startswith("memkit"))
            waiting += [module for module in modules if module is not None]
    return sorted(found)


def label(file: Path) -> str:
    return str(file.relative_to(REPOSITORY))


FILES = reached()


def test_the_modules_of_hooks_and_launcher_are_among_those_checked():
    names = {label(file) for file in FILES}
    assert {"bin/memkit", "tools/test", "memkit/paths.py", "memkit/environment/build.py"} <= names
    assert any(name.startswith("hooks/") for name in names)
    assert {f"memkit/ipc/{name}.py" for name in ("spool", "address", "client")} <= names
    assert not any(name.startswith("memkit/cli") for name in names)


@pytest.mark.parametrize("file", FILES, ids=label)
def test_the_syntax_is_that_of_python_39(file):
    ast.parse(file.read_text(encoding="utf-8"), str(file), feature_version=(3, 9))


@pytest.mark.parametrize("file", [file for file in SCRIPTS if file.parent.name == "hooks"], ids=label)
def test_an_older_python_parses_the_hooks_and_says_that_it_is_too_old(file):
    """Python 3.6 does not know `from __future__ import annotations`: what it imports must say so."""
    ast.parse(file.read_text(encoding="utf-8"), str(file), feature_version=(3, 4))


@pytest.mark.parametrize("file", FILES, ids=label)
def test_only_the_standard_library_and_memkit_are_imported(file):
    tops = {name.partition(".")[0] for name in imported(file)}
    assert tops <= sys.stdlib_module_names | {"memkit"}


def test_python_39_imports_every_module():
    python = shutil.which("python3.9")
    if python is None or subprocess.run([python, "--version"], capture_output=True).returncode:
        pytest.skip("there is no Python 3.9 here")
    modules = [module_name(file) for file in FILES if file.is_relative_to(PACKAGE)]
    code = f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); import {', '.join(modules)}"
    subprocess.run([python, "-I", "-B", "-c", code], check=True)
