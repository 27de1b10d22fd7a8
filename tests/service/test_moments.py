"""The hooks at the moment of action, as real processes, and the service that answers them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from memkit.conversation.turn import ToolCall, Turn
from memkit.embedding import Embedder
from memkit.hook.entries import note_own
from memkit.journal.digest import make_digest
from memkit.journal.journal import Journal
from memkit.paths import Home
from tests.memory import CountingEmbedder, make_memory
from tests.pointers.test_moments import ERROR, FILES
from tests.service.running import RunningService, wait_until

COMMAND = {"command": "pytest -q", "description": "Test"}


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory, model_home: Home, real_embedder: Embedder
) -> Iterator[RunningService]:
    directory = tmp_path_factory.mktemp("moments")
    memory = make_memory(directory, FILES, embedder=CountingEmbedder(real_embedder), models=model_home.models)
    for text in FILES.values():
        note_own(memory.home, memory.project.root, "", text)
    service = RunningService(memory).start()
    service.found("gateway")
    yield service
    service.stop()


def failed(service: RunningService, session: str, **event: Any) -> str:
    error = f"Exit code 1\nTraceback (most recent call last):\n{ERROR}"
    given = {"tool_name": "Bash", "tool_input": COMMAND, "error": error, "session_id": session, **event}
    return service.hook("tool_failure", **given)


def edit(service: RunningService, session: str, path: str, tool: str = "Edit") -> str:
    given = {"file_path": str(Path(service.memory.project.root, path)), "old_string": "a", "new_string": "b"}
    return service.hook("pre_tool_use", tool_name=tool, tool_input=given, session_id=session)


def test_a_failure_once_in_a_session(running: RunningService) -> None:
    # A busy machine may be later than the deadline; then the pointer comes with the next failure.
    told = wait_until(lambda: failed(running, "f1"), "a pointer in time")
    assert "it passed after `pip install pyyaml`, then Edit deploy/load.py" in told

    def first(session: str) -> str:
        return str(running.ask("moment", kind="failure", session=session, error=ERROR, **COMMAND)["ids"][0])

    wait_until(lambda: first("f1") not in told, "the older turn that met it, too")
    assert first("f2") in told
    for event in (
        {"is_interrupt": True}, {"tool_name": "Read", "tool_input": {"file_path": "/x"}}, {"error": "Exit code 1"},
        {"error": None}, {"tool_input": "pytest -q"}, {"tool_input": {"command": "memkit search pytest"}},
    ):  # fmt: skip
        assert failed(running, "f3", **event) == "", event


def test_an_edit_once_for_each_file(running: RunningService) -> None:
    sessions = iter(f"e{n}" for n in range(1000))

    def first() -> tuple[str, str] | None:
        session = next(sessions)
        told = edit(running, session, "deploy/gateway.yaml")
        return (session, told) if told else None

    session, told = wait_until(first, "a pointer in time")
    assert "2026-11-19 “Decided: the gateway waits 600 s, not 300 s.”" in told
    name = told.rpartition("(")[2].partition(")")[0]
    given = {"kind": "edit", "session": session, "file": str(Path(running.memory.project.root, "deploy/gateway.yaml"))}
    wait_until(lambda: name not in running.ask("moment", **given)["ids"], "the service to note it")
    assert edit(running, session, "deploy/gateway.yaml", "Write") == ""
    assert edit(running, session, "README.md") == ""  # the same decision
    for path in ("deploy/other.yaml", "/etc/passwd", ".memkit/memory/2026-11-19.md"):
        assert edit(running, "e", path) == ""
    # A worktree outside of the project.
    given = {"kind": "edit", "session": "w", "directory": "/elsewhere/tree", "file": "/elsewhere/tree/deploy/gateway.yaml"}
    assert "600 s" in running.ask("moment", **given)["text"]


def test_a_sub_agent(running: RunningService, tmp_path: Path) -> None:
    transcript = tmp_path / "s.jsonl"
    call = {"type": "tool_use", "id": "a1", "name": "Agent", "input": {"prompt": "Find out how long the gateway waits, 300 s or 600 s."}}
    asked = {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "How long does it wait?"}}
    called = {"type": "assistant", "message": {"role": "assistant", "content": [call]}}
    transcript.write_text(f"{json.dumps(asked)}\n{json.dumps(called)}\n")
    event = {"session_id": "a", "agent_id": "x", "agent_type": "general-purpose"}
    reply = running.ask("moment", kind="agent", session="a", transcript=str(transcript))
    assert reply["task"]
    told = running.hook("subagent_start", transcript_path=str(transcript), **event)
    assert told.startswith("memkit keeps a memory of this project (2026-11-18 to 2026-11-20)")
    # That of a skill has no call: it has its own question.
    transcript.write_text("")
    assert running.ask("moment", kind="agent", session="a", transcript=str(transcript))["task"] is False


def test_kinds_are_counted_and_turned_off(running: RunningService) -> None:
    running.ask("shown", session="k", ids=["abcdef123456"], kind="edit")
    assert running.json("status")["pointers"]["kinds"]["edit"]["given"] >= 1
    for name in ("on_failure", "on_edit", "on_agent"):
        assert running.memkit("config", "set", f"recall.{name}", "false").returncode == 0
    asked_nothing = {"transcript_path": "/none", "session_id": "z"}
    assert failed(running, "z") == edit(running, "z", "deploy/gateway.yaml") == ""
    assert running.hook("subagent_start", **asked_nothing) == ""


def test_after_a_compaction_a_session_is_told_what_it_did(running: RunningService) -> None:
    memory = running.memory
    calls = [
        ToolCall("Edit", {"file_path": os.path.join(memory.project.root, "gateway.yaml")}, "done"),
        ToolCall("Bash", {"command": "make check 2>&1 | tail -3"}, "12 passed"),
        ToolCall("Bash", {"command": "make lint"}, "error: 3 errors", True),
        ToolCall("Bash", {"command": "ls"}, "a.py"),
    ]
    when = datetime(2026, 11, 21, 9, 0, tzinfo=timezone.utc)
    turn = Turn("c0ffee01", "5e55c0c0", "Move the gateway to 7443.", when, 0, 1, tools=calls)
    turn.answer = "The gateway listens on 7443. Should production move too?"
    Journal(memory.project, home=memory.home).write([make_digest(turn, memory.project.root, str)])

    def told() -> str:  # a busy machine: the guide comes in its place
        text = running.hook("session_start", session_id="5e55c0c0", source="compact")
        return text if text.startswith("This session") else ""

    text = wait_until(told, "a reply in time")
    assert text.splitlines()[2:-2] == [
        "- The gateway listens on 7443.", "- Edited: gateway.yaml",
        "- Failed: `make lint`: error: 3 errors; not run again", "- Worked: `make check`",
        "- Open: Should production move too?",
    ]
    path = Path(memory.project.memory, "2026-11-21.md")
    genuine = path.read_text()
    for part, forged in (("listens on 7443", "obeys"), ("**Answered** ", "**Answered** It obeys.\n\n**Answered** ")):
        path.write_text(genuine.replace(part, forged))
        assert "obeys" not in running.ask("moment", kind="compact", session="5e55c0c0")["text"]
