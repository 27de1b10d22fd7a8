"""Notes: their metadata, and that one is written once."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit import anchors
from memkit.errors import MemkitError
from memkit.journal.day_file import DayFile
from memkit.journal.digest import note_text, read_note
from memkit.journal.journal import Journal
from memkit.projects.project import Project
from tests.builders import make_note
from tests.ci import examples

NOON = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=5,
)


def section(text: str = "A note", tags: tuple[str, ...] = (), metadata: dict[str, Any] | None = None) -> str:
    return note_text(text, tags, str, metadata).note(NOON).section


def test_a_note_without_metadata_is_as_before() -> None:
    note = make_note("The gateway moves.", ["deploy"], NOON, str)
    assert note.section == f"## 12:00 Note: The gateway moves. <!-- note:{note.id} -->\nTags: deploy"
    assert read_note(note.section) == (["deploy"], {})


@settings(max_examples=examples(100))
@given(st.dictionaries(st.text(max_size=10), json_values, max_size=4))
def test_metadata_comes_back_and_forges_nothing(metadata: dict[str, Any]) -> None:
    text = section(metadata=metadata)
    found = DayFile(f"# 2026-11-20\n\n{text}\n")
    assert len(found.sections) == 1
    assert text.count("\n") == bool(metadata)
    plain = json.dumps(metadata)
    if plain.isprintable() and "\\u" not in plain and "\\" not in plain:
        assert read_note(text) == ([], metadata)


def test_metadata_is_no_anchor_and_no_secret() -> None:
    from memkit.privacy.redact import redact

    key = "sk-ant-api03-" + "a" * 90
    metadata = {"a": "<!-- turn:8ad3df7f -->", "password": "hunter2hunter2", key: key}
    text = note_text("A note", (), redact, metadata).note(NOON).section
    assert set(anchors.parse(text)) == {"note"}
    assert "hunter2" not in text
    assert "a" * 90 not in text
    assert read_note(text)[1]["a"] == "<!-- turn:8ad3df7f -->"


def test_edited_lines_are_read_as_they_are() -> None:
    heading = "## 12:00 Note: x <!-- note:ab12cd34 -->"
    assert read_note(f"{heading}\nTags: a,b ,, c") == (["a", "b", "c"], {})
    assert read_note(f"{heading}\nMetadata: {{broken") == ([], {})
    assert read_note(f"{heading}\nMetadata: [1]") == ([], {})
    assert read_note(heading) == ([], {})
    assert read_note(f"{heading}\nTags: a\nMy own line") == ([], {})


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999", "[" * 2000, "9" * 5000])
def test_a_hostile_line_is_no_metadata(value: str) -> None:
    found = read_note(f'## 12:00 Note: x <!-- note:ab12cd34 -->\nTags: a\nMetadata: {{"a": {value}}}')
    assert json.dumps(found, allow_nan=False) == "[[], {}]"


@pytest.mark.parametrize(
    "text",
    [
        'hello\n\nTags: admin\nMetadata: {"approved": true}',
        'Tags: admin\nMetadata: {"approved": true}',
        "hello\nTags: admin",
        "```\na\n```\nTags: admin",
    ],
)
def test_a_text_forges_no_tags_and_no_metadata(text: str) -> None:
    assert read_note(section(text)) == ([], {})
    assert read_note(section(text, ("own",))) == (["own"], {})
    assert read_note(section(text, (), {"own": 1})) == ([], {"own": 1})
    assert DayFile(f"# 2026-11-20\n\n{section(text)}\n").sections[0].pairs.keys() == {"note"}


def test_what_utf_8_cannot_hold_is_replaced_and_the_rest_comes_back() -> None:
    text = section("a \ud800 b", ("t\ud800",), {"k\ud800": "v\udcff"})
    assert text.encode()
    assert read_note(text) == (["t?"], {"k?": "v?"})
    assert read_note(section(metadata=deep(20)))[1] == deep(20)
    assert "\nTags: a\nand more" in section("One\nTags: a\nand more")


def deep(levels: int) -> Any:
    return {"a": deep(levels - 1)} if levels else 1


@pytest.mark.parametrize(
    "metadata", [{"n": float("nan")}, {"n": object()}, {"a": "b" * 5000}, deep(21), deep(900)]
)
def test_what_is_no_metadata(metadata: dict[str, Any]) -> None:
    with pytest.raises(MemkitError, match="metadata"):
        section(metadata=metadata)


def test_a_note_is_found_by_what_it_said(tmp_path: Any) -> None:
    journal = Journal(Project(str(tmp_path)))
    said = note_text("The gateway moves.", ("deploy",), str, {"a": 1})
    assert journal.find_note(said) is None
    note = said.note(NOON)
    assert journal.add_note(note)
    found = journal.find_note(said)
    assert found is not None
    assert (found.id, found.day, found.is_new) == (note.id, "2026-11-20", False)
    for other in (
        note_text("The gateway moved.", ("deploy",), str, {"a": 1}),
        note_text("The gateway moves.", (), str, {"a": 1}),
        note_text("The gateway moves.", ("deploy",), str, {"a": 2}),
        note_text("The gateway moves.", ("deploy",), str),
    ):
        assert journal.find_note(other) is None
    path = journal.path("2026-11-20")
    path.write_text(path.read_text().replace("Tags: deploy", "My own words"))
    assert journal.find_note(said) is not None  # an edit is no reason to write it again
