"""What memkit tells a session is not captured from it again: the memory holds what people and Claude said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memkit.agents.omitted import asks_memory
from memkit.archive.archive import Archive
from memkit.capture.capture import Capture
from memkit.hook.entries import prompt_hint
from memkit.hook.guide import session_facts
from memkit.paths import Home
from memkit.pointers.prompts import find_pointers
from memkit.pointers.prompts import lay_out as lay_out_pointers
from memkit.questions.layout import lay_out
from memkit.search.results import SearchRequest
from memkit.settings.load import Settings
from tests.builders import Lines
from tests.ci import only_in_ci
from tests.memory import Memory, make_memory

FACT = "The zqhorseradish is kept below the stairs."
QUESTION = "Where do we keep the root for the sauce, below or above?"
SESSIONS = 10


class Told:
    """What memkit tells in a session, in every way it can."""

    def __init__(self, memory: Memory, number: int) -> None:
        project = memory.project
        self.brief = session_facts(project, 2000)
        self.beside = self.recalled = self.as_json = self.section = ""
        self.day = "".join(path.read_text() for path in sorted(Path(project.memory).glob("*.md")))
        if number:
            memory.sync()
            searcher = memory.searcher()
            pointers = find_pointers(searcher, QUESTION, "another", ())
            self.beside = lay_out_pointers(pointers) or prompt_hint(project, "9999-12-31")
            answer = searcher.answer(SearchRequest(FACT, 20, minimum=0))
            self.recalled = lay_out(answer, 2000)
            self.as_json = json.dumps(answer.as_dict())
            assert "zqhorseradish" in self.recalled
            assert "zqhorseradish" in self.brief


def session(number: int, told: Told | None, directory: Path) -> Path:
    """A session as the client writes it; None: one to which memkit says nothing."""
    name = f"{number:08x}-7d4e-4b8a-9f15-0c6d2e8b7a44"
    lines = Lines(name)

    def said(field: str) -> str:
        return str(getattr(told, field)) if told else ""

    def attach(event: str, text: str) -> None:
        output = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
        hook: dict[str, Any] = {"hookEvent": event, "hookName": event, "toolUseID": "h"}
        lines.add("attachment", attachment={**hook, "type": "hook_success", "stdout": json.dumps(output)})
        lines.add("attachment", attachment={**hook, "type": "hook_additional_context", "content": [text]})

    ids = iter(range(100))

    def ask(prompt: str, **fields: Any) -> None:
        lines.prompt(prompt, f"{number:08x}-{next(ids):04x}-4aaa-8bbb-ccccddddeeee", **fields)

    def call(tool: str, result: str, **given: Any) -> None:
        use = f"t{len(lines.entries)}"
        lines.call(tool, use, **given).result(use, result)

    attach("SessionStart", said("brief"))
    ask(f"Session {number}: {FACT}" if number in (0, 5) else f"Session {number}: build it.")
    attach("UserPromptSubmit", said("beside"))
    lines.answer(f"I see. {FACT}" if number == 3 else "It is built.")

    reminder = f"<system-reminder>\nUserPromptSubmit hook: {said('beside')}\n{said('brief')}</system-reminder>"
    blocks = [{"type": "text", "text": reminder}, {"type": "text", "text": f"{QUESTION} ({number})"}]
    lines.add("user", blocks, promptId=f"{number:08x}-00ff-4aaa-8bbb-ccccddddeeee")
    call("Skill", said("recalled"), skill="memkit:memory-recall", args=QUESTION)
    for command in (
        "memkit search 'root for the sauce' --json", "cd /home/shop && memkit search sauce -k 20",
        "MEMKIT_SEARCH_K=20 memkit search sauce | head -50", "/opt/memkit/bin/memkit recall --stdin < question",
        "python3 -m memkit expand 0123", "uv run memkit transcript 5e55", "x=$(memkit search sauce); echo $x",
        "cat .memkit/memory/2026-03-04.md", "grep -rn sauce .memkit/memory | tail -3",
    ):  # fmt: skip
        call("Bash", f"{said('recalled')}\n{said('as_json')}\n{said('day')}", command=command)
    call("Read", said("day"), file_path="/home/shop/.memkit/memory/2026-03-04.md")
    call("Grep", said("day"), pattern="sauce", path=".memkit/memory")
    agent = directory / name / "subagents" / "agent-a1.jsonl"
    agent.parent.mkdir(parents=True)
    own = Lines(name).prompt("Look it up").call("Bash", "s1", command="memkit search sauce")
    agent.write_text(own.result("s1", said("recalled")).text)
    lines.call("Agent", "agent", prompt="Look it up")
    lines.result("agent", "Nothing of use.", toolUseResult={"agentId": "a1"})
    lines.answer("Somewhere in the house.")

    ask(f"/memory-recall {QUESTION}")
    lines.add("user", f"<local-command-stdout>{said('recalled')}</local-command-stdout>")
    ask("Goodbye.")
    lines.add("user", said("recalled") or "nothing", isMeta=True)
    lines.answer("Goodbye.")
    return lines.write(directory)


class Run:
    """Ten sessions, one after the other, each captured and indexed before the next."""

    def __init__(self, root: Path, *, is_told: bool) -> None:
        root.mkdir()
        self.memory = make_memory(root)
        self.sizes: list[int] = []
        for number in range(SESSIONS):
            told = Told(self.memory, number) if is_told else None
            directory = root / f"transcripts-{number}"
            directory.mkdir()
            path = session(number, told, directory)
            Capture(self.memory.home, Settings()).import_file(path, self.memory.project)
            self.memory.sync()
            self.sizes.append(len(self.journal) + len(self.archive))

    @property
    def journal(self) -> str:
        return "".join(path.read_text() for path in sorted(Path(self.memory.project.memory).glob("*.md")))

    @property
    def archive(self) -> str:
        home: Home = self.memory.home
        archive = Archive(home)
        return "\n".join(str(archive.turns(one)) for one in sorted(archive.sessions()))

    @property
    def index(self) -> str:
        return "\n".join(chunk.content for chunk in self.memory.snapshot.chunks())


@only_in_ci
def test_ten_sessions_that_read_the_memory_add_nothing_to_it(tmp_path: Path) -> None:
    told, untold = Run(tmp_path / "told", is_told=True), Run(tmp_path / "untold", is_told=False)
    assert told.journal == untold.journal
    assert told.index == untold.index
    assert told.archive.replace(str(tmp_path / "told"), "") == untold.archive.replace(str(tmp_path / "untold"), "")
    body = [line for line in told.journal.split("\n") if FACT in line and not line.startswith("#")]
    assert len(body) == 3  # twice by the person, once by Claude
    assert told.archive.count(FACT) == 3
    grown = [after - before for before, after in zip(told.sizes, told.sizes[1:], strict=False)]
    assert max(grown) < 1.2 * min(grown)


@pytest.mark.parametrize(
    "command",
    ["git commit -m 'memkit search'", "echo memkit search", "memkit status", "memkit index", "memkitx search a",
     "grep memkit src", "cat notes/memory.md", "cd memkit && make search"],
)  # fmt: skip
def test_other_commands_are_remembered(command: str) -> None:
    assert not asks_memory("Bash", {"command": command})


def test_editing_the_memory_through_claude_is_remembered() -> None:
    assert not asks_memory("Edit", {"file_path": ".memkit/memory/2026-03-04.md", "old_string": "a"})


def test_telling_costs_little() -> None:
    for text in ("x=1 ", "\n", ";", "/", "a/", " ", "x=", "$(", "\n \t"):
        assert not asks_memory("Bash", {"command": text * 20_000})


def test_a_tool_of_memkit_asks_the_memory() -> None:
    for name in ("mcp__memkit__memory_search", "memkit-memory_timeline", "memkit.memory_expand"):
        assert asks_memory(name, {"query": "port"})
    for name in ("mcp__memkit__memory_remember", "mcp__other__memory_search", "memory_search"):
        assert not asks_memory(name, {"text": "port"})


@pytest.mark.parametrize("path", ["memory/2026-03-04.md", "/home/you/shop/memory/2026-03-04.md"])
def test_a_day_in_openclaws_folder_is_memory_too(path: str) -> None:
    assert asks_memory("Read", {"file_path": path})
    assert asks_memory("Bash", {"command": f"grep -r port '{path}'"})
    assert not asks_memory("Edit", {"file_path": path, "old_string": "a"})
    assert not asks_memory("Read", {"file_path": path.replace("memory", "in-memory")})
    assert not asks_memory("Read", {"file_path": path.replace("2026-03-04", "people")})
