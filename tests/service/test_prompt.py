"""The output of the prompt hook, with and without a service that answers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from memkit.hook.tally import history_file
from memkit.ipc.client import RequestRefused, ServiceUnavailable, request
from memkit.paths import Home
from memkit.service.operations import PointerHistory
from tests.service.running import REPOSITORY, RunningService, wait_until

PROMPT = "please change the port of the staging gateway"


def submit(service: RunningService, prompt: str, session: str = "5e55dddd") -> str:
    return service.hook("prompt_submit", session_id=session, prompt=prompt, prompt_id="p")


def test_pointers(service: RunningService) -> None:
    # Not open yet: the hint, and it is opened for the next prompt.
    assert "memkit holds what was said" in submit(service, PROMPT)
    # On a busy machine the hook's request can expire before the service reads it.
    wait_until(
        lambda: service.ask("pointers", session="5e55cccc", prompt=PROMPT)["warm"], "the project to be opened"
    )
    said = wait_until(lambda: submit(service, PROMPT), "the prompt to be looked up in time")
    if "memkit holds" in said:  # a busy machine: the hint came in its place
        said = wait_until(
            lambda: (text := submit(service, PROMPT)).startswith("Earlier") and text, "pointers"
        )
    assert said.startswith("Earlier work on this, quoted:\n- 2026-11-18 “Which port does")
    assert "→ It listens on 7443, 443 is taken.”" in said
    name = said.partition("(")[2].partition(")")[0]
    assert "7443" in service.json("expand", name)["sections"][0]["content"]
    # Once in a session, but again in another.
    assert name not in submit(service, PROMPT)
    counts = service.json("status")["pointers"]
    assert counts["given"] >= 1
    assert counts["followed"] == 1
    again = wait_until(lambda: submit(service, PROMPT, session="5e55eeee"), "another session")
    assert name in again or "memkit holds" in again


def test_no_pointers_for_an_unrelated_or_private_prompt(shared: RunningService) -> None:
    assert "Earlier work" not in submit(shared, "write a poem about the moon")
    for prompt in (f"{PROMPT} #skip", f"<private>{PROMPT}", f"<private>{PROMPT}</private> and the moon please"):
        reply = shared.ask("pointers", session="5e55ffff", prompt=prompt)
        assert (reply["text"], reply["ids"]) == ("", [])


@pytest.mark.parametrize("state", ["hangs", "gone"])
def test_the_prompt_does_not_wait_for_a_dead_or_hung_service(service: RunningService, state: str) -> None:
    service.process.send_signal(signal.SIGSTOP if state == "hangs" else signal.SIGKILL)
    if state == "gone":
        service.process.wait()
    try:
        assert "memkit holds what was said" in submit(service, PROMPT)
    finally:
        service.process.kill()


def test_the_settings_decide_what_a_prompt_gets(service: RunningService) -> None:
    def configure(name: str, value: str) -> None:
        done = service.memkit("config", "set", name, value)
        assert done.returncode == 0, done.stderr

    service.found("port")
    configure("recall.inject", "hint")
    assert submit(service, PROMPT).startswith("memkit holds")
    configure("recall.inject", "off")
    assert submit(service, PROMPT) == ""
    assert Path(service.memory.home.hook_settings).exists()
    # An excluded place gets no pointers.
    root = service.memory.project.root
    configure("capture.exclude", json.dumps([f"{root}/secret"]))

    def pointers(directory: str) -> str:
        return str(service.ask("pointers", session="5e55ffff", prompt=PROMPT, directory=directory)["text"])

    wait_until(lambda: pointers(root), "the project to be opened with these settings")
    assert pointers(f"{root}/secret") == ""


# A pointer counts when the session acknowledges it, not when the service finds it


def ask(service: RunningService, session: str) -> str:
    found = service.ask("pointers", session=session, prompt=PROMPT)
    return str(found["text"])


def test_unacknowledged_pointers_are_repeated(shared: RunningService) -> None:
    given = shared.json("status")["pointers"]["given"]
    first = ask(shared, "5e55cccc")
    assert first.startswith("Earlier work")
    assert ask(shared, "5e55cccc") == first
    found = shared.ask("pointers", session="5e55cccc", prompt=PROMPT)
    for malformed in (None, "x", [5], {"a": 1}):
        with pytest.raises(RequestRefused):
            shared.ask("shown", session="5e55cccc", ids=malformed)
    assert shared.json("status")["pointers"]["given"] == given
    shared.ask("shown", session="5e55cccc", ids=found["ids"])
    assert ask(shared, "5e55cccc") == ""
    assert shared.json("status")["pointers"]["given"] == given + 1


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_pointers_that_come_too_late_are_repeated(shared: RunningService) -> None:
    process = psutil.Process(shared.process.pid)
    shared.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: process.status() == psutil.STATUS_STOPPED, "it to be stopped")
    try:
        assert "memkit holds" in submit(shared, PROMPT, session="5e55dddd")
        with pytest.raises(ServiceUnavailable):
            request(shared.memory.home, "status", {}, 0.1)
    finally:
        shared.process.send_signal(signal.SIGCONT)
    # What the hook asked comes first, and was answered when this is.
    wait_until(shared.status, "it to go on")
    assert ask(shared, "5e55dddd").startswith("Earlier work")


STOPPED = """
import os, signal, sys

