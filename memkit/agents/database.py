"""Read the SQLite database of an agent, which may be writing to it. The file may be anybody's."""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import stat
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from memkit.errors import TranscriptError
from memkit.files import MOST_BYTES, RefusedFileError, open_regular

logger = logging.getLogger(__name__)

LOCK_SECONDS = 2.0
QUICK_SECONDS = 0.01

_COMPUTED = re.compile(r"\b(?:GENERATED|VIRTUAL|AS)\b", re.IGNORECASE)


class Budget:
    """What the queries for one session may take together, besides `QUICK_SECONDS` for each."""

    def __init__(self) -> None:
        self.seconds = 30.0


def stamp_of(path: str) -> tuple[int, int]:
    """Return when a file last changed, in nanoseconds since the epoch, and its size; 0 if it is gone.

    Those of a database include its log.
    """
    found = []
    with suppress(OSError):
        found.append(os.stat(path))
        found += [os.stat(f"{path}-wal")] if path.endswith(".db") else []
    return max((one.st_mtime_ns for one in found), default=0), sum(one.st_size for one in found)


def query(database: Path, sql: str, *values: Any, budget: Budget | None = None) -> list[dict[str, Any]]:
    """Return the rows of a query. Nothing is written, not even next to the database.

    SQLite makes files for the shared memory of a database without any, unless that is `immutable`. Views and
    computed columns may take any time and memory: only plain tables are read. Raise `TranscriptError`.
    """
    budget, began = budget or Budget(), time.monotonic()
    until = began + budget.seconds
    try:
        path = os.path.realpath(database)
        os.close(open_regular(path))
        has_log, has_memory, _ = (_is_file(f"{path}-{end}") for end in ("wal", "shm", "journal"))
        if has_log and not has_memory:
            logger.warning("%s: its agent broke off; its last messages are read when it has run again", path)
        how = "readonly_shm=1" if has_log and has_memory else "immutable=1"
        uri = f"file:{quote(os.fsencode(path))}?mode=ro&{how}"
        with closing(sqlite3.connect(uri, LOCK_SECONDS, uri=True)) as connection:
            if sys.version_info >= (3, 11):  # a single value may have 1 GB, and `length` ends at a NUL
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2 * MOST_BYTES)
            connection.set_progress_handler(lambda: time.monotonic() > until, 10_000)
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            connection.executescript("PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY")
            for table in set(re.findall(r"\bFROM (\w+)", sql)):
                _require_table(connection, table)
            return _rows(connection.execute(sql, values))
    except (OSError, sqlite3.Error, ValueError, KeyError, MemoryError) as error:
        raise TranscriptError(f"cannot read the database {database}: {error}") from error
    finally:
        budget.seconds -= max(0.0, time.monotonic() - began - QUICK_SECONDS)


def _is_file(path: str) -> bool:
    """SQLite opens these files itself, follows links, and waits for pipes."""
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        raise RefusedFileError(path, "it is not a regular file")
    return os.path.exists(path)


def _require_table(connection: sqlite3.Connection, table: str) -> None:
    sql = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ? LIMIT 2"
    found = [str(made) for (made,) in connection.execute(sql, (table,))]
    begins = re.compile(rf"CREATE TABLE\s+[\"'`\[]?{table}[\"'`\]]?\s*\(")  # the type can be forged
    if len(found) != 1 or not begins.match(found[0]) or _COMPUTED.search(found[0]):
        raise ValueError(f"'{table}' is not a plain table")


def _rows(cursor: sqlite3.Cursor) -> list[dict[str, Any]]:
    names = [column[0].lower() for column in cursor.description]
    rows, size = [], 0
    for row in cursor:
        size += sum(len(value) for value in row if isinstance(value, (str, bytes)))
        if size > MOST_BYTES:
            raise ValueError(f"an answer is larger than {MOST_BYTES:,} bytes")
        rows.append(dict(zip(names, row, strict=True)))
    return rows
