"""Read the SQLite database of an agent, which may be writing to it."""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from memkit.errors import TranscriptError
from memkit.files import open_regular

logger = logging.getLogger(__name__)

LOCK_SECONDS = 2.0
QUERY_SECONDS = 30.0


def query(database: Path, sql: str, *values: str | int) -> list[dict[str, Any]]:
    """Return the rows of a query. Nothing is written, not even next to the database.

    SQLite makes files for the shared memory of a database without any, unless that is `immutable`.
    Raise `TranscriptError`.
    """
    try:
        path = os.path.realpath(database)
        os.close(open_regular(path))
        has_log, has_memory = (os.path.exists(f"{path}-{end}") for end in ("wal", "shm"))
        if has_log and not has_memory:
            logger.warning("%s: its agent broke off; its last messages are read when it has run again", path)
        how = "readonly_shm=1" if has_log and has_memory else "immutable=1"
        with closing(
            sqlite3.connect(f"file:{quote(path)}?mode=ro&{how}", LOCK_SECONDS, uri=True)
        ) as connection:
            until = time.monotonic() + QUERY_SECONDS
            connection.set_progress_handler(lambda: time.monotonic() > until, 100_000)
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            connection.execute("PRAGMA trusted_schema = OFF")
            rows = connection.execute(sql, values)
            names = [column[0] for column in rows.description]
            return [dict(zip(names, row, strict=True)) for row in rows]
    except (OSError, sqlite3.Error) as error:
        raise TranscriptError(f"cannot read the database {database}: {error}") from error
