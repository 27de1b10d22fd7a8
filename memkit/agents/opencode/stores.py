"""Where OpenCode keeps a session: in its database, in files of versions before 1.2, or in an export.

A session in a database has a path of its own, below that of the database: `opencode.db/ses_…`.
"""

from __future__ import annotations

import functools
import logging
import os
import re
from collections.abc import Callable
from glob import escape, glob
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from memkit.agents.database import Budget, query, stamp_of
from memkit.agents.fields import Fields, fields, objects, parsed
from memkit.errors import TranscriptError
from memkit.files import MOST_BYTES, inside, read_regular

SESSION_ID = re.compile(r"ses_[0-9A-Za-z]{10,60}")
MOST_ROWS = 200_000
ROW_BYTES = 4096
"""The positions of a message or a part, and what it adds to the size of a session in a database."""

_EXPORT = re.compile(rb'\s*\{\s*"info"\s*:\s*\{\s*"id"\s*:')
_SESSIONS = "SELECT id FROM session WHERE parent_id IS NULL AND time_updated >= ? LIMIT ?"
_SESSION = "SELECT id, parent_id, directory, revert, time_updated FROM session WHERE id = ? LIMIT 1"
_MESSAGES = (
    "SELECT id, (SELECT count(*) FROM part WHERE message_id = message.id) AS parts FROM message"
    " WHERE session_id = ? ORDER BY time_created, id LIMIT ?"
)
_MESSAGE = "SELECT data FROM message WHERE id = ? AND length(data) <= ? LIMIT ?"
_PARTS = "SELECT id, data FROM part WHERE message_id = ? AND length(data) <= ? LIMIT ?"
"""Without an order, so that too large an answer ends before SQLite has all of it in memory."""

_Load = Callable[[int], tuple[Fields, list[Fields]]]
_Read = tuple[Fields, list[tuple[object, int]], _Load]
"""The info of a session, the ID and the number of parts of each message, and as for `Stored`."""


class Stored(NamedTuple):
    """One session: its `info`, and how many parts each of its messages has.

    `starts` has the number of messages and parts before each message, `rows` that of all. Messages that the
    user has undone count there only. `load` returns the info and the parts of a message by its place. It
    raises `TranscriptError`.
    """

    info: Fields
    parts: list[int]
    starts: list[int]
    rows: int
    load: _Load


def stored_at(path: Path) -> Stored:
    """Return the session at `path`. Raise `TranscriptError`."""
    try:
        return _stored_at(path, _state_of(path))
    except (OSError, MemoryError) as error:
        reason = getattr(error, "strerror", "it needs too much memory")
        raise TranscriptError(f"cannot read the session {path}: {reason}") from error


@functools.lru_cache(2)  # the archive reads a session again for each turn, and those of its sub-agents
def _stored_at(path: Path, state: tuple[object, ...]) -> Stored:
    read = _from_files if _is_session_file(path) else _from_export
    read = _from_database if path.parent.suffix == ".db" else read
    info, messages, load = read(path)
    *starts, rows = accumulate((1 + count for _, count in messages), initial=0)
    keys, undone = [key for key, _ in messages], fields(info.get("revert")).get("messageID")
    kept = keys.index(undone) if undone is not None and undone in keys else len(keys)
    return Stored(info, [count for _, count in messages[:kept]], starts[:kept], rows, load)


def _from_export(path: Path) -> _Read:
    value = parsed(read_regular(os.path.realpath(path)))
    given = objects(value.get("messages"))
    messages = [(fields(one.get("info")), objects(one.get("parts"))) for one in given]
    names = [(info.get("id"), len(parts)) for info, parts in messages]
    return fields(value.get("info")), names, messages.__getitem__


