"""Events as the real client fires them, with its own transcripts; and everything that can come between."""

from __future__ import annotations

import pytest

from memkit.capture.capture import BATCH_TURNS, Capture, TranscriptBehind
from memkit.capture.sessions import Sessions
from memkit.capture.summary_queue import SummaryQueue
from memkit.settings.load import Settings
from tests.builders import SESSION, Lines
from tests.capture.stage import Stage, prompt_id


def test_a_failure_is_not_an_answer(stage: Stage) -> None:
    stage.use("api-errors")
    first, second = "22474978-fcee-44d2-8032-8b70220fa8c6", "731f3222-31ab-480b-a07d-6ec28b6515fb"
    for late in (False, True):
        for name in (first, second):
            stage.handle("StopFailure", prompt_id=name, late=late)
    assert stage.turns == [("ask me", "Part."), ("again", "")]
    assert "API Error" not in stage.journal
    assert "API Error" not in (stage.root / f"home/sessions/{SESSION}.json").read_text()


def test_a_background_task_answers_in_the_turn_that_began_it(stage: Stage) -> None:
    stage.use("background-skill")
    news = "57608ddf-68f6-4744-a3f7-e8149b50769e"
    stage.handle("Stop", prompt_id=news)
    stage.handle("SessionEnd", prompt_id="8be5a18f-41ac-484d-9ecc-98201268dc15")
    assert stage.turns == [("/shop:bgfork what's x?", "Understood.")]


def test_queued_prompts(stage: Stage) -> None:
    stage.use("queued-until-the-end")
    first, third = "c6a1bcae-94ed-418c-abdc-5874ddaffb53", "0e4de6d0-cc24-4505-81cd-f9309e5d4b0a"
    stage.handle("Stop", prompt_id=first)
    assert stage.turns == [("first task", "First done.")]
    stage.handle("Stop", prompt_id=third)
    expected = [("first task", "First done."), ("second task please", ""), ("third task too", "Second done.")]
    assert stage.turns == expected
    stage.handle("SessionEnd")
    assert stage.turns == expected


def test_a_stop_hook_of_the_user_makes_the_turn_go_on(stage: Stage) -> None:
    lines = Lines().prompt("One", prompt_id(1)).answer("Done.")
    stage.write(lines)
    stage.handle("Stop", prompt_id=prompt_id(1))
    lines.prompt("Stop hook feedback: run the tests", isMeta=True).answer("Now really.")
    stage.write(lines)
    stage.handle("Stop", prompt_id=prompt_id(1))
    assert stage.turns == [("One", "Done.\n\nNow really.")]


@pytest.mark.parametrize("with_ids", [True, False])
def test_the_transcript_is_deleted_between_two_turns(stage: Stage, with_ids: bool) -> None:
    first, second = (prompt_id(number) if with_ids else "" for number in (1, 2))
    stage.write(Lines().prompt("One", first).answer("1"))
    stage.handle("Stop", prompt_id=first)
    stage.write(Lines().prompt("One", first).answer("1").prompt("Two", second))
    stage.handle("PreCompact")
    stage.transcript.unlink()
    stage.handle("Stop", prompt_id=second, late=True)
    assert stage.turns == [("One", "1"), ("Two", "")]


@pytest.mark.parametrize("smaller", [True, False])
def test_another_transcript_in_the_place_of_the_old_one(stage: Stage, smaller: bool) -> None:
    lines = Lines()
    for number in range(5):
        lines.prompt(f"Old {number}", prompt_id(number)).answer("o")
    stage.write(lines)
    stage.handle("SessionEnd")
    if not smaller:  # moved: the client has another directory now
        stage.transcript = stage.root / "moved" / stage.transcript.name
        stage.transcript.parent.mkdir()
    lines = Lines().prompt("New", prompt_id(9)).answer("n")
    if not smaller:
        for _ in range(40):
            lines.add("progress")
    stage.write(lines)
    stage.handle("Stop", prompt_id=prompt_id(9))
    assert stage.turns == [*((f"Old {number}", "o") for number in range(5)), ("New", "n")]


@pytest.mark.parametrize("count", [2, BATCH_TURNS, 2 * BATCH_TURNS + 3])
def test_an_import_completes_a_turn_that_was_written_half(stage: Stage, count: int) -> None:
    lines = Lines()
    for number in range(count):
        lines.prompt(f"Q{number}", prompt_id(number)).answer(f"a{number}")
    lines.prompt("Last", prompt_id(count)).call("Bash", "t", command="make")
    stage.write(lines)
    stage.handle("PreCompact")
    assert len(stage.turns) == count + 1
    stage.write(lines.result("t", "ok").answer("Whole."))
    for _ in range(2):
        Capture(stage.home, Settings()).import_file(stage.transcript, stage.project)
    assert stage.turns[-1] == ("Last", "Whole.")
    stage.write(lines.prompt("More", prompt_id(count + 1)).answer("m"))
    stage.handle("Stop", prompt_id=prompt_id(count + 1))
    assert len(stage.turns) == len(set(stage.turns)) == count + 2
    session = Sessions(stage.home).load(SESSION)
    assert len(session.growing) == len(session.written) == 1


