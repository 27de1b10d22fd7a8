"""Detect a damaged embedded Chroma directory, and move it aside.

The index is derived, so nothing is repaired in place: a new one is built. Damaged files can crash the
process that opens them (Chroma maps them into memory), so another process reads them first.
"""

from __future__ import annotations

import logging
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from memkit.errors import IndexStoreError
from memkit.processes import no_window
from memkit.state import parse_json
from memkit.text import one_line

logger = logging.getLogger(__name__)

TRY_SECONDS = 120.0
"""The time limit for reading a whole index; a million vectors take less."""

DATABASE = "chroma.sqlite3"
"""The file in Chroma's directory that holds everything except the vectors."""

_DAMAGED_SUFFIX = ".damaged"
_IN_USE = "memkit-in-use"

PAGE_ROWS = 5000
"""Rows to read in one call. Chroma fails on a read of more than 32,766 rows ("too many SQL variables")."""

_CRASHES = frozenset({-4, -6, -7, -8, -10, -11, 0xC0000005})
"""Exit codes of crashes: SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, Windows' access violation.

SIGKILL is missing: the system sends it when memory runs out.
"""

# Prints {"collections": ...}, or {"damage": reason} if SQLite or Chroma report corrupt files, or
# {"failure": reason} for everything else. Standard library and Chroma only.
_READ_ALL = """
import contextlib, json, os, re, sqlite3, sys

directory, database, page = sys.argv[1], sys.argv[2], int(sys.argv[3])
CORRUPT = ("Error loading hnsw index", "Error finding id", "Error getting embedding")

def read():
    import chromadb
    from chromadb.config import Settings
    settings = Settings(_env_file=None, anonymized_telemetry=False)
    client = chromadb.PersistentClient(directory, settings=settings)
    found = {}
    for collection in client.list_collections():
        ids, dimensions, foreign, offset = [], None, 0, 0
        while True:
            rows = collection.get(
                limit=page, offset=offset, include=["metadatas", "documents", "embeddings"]
            )
            if not rows["ids"]:
                break
            offset += len(rows["ids"])
            ids += [row for row in rows["ids"] if "#" not in row]
            dimensions = len(rows["embeddings"][0])
            foreign += sum("window" not in (metadata or {}) for metadata in rows["metadatas"])
        found[collection.name] = {"ids": ids, "dimensions": dimensions, "foreign": foreign}
    return found

def is_corruption(text):
    codes = [int(code) & 0xFF for code in re.findall(r"\\(code: (\\d+)\\)", text)]
    return any(code in (11, 26) for code in codes) or any(one in text for one in CORRUPT)

def find_trouble():
    # Chroma reports "Error loading hnsw index" also without permission, descriptors, or memory.
    bytearray(64 << 20)
    with contextlib.ExitStack() as stack:
        for number in range(48):
            stack.enter_context(open(os.devnull, "rb"))
        for place, _, names in os.walk(directory):
            for name in names:
                with open(os.path.join(place, name), "rb") as file:
                    while file.read(1 << 20):
                        pass

def one_line(error):
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]

def main():
    try:
        with sqlite3.connect(f"file:{directory}/{database}?mode=ro", uri=True) as connection:
            answer = connection.execute("PRAGMA integrity_check").fetchone()[0]
        if answer != "ok":
            return {"damage": " ".join(answer.split())[:200]}
    except sqlite3.DatabaseError as error:
        # Subclasses mean a lock, a full disk, or a file that cannot be opened.
        kind = "damage" if type(error) is sqlite3.DatabaseError else "failure"
        return {kind: one_line(error)}
    try:
        return {"collections": read()}
    except BaseException as error:  # a panic of Chroma's Rust code is not an Exception
        if not is_corruption(str(error)):
            return {"failure": one_line(error)}
        try:
            find_trouble()
        except (OSError, MemoryError) as trouble:
            return {"failure": one_line(trouble)}
        return {"damage": one_line(error)}

json.dump(main(), sys.stdout)
"""


@dataclass(frozen=True, slots=True)
class Collection:
    """The ids of a collection's chunks and the length of its vectors (None: it is empty).

    `foreign` counts the rows that this version of memkit did not write.
    """

    ids: frozenset[str]
    dimensions: int | None
    foreign: int


