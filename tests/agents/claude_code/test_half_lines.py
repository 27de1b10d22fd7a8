"""What a power cut left of a line, with the next one written directly behind it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memkit.agents import session_file
from memkit.agents.claude_code.transcript import Transcript
from memkit.agents.turns import read_turns
from memkit.browse.transcript import read_messages
from memkit.conversation.turn import Turn
from tests.builders import SESSION
from tests.capture.stage import Stage, prompt_id
from tests.ci import IN_CI, sized

pytestmark = pytest.mark.usefixtures("unsynced")


def uuid(number: int) -> str:
    return f"{number:08x}-aaaa-4bbb-8ccc-0123456789ab"


def line(number: int, kind: str, content: Any, **fields: Any) -> str:
    """In the order in which the client writes them; each line follows the one before."""
    message: dict[str, Any] = {"role": kind, "content": content}
    value: dict[str, Any] = {"parentUuid": uuid(number - 1) if number else None, "isSidechain": False, **fields}
    if kind == "user":
        value |= {"type": kind, "message": message}
    else:
        value |= {"message": {"id": "m", "type": "message", **message}, "type": kind}
    place = {"cwd": "/home/shop", "sessionId": SESSION, "gitBranch": "main"}
    return json.dumps({**value, "uuid": uuid(number), "timestamp": f"2026-03-04T10:00:{number:02d}.000Z", **place})


def prompt(number: int, text: str, turn: int) -> str:
    return line(number, "user", text, promptId=prompt_id(turn))


def answer(number: int, text: str) -> str:
    return line(number, "assistant", [{"type": "text", "text": text}])


def attachment(number: int) -> str:
    value = {"parentUuid": uuid(number - 1), "attachment": {"type": "model"}, "type": "attachment"}
    return json.dumps({**value, "uuid": uuid(number), "timestamp": f"2026-03-04T10:00:{number:02d}.000Z"})


QUESTION = 'Where is the "second" \\ thing kept, über all?'
WHOLE = [
    prompt(0, "First?", 1), answer(1, "One."), prompt(2, QUESTION, 2), attachment(3), answer(4, "Two."),
    prompt(5, "Third?", 3), answer(6, "Three."),
]  # fmt: skip


def torn(stage: Stage, number: int, kept: int, *, newline: bool = False) -> list[Turn]:
    """The turns of a transcript whose line `number` was cut off after `kept` bytes."""
    lines = [one.encode() for one in WHOLE]
    glued = lines[number][:kept] + (b"\n" if newline else b"") + lines[number + 1]
    stage.transcript.write_bytes(b"\n".join([*lines[:number], glued, *lines[number + 2 :]]) + b"\n")
    return list(read_turns(Transcript(stage.transcript)))


@pytest.mark.parametrize("newline", [False, True])
@pytest.mark.parametrize("number", range(len(WHOLE) - 1))
def test_no_answer_goes_to_the_previous_turn(stage: Stage, number: int, newline: bool) -> None:
    for kept in range(1, len(WHOLE[number].encode()), sized(31, 7, 1)):
        turns = torn(stage, number, kept, newline=newline)
        answers = {turn.prompt: turn.answer for turn in turns}
        assert answers.get("First?", "") in ("", "One."), kept
        assert answers.get("Third?", "") in ("", "Three."), kept
        said = [turn.answer for turn in turns]
        lost = {1: "One.", 4: "Two."}.get(number)
        assert [text for text in said if text] == [text for text in ("One.", "Two.", "Three.") if text != lost]
        for place, turn in enumerate(turns):  # reading on from any turn is the same
            again = list(read_turns(Transcript(stage.transcript, turn.start)))
            assert [one.id for one in again] == [one.id for one in turns[place:]]
            assert [one.answer for one in again] == said[place:]
        messages = [message.text for message in read_messages(stage.transcript, str)]
        assert "Three." in messages


def test_a_live_session_gets_the_answer_once(stage: Stage) -> None:
    stage.transcript.write_text("\n".join(WHOLE[:2]) + "\n")
    stage.handle("Stop", prompt_id=prompt_id(1), late=True)
    for kept in (3, 40, len(WHOLE[2]) - 200):
        torn(stage, 2, kept)
        stage.handle("Stop", prompt_id=prompt_id(2), late=True)
        assert [said for _, said in stage.turns].count("One.") == 1
    stage.handle("SessionEnd")
    answers = [said for _, said in stage.turns]
    assert answers.count("One.") == answers.count("Three.") == 1
    assert not any("One." in said and "Two." in said for said in answers)


@settings(max_examples=30 if IN_CI else 6)
@given(count=st.integers(1, 3_000), piece=st.sampled_from(['{"type":', '{"type":"x"', '{"uuid":"', '{"type":{']))
def test_looking_for_an_object_is_bounded(count: int, piece: str) -> None:
    looked = []
    parsed = session_file._parsed

    def counting(line: bytes) -> Any:
        looked.append(len(line))
        return parsed(line)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_file, "_SALVAGE_BYTES", 50_000)
        patch.setattr(session_file, "_parsed", counting)
        assert session_file._objects_at_end(piece.encode() * count + b"\n")[1] == []
    assert sum(looked) <= 50_000


def read(stage: Stage, data: str) -> tuple[list[Any], dict[str, int]]:
    stage.transcript.write_bytes(data.encode("utf-8", "surrogatepass"))
    transcript = Transcript(stage.transcript)
    return [(one.role, one.uuid, one.text, one.gap) for one in transcript], dict(transcript.counts)


OBJECTS = st.one_of(
    st.builds(prompt, st.integers(0, 59), st.text(), st.integers(0, 9)),
    st.builds(answer, st.integers(0, 59), st.text()),
    st.sampled_from([attachment(3), '{"type":"summary","summary":"{\\"type\\":\\"user\\"}","leafUuid":"x"}', "{}"]),
)


@settings(max_examples=200 if IN_CI else 40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(objects=st.lists(OBJECTS, max_size=8), data=st.data())
def test_a_missing_newline_loses_nothing(stage: Stage, objects: list[str], data: st.DataObject) -> None:
    glued = "".join(one + data.draw(st.sampled_from(["", "\n", " ", " \n"])) for one in objects)
    assert read(stage, glued + "\n") == read(stage, "\n".join([*objects, ""]))


@settings(max_examples=100 if IN_CI else 20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kept=st.integers(1, 150))
def test_whole_objects_around_half_of_one_are_kept(stage: Stage, kept: int) -> None:
    """Whether the end of the line is broken, or its middle."""
    for after in ([], [WHOLE[4]], WHOLE[4:]):
        entries, counts = read(stage, "".join([*WHOLE[:2], WHOLE[2][:kept], *after]) + "\n")
        assert [one[1] for one in entries] == [uuid(n) for n in (0, 1, *range(4, 4 + len(after)))]
        assert counts["broken"] == 1


@pytest.mark.parametrize("one", ["{}", '{"type":"new"}', '{"type":1}'])
def test_a_line_of_countless_objects_gives_some(stage: Stage, one: str) -> None:
    _, counts = read(stage, one * 4000 + "\n")
    assert counts["broken"] == 1
    assert session_file._SALVAGED <= sum(counts.values()) - 1 <= 2 * session_file._SALVAGED
