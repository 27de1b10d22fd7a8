"""The transcript parser: exact offsets, any bytes, any JSON, bounded memory."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memkit.agents import session_file
from memkit.agents.claude_code.transcript import Transcript
from memkit.agents.turns import read_turns
from memkit.conversation.values import parse_time
from memkit.errors import TranscriptError
from memkit.journal.digest import make_digest
from memkit.privacy.redact import redact
from tests.builders import Lines
from tests.capture.places import RECORDED
from tests.ci import IN_CI, sized

lines = st.lists(
    st.sampled_from(
        [
            b'{"type":"user","uuid":"a","message":{"content":"hi"}}',
            b'{"type":"assistant","uuid":"b","message":{"content":[{"type":"text","text":"yo"}]}}',
            b'{"type":"system","subtype":"local_command","content":"<command-name>/x</command-name>"}',
            b'{"type":"attachment","attachment":{"type":"queued_command","prompt":"more"}}',
            b'{"type":"user","message":{"content":"\\ud800 \\udc00 \\u0000"}}',
            b'{"type":[],"message":{}}',
            b'{"type":{}}',
            b'{"broken',
            b"",
            b"  ",
            b"\x00\x00",
            b"\xff\xfe",
            b"42",
            b"[" * 100_000,
            b"x" * 300,
        ]
    )
    | st.binary(max_size=20),
    max_size=12,
).map(b"\n".join)


@settings(max_examples=75 if IN_CI else 15)
@given(data=lines, ends_with_newline=st.booleans())
@example(data=b'{"type":"user","message":{"content":"whole, but no line end"}}', ends_with_newline=False)
def test_reading_on(tmp_path_factory: pytest.TempPathFactory, data: bytes, ends_with_newline: bool) -> None:
    path = tmp_path_factory.mktemp("t") / "s.jsonl"
    path.write_bytes(data + (b"\n" if ends_with_newline else b""))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_file, "MAX_LINE_BYTES", 200)
        entries = list(Transcript(path))
        for number, entry in enumerate(entries):
            assert list(Transcript(path, entry.start)) == entries[number:]
            assert list(Transcript(path, entry.end)) == entries[number + 1 :]
        whole = Transcript(path)
        list(whole)
    assert whole.end == path.read_bytes().rfind(b"\n") + 1


def test_a_line_that_grows_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client writes prompt and answer at once, and the reader meets the end of the file in the prompt."""
    lines = Lines().prompt("Why 7443?", "p1").answer("443 is taken.", promptId="p1")
    path = tmp_path / f"{lines.session}.jsonl"
    whole = lines.text.encode()
    path.write_bytes(whole[:60])
    parse = session_file._parsed

    def parse_while_it_grows(line: bytes) -> object:
        path.write_bytes(whole)
        return parse(line)

    monkeypatch.setattr(session_file, "_parsed", parse_while_it_grows)
    transcript = Transcript(path)
    assert list(read_turns(transcript)) == []
    assert (transcript.end, transcript.counts) == (0, {"unfinished": 1})
    (turn,) = read_turns(Transcript(path, transcript.end))
    assert (turn.prompt, turn.answer) == ("Why 7443?", "443 is taken.")


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.jsonl")), ids=lambda path: path.stem)
def test_every_line_of_the_client_is_known_by_its_offsets(path: Path) -> None:
    transcript = Transcript(path)
    entries = list(transcript)
    data = path.read_bytes()
    for entry in entries:
        assert json.loads(data[entry.start : entry.end])
        assert data[entry.end - 1 : entry.end] == b"\n"
    assert entries and transcript.counts == {}
    assert transcript.end == len(data)


def test_any_line_can_be_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = Lines().prompt("One").text
    for limit in range(len(short) - 3, len(short) + 3):
        monkeypatch.setattr(session_file, "MAX_LINE_BYTES", limit)
        path = tmp_path / "s.jsonl"
        path.write_text(short + short.replace("aaaa", "bbbb"))
        transcript = Transcript(path)
        found = len(list(transcript))
        assert found + transcript.counts["too long"] == 2
        assert transcript.end == path.stat().st_size
        assert found == (2 if limit >= len(short) else 0)


def test_text_that_no_file_can_hold_is_replaced_everywhere(tmp_path: Path) -> None:
    lines = Lines().prompt("lone \ud800 half", gitBranch="b\udfff")
    lines.call("Bash", "t\ud834", command="echo \udce9 \x00", nested=[{"deep\ud800": ["\ud801"]}])
    lines.result("t\ud834", "out \udfff").answer("pair \U0001f600, escaped \\ud800")
    (turn,) = read_turns(Transcript(lines.write(tmp_path)))
    section = make_digest(turn, "/home/shop", redact).section
    assert section.encode("utf-8")
    for shown in ("lone ? half", "`echo ?", "out ?", "pair \U0001f600, escaped \\ud800"):
        assert shown in section
    assert json.dumps(turn.tools[0].input, ensure_ascii=False).encode("utf-8")


@pytest.mark.parametrize(
    "time", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "1969-12-31T23:59:59Z", "soon", 5, None]
)
def test_absurd_times_are_none(tmp_path: Path, time: object) -> None:
    assert parse_time(time) is None
    (turn,) = read_turns(Transcript(Lines().prompt("One", timestamp=time).write(tmp_path)))
    assert make_digest(turn, "/home/shop", redact).day in ("1970-01-01", "1969-12-31")


def test_a_path_that_is_not_a_file_is_reported_in_one_line(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.jsonl", tmp_path):
        with pytest.raises(TranscriptError, match="cannot read the transcript"):
            list(Transcript(path))


def test_a_large_file_is_never_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    output, count = "x" * 100_000, sized(60, 100, 300)
    with path.open("w") as file:
        for number in range(count):
            lines = Lines(f"{number:08d}")
            lines.prompt(f"prompt {number}").call("Bash", "t", command="make")
            file.write(lines.result("t", output).answer("done").text)
    assert path.stat().st_size > 100_000 * count
    tracemalloc.start()
    try:
        turns = sum(1 for _ in read_turns(Transcript(path)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert turns == count
    assert peak < 3_000_000
