"""The output of the prompt hook, with and without a service that answers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.service.running import REPOSITORY, RunningService, wait_until

PROMPT = "please change the port of the staging gateway"


def submit(service: RunningService, prompt: str, session: str = "5e55dddd") -> str:
    """What the hook adds to a prompt."""
    root = service.memory.project.root
    event = {"session_id": session, "cwd": root, "prompt": prompt, "prompt_id": "p"}
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "hooks" / "prompt_submit.py")],
        input=json.dumps(event).encode(),
        env=service.environment,
        cwd=root,
        capture_output=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


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
    assert service.process is not None
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