def _from_files(path: Path) -> _Read:
    root = str(path.parents[2])
    messages = _files_in(root, "message", path.stem)
    files = [[one, *_files_in(root, "part", Path(one).stem)] for one in messages]

    def load(place: int) -> tuple[Fields, list[Fields]]:
        left, values = MOST_BYTES, []
        for file in files[place]:
            try:
                data = read_regular(file)
            except OSError as error:
                raise TranscriptError(f"cannot read {file}: {error.strerror}") from error
            left -= len(data)
            if left < 0:
                raise TranscriptError(f"the message {file} is larger than {MOST_BYTES:,} bytes")
            values.append({**parsed(data), "id": Path(file).stem})
        return values[0], values[1:]

    info = parsed(read_regular(inside(str(path), root)))
    return info, [(Path(one).stem, len(parts)) for one, *parts in files], load


def _from_database(path: Path) -> _Read:
    database, budget = path.parent, Budget()
    info, *_ = [*query(database, _SESSION, path.name, budget=budget), {}]
    messages = query(database, _MESSAGES, path.name, MOST_ROWS, budget=budget)

    def load(place: int) -> tuple[Fields, list[Fields]]:
        key = messages[place]["id"]
        given = key, MOST_BYTES, MOST_ROWS
        own, parts = (query(database, sql, *given, budget=budget) for sql in (_MESSAGE, _PARTS))
        parts.sort(key=lambda row: str(row["id"]))
        return {**parsed(own[0]["data"] if own else ""), "id": key}, [parsed(one["data"]) for one in parts]

    info |= {"parentID": info.get("parent_id"), "revert": parsed(info.get("revert"))}
    return info, [(row["id"], row["parts"]) for row in messages], load


def stores() -> list[str]:
    """Return the databases on this machine, and the files of sessions before version 1.2."""
    data = os.path.expanduser(os.environ.get("XDG_DATA_HOME") or "~/.local/share")
    patterns = ("opencode*.db", "storage/session/*/ses_*.json")
    return [path for one in patterns for path in glob(os.path.join(escape(data), "opencode", one))]


def sessions_in(path: Path, since: float) -> list[Path]:
    """Return the paths of the sessions in a file: none of a database that did not change since a time.

    A session of a sub-agent is not one of its own, and a file whose session a database has is a copy.
    """
    if path.suffix == ".db":
        return [path / name for name in _names_in(str(path), since, stamp_of(str(path)))]
    databases = glob(f"{escape(str(path.parents[3]))}/opencode*.db") if _is_session_file(path) else []
    is_copy = any(path.stem in _names_in(one, 0.0, stamp_of(one)) for one in databases)
    return [] if is_copy else [path]


@functools.lru_cache(4)  # for each of many files
def _names_in(database: str, since: float, stamp: tuple[int, int]) -> list[str]:
    try:
        found = query(Path(database), _SESSIONS, int(since * 1000), MOST_ROWS)
    except TranscriptError as error:
        logging.getLogger(__name__).warning("%s", error)
        return []
    return [row["id"] for row in found if SESSION_ID.fullmatch(str(row["id"]))]


def is_session(path: Path, head: bytes) -> bool:
    """Return whether `path` is of a database, of a session in one, of a session's file, or of an export."""
    if path.parent.suffix == ".db" or _is_session_file(path):
        return SESSION_ID.fullmatch(path.stem) is not None
    is_database = path.suffix == ".db" and path.name.startswith("opencode") and head[:6] == b"SQLite"
    return is_database or _EXPORT.match(head) is not None


def _is_session_file(path: Path) -> bool:
    return path.parent.parent.parts[-2:] == ("storage", "session")


def _files_in(root: str, *names: str) -> list[str]:
    folder = inside(os.path.join(root, *names), root)
    found = sorted(os.listdir(folder))[:MOST_ROWS] if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in found if name.endswith(".json")]


def _state_of(path: Path) -> tuple[object, ...]:
    """Return what changes when a session does, without a look at each of its files."""
    files = [str(path.parent if path.parent.suffix == ".db" else path)]
    if _is_session_file(path):  # only its last message is still being written
        root = str(path.parents[2])
        *_, last = "", *_files_in(root, "message", path.stem)
        files += [last, *_files_in(root, "part", Path(last).stem)] if last else []
    return tuple((file, stamp_of(file)) for file in files)
