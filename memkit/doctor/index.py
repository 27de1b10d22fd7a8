"""Check the index: that it can be read, has the current format, and matches the Markdown; and fix it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from memkit.doctor.finding import FIX, Finding, Subject
from memkit.embedding.models import space
from memkit.embedding.remote import PROVIDERS
from memkit.errors import (
    ForeignSnapshotError,
    IndexBusyError,
    StaleSnapshotError,
)
from memkit.index import index_lock, is_up_to_date, open_snapshot, read_files
from memkit.index.catalog import collection_name, known_roots, snapshot_directory
from memkit.index.chunker import chunk_file
from memkit.index.damage import Collection, in_use_marker, read_all, set_aside_if_damaged
from memkit.index.memory_files import RESTORE
from memkit.index.snapshot import Snapshot
from memkit.index.store import directory
from memkit.text import one_line, plural

WAIT_SECONDS = 10.0
"""The time that a check waits for another process that uses the index."""

_REBUILT = "the next search rebuilds it first, and takes longer"


def check_snapshot(subject: Subject) -> Iterator[Finding]:
    """Check the snapshot that searches read."""
    try:
        snapshot = open_snapshot(subject.project, subject.home, subject.settings, strict=True)
    except ForeignSnapshotError as error:
        yield Finding("snapshot-foreign", "error", str(error), _REBUILT)
        return
    except StaleSnapshotError as error:
        yield Finding("snapshot-damaged", "error", str(error), _REBUILT)
        return
    place = snapshot_directory(subject.home, _collection_name(subject))
    if snapshot is None and place.is_dir() and any(place.iterdir()):
        what = f"the snapshot in {place} is half-written, so searches do not use it"
        yield Finding("snapshot-damaged", "error", what, _REBUILT)


def check_edits(subject: Subject) -> Iterator[Finding]:
    """Check that the index is up to date, with a vector for every chunk."""
    files = read_files(subject.project, subject.home, subject.settings)
    for line in files.problems:
        is_record = line == files.added_paths_problem
        yield Finding(
            "memory-unreadable",
            "error",
            one_line(line.split("; ")[0]),
            "the index keeps the old content; searches do not find new content",
            RESTORE if is_record else "make it readable, or mount its disk; then `memkit index`",
        )
    root = subject.project.root
    snapshot = _snapshot(subject)
    if snapshot is None:
        if files:
            what = f"{plural(len(files), 'memory file')} of {root} are not indexed"
            yield Finding("not-indexed", "warning", what, _REBUILT)
        return
    if not is_up_to_date(snapshot, files, subject.settings):
        yield Finding(
            "not-indexed",
            "warning",
            f"the memory of {root} has changed since it was indexed",
            "the next search indexes the changes first; until then searches do not find them",
        )
    if snapshot.missing and subject.settings.embedding.provider != "none":
        yield Finding(
            "not-embedded",
            "warning",
            f"{snapshot.missing} of {len(snapshot)} chunks of {root} have no vector",
            "searches find them only by their words",
        )


def check_store(subject: Subject) -> Iterator[Finding]:
    """Read the whole vector index, and compare it with the snapshot and the Markdown."""
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
            f"another process writes the index, so {path} was not checked",
            "none, if that process ends",
            "run `memkit doctor` again in a moment",
        )
        return
    if contents.damage:
        yield Finding(
            "index-damaged",
            "error",
            f"the index {path} cannot be read: {contents.damage}",
            "memkit can index nothing new",
            f"{FIX} sets it aside and rebuilds it from the Markdown",
        )
        return
    if contents.failure:
        yield Finding(
            "index-unreadable",
            "error",
            f"the index {path} could not be read: {contents.failure}",
            "memkit may not be able to index new text; the files may be intact, so they stay as they are",
            "look for a full disk, a missing permission, or too few descriptors (`ulimit -n`); then "
            "run `memkit doctor` again",
        )
        return
    if was_open:
        yield Finding(
            "index-left-open",
            "warning",
            f"a process was killed while it had the index {path} open",
            "the index is intact; the next process that writes it checks it first",
        )
    collection = contents.collections.get(_collection_name(subject))
    if collection is not None:
        yield from _compare(subject, collection)


def _compare(subject: Subject, collection: Collection) -> Iterator[Finding]:
    """Compare the project's collection with the model, the Markdown, and the snapshot."""
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
    ids = {snapshot.id(position) for position in range(len(snapshot))}
    files = read_files(subject.project, subject.home, subject.settings)
    if not files.problems and is_up_to_date(snapshot, files, subject.settings):
        model = subject.settings.embedding.model
        expected = {
            chunk.id(model)
            for file in files.values()
            for chunk in chunk_file(file, subject.settings)[0]
        }
        if ids != expected:
            what = f"the index differs from the Markdown in {plural(len(ids ^ expected), 'chunk')}"
            yield _to_rebuild(subject, "index-differs", what)
            return
    if ids != collection.ids:
        count = plural(len(ids ^ collection.ids), "chunk")
        yield Finding(
            "snapshot-differs",
            "error",
            f"the snapshot that searches read differs from the index in {count}",
            "searches miss some entries, or find deleted ones",
        )


