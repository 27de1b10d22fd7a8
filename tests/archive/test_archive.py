"""The archive: every exchange once and whole, however often it is written and whenever that is cut short."""

from __future__ import annotations

import itertools
import json
import logging
import os
import random
import re
import signal
import stat
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.archive import turn as archived
from memkit.archive.archive import Archive
from memkit.archive.turn import ArchivedTurn, bounded
from memkit.browse.transcript import find_original, read_messages
from memkit.capture.capture import Capture
from memkit.conversation.turn import Message, ToolUse
from memkit.conversation.values import MAX_DEPTH
from memkit.errors import AmbiguousIdError, ArchiveError, ArchiveVersionError
from memkit.paths import Home
from memkit.privacy.redact import redact
from memkit.settings import CaptureSettings
from memkit.settings.load import Settings
from tests.builders import SESSION, Lines
from tests.capture.places import RECORDED, REPOSITORY
from tests.capture.stage import Stage, prompt_id
from tests.ci import IN_CI, sized

pytestmark = pytest.mark.usefixtures("unsynced")

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=timezone.utc)


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(Home(str(tmp_path / "home")))


def turn(name: str, *said: str, minute: int = 0) -> ArchivedTurn:
    when = NOON + timedelta(minutes=minute)
    messages = tuple(Message("assistant", when, text, (), name) for text in said or ("yes",))
    return ArchivedTurn(name, messages, time=when, finished=when)


def texts(archive: Archive, session: str = "s") -> dict[str, list[str]]:
    return {one.id: [message.text for message in one.messages] for one in archive.turns(session)}


def text_in(path: Path) -> str:
    return zstandard.ZstdDecompressor().stream_reader(path.read_bytes(), read_across_frames=True).read().decode()


# The file.


def test_kept_turns_are_read_back(archive: Archive) -> None:
    assert (list(archive.sessions()), archive.turns("s"), archive.find("s")) == ([], [], None)
    assert archive.size().sessions == archive.remove_older(1e12) == 0
    tools = (
        ToolUse("Bash", {"command": "x", "n": 10**30, "deep": [{"a": None}], "f": 0.5}),
        ToolUse("Bash", result="done \u2028 é", is_error=True),
    )
    said = (Message("assistant", NOON, "", tools, "a"),)
    one = ArchivedTurn("a", said, "p", "u", NOON, None, "/p", "/p/d", "main")
    assert archive.append("s", [one]) == 1
    assert archive.turns("s") == [one]
    path = archive.path("s")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert len(text_in(path).splitlines()) == 3  # U+2028 ends a line for `str`, not for JSON lines
    assert json.loads(text_in(path).split("\n")[0]) == {"format": "memkit archive", "version": 1, "session": "s"}
    archive.append("s", [turn("b")])
    before = archive.path("s").read_bytes()
    assert archive.append("s", [one, turn("b"), one]) == archive.append("s", []) == 0
    assert archive.path("s").read_bytes() == before


def test_a_turn_that_grew_counts_as_it_was_last(archive: Archive) -> None:
    archive.append("s", [turn("a", "half"), turn("b", minute=1)])
    assert archive.append("s", [turn("a", "half", "whole"), turn("c", minute=-1)]) == 2
    assert texts(archive) == {"c": ["yes"], "a": ["half", "whole"], "b": ["yes"]}
    assert list(texts(archive)) == ["c", "a", "b"]
    # What the transcript has lost since stays; what reads otherwise by now, redacted say, does not.
    assert archive.append("s", [turn("a", "half")]) == 0
    assert archive.append("s", [turn("a", "[redacted]", "whole")]) == 1
    assert texts(archive)["a"] == ["[redacted]", "whole"]


def test_a_mostly_replaced_file_is_rewritten(archive: Archive) -> None:
    noise = random.Random(5)
    long = [f"{noise.getrandbits(4000):x}" for _ in range(8)]
    sizes = []
    for count in range(1, 9):
        archive.append("s", [turn("b", *long[:count]), turn("a")])  # of the same time: they stay in order
        sizes.append(archive.path("s").stat().st_size)
    assert list(texts(archive).items()) == [("b", long), ("a", ["yes"])]
    lines = text_in(archive.path("s")).splitlines()
    assert 3 <= len(lines) < 9
    assert sum("memkit archive" in line for line in lines) == 1
    assert any(later < earlier for earlier, later in itertools.pairwise(sizes))
    assert stat.S_IMODE(archive.path("s").stat().st_mode) == 0o600
    assert [path.name for path in archive.directory.iterdir()] == ["s.jsonl.zst"]


