"""A sync that is killed at any step and runs again leaves what an undisturbed one leaves."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.builders import git
from tests.ci import sized
from tests.sync.machines import Machine, same

STEP = sized(17, 9, 1)


def killed_at(point: int, work: Callable[[], object]) -> bool:
    """Run `work` in a child that dies before its step `point`; return whether it got there."""
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    left = point

    def dying(real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)

        return step

    try:
        os.replace, os.unlink, os.fsync = map(dying, (os.replace, os.unlink, os.fsync))
        subprocess.run = dying(subprocess.run)
        work()
    finally:
        os._exit(0)


@pytest.mark.parametrize("kind", ["folder", "git"])
def test_a_kill_at_any_step_changes_nothing(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "work" / "place"
    place.mkdir(parents=True)
    if kind == "git":
        git(place, "init", "-q", "--bare")
    machines = [Machine(tmp_path / "work", name, f"{kind} {place}") for name in ("laptop", "desk", "server")]
    laptop, desk, _ = machines
    secret = laptop.work(0)
    for machine in [*machines, *machines]:
        machine.work(1)
        machine.sync()
    desk.forget(secret)
    desk.sync()
    for number, machine in enumerate(machines, start=2):  # all have something to send, to take, to forget
        machine.work(number, day=number)
    desk.sync()
    shutil.copytree(tmp_path / "work", tmp_path / "saved", symlinks=True)

    def settled() -> tuple[object, object]:
        for one in [*machines, *machines]:
            assert not one.sync().problems
        assert same(*machines)
        assert secret not in laptop.turns
        return laptop.memory

    undisturbed = settled()
    point = kills = 0
    while True:
        shutil.rmtree(tmp_path / "work")
        shutil.copytree(tmp_path / "saved", tmp_path / "work", symlinks=True)
        if not killed_at(point, laptop.sync):
            break
        kills += 1
        assert settled() == undisturbed
        point += STEP
    assert kills > 30 / STEP
