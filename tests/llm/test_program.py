"""Programs that are run for their output: real ones, of which nothing is left."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from memkit.llm.providers import program
from tests.e2e.waiting import wait_until


def run(code: str, directory: Path, timeout: float = 60.0, **options: str) -> program.Ended:
    command = [sys.executable, "-c", code]
    environ: Mapping[str, str] = {**os.environ, "MARK": "seen"}
    return program.run(command, environ=environ, directory=str(directory), timeout=timeout, **options)


def is_gone(pid_file: Path) -> bool:
    """Whether the process that wrote its number there has ended."""
    pid = int(pid_file.read_text())
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_output_and_status(tmp_path: Path) -> None:
    code = (
        "import sys, os; print(sys.stdin.read(), os.environ['MARK'], os.getcwd()); sys.exit('no')"
    )
    ended = run(code, tmp_path, given="Which port?\udc80")
    assert ended == program.Ended(1, f"Which port?? seen {tmp_path}\n", "no\n")


def test_long_input_that_is_not_read(tmp_path: Path) -> None:
    assert run("print('done')", tmp_path, given="x" * 1_000_000).output == "done\n"


def test_too_slow(tmp_path: Path) -> None:
    """What it started goes with it, even if that ignores requests to end."""
    code = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = os.fork()\n"
        "open('child' if child == 0 else 'parent', 'w').write(str(os.getpid()))\n"
        "time.sleep(600)\n"
    )
    with pytest.raises(program.TooSlowError):
        run(code, tmp_path, timeout=2.0)
    wait_until(lambda: is_gone(tmp_path / "parent") and is_gone(tmp_path / "child"))


def test_what_it_leaves_behind_is_killed(tmp_path: Path) -> None:
    code = (
        "import os, time\n"
        "reading, writing = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    open('child', 'w').write(str(os.getpid()))\n"
        "    os.write(writing, b'.')\n"
        "    time.sleep(600)\n"
        "os.read(reading, 1)\n"
        "print('answer')\n"
    )
    assert run(code, tmp_path).output == "answer\n"
    wait_until(lambda: is_gone(tmp_path / "child"))


def test_too_much_output(tmp_path: Path) -> None:
    for stream in ("stdout", "stderr"):
        with pytest.raises(program.TooMuchOutputError):
            run(f"import sys\nwhile True: sys.{stream}.write('x' * 65536)", tmp_path)


def test_no_such_program(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        program.run([str(tmp_path / "none")], environ={}, directory=str(tmp_path), timeout=1.0)
