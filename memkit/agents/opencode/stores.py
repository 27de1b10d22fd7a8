"""Where OpenCode keeps a session: in its database, or in an export.

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
from memkit.files import MOST_BYTES, read_regular

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
        return _stored_at(path, stamp_of(str(path.parent if path.parent.suffix == ".db" else path)))
    except (OSError, MemoryError) as error:
        reason = getattr(error, "strerror", "it needs too much memory")
        raise TranscriptError(f"cannot read the session {path}: {reason}") from error


@functools.lru_cache(2)  # the archive reads a session again for each turn, and those of its sub-agents
def _stored_at(path: Path, stamp: tuple[int, int]) -> Stored:
    info, messages, load = (_from_database if path.parent.suffix == ".db" else _from_export)(path)
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
    """Return the databases on this machine."""
    data = os.path.expanduser(os.environ.get("XDG_DATA_HOME") or "~/.local/share")
    return glob(os.path.join(escape(data), "opencode", "opencode*.db"))


def sessions_in(path: Path, since: float) -> list[Path]:
    """Return the paths of the sessions in a file: none of a database that did not change since a time.

    A session of a sub-agent is not one of its own.
    """
    if path.suffix != ".db":
        return [path]
    try:
        found = query(path, _SESSIONS, int(since * 1000), MOST_ROWS)
    except TranscriptError as error:
        logging.getLogger(__name__).warning("%s", error)
        return []
    return [path / str(row["id"]) for row in found if SESSION_ID.fullmatch(str(row["id"]))]


def is_session(path: Path, head: bytes) -> bool:
    """Return whether `path` is of a database, of a session in one, or of an export."""
    if path.parent.suffix == ".db":
        return SESSION_ID.fullmatch(path.stem) is not None
    is_database = path.suffix == ".db" and path.name.startswith("opencode") and head[:6] == b"SQLite"
    return is_database or _EXPORT.match(head) is not None
