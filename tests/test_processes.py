"""Run programs to their end: real ones, and nothing of them is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from memkit.processes import TooMuchOutputError, kill_running, run_to_end
from tests.e2e.waiting import wait_until


def run(
    code: str, directory: Path, timeout: float = 60.0, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "MARK": "seen"}
    return run_to_end([sys.executable, "-c", code], environ, str(directory), timeout, stdin)


def is_gone(pid_file: Path) -> bool:
    """Whether the process whose id is in the file has ended."""
    pid = int(pid_file.read_text())
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_output_and_status(tmp_path: Path) -> None:
    code = "import sys, os; print(sys.stdin.read(), os.environ['MARK'], os.getcwd()); sys.exit('no')"
    ended = run(code, tmp_path, stdin="Which port?\udc80")
    assert (ended.returncode, ended.stderr) == (1, "no\n")
    assert ended.stdout == f"Which port?? seen {tmp_path}\n"
    assert run("print('done')", tmp_path, stdin="x" * 1_000_000).stdout == "done\n"  # input that is not read
    with pytest.raises(OSError):
        run_to_end([str(tmp_path / "none")], {}, str(tmp_path), 1.0)


def test_a_slow_program_is_killed(tmp_path: Path) -> None:
    """Its children go with it, even if they ignore SIGTERM."""
    code = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = os.fork()\n"
        "open('child' if child == 0 else 'parent', 'w').write(str(os.getpid()))\n"
        "time.sleep(600)\n"
    )
    files = [tmp_path / "parent", tmp_path / "child"]
    for seconds in (0.5, 5.0, 50.0):  # on a busy machine, it takes longer to begin
        with pytest.raises(subprocess.TimeoutExpired):
            run(code, tmp_path, timeout=seconds)
        if all(path.exists() and path.read_text() for path in files):
            break
    wait_until(lambda: is_gone(tmp_path / "parent") and is_gone(tmp_path / "child"))


def test_a_child_that_outlives_the_program_is_killed(tmp_path: Path) -> None:
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
    assert run(code, tmp_path).stdout == "answer\n"
    wait_until(lambda: is_gone(tmp_path / "child"))


FAMILY = """import os, time
child = os.fork()
open('child' if child == 0 else 'parent', 'w').write(str(os.getpid()) + ' ')
time.sleep(600)
"""


def has_begun(directory: Path) -> bool:
    """Whether the two processes of `FAMILY` run."""
    files = [directory / name for name in ("parent", "child")]
    return all(file.exists() and file.read_text().endswith(" ") for file in files)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends a process without a signal")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, getattr(signal, "SIGHUP", 1)])
def test_a_signal_ends_the_program_and_its_children(tmp_path: Path, number: int) -> None:
    # `nohup` and a shell's background jobs hand down ignored signals.
    default = "signal.default_int_handler" if number == signal.SIGINT else "signal.SIG_DFL"
    code = (
        "import signal, sys; from memkit.processes import run_to_end\n"
        f"signal.signal({int(number)}, {default})\n"
        "run_to_end([sys.executable, '-c', sys.argv[1]], {}, sys.argv[2], 600.0)"
    )
    asking = subprocess.Popen([sys.executable, "-c", code, FAMILY, str(tmp_path)], stderr=subprocess.DEVNULL)
    wait_until(lambda: has_begun(tmp_path))
    asking.send_signal(number)
    assert asking.wait(60) in (128 + number, -number)
    wait_until(lambda: is_gone(tmp_path / "parent") and is_gone(tmp_path / "child"))  # the system may need a moment


def test_a_process_that_exits_takes_the_programs_of_its_threads_along(tmp_path: Path) -> None:
    thread = threading.Thread(target=run, args=(FAMILY, tmp_path, 600.0))
    thread.start()
    wait_until(lambda: has_begun(tmp_path))
    kill_running()
    thread.join()
    wait_until(lambda: is_gone(tmp_path / "parent") and is_gone(tmp_path / "child"))  # the system may need a moment


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_too_much_output(tmp_path: Path, stream: str) -> None:
    with pytest.raises(TooMuchOutputError):
        run(f"import sys\nwhile True: sys.{stream}.write('x' * 65536)", tmp_path)
