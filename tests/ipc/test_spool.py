"""The spool keeps every event exactly once, whatever is killed, at every step of every operation."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
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
    assert "error" not in again.record



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
            [sys.executable, "-c", WRITER, str(REPOSITORY), str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        told = [int(writer.stdout.readline()) for _ in range(kill_after)]
        os.kill(writer.pid, signal.SIGKILL)
        told += [int(line) for line in writer.stdout.read().splitlines()]
        writer.wait()
        kept = []
        for name in spool.waiting(home):
            item = spool.claim(home, name, 0.0)
            kept.append(item.record["number"])
            spool.done(home, item)
        assert set(told) <= set(kept)
        assert len(kept) == len(set(kept)) <= len(told) + 1


class Killed(BaseException):
    pass


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(str(tmp_path / "home"))


def stored(home: Home) -> list[tuple[str, int]]:
    return sorted(
        (folder, json.loads(path.read_text())["number"])
        for folder in ("new", "claimed", "failed")
        for path in Path(home.spool, folder).glob("*.json")
    )


def take(home: Home, now: float = 0.0) -> spool.Item:
    (name,) = spool.waiting(home)
    item = spool.claim(home, name, now)
    assert item is not None
    return item


def give_up(home: Home) -> None:
    spool.give_up(home, take(home), "no")


def retry(home: Home) -> None:
    spool.retry_later(home, take(home), "no", 0.0)


def last_retry(home: Home) -> None:
    item = take(home)
    item.record["attempts"] = spool.MAX_ATTEMPTS - 1
    spool.retry_later(home, item, "no", 0.0)


def fail_and_retry_failed(home: Home) -> None:
    give_up(home)
    spool.retry_failed(home)


def return_it(home: Home) -> None:
    spool.put_back(home, take(home))


def newer(home: Home) -> None:
    (name,) = spool.waiting(home)
    path = Path(home.spool, "new", name)
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": spool.SCHEMA + 1}))
    assert spool.claim(home, name, 0.0) is None


def kill_at(patch: pytest.MonkeyPatch, step: int) -> None:
    """Kill before the `step`th call that changes a directory; unlike an error, it cleans nothing up."""
    left = [step]
    for name in ("open", "replace", "rename", "unlink"):
        real: Callable[..., Any] = getattr(os, name)

        def counting(*arguments: Any, real: Callable[..., Any] = real, **named: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:  # and nothing after it happens either
                raise Killed
            return real(*arguments, **named)

        patch.setattr(os, name, counting)


@pytest.mark.parametrize(
    "operation", [take, return_it, retry, last_retry, give_up, fail_and_retry_failed, newer, spool.recover]
)
def test_killed_at_every_step(
    home: Home, monkeypatch: pytest.MonkeyPatch, operation: Callable[[Home], object]
) -> None:
    for step in range(40):
        spool.put(home, {"event": "Stop", "number": 1})
        with monkeypatch.context() as patch:
            kill_at(patch, step)
            try:
                operation(home)
            except Killed:
                finished = False
            else:
                finished = True
        for _ in range(2):
            spool.recover(home)
            assert [number for _, number in stored(home)] == [1]
            assert not any(folder == "claimed" for folder, _ in stored(home))
        # It can go on from there, whatever was left behind.
        spool.retry_failed(home)
        assert [number for _, number in stored(home)] == [1]
        if operation is not newer:
            spool.retry_later(home, take(home, 1e12), "again", 0.0)
            spool.done(home, take(home, 1e12))
        for path in Path(home.spool).glob("*/*"):
            path.unlink()
        if finished:
            assert step > 0 or operation is spool.recover
            return
    pytest.fail("the operation never ended")


def test_killed_in_put_before_it_returned(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    spool.put(home, {"event": "Stop", "number": 0})
    for step in range(3):
        with monkeypatch.context() as patch:
            kill_at(patch, step)
            with pytest.raises(Killed):
                spool.put(home, {"event": "Stop", "number": step + 1})
    # Half-written ones are no events; an hour later they are gone.
    assert ("new", 0) in stored(home)
    leftovers = list(Path(home.spool, "tmp").iterdir())
    spool.recover(home)
    assert list(Path(home.spool, "tmp").iterdir()) == leftovers
    for path in leftovers:
        os.utime(path, (0, 0))
    spool.recover(home)
    assert list(Path(home.spool, "tmp").iterdir()) == []


@pytest.mark.parametrize(
    "data",
    [b"{broken", b"", b"\xff\xfe", b"[1]", b"42", b"null", b"[" * 100_000, b'{"schema": 1, "not_before": "soon"}',
     b'{"schema": 1, "not_before": [1]}'],
)  # fmt: skip
def test_what_cannot_be_read_is_kept_as_it_is(home: Home, data: bytes) -> None:
    name = spool.put(home, {"event": "Stop", "number": 1})
    Path(home.spool, "new", name).write_bytes(data)
    assert spool.claim(home, name, 1e12) is None
    assert Path(home.spool, "failed", name).read_bytes() == data
    (item,) = spool.failed(home)
    assert isinstance(item.record, dict)
    assert spool.retry_failed(home) == 0
    assert spool.recover(home) == 0
    assert Path(home.spool, "failed", name).read_bytes() == data


@pytest.mark.parametrize("schema", [None, "1", 2, 99, [1]])
def test_an_event_of_a_newer_memkit_waits_for_it(home: Home, schema: object) -> None:
    name = spool.put(home, {"event": "Stop", "number": 1})
    path = Path(home.spool, "new", name)
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": schema}))
    assert spool.claim(home, name, 0.0) is None
    (item,) = spool.failed(home)
    assert "newer memkit" in item.record["error"]
    assert (item.record["schema"], item.record["number"]) == (schema, 1)
    assert spool.retry_failed(home) == 1
    assert "error" not in json.loads(path.read_text())


def test_work_and_an_invalid_count_of_attempts(home: Home) -> None:
    for attempts in ("many", None, [], 1.5):
        spool.put(home, {"event": "Stop", "number": 1, "attempts": attempts})
        assert spool.retry_later(home, take(home), "no", 0.0)
        item = take(home, 1e12)
        assert item.record["attempts"] == 1
        spool.done(home, item)
    assert spool.work(home) == []
    names = [spool.put(home, {"event": "Stop"}) for _ in range(2)]
    assert spool.work(home) == names
    spool.claim(home, names[1], 0.0)
    assert spool.work(home) == names


def test_any_event_name_is_a_private_file_name(home: Home) -> None:
    for event in ("../../x", "", "a/b", "Ünï\0", None, 5):
        name = spool.put(home, {"event": event, "number": 1})
        assert spool.waiting(home)[-1] == name
    assert len(stored(home)) == 6
    item = spool.claim(home, name, 0.0)
    assert item is not None
    spool.retry_later(home, item, "no", 0.0)
    for path in Path(home.root).rglob("*"):
        assert path.stat().st_mode & 0o077 == 0
