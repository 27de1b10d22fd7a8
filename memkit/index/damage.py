"""An embedded Chroma directory that cannot be used any more: found out, and moved aside.

It is derived, so nothing is repaired in place: it is begun anew and everything comes back. Damaged
files can end the process that opens them (Chroma maps them into memory), so they are tried in
another one.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from memkit.errors import IndexStoreError

logger = logging.getLogger(__name__)

TRY_SECONDS = 120.0
"""How long reading a whole index may take; a million vectors take less."""

DATABASE = "chroma.sqlite3"
"""The file in Chroma's directory that holds everything but the vectors."""

_DAMAGED_SUFFIX = ".damaged"
_IN_USE = "memkit-in-use"

_READ_ALL = """
import sqlite3, sys
import chromadb
from chromadb.config import Settings
directory, database = sys.argv[1:]
with sqlite3.connect(f"file:{directory}/{database}?mode=ro", uri=True) as connection:
    answer = connection.execute("PRAGMA integrity_check").fetchone()[0]
if answer != "ok":
    sys.exit(answer)
client = chromadb.PersistentClient(directory, settings=Settings(anonymized_telemetry=False))
for collection in client.list_collections():
    collection.get(include=["metadatas", "documents", "embeddings"])
"""


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
    problem = _problem(path)
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


def _problem(path: Path) -> str:
    """Why the index at `path` cannot be read, in a few words; empty if it can, or there is none."""
    if not os.path.lexists(path):
        return ""
    if not path.is_dir():
        return "no directory"
    if not (path / DATABASE).exists():
        return ""
    try:
        answer = subprocess.run(
            [sys.executable, "-c", _READ_ALL, str(path), DATABASE],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TRY_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "reading it does not end"
    if answer.returncode == 0:
        return ""
    lines = answer.stderr.decode("utf-8", "replace").split("\n")
    logger.warning("the index %s cannot be read: %s", path, " ".join(lines).strip())
    if answer.returncode < 0:
        return f"reading it ends with signal {-answer.returncode}"
    return next((line.strip() for line in reversed(lines) if line.strip()), "no reason given")[:200]


def _is_chroma_directory(path: Path) -> bool:
    """Whether it is a directory that holds only Chroma's database and directories of segments."""
    return path.is_dir() and all(
        entry.name.startswith((DATABASE, _IN_USE)) or (len(entry.name) == 36 and entry.is_dir())
        for entry in path.iterdir()
    )
