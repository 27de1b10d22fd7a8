"""The examples of docs/integrations.md, run as they stand there."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from memkit.serve.keys import Keys
from memkit.serve.server import HOST, PORT
from tests.memory import DAYS, make_memory
from tests.serve.running import RunningServer

MANUAL = Path(__file__).resolve().parents[2] / "docs" / "integrations.md"
EXAMPLES = re.findall(r"```sh\n(.*?)```", MANUAL.read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    memory = make_memory(tmp_path_factory.mktemp("manual"), DAYS)
    Keys(memory.home).create("", "read")
    running = RunningServer(memory)
    yield running
    running.stop()


@pytest.mark.skipif(shutil.which("curl") is None, reason="the examples use curl")
def test_the_examples(server: RunningServer) -> None:
    assert len(EXAMPLES) == 6
    _, key = Keys(server.memory.home).create("", "write")
    _, admin = Keys(server.memory.home).create("", "admin")
    variables = {"KEY": key, "ADMIN_KEY": admin, "ID": "", "PATH": "/usr/local/bin:/usr/bin:/bin"}
    answers = []
    for example in EXAMPLES:
        assert f"http://{HOST}:{PORT}" in example
        script = example.replace(f"http://{HOST}:{PORT}", server.address)
        done = subprocess.run(
            ["sh", "-euc", script], env=variables, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stderr
        assert '"status":4' not in done.stdout, (example, done.stdout)
        answers.append(done.stdout)
        if found := re.match(r'\{"id":"(\w+)"', done.stdout):
            variables["ID"] = found[1]
    assert '"SERVING"' in answers[0]
    assert '"created":true' in answers[1]
    assert '"OPS-12' in answers[2].replace("\\", "")
    assert "7444" in answers[3]
    assert '"erased":false' in answers[4]
    assert '"session":"agent-run-1"' in answers[5]