batches = st.lists(
    st.lists(
        st.tuples(st.sampled_from("abcde"), st.integers(1, 4), st.text(max_size=30)), min_size=1, max_size=3
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=12 if IN_CI else 4)
@given(batches=batches)
def test_killed_at_any_byte_of_an_append(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[tuple[str, int, str]]]
) -> None:
    archive = Archive(Home(str(tmp_path_factory.mktemp("a"))))
    path = archive.path("s")
    made = [[turn(name, *[text] * count) for name, count, text in batch] for batch in batches]
    for batch in made[:-1]:
        archive.append("s", batch)
    before, known = (path.read_bytes() if path.exists() else b""), archive.turns("s")
    archive.append("s", made[-1])
    after, wanted = path.read_bytes(), archive.turns("s")
    # Where it was written anew it is replaced at once, and no part of it can be there.
    cuts = range(len(before), len(after), sized(19, 7, 1)) if after.startswith(before) else ()
    for cut in cuts:
        path.write_bytes(after[:cut])
        assert archive.turns("s") == known
        archive.append("s", made[-1])
        assert path.read_bytes() == after
    assert archive.append("s", made[-1]) == 0 or len({one.id for one in made[-1]}) < len(made[-1])
    assert archive.turns("s") == wanted


def test_a_torn_append_is_told_and_hides_nothing(archive: Archive, caplog: pytest.LogCaptureFixture) -> None:
    archive.append("s", [turn("a")])
    archive.append("s", [turn("b", minute=1)])
    path = archive.path("s")
    path.write_bytes(path.read_bytes()[:-3])
    with caplog.at_level(logging.WARNING):
        archive.append("s", [turn("c", minute=2)])
    assert re.search(r"s\.jsonl\.zst: cut off \d+ bytes of an unfinished write", caplog.text)
    assert list(texts(archive)) == ["a", "c"]


