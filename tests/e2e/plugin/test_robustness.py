"""Killed clients, sessions side by side, errors of the API, and memkit itself switched off or broken."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from memkit.paths import MEMORY_DIRECTORY
from tests.builders import entries
from tests.e2e.plugin.user import MemkitUser, answers_so_far, git
from tests.e2e.waiting import wait_until
from tests.messages_api import Conversation, Failure, MessagesApi, Reply, Request, text, tool


@contextmanager
def held_after(api: MessagesApi, *replies: Reply) -> Iterator[None]:
    """Let the model give these replies, and then none until the end of the block."""
    released = threading.Event()

    def script(request: Request) -> Reply:
        step = answers_so_far(request)
        if step < len(replies):
            return replies[step]
        released.wait(timeout=300)
        return [text("Too late.")]

    api.script = script
    try:
        yield
    finally:
        released.set()


def kill(client: subprocess.Popen[bytes]) -> None:
    os.killpg(client.pid, signal.SIGKILL)
    client.wait(timeout=30)


@pytest.mark.essential
def test_client_killed_in_the_middle_of_a_turn(api: MessagesApi, user: MemkitUser) -> None:
    call = tool("Bash", command="echo measured 7443", description="Measure")
    with held_after(api, [text("Measuring."), call]):
        client = user.home.start_prompt("Measure the gateway", "--allowedTools", "Bash")
        api.wait_for(lambda request: "measured 7443" in request.last_user_text)
        wait_until(lambda: user.transcripts_hold("'content': 'measured 7443'"))
        kill(client)
    api.script = Conversation({})
    user.home.run_prompt("What now?")
    user.wait_until_remembered()

    assert user.prompts() == ["Measure the gateway", "What now?"]
    assert "Bash `echo measured 7443` → measured 7443" in user.memory()


def test_client_killed_right_after_a_turn(api: MessagesApi, user: MemkitUser) -> None:
    """Between two prompts, while the worker may be at it."""
    api.script = Conversation({"port": [[text("It is 7443.")]]})
    with user.home.start_interactive() as session:
        session.submit("Which port?")
        wait_until(lambda: user.transcripts_hold("It is 7443."))
        os.kill(session.pid, signal.SIGKILL)
    user.home.run_prompt("What now?")
    user.wait_until_remembered()
    assert user.prompts() == ["Which port?", "What now?"]
    assert user.memory().count("**Answered** It is 7443.") == 1


@pytest.mark.parametrize("in_worktrees", [False, True], ids=["one directory", "two worktrees"])
def test_two_sessions_at_once(api: MessagesApi, user: MemkitUser, in_worktrees: bool) -> None:
    project = user.home.project
    places = [project, project]
    if in_worktrees:
        git(project, "init", "--quiet")
        git(project, "commit", "--quiet", "--allow-empty", "--message", "Begin")
        git(project, "worktree", "add", "--quiet", str(project.parent / "feature"))
        places = [project, project.parent / "feature"]
    together = threading.Barrier(2)

    def script(request: Request) -> Reply:
        together.wait(timeout=60)  # each turn of one session overlaps one of the other
        return [text("Noted.")]

    def work(name: str, place: Path) -> None:
        first = user.home.run_prompt(f"{name} one", cwd=place)
        user.home.run_prompt(f"{name} two", "--resume", first["session_id"], cwd=place)

    api.script = script
    with ThreadPoolExecutor() as threads:
        list(threads.map(work, ["Left", "Right"], places))
    user.wait_until_remembered()

    memory = user.memory()
    assert sorted(user.prompts()) == ["Left one", "Left two", "Right one", "Right two"]
    assert memory.count("**Answered** Noted.") == 4
    # Each session has one section, and its turns stand in it in order.
    sections = re.split(r"^## ", entries(memory), flags=re.M)[1:]
    found = [re.findall(r"^### \d\d:\d\d (\w+ \w+) <", section, re.M) for section in sections]
    assert sorted(found) == [["Left one", "Left two"], ["Right one", "Right two"]]
    assert len([*(project / MEMORY_DIRECTORY).iterdir()]) == 1
    assert places[1] == project or not (places[1] / ".memkit").exists()
    assert [*user.home.memkit_home.glob("spool/*/*")] == []


@pytest.mark.essential
def test_neither_a_child_of_memkit_nor_what_is_off_is_remembered(api: MessagesApi, user: MemkitUser) -> None:
    before = sorted(user.home.memkit_home.rglob("*"))
    user.home.environment["MEMKIT_CHILD"] = "1"
    user.home.run_prompt("Summarize this session.")
    assert "memkit keeps" not in api.model_calls[0].text
    assert not (user.home.project / ".memkit").exists()
    assert sorted(user.home.memkit_home.rglob("*")) == before
    del user.home.environment["MEMKIT_CHILD"]
    user.run("off")
    user.home.run_prompt("Off the record.")
    assert "memkit keeps" not in api.model_calls[-1].text
    assert user.memory() == ""
    assert [*user.home.memkit_home.glob("spool/*/*")] == []
    user.run("on")
    user.home.run_prompt("On the record.")
    user.wait_until_remembered()
    assert user.prompts() == ["On the record."]


def test_environment_cannot_be_made(api: MessagesApi, user: MemkitUser) -> None:
    """Nothing is lost: the turns wait until memkit can run."""
    user.environment.unlink()
    nowhere = "http://127.0.0.1:9/simple"  # the discard port, which nobody listens on
    for name, text_ in (
        ("pip/pip.conf", f"[global]\nindex-url = {nowhere}\nretries = 0\n"),
        ("uv/uv.toml", f'index-url = "{nowhere}"\n'),
    ):
        settings = user.home.directory / ".config" / name
        settings.parent.mkdir(parents=True)
        settings.write_text(text_)

    assert user.home.run_prompt("The first question")["result"] == "Understood."
    wait_until(lambda: (user.home.memkit_home / "env" / "failed.json").exists(), 120)
    wait_until(lambda: user.home.processes() == [])
    with user.home.start_interactive() as session:
        session.wait_for("memkit could not build its Python environment")
        session.submit("The second question")
        session.wait_for("Understood.")
        session.exit()
    with user.home.start_interactive() as session:
        session.submit("The third question")
        session.wait_for("Understood.")
        assert "memkit could not" not in session.screen
        session.exit()
    assert user.memory() == ""

    user.link_environment()
    user.home.run_prompt("The fourth question")
    user.wait_until_remembered()
    ordinals = ("first", "second", "third", "fourth")
    assert user.prompts() == [f"The {ordinal} question" for ordinal in ordinals]
    assert user.memory().count("**Answered** Understood.") == 4


def test_api_error_is_no_memory(api: MessagesApi, user: MemkitUser) -> None:
    call = tool("Bash", command="echo looked", description="Look")
    overloaded = Failure(529, "overloaded_error", "The model is on holiday.")
    broken = Failure(500, "api_error", "The model is broken.")
    api.script = Conversation({"Break": [overloaded], "Half": [[text("Let me look."), call], broken]})
    assert user.home.run_prompt("Break at once")["is_error"]
    assert user.home.run_prompt("Half of it", "--allowedTools", "Bash")["is_error"]
    api.script = Conversation({})
    user.home.run_prompt("Go on")
    user.wait_until_remembered()
    # What the person wanted is kept, and what was done until then.
    assert user.prompts() == ["Break at once", "Half of it", "Go on"]
    assert "Bash `echo looked` → looked" in user.memory()
    for error in ("on holiday", "broken", "API Error", "verloaded"):
        assert error not in user.memory()
