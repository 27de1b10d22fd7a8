"""What is shown on screens, consoles, and in pagers: whole, safe, and in the width there is."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from pathlib import Path

import pytest

from memkit import cli
from memkit.cli import output
from memkit.cli.context import Context
from memkit.cli.screen import cells, to_edge
from memkit.errors import MemkitError
from tests.ci import first
from tests.cli.conftest import Run, on_terminal
from tests.cli.fortnight import ROLLUP, check_screen, fortnight
from tests.memory import DAYS, Memory, make_memory

COLORS = {"0", "1", "2", "4", "31", "32", "36"}
"""What is legible on light and on dark: weights and basic colors, without yellow, white, and backgrounds."""


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """A memory below the user's home directory, so that its paths are the same everywhere."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MEMKIT_EMBEDDING_PROVIDER", "none")
    monkeypatch.setenv("MEMKIT_SUMMARIZE_PROVIDER", "none")
    return make_memory(tmp_path, DAYS)


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("command", ["--help", "status", "stats", "config list", "service"])
def test_screen(
    run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch, command: str, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = run(memory, *command.split()).output
    assert max(map(len, shown.splitlines())) <= columns
    assert "\x1b" not in shown
    check_screen(f"{command.strip('-').replace(' ', '-')}-{columns}", shown)


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [("all", ""), ("month", "2026-11 --depth 2"), ("week", "2026-W47"), ("day", "2026-11-20"),
     ("segment", "a000000f"), ("search", "--search port --limit 4")],
)  # fmt: skip
def test_timeline(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, arguments: str, columns: int
) -> None:
    """From the whole memory down to a segment. The second week has a rollup."""
    memory = fortnight(tmp_path)
    memory.write("2026-W47.md", ROLLUP)
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = run(memory, "timeline", *arguments.split()).output
    assert max(map(cells, shown.splitlines())) <= columns
    check_screen(f"timeline-{name}-{columns}", shown)


