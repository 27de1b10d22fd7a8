"""Failures that are the same, and how a turn got past one."""

from __future__ import annotations

import pytest

from memkit.journal.tool_lines import read_call
from memkit.recall.moments import family, signature, way_past


def met(line: str):  # type: ignore[no-untyped-def]
    return signature(read_call(line))


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("pytest -q tests/x.py", "pytest"),
        ("cd /x/y && FOO=1 python3.12 -m pytest -q", "pytest"),
        ("sudo git push origin main", "git push"),
        ("npm run build", "npm run build"),
        ("uv run --frozen pytest", "pytest"),
        ("/usr/bin/python3 scripts/load.py --all", "python load.py"),
        ("./deploy.sh staging", "deploy.sh staging"),
        ("", ""),
    ],
)
def test_the_family_of_a_command(command: str, expected: str) -> None:
    assert family(command) == expected


def test_numbers_paths_hashes_and_quotes_do_not_tell_failures_apart() -> None:
    one = met("Bash `psql -f /a/b/seed.sql` → failed: ERROR: relation 'users' missing at 0x7ff1 in /a/b/seed.sql:12")
    other = met('Bash `psql -f seed.sql` → failed: ERROR: relation "users" missing at 0x1234abcd in /c/seed.sql:99')
    assert one.matches(other)
    assert not one.matches(met("Bash `psql -f x` → failed: ERROR: relation 'orders' missing at 0x1 in /c/seed.sql:9"))
    assert not one.matches(met("Bash `psql -f x` → failed: ERROR: relation 'users' missing at 0x1 in /c/other.sql:9"))
    assert not one.matches(met("Bash `mysql -f x` → failed: ERROR: relation 'users' missing at 0x1 in seed.sql:9"))


@pytest.mark.parametrize("reason", ["1 failed, 2 passed", "Exit code 1", "assert 1 == 2", "AssertionError"])
def test_a_message_without_a_cause_tells_nothing(reason: str) -> None:
    assert not met(f"Bash `pytest` → failed: {reason}").tells


YAML = "Bash `pytest -q` → failed: ModuleNotFoundError: No module named 'yaml'"


def told(*lines: str) -> str:
    return way_past([read_call(line) for line in lines], met(YAML))


def test_the_steps_before_the_call_that_passed() -> None:
    assert told(YAML, "Read a.py", "Bash `ls`", "Bash `jq . a.json`", "Bash `pip install pyyaml` → done", "Edit a.py ×2", "Bash `pytest -q` → 2 passed") == (
        "`pytest -q` failed: ModuleNotFoundError: No module named 'yaml'; "
        "it passed after `pip install pyyaml`, then Edit a.py"
    )
    assert told(YAML, "Bash `cd x && pytest -q` → 2 passed").endswith("`cd x && pytest -q` passed when it was run again")


@pytest.mark.parametrize(
    "later", ["Bash `pytest -q` → failed: other", "Bash `pytest | tail` → 1 failed", "Bash `make`", "Bash `pytest -q` → no result"]
)
def test_nothing_that_did_not_get_past_it(later: str) -> None:
    assert told(YAML, "Edit a.py", later) == ""
    assert told("Bash `pytest -q` → 2 passed", YAML) == ""
