"""An embedded Chroma directory that cannot be used any more: found out, and moved aside.

It is derived, so nothing is repaired in place: it is begun anew and everything comes back. Damaged
files can end the process that opens them (Chroma maps them into memory), so they are tried in
another one.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from memkit.errors import IndexStoreError
from memkit.processes import quiet

logger = logging.getLogger(__name__)

TRY_SECONDS = 120.0
"""How long reading a whole index may take; a million vectors take less."""

DATABASE = "chroma.sqlite3"
"""The file in Chroma's directory that holds everything but the vectors."""

_DAMAGED_SUFFIX = ".damaged"
_IN_USE = "memkit-in-use"

_READ_ALL = """
import json, sqlite3, sys
import chromadb
from chromadb.config import Settings
directory, database = sys.argv[1:]
with sqlite3.connect(f"file:{directory}/{database}?mode=ro", uri=True) as connection:
    answer = connection.execute("PRAGMA integrity_check").fetchone()[0]
if answer != "ok":
    sys.exit(answer)
client = chromadb.PersistentClient(directory, settings=Settings(anonymized_telemetry=False))
found = {}
for collection in client.list_collections():
    rows = collection.get(include=["metadatas", "documents", "embeddings"])
    found[collection.name] = {
        "ids": [row for row in rows["ids"] if "#" not in row],
        "dimensions": len(rows["embeddings"][0]) if rows["ids"] else None,
        "foreign": sum("window" not in (metadata or {}) for metadata in rows["metadatas"]),
    }
json.dump(found, sys.stdout)
"""


@dataclass(frozen=True, slots=True)
class Collection:
    """What a collection holds: the ids of its chunks, the length of its vectors (None: it is empty), and
    how many rows are not of the form in which this version of memkit writes them.
    """

    ids: frozenset[str]
    dimensions: int | None
    foreign: int


@dataclass(frozen=True, slots=True)
class Contents:
    """All collections by name; or why they cannot be read, in a few words."""

    problem: str = ""
    collections: dict[str, Collection] = field(default_factory=dict)


def in_use_marker(path: Path) -> Path:
    """The file that stands in the directory `path` while a process has it open.

    One that is found there was left by a process that was killed, maybe by the index itself.
    """
    return path / _IN_USE


def damaged_copy(path: Path) -> Path:
    """Where the latest damaged index that lay at `path` is kept."""
    return path.with_name(path.name + _DAMAGED_SUFFIX)


def set_aside_if_damaged(path: Path, is_ours: bool, announce: Callable[[str], None]) -> bool:
    """Rename the index at `path` if it cannot be read; return whether it was.

    Only the latest such copy is kept. `announce` is told in one line. `is_ours` says that only
    memkit writes there; from another place nothing is moved that is not Chroma's. Raises
    `IndexStoreError` then, and if it cannot be renamed.
    """
    problem = read_all(path).problem
    if not problem:
        return False
    if not is_ours and not _is_chroma_directory(path):
        raise IndexStoreError(
            f"{path} is no index ({problem}) and not memkit's; name another place as index.uri"
        )
    aside = damaged_copy(path)
    try:
        if aside.is_dir() and not aside.is_symlink():
            shutil.rmtree(aside)
        else:
            aside.unlink(missing_ok=True)
        path.rename(aside)
    except OSError as error:
        raise IndexStoreError(
            f"the index {path} is damaged ({problem}) and cannot be moved aside: {error.strerror}"
        ) from error
    announce(f"the index {path} is damaged ({problem}); it is kept as {aside.name} and made anew")
    return True


def read_all(path: Path) -> Contents:
    """What the index at `path` holds, read to the last byte; nothing if there is none.

    The caller holds the index lock. Nothing is changed, and no damage can end this process.
    """
    if not os.path.lexists(path):
        return Contents()
    if not path.is_dir():
        return Contents("no directory")
    if not (path / DATABASE).exists():
        return Contents()
    try:
        answer = subprocess.run(
            [sys.executable, "-I", "-c", _READ_ALL, str(path.absolute()), DATABASE],
            cwd=path,  # not the user's: Chroma reads settings from a `.env` there
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TRY_SECONDS,
            check=False,
            **quiet(),
        )
    except subprocess.TimeoutExpired:
        return Contents("reading it does not end")
    if answer.returncode == 0:
        return Contents(
            collections={
                name: Collection(frozenset(one["ids"]), one["dimensions"], one["foreign"])
                for name, one in json.loads(answer.stdout).items()
            }
        )
    lines = answer.stderr.decode("utf-8", "replace").split("\n")
    logger.warning("the index %s cannot be read: %s", path, " ".join(lines).strip())
    if answer.returncode < 0:
        return Contents(f"reading it ends with signal {-answer.returncode}")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "no reason given")
    return Contents(last[:200])


def _is_chroma_directory(path: Path) -> bool:
    """Whether it is a directory that holds only Chroma's database and directories of segments."""
    return path.is_dir() and all(
        entry.name.startswith((DATABASE, _IN_USE)) or (len(entry.name) == 36 and entry.is_dir())
        for entry in path.iterdir()
    )
