"""A private part that begins in one piece of a conversation and ends in another stays private."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memkit.capture.archive import Archive
from memkit.capture.capture import Capture
from memkit.capture.private_parts import MAX_ENTRIES, without_unopened
from memkit.capture.transcript import Transcript
from memkit.config import Settings

from ..remember.builders import Lines
from .stage import Stage, prompt_id

WORD = "zqhorseradishzq"
OPEN, CLOSED = f"before <private>\n{WORD}", f"{WORD}\n</private> after"
PEM = ("-----BEGIN RSA PRIVATE ", "KEY-----", "-----END RSA PRIVATE ")


def asked() -> Lines:
    return Lines().prompt("Read it", prompt_id(1))


def shell(lines: Lines, name: str, output: str, command: str = "make") -> Lines:
    return lines.call("Bash", name, command=command).result(name, output)


def queued(lines: Lines, prompt: str) -> Lines:
    return lines.add("attachment", attachment={"type": "queued_command", "prompt": prompt})


def text_blocks(*texts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text} for text in texts]


def result_of(*texts: str) -> list[dict[str, object]]:
    return [{"type": "tool_result", "tool_use_id": "a", "content": text_blocks(*texts)}]


ATTACKS: dict[str, Callable[[], Lines]] = {
    "two results": lambda: shell(shell(asked(), "a", OPEN), "b", CLOSED),
    "three results": lambda: shell(shell(shell(asked(), "a", OPEN), "b", WORD), "c", CLOSED),
    "nested in three": lambda: shell(
        shell(shell(asked(), "a", OPEN), "b", f"</private>{OPEN}"), "c", f"{OPEN}</private>{WORD}</private>"
    ),
    "call and result": lambda: shell(asked(), "a", CLOSED, command=f"echo '{OPEN}'"),
    "result and answer": lambda: shell(asked(), "a", OPEN).answer(CLOSED),
    "two answers": lambda: asked().answer(OPEN).answer(CLOSED),
    "typed while it worked": lambda: queued(Lines().prompt(OPEN, prompt_id(1)), CLOSED),
    "prompt and result": lambda: shell(Lines().prompt(OPEN, prompt_id(1)), "a", CLOSED),
    "blocks of a prompt": lambda: Lines().add("user", text_blocks(OPEN, CLOSED), promptId=prompt_id(1)),
    "blocks of a result": lambda: (
        asked().call("Bash", "a", command="x").add("user", result_of(OPEN, CLOSED))
    ),
    "parts of an input": lambda: asked().call("MultiEdit", "a", edits=[{"a": OPEN}, {"b": [WORD, CLOSED]}]),
    "ends and begins": lambda: shell(shell(shell(asked(), "a", OPEN), "b", f"{CLOSED} {OPEN}"), "c", CLOSED),
    "never ends": lambda: shell(asked(), "a", f"{OPEN} {WORD}"),
    "a long result": lambda: shell(shell(asked(), "a", OPEN + f"\n{WORD}" * 900), "b", CLOSED),
    "a long prompt": lambda: Lines().prompt(f"{'q ' * 900}{OPEN}{WORD * 300}</private>{' e' * 900}", prompt_id(1)),
    "a long key": lambda: shell(
        asked(), "a", "\n".join([PEM[0] + PEM[1], *[(WORD + "A1b2" * 16)[:64]] * 200, PEM[2] + PEM[1]])
    ),
    "skipped while it worked": lambda: queued(Lines().prompt(WORD, prompt_id(1)), f"{WORD} #skip"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_private_is_kept(stage: Stage, attack: str) -> None:
    stage.write(ATTACKS[attack]().answer("All done."))
    stage.handle("Stop", late=True, prompt_id=prompt_id(1), message="All done.")
    archive = Archive(stage.home)
    archived = str([archive.turns(session) for session in archive.sessions()])
    state = "".join(path.read_text() for path in Path(stage.home.sessions).iterdir())
    assert WORD not in stage.journal + archived + state
    if "skip" not in attack:
        assert "All done." in stage.journal


def test_what_follows_a_part_that_never_ends_is_kept(stage: Stage) -> None:
    lines = shell(shell(asked(), "a", "see <private> in the README"), "b", "12 passed").answer("Seen.")
    stage.write(lines.prompt("And </private> now?", prompt_id(2)).answer("Now too."))
    Capture(stage.home, Settings()).import_file(stage.transcript, stage.own_project)
    assert "12 passed" in stage.journal
    assert "And </private> now?" in stage.journal


def test_entries_stay_in_order_and_whole(tmp_path: Path) -> None:
    lines = shell(shell(asked(), "a", "<private>"), "b", "no tag").answer("x")
    lines.prompt("<private> y", prompt_id(2)).answer("z")
    read = list(Transcript(lines.write(tmp_path)))
    assert [entry.uuid for entry in read] == [entry["uuid"] for entry in lines.entries]
    assert [block.text for entry in read for block in entry.blocks if block.kind == "tool_result"] == ["<private>", "no tag"]


def test_a_long_turn_is_not_held_for_ever(tmp_path: Path) -> None:
    lines = shell(asked(), "a", "<private>" * 5000)
    for number in range(MAX_ENTRIES):
        shell(lines, f"t{number}", "<private>" * 300)
    path = lines.write(tmp_path)
    entries = iter(Transcript(path))
    for _ in range(MAX_ENTRIES):
        next(entries)
    assert len(list(entries)) == 3 + 2 * MAX_ENTRIES - MAX_ENTRIES


@pytest.mark.parametrize(
    ("prompt", "kept"),
    [
        (CLOSED, "[redacted:private] after"),
        (f"<private>{WORD}</private> b", f"<private>{WORD}</private> b"),
        (f"{WORD}</private>{WORD}</private> c", "[redacted:private] c"),
        ("plain", "plain"),
    ],
)
def test_a_prompt_by_itself(prompt: str, kept: str) -> None:
    assert without_unopened(prompt) == kept
