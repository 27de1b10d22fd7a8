"""Where OpenCode keeps a session: in its database, in files of versions before 1.2, or in an export.

A session in a database has a path of its own, below that of the database: `opencode.db/ses_…`.
"""

from __future__ import annotations

import functools
import logging
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from memkit.agents.database import query
from memkit.agents.fields import Fields, fields, objects, parsed
from memkit.errors import TranscriptError
from memkit.files import MOST_BYTES, inside, read_head, read_regular

SESSION_ID = re.compile(r"ses_[0-9A-Za-z]{10,60}")
MOST_ROWS = 200_000
ROW_BYTES = 4096
"""The positions of a message or a part, and what it adds to the size of a session in a database."""

_EXPORT = re.compile(rb'\s*\{\s*"info"\s*:\s*\{\s*"id"\s*:')
_MESSAGES = (
    "SELECT id, (SELECT count(*) FROM part WHERE message_id = message.id) AS parts FROM message"
    " WHERE session_id = ? ORDER BY time_created, id LIMIT ?"
)
_MESSAGE = "SELECT data FROM message WHERE id = ? AND length(data) <= ? LIMIT ?"
_PARTS = "SELECT data FROM part WHERE message_id = ? AND length(data) <= ? ORDER BY id LIMIT ?"


class Stored(NamedTuple):
    """One session: its `info`, and the ID of each of its messages with the number of parts.

    `load` returns the info and the parts of a message by its place. It raises `TranscriptError`.
    """

    info: Fields
    messages: list[tuple[object, int]]
    load: Callable[[int], tuple[Fields, list[Fields]]]


def stored_at(path: Path) -> Stored:
    """Return the session at `path`. Raise `TranscriptError`."""
    if path.parent.suffix == ".db":
        return _from_database(path)
    try:
        if _is_session_file(path):
            value = _from_files(path, max(map(_modified, _files_of(path)), default=0))
        else:
            value = _export(path, _modified(str(path)))
    except OSError as error:
        raise TranscriptError(f"cannot read the session {path}: {error.strerror}") from error
    given = objects(value.get("messages"))
    messages = [(fields(one.get("info")), objects(one.get("parts"))) for one in given]
    names = [(info.get("id"), len(parts)) for info, parts in messages]
    return Stored(fields(value.get("info")), names, messages.__getitem__)


def _from_database(path: Path) -> Stored:
    info, *_ = [*query(path.parent, "SELECT * FROM session WHERE id = ?", path.name), {}]
    names = [tuple(row.values()) for row in query(path.parent, _MESSAGES, path.name, MOST_ROWS)]

    def load(place: int) -> tuple[Fields, list[Fields]]:
        key = names[place][0]
        found = [query(path.parent, sql, key, MOST_BYTES, MOST_ROWS) for sql in (_MESSAGE, _PARTS)]
        message, parts = ([parsed(row["data"]) for row in rows] for rows in found)
        return {**next(iter(message), {}), "id": key}, parts

    info |= {"parentID": info.get("parent_id"), "revert": parsed(info.get("revert"))}
    return Stored(info, names, load)


def sessions() -> Iterator[Path]:
    """Yield the paths of all sessions on this machine. That of a sub-agent is not one of its own."""
    data = Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser() / "opencode"
    in_databases = [path for one in sorted(data.glob("opencode*.db")) for path in sessions_in(one)]
    yield from in_databases
    copied = {path.name for path in in_databases}  # by version 1.2
    files = sorted(data.glob("storage/session/*/ses_*.json"))
    yield from (path for path in files if path.stem not in copied)


def sessions_in(path: Path) -> list[Path]:
    """Return the paths of the sessions in a database; `path` itself for any other file."""
    if path.suffix != ".db":
        return [path]
    try:
        found = query(path, "SELECT id FROM session WHERE parent_id IS NULL ORDER BY time_created")
    except TranscriptError as error:
        logging.getLogger(__name__).warning("%s", error)
        return []
    return [path / row["id"] for row in found if SESSION_ID.fullmatch(str(row["id"]))]


def is_session(path: Path) -> bool:
    """Return whether `path` is of a database, of a session in one, of a session's file, or of an export."""
    if path.parent.suffix == ".db" or _is_session_file(path):
        return SESSION_ID.fullmatch(path.stem) is not None
    try:
        head = read_head(os.path.realpath(path), 200)
    except OSError:
        return False
    is_database = path.suffix == ".db" and path.name.startswith("opencode") and head[:6] == b"SQLite"
    return is_database or _EXPORT.match(head) is not None


def _is_session_file(path: Path) -> bool:
    return path.parent.parent.parts[-2:] == ("storage", "session")


def _files_in(root: str, *names: str) -> list[str]:
    folder = inside(os.path.join(root, *names), root)
    found = sorted(os.listdir(folder))[:MOST_ROWS] if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in found if name.endswith(".json")]


def _files_of(path: Path) -> Iterator[str]:
    """Yield the files of a session before version 1.2: its own, and those of its messages and their parts."""
    root = str(path.parent.parent.parent)
    yield inside(str(path), root)
    for message in _files_in(root, "message", path.stem):
        yield message
        yield from _files_in(root, "part", Path(message).stem)


def _modified(path: str) -> int:
    return os.stat(path).st_mtime_ns


@functools.lru_cache(1)  # the archive reads a session again for each turn
def _from_files(path: Path, modified: int) -> Fields:
    own, *files = _files_of(path)
    messages: list[Fields] = []
    for file in files:
        value = {**parsed(read_regular(file)), "id": Path(file).stem}
        if Path(file).parent.parent.name == "message":
            messages.append({"info": value, "parts": []})
        else:
            messages[-1]["parts"].append(value)
    return {"info": parsed(read_regular(own)), "messages": messages}


@functools.lru_cache(1)
def _export(path: Path, modified: int) -> Fields:
    return parsed(read_regular(os.path.realpath(path)))