@pytest.mark.parametrize(("as_json", "is_counted"), [(False, False), (False, True), (True, False)])
def test_progress(monkeypatch: pytest.MonkeyPatch, as_json: bool, is_counted: bool) -> None:
    """It is drawn on a terminal and erased at the end; with `--json` there is none."""
    monkeypatch.setenv("TERM", "xterm-256color")
    ours, theirs = pytest.importorskip("pty").openpty()
    with open(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with Context(None, as_json).progress("[red]reading\x1b[2J", is_counted=is_counted) as progress:
            progress(3, 7)
        terminal.write("end")
        terminal.flush()
        drawn = ""
        while not drawn.endswith("end"):
            drawn += os.read(ours, 65536).decode()
    os.close(ours)
    assert "\x1b[2J" not in drawn
    if as_json:
        assert drawn == "end"
    else:
        assert "[red]reading" in drawn and ("3/7" in drawn) == is_counted
        assert drawn.endswith("\x1b[2Kend")


@pytest.mark.parametrize("command", first(1, ["config list", "stats"]))
def test_color(memory: Memory, command: str) -> None:
    shown = {"TERM": "xterm-256color", "PAGER": "cat"}
    on_terminal(memory, *command.split(), **shown)  # the first run of stats caches numbers, which take space
    colored = on_terminal(memory, *command.split(), **shown)
    codes = set(re.findall(r"\x1b\[([0-9;]*)m", colored))
    assert codes and {part for code in codes for part in code.split(";")} <= COLORS
    plain = on_terminal(memory, *command.split(), **shown, NO_COLOR="1")
    assert set(re.findall(r"\x1b\[([0-9;]*)m", plain)) <= {"0", "1", "2"}
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == re.sub(r"\x1b\[[0-9;]*m", "", plain)


# Long output is paged as git does it: by `$PAGER`, only on a terminal, only if it is longer than the screen.


PAGER = f"{sys.executable} -c 'import sys; print(\"PAGED\", len(sys.stdin.read().strip().splitlines()))'"


def test_only_what_is_longer_than_the_screen(past: Memory) -> None:
    assert on_terminal(past, "sessions", PAGER=PAGER, rows=27) == "PAGED 27\n"
    shown = on_terminal(past, "sessions", PAGER=PAGER, rows=28)
    assert "PAGED" not in shown
    assert set(re.findall("\x1b\\[(.*?)m", shown)) == {"0", "1", "2"}  # bold and dim suit light and dark
    assert len(shown.splitlines()) == 27


def test_no_pager(past: Memory) -> None:
    assert "5e550001" in on_terminal(past, "sessions", PAGER="", rows=10)
    shown = on_terminal(past, "show", "2026-11-20", NO_COLOR="1", PAGER="cat")
    assert "Staging gateway port (5e55000c)" in shown
    assert "\x1b" not in shown


def test_never_in_a_pipe(spawn: Run, past: Memory, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    found = spawn(past, "show", "2026-11-20", PAGER=f"touch {mark}", LINES="3")
    assert found.status == 0
    assert not mark.exists()


def test_a_repository_cannot_set_the_pager_of_a_session(past: Memory, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    hostile = {"PAGER": f"touch {mark}", "LESSOPEN": f"|touch {mark}", "LESS": "-o/tmp/x", "GIT_PAGER": f"touch {mark}"}
    shown = on_terminal(past, "sessions", rows=5, CLAUDECODE="1", **hostile)
    assert "5e550001" in shown
    assert not mark.exists()
    shown = on_terminal(past, "sessions", rows=5, PAGER=f"{PAGER}; touch {mark}")  # no shell runs it
    assert not mark.exists(), shown


def test_a_pager_that_cannot_be_parsed(past: Memory) -> None:
    shown = on_terminal(past, "sessions", rows=5, PAGER="less '", status=1)
    assert shown.startswith("memkit: cannot run the pager \"less '\": ")


# Output on consoles with small character sets, as on Windows.


TEXT = "# Größe → 中文 …\n\n" + "Der „Port“ ist 8443 – 中文 █ ✓ 🚀. " * 8

COMMANDS = [
    ("search", "--mode", "lexical", "Größe"), ("search", "--mode", "lexical", "--json", "Größe"), ("recall", "Größe"),
    ("status",), ("stats",), ("doctor",), ("jobs",), ("logs",), ("projects",), ("config",), ("cost",), ("audit",),
    ("service", "status"), ("export",), ("remember", "中文 → 🚀"), ("expand", "nothing → 中文"), ("no-such-命令",),
    ("completion", "bash"),
]  # fmt: skip


def print_to_console(monkeypatch: pytest.MonkeyPatch, encoding: str, *arguments: str) -> tuple[int, str]:
    """Return the status and output of a command on a console that can print only `encoding`."""
    console = io.BytesIO()
    stream = io.TextIOWrapper(console, encoding=encoding, errors="strict", write_through=True)
    monkeypatch.setattr(sys, "argv", ["memkit", *arguments])
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", stream)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    stream.flush()
    return int(str(stop.value.code)), console.getvalue().decode(encoding)


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch, fresh: Memory) -> Memory:
    """A memory with characters that such a console lacks."""
    fresh.write("notes.md", TEXT)
    fresh.write("2026-03-01.md", "# 2026-03-01\n\n## 10:00 中文 → 🚀\n\n" + TEXT)
    monkeypatch.setenv("MEMKIT_HOME", fresh.home.root)
    monkeypatch.chdir(fresh.project.root)
    return fresh


def test_every_command_prints_to_a_cp1252_console(monkeypatch: pytest.MonkeyPatch, foreign: Memory) -> None:
    for arguments in COMMANDS:
        _, said = print_to_console(monkeypatch, "cp1252", *arguments)
        assert said and "UnicodeEncodeError" not in said and "Traceback" not in said, arguments


def test_characters_that_the_console_lacks_are_escaped(monkeypatch: pytest.MonkeyPatch, foreign: Memory) -> None:
    search = ("search", "--mode", "lexical", "Größe")
    status, said = print_to_console(monkeypatch, "cp1252", *search)
    assert status == 0 and "Größe" in said and "\\u4e2d" in said
    status, said = print_to_console(monkeypatch, "cp1252", *search[:-1], "--json", "Größe")
    assert status == 0 and "中文" in json.loads(said)["results"][0]["content"]


def test_every_help_page_prints_to_a_cp437_console(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in cli._COMMANDS:
        status, said = print_to_console(monkeypatch, "cp437", name, "--help")
        assert status == 0 and said.startswith("Usage: memkit")


# Tables, numbers, questions, and safe text of `memkit.cli.output`.


def test_numbers_for_people() -> None:
    for count, text in ((0, "0 bytes"), (1, "1 byte"), (1500, "1.5 kB"), (3_400_000, "3.4 MB"), (2 * 10**9, "2.0 GB")):
        assert output.format_size(count) == text
    for seconds, text in ((-1, "0 seconds"), (1, "1 second"), (125, "2 minutes"), (7200, "2 hours"), (90_000, "1 day")):
        assert output.format_duration(seconds) == text
    for usd, text in ((None, "price unknown"), (0, "about $0.00"), (0.00123, "about $0.0012"), (12.345, "about $12.35")):
        assert output.format_estimate(usd) == text


def test_a_table_aligns_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table([("a\x1b[31m", "7", "x"), ("記憶", "1,200", "")], ("name", "calls", ""), numbers=[1])
    assert capsys.readouterr().out == "name  calls\na         7  x\n記憶  1,200\n"
    output.print_fields({"home": "/a\x9b", "project": "b"})
    assert capsys.readouterr().out == "home     /a\ufffd\nproject  b\n"
    assert output.styled("a\x1b[2Jb\x07", bold=True) == "\x1b[1mab\ufffd\x1b[0m"


def test_without_a_terminal_nothing_is_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    output.confirm("Delete?", yes=True)
    assert not output.user_agrees("Delete?", default=True)
    with pytest.raises(MemkitError) as caught:
        output.confirm("Delete?", yes=False)
    assert "--yes" not in str(caught.value)


def test_no_is_an_answer_and_no_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", _Terminal("n\ny\n"))
    with pytest.raises(MemkitError, match="you answered no"):
        output.confirm("Delete?", yes=False)
    output.confirm("Delete?", yes=False)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_text_is_filled_only_for_a_screen_of_known_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "__stdout__", io.StringIO())
    for columns, shown in (("80", "Port   "), ("", "Port")):
        monkeypatch.setenv("COLUMNS", columns)
        assert (to_edge("Port", 7), to_edge("Which port", 7)) == (shown, "Which…" + " " * (columns == "80"))
