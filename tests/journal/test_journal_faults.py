"""The journal under kills, hand edits and moving clocks: every turn once, what people wrote kept."""

from __future__ import annotations

import itertools
import os
import random
import re
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit import anchors
from memkit.capture.sessions import Growing
from memkit.conversation.turn import Turn
from memkit.errors import JournalError
from memkit.journal.day_file import section_hash
from memkit.journal.digest import Digest, make_digest
from memkit.journal.journal import Journal
from memkit.projects.project import Project
from tests.builders import day
from tests.capture.places import REPOSITORY
from tests.ci import examples, set_zone, sized

pytestmark = pytest.mark.usefixtures("unsynced")

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=timezone.utc)


def digest(name: str, answer: str = "yes", session: str = "s1", time: datetime = NOON) -> Digest:
    turn = Turn(f"{name:0>8}", session, f"Q {name}", time, 0, 1, answer=answer, branch="main")
    return make_digest(turn, "/home/shop", str)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(str(tmp_path.resolve()))


def turns_in(text: str) -> list[str]:
    return re.findall(r"^###? .* <!-- .*\bturn:(\w+)(?: branch:main)? -->$", text, re.MULTILINE)


def grown(one: Digest, *, is_written: bool = True) -> dict[str, Growing]:
    return {one.turn: Growing((section_hash(one.section),), is_written)}


@pytest.mark.parametrize("note", ["\n## My note\n\ntext\n", "right below\n", "\n<!-- mine -->\n```\n## x\n"])
def test_a_note_below_a_growing_turn_stays_and_the_turn_grows(project: Project, note: str) -> None:
    journal = Journal(project)
    half, whole = digest("a", "Half"), digest("a", "Whole,\n\nat last.")
    journal.write([half])
    day(project).write_text(day(project).read_text() + note)
    assert journal.write([whole], grown(half)) == [whole]
    assert journal.write([whole], grown(whole)) == []
    text = day(project).read_text()
    below = whole.section.split("\n", 1)[1]
    assert text.endswith(f"{below}\n{note}")
    assert turns_in(text) == [whole.turn]
    assert "Half" not in text


def test_a_growing_turn_in_the_middle_keeps_its_neighbours(project: Project) -> None:
    journal = Journal(project)
    half, whole = digest("b", "Half"), digest("b", "- a list\n- of two")
    journal.write([digest("a"), half, digest("c"), digest("d", session="s2")])
    before = day(project).read_text()
    journal.write([whole], grown(half))
    assert day(project).read_text() == before.replace(half.section, whole.section)


def test_a_file_with_windows_line_ends_and_invalid_bytes(project: Project) -> None:
    journal = Journal(project)
    journal.write([digest("a"), digest("c", time=NOON + timedelta(hours=2))])
    own = day(project).read_bytes().replace(b"\n", b"\r\n") + b"\xff\xfe own words\r\n"
    day(project).write_bytes(own)
    assert journal.write([digest("a"), digest("c", time=NOON + timedelta(hours=2))]) == []
    assert day(project).read_bytes() == own
    journal.write([digest("b", time=NOON + timedelta(hours=1))])
    journal.summarize("2026-11-20", ["0000000a"], ["Decided: x."], "A title")
    before = journal.data("2026-11-20.md")
    journal.edit("2026-11-20", before, before.replace(b"own words", b"my words"))
    data = day(project).read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n") and data.endswith(b"\xff\xfe my words\r\n")
    assert b"Decided: x." in data and journal.day("2026-11-20").sections[0].heading.endswith("-->")
    assert turns_in(day(project).read_text("utf-8", "replace").replace("\r", "")) == [
        f"{name:0>8}" for name in "abc"
    ]


@pytest.mark.parametrize("zones", [("UTC", "Asia/Tokyo"), ("Pacific/Kiritimati", "Etc/GMT+12")])
def test_any_time_zone(project: Project, monkeypatch: pytest.MonkeyPatch, zones: tuple[str, str]) -> None:
    for there, back in (zones, zones[::-1]):
        times = [NOON + timedelta(minutes=minutes) for minutes in range(0, 48 * 60, 90)]
        set_zone(monkeypatch, there)
        Journal(project).write([digest(f"{n}", time=when) for n, when in enumerate(times)])
        set_zone(monkeypatch, back)
        assert Journal(project).write([digest(f"{n}", time=when) for n, when in enumerate(times)]) == []


sessions = st.sampled_from(["s1", "s2", "s3"])
events = st.lists(st.tuples(st.integers(0, 23 * 60), sessions, st.integers(0, 9)), min_size=1, max_size=14)


@settings(max_examples=examples(60))
@given(events=events, cuts=st.lists(st.integers(0, 14), max_size=3))
def test_any_order_in_any_batches_gives_the_same_day(
    tmp_path_factory: pytest.TempPathFactory, events: list[tuple[int, str, int]], cuts: list[int]
) -> None:
    project = Project(str(tmp_path_factory.mktemp("p")))
    midnight = NOON.replace(hour=0)
    digests = [
        digest(f"{session}x{number}", session=session, time=midnight + timedelta(minutes=minute))
        for minute, session, number in events
    ]
    bounds = [0, *sorted(cut for cut in cuts if cut < len(digests)), len(digests)]
    for start, end in itertools.pairwise(bounds):
        Journal(project).write(digests[start:end])
    text = day(project).read_text()
    assert Journal(project).write(digests) == []
    assert day(project).read_text() == text
    assert sorted(turns_in(text)) == sorted({one.turn for one in digests})
    shown: dict[str, list[str]] = {}
    for line in text.splitlines():
        pairs = anchors.parse(line)
        if "session" in pairs:
            assert pairs["session"] not in shown
            times = shown[pairs["session"]] = []
        if "turn" in pairs and line.startswith("### "):
            times.append(line[4:9])
    assert all(times == sorted(times) for times in shown.values())
    assert "\n\n\n" not in text


def test_an_unwritable_directory_is_reported(project: Project) -> None:
    Path(project.root, ".memkit").write_text("a file in the way")
    with pytest.raises(JournalError, match="cannot write memory in"):
        Journal(project).write([digest("a")])


WRITER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from datetime import datetime, timedelta, timezone
from memkit.journal.digest import make_digest
from memkit.journal.journal import Journal
from memkit.conversation.turn import Turn
from memkit.projects.project import Project
journal = Journal(Project(sys.argv[2]))
print("ready", flush=True)
for number in range(60):
    when = datetime(2026, 11, 20, tzinfo=timezone.utc) + timedelta(minutes=number)
    turn = Turn(f"{number:08x}", f"s{number % 3}", f"Q {number}", when, 0, 1, answer="yes " * 2000)
    journal.write([make_digest(turn, "/x", str)])
"""


def test_killed_at_any_moment_and_run_again(project: Project) -> None:
    choice = random.Random(7)
    command = [sys.executable, "-c", WRITER, str(REPOSITORY), project.root]
    environment = {**os.environ, "TZ": "UTC"}
    seen = 0
    for _ in range(sized(2, 3, 6)):
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
        assert writer.stdout is not None
        writer.stdout.readline()
        # Not a wait for something: each delay is another moment to be killed at.
        time.sleep(choice.random() * 0.2)
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        if day(project).exists():
            text = day(project).read_text()
            found = turns_in(text)
            assert len(found) == len(set(found)) >= seen
            assert text.endswith("\n")
            seen = len(found)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    text = day(project).read_text()
    assert sorted(turns_in(text)) == [f"{number:08x}" for number in range(60)]
    assert text.count("**Answered**") == 60
    assert text.count("<!-- session:") == 3
