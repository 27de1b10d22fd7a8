"""The Tab key: commands, options, settings; bash for real."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from memkit import cli
from memkit.settings import validate
from tests.cli.conftest import REPOSITORY, Run
from tests.memory import Memory


def completed(*words: str) -> list[str]:
    """What click makes of the last word, after the others."""
    complete = ShellComplete(cli.cli, {}, "memkit", "_MEMKIT_COMPLETE")
    return [item.value for item in complete.get_completions(list(words[:-1]), words[-1])]


def test_commands() -> None:
    assert completed("se") == ["search", "sessions", "service", "setup", "serve"]
    assert completed("") == list(cli._LISTED)
    assert completed("x") == []


def test_commands_are_not_imported() -> None:
    code = (
        "import sys; from click.shell_completion import ShellComplete; from memkit import cli; "
        "assert ShellComplete(cli.cli, {}, 'memkit', '').get_completions([], 'se'); "
        "print([name for name in sys.modules if name.startswith('memkit.cli.')])"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_options_and_their_values() -> None:
    assert completed("search", "--mi") == ["--min-relevance"]
    assert completed("search", "--mode", "l") == ["lexical"]
    assert completed("service", "sta") == ["status", "start"]
    assert completed("--ver") == ["--version"]


def test_settings() -> None:
    assert completed("config", "set", "chunking.m") == [
        "chunking.max_characters",
        "chunking.min_characters",
    ]
    assert len(completed("config", "get", "")) == len(list(validate.every_key()))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script(run: Run, read_only: Memory, shell: str) -> None:
    plain = run(read_only, "completion", shell)
    assert plain.status == 0
    assert f"_MEMKIT_COMPLETE={shell}_complete" in plain.output
    assert run(read_only, "completion", shell, "--json").json == {
        "shell": shell,
        "script": plain.output[:-1],
    }


def test_another_shell_is_wrong_usage(run: Run, read_only: Memory) -> None:
    assert run(read_only, "completion", "tcsh").status == 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["se"], ["search", "sessions", "service", "setup", "serve"]),
        (["config", "get", "archive."], ["archive.enabled", "archive.keep_days"]),
    ],
)
def test_bash(tmp_path: Path, typed: list[str], offered: list[str]) -> None:
    program = tmp_path / "memkit"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m memkit "$@"\n')
    program.chmod(0o755)
    words = " ".join(["memkit", *typed])
    script = (
        'source <(memkit completion bash) && complete -p memkit && '
        f"COMP_WORDS=({words}) COMP_CWORD={len(typed)} && "
        '$(complete -p memkit | sed "s/.*-F \\([^ ]*\\).*/\\1/") memkit && '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "--noprofile", "-c", script],
        env={
            **os.environ,
            "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(REPOSITORY),
            "MEMKIT_HOME": str(tmp_path / "home"),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1:] == offered
    assert not (tmp_path / "home").exists()
