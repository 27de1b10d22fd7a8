"""The cuts between segments depend only on the turns."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from memkit.agents.claude_code.transcript import Transcript
from memkit.agents.claude_code.turn import read_turns
from memkit.archive.turn import ArchivedTurn, make_archived_turn
from memkit.conversation.turn import Message, ToolUse
from memkit.settings import SummarizeSettings
from memkit.summarize.segments import Segment, SegmentTurn, _duration, cut
from memkit.text import estimate_tokens
from tests.builders import Lines
from tests.summarize.stage import SummaryStage

START = datetime(2026, 11, 20, 9, 0)


def turn(
    number: int, minutes: float, *, lasts: float = 0, tokens: int = 100, compacted: bool = False
) -> SegmentTurn:
    began = START + timedelta(minutes=minutes)
    ended = began + timedelta(minutes=lasts)
    text = f"{number:04d}".ljust(tokens * 4, "x")
    return SegmentTurn(f"t{number}", began.strftime("%H:%M"), began, ended, text, compacted)


def cuts(turns: list[SegmentTurn], **settings: object) -> list[list[str]]:
    made = cut("s", "2026-11-20", turns, [], SummarizeSettings(**settings))  # type: ignore[arg-type]
    return [[one.id for one in segment.turns] for segment in made]


def test_where_a_segment_ends() -> None:
    assert cuts([turn(1, 0), turn(2, 30), turn(3, 61)]) == [["t1", "t2"], ["t3"]]  # at a pause
    assert cuts([turn(1, 0, lasts=50), turn(2, 70)]) == [["t1", "t2"]]  # a long turn is none
    turns = [turn(n, n, tokens=1500) for n in range(5)]
    assert cuts(turns) == [["t0", "t1"], ["t2", "t3"], ["t4"]]  # before it is too long
    assert cuts([turn(1, 0), turn(2, 1, tokens=9000), turn(3, 2)]) == [["t1"], ["t2"], ["t3"]]
    assert cuts([turn(1, 0), turn(2, 1, compacted=True), turn(3, 2)]) == [["t1", "t2"], ["t3"]]
    assert cuts([turn(1, 0), turn(2, 1)], mode="turn") == [["t1"], ["t2"]]


def ends(*messages: tuple[float, str, str | None], silence: float = 30) -> float:
    """The minute at which a turn ends; messages are (minute, role, result of a tool)."""
    said = tuple(
        Message(
            role,
            (START + timedelta(minutes=minute)).astimezone(),
            "Text.",
            () if result is None else (ToolUse("Bash", {}, result),),
            "t1",
        )
        for minute, role, result in messages
    )
    turn = ArchivedTurn("t1", said, time=said[0].time, finished=said[-1].time)
    return _duration(turn, silence) / timedelta(minutes=1)


CUT_SHORT = "[Tool call interrupted: the session ended before this call's result was recorded, so its outcome is unknown."


def test_a_turn_ends_before_a_silence_in_which_no_tool_ran() -> None:
    assert ends((0, "user", None), (5, "assistant", None)) == 5
    assert ends((0, "user", None), (90, "tool", "12 passed"), (91, "assistant", None)) == 91
    # A resumed session adds to the turn before: the result of a tool that was cut short, a notice.
    assert ends((0, "user", None), (5, "assistant", None), (300, "tool", CUT_SHORT), (300, "assistant", None)) == 5
    assert ends((0, "user", None), (5, "assistant", None), (300, "assistant", None)) == 5
    assert ends((0, "user", None), (5, "assistant", None), (25, "tool", CUT_SHORT)) == 25
    assert ends((10, "user", None), (5, "assistant", None)) == 0  # the clock was set back


def test_a_pause_before_a_resumed_session_is_a_pause(tmp_path: Path) -> None:
    """As the client writes it when a session ended while a tool ran, and is resumed the same day."""
    stage = SummaryStage(tmp_path)
    lines = Lines()
    times = iter(["09:00:00", "09:00:05", "09:00:09", "14:00:00", "14:00:00", "14:00:02", "14:00:09"])

    def at() -> dict[str, str]:
        return {"timestamp": f"2026-11-20T{next(times)}.000Z"}

    lines.prompt("Which port?", "p1", **at())
    lines.add("assistant", [{"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "make"}}], **at())
    lines.answer("Now it runs.", **at())
    lines.result("c1", CUT_SHORT, is_error=True, promptId="p2", **at())
    lines.add("assistant", [{"type": "text", "text": "No response requested."}], **at())
    lines.entries[-1]["message"]["model"] = "<synthetic>"
    lines.prompt("Go on.", "p2", **at())
    lines.answer("It listens on 7443.", **at())
    path = lines.write(tmp_path)
    made = [
        (turn, make_archived_turn(turn, stage.project.root, path, str))
        for turn in read_turns(Transcript(path))
    ]
    assert len(made) == 2
    stage.add({made[0][0].session: made})
    found = stage.summarizer.select(stage.project, "2026-11-01")
    assert [len(one.segment.turns) for one in found] == [1, 1]


def test_the_context_is_what_was_said_just_before() -> None:
    turns = [turn(1, 0, tokens=1900), turn(2, 1, tokens=1900), turn(3, 2, tokens=300)]
    first, second = cut("s", "2026-11-20", turns, [], SummarizeSettings())
    assert first.context == ""
    assert second.turns[0].id == "t3"
    assert second.context.startswith("… ") or second.context.startswith("x")
    assert 0 < estimate_tokens(second.context) <= 501
    after_pause = cut("s", "2026-11-20", [turn(1, 0), turn(2, 60)], [], SummarizeSettings())[1]
    assert after_pause.context == ""


def test_when_the_last_segment_is_closed() -> None:
    segment = Segment("s", "2026-11-20", (turn(1, 0),))
    for minutes, is_live, is_closed in (
        (0, True, False), (30, True, False), (31, True, True), (0, False, True), (24 * 60, True, True),
    ):  # fmt: skip
        now = START + timedelta(minutes=minutes)
        assert segment.is_closed(now, SummarizeSettings(), is_live=is_live) is is_closed
    assert [estimate_tokens(text) for text in ("记忆记忆", "abcdefgh", "")] == [4, 2, 0]


made_turns = st.lists(
    st.tuples(st.integers(0, 90), st.integers(0, 40), st.integers(1, 5000), st.booleans()),
    min_size=1,
    max_size=30,
)


@given(made_turns, st.integers(1, 29))
def test_a_closed_segment_stays_when_turns_are_added(
    steps: list[tuple[int, int, int, bool]], known: int
) -> None:
    minutes, turns = 0.0, []
    for number, (pause, lasts, tokens, compacted) in enumerate(steps):
        minutes += pause
        turns.append(turn(number, minutes, lasts=lasts, tokens=tokens, compacted=compacted))
        minutes += lasts
    whole = cuts(turns)
    assert [one for segment in whole for one in segment] == [one.id for one in turns]
    early = cut("s", "2026-11-20", turns[:known], [], SummarizeSettings())
    closed = [[one.id for one in segment.turns] for segment in early if segment.is_followed]
    assert closed == whole[: len(closed)]
