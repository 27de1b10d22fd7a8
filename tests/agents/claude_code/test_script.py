"""Calls in the scripts of Code Mode. The shape is constructed: see `memkit.agents.claude_code.script`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.agents.claude_code.script import calls_in
from memkit.agents.claude_code.transcript import Transcript
from memkit.agents.omitted import EXCLUDED, FROM_MEMORY, Hidden
from memkit.agents.turns import read_turns
from memkit.conversation.turn import ToolCall
from tests.builders import Lines
from tests.ci import examples

SCRIPT = """// Edit({file_path: "comment.py"})
const { filenames } = await Glob({ pattern: 'src/**/*.ts' })
for (const f of filenames) await Read({ file_path: f, limit: 10 })
await Promise.all([
  Edit({ file_path: "src/a.ts", edits: [{ old: "x" }], old_string: 'it\\'s', new_string: `b${1}` }),
  tools.Write({ file_path: `/tmp/b.ts`, content: "Edit({file_path: 'inside.ts'})" }),
])
await Edit({ file_path: dir + "/part.ts", old_string: "a" })
const { stdout } = await Bash({ command: "npm test -- " + name, description: "Test" })
await $`git commit -m ${msg}`
"""


def test_literals_of_calls() -> None:
    assert calls_in(SCRIPT) == [
        ("Edit", {"file_path": "src/a.ts", "old_string": "it's"}),
        ("Write", {"file_path": "/tmp/b.ts", "content": "Edit({file_path: 'inside.ts'})"}),
        ("Edit", {"old_string": "a"}),
        ("Bash", {"command": "npm test -- ", "description": "Test"}),
        ("Bash", {"command": "git commit -m ${msg}"}),
    ]


@given(st.text("`'\"\\${}()[]/*\nA:,Bash Edit file_path", max_size=60))
@settings(max_examples=examples(300))
def test_any_text_is_read(code: str) -> None:
    calls_in(code)
    calls_in(f"Bash({{command: {code}")


@pytest.mark.parametrize("piece", ["`", "'", "/*", "//", "A(", "Edit({", "a:", "\\", "$`", " ", "a"])
def test_a_long_script_is_read_in_one_go(piece: str) -> None:
    calls_in(piece * 100_000)


def calls_of(tmp_path: Path, code: str, result: str = "", *, is_error: bool = False, **more: Any) -> list[ToolCall]:
    lines = Lines().prompt("Go.").call("REPL", "t1", code=code).result("t1", result, is_error=is_error)
    path = tmp_path / "s.jsonl"
    path.write_text(lines.answer("Done.").text)
    (turn,) = read_turns(Transcript(path, **more))
    assert turn.answer == "Done."
    return turn.tools


def shown(calls: list[ToolCall]) -> list[tuple[str, str | None, bool]]:
    return [(call.name, call.result, call.is_error) for call in calls]


def test_the_only_command_has_the_result(tmp_path: Path) -> None:
    (script, command) = calls_of(tmp_path, "await Bash({command: 'pytest'})", "1 failed", is_error=True)
    assert command.input == {"command": "pytest"} and script.input["command"].startswith("await Bash")
    assert shown([script, command]) == [("REPL", "", False), ("Bash", "1 failed", True)]


def test_of_several_calls_none_has_it(tmp_path: Path) -> None:
    code = "await Edit({file_path: 'a.py'}); await Bash({command: 'pytest'})"
    assert shown(calls_of(tmp_path, code, "ok")) == [("REPL", "ok", False), ("Edit", "", False), ("Bash", None, False)]
    assert shown(calls_of(tmp_path, code, "Error: no", is_error=True)) == [
        ("REPL", "Error: no", True), ("Edit", None, False), ("Bash", None, False),
    ]  # fmt: skip


@pytest.mark.parametrize("has_script", [True, False])
def test_calls_that_the_client_writes_are_not_guessed(tmp_path: Path, has_script: bool) -> None:
    """As client 2.1.197 writes them: by a model of its own, without the script."""
    lines = Lines().prompt("Go.")
    if has_script:
        lines.call("REPL", "t1", code="await Bash({command: 'ls /nowhere'})")
    block = {"type": "tool_use", "id": "repl_1", "name": "Bash", "input": {"command": "ls /nowhere"}}
    lines.add("assistant", message={"role": "assistant", "model": "<synthetic>", "content": [block]})
    lines.result("repl_1", "Exit code 2", is_error=True)
    path = tmp_path / "s.jsonl"
    path.write_text((lines.result("t1", "{error}") if has_script else lines).answer("Done.").text)
    (turn,) = read_turns(Transcript(path))
    own = [("REPL", "{error}", False)] if has_script else []
    assert shown(turn.tools) == [*own, ("Bash", "Exit code 2", True)]


def test_what_is_hidden_stays_hidden(tmp_path: Path) -> None:
    code = "await Read({file_path: 'keys.pem'}); await Bash({command: 'ls'})"
    calls = calls_of(tmp_path, code, "-----BEGIN", hide=Hidden(["*.pem"]))
    assert [call.result for call in calls] == [EXCLUDED, EXCLUDED, None]
    assert "pem" not in str(calls)
    code = "await Bash({command: 'memkit search port'}); await Edit({file_path: 'a.py'})"
    assert [call.result for call in calls_of(tmp_path, code, "7443")] == [FROM_MEMORY, None, ""]
