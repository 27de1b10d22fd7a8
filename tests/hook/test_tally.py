"""The line at a session's start, the status line, and the counts that both show."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memkit.hook.entries import note_own
from memkit.hook.notices import USD_PER_MILLION
from memkit.hook.status_line import status_line
from memkit.hook.tally import full_tally, history_file, note_excluded, tally
from memkit.llm import TokenUsage
from memkit.llm.anthropic import DEFAULT_MODEL
from memkit.llm.calls import ANSWER_SHARE, price
from memkit.login import DEFAULT_TOKENS
from memkit.paths import Home
from memkit.projects.project import Project, digest16
from memkit.settings import Settings, load
from memkit.state import write_state
from tests.hook.conftest import REPOSITORY, Stage

TERMINAL = {"CLAUDE_CODE_ENTRYPOINT": "cli"}
NOON = 1_790_000_000  # 2026-09-21


def start(stage: Stage, source: str = "startup", **environment: str) -> str:
    event = stage.event("SessionStart", source=source)
    answer = stage.run("session_start", event, environment={**TERMINAL, **environment})
    lines = str(answer.json.get("systemMessage", "")).splitlines()
    return "\n".join(line for line in lines if line.startswith("memkit: ") and "last: " in line)


def greeted(stage: Stage, when: float) -> None:
    """Let the last greeting be at `when`."""
    mark = stage.home / "run" / "tally" / f"{digest16(str(stage.project))}.greeted"
    os.utime(mark, (when, when))


def write_day(stage: Stage, day: str, *headings: str, is_own: bool = True) -> Path:
    memory = stage.project / ".memkit" / "memory"
    memory.mkdir(parents=True, exist_ok=True)
    text = f"# {day}\n\n" + "\n\n".join(headings) + "\n"
    (memory / f"{day}.md").write_text(text, encoding="utf-8")
    if is_own:
        note_own(Home(str(stage.home)), str(stage.project), "", text)
    return memory / f"{day}.md"


def test_a_person_gets_one_line_a_day(stage: Stage) -> None:
    write_day(stage, "2026-09-20", "## 09:00 Ports <!-- session:a -->", "## 10:00 Money <!-- session:b -->")
    write_day(stage, "2026-09-21", "## 14:02 Push up and make a PR <!-- session:b branch:main turn:1c9d02aa -->")
    assert start(stage) == "memkit: 2 sessions on 2 days; last: 2026-09-21 14:02 Push up and make a PR"
    assert start(stage) == start(stage, "resume") == ""
    greeted(stage, NOON)
    assert start(stage, "clear") == start(stage, "compact") == ""
    assert start(stage, "resume").startswith("memkit: 2 sessions on 2 days")
    assert stage.errors() == ""


def test_pointers_since_the_last_line(stage: Stage) -> None:
    write_day(stage, "2026-09-20", "## 09:00 Ports <!-- session:a -->")
    start(stage)
    greeted(stage, NOON)
    home = Home(str(stage.home))
    os.makedirs(home.pointer_history)
    for session, root, ids in (("a", stage.project, ["x", "y"]), ("b", stage.project, ["z"]), ("c", "/other", ["q"])):
        write_state(history_file(home, session), 1, {"ids": ids, "root": str(root)})
    write_state(history_file(home, "old"), 1, {"ids": ["o"], "root": str(stage.project)})
    os.utime(history_file(home, "old"), (NOON - 9, NOON - 9))
    Path(home.pointer_history, "damaged.json").write_text("{")
    assert ", 3 pointers since 2026-09-21; last: " in start(stage)


def test_nobody_else_gets_it(stage: Stage) -> None:
    assert start(stage) == ""  # no memory yet
    write_day(stage, "2026-09-20", "## 09:00 Ports <!-- session:a -->")
    assert start(stage, CLAUDE_CODE_ENTRYPOINT="sdk-cli") == ""
    assert start(stage, CLAUDE_CODE_SESSION_ATTENDED="0") == ""
    home, root = Home(str(stage.home)), str(stage.project)
    note_excluded(home, root, True)
    note_excluded(home, root, True)
    assert start(stage) == ""
    note_excluded(home, root, False)
    note_excluded(home, root, False)
    (stage.project / ".memkit" / "off").touch()
    assert start(stage) == ""
    (stage.project / ".memkit" / "off").unlink()
    assert start(stage)


def test_a_hostile_title_is_one_short_printable_line(stage: Stage) -> None:
    for title in ("\x1b[31mred\x07", "a\u202eb\u2028c", "x" * 10_000, "?", "a <!-- b -->"):
        write_day(stage, "2026-09-20", f"## 09:00 {title} <!-- session:a -->")
        line = start(stage)
        assert line.startswith("memkit: 1 session on 1 day; last: 2026-09-20 09:00")
        assert line.isprintable()
        assert len(line) < 120
        greeted(stage, NOON)
    write_day(stage, "2026-09-21", "## 09:00 Run this now <!-- session:b -->", is_own=False)  # of a stranger
    assert start(stage).endswith("last: 2026-09-21 09:00")


_LINES = st.sampled_from(
    ["## 09:00 x <!-- session:a -->", "## 23:59 x <!-- session:b turn:1 -->", "### 10:30 y <!-- turn:2 -->", "text",
     "## 88 no session", "##  <!-- session:c -->", "### 99:99 <!-- user's --> ", "- 14:02 [x](#y) <!-- turns:a -->"]
)  # fmt: skip


@given(st.lists(st.tuples(st.integers(1, 3), st.lists(_LINES, max_size=5)), max_size=6))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_counts_that_were_kept_are_those_of_a_new_count(
    stage: Stage, tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, list[str]]]
) -> None:
    kept, project = Home(str(stage.home)), Project(str(stage.project))
    for number, (day, lines) in enumerate(changes):
        file = write_day(stage, f"2026-09-0{day}", *lines, is_own=False)
        os.utime(file, ns=(number, time.time_ns()))
        assert tally(kept, project) == tally(Home(str(tmp_path_factory.mktemp("home"))), project)


def test_damaged_counts_are_made_again(stage: Stage) -> None:
    write_day(stage, "2026-09-20", "## 09:00 x <!-- session:a -->")
    home, project = Home(str(stage.home)), Project(str(stage.project))
    expected = tally(home, project)
    for content in ("", "{", "[]", '{"version": 99}', '{"version": 1, "days": {"2026-09-20": [1]}}'):
        Path(home.run, "tally", f"{digest16(project.root)}.json").write_text(content)
        assert tally(home, project) == expected == (1, 1, 0, 0, "2026-09-20", "2026-09-20", "09:00", True)


def test_a_large_memory_is_counted_in_several_goes(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memkit.hook.tally.MOST_BYTES", 50)
    for day in range(1, 4):
        write_day(stage, f"2026-09-0{day}", f"## 09:00 x <!-- session:{day} -->", "text " * 20)
    home, project = Home(str(stage.home)), Project(str(stage.project))
    assert [tally(home, project).words for _ in range(3)] == ["1+ sessions", "2+ sessions", "3 sessions"]
    # Where git tracks the file of a day, private turns go to another: a day of two files is one day.
    path = write_day(stage, "2026-09-03", "## 09:00 x <!-- session:3 -->", "### 10:00 Note: y <!-- note:2 -->", "### 10:05 z <!-- turn:3 -->")
    path.with_name("2026-09-03.local.md").write_text("# 2026-09-03\n\n### 11:00 z <!-- turn:4 -->\n")
    assert full_tally(home, project) == (3, 3, 2, 1, "2026-09-01", "2026-09-03", "11:00", True)
    noon = time.mktime((2026, 9, 3, 12, 0, 0, 0, 0, -1))
    assert status_line(home, {"cwd": str(stage.project)}, noon) == "memkit 3 sessions · last 11:00"


# `memkit statusline`, as Claude Code runs it.


def show(stage: Stage, given: object, cwd: Path | None = None, **environment: str) -> str:
    """What the command prints; it neither fails nor complains, and builds no environment."""
    done = subprocess.run(
        [sys.executable, "-I", str(REPOSITORY / "bin" / "memkit"), "statusline"],
        input=given if isinstance(given, bytes) else json.dumps(given).encode(), capture_output=True,
        env={**stage.environment, "MEMKIT_PYTHON": "", **environment}, cwd=cwd or stage.project, timeout=60,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert not (stage.home / "env").exists()
    return done.stdout.decode()


def test_the_line(stage: Stage) -> None:
    given = {"session_id": "s", "cwd": "/", "workspace": {"project_dir": str(stage.project), "current_dir": "/"}}
    assert show(stage, given) == "memkit: no sessions yet\n"
    write_day(stage, "2026-09-20", "## 09:00 Ports <!-- session:a -->", "## 10:00 Money <!-- session:b -->")
    assert show(stage, given) == "memkit 2 sessions · last 2026-09-20\n"
    home = Home(str(stage.home))
    os.makedirs(home.pointer_history)
    write_state(history_file(home, "s"), 1, {"ids": ["x", "y"]})
    assert show(stage, given, LC_ALL="C", PYTHONIOENCODING="ascii") == "memkit 2 sessions · 2 pointers · last 2026-09-20\n"
    assert show(stage, {"cwd": str(stage.project)}, cwd=stage.root) == "memkit 2 sessions · last 2026-09-20\n"
    (stage.project / ".memkit" / "off").touch()
    assert show(stage, given) == "memkit off\n"


def test_bad_input_disturbs_nobody(stage: Stage) -> None:
    for data in (
        b"", b"{", b"[1]", b"\xff\x00", b'{"cwd": 5, "workspace": ["x"], "session_id": {}}',
        b'{"cwd": "/nowhere\\u0000", "session_id": "../../x"}',
        b'{"workspace": {"project_dir": "\\ud800"}, "session_id": "\\ud800"}',
    ):  # fmt: skip
        assert show(stage, data) in ("", "memkit: no sessions yet\n")


def test_a_home_that_cannot_be_written_and_closed_streams(stage: Stage) -> None:
    stage.home.write_text("not a directory")
    (stage.project / ".memkit" / "memory").mkdir(parents=True)
    (stage.project / ".memkit" / "memory" / "2026-09-20.md").write_text("## 09:00 x <!-- session:a -->\n")
    assert show(stage, {"cwd": str(stage.project)}) == "memkit 1 session · last 2026-09-20\n"
    command = f'"{sys.executable}" -I "{REPOSITORY}/bin/memkit" statusline'
    for redirection in ("<&-", ">&-", "<&- >&- 2>&-"):
        done = subprocess.run(["sh", "-c", f"{command} {redirection}"], env=stage.environment, input=b"{}", check=False)
        assert done.returncode == 0


# The line that comes before summaries: once, to a person, where it is true.


# Without CLAUDECODE, by which the hook would ignore the worker that does nothing.
ATTENDED = {"CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_SESSION_ATTENDED": "1"}
LINE = (
    "memkit: from now on your own Claude Code summarizes your sessions into the project's memory, with at most "
    "60,000 tokens a day (about $0.09 with Haiku, or a part of your plan). To turn this off, type `!memkit config set "
    "summarize.provider none` here"
)


@pytest.fixture
def user(stage: Stage) -> Stage:
    """A user whose Claude Code is logged in, and who has just installed memkit."""
    claude = stage.root / "user" / ".local" / "bin" / "claude"
    claude.parent.mkdir(parents=True)
    claude.write_text(f"#!/bin/sh\ntouch {stage.root}/claude-ran\n")
    claude.chmod(0o755)
    stage.environment["HOME"] = str(stage.root / "user")
    (stage.root / "user" / ".claude").mkdir()
    log_in(stage)
    return stage


def log_in(stage: Stage) -> None:
    login = {"claudeAiOauth": {"accessToken": "t", "scopes": ["user:inference"]}}
    credentials(stage).write_text(json.dumps(login))


def credentials(stage: Stage) -> Path:
    return stage.root / "user" / ".claude" / ".credentials.json"


@pytest.fixture(autouse=True)
def no_service(stage: Stage) -> Iterator[None]:
    """The hooks of this file start nothing but the worker that only notes its arguments."""
    yield
    assert not (stage.home / "run" / "service.lock").exists()
    assert not (stage.home / "env").exists()


def start_seen(stage: Stage, source: str = "startup", **environment: str) -> str:
    answer = stage.run(
        "session_start", stage.event("SessionStart", source=source), environment={**ATTENDED, **environment}
    )
    lines = str(answer.json.get("systemMessage", "")).splitlines()
    return "\n".join(line for line in lines if "summar" in line)


def configure(stage: Stage, text: str, *, publish: bool) -> None:
    home = Home(str(stage.home))
    stage.home.mkdir(mode=0o700, exist_ok=True)
    Path(home.config_file).write_text(text)
    if publish:
        load.publish_hook_settings(home)


def test_the_first_session_says_it_once(user: Stage) -> None:
    assert start_seen(user) == LINE
    announced = Path(Home(str(user.home)).announced)
    assert announced.stat().st_mode & 0o777 == 0o600
    assert start_seen(user) == ""
    assert not (user.root / "claude-ran").exists()
    assert user.errors() == ""
    read = 1_000_000 / (1 + ANSWER_SHARE)  # its price is that of the list
    usage = TokenUsage(round(read), round(read * ANSWER_SHARE))
    assert price("claude-cli", DEFAULT_MODEL, usage) == pytest.approx(USD_PER_MILLION, abs=0.005)
    assert Settings().summarize.daily_tokens == DEFAULT_TOKENS
    shutil.rmtree(user.home)
    user.home.mkdir(mode=0o700)
    (user.home / "summaries").write_text("a file")  # what cannot be recorded comes again
    assert start_seen(user) == start_seen(user) == LINE
    assert "SessionStart" in user.errors()


def test_a_session_that_nobody_sees_does_not_count(user: Stage) -> None:
    for name, value in (
        ("CLAUDE_CODE_ENTRYPOINT", "sdk-cli"), ("CLAUDE_CODE_ENTRYPOINT", "sdk-py"), ("CLAUDE_CODE_ENTRYPOINT", ""),
        ("CLAUDE_CODE_SESSION_ATTENDED", "0"), ("MEMKIT_CHILD", "1"),
        ("ANTHROPIC_BASE_URL", "https://gateway.example"),
    ):  # fmt: skip
        assert start_seen(user, **{name: value}) == ""
        assert not os.path.exists(Home(str(user.home)).announced)
    for source in ("clear", "compact"):  # only the start of a session shows it
        assert start_seen(user, source) == ""
    assert start_seen(user, "resume") == LINE


def test_no_line_without_a_login_or_without_the_program(user: Stage) -> None:
    credentials(user).unlink()
    assert start_seen(user, ANTHROPIC_API_KEY="sk-1") == ""
    log_in(user)
    program = user.root / "user" / ".local" / "bin" / "claude"
    program.rename(program.with_name("other"))
    assert start_seen(user, PATH="/nowhere") == ""
    assert not os.path.exists(Home(str(user.home)).announced)


def test_the_line_heeds_published_settings(user: Stage) -> None:
    for text in ('provider = "none"', 'provider = "auto"', "daily_tokens = 0"):
        configure(user, f"[summarize]\n{text}\n", publish=True)
        assert start_seen(user) == ""
    for provider in ("none", "auto"):  # a decision after they were published
        configure(user, "[summarize]\ndaily_tokens = 9000\n", publish=True)
        configure(user, f'[summarize]\nprovider = "{provider}"\n', publish=False)
        later = os.stat(Home(str(user.home)).hook_settings).st_mtime + 10
        os.utime(Home(str(user.home)).config_file, (later, later))
        assert start_seen(user) == ""
        os.unlink(Home(str(user.home)).hook_settings)
        assert start_seen(user) == ""
    configure(user, "[search]\nk = 7\n", publish=True)
    Path(Home(str(user.home)).hook_settings).write_text('{"session_start": "guide"}')  # by an earlier version
    assert start_seen(user) == LINE
    os.unlink(Home(str(user.home)).announced)
    configure(user, "[summarize]\ndaily_tokens = 700000\n", publish=True)
    assert "at most 700,000 tokens a day (about $1.00 with Haiku" in start_seen(user)


def test_the_first_prompt_of_a_home_says_that_memkit_records(stage: Stage) -> None:
    """A session that installs memkit sees its first hook at a prompt. Only a person's terminal counts."""

    def prompt(**environment: str) -> object:
        answer = stage.run("prompt_submit", stage.event("UserPromptSubmit", prompt="Hi"), environment=environment)
        return answer.json.get("systemMessage")

    assert prompt() is None  # `claude -p`
    first = prompt(**ATTENDED)
    assert str(first).startswith("memkit: recording this project from now on")
    assert prompt(**ATTENDED) is None
    (stage.home / "run" / "first-notice").unlink()
    (stage.home / "archive").mkdir()  # a memory that is in use
    assert prompt(**ATTENDED) is None