def _to_rebuild(subject: Subject, code: str, what: str) -> Finding:
    """Return a finding that only a rebuild fixes. The user decides about that if vectors cost money."""
    is_paid = subject.settings.embedding.provider in PROVIDERS
    return Finding(
        code,
        "error",
        what,
        "searches fail or miss entries",
        "`memkit index --rebuild`, which embeds everything again" if is_paid else FIX,
    )


def check_gone_projects(subject: Subject) -> Iterator[Finding]:
    """Find indexed projects whose directory is gone."""
    for root in known_roots(subject.home):
        if not Path(root).is_dir():
            yield Finding(
                "project-gone",
                "note",
                f"the project {root} has an index, but its directory is gone",
                "searches do not use it; memkit indexes it again when it comes back",
                f"nothing; when it is back, `memkit index --project {root}`",
            )


def set_index_aside(subject: Subject) -> str:
    """Move a damaged index away. Raise `IndexStoreError`."""
    path = directory(subject.home, subject.settings.index.uri)
    lines: list[str] = []
    if path is not None:
        with index_lock(subject.home, WAIT_SECONDS):
            set_aside_if_damaged(path, not subject.settings.index.uri, lines.append)
    return "; ".join(lines) or "the index can be read again"


def update(subject: Subject) -> str:
    """Update the project's index. Raise `MemkitError`."""
    return _index(subject, is_rebuild=False)


def rebuild(subject: Subject) -> str:
    """Rebuild the project's index. Raise `MemkitError`."""
    return _index(subject, is_rebuild=True)


def _index(subject: Subject, is_rebuild: bool) -> str:
    from memkit.index import sync_project

    lines: list[str] = []
    with index_lock(subject.home, WAIT_SECONDS):
        report = sync_project(
            subject.project, subject.home, subject.settings, rebuild=is_rebuild, announce=lines.append
        )
    chunks = plural(report.chunks, "chunk")
    lines.append(f"{chunks} of {subject.project.root} indexed, {report.embedded} embedded")
    return "; ".join([*lines, *filter(None, [report.degraded])])


def _collection_name(subject: Subject) -> str:
    return collection_name(subject.project, subject.home, space(subject.settings.embedding))


def _snapshot(subject: Subject) -> Snapshot | None:
    """Return the current snapshot; None also if it is damaged, which `check_snapshot` reports."""
    try:
        return open_snapshot(subject.project, subject.home, subject.settings, strict=True)
    except StaleSnapshotError:
        return None


def _dimensions(subject: Subject) -> int | None:
    """Return the length of the model's vectors, or None if only the provider knows it."""
    if subject.settings.embedding.provider != "local":
        return None
    from memkit.embedding.local import DIMENSIONS

    return DIMENSIONS
