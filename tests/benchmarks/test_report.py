"""Each benchmark's section of one document."""

from __future__ import annotations

from pathlib import Path

import pytest


def test_a_section_is_replaced_and_the_rest_left_alone(tmp_path: Path) -> None:
    from report import replace_section

    document = tmp_path / "docs" / "benchmarks.md"
    replace_section("scale", "first", document)
    text = "# Benchmarks\n\nBy hand.\n\n" + document.read_text() + "\nBetween.\n"
    document.write_text(text)
    replace_section("locomo", "| a |\n| b |", document)
    replace_section("scale", "\nsecond \\1\n\nwith lines\n", document)
    assert document.read_text() == (
        "# Benchmarks\n\nBy hand.\n\n"
        "<!-- begin scale -->\nsecond \\1\n\nwith lines\n<!-- end scale -->\n\nBetween.\n\n"
        "<!-- begin locomo -->\n| a |\n| b |\n<!-- end locomo -->\n"
    )
    before = document.read_text()
    replace_section("scale", "second \\1\n\nwith lines", document)
    assert document.read_text() == before


@pytest.mark.parametrize(
    "text",
    [
        "<!-- begin scale -->\nold\n",
        "<!-- end scale -->\n<!-- begin scale -->\n",
        "<!-- begin scale -->\n<!-- end scale -->\n<!-- begin scale -->\n<!-- end scale -->\n",
    ],
)
def test_broken_markers_are_not_guessed_at(tmp_path: Path, text: str) -> None:
    from report import replace_section

    document = tmp_path / "benchmarks.md"
    document.write_text(text)
    with pytest.raises(ValueError, match="markers of scale"):
        replace_section("scale", "new", document)
    assert document.read_text() == text


def test_a_table() -> None:
    from report import table

    assert (
        table(("what", "ms"), [["search", "7"]]) == "| what | ms |\n| --- | ---: |\n| search | 7 |"
    )


def test_the_machine_has_no_name() -> None:
    import platform

    from report import machine

    assert "CPUs" in machine()
    assert not platform.node() or platform.node() not in machine()
