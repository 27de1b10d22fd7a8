"""Turns into daily markdown: the format, foreign text that cannot forge it, and people's own edits."""

from __future__ import annotations

import multiprocessing
import os
import re
import stat
import subprocess
from datetime import datetime, timezone
from pathlib import Path

import pytest

from memkit import anchors
from memkit.capture.sessions import Growing
from memkit.conversation.turn import ToolCall, Turn
from memkit.journal.day_file import section_hash
from memkit.journal.digest import Digest, make_digest
from memkit.journal.journal import Journal
from memkit.privacy.redact import redact
from memkit.projects.project import Project
from tests.builders import day, turn_of
from tests.ci import IN_CI, reset_zone

pytestmark = pytest.mark.usefixtures("unsynced")

def turn(prompt: str = "Which port?", answer: str = "7443.", **fields: object) -> Turn:
    return turn_of(prompt, answer, **{"branch": "feature/gw", **fields})


def digest(one: Turn | None = None) -> Digest:
    return make_digest(one or turn(), "/home/shop", redact)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(str(tmp_path.resolve()))


def test_the_format_of_the_design(project: Project) -> None:
    tools = [
        ToolCall("Read", {"file_path": "/home/shop/deploy/gateway.yaml"}, "port: 443"),
        ToolCall("Edit", {"file_path": "/home/shop/deploy/gateway.yaml"}, "ok"),
        ToolCall("Bash", {"command": "pytest -q"}, "....\n12 passed"),
        ToolCall("Bash", {"command": "a `b`"}, "boom\nmore", is_error=True),
    ]
    Journal(project).write([digest(turn(tools=tools))])
    assert day(project).read_text() == (
        "# 2026-11-20\n"
        "\n"
        "- 14:02 [Which port?](#1402-which-port) · 1 turn → 7443. <!-- overview:feba328e turns:8ad3df7f -->\n"
        "\n"
        "## 14:02 Which port? <!-- session:fd0aee29 branch:feature/gw turn:8ad3df7f -->\n"
        "**Did** Edit deploy/gateway.yaml · Bash `pytest -q` → 12 passed · "
        "Bash `` a `b` `` → failed: boom\n"
        "\n"
        "**Answered** 7443.\n"
    )
    assert stat.S_IMODE(day(project).stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(project.memory).stat().st_mode) == 0o700
    assert (Path(project.root) / ".memkit" / ".gitignore").read_text() == "*\n!/team/\n!/team/**\n"


def at(minute: str, name: str, session: str = "s1") -> Digest:
    hour, minutes = map(int, minute.split(":"))
    when = datetime(2026, 11, 20, hour, minutes, tzinfo=timezone.utc)
    return digest(turn(f"Q {name}", f"A {name}", id=f"{name:0>8}", session=session, time=when))


def headings(project: Project) -> list[str]:
    lines = day(project).read_text().splitlines()
    return [anchors.strip(line) for line in lines if line.startswith("#")]


def test_turns_stand_in_their_session_in_order_of_time(project: Project) -> None:
    for one in (
        at("10:00", "a"), at("10:05", "b", "s2"), at("10:10", "c"), at("09:00", "d"), at("08:00", "e", "s3"),
    ):  # fmt: skip
        Journal(project).write([one])
    assert headings(project) == [
        "# 2026-11-20", "## 08:00 Q e", "## 09:00 Q d", "### 09:00 Q d", "### 10:00 Q a", "### 10:10 Q c",
        "## 10:05 Q b",
    ]  # fmt: skip


def test_what_a_person_wrote_stays(project: Project) -> None:
    journal = Journal(project)
    journal.write([at("10:00", "a"), at("10:05", "b")])
    text = day(project).read_text()
    edited = text.replace(
        "**Answered** A a", "**Answered** A a, and I checked it.\n\n## My note\n\n```\n## x\n```"
    )
    edited = edited.replace("# 2026-11-20\n", "# 2026-11-20, a good day\r\n\nA preface.\n")
    day(project).write_bytes(edited.encode() + b"\nlast words \xff")
    before = day(project).read_bytes()
    assert journal.write([at("10:00", "a"), at("10:05", "b")]) == []
    assert day(project).read_bytes() == before
    journal.write([at("10:10", "c")])
    after = day(project).read_bytes()
    assert after.replace(b"10:10 [Q a]", b"10:05 [Q a]").startswith(b"# 2026-11-20, a good day\r\n\nA preface.\n\n- 10:00")
    assert before.rstrip(b"\n").partition(b"\n## ")[2] in after
    assert after.count(b"### ") == 3


