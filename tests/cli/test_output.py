"""Tables, numbers, questions, and safe text of `memkit.cli.output`."""

from __future__ import annotations

import io
import sys

import pytest

from memkit.cli import output
from memkit.errors import MemkitError


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 bytes"), (1, "1 byte"), (1500, "1.5 kB"), (3_400_000, "3.4 MB"), (2 * 10**9, "2.0 GB")]
)
def test_sizes(count: int, text: str) -> None:
    assert output.format_size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1, "0 seconds"), (1, "1 second"), (125, "2 minutes"), (7200, "2 hours"), (90_000, "1 day")]
)
def test_durations(seconds: float, text: str) -> None:
    assert output.format_duration(seconds) == text


@pytest.mark.parametrize(
    ("usd", "text"), [(None, "price unknown"), (0, "about $0.00"), (0.00123, "about $0.0012"), (12.345, "about $12.35")]
)
def test_estimates(usd: float | None, text: str) -> None:
    assert output.format_estimate(usd) == text


def test_a_table_aligns_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table([("a\x1b[31m", "7", "x"), ("記憶", "1,200", "")], ("name", "calls", ""), numbers=[1])
    assert capsys.readouterr().out == "name  calls\na         7  x\n記憶  1,200\n"


def test_fields_align(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_fields({"home": "/a\x9b", "project": "b"})
    assert capsys.readouterr().out == "home     /a\ufffd\nproject  b\n"


def test_styled_text_is_safe() -> None:
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
