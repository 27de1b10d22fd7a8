"""Events as the real client fires them, with its own transcripts; and everything that can come between."""

from __future__ import annotations

import itertools
import json
import os
import re
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit import paths, pending
from memkit.capture.capture import BATCH_TURNS, Capture, NotYet
from memkit.capture.sessions import MAX_PROMPTS, Session, Sessions
from memkit.config import Settings
from memkit.paths import Home
from memkit.project import Project

from ..remember.builders import SESSION, Lines
from .places import RECORDED


def prompt_id(number: int) -> str:
    return f"{number:08x}-99f1-4f0e-8a51-3f1f1a2b3c4d"


NOW = datetime(2026, 3, 4, 10, 30, tzinfo=timezone.utc).timestamp()


class Stage:
    """A memory home and a project; events are handled at once, `late` ones without more patience."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = Home(str(root / "home"))
        self.project = Project(str(root / "project"))
        Path(self.project.root).mkdir()
        self.transcript = root / f"{SESSION}.jsonl"

    def record(self, name: str, **fields: Any) -> dict[str, Any]:
        return {
            "event": name,
            "session": SESSION,
            "transcript": str(self.transcript),
            "project": self.project.root,
            "time": NOW,
            **fields,
        }

    def handle(self, name: str, *, late: bool = False, **fields: Any) -> None:
        record = self.record(name, **fields)
        Capture(self.home, Settings()).handle(record, record["time"] + (60 if late else 0))

    def write(self, lines: Lines) -> None:
        self.transcript.write_text(lines.text)

    def use(self, name: str) -> Path:
        self.transcript = self.root / f"{SESSION}.jsonl"
        self.transcript.write_bytes((RECORDED / f"{name}.jsonl").read_bytes())
        return self.transcript

    def own_project(self, turn: object) -> Project:
        return self.project

    @property
    def journal(self) -> str:
        return "\n".join(self.days)

    @property
    def days(self) -> list[str]:
        return [path.read_text() for path in sorted(Path(self.project.memory).glob("*.md"))]

    @property
    def turns(self) -> list[tuple[str, str]]:
        """Title and answer of each turn in the journal."""
        found = []
        for section in itertools.chain(*(re.split(r"^(?=##)", day, flags=re.MULTILINE) for day in self.days)):
            if section.startswith("### "):
                title = re.match(r"### \S+ (.*) <!--", section)
                answer = re.search(r"^\*\*Answered\*\*\s+(.*?)\s*\Z", section, re.MULTILINE | re.DOTALL)
                found.append((title[1] if title else "", answer[1] if answer else ""))
        return found


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path.resolve())


def test_a_failure_is_no_answer(stage: Stage) -> None:
    stage.use("api-errors")
    error = "API Error: 500 The scripted failure."
    first, second = "22474978-fcee-44d2-8032-8b70220fa8c6", "731f3222-31ab-480b-a07d-6ec28b6515fb"
    for late in (False, True):
        for name in (first, second):
            stage.handle("StopFailure", prompt_id=name, message=error, late=late)
    assert stage.turns == [("ask me", "Part."), ("again", "")]
    assert "API Error" not in stage.journal
    assert "API Error" not in (stage.root / f"home/sessions/{SESSION}.json").read_text()


def test_a_background_task_answers_in_the_turn_that_began_it(stage: Stage) -> None:
    stage.use("background-skill")
    news = "57608ddf-68f6-4744-a3f7-e8149b50769e"
    stage.handle("Stop", prompt_id=news, message="Understood.")
    stage.handle("SessionEnd", prompt_id="8be5a18f-41ac-484d-9ecc-98201268dc15")
    assert stage.turns == [("/shop:bgfork what's x?", "Understood.")]


def test_queued_prompts_as_the_client_tells_them(stage: Stage) -> None:
    stage.use("queued-until-the-end")
    first, third = "c6a1bcae-94ed-418c-abdc-5874ddaffb53", "0e4de6d0-cc24-4505-81cd-f9309e5d4b0a"
    for text in ("first task", "second task please", "third task too"):
        stage.handle("UserPromptSubmit", prompt_id=first, prompt=text)
    stage.handle("Stop", prompt_id=first, message="First done.")
    assert stage.turns == [("first task", "First done.")]
    stage.handle("Stop", prompt_id=third, message="Second done.")
    expected = [("first task", "First done."), ("second task please", ""), ("third task too", "Second done.")]
    assert stage.turns == expected
    stage.handle("SessionEnd")
    assert stage.turns == expected


def test_without_a_transcript_queued_prompts_join(stage: Stage) -> None:
    for _ in range(2):
        for text in ("first task", "second task"):
            stage.handle("UserPromptSubmit", prompt_id=prompt_id(1), prompt=text)
    stage.handle("Stop", prompt_id=prompt_id(1), message="Both done.", late=True)
    assert "**Asked** first task\nsecond task" in stage.journal.replace("\n\nsecond", "\nsecond")
    assert stage.turns == [("first task", "Both done.")]


def test_an_answer_only_the_event_told_outlives_the_next_turns(stage: Stage) -> None:
    lines = Lines().prompt("One", prompt_id(1)).answer("Looking.").call("Bash", "t", command="ls").result("t", "x")
    stage.write(lines)
    with pytest.raises(NotYet):
        stage.handle("Stop", prompt_id=prompt_id(1), message="It is 7443.")
    stage.handle("Stop", prompt_id=prompt_id(1), message="It is 7443.", late=True)
    assert stage.turns == [("One", "It is 7443.")]
    stage.handle("PreCompact")
    lines.prompt("Two", prompt_id(2)).answer("2")
    stage.write(lines)
    stage.handle("SessionStart", transcript=str(stage.root / "other.jsonl"), session="other")
    stage.handle("Stop", prompt_id=prompt_id(2), message="2")
    assert stage.turns == [("One", "It is 7443."), ("Two", "2")]
    assert Sessions(stage.home).load(SESSION).answers == {}


def test_the_transcripts_own_answer_wins_once_it_is_there(stage: Stage) -> None:
    lines = Lines().prompt("One", prompt_id(1)).answer("First thoughts.")
    stage.write(lines)
    stage.handle("Stop", prompt_id=prompt_id(1), message="The end", late=True)
    assert stage.turns == [("One", "The end")]
    stage.write(lines.answer("The end, and a word more."))
    stage.handle("PreCompact")
    assert stage.turns == [("One", "First thoughts.\n\nThe end, and a word more.")]


def test_a_stop_hook_of_the_user_makes_the_turn_go_on(stage: Stage) -> None:
    lines = Lines().prompt("One", prompt_id(1)).answer("Done.")
    stage.write(lines)
    stage.handle("Stop", prompt_id=prompt_id(1), message="Done.")
    lines.prompt("Stop hook feedback: run the tests", isMeta=True).answer("Now really.")
    stage.write(lines)
    stage.handle("Stop", prompt_id=prompt_id(1), message="Now really.")
    assert stage.turns == [("One", "Done.\n\nNow really.")]


def test_a_turn_that_goes_on_without_any_transcript(stage: Stage) -> None:
    stage.handle("UserPromptSubmit", prompt_id=prompt_id(1), prompt="One")
    for message in ("Done.", "Done.", "Now really."):
        stage.handle("Stop", prompt_id=prompt_id(1), message=message, late=True)
    assert stage.turns == [("One", "Now really.")]


def test_the_transcript_is_deleted_between_two_turns(stage: Stage) -> None:
    for with_ids in (True, False):
        names = [prompt_id(number) if with_ids else "" for number in (1, 2)]
        stage.write(Lines().prompt("One", names[0]).answer("1"))
        stage.handle("Stop", prompt_id=names[0], message="1")
        stage.write(Lines().prompt("One", names[0]).answer("1").prompt("Two", names[1]))
        stage.handle("PreCompact")
        stage.transcript.unlink()
        stage.handle("Stop", prompt_id=names[1], message=f"2 {with_ids}", late=True)
    assert sum(answer == "1" for _, answer in stage.turns) in (1, 2)
    assert [answer for _, answer in stage.turns if answer.startswith("2")] == ["2 True", "2 False"]


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
    stage.write(Lines().prompt("New", prompt_id(9)).answer("n"))
    stage.handle("Stop", prompt_id=prompt_id(9), message="n")
    assert stage.turns == [*((f"Old {number}", "o") for number in range(5)), ("New", "n")]


def test_text_no_file_can_hold_in_an_event(stage: Stage) -> None:
    stage.handle("UserPromptSubmit", prompt_id=prompt_id(1), prompt="half \ud83d and \udcff")
    stage.handle("Stop", prompt_id=prompt_id(1), message="answer \udce9 \ud800", late=True)
    assert stage.turns == [("half ? and ?", "answer ? ?")]
    stage.write(Lines().prompt("half \ud83d and \udcff", prompt_id(1)).answer("answer \udce9 \ud800"))
    stage.handle("Stop", prompt_id=prompt_id(1), message="answer \udce9 \ud800")
    assert stage.turns == [("half ? and ?", "answer ? ?")]


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
        Capture(stage.home, Settings()).import_file(stage.transcript, stage.own_project)
    assert stage.turns[-1] == ("Last", "Whole.")
    stage.write(lines.prompt("More", prompt_id(count + 1)).answer("m"))
    stage.handle("Stop", prompt_id=prompt_id(count + 1), message="m")
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


def test_events_out_of_order(stage: Stage) -> None:
    lines = Lines()
    for number in (1, 2, 3):
        lines.prompt(f"Q{number}", prompt_id(number)).answer(f"a{number}")
    stage.write(lines)
    for order in itertools.permutations((1, 2, 3)):
        for number in order:
            stage.handle("Stop", prompt_id=prompt_id(number), message=f"a{number}")
    assert stage.turns == [("Q1", "a1"), ("Q2", "a2"), ("Q3", "a3")]


def test_a_skipped_turn_is_nowhere(stage: Stage) -> None:
    stage.handle("UserPromptSubmit", prompt_id=prompt_id(1), prompt="my plan #skip")
    for _ in range(2):
        stage.handle("Stop", prompt_id=prompt_id(1), message="the plan", late=True)
    stage.write(Lines().prompt("my plan #skip", prompt_id(1)).answer("the plan").prompt("x", prompt_id(2)).answer("y"))
    stage.handle("Stop", prompt_id=prompt_id(1), message="the plan")
    stage.handle("Stop", prompt_id=prompt_id(2), message="y")
    assert stage.turns == [("x", "y")]
    assert not list(stage.root.glob("home/sessions/*plan*"))
    assert "plan" not in (stage.root / f"home/sessions/{SESSION}.json").read_text()


def flow(stage: Stage, run: Callable[..., None]) -> None:
    """Prompts with and without transcript, a late answer, a growing turn, a failure."""
    run("SessionStart")
    run("UserPromptSubmit", prompt_id=prompt_id(1), prompt="One")
    run("Stop", prompt_id=prompt_id(1), message="1, only told", late=True)
    lines = Lines().prompt("Two", prompt_id(2)).call("Bash", "t", command="make")
    stage.write(lines)
    run("PreCompact", prompt_id=prompt_id(2))
    stage.write(lines.result("t", "ok"))
    run("Stop", prompt_id=prompt_id(2), message="2, late", late=True)
    stage.write(lines.prompt("Three", prompt_id(3)).answer("3"))
    run("Stop", prompt_id=prompt_id(3), message="3")
    run("SessionEnd", reason="other")


FLOW = [("Two", "2, late"), ("Three", "3"), ("One", "1, only told")]


def test_killed_at_every_write_of_a_whole_flow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill before and after each file that reaches the disk, each event run again: always the same."""

    class Killed(BaseException):
        pass

    left = [0]
    replace = os.replace

    def counting(source: str, target: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        replace(source, target)
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    monkeypatch.setattr(paths.os, "replace", counting)
    for kill in range(1, 200):
        stage = Stage(tmp_path / str(kill)) if not (tmp_path / str(kill)).mkdir() else None
        assert stage is not None
        left[0] = kill

        def run(name: str, stage: Stage = stage, **fields: Any) -> None:
            try:
                stage.handle(name, **fields)
            except Killed:
                stage.handle(name, **fields)

        flow(stage, run)
        assert sorted(stage.turns) == sorted(FLOW), f"killed at {kill}"
        assert pending.roots(stage.home) == [stage.project.root]
        if left[0] > 0:
            assert kill > 20
            return
    pytest.fail("the flow never ended without a kill")


def test_every_event_twice_is_every_event_once(stage: Stage) -> None:
    def twice(name: str, **fields: Any) -> None:
        for _ in range(2):
            stage.handle(name, **fields)

    flow(stage, twice)
    assert sorted(stage.turns) == sorted(FLOW)


steps = st.lists(
    st.sampled_from(["prompt", "answer", "work", "stop", "compact", "end", "start", "import", "failure"]),
    max_size=14,
)


@settings(max_examples=80, deadline=None)
@given(steps=steps)
def test_whatever_comes_the_journal_is_the_transcript(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    stage = Stage(tmp_path_factory.mktemp("s").resolve())
    lines = Lines()
    number, answers = 0, [""]
    for count, step in enumerate(steps):
        if step == "prompt":
            number += 1
            answers.append("")
            lines.prompt(f"Q{number}", prompt_id(number))
        elif step == "answer" and number:
            lines.answer(f"a{count}")
            answers[-1] = f"a{count}"
        elif step == "work" and number:
            lines.call("Bash", f"t{count}", command="make").result(f"t{count}", "ok")
        stage.write(lines)
        if step == "stop" and number:
            stage.handle("Stop", prompt_id=prompt_id(number), message=answers[-1], late=True)
        elif step == "failure" and number:
            stage.handle("StopFailure", prompt_id=prompt_id(number), message="API Error: 500", late=True)
        elif step in ("compact", "end", "start"):
            stage.handle({"compact": "PreCompact", "end": "SessionEnd", "start": "SessionStart"}[step])
        elif step == "import":
            Capture(stage.home, Settings()).import_file(stage.transcript, stage.own_project)
    live = stage.turns
    stage.handle("SessionEnd")
    expected = Stage(tmp_path_factory.mktemp("e").resolve())
    expected.write(lines)
    expected.handle("SessionEnd")
    assert stage.turns == expected.turns
    assert len(live) <= len(expected.turns) == number


def test_session_state_survives_damage_and_keeps_to_its_bounds(stage: Stage) -> None:
    sessions = Sessions(stage.home)
    session = Session("ü/../x")
    for number in range(MAX_PROMPTS + 5):
        session.remember_prompt(str(number), "p")
    assert list(session.prompts)[0] == "5"
    session.has_read([str(number) for number in range(200)])
    assert session.recent[-1] == "199"
    assert len(session.recent) == 50
    sessions.save(session)
    assert sessions.load("ü/../x") == session
    assert list(sessions) == [session]
    (path,) = Path(stage.home.sessions).glob("*.json")
    assert path.stat().st_mode & 0o077 == 0
    good = json.loads(path.read_text())
    for damage in ({"offset": "5"}, {"growing": []}, {"id": 5}, {"id": ""}, {"written": "x"}, {"prompts": None}):
        path.write_text(json.dumps({**good, **damage}))
        assert sessions.load("ü/../x") == Session("ü/../x")
    path.write_text(json.dumps({**good, "of a later version": 1}))
    assert sessions.load("ü/../x") == session
    path.write_text("[" * 100_000)
    assert list(sessions) == []
