"""The spool keeps every event exactly once, whatever is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from memkit.ipc import spool
from memkit.paths import Home
from tests.ci import examples

REPOSITORY = Path(__file__).resolve().parents[2]


class SpoolMachine(RuleBasedStateMachine):
    """Any order of operations, with a kill (forgetting what was claimed) at any time."""

    claimed = Bundle("claimed")

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.home = Home(self.directory.name)
        self.alive: set[int] = set()
        self.done: set[int] = set()
        self.held: dict[str, spool.Item] = {}
        self.now = 1000.0
        self.count = 0

    @rule()
    def put(self) -> None:
        spool.put(self.home, {"event": "Stop", "number": self.count})
        self.alive.add(self.count)
        self.count += 1

    @rule(target=claimed, index=st.integers(0, 5))
    def claim(self, index: int) -> object:
        names = spool.waiting(self.home)
        if not names:
            return multiple()
        item = spool.claim(self.home, names[index % len(names)], self.now)
        if item is None:
            return multiple()
        self.held[item.name] = item
        return item

    @rule(item=claimed)
    def finish(self, item: spool.Item) -> None:
        if self.held.pop(item.name, None):
            spool.done(self.home, item)
            self.alive.discard(item.record["number"])
            self.done.add(item.record["number"])

    @rule(item=claimed)
    def fail(self, item: spool.Item) -> None:
        if self.held.pop(item.name, None):
            spool.retry_later(self.home, item, "it failed", self.now)

    @rule(item=claimed)
    def return_it(self, item: spool.Item) -> None:
        if self.held.pop(item.name, None):
            spool.put_back(self.home, item)

    @rule()
    def kill_and_recover(self) -> None:
        self.held.clear()
        spool.recover(self.home)

    @rule(seconds=st.floats(0, 500))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def retry_given_up(self) -> None:
        spool.retry_failed(self.home)

    @invariant()
    def every_event_is_somewhere_once(self) -> None:
        found = []
        for folder in ("new", "claimed", "failed"):
            for path in Path(self.home.spool, folder).glob("*.json"):
                found.append(json.loads(path.read_text())["number"])
        assert sorted(found) == sorted(self.alive)
        assert not self.alive & self.done

    def teardown(self) -> None:
        self.directory.cleanup()


TestSpool = SpoolMachine.TestCase
TestSpool.settings = settings(max_examples=examples(40), stateful_step_count=30)


def test_order_backoff_and_giving_up(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    names = [spool.put(home, {"event": "Stop", "number": n}) for n in range(3)]
    assert spool.waiting(home) == names == sorted(names)
    now = 1000.0
    for attempt in range(1, spool.MAX_ATTEMPTS):
        item = spool.claim(home, names[0], now)
        assert item is not None
        assert spool.retry_later(home, item, f"error {attempt}", now)
        assert spool.claim(home, names[0], now) is None
        now += spool.FIRST_RETRY_SECONDS * 2 ** (attempt - 1)
    item = spool.claim(home, names[0], now)
    assert item is not None
    assert not spool.retry_later(home, item, "the last error", now)
    (given_up,) = spool.failed(home)
    assert given_up.record["error"] == "the last error"
    assert spool.retry_failed(home) == 1
    again = spool.claim(home, names[0], now)
    assert again is not None
    assert "error" not in again.record


def test_files_that_are_no_events(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    spool.put(home, {"event": "Stop"})
    new = Path(home.spool, "new")
    (new / "00000000000000000001-1-aa-Stop.json").write_text("{broken")
    (new / "00000000000000000002-1-aa-Stop.json").write_text("[1]")
    (new / "00000000000000000003-1-aa-Stop.json").write_text('{"schema": 99, "event": "Stop"}')
    taken = [spool.claim(home, name, 0.0) for name in spool.waiting(home)]
    assert [item is not None for item in taken] == [False, False, False, True]
    assert len(spool.failed(home)) == 3
    assert any("newer memkit" in item.record["error"] for item in spool.failed(home))
    assert spool.retry_failed(home) == 1  # what is no event stays for a person to look at


WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from memkit.ipc import spool
from memkit.paths import Home
home, number = Home(sys.argv[2]), 0
while True:
    spool.put(home, {"event": "Stop", "number": number})
    print(number, flush=True)
    number += 1
"""


def test_what_put_returned_survives_a_kill(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    for kill_after in (1, 7, 20):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(REPOSITORY), str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert writer.stdout is not None
        told = [int(writer.stdout.readline()) for _ in range(kill_after)]
        os.kill(writer.pid, signal.SIGKILL)
        told += [int(line) for line in writer.stdout.read().splitlines()]
        writer.wait()
        kept = []
        for name in spool.waiting(home):
            item = spool.claim(home, name, 0.0)
            assert item is not None
            kept.append(item.record["number"])
            spool.done(home, item)
        assert set(told) <= set(kept)
        assert len(kept) == len(set(kept)) <= len(told) + 1
