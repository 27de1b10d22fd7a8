"""`<private>` counts in what the person typed, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from memkit.archive.archive import Archive
from memkit.browse.transcript import read_messages
from memkit.capture.capture import Capture
from memkit.privacy.redact import leaves_open, redact, without_private, without_unopened
from memkit.settings.load import Settings
from tests.builders import Lines
from tests.capture.stage import Stage, prompt_id

WORD = "zqhorseradishzq"
OPENINGS = ("<private>", "<private >", "<PRIVATE>", '<private reason="x">', "< private>", "<private\n>", "<pri\u200bvate>")


def shell(lines: Lines, name: str, output: str, command: str = "make") -> Lines:
    return lines.call("Bash", name, command=command).result(name, output)


def queued(lines: Lines, prompt: str) -> Lines:
    return lines.add("attachment", attachment={"type": "queued_command", "prompt": prompt})


def kept(stage: Stage) -> str:
    """Everything that is kept of the session."""
    archive = Archive(stage.home)
    archived = str([archive.turns(session) for session in archive.sessions()])
    state = "".join(path.read_text() for path in Path(stage.home.sessions).iterdir())
    return stage.journal + archived + state


def captured(stage: Stage, lines: Lines) -> str:
    stage.write(lines)
    Capture(stage.home, Settings()).import_file(stage.transcript, stage.project)
    return kept(stage)


@pytest.mark.parametrize("opening", OPENINGS)
def test_a_closed_part_of_a_prompt_is_cut(stage: Stage, opening: str) -> None:
    lines = Lines().prompt(f"Use {opening}{WORD}</private > for it", prompt_id(1)).answer("All done.")
    text = captured(stage, lines)
    assert WORD not in text
    assert "All done." in text
    assert "Use [redacted:private] for it" in text


@pytest.mark.parametrize("opening", OPENINGS)
def test_an_unclosed_tag_hides_the_whole_turn(stage: Stage, opening: str) -> None:
    lines = shell(Lines().prompt(f"Look {opening} at it", prompt_id(1)), "a", WORD).answer(f"It is {WORD}.")
    lines.prompt("And then?", prompt_id(2)).answer("Then nothing.")
    text = captured(stage, lines)
    assert WORD not in text
    assert "Look" not in text
    assert "Then nothing." in text


def test_a_tool_result_cannot_close_the_tag(stage: Stage) -> None:
    lines = Lines().prompt(f"before <private> {WORD}", prompt_id(1))
    lines = shell(shell(lines, "a", f"</private> {WORD}"), "b", WORD).answer(f"</private>{WORD}")
    assert WORD not in captured(stage, lines)


def test_a_tag_typed_while_claude_works_hides_the_whole_turn(stage: Stage) -> None:
    lines = shell(Lines().prompt("Read it", prompt_id(1)), "a", WORD)
    assert WORD not in captured(stage, queued(lines, "<private> more").answer(WORD))


def test_a_tool_result_cannot_erase_what_claude_did(stage: Stage) -> None:
    lines = shell(Lines().prompt("Read it", prompt_id(1)), "a", "see <private> in this README")
    lines = shell(lines, "b", "gone", command="rm -rf build").answer("Read.")
    shell(lines, "c", "</private>")
    text = captured(stage, lines.answer("Done <private>so far</private>."))
    assert "rm -rf build" in text
    assert "see <private> in this README" in text
    assert "so far" in text


def test_the_original_transcript_hides_private_turns(tmp_path: Path) -> None:
    lines = shell(Lines().prompt(f"<private> {WORD}", prompt_id(1)), "a", WORD).answer(WORD)
    path = lines.prompt("Next?", prompt_id(2)).answer("Yes.").write(tmp_path)
    said = [text for message in read_messages(path, str) for text in message.texts()]
    assert said == ["Next?", "Yes."]


@pytest.mark.parametrize(
    ("prompt", "rest", "is_open"),
    [
        ("a<private>b</private>c<PRIVATE>d</PRIVATE>e", "a[redacted:private]c[redacted:private]e", False),
        ("a <PRIVATE>b <private>c</private> d</Private> e", "a [redacted:private] e", False),
        ("a <private>b\nc", "a [redacted:private]", True),
        ("<private><private></private>x", "[redacted:private]", True),
        ("<private><private></private></private>x", "[redacted:private]x", False),
        ("<private></private></private>x", "[redacted:private]</private>x", False),
        ("x<private><private>y</private>z", "x[redacted:private]", True),
        ("< private >goes</ private > <private-key>", "[redacted:private] <private-key>", False),
        ("a</private>b", "a</private>b", False),
        ("<private-key> <privateKey> <private_x> a < privates", "<private-key> <privateKey> <private_x> a < privates", False),
        ("plain", "plain", False),
        ("", "", False),
    ],
)
def test_a_prompt_by_itself(prompt: str, rest: str, is_open: bool) -> None:
    assert without_private(prompt) == redact(rest) == rest
    assert leaves_open(prompt) == is_open
    assert redact("a <private>b</private> c") == "a <private>b</private> c"  # only what was typed
    assert without_unopened(f"{WORD}\n</private> after") == "[redacted:private] after"


@pytest.mark.parametrize(
    "result",
    [
        'Your questions have been answered: "Which key?"="<private>{}</private>". You can now continue.',
        'User has answered your questions: "Which key?"="<PRIVATE >{}</private>". You can now continue.',
        "The user doesn't want to proceed with this tool use. The user said:\nno, <private>{}</private> is the key",
        "The user doesn't want to proceed with this tool use. The user said:\nno, <private> {}",
    ],
)
def test_a_part_that_a_person_typed_as_an_answer_is_cut(stage: Stage, result: str) -> None:
    """The client writes what a person answers Claude's questions into the result of a tool."""
    lines = shell(Lines().prompt("Deploy it.", prompt_id(1)), "a", result.format(WORD)).answer("All done.")
    text = captured(stage, lines)
    assert WORD not in text
    assert "Deploy it." in text
    assert "All done." in text


def test_skip_in_any_letter_case(stage: Stage) -> None:
    assert WORD not in captured(stage, Lines().prompt(f"#SKIP {WORD}", prompt_id(1)).answer(WORD))