def test_one_bad_session_does_not_stop_another_from_being_caught_up(stage: Stage) -> None:
    for name in ("aaaa", "bbbb", "cccc"):
        stage.handle("SessionStart", session=name, transcript=str(stage.root / f"{name}.jsonl"))
    for name in ("aaaa", "bbbb", "cccc"):
        path = stage.root / f"{name}.jsonl"
        path.write_text(Lines(name).prompt(f"Q {name}", prompt_id(ord(name[0]))).answer("a").text)
    in_the_way = stage.root / "elsewhere"
    in_the_way.mkdir()
    (in_the_way / ".memkit").write_text("a file")
    session = Sessions(stage.home).load("aaaa")
    session.project = str(in_the_way)
    Sessions(stage.home).save(session)
    (stage.root / "bbbb.jsonl").unlink()
    (stage.root / "bbbb.jsonl").mkdir()
    (stage.root / "bbbb.jsonl" / "x").write_text("x" * 100)
    stage.handle("SessionStart", session="dddd", transcript=str(stage.root / "dddd.jsonl"))
    assert stage.turns == [("Q cccc", "a")]


def test_a_skipped_turn_is_stored_nowhere(stage: Stage) -> None:
    lines = Lines().prompt("my plan #skip", prompt_id(1))
    stage.handle("Stop", prompt_id=prompt_id(1), late=True)
    stage.write(lines)
    stage.handle("Stop", prompt_id=prompt_id(1), late=True)  # the transcript lacks the answer
    stage.write(lines.answer("the plan").prompt("x", prompt_id(2)).answer("y"))
    stage.handle("Stop", prompt_id=prompt_id(1))
    stage.handle("Stop", prompt_id=prompt_id(2))
    assert stage.turns == [("x", "y")]
    assert not list(stage.root.glob("home/sessions/*plan*"))
    assert "plan" not in (stage.root / f"home/sessions/{SESSION}.json").read_text()


@pytest.mark.parametrize("early", ["", "PreCompact"])
def test_a_prompt_that_shares_its_id_with_the_clear_before_it(stage: Stage, early: str) -> None:
    """As the client writes it; read before the answer is there, and again with it."""
    clear = "<command-name>/clear</command-name><command-args></command-args>"
    lines = Lines().prompt(clear, prompt_id(1)).prompt("Topic four", prompt_id(1))
    stage.write(lines)
    if early:
        stage.handle(early)
        assert stage.turns == [("Topic four", "")]
    with pytest.raises(TranscriptBehind):
        stage.handle("Stop", prompt_id=prompt_id(1))
    stage.write(lines.answer("Answer four."))
    stage.handle("Stop", prompt_id=prompt_id(1))
    assert stage.turns == [("Topic four", "Answer four.")]


def test_a_starting_session_is_left_to_its_own_events(stage: Stage) -> None:
    """Else what it asks its memory would be answered by the question itself."""
    stage.write(Lines().prompt("Which port?", prompt_id(1)))
    stage.handle("SessionStart")
    assert stage.turns == []
    stage.handle("SessionStart", transcript=str(stage.root / "other.jsonl"), session="other")
    assert stage.turns == [("Which port?", "")]


def test_a_stop_event_after_its_turn_and_a_command_were_read(stage: Stage) -> None:
    """`/exit` is typed while the Stop of the turn before still waits for the transcript."""
    lines = Lines().prompt("Which port?", prompt_id(1))
    stage.write(lines)
    with pytest.raises(TranscriptBehind):
        stage.handle("Stop", prompt_id=prompt_id(1))
    lines.answer("Port 7443.")
    typed = "<command-name>/exit</command-name>\n<command-message>exit</command-message>"
    lines.entries.append({**lines.entries[-1], "type": "system", "subtype": "local_command"})
    lines.entries[-1] |= {"uuid": "e71f", "content": typed}
    del lines.entries[-1]["message"]
    stage.write(lines)
    stage.handle("SessionEnd", prompt_id=prompt_id(1))
    stage.handle("Stop", late=True, prompt_id=prompt_id(1))
    assert stage.turns == [("Which port?", "Port 7443.")]


@pytest.mark.parametrize(("elsewhere", "is_logged_in"), [(True, True), (False, True), (True, False)])
def test_a_session_that_another_gateway_has_seen_gets_no_summary(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, elsewhere: bool, is_logged_in: bool
) -> None:
    why = "" if is_logged_in else "Claude Code is not logged in"
    monkeypatch.setattr("memkit.login.why_unusable", lambda: why)
    stage.handle("SessionStart", elsewhere=elsewhere)
    stage.handle("Stop", prompt="Which port?", message="7443.")
    assert "7443." in stage.journal
    # Without a login no model is asked: the extract needs the queue.
    assert bool(SummaryQueue(stage.home)) is not (elsewhere and is_logged_in)
