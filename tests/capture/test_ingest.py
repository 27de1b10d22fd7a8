"""Sessions of other agents, message by message."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from memkit import Memory
from memkit.capture import ingest
from memkit.capture.ingest import Ingested
from memkit.capture.summary_queue import SummaryQueue
from memkit.errors import MemkitError
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.projects.registry import changing
from memkit.settings import ArchiveSettings, CaptureSettings, EmbeddingSettings, ServiceSettings
from memkit.settings.load import Settings

START = datetime(2026, 11, 20, 14, 2, tzinfo=timezone.utc)
SETTINGS = Settings(embedding=EmbeddingSettings(provider="none"), service=ServiceSettings(enabled=False))


def open_memory(tmp_path: Path, settings: Settings = SETTINGS, project: str = "project") -> Memory:
    root = tmp_path / project
    root.mkdir(exist_ok=True)
    return Memory(Project(str(root)), home=Home(str(tmp_path / "home")), settings_of=lambda _: settings)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return open_memory(tmp_path)


def say(memory: Memory, role: str, text: str, second: int = 0, session: str = "s", tool: str = "") -> Ingested:
    return memory.ingest(session, role, text, time=START + timedelta(seconds=second), tool=tool)


def text_of(memory: Memory) -> str:
    return "".join(memory.journal.day(day).render() for day in memory.days)


def test_a_turn_grows_and_stays_one(memory: Memory) -> None:
    turn = say(memory, "user", "Which port is free?").turn
    say(memory, "assistant", "I look.", 1)
    say(memory, "tool", "7443 is taken", 2, tool="Bash")
    say(memory, "assistant", "Take 7444.", 3)
    assert text_of(memory).count(f" turn:{turn} -->") == 1
    assert "**Did** Bash → 7443 is taken" in text_of(memory)
    assert "**Answered** Take 7444." in text_of(memory)
    exchange = memory.transcript(turn=turn, context=0)
    assert [one.role for one in exchange.messages] == ["user", "assistant", "tool", "assistant"]
    assert exchange.original.session == "agent-s"


def test_each_message_counts_once_in_whatever_order(memory: Memory) -> None:
    messages = [("user", "One?", 0), ("assistant", "First.", 1), ("user", "Two?", 2), ("assistant", "Second.", 3)]
    first = [say(memory, *one) for one in messages]
    text = text_of(memory)
    again = [say(memory, *one) for one in messages]
    assert [one.is_new for one in first] == [True] * 4
    assert [one.is_new for one in again] == [False] * 4
    assert [one.turn for one in first] == [one.turn for one in again]
    assert text_of(memory) == text
    assert say(memory, "assistant", "Third.", 4).turn == first[-1].turn  # the repeats moved nothing


def test_what_the_user_edited_stays(memory: Memory) -> None:
    say(memory, "user", "Which port is free?")
    say(memory, "assistant", "Take 7444.", 3)
    path = Path(memory.project.memory, "2026-11-20.md")
    edited = path.read_text().replace("**Answered** Take 7444.", "**Answered** Take 7445, I say.")
    path.write_text(edited)
    say(memory, "assistant", "Or 7446.", 4)
    assert path.read_text() == edited
    assert [one.text for one in memory.transcript("agent-s").messages][-1] == "Or 7446."


def test_what_follows_a_message_that_is_left_out_is_left_out(tmp_path: Path) -> None:
    memory = open_memory(tmp_path)
    kept = say(memory, "user", "Which port is free?")
    for number, hidden in enumerate(("#skip the dugong", "<private>the dugong"), start=1):
        left = say(memory, "user", hidden, 10 * number)
        assert not left.is_remembered
        after = say(memory, "assistant", "The dugong it is.", 10 * number + 1)
        assert (after.turn, after.is_remembered) == (left.turn, False)
    assert say(memory, "user", "What about the <private>dugong</private> port?", 40).is_remembered
    assert "dugong" not in text_of(memory)
    for path in Path(memory.home.root).rglob("*"):
        assert not path.is_file() or b"dugong" not in path.read_bytes()
    assert kept.turn in text_of(memory)


def test_a_forgotten_turn_takes_no_more_and_does_not_return(memory: Memory) -> None:
    before = say(memory, "user", "Which port is free?")
    turn = say(memory, "user", "Where is the dugong?", 10).turn
    memory.forget(turn)
    late = say(memory, "assistant", "The dugong is here.", 11)
    assert (late.turn, late.is_remembered) == (turn, False)
    again = say(memory, "user", "Where is the dugong?", 10)
    assert (again.is_new, again.is_remembered) == (False, False)
    assert "dugong" not in text_of(memory)
    assert before.turn in text_of(memory)


def test_a_session_has_one_project_and_none_of_claude_code(tmp_path: Path, memory: Memory) -> None:
    assert say(memory, "user", "One?").session == "agent-s"
    other = open_memory(tmp_path, project="other")
    with pytest.raises(MemkitError, match="another project"):
        say(other, "user", "One?")
    for name in ("", "../s", "a b", ".s", "s" * 81, "a--b"):
        with pytest.raises(MemkitError, match="letters"):
            say(memory, "user", "One?", session=name)


def test_secrets_are_redacted_before_the_first_write(tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "a" * 90
    settings = Settings(
        embedding=SETTINGS.embedding, service=SETTINGS.service, capture=CaptureSettings(redact=("dugong",))
    )
    memory = open_memory(tmp_path, settings)
    say(memory, "user", f"The key is {key}, of the dugong")
    say(memory, "tool", f"password={key}", 1, tool=f"Bash {key}")
    say(memory, "assistant", f"I saw {key} and the dugong", 2)
    for path in (*Path(memory.home.root).rglob("*"), *Path(memory.project.memory).rglob("*")):
        if path.is_file():
            assert b"a" * 90 not in path.read_bytes()
    shown = str(memory.transcript("agent-s").as_dict())
    assert "a" * 90 not in shown
    assert "dugong" not in shown


def test_no_provider_that_was_not_chosen_summarizes_them(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    from memkit import login

    monkeypatch.setattr(login, "why_unusable", lambda: "")
    say(memory, "user", "Which port is free?")
    assert list(SummaryQueue(memory.home)) == []


def test_a_moved_project_keeps_its_sessions(tmp_path: Path, memory: Memory) -> None:
    turn = say(memory, "user", "Which port is free?").turn
    Path(memory.project.root).rename(tmp_path / "moved")
    with changing(memory.home) as registry:
        registry.move(memory.project.root, str(tmp_path / "moved"))
    moved = Memory(str(tmp_path / "moved"), home=memory.home, settings_of=lambda _: SETTINGS)
    assert say(moved, "assistant", "Take 7444.", 1).turn == turn


def test_a_long_turn_goes_on_in_another(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "MOST_MESSAGES", 3)
    said = [say(memory, "user", "Go on.")]
    said += [say(memory, "tool", f"result {n}", n, tool="Bash") for n in range(1, 6)]
    assert len({one.turn for one in said[:3]}) == 1
    assert len({one.turn for one in said[3:]}) == 1
    assert len({one.turn for one in said}) == 2
    assert not say(memory, "tool", "result 4", 4, tool="Bash").is_new
    exchange = memory.transcript("agent-s", turn=said[-1].turn, context=0)
    assert [one.tools[0].result for one in exchange.messages] == ["result 3", "result 4", "result 5"]


def test_messages_that_are_none(memory: Memory) -> None:
    for arguments, said in (
        (("system", "a"), "no role"),
        (("user", "  "), "no text"),
        (("tool", "a"), "name the tool"),
        (("user", "a", 0, "s", "Bash"), "name the tool"),
        (("user", "One?", 0, "ghp_" + "a1B2c3D4e5F6" * 3), "looks like a secret"),
    ):
        with pytest.raises(MemkitError, match=said):
            say(memory, *arguments)  # type: ignore[arg-type]
    soon = datetime.now(timezone.utc) + timedelta(hours=1)
    assert memory.ingest("s", "user", "One?", time=soon).is_new
    with pytest.raises(MemkitError, match="future"):
        memory.ingest("s", "user", "Two?", time=soon + timedelta(days=2))
    first = say(memory, "assistant", "Good morning.", session="no-prompt")
    assert say(memory, "assistant", "It rains.", 1, session="no-prompt").turn == first.turn
    assert "It rains." in text_of(memory)


def test_where_nothing_is_kept(tmp_path: Path) -> None:
    memory = open_memory(
        tmp_path,
        Settings(embedding=SETTINGS.embedding, service=SETTINGS.service, archive=ArchiveSettings(enabled=False)),
    )
    with pytest.raises(MemkitError, match=r"archive\.enabled"):
        say(memory, "user", "a")
    memory.project.switch_off(1.0)
    with pytest.raises(MemkitError, match="is off"):
        say(memory, "user", "a")