@pytest.mark.parametrize("tail", [b"\0" * 500, b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfd" * 9, b"x"])
def test_after_a_power_cut_anything_can_stand_at_the_end(archive: Archive, tail: bytes) -> None:
    archive.append("s", [turn("a")])
    path = archive.path("s")
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    assert list(texts(archive)) == ["a"]
    archive.append("s", [turn("b", minute=1)])
    mended = path.read_bytes()
    path.write_bytes(whole)
    archive.append("s", [turn("b", minute=1)])
    assert path.read_bytes() == mended
    assert list(texts(archive)) == ["a", "b"]


@pytest.mark.parametrize("damaged", [0, 1])
def test_damage_loses_one_frame(archive: Archive, damaged: int, caplog: pytest.LogCaptureFixture) -> None:
    bounds = [0]
    for number, name in enumerate("abc"):
        archive.append("s", [turn(name, minute=number)])
        bounds.append(archive.path("s").stat().st_size)
    path = archive.path("s")
    data = bytearray(path.read_bytes())
    data[(bounds[damaged] + bounds[damaged + 1]) // 2] ^= 0xFF
    path.write_bytes(data)
    left = [name for number, name in enumerate("abc") if number != damaged]
    assert list(texts(archive)) == left
    assert "damaged bytes" in caplog.text
    archive.append("s", [turn("abc"[damaged], minute=damaged), turn("d", minute=9)])
    assert list(texts(archive)) == ["a", "b", "c", "d"]


def test_a_newer_format_is_left_alone(archive: Archive) -> None:
    line = b'{"format":"memkit archive","version":2,"session":"s"}\n{"new":1}\n'
    archive.directory.mkdir(parents=True)
    archive.path("s").write_bytes(zstandard.ZstdCompressor().compress(line))
    before = archive.path("s").read_bytes()
    for act in (lambda: archive.turns("s"), lambda: archive.append("s", [turn("a")])):
        with pytest.raises(ArchiveVersionError, match=r"newer memkit \(version 2 .*; update memkit"):
            act()
    assert archive.path("s").read_bytes() == before
    assert archive.remove_older(0) == 0


def test_a_failed_write_is_reported(archive: Archive) -> None:
    archive.directory.parent.mkdir(parents=True)
    archive.directory.write_text("a file in the way")
    with pytest.raises(ArchiveError, match=r"cannot (read|write) the archive"):
        archive.append("s", [turn("a")])


WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from memkit.archive import turn as archived
from memkit.archive.archive import Archive
from memkit.archive.turn import ArchivedTurn
from memkit.conversation.turn import Message
from memkit.paths import Home
archive = Archive(Home(sys.argv[2]))
print("ready", flush=True)
for number in range(30):
    for grown in (1, 2):
        text = "".join(chr(97 + (number * k * grown) % 26) for k in range(20000))
        said = (Message("assistant", None, text, (), f"{number:08x}"),) * grown
        archive.append("s", [ArchivedTurn(f"{number:08x}", said)])
"""


def test_killed_at_any_moment_and_run_again(tmp_path: Path) -> None:
    choice = random.Random(7)
    archive = Archive(Home(str(tmp_path)))
    command = [sys.executable, "-c", WRITER, str(REPOSITORY), str(tmp_path)]
    seen: set[str] = set()
    for _ in range(sized(2, 3, 5)):
        writer = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        # Not a wait for something: each delay is another moment to be killed at.
        time.sleep(choice.random() * 0.15)
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        found = {one.id for one in archive.turns("s")}
        assert found >= seen
        seen = found
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert [one.id for one in archive.turns("s")] == [f"{number:08x}" for number in range(30)]
    assert all(len(one.messages) == 2 for one in archive.turns("s"))


# The sessions.


def test_sessions_by_their_names(archive: Archive) -> None:
    names = ["fd0aee29-7d4e", "fd0bffff", "../../etc/x", "a b", "x" * 100]
    for name in names:
        archive.append(name, [turn("a", name)])
    assert sorted(archive.sessions()) == sorted(names)
    assert all(path.parent == archive.directory for path in archive.directory.rglob("*.zst"))
    for name in names:
        assert archive.find(name) == name
        assert texts(archive, name) == {"a": [name]}
    assert archive.find("fd0a") == "fd0aee29-7d4e"
    assert archive.find("../..") == "../../etc/x"
    assert archive.find("") is archive.find("nobody") is None
    with pytest.raises(AmbiguousIdError, match="fd0aee29-7d4e, fd0bffff"):
        archive.find("fd0")
    size = archive.size()
    assert (size.sessions, size.bytes) == (5, sum(p.stat().st_size for p in archive.directory.iterdir()))


def test_sessions_are_removed_by_their_last_turn(archive: Archive) -> None:
    archive.append("old", [turn("a", minute=-10), turn("b", minute=-5)])
    archive.append("mixed", [turn("a", minute=5), turn("b", minute=-10)])
    archive.append("timeless", [ArchivedTurn("a", (Message("user", None, "x", (), "a"),))])
    assert archive.remove_older(NOON.timestamp() - 300) == 0
    assert archive.remove_older(NOON.timestamp()) == 1
    assert sorted(archive.sessions()) == ["mixed", "timeless"]


# What capture keeps.


def test_everything_said_is_kept(stage: Stage) -> None:
    lines = Lines().prompt("go", prompt_id(1)).answer("First I look.").call("Read", "t", file_path="a")
    lines.result("t", "content").answer("Now I know.").call("Bash", "u", command="make").result("u", "built")
    lines.answer("Done.").prompt("secret #skip", prompt_id(2)).answer("hidden")
    stage.write(lines)
    Capture(stage.home, Settings()).import_file(stage.transcript, stage.project)
    archive = Archive(stage.home)
    (one,) = archive.turns(SESSION)
    assert list(one.messages) == [m for m in read_messages(stage.transcript, str) if m.turn == one.id]
    assert len(one.messages) == 8
    assert (one.prompt_id, one.cwd, one.branch, one.project) == (
        prompt_id(1), "/home/shop", "main", stage.project.root,
    )  # fmt: skip
    assert one.time is not None and one.finished is not None and one.time < one.finished


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.jsonl")), ids=lambda path: path.stem)
def test_the_archive_shows_the_transcript(stage: Stage, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(stage.root))
    stage.use(path.stem)
    Capture(stage.home, Settings()).import_file(stage.transcript, stage.project)
    archive = Archive(stage.home)
    for session in archive.sessions():
        kept = {one.id for one in archive.turns(session)}
        shown = [m for m in read_messages(stage.transcript, redact) if m.turn in kept]
        original = find_original(stage.home, session)
        if original is None or original.archive is None:
            stage.transcript.unlink()
            original = find_original(stage.home, session)
        assert original is not None and original.archive is not None
        assert list(original.messages(redact)) == shown
        assert shown


def test_import_and_live_capture_are_equal(stage: Stage, tmp_path: Path) -> None:
    lines = Lines()
    for number in range(1, 5):
        lines.prompt(f"question {number}", prompt_id(number)).answer("I look.")
        stage.write(lines)
        stage.handle("PreCompact")  # in the middle of the turn
        lines.call("Bash", f"t{number}", command="ls").result(f"t{number}", "a b")
        stage.write(lines)
        stage.handle("Stop", late=True, prompt_id=prompt_id(number))  # the answer is not there yet
        lines.answer(f"answer {number}")
        stage.write(lines)
    stage.handle("SessionEnd")
    live = Archive(stage.home)
    assert [len(one.messages) for one in live.turns(SESSION)] == [5] * 4
    other = Home(str(tmp_path / "other"))
    Capture(other, Settings()).import_file(stage.transcript, stage.project)
    assert Archive(other).turns(SESSION) == live.turns(SESSION)
    before = live.path(SESSION).read_bytes()
    Capture(stage.home, Settings()).import_file(stage.transcript, stage.project)
    assert live.path(SESSION).read_bytes() == before


def test_a_kill_between_journal_and_archive_loses_nothing(stage: Stage) -> None:
    stage.write(Lines().prompt("q", prompt_id(1)).answer("a"))
    with pytest.MonkeyPatch.context() as patch:

        def die(*_: object) -> None:
            raise KeyboardInterrupt

        patch.setattr(Archive, "keep", die)
        with pytest.raises(KeyboardInterrupt):
            stage.handle("Stop", prompt_id=prompt_id(1))
    assert len(stage.turns) == 1
    stage.handle("Stop", prompt_id=prompt_id(1))
    assert len(stage.turns) == len(Archive(stage.home).turns(SESSION)) == 1


def test_a_newer_archive_stops_no_memory(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    line = b'{"format":"memkit archive","version":2}\n'
    path = Archive(stage.home).path(SESSION)
    path.parent.mkdir(parents=True)
    path.write_bytes(zstandard.ZstdCompressor().compress(line))
    stage.write(Lines().prompt("q", prompt_id(1)).answer("a"))
    Capture(stage.home, Settings()).import_file(stage.transcript, stage.project)
    assert len(stage.turns) == 1
    assert "is not archived" in caplog.text


KEY = "sk-ant-api03-" + "aB3dE5gH7jK9mN1pQ3rS"


def test_no_secret_reaches_the_file(stage: Stage) -> None:
    pem = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEow9bXq\n" * 2000 + "-----END RSA PRIVATE KEY-----"
    lines = Lines().prompt(f"key {KEY} <private>my name</private>", prompt_id(1), cwd=f"/x/{KEY}", gitBranch=KEY)
    lines.answer(f"I see {KEY}, wombat-17.")
    lines.call(
        KEY, "t", command=f"curl {KEY}", password="hunter2-hunter2", wombat=["wombat-18"], **{KEY: {KEY: KEY}}
    ).result("t", f"got {KEY} {pem} wombat-19").answer("Done.")
    stage.write(lines)
    own = Settings(capture=CaptureSettings(redact=[r"wombat-\d+"]))
    Capture(stage.home, own).import_file(stage.transcript, stage.project)
    path = Archive(stage.home).path(SESSION)
    for text in (text_in(path), path.read_bytes().decode("latin-1")):
        for secret in (KEY, KEY[13:], "my name", "hunter2", "MIIEow9bXq", "wombat-1"):
            assert secret not in text
    assert "I see [redacted:anthropic-key], [redacted:custom]" in text_in(path)
    assert "[redacted:private-key]" in text_in(path)


def test_long_pieces_keep_their_ends_and_no_half_of_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archived, "REDACTED_CHARACTERS", 40_000)
    limit = archived.PIECE_CHARACTERS
    keep = bounded(redact)
    assert keep("x" * limit) == "x" * limit
    text = f"begin {'word ' * (limit // 4)} end"
    assert keep(text).startswith("begin word") and keep(text).endswith("word  end")
    assert f"({len(text) - limit:,} characters are not archived)" in keep(text)
    for size in (limit // 2, archived.REDACTED_CHARACTERS):
        for shift in range(0, len(KEY), 5):
            spaced = "y " * ((size - shift) // 2) + f" {KEY} " + "z " * archived.REDACTED_CHARACTERS
            assert KEY[:16] not in keep(spaced)
    # Where redaction leaves little before the cut, the cut itself is kept.
    hidden = f"<private>{'x' * (archived.REDACTED_CHARACTERS - 40)}</private> {KEY}" + "z" * 50
    assert KEY[:14] not in keep(hidden)


def test_a_deep_input_is_cut(stage: Stage) -> None:
    deep: object = "bottom"
    for _ in range(300):
        deep = [deep]
    stage.write(Lines().prompt("q", prompt_id(1)).call("X", "t", deep=deep, nan=float("nan"), n=2**70))
    Capture(stage.home, Settings()).import_file(stage.transcript, stage.project)
    (one,) = Archive(stage.home).turns(SESSION)
    given = one.messages[1].tools[0].input
    assert given["n"] == 2**70
    assert json.dumps(given["deep"]).count("[") == MAX_DEPTH - 1
