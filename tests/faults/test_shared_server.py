"""Several homes write to one Chroma server at once. Processes are killed, and connections drop."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from memkit.index import server as server_module
from tests.chroma_server import Proxy, chroma_server
from tests.ci import only_at_night, only_in_ci, sized
from tests.index.test_server import SLOW_SECONDS, assert_costs_nothing, cloned, rows_on
from tests.memory import FakeEmbedder, Memory, make_memory

DAYS = sized(3, 3, 4)
EMBEDDED = "embedded"


class RecordingEmbedder(FakeEmbedder):
    """Appends each text that it embeds to a file, which outlives the process."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self.log = log

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        with self.log.open("a") as file:
            file.writelines(json.dumps(one) + "\n" for one in texts)
        return super().embed(texts)


def work(root: str, uri: str) -> None:
    """What each process does: write a day and index it, day by day, as far as they are missing."""
    server_module.ANSWER_SECONDS = SLOW_SECONDS
    memory = existing(Path(root), uri)
    for day in range(1, DAYS + 1):
        name = f"2026-11-{day:02}.md"
        if not memory.path(name).exists():
            lines = (f"# Entry {n}\n\n{Path(root).name} wrote note {n} of day {day}.\n\n" for n in range(6))
            memory.write(name, "".join(lines))
        elif day == 1:  # and it changes what is there
            memory.write(name, memory.path(name).read_text() + f"# More\n\n{Path(root).name} adds a line.\n")
        server_module.reset()  # the server is back for the next pass
        memory.sync()
        print(day, flush=True)


def existing(root: Path, uri: str) -> Memory:
    memory = make_memory(root, {}, index={"uri": uri})
    memory.embedder = RecordingEmbedder(root / EMBEDDED)
    return memory


def start(root: Path, uri: str) -> subprocess.Popen[bytes]:
    code = f"from tests.faults.test_shared_server import work; work({str(root)!r}, {uri!r})"
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[2], stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip


def until_day(process: subprocess.Popen[bytes], day: int) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= day:
            return


@pytest.mark.parametrize("homes", [pytest.param(2, marks=only_in_ci), pytest.param(10, marks=only_at_night)])
def test_homes_share_a_server_at_once(tmp_path: Path, homes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No row is lost, none is deleted by another home, and no text that was kept is embedded again."""
    monkeypatch.setattr(server_module, "ANSWER_SECONDS", SLOW_SECONDS)
    chance = random.Random(homes)
    (tmp_path / "data").mkdir()
    with chroma_server(tmp_path / "data") as running, closing(Proxy(running.uri)) as proxy:
        roots = [tmp_path / f"home{n}" for n in range(homes)]
        for root in roots:
            cloned(root, proxy.uri)
        proxy.faults = 0.1
        processes = {root: start(root, proxy.uri) for root in roots}
        killed = roots[::3]
        for root in killed:
            until_day(processes[root], chance.randrange(1, DAYS))
            os.kill(processes[root].pid, signal.SIGKILL)  # somewhere in the next day
            processes[root].wait(60)
            processes[root] = start(root, proxy.uri)
        for process in processes.values():
            process.communicate(timeout=300)
            assert process.returncode == 0
        assert proxy.dropped
        proxy.faults = 0.0
        expected: dict[str, Any] = {}
        for root in roots:
            server_module.reset()
            memory = existing(root, proxy.uri)
            assert memory.sync().unsent == 0
            assert_costs_nothing(memory)
            owner = Path(memory.home.owner).read_text().strip()
            expected |= {f"{owner}:{name}": owner for name in memory.contents()}
        rows = rows_on(running.uri, memory)
        assert {name: row["owner"] for name, row in rows.items()} == expected
        assert len(expected) >= homes * DAYS * 2
        for root in roots:
            lines = Counter((root / EMBEDDED).read_text().splitlines())
            # A killed process may lose the one batch that it was embedding.
            again = sum(lines.values()) - len(lines)
            assert again <= (3 if root in killed else 0), lines.most_common(3)
