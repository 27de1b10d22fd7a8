"""OpenCode's sessions in the shapes of version 1.2: database, export, and the files of older versions."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkit.agents.database import Budget, query
from memkit.agents.exchange import messages_of
from memkit.agents.opencode.stores import ROW_BYTES, stored_at
from memkit.agents.registry import agent_at, agent_of, is_there, open_transcript, status_of
from memkit.agents.sources import find_sources
from memkit.errors import TranscriptError
from tests.agents.reading import turns_of

ID, CHILD = "ses_30bfbb6f4ffeJ2960akRy1tOR3", "ses_30bf5e2bdffeuYVmfe28CL29mf"
BEGAN = 1_773_620_000_000
Message = dict[str, Any]


def message(number: int, role: str, *parts: dict[str, Any], **more: Any) -> Message:
    info = {"role": role, "time": {"created": BEGAN + 1000 * number}, "agent": "build"} | more
    if role == "assistant":
        info = {"path": {"cwd": "/home/shop", "root": "/work"}, "modelID": "m", "finish": "stop"} | info
    return {"info": info | {"id": f"msg_cf40449{number:05}lV6WNlgUTx"}, "parts": list(parts)}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words} | more


def tool(name: str, given: dict[str, Any], status: str = "completed", **more: Any) -> dict[str, Any]:
    state = {"status": status, "input": given, "time": {"start": BEGAN, "end": BEGAN + 50}} | more
    return {"type": "tool", "callID": "call_1", "tool": name, "state": state}


PATCH = "*** Begin Patch\n*** Update File: b.py\n*** Add File: /c.py\n*** End Patch"
IMAGE = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,AA=="}
MESSAGES = [
    message(1, "user", text("Fix it"), text("Called the Read tool", synthetic=True), IMAGE),
    message(
        2, "assistant", {"type": "step-start"}, {"type": "reasoning", "text": "hm"}, text("I look."),
        tool("bash", {"command": "make test"}, output="1 failed", metadata={"exit": 2}),
        tool("read", {"filePath": "/home/shop/a.py"}, "error", error="File not found"),
        tool("edit", {"filePath": "/home/shop/a.py", "oldString": "1", "newString": "2"}, output="ok"),
        tool("apply_patch", {"patchText": PATCH}, output="ok", metadata={"files": []}),
        {"type": "patch", "hash": "x", "files": ["/home/shop/a.py"]}, {"type": "step-finish"},
    ),
    message(3, "assistant", text("Fixed.")),
    message(4, "user", {"type": "subtask", "command": "review", "prompt": "Review the changes"}),
    message(5, "assistant", tool("task", {"prompt": "Review"}, output="fine", metadata={"sessionId": CHILD})),
    message(6, "user", text("Summarize the task tool output above", synthetic=True)),
    message(7, "assistant", text("All is fine.")),
    message(8, "user", {"type": "compaction", "auto": True}),
    message(9, "assistant", text("So far."), summary=True),
    message(10, "user", text("And then?")),
    message(
        11, "assistant", tool("bash", {}, "pending"), tool("bash", {"command": "sleep 9"}, "running"),
        tool("bash", {"command": "sleep 8"}, output="", metadata={"exit": None}),
        error={"name": "MessageAbortedError"},
    ),
]  # fmt: skip
INFO = {"id": ID, "directory": "/home/shop", "projectID": "p", "version": "1.2.21", "time": {"created": BEGAN}}
OF_AGENT = [
    message(20, "user", text("Review")),
    message(21, "assistant", tool("write", {"filePath": "/home/shop/z.py"}, output="ok"), text("fine")),
]


def write_export(folder: Path, messages: list[Message], **more: Any) -> Path:
    path = folder / f"{ID}.json"
    path.write_text(json.dumps({"info": INFO | more, "messages": messages}, indent=2), encoding="utf-8")
    return path


def write_database(folder: Path, messages: list[Message], **more: Any) -> Path:
    path = folder / "opencode.db"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, revert TEXT,"
            " time_created INTEGER, time_updated INTEGER);"
            "CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);"
            "CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT)"
        )
        for name, parent, found in ((ID, None, messages), (CHILD, ID, OF_AGENT)):
            revert = json.dumps(more.get("revert"))
            row = (name, parent, "/home/shop", revert, BEGAN, BEGAN + 9)
            database.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?)", row)
            for one in found:
                info = {key: value for key, value in one["info"].items() if key != "id"}
                key, created = one["info"]["id"], info["time"]["created"]
                database.execute("INSERT INTO message VALUES (?, ?, ?, ?)", (key, name, created, json.dumps(info)))
                for number, part in enumerate(one["parts"]):
                    row = (f"prt_{key}{number:04}", key, name, json.dumps(part))
                    database.execute("INSERT INTO part VALUES (?, ?, ?, ?)", row)
        database.commit()
    return path / ID


Writer = Callable[..., Path]
STORES = pytest.mark.parametrize("write", [write_export, write_database])


@STORES
def test_turns_have_prompts_answers_and_calls(write: Writer, tmp_path: Path) -> None:
    path = write(tmp_path, MESSAGES)
    first, second, third = turns_of(path)
    assert (first.session, first.prompt, first.answer) == (f"{ID}@opencode", "Fix it\n\n[image]", "Fixed.")
    assert first.cwd == "/home/shop" and first.time and first.time.year == 2026
    found = [(one.name, one.input.get("file_path"), one.is_error) for one in first.tools]
    assert found == [
        ("bash", None, True), ("read", "/home/shop/a.py", True), ("edit", "/home/shop/a.py", False),
        ("apply_patch", "/home/shop/b.py", False), ("apply_patch", "/c.py", False),
    ]  # fmt: skip
    assert [one.result for one in first.tools[:2]] == ["1 failed", "File not found"]
    assert (second.prompt, second.answer) == ("/review", "All is fine.")
    assert [one.text for one in second.compactions] == ["So far."]
    assert third.interrupted and [one.is_error for one in third.tools] == [False, True]
    messages = messages_of(third, path, str)
    assert [one.role for one in messages] == ["user", "assistant", "assistant", "tool", "user"]


def test_a_sub_agent_has_no_turns_but_its_calls_are_the_session_s(tmp_path: Path) -> None:
    path = write_database(tmp_path, MESSAGES)
    found = [(one.name, one.by_agent) for one in turns_of(path)[1].tools]
    assert found == [("task", False), ("write", True)]
    assert turns_of(path.with_name(f"{CHILD}{path.suffix}")) == []


@STORES
def test_messages_that_the_user_has_undone_are_left_out(write: Writer, tmp_path: Path) -> None:
    path = write(tmp_path, MESSAGES, revert={"messageID": MESSAGES[3]["info"]["id"]})
    assert [turn.prompt for turn in turns_of(path)] == ["Fix it\n\n[image]"]


@STORES
def test_a_session_that_grew_gives_the_same_turns(write: Writer, tmp_path: Path) -> None:
    whole = turns_of(write(tmp_path, MESSAGES))
    for count in range(len(MESSAGES) + 1):
        path = write(tmp_path, MESSAGES[:count])
        os.utime(path if path.is_file() else path.parent, ns=(count, count))
        found = turns_of(path)
        assert [turn.id for turn in found] == [turn.id for turn in whole[: len(found)]]
        path = write(tmp_path, MESSAGES)
        if found:
            assert turns_of(path, found[-1].start) == whole[len(found) - 1 :]


def test_a_running_session_is_read_and_nothing_is_written(tmp_path: Path) -> None:
    path = write_database(tmp_path, MESSAGES[:3])
    before = status_of(path)
    with closing(sqlite3.connect(path.parent)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("UPDATE part SET data = json_set(data, '$.text', 'Done.') WHERE data LIKE '%Fixed%'")
        database.commit()
        database.execute("INSERT INTO part SELECT 'prt_x', message_id, session_id, '{' FROM part LIMIT 1")
        files = {one.name: one.stat().st_mtime_ns for one in tmp_path.iterdir()}
        assert turns_of(path)[0].answer == "Done."
        database.commit()
        assert status_of(path).size > before.size
        assert {one.name for one in tmp_path.iterdir()} == files.keys()
    assert [turn.prompt for turn in turns_of(path)] == ["Fix it\n\n[image]"]
    assert [one.name for one in tmp_path.iterdir()] == ["opencode.db"]


def test_sessions_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "opencode"
    data.mkdir()
    (data / "opencode-dev.db").write_bytes(b"SQLite format 3\0, cut")
    inside = write_database(data, MESSAGES)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    opencode = agent_of(f"{ID}@opencode")
    assert list(opencode.transcripts()) == [inside]
    export = write_export(tmp_path, MESSAGES)
    (tmp_path / "package.json").write_text('{"info": 1}', encoding="utf-8")
    found = find_sources([tmp_path])
    assert {inside, export} <= {one.path for one in found}
    assert {one.cwd for one in found if one.path in (inside, export)} == {"/home/shop"}
    assert agent_at(inside) is agent_at(export) is opencode
    assert is_there(inside) and not is_there(inside.with_name("ses_30bfbb6f4ffeNoneNone"))
    assert opencode.resume_command(f"{ID}@opencode") == ("opencode", "--session", ID)
    assert opencode.resume_command("--help@opencode") == ()


def test_an_unreadable_database_is_an_error_of_one_line(tmp_path: Path) -> None:
    path = write_database(tmp_path, MESSAGES)
    path.parent.write_bytes(path.parent.read_bytes()[:4096] + b"\xff" * 4096)
    with pytest.raises(TranscriptError, match="cannot read the database"):
        turns_of(path)
    assert not is_there(path)


def test_pipes_are_not_followed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "opencode.db")
    with pytest.raises(TranscriptError):
        turns_of(tmp_path / "opencode.db" / ID)


def changed(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path.parent)) as database:
        for one in statements:
            database.execute(one)
        database.commit()
    return path


@pytest.mark.parametrize("end", ["wal", "shm", "journal"])
def test_a_pipe_next_to_a_database_is_not_opened(tmp_path: Path, end: str) -> None:
    path = write_database(tmp_path, MESSAGES)
    for one in ("wal", "shm"):
        Path(f"{path.parent}-{one}").touch()
    Path(f"{path.parent}-{end}").unlink(missing_ok=True)
    os.mkfifo(f"{path.parent}-{end}")
    with pytest.raises(TranscriptError, match="not a regular file"):
        turns_of(path)


COMPUTED = "CREATE TABLE part (id, message_id, session_id, data {} (hex(zeroblob(9))) VIRTUAL)"


@pytest.mark.parametrize(
    "statements",
    [
        ("ALTER TABLE part RENAME TO other", "CREATE VIEW part AS SELECT * FROM other"),
        ("DROP TABLE part", COMPUTED.format("AS")),
        ("DROP TABLE part", COMPUTED.format("GENERATED ALWAYS AS")),
        ("ALTER TABLE part RENAME COLUMN message_id TO other",),
        ("ALTER TABLE session RENAME COLUMN id TO other",),
    ],
)
def test_only_plain_tables_with_the_known_columns_are_read(tmp_path: Path, statements: tuple[str, ...]) -> None:
    path = changed(write_database(tmp_path, MESSAGES), *statements)
    with pytest.raises(TranscriptError, match="cannot read the database"):
        turns_of(path)
    assert not is_there(path)


def test_a_view_that_is_stored_as_a_table_is_not_read(tmp_path: Path) -> None:
    path = changed(
        write_database(tmp_path, MESSAGES), "ALTER TABLE part RENAME TO other",
        "CREATE VIEW part AS SELECT * FROM other", "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET type = 'table' WHERE name = 'part'",
    )  # fmt: skip
    with pytest.raises(TranscriptError):
        turns_of(path)


def test_names_that_are_odd_do_no_harm(tmp_path: Path) -> None:
    path = write_database(tmp_path, MESSAGES)
    changed(path, "ALTER TABLE session RENAME COLUMN id TO ID", "UPDATE session SET time_updated = 9223372036854775807")
    assert status_of(path).modified == 0
    folder = tmp_path / os.fsdecode(b"a\xff")
    folder.mkdir()
    path.parent.rename(folder / "opencode.db")
    assert len(turns_of(folder / "opencode.db" / ID)) == 3
    with pytest.raises(TranscriptError):
        turns_of(folder / "opencode.db" / "ses_\udcff")


def test_too_large_a_session_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_database(tmp_path, [message(1, "user", *[text("x" * 500)] * 9)])
    for module in ("agents.database", "agents.opencode.stores"):
        monkeypatch.setattr(f"memkit.{module}.MOST_BYTES", 4000)
    with pytest.raises(TranscriptError, match="larger than 4,000 bytes"):
        turns_of(path)


def test_the_queries_of_a_session_share_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memkit.agents.database.QUICK_SECONDS", 0.0)
    path, budget = write_database(tmp_path, MESSAGES), Budget()
    before = budget.seconds
    query(path.parent, "SELECT id AS id FROM session LIMIT 1", budget=budget)
    assert budget.seconds < before
    budget.seconds = 0.0
    with pytest.raises(TranscriptError, match="interrupted"):
        query(path.parent, f"SELECT count(*) FROM part WHERE {' OR '.join(['data LIKE 1'] * 900)}", budget=budget)


@STORES
def test_a_session_is_read_once_for_all_its_turns(
    write: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, MESSAGES)
    stored = stored_at(path)
    assert stored_at(path) is stored
    loaded: list[int] = []
    monkeypatch.setattr(
        "memkit.agents.opencode.session.stored_at",
        lambda path: stored._replace(load=lambda place: loaded.append(place) or stored.load(place)),
    )
    list(open_transcript(path, stored.starts[9] * ROW_BYTES))
    assert loaded == [9, 10]


def test_links_below_a_named_folder_lead_to_no_session(tmp_path: Path) -> None:
    for name in ("outside", "named"):
        (tmp_path / name).mkdir()
    files = write_export(tmp_path / "outside", MESSAGES), write_database(tmp_path / "outside", MESSAGES).parent
    for file in files:
        (tmp_path / "named" / file.name).symlink_to(file)
    (tmp_path / "named" / "folder").symlink_to(tmp_path / "outside")
    assert find_sources([tmp_path / "named"]) == []
    assert len(find_sources([tmp_path / "named" / files[0].name])) == 1


def test_deeply_nested_folders_are_searched(tmp_path: Path) -> None:
    parts = min(1200, (os.pathconf(tmp_path, "PC_PATH_MAX") - len(str(tmp_path)) - 100) // 2)
    deepest = os.path.join(tmp_path, *["a"] * parts)
    for depth in (*range(400, parts, 400), parts):  # `makedirs` is recursive
        os.makedirs(os.path.join(tmp_path, *["a"] * depth), exist_ok=True)
    path = write_export(Path(deepest), MESSAGES)
    try:
        assert [one.path for one in find_sources([tmp_path])] == [path]
    finally:  # pytest cannot remove them
        path.unlink()
        os.removedirs(deepest)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["user", ID]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["id", "text", "type", "state", "input", "time", "created"]), inner),
    max_leaves=6,
)


@given(st.data())
def test_odd_messages_in_any_order_never_crash(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    messages = json.loads(json.dumps(data.draw(st.permutations(MESSAGES))))
    for _ in range(data.draw(st.integers(0, 6))):
        one = data.draw(st.sampled_from(messages))
        parts = [part for part in one["parts"] if isinstance(part, dict)]
        states = [part["state"] for part in parts if isinstance(part.get("state"), dict)]
        where = data.draw(st.sampled_from([one["info"], *parts, *states]))
        where[data.draw(st.sampled_from([*where, "summary", "error", "new"]))] = data.draw(VALUES)
    whole = json.dumps({"info": INFO | data.draw(st.just({}) | st.just({"id": 1})), "messages": messages})
    path = tmp_path_factory.mktemp("odd") / f"{ID}.json"
    end = data.draw(st.just(len(whole)) | st.integers(30, len(whole)))
    path.write_bytes(whole[:end].encode("utf-8", "surrogatepass"))
    assert all(turn.session.endswith("@opencode") for turn in turns_of(path))
