"""The spool with a kill at every step of every operation: no event lost, none doubled."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memkit.ipc import spool
from memkit.paths import Home


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


def claim(home: Home) -> None:
    take(home)


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
    "operation",
    [claim, return_it, retry, last_retry, give_up, fail_and_retry_failed, newer, spool.recover],
)
def test_killed_at_every_step(
    home: Home, monkeypatch: pytest.MonkeyPatch, operation: Callable[[Home], None]
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


@pytest.mark.parametrize("attempts", ["many", None, [], 1.5])
def test_an_invalid_count_of_attempts(home: Home, attempts: object) -> None:
    spool.put(home, {"event": "Stop", "number": 1, "attempts": attempts})
    assert spool.retry_later(home, take(home), "no", 0.0)
    assert take(home, 1e12).record["attempts"] == 1


def test_events_and_folders_are_private(home: Home) -> None:
    spool.put(home, {"event": "Stop", "number": 1})
    retry(home)
    for path in Path(home.root).rglob("*"):
        assert path.stat().st_mode & 0o077 == 0


def test_work_is_what_waits_and_what_a_killed_worker_left(home: Home) -> None:
    assert spool.work(home) == []
    names = [spool.put(home, {"event": "Stop"}) for _ in range(2)]
    assert spool.work(home) == names
    spool.claim(home, names[1], 0.0)
    assert spool.work(home) == names


def test_any_event_name_is_a_file_name(home: Home) -> None:
    for event in ("../../x", "", "a/b", "Ünï\0", None, 5):
        name = spool.put(home, {"event": event, "number": 1})
        assert spool.waiting(home)[-1] == name
    assert len(stored(home)) == 6
