"""Sessions of other agents, captured by the service as they happen: after a yes, whole, and once."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memkit.agents.registry import OTHERS
from memkit.agents.sources import sources_of
from memkit.capture.capture import CaptureOutcome
from memkit.capture.importer import Importer, ImportSelection
from memkit.capture.summary_queue import SummaryQueue
from memkit.projects.project import Project
from memkit.service import agent_watch
from memkit.service.agent_watch import AgentWatch
from memkit.service.writer import Writer
from memkit.settings.validate import allowed
from tests.agents.codex.rollouts import Rollout, conversation
from tests.agents.opencode.test_session import BEGAN, MESSAGES, write_database
from tests.memory import make_memory

LONG_AGO = 1_700_000_000


class Machine:
    """A machine with Codex and a memkit that captures what `agents` names."""

    def __init__(self, root: Path) -> None:
        self.memory = make_memory(root, {}, embedding={"provider": "none"})
        self.folder = root / "codex" / "sessions" / "2026" / "03" / "04"
        self.config = Path(self.memory.home.config_file)
        self.config.parent.mkdir()
        self.config.touch()
        os.utime(self.config, (LONG_AGO, LONG_AGO))
        self.say_yes("codex", "opencode")
        self.start()

    def say_yes(self, *agents: str) -> None:
        capture = msgspec.structs.replace(self.memory.settings.capture, agents=agents)
        self.memory.settings = msgspec.structs.replace(self.memory.settings, capture=capture)

    def start(self) -> None:
        """Start the service again."""
        settings = self.memory.settings
        self.writer = Writer(self.memory.home, lambda project: settings, lambda chosen: (None, "none is wanted"))
        self.watch = AgentWatch(self.memory.home, lambda project: self.memory.settings, self.writer)

    def write(self, rollout: Rollout, *, lines: int | None = None, age: float = 0.0) -> Path:
        path = rollout.write(self.folder)
        path.write_text("".join(f"{line}\n" for line in rollout.lines[:lines]))
        os.utime(path, (time.time() - age,) * 2)
        return path

    def look(self) -> str:
        """Return the memory after a look."""
        self.watch.look()
        return "".join(path.read_text() for path in sorted(Path(self.memory.project.memory).glob("*.md")))


def turns(memory: str) -> int:
    return len(set(re.findall(r" turn:([0-9a-f]+)", memory)))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    made = Machine(tmp_path)
    yield made
    made.writer.stop()
    assert made.writer.join(30)


def test_the_setting_names_all_other_agents() -> None:
    *names, last = (agent.name for agent in OTHERS)
    assert allowed(("capture", "agents")) == f"a list of {', '.join(names)} or {last}"


def test_a_session_is_captured_as_it_grows_without_a_torn_turn(machine: Machine) -> None:
    whole = conversation(machine.memory.project.root)
    ends = [number for number, line in enumerate(whole.lines, 1) if "task_complete" in line]
    for count in range(1, len(whole.lines) + 1):
        machine.write(whole, lines=count)
        found = machine.look()
        assert turns(found) == sum(count >= end - 1 for end in ends)  # the answer comes before its end
    assert found.count("**Answered** It listens on 7443.") == found.count("**Answered** It runs.") == 1
    selection = ImportSelection(machine.memory.home, sources_of([whole.write(machine.folder)]), machine.memory.project)
    assert Importer(selection, machine.memory.settings).run(lambda done: None).total.written == 0
    assert machine.look() == found
    assert not SummaryQueue(machine.memory.home) or not machine.memory.settings.summarize.is_on


def test_a_turn_without_an_answer_is_captured_when_it_is_quiet(machine: Machine) -> None:
    whole = conversation(machine.memory.project.root)
    machine.write(whole, lines=8)
    assert machine.look() == ""
    machine.write(whole, lines=8, age=61)
    assert "Which port does the gateway use?" in machine.look()
    machine.write(whole)
    assert turns(machine.look()) == 2


def test_nothing_is_read_from_before_the_yes_or_after_a_no(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.say_yes()
    path = machine.write(conversation(machine.memory.project.root), age=100)
    with monkeypatch.context() as patch:
        patch.delattr(AgentWatch, "_look_at")
        assert machine.look() == ""
    machine.say_yes("codex")
    now = time.time()
    os.utime(machine.config, (now, now))
    assert machine.look() == ""
    path.touch()
    assert machine.look() == ""  # the session goes on; these turns were before
    machine.write(conversation(machine.memory.project.root).at(now + 1).prompt("And now?", 9).answer("Now."))
    machine.start()
    found = machine.look()
    assert turns(found) == 1 and "**Answered** Now." in found
    machine.say_yes()
    assert machine.look()
    os.utime(path, (now - 50, now - 50))
    machine.say_yes("codex")
    with monkeypatch.context() as patch:
        patch.delattr(AgentWatch, "_capture")
        assert machine.look()


def test_a_service_catches_up_when_it_starts(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.write(conversation(machine.memory.project.root))
    assert turns(machine.look()) == 2
    machine.writer.stop()
    other = Rollout(machine.memory.project.root, "019c8a4c-ed82-79a1-aa28-000000000002").prompt("Why?", 9).answer("So.")
    machine.write(other)
    machine.start()
    read: list[Path] = []
    follow = machine.watch._follow
    monkeypatch.setattr(machine.watch, "_follow", lambda path, yes: read.append(path) or follow(path, yes))
    assert turns(machine.look()) == 3
    count = len(read)
    assert count <= 2
    machine.look()
    assert len(read) == count  # nothing has changed


def test_a_turn_that_ran_at_the_yes_is_captured(machine: Machine) -> None:
    now = time.time()
    os.utime(machine.config, (now, now))
    rollout = Rollout(machine.memory.project.root).at(now - 9).prompt("Before?", 8).answer("Yes.")
    machine.write(rollout.prompt("During?", 9).at(now + 1).answer("Now."))
    found = machine.look()
    assert turns(found) == 1 and "During?" in found


@pytest.mark.parametrize("step", ["fsync", "chmod", "replace", "utime"])
def test_a_kill_while_the_mark_is_written_loses_nothing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    real = getattr(os, step)

    def die(*arguments: Any, **named: Any) -> None:
        if step != "utime" or named:  # a bare `utime` makes a file
            raise KeyboardInterrupt
        real(*arguments)

    machine.write(conversation(machine.memory.project.root), age=100)
    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(AgentWatch, "_follow", lambda *rest: CaptureOutcome(goes_on=True))  # unreadable for now
        patch.setattr(os, step, die)
        machine.look()
    machine.writer.stop()
    machine.start()
    assert turns(machine.look()) == 2


def test_a_project_that_is_off_and_a_place_of_the_system(machine: Machine) -> None:
    machine.memory.project.switch_off(time.time() - 10)
    machine.write(conversation(machine.memory.project.root))
    machine.write(Rollout("/etc", "019c8a4c-ed82-79a1-aa28-000000000003").prompt("Why?", 9).answer("So."))
    assert machine.look() == ""
    assert not Path("/etc/.memkit").exists()
    kept = Project.kept("/etc", machine.memory.home)
    assert "**Answered** So." in "".join(one.read_text() for one in Path(kept.memory).glob("*.md"))


def test_sessions_in_a_database(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data" / "opencode"
    data.mkdir(parents=True)
    monkeypatch.setattr(agent_watch, "SLACK_SECONDS", 1e9)  # the session is from March
    where = {"cwd": machine.memory.project.root}
    messages = [{**one, "info": one["info"] | {"path": where}} for one in MESSAGES]
    write_database(data, messages[:3])
    assert turns(machine.look()) == 1
    write_database(data, messages)
    found = machine.look()
    assert turns(found) == 4  # with the summary of a compaction
    assert "So far." in found
    assert machine.look() == found


def test_a_summary_of_turns_before_the_yes_is_left_out(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data" / "opencode"
    data.mkdir(parents=True)
    monkeypatch.setattr(agent_watch, "SLACK_SECONDS", 1e9)  # the session is from March
    yes = BEGAN / 1000 + 5  # the first turn ended two seconds before
    os.utime(machine.config, (yes, yes))
    where = {"cwd": machine.memory.project.root}
    write_database(data, [{**one, "info": one["info"] | {"path": where}} for one in MESSAGES])
    found = machine.look()
    assert turns(found) == 1  # the tools of the last one ran early
    assert "All is fine." in found
    assert "So far." not in found and "Fix it" not in found


def test_an_unreadable_session_does_not_stop_the_others(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    machine.folder.mkdir(parents=True)
    os.mkfifo(machine.folder / "rollout-pipe.jsonl")
    (machine.folder / "rollout-odd.jsonl").write_bytes(b"\xff\x00{")
    (machine.folder / "rollout-link.jsonl").symlink_to("rollout-link.jsonl")
    machine.write(conversation(machine.memory.project.root))
    assert turns(machine.look()) == 2
