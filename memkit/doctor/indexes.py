"""The index: can it be read, is it of this version, does it hold what the markdown says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from memkit.doctor.finding import MEND, Finding, Subject
from memkit.embedding.models import space
from memkit.embedding.remote import PROVIDERS
from memkit.errors import (
    ForeignSnapshotError,
    IndexBusyError,
    IndexStoreError,
    StaleSnapshotError,
)
from memkit.index.current import (
    CurrentFiles,
    collection_name,
    inspect_snapshot,
    is_in_step,
    known_roots,
    read_files,
    snapshot_directory,
)
from memkit.index.damage import Collection, in_use_marker, read_all, set_aside_if_damaged
from memkit.index.index_pass import chunks_of
from memkit.index.lock import index_lock
from memkit.index.paths import RESTORE
from memkit.index.snapshot import Snapshot
from memkit.index.store import directory

WAIT_SECONDS = 10.0
"""How long a check waits for another process that has the index open."""

_MADE_ANEW = "the next search makes it anew first, and takes longer"


def check_snapshot(subject: Subject) -> Iterator[Finding]:
    """What searches read."""
    try:
        snapshot = inspect_snapshot(subject.project, subject.home, subject.settings)
    except ForeignSnapshotError as error:
        yield Finding("snapshot-foreign", "error", str(error), _MADE_ANEW, MEND, fixable=True)
        return
    except StaleSnapshotError as error:
        yield Finding("snapshot-damaged", "error", str(error), _MADE_ANEW, MEND, fixable=True)
        return
    place = snapshot_directory(subject.home, _name(subject))
    if snapshot is None and place.is_dir() and any(place.iterdir()):
        what = f"the snapshot in {place} is half-written: none of it is in force"
        yield Finding("snapshot-damaged", "error", what, _MADE_ANEW, MEND, fixable=True)


def check_edits(subject: Subject) -> Iterator[Finding]:
    """Whether the index stands for the memory as it is now, with a vector for every chunk."""
    files = read_files(subject.project, subject.home, subject.settings)
    for line in files.problems:
        yield Finding(
            "memory-unreadable",
            "error",
            " ".join(line.split("; ")[0].split()),
            "what the index has of it is kept; what is new there is not found",
            _advice_on(files, line),
        )
    snapshot = _snapshot(subject)
    if snapshot is None:
        if files:
            what = f"{len(files)} memory files of {subject.project.root} are not indexed"
            yield Finding("not-indexed", "warning", what, _MADE_ANEW, MEND, fixable=True)
        return
    if not is_in_step(snapshot, files, subject.settings):
        yield Finding(
            "not-indexed",
            "warning",
            f"the memory of {subject.project.root} was changed since it was indexed",
            "the next search indexes the changes first; until then they are not found",
            MEND,
            fixable=True,
        )
    if snapshot.missing and subject.settings.embedding.provider != "none":
        yield Finding(
            "not-embedded",
            "warning",
            f"{snapshot.missing} of {len(snapshot)} chunks of {subject.project.root} have no vector",
            "they are found by their words alone",
            MEND,
            fixable=True,
        )


def _advice_on(files: CurrentFiles, line: str) -> str:
    if line == files.added_paths_problem:
        return RESTORE
    return "make it readable, or mount what it is on; then `memkit index`"


def check_store(subject: Subject) -> Iterator[Finding]:
    """The vector index, read to the last byte, and compared with the snapshot and the markdown."""
    path = directory(subject.home, subject.settings.index.uri)
    if path is None or not os.path.lexists(path):
        return
    try:
        with index_lock(subject.home, WAIT_SECONDS):
            was_open = in_use_marker(path).exists()
            contents = read_all(path)
    except IndexBusyError:
        yield Finding(
            "index-busy",
            "note",
            f"the index is being written; {path} was not looked into",
            "nothing, if that ends",
            "`memkit doctor` again in a moment",
        )
        return
    except IndexStoreError as error:  # the home cannot be written, which is told of by itself
        what, meaning = str(error), "nothing can be indexed"
        yield Finding("index-closed", "error", what, meaning, "make that directory writable")
        return
    if contents.damage:
        yield Finding(
            "index-damaged",
            "error",
            f"the index {path} cannot be read: {contents.damage}",
            "nothing new can be indexed",
            f"{MEND} moves it aside and makes it anew from the markdown",
            fixable=True,
        )
        return
    if contents.failure:
        yield Finding(
            "index-unreadable",
            "error",
            f"the index {path} could not be read: {contents.failure}",
            "nothing new may be indexed; nothing says that the files are damaged, so they stay as they are",
            "look for a full disk, a missing permission, or too few descriptors (`ulimit -n`); then "
            "`memkit doctor` again",
        )
        return
    if was_open:
        yield Finding(
            "index-left-open",
            "warning",
            f"a process was killed while it had the index {path} open",
            "it can be read whole; the next one that writes it checks it first",
            MEND,
            fixable=True,
        )
    collection = contents.collections.get(_name(subject))
    if collection is not None:
        yield from _compare(subject, collection)


def _compare(subject: Subject, collection: Collection) -> Iterator[Finding]:
    """What is wrong in the project's collection."""
    if collection.foreign:
        what = f"{collection.foreign} rows of the index are of another version of memkit"
        yield _to_rebuild(subject, "index-foreign", what)
        return
    wanted = _dimensions(subject)
    if wanted and collection.dimensions not in (None, wanted):
        what = f"the index holds vectors of {collection.dimensions} dimensions, the model's have {wanted}"
        yield _to_rebuild(subject, "index-dimensions", what)
        return
    snapshot = _snapshot(subject)
    if snapshot is None:
        return
    ids = {snapshot.id(place) for place in range(len(snapshot))}
    files = read_files(subject.project, subject.home, subject.settings)
    if not files.problems and is_in_step(snapshot, files, subject.settings):
        model = subject.settings.embedding.model
        said = {
            chunk.id(model)
            for file in files.values()
            for chunk in chunks_of(file, subject.settings)[0]
        }
        if ids != said:
            what = f"the index differs from the markdown in {len(ids ^ said)} chunks"
            yield _to_rebuild(subject, "index-differs", what)
            return
    if ids != collection.ids:
        yield Finding(
            "snapshot-differs",
            "error",
            f"what searches read differs from the index in {len(ids ^ collection.ids)} chunks",
            "some entries are not found, or are found though they are gone",
            MEND,
            fixable=True,
        )


