"""The line of a tool's result that tells how it went."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.journal.tool_lines import FAILED_CHARACTERS, OUTCOME_CHARACTERS, telling_line
from tests.ci import examples

HOOK = "╭──────╮\n│ 🥊 lefthook v1.12.3 │\n╰──────╯\n┃ biome ❯\nsummary: (done in 0.9 seconds)\n✔️ biome (0.2 seconds)"


@pytest.mark.parametrize(
    ("result", "line"),
    [
        ("collected 12 items\n....\n12 passed in 0.31s\nCleaning up", "12 passed in 0.31s"),
        ("FAILED a.py::test\n3 failed, 9 passed in 1.2s\nsee the log", "3 failed, 9 passed in 1.2s"),
        ("added 3 packages in 2s\n\nfound 0 vulnerabilities\nRun `npm fund` for details", "found 0 vulnerabilities"),
        (f"[main 1a2b3c4] Move the gateway\n 1 file changed\n{HOOK}", "[main 1a2b3c4] Move the gateway"),
        ("Creating a pull request\nhttps://github.com/a/b/pull/17\n", "https://github.com/a/b/pull/17"),
        ("To https://x.test/a.git\n   98b484b..04ef02a  main -> main", "98b484b..04ef02a main"),
        ("> check\n> biome check .\nChecked 8 files in 2ms. No fixes applied.\n" + "loaded from .env\n" * 3,
         "Checked 8 files in 2ms. No fixes applied."),
        ("On branch main\nnothing to commit, working tree clean", "nothing to commit, working tree clean"),
        ("error: pathspec 'x' did not match\nDone", "error: pathspec 'x' did not match"),
        ("one\ntwo", "two"),
        ("port: 443\nconst x = {", "port: 443"),
        ("\n".join(f"file{n}.txt" for n in range(40)), ""),
        ("Todos have been modified successfully. Ensure that you continue to use the todo list", ""),
        ("The file /a/b.py has been updated. Here's the result of running `cat -n`", ""),
        ("Shell cwd was reset to /home", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_the_result_of_a_call(result: str, line: str) -> None:
    assert telling_line(result, has_failed=False) == line


@pytest.mark.parametrize(
    ("result", "line"),
    [
        ("Rebasing (1/22)\rRebasing (2/22)\rerror: could not apply fb89908... fix: types\nhint: Resolve them",
         "error: could not apply fb89908... fix: types"),
        ("Exit code 1\nTraceback (most recent call last):\n  File \"a.py\"\nKeyError: 'port'", "KeyError: 'port'"),
        ("Environment variables loaded from .env\nChecked 88 files\nFound 2 errors.", "Found 2 errors."),
        ("The user doesn't want to proceed with this tool use. It was rejected (eg. if it was a file edit). STOP what",
         "The user doesn't want to proceed with this tool use. It was rejected (eg. if it was a file edit)."),
        ("Exit code 1\n* What went wrong:\nExecution failed for task ':app:ksp'.\n> SDK location not found.\n\n* Try:\n> Run it",
         "SDK location not found."),
        ("FATAL EXCEPTION: main\nE App: java.lang.RuntimeException: Exception while computing it\nE App: Caused by: a.StateException: no data",
         "E App: Caused by: a.StateException: no data"),
        ("Exit code 1\n│ Error: no lock\n│ Lock Info:", "Error: no lock"),
        ("Exit code 1", ""),
        ("orders: 0 missing\nimages: 37 missing", "images: 37 missing"),
    ],
)  # fmt: skip
def test_the_reason_of_a_failure(result: str, line: str) -> None:
    assert telling_line(result, has_failed=True) == line


def test_the_first_line_of_a_report() -> None:
    assert telling_line("The port is 7443.\nDetails", has_failed=False, first=True) == "The port is 7443."


@settings(max_examples=examples(100))
@given(st.text() | st.lists(st.sampled_from(["a 1 passed", "error: x", "─── y", "> z", "# t", "\x1b[31mred"])).map("\n".join))
def test_it_is_a_line_of_the_result(result: str) -> None:
    for has_failed in (True, False):
        line = telling_line(result, has_failed=has_failed)
        assert len(line) <= (FAILED_CHARACTERS if has_failed else OUTCOME_CHARACTERS)
        assert "\n" not in line
        assert "\x1b" not in line