class Stdout:
    def write(self, text):
        os.write(1, text.encode())
        os.kill(os.getpid(), signal.SIGKILL)

    def flush(self):
        pass

sys.path.insert(0, sys.argv[1])
from memkit.hook import events

sys.stdout = Stdout()
events.run("UserPromptSubmit")
"""
"""The hook, killed while it prints."""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_pointers_of_a_killed_hook_are_repeated(shared: RunningService) -> None:
    root = shared.memory.project.root
    event = json.dumps({"session_id": "5e55abcd", "cwd": root, "prompt": PROMPT, "prompt_id": "p"})

    def killed() -> str:
        command = [sys.executable, "-c", STOPPED, str(REPOSITORY)]
        done = subprocess.run(
            command, input=event, env=shared.environment, cwd=root, capture_output=True, text=True, check=False
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
        return done.stdout

    given = shared.json("status")["pointers"]["given"]
    wait_until(lambda: "Earlier work" in killed(), "a reply in time")
    assert ask(shared, "5e55abcd").startswith("Earlier work")
    assert shared.json("status")["pointers"]["given"] == given
    wait_until(lambda: "Earlier work" in submit(shared, PROMPT, session="5e55abcd"), "a reply in time")
    wait_until(lambda: ask(shared, "5e55abcd") == "", "it to be recorded")
    assert shared.json("status")["pointers"]["given"] == given + 1


def test_late_pointers_come_with_the_next_tool_call(shared: RunningService) -> None:
    found = shared.ask("pointers", session="5e55late", prompt=PROMPT)
    file = os.path.join(shared.memory.project.root, "late.py")
    given = shared.ask("moment", kind="edit", session="5e55late", file=file)
    assert given["ids"] == found["ids"]
    assert given["text"] == found["text"]
    shared.ask("shown", session="5e55late", kind="edit", ids=given["ids"])
    assert shared.ask("moment", kind="edit", session="5e55late", file=file)["ids"] == []


def test_recent_pointers_are_those_of_a_week_in_one_project(tmp_path: Path) -> None:
    history = PointerHistory(Home(str(tmp_path)))
    history.add("s1", ["a", "b"], "/one")
    history.add("s2", ["a"], "/one")
    history.add("s2", ["c"], "/one", "edit")
    history.add("s3", ["a"], "/two")
    history.add("s4", ["d"], "/one")
    os.utime(history_file(Home(str(tmp_path)), "s4"), (0, 0))
    assert sorted(history.recent("/one")) == ["a", "a", "b"]
