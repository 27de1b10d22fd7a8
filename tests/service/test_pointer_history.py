"""A pointer counts when the session acknowledges it, not when the service finds it."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from memkit.ipc.client import ServiceUnavailable, request
from tests.service.running import RunningService, wait_until
from tests.service.test_prompt import PROMPT, submit


def ask(service: RunningService, **more: object) -> str:
    found = service.ask("pointers", session="5e55cccc", prompt=PROMPT, **more)
    return str(found["text"])


def test_unacknowledged_pointers_are_repeated(service: RunningService) -> None:
    service.found("port")
    first = ask(service, acknowledges=True)
    assert first.startswith("Earlier work")
    assert ask(service, acknowledges=True) == first
    found = service.ask("pointers", session="5e55cccc", prompt=PROMPT, acknowledges=True)
    assert service.json("status")["pointers"]["given"] == 0
    service.ask("shown", session="5e55cccc", ids=found["ids"])
    assert ask(service, acknowledges=True) == ""
    assert service.json("status")["pointers"]["given"] == 1


def test_a_hook_of_an_older_memkit_acknowledges_nothing(service: RunningService) -> None:
    service.found("port")
    assert ask(service).startswith("Earlier work")
    assert ask(service) == ""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_pointers_that_come_too_late_are_repeated(service: RunningService) -> None:
    service.found("port")
    assert service.process is not None
    process = psutil.Process(service.process.pid)
    service.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: process.status() == psutil.STATUS_STOPPED, "it to be stopped")
    try:
        assert "memkit holds" in submit(service, PROMPT, session="5e55cccc")
        with pytest.raises(ServiceUnavailable):
            request(service.memory.home, "status", {}, 0.1)
    finally:
        service.process.send_signal(signal.SIGCONT)
    # What the hook asked comes first, and was answered when this is.
    wait_until(service.status, "it to go on")
    assert ask(service).startswith("Earlier work")


@pytest.mark.parametrize("ids", [None, "x", [5], {"a": 1}])
def test_malformed_ids_are_refused(service: RunningService, ids: object) -> None:
    from memkit.ipc.client import RequestRefused

    with pytest.raises(RequestRefused):
        service.ask("shown", session="5e55cccc", ids=ids)
