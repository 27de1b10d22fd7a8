"""`memkit statusline`, as Claude Code runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memkit.hook.status_line import status_line
from memkit.hook.tally import history_file
from memkit.paths import Home
from memkit.state import write_state
from tests.hook.conftest import REPOSITORY, Stage
from tests.hook.test_tally import write_day


def show(stage: Stage, given: object, cwd: Path | None = None, **environment: str) -> str:
    """What the command prints; it neither fails nor complains, and builds no environment."""
    done = subprocess.run(
        [sys.executable, "-I", str(REPOSITORY / "bin" / "memkit"), "statusline"],
        input=given if isinstance(given, bytes) else json.dumps(given).encode(),
        capture_output=True,
        env={**stage.environment, "MEMKIT_PYTHON": "", **environment},
        cwd=cwd or stage.project,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert not (stage.home / "env").exists()
    return done.stdout.decode()


def test_the_line(stage: Stage) -> None:
    given = {"session_id": "s", "cwd": "/", "workspace": {"project_dir": str(stage.project), "current_dir": "/"}}
    assert show(stage, given) == "memkit: no sessions yet\n"
    write_day(stage, "2026-09-20", "## 09:00 Ports <!-- session:a -->", "## 10:00 Money <!-- session:b -->")
    assert show(stage, given) == "memkit 2 sessions · last 2026-09-20\n"
    home = Home(str(stage.home))
    os.makedirs(home.pointer_history)
    write_state(history_file(home, "s"), 1, {"ids": ["x", "y"]})
    assert show(stage, given, LC_ALL="C", PYTHONIOENCODING="ascii") == "memkit 2 sessions · 2 pointers · last 2026-09-20\n"
    assert show(stage, {"cwd": str(stage.project)}, cwd=stage.root) == "memkit 2 sessions · last 2026-09-20\n"
    (stage.project / ".memkit" / "off").touch()
    assert show(stage, given) == "memkit off\n"


def test_today_has_the_time(stage: Stage) -> None:
    write_day(stage, "2026-09-20", "## 09:00 Ports <!-- session:a -->", "### 14:02 Port? <!-- turn:1 -->")
    noon = time.mktime((2026, 9, 20, 12, 0, 0, 0, 0, -1))
    given = {"cwd": str(stage.project)}
    assert status_line(Home(str(stage.home)), given, noon) == "memkit 1 session · last 14:02"


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"{",
        b"[1]",
        b"\xff\x00",
        b'{"cwd": 5, "workspace": ["x"], "session_id": {}}',
        b'{"cwd": "/nowhere\\u0000", "session_id": "../../x"}',
        b'{"workspace": {"project_dir": "\\ud800"}, "session_id": "\\ud800"}',
    ],
)
def test_bad_input_disturbs_nobody(stage: Stage, given: bytes) -> None:
    assert show(stage, given) in ("", "memkit: no sessions yet\n")


def test_a_home_that_cannot_be_written(stage: Stage) -> None:
    stage.home.write_text("not a directory")
    (stage.project / ".memkit" / "memory").mkdir(parents=True)
    (stage.project / ".memkit" / "memory" / "2026-09-20.md").write_text("## 09:00 x <!-- session:a -->\n")
    assert show(stage, {"cwd": str(stage.project)}) == "memkit 1 session · last 2026-09-20\n"


def test_closed_streams(stage: Stage) -> None:
    command = f'"{sys.executable}" -I "{REPOSITORY}/bin/memkit" statusline'
    for redirection in ("<&-", ">&-", "<&- >&- 2>&-"):
        done = subprocess.run(["sh", "-c", f"{command} {redirection}"], env=stage.environment, input=b"{}", check=False)
        assert done.returncode == 0
