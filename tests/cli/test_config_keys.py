"""`memkit config` and the user's keys: they go in, and never come out."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import REPOSITORY, Run
from tests.memory import Memory

KEY = "sk-typed-9f81c2"
SET = ("config", "set", "keys.openai")


def test_a_key_from_a_pipe_is_never_shown(run: Run, fresh: Memory) -> None:
    shown = run(fresh, *SET, stdin=f"{KEY}\n".encode())
    assert shown.output == f"keys.openai = ******** in {fresh.home.config_file}\n"
    assert f'openai = "{KEY}"' in Path(fresh.home.config_file).read_text()
    assert Path(fresh.home.config_file).stat().st_mode & 0o777 == 0o600
    for command in (["list"], ["list", "--json"], ["get", "keys.openai"], ["get", "keys.openai", "--json"]):
        found = run(fresh, "config", *command)
        assert found.status == 0 and "********" in found.output and KEY not in found.output
    assert run(fresh, *SET, "--json", stdin=KEY.encode()).json["value"] == "********"
    assert run(fresh, "config", "get", "keys.voyage").output == '""\n'
    assert run(fresh, *SET, "").output.startswith('keys.openai = "" in ')
    assert KEY not in Path(fresh.home.config_file).read_text()


@pytest.mark.parametrize("text", ["", " \n", f"{KEY}\nmore\n", f"{KEY}\u2019"])
def test_text_that_is_no_key_changes_nothing(run: Run, fresh: Memory, text: str) -> None:
    assert run(fresh, *SET, stdin=b"sk-before").status == 0
    assert KEY not in run(fresh, *SET, stdin=text.encode()).complaint
    assert 'openai = "sk-before"' in Path(fresh.home.config_file).read_text()


def test_a_key_on_the_command_line_is_refused(run: Run, fresh: Memory) -> None:
    found = run(fresh, *SET, KEY)
    assert found.status == 2 and "`memkit config set keys.openai` asks for it" in found.errors
    assert KEY not in found.errors
    assert "unknown setting keys.other" in run(fresh, "config", "set", "keys.other", KEY).complaint


def test_a_terminal_does_not_echo_the_key(fresh: Memory) -> None:
    ours, theirs = pty.openpty()
    environ = {**os.environ, "MEMKIT_HOME": fresh.home.root, "MEMKIT_PYTHON": sys.executable}
    command = [REPOSITORY / "bin" / "memkit", *SET, "--json"]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=environ, start_new_session=True
    )
    os.close(theirs)
    seen = b""
    while b"not shown" not in seen:
        seen += os.read(ours, 1000)
    os.write(ours, f"{KEY}\n".encode())
    try:
        while part := os.read(ours, 1000):
            seen += part
    except OSError:  # the other side is closed
        pass
    output, _ = process.communicate()
    os.close(ours)
    assert json.loads(output)["value"] == "********"
    assert KEY.encode() not in seen + output
    assert f'openai = "{KEY}"' in Path(fresh.home.config_file).read_text()