def _to_rebuild(subject: Subject, code: str, what: str) -> Finding:
    """A finding that only a new index mends. What a service embedded was paid for, so the user decides."""
    is_paid = subject.settings.embedding.provider in PROVIDERS
    return Finding(
        code,
        "error",
        what,
        "searches fail or miss entries",
        "`memkit index --rebuild`, which embeds everything again" if is_paid else MEND,
        fixable=not is_paid,
    )


def check_gone_projects(subject: Subject) -> Iterator[Finding]:
    """Projects that have an index and no directory any more."""
    for root in known_roots(subject.home):
        if not Path(root).is_dir():
            yield Finding(
                "project-gone",
                "note",
                f"the project {root} has an index, but its directory is gone",
                "nothing of it is searched; it is indexed again when it comes back",
                f"nothing, or `git clone` and the like; from then on `memkit index --project {root}`",
            )


def set_index_aside(subject: Subject) -> str:
    """Move away an index that cannot be read. Raises `IndexStoreError`."""
    path = directory(subject.home, subject.settings.index.uri)
    said: list[str] = []
    if path is not None:
        with index_lock(subject.home, WAIT_SECONDS):
            set_aside_if_damaged(path, not subject.settings.index.uri, said.append)
    return "; ".join(said) or "the index can be read again"


def mend_by_pass(subject: Subject) -> str:
    """Bring the project's index into step. Raises `MemkitError`."""
    return _index(subject, rebuild=False)


def mend_by_rebuild(subject: Subject) -> str:
    """Make the project's index anew. Raises `MemkitError`."""
    return _index(subject, rebuild=True)


def _index(subject: Subject, rebuild: bool) -> str:
    from memkit.index.sync import sync_project

    said: list[str] = []
    with index_lock(subject.home, WAIT_SECONDS):
        report = sync_project(
            subject.project, subject.home, subject.settings, rebuild=rebuild, announce=said.append
        )
    said.append(
        f"{report.chunks} chunks of {subject.project.root} indexed, {report.embedded} embedded"
    )
    return "; ".join([*said, *filter(None, [report.degraded])])


def _name(subject: Subject) -> str:
    return collection_name(subject.project, subject.home, space(subject.settings.embedding))


def _snapshot(subject: Subject) -> Snapshot | None:
    """The snapshot in force; None also if it is damaged, which `check_snapshot` tells."""
    try:
        return inspect_snapshot(subject.project, subject.home, subject.settings)
    except StaleSnapshotError:
        return None


def _dimensions(subject: Subject) -> int | None:
    """The length of the model's vectors, if that is known without asking it."""
    if subject.settings.embedding.provider != "local":
        return None
    from memkit.embedding.local import DIMENSIONS

    return DIMENSIONS
