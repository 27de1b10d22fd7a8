"""Whatever stands in a memory, no command passes on what steers a terminal or turns text around."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from memkit.archive.archive import Archive
from memkit.archive.turn import ArchivedTurn
from memkit.conversation.turn import Message, ToolUse
from tests.cli.conftest import Run, lexical_memory
from tests.memory import Memory

HOSTILE = (
    "\x1b]52;c;ZXZpbA==\x07 \x1b[2J\x1b[31mred\x1b[0m \x9b31m \x9d52;c;AA\x9c \x85 \x08\x08\x7f\x00"
    " \u202egnirts\u202c \u2066isolated\u2069 \u200f\u061c \u2028\u2029 \r over"
)
# ESC may begin a style of memkit's own where colors are on; here they are off.
UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
SESSION = "5e550000"
GRIP = "k3f9a1"


def written(text: str) -> str:
    """A day that says `text` wherever a day can."""
    said = text.replace("\x00", "")
    return (
        f"# 2026-11-20\n\n## 14:02 Gateway {said} <!-- session:{SESSION} branch:main -->\n\n"
        f"- Decided: the gateway {said} listens. <!-- grip:{GRIP} turns:8ad3df7f -->\n\n"
        f"### 14:02 Which gateway {said}? <!-- turn:8ad3df7f -->\n**Asked** Which gateway {said}?\n"
        f"**Did** Read deploy/{said}.yaml\n**Answered** The gateway {said} answers.\n\n"
        f"## 15:00 Note <!-- note:abcdef01 -->\n\nThe gateway {said} moves.\n"
    )


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Memory:
    """A hostile memory that the commands only read: the first one indexes it."""
    return hostile_memory(tmp_path_factory.mktemp("hostile"))


def hostile_memory(root: Path) -> Memory:
    made = lexical_memory(root, {"2026-11-20.md": "", "MEMORY.md": ""})
    # As a hostile repository would commit it: not written by memkit.
    Path(made.project.memory, "2026-11-20.md").write_bytes(written(HOSTILE).encode())
    facts = f"# Facts\n\n- The gateway {HOSTILE}. <!-- fact:0badcafe turns:8ad3df7f -->\n"
    Path(made.project.memory, "MEMORY.md").write_bytes(facts.encode())
    tool = ToolUse("Read", {"file_path": HOSTILE}), ToolUse("Read", result=HOSTILE)
    messages = tuple(Message(role, None, HOSTILE, tool, "8ad3df7f") for role in ("user", "assistant", HOSTILE))
    turn = ArchivedTurn("8ad3df7f", messages, project=made.project.root, branch=HOSTILE, commit=HOSTILE)
    Archive(made.home).append(SESSION, [turn])
    return made


COMMANDS = [
    ("search", "gateway"), ("search", "gateway", "--explain"), ("search", "gateway", "--all-projects"),
    ("recall", "--stdin"), ("sessions",), ("sessions", "--all-projects"), ("timeline",), ("timeline", "2026-11-20"),
    ("timeline", "8ad3df7f"), ("timeline", "8ad3df7f", "--events"), ("timeline", "--search", "gateway"),
    ("timeline", "--depth", "5"), ("show", "2026-11-20"), ("show", SESSION), ("show", "8ad3df7f"), ("show", GRIP),
    ("show", "abcdef01"), ("show", "0badcafe"), ("transcript",), ("transcript", SESSION),
    ("transcript", SESSION, "--turn", "8ad3df7f"), ("cite", GRIP), ("why", "deploy"), ("why", "gateway"),
    ("resume", "gateway"), ("resume", SESSION), ("export",), ("export", "--with-anchors"),
    ("export", "--format", "html"), ("export", "--format", "jsonl"), ("forget", "--everything", "--dry-run"),
    ("forget", "--query", "gateway", "--dry-run"), ("audit",), ("doctor",), ("logs",), ("status",), ("stats",),
    ("projects",), ("compact", "--dry-run"), ("remember", f"The gateway {HOSTILE}".replace("\x00", "")),
]  # fmt: skip


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_nothing_unsafe_is_printed(
    run: Run, memory: Memory, tmp_path: Path, arguments: tuple[str, ...], as_json: bool
) -> None:
    if arguments[0] in ("stats", "remember"):
        memory = hostile_memory(tmp_path)
    if arguments[0] == "stats":  # of turns
        day = memory.path("2026-11-20.md")
        day.write_bytes(day.read_bytes().partition(b"## 15:00 Note")[0])
    run(memory, "index")
    if as_json and arguments[0] == "export":
        pytest.skip("prints no JSON of its own")
    done = run(memory, *arguments, *(["--json"] if as_json else []), stdin=b"gateway")
    assert done.output, done.errors
    assert not UNSAFE.search(done.output)
    assert not UNSAFE.search(done.errors)
    if arguments[0] in ("search", "recall", "show", "transcript", "cite", "export"):
        assert "gateway" in done.output.lower() or "over" in done.output


def test_a_section_is_safe(run: Run, memory: Memory) -> None:
    run(memory, "index")
    found = run(memory, "search", "gateway", "--json").json["results"]
    for result in found:
        for as_json in ([], ["--json"]):
            done = run(memory, "expand", result["id"], *as_json)
            assert done.status == 0
            assert not UNSAFE.search(done.output + done.errors)


def test_json_says_the_same(run: Run, memory: Memory) -> None:
    run(memory, "index")
    done = run(memory, "transcript", SESSION, "--json")
    assert json.loads(done.output)["messages"][0]["tools"][0]["input"]["file_path"].count("\u2028") == 1
    assert "\\u2028" in done.output


@pytest.mark.parametrize("kind", ["md", "html", "jsonl"])
def test_an_export_keeps_the_text_without_control_characters(
    run: Run, memory: Memory, tmp_path: Path, kind: str
) -> None:
    run(memory, "index")
    path = tmp_path / "export"
    assert run(memory, "export", "--format", kind, "--output", str(path)).status == 0
    text = path.read_text()
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
    assert "gateway" in text
    if kind == "md":
        assert "\u202egnirts" in text
