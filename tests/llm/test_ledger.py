"""The ledger: durable records, damaged lines, and sums."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from memkit.llm.ledger import Call, Ledger, total
from memkit.paths import Home

NOW = time.mktime((2026, 11, 20, 12, 0, 0, 0, 0, -1))
CALL = Call("c1", NOW, "summarize", "anthropic", "claude-haiku-4-5", "/p", 1000, 4000, 0.02)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(Home(str(tmp_path / "home")))


def test_the_end_of_a_call_replaces_its_estimate(ledger: Ledger) -> None:
    ledger.record(CALL)
    assert ledger.today(NOW).tokens == 5000
    ledger.record(replace(CALL, tokens_out=300, usd=0.0025, outcome="ok", seconds=1.5))
    assert [call.tokens for call in ledger.calls()] == [1300]
    assert ledger.today(NOW).failed == 0
    assert ledger.today(NOW + 86_400).calls == 0
    assert ledger.path.stat().st_mode & 0o777 == 0o600


def test_sums(ledger: Ledger) -> None:
    for number, usd in enumerate((None, 0.5, 0.25)):
        ledger.record(replace(CALL, id=f"c{number}", usd=usd, time=NOW + number * 86_400))
    added = total(ledger.calls())
    assert (added.usd, added.unpriced, added.calls) == (0.75, 1, 3)  # an unknown price is not zero
    assert [call.id for call in ledger.calls("2026-11-21")] == ["c1", "c2"]


@pytest.mark.parametrize("damage", [b"{half a line", b"\xff\xfe\n", b"[1, 2]\n", b'{"id": 7}\n', b"\n\n"])
def test_a_damaged_line_loses_only_that_line(ledger: Ledger, damage: bytes) -> None:
    ledger.record(CALL)
    with ledger.path.open("ab") as file:
        file.write(damage)
    ledger.record(replace(CALL, id="c2"))
    assert [call.id for call in ledger.calls()] == ["c1", "c2"]


def test_unreadable_lines_by_day(ledger: Ledger) -> None:
    """Lines before a call of an earlier day are older than today; others are not, if the file changed today."""
    for name, days in (("c1", -2), ("c2", -1), ("c3", 0)):
        ledger.record(replace(CALL, id=name, time=NOW + days * 86_400))
        with ledger.path.open("ab") as file:
            file.write(b"damage\n")
    os.utime(ledger.path, (NOW, NOW))
    assert ledger.unreadable(NOW) == [4, 6]
    assert ledger.today(NOW).unreadable == 2
    os.utime(ledger.path, (NOW - 86_400, NOW - 86_400))
    assert ledger.unreadable(NOW) == []
    assert ledger.today(NOW).unreadable == 0


def test_every_field_is_in_the_manual(ledger: Ledger) -> None:
    ledger.record(CALL)
    page = Path(__file__).resolve().parents[2].joinpath("docs", "file-formats.md").read_text(encoding="utf-8")
    rows = [row.split("|")[1] for row in page.partition("## Ledger")[2].splitlines() if row.startswith("|")]
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == json.loads(ledger.path.read_text()).keys()
