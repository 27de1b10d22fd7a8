"""Which commands Claude may run unprompted: one that only reads this project's memory, and no other."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memkit.hook.reading import is_reading_command, words_of

COMMANDS = json.loads(Path(__file__).with_name("commands.json").read_text(encoding="utf-8"))
READING = COMMANDS["reading"]
# `words_of` reads all commands alike, so there is each trick once.
SHELL_TRICKS = [*COMMANDS["shell_tricks"], "memkit search " + "x" * 200_000, "memkit search " + "x" * 90_000 + ";"]
OTHER = [*COMMANDS["other_commands"], *SHELL_TRICKS, *COMMANDS["other_places"]]


def test_a_command_that_only_reads_this_memory_is_allowed() -> None:
    assert [one for one in READING if not is_reading_command({"command": one, "description": "Look"})] == []


def test_any_other_command_is_left_to_the_client() -> None:
    assert [one[:100] for one in OTHER if is_reading_command({"command": one})] == []


_FRAGMENTS = st.sampled_from(
    """memkit search expand a0 -k 8 --since =2w -- x;y ' " '' "" 'a' "b" ' ' \\ \\' $ $x `a` ( ) { } {a,b} * ? [a]
    ~ # ! & | < > = - = % ^ @ + , : / . … ö""".split() + [" ", " ", "\t", "\u00a0", "'a b'", '"c d"', "'$x'", "'*'"]
)


@given(st.lists(_FRAGMENTS, max_size=8).map("".join), st.text(max_size=12))
@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_a_shell_reads_the_very_words_that_the_check_read(shells: Shells, rest: str, quoted: str) -> None:
    for command in (f"memkit search {rest}", f"memkit search {rest}'{quoted}'", f'memkit search "{quoted}" {rest}'):
        if is_reading_command({"command": command}):
            words = words_of(command)
            assert words is not None
            shells.check(command, words, "bash")


def test_a_shell_reads_the_words_of_usual_commands(shells: Shells) -> None:
    for command in (one for one in READING if "<<" not in one):
        words = words_of(command)
        assert words is not None
        shells.check(command, words)


class Shells:
    """Shells in a directory with files for patterns to find."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        for name in ("a", "x", "=a", "-k"):
            (directory / name).touch()

    def check(self, command: str, words: list[str], *shells: str) -> None:
        script = f"memkit() {{ printf '%s\\0' \"$@\"; }}\n{command}"
        for shell in shells or ("bash", "sh"):
            done = subprocess.run([shell, "-c", script], cwd=self._directory, capture_output=True, check=True)
            assert done.stdout == b"".join(os.fsencode(word) + b"\0" for word in words)
            assert done.stderr == b""


@pytest.fixture(scope="module")
def shells(tmp_path_factory: pytest.TempPathFactory) -> Shells:
    return Shells(tmp_path_factory.mktemp("shells"))
