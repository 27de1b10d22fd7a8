"""Undo the last compaction: bring back the facts that it replaced, and remove those that it added.

A compaction keeps the old text of the file (see `keep_replaced`) and, next to it, the IDs of the facts that
it changed. So an undo leaves everything alone that the user or another program changed since.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from memkit.errors import ArchiveError, MemkitError, NotFoundError
from memkit.files import make_private_directory
from memkit.journal.facts import NO_DAY, FactChange, FactFile
from memkit.journal.files import directory_of_replaced, read_file
from memkit.paths import Home
from memkit.privacy.tombstones import Tombstones
from memkit.projects.project import Project
from memkit.state import read_state, write_state

VERSION = 1
"""The format version. A file of a newer version is neither read nor written."""

_COPY = re.compile(r"\w[\w.-]{0,200}", re.ASCII)


class LastCompaction(msgspec.Struct, frozen=True):
    """The change that the last compaction of a project made to the file `name`, as IDs without text.

    `copy` is the name of the copy of its old text, "" if it had none. `compacted` is the day (ISO) up to
    which the memory was condensed before, `NO_DAY` for none, or "" if the compaction left it as it was.
    """

    name: str
    copy: str
    removed: frozenset[str]
    added: frozenset[str]
    compacted: str


def note_compaction(
    home: Home, project: Project, name: str, before: str, change: FactChange, copy: Path | None
) -> None:
    """Record, durably, the `change` that is about to be made to `before`, the text of the file `name`.

    `copy` is the kept copy of `before`. Raise `ArchiveError`.
    """
    day = FactFile(before, name).compacted or NO_DAY
    last = LastCompaction(
        name=name,
        copy=copy.name if copy else "",
        removed=change.removed,
        added=frozenset(fact.id for fact in change.added),
        compacted=day if change.compacted else "",
    )
    content = {"version": VERSION, **msgspec.to_builtins(last, order="deterministic")}
    path = _path(home, project)
    try:
        make_private_directory(str(path.parent))
        write_state(path, VERSION, content)
    except OSError as error:
        raise ArchiveError(f"cannot write {path}: {error.strerror}; nothing was changed") from error


def undoing_change(
    home: Home, project: Project, name: str, redact: Callable[[str], str]
) -> FactChange:
    """Return the change that undoes the last compaction of the file `name`.

    A fact that was forgotten since does not come back. Raise `NotFoundError` if no compaction is recorded,
    `MemkitError` if its facts cannot be restored.
    """
    last = read_state(_path(home, project), VERSION, _last_compaction)
    if last is None or last.name != name:
        raise NotFoundError(f"there is no compaction to undo in {Path(project.memory, name)}")
    copy = directory_of_replaced(home, project.root) / last.copy
    try:
        old = read_file(copy) if last.copy else ""
    except OSError as error:
        raise ArchiveError(f"{copy} cannot be read: {error.strerror}; nothing was changed") from error
    if last.removed and not old:
        raise MemkitError(
            f"cannot undo the last compaction: {copy}, the old text of {name}, is gone, as after "
            "`memkit forget`; nothing was changed"
        )
    forgotten = Tombstones(home).forgotten().within(project.root)
    restored = [
        dataclasses.replace(one.fact, text=redact(one.fact.text))
        for _, one in FactFile(old, name).everywhere()
        if one.id in last.removed
        and not forgotten.covers_fact(one.id, one.fact.citations.turns, one.fact.citations.grips)
    ]
    return FactChange(last.added, tuple(restored), last.compacted)


def forget_compaction(home: Home, project: Project) -> None:
    """Remove the record of the last compaction, after it was undone. Raise `ArchiveError`."""
    path = _path(home, project)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise ArchiveError(f"undone, but {path} cannot be removed: {error.strerror}") from error


def _path(home: Home, project: Project) -> Path:
    return directory_of_replaced(home, project.root) / "undo.json"


def _last_compaction(value: dict[str, Any]) -> LastCompaction:
    try:
        last = msgspec.convert(value, LastCompaction)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
    if last.copy and not _COPY.fullmatch(last.copy):
        raise ValueError("`copy` is not a name of a copy")
    return last