def test_a_session_takes_the_title_of_its_turn_when_that_grows(project: Project) -> None:
    half, whole = digest(turn("yes", "", tools=[])), digest(turn("yes", "The port is 7443 now.", tools=[]))
    Journal(project).write([half])
    known = {half.turn: Growing((section_hash(half.section),), is_written=True)}
    Journal(project).write([whole], known)
    assert "## 14:02 The port is 7443 now. <!-- session:fd0aee29" in day(project).read_text()


def test_a_growing_turn_is_replaced_unless_edited_or_removed(project: Project) -> None:
    journal = Journal(project)
    half, whole = digest(turn(answer="Half")), digest(turn(answer="Whole, at last."))
    journal.write([half])
    known = {half.turn: Growing((section_hash(half.section),), is_written=True)}
    assert journal.write([whole]) == []
    assert journal.write([whole], known) == [whole]
    assert "Whole, at last." in day(project).read_text()
    known = {half.turn: Growing((section_hash(whole.section),), is_written=True)}
    day(project).write_text(day(project).read_text().replace("Whole", "Mine"))
    assert journal.write([half], known) == []
    day(project).write_text("# 2026-11-20\n")
    assert journal.write([whole], known) == []
    unsure = {half.turn: Growing((), is_written=False)}
    assert journal.write([whole], unsure) == [whole]


def test_modes_links_and_ignore_files(project: Project) -> None:
    journal = Journal(project)
    journal.write([at("10:00", "a")])
    real = Path(project.memory, "elsewhere.md")
    day(project).rename(real)
    day(project).symlink_to(real.name)
    real.chmod(0o666)
    Journal(project, shared=True).write([at("10:04", "z")])
    assert stat.S_IMODE(real.stat().st_mode) == 0o666
    journal.write([at("10:05", "b")])
    assert day(project).is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert "Q b" in real.read_text()
    day(project).unlink()
    real.rename(day(project))
    ignore = Path(project.root) / ".memkit" / ".gitignore"
    Journal(project, shared=True).write([at("10:06", "c")])
    assert "!memory/" in ignore.read_text()
    subprocess.run(["git", "init", "-q", project.root], check=True)
    listed = ["git", "-C", project.root, "ls-files", "-o", "--exclude-standard", ".memkit"]
    shown = subprocess.run(listed, capture_output=True, check=True, text=True).stdout.split()
    assert shown == [".memkit/.gitignore", ".memkit/memory/2026-11-20.md"]
    ignore.write_text("mine\n")
    Journal(project).write([at("10:07", "d")])
    assert ignore.read_text() == "mine\n"


WRITERS = 3 if IN_CI else 2


def _write_some(root: str, writer: int) -> None:
    os.environ["TZ"] = "UTC"
    reset_zone()
    for number in range(12):
        name = f"{writer}{number:02d}"
        Journal(Project(root)).write([at(f"{9 + number}:{writer:02d}", name, f"s{writer}")])


def test_processes_that_write_one_day_at_once(project: Project) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_some, args=(project.root, n)) for n in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    found = re.findall(r"<!-- turn:(\w{8}) ", day(project).read_text())
    assert len(found) == len(set(found)) == 12 * WRITERS
    assert len([line for line in headings(project) if line.startswith("## ")]) == WRITERS


def test_a_turn_goes_above_a_heading_of_the_user(project: Project) -> None:
    """Not into a fence, though."""
    journal = Journal(project)
    journal.write([digest(turn("First?", "```\n## in a fence\n```"))])
    path = day(project)
    path.write_text(f"{path.read_text()}\n## Ideas\n\nBuy milk.\n")
    journal.write([digest(turn("Second?", "Two.", id="8ad3df80"))])
    text = path.read_text()
    places = [text.index(part) for part in ("## in a fence", "Second? <", "**Answered** Two.", "## Ideas")]
    assert places == sorted(places)
    assert text.endswith("\n\n## Ideas\n\nBuy milk.\n")
