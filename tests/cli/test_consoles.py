"""Output on consoles with small character sets, as on Windows."""

from __future__ import annotations

import io
import json
import sys

import pytest

from memkit import cli
from tests.memory import Memory

TEXT = "# Größe → 中文 …\n\n" + "Der „Port“ ist 8443 – 中文 █ ✓ 🚀. " * 8

COMMANDS = [
    ("search", "--mode", "lexical", "Größe"),
    ("search", "--mode", "lexical", "--json", "Größe"),
    ("recall", "Größe"),
    ("status",),
    ("stats",),
    ("doctor",),
    ("jobs",),
    ("logs",),
    ("projects",),
    ("config",),
    ("cost",),
    ("audit",),
    ("service", "status"),
    ("export",),
    ("remember", "中文 → 🚀"),
    ("expand", "nothing → 中文"),
    ("no-such-命令",),
    ("completion", "bash"),
]


def print_to_console(
    monkeypatch: pytest.MonkeyPatch, encoding: str, *arguments: str
) -> tuple[int, str]:
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


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_every_command_prints_to_a_cp1252_console(
    monkeypatch: pytest.MonkeyPatch, foreign: Memory, arguments: tuple[str, ...]
) -> None:
    _, said = print_to_console(monkeypatch, "cp1252", *arguments)
    assert said
    assert "UnicodeEncodeError" not in said and "Traceback" not in said


def test_characters_that_the_console_lacks_are_escaped(monkeypatch: pytest.MonkeyPatch, foreign: Memory) -> None:
    search = ("search", "--mode", "lexical", "Größe")
    status, said = print_to_console(monkeypatch, "cp1252", *search)
    assert status == 0 and "Größe" in said and "\\u4e2d" in said
    status, said = print_to_console(monkeypatch, "cp1252", *search[:-1], "--json", "Größe")
    assert status == 0 and "中文" in json.loads(said)["results"][0]["content"]


@pytest.mark.parametrize("name", list(cli._COMMANDS))
def test_every_help_page_prints_to_a_cp437_console(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    status, said = print_to_console(monkeypatch, "cp437", name, "--help")
    assert status == 0 and said.startswith("Usage: memkit")