@dataclass(frozen=True, slots=True)
class Contents:
    """All collections by name, or the reason why they cannot be read.

    `damage`: the files are certainly corrupt. `failure`: they could not be read this time (disk full, no
    permission, no descriptors or memory, a timeout, an unknown error); they may be intact.
    """

    damage: str = ""
    failure: str = ""
    collections: dict[str, Collection] = field(default_factory=dict)


def in_use_marker(path: Path) -> Path:
    """Return the file that exists in `path` while a process has it open; a killed one leaves it behind."""
    return path / _IN_USE


def damaged_copy(path: Path) -> Path:
    """Return the path of the latest damaged copy of the index at `path`."""
    return path.with_name(path.name + _DAMAGED_SUFFIX)


def remove_path(path: Path) -> None:
    """Remove a file, a link, or a directory with its content, if there is one. Raise `OSError`."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def set_aside_if_damaged(path: Path, is_ours: bool, announce: Callable[[str], None]) -> bool:
    """Rename the index at `path` if it is certainly damaged; return whether it was.

    Only the latest such copy is kept. `announce` gets one line. `is_ours` means that only memkit writes
    there; elsewhere, a directory that is not Chroma's is not moved. Raise `IndexStoreError` then, and if
    the renaming fails.
    """
    problem = read_all(path).damage
    if not problem:
        return False
    if not is_ours and not _is_chroma_directory(path):
        raise IndexStoreError(
            f"{path} is not an index ({problem}) and not memkit's; set index.uri to another path"
        )
    aside = damaged_copy(path)
    try:
        remove_path(aside)
        path.rename(aside)
    except OSError as error:
        raise IndexStoreError(
            f"the index {path} is damaged ({problem}) and cannot be moved aside: {error.strerror}"
        ) from error
    announce(f"the index {path} is damaged ({problem}); it is kept as {aside.name} and rebuilt")
    return True


def read_all(path: Path) -> Contents:
    """Read the index at `path` to the last byte and return its contents, empty if there is none.

    The caller holds the index lock. Nothing changes, and no damage can crash this process.
    """
    database = path / DATABASE
    try:
        mode = path.stat().st_mode
        if not stat.S_ISDIR(mode):
            return Contents("not a directory")
        if not stat.S_ISREG(database.stat().st_mode):
            return Contents(f"{DATABASE} is not a file")
    except FileNotFoundError:
        if path.is_symlink() and not os.path.lexists(os.path.realpath(path)):
            return _failure(path, "the link leads nowhere")
        return Contents()
    except OSError as error:
        return _failure(path, error.strerror or str(error))
    try:
        answer = subprocess.run(
            [sys.executable, "-I", "-c", _READ_ALL, str(path.absolute()), DATABASE, str(PAGE_ROWS)],
            cwd=path,  # not the user's directory: Chroma reads settings from a `.env` there
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TRY_SECONDS,
            check=False,
            **no_window(),
        )
    except subprocess.TimeoutExpired:
        return _failure(path, f"reading it took more than {TRY_SECONDS:.0f} s")
    except OSError as error:
        return _failure(path, f"cannot start a process to read it: {error.strerror or error}")
    stderr = answer.stderr.decode("utf-8", "replace")
    if answer.returncode in _CRASHES and "memory allocation of" not in stderr:
        logger.warning("reading the index %s crashed: %s", path, one_line(stderr))
        return Contents(f"reading it ends with signal {-answer.returncode}")
    try:
        found = parse_json(answer.stdout)
        if "damage" in found:
            logger.warning("the index %s is damaged: %s", path, found["damage"])
            return Contents(found["damage"])
        if "failure" in found:
            return _failure(path, found["failure"])
        collections = found["collections"].items()
    except (ValueError, KeyError, TypeError, AttributeError):
        last = next((line.strip() for line in reversed(stderr.split("\n")) if line.strip()), "")
        return _failure(path, f"reading it ended with status {answer.returncode}: {last[:200]}")
    return Contents(
        collections={
            name: Collection(frozenset(one["ids"]), one["dimensions"], one["foreign"])
            for name, one in collections
        }
    )


def _failure(path: Path, reason: str) -> Contents:
    logger.warning("the index %s could not be read, and stays as it is: %s", path, reason)
    return Contents(failure=reason)


def _is_chroma_directory(path: Path) -> bool:
    """Return whether it is a directory with nothing but Chroma's database and segment directories."""
    return path.is_dir() and all(
        entry.name.startswith((DATABASE, _IN_USE)) or (len(entry.name) == 36 and entry.is_dir())
        for entry in path.iterdir()
    )
