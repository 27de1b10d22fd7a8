from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memkit.embedding.guarded_process import run_watched

pytestmark = pytest.mark.skipif(os.name == "nt", reason="uses a POSIX shell")


def test_a_silent_program_is_ended_with_its_children(scratch: Path, tmp_path: Path) -> None:
    noted = tmp_path / "pids"
    script = f"sleep 600 & echo $$ $! > {noted}; wait"
    with pytest.raises(subprocess.TimeoutExpired):
        run_watched(["sh", "-c", script], scratch, 0.5, {})
    leader, child = map(int, noted.read_text().split())
    with pytest.raises(ProcessLookupError):
        os.kill(leader, 0)
    # The child is an orphan now; whoever adopted it may not have reaped it yet.
    assert not _is_running(child)


def _is_running(process: int) -> bool:
    listing = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False
    )
    state = listing.stdout.strip()
    return bool(state) and not state.startswith("Z")


def test_a_program_that_makes_progress_outlives_the_silence(scratch: Path) -> None:
    script = "for i in 1 2 3 4 5 6 7 8; do echo progress >> file; sleep 0.2; done"
    run_watched(["sh", "-c", script], scratch, 1.2, {})
    assert (scratch / "file").read_text() == "progress\n" * 8


def test_a_failing_program_raises_with_its_output(scratch: Path) -> None:
    script = "import os, sys; print(os.environ['WHAT'], os.getcwd()); sys.exit(3)"
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run_watched([sys.executable, "-c", script], scratch, 60, {"WHAT": "where"})
    assert caught.value.returncode == 3
    assert caught.value.output == f"where {scratch.resolve()}"


def test_a_program_that_does_not_exist(scratch: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run_watched([str(scratch / "nothing")], scratch, 60, {})
