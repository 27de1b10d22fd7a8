"""Check the index: that it can be read, has the current format, and matches the Markdown; and fix it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from memkit.doctor import FIX, Finding, Subject, make_finding
from memkit.embedding.models import space
from memkit.embedding.remote import PROVIDERS
from memkit.errors import (
    ForeignSnapshotError,
    IndexBusyError,
    IndexStoreError,
    MemkitError,
    StaleSnapshotError,
)
from memkit.index import index_lock, is_up_to_date, open_snapshot, read_files
from memkit.index.catalog import collection_name, known_roots, snapshot_directory
from memkit.index.chunker import chunk_file
from memkit.index.damage import Collection, read_all, set_aside_if_damaged
from memkit.index.memory_files import RESTORE
from memkit.index.snapshot import Snapshot
from memkit.index.store import directory
from memkit.settings import is_server
from memkit.text import one_line, plural

LOOPBACK = ("127.0.0.1", "::1", "localhost")

WAIT_SECONDS = 10.0
"""The time that a check waits for another process that uses the index."""


def check_snapshot(subject: Subject) -> Iterator[Finding]:
    """Check the snapshot that searches read."""
    try:
        snapshot = open_snapshot(subject.project, subject.home, subject.settings, strict=True)
        if snapshot is not None:
            snapshot.check()
    except ForeignSnapshotError as error:
        yield make_finding("snapshot-foreign", what=error)
        return
    except StaleSnapshotError as error:
        yield make_finding("snapshot-damaged", what=error)
        return
    place = snapshot_directory(subject.home, _collection_name(subject))
    if snapshot is None and place.is_dir() and any(place.iterdir()):
        what = f"the snapshot in {place} is incomplete, so searches do not use it"
        yield make_finding("snapshot-damaged", what=what)


def check_edits(subject: Subject) -> Iterator[Finding]:
    """Check that the index is up to date, with a vector for every chunk."""
    snapshot = _snapshot(subject)
    files = read_files(subject.project, subject.home, subject.settings, snapshot)
    for line in files.problems:
        fix = "make it readable, or mount its disk; then run `memkit index`"
        if line == files.added_paths_problem:
            fix = RESTORE
        yield make_finding("memory-unreadable", what=one_line(line.split("; ")[0]), fix=fix)
    root = subject.project.root
    if snapshot is None:
        if files:
            what = f"{root} has {plural(len(files), 'memory file')} but no index"
            yield make_finding("not-indexed", what=what)
        return
    if not is_up_to_date(snapshot, files, subject.settings):
        what = f"the memory of {root} has changed since it was indexed"
        yield make_finding("not-indexed", what=what)
    if snapshot.missing and subject.settings.embedding.provider != "none":
        yield make_finding("not-embedded", missing=snapshot.missing, all=len(snapshot), root=root)


def check_store(subject: Subject) -> Iterator[Finding]:
    """Read the whole vector index, and compare it with the snapshot and the Markdown."""
    path = directory(subject.home, subject.settings.index.uri)
    if path is None or not os.path.lexists(path):
        return
    try:
        with index_lock(subject.home, WAIT_SECONDS):
            contents = read_all(path)
    except IndexBusyError:
        yield make_finding("index-busy", path=path)
        return
    if contents.damage:
        yield make_finding("index-damaged", path=path, damage=contents.damage)
        return
    if contents.failure:
        yield make_finding("index-unreadable", path=path, failure=contents.failure)
        return
    collection = contents.collections.get(_collection_name(subject))
    if collection is not None:
        yield from _compare(subject, collection)


def _compare(subject: Subject, collection: Collection) -> Iterator[Finding]:
    # Only a rebuild fixes these. The user decides about that if vectors cost money.
    is_paid = subject.settings.embedding.provider in PROVIDERS
    paid = "run `memkit index --rebuild` in a terminal of your own, which pays for all vectors again"
    fix = paid if is_paid else FIX
    if collection.foreign:
        yield make_finding("index-foreign", rows=collection.foreign, fix=fix)
        return
    wanted = _dimensions(subject)
    if wanted and collection.dimensions not in (None, wanted):
        dimensions = collection.dimensions
        yield make_finding("index-dimensions", dimensions=dimensions, wanted=wanted, fix=fix)
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
            count = plural(len(ids ^ expected), "chunk")
            yield make_finding("index-differs", count=count, fix=fix)
            return
    from memkit.index.outbox import read_unsent

    differing = ids ^ collection.ids
    unsent = read_unsent(snapshot.directory).sources
    if unsent:  # rows of other files that Chroma lacks; those of deleted chunks of these files wait too
        differing = ids - collection.ids
        for entry in (snapshot.entries[source] for source in unsent & snapshot.entries.keys()):
            segment = snapshot.segments[entry.segment]
            differing -= {segment.id(place) for place in range(entry.first, entry.last)}
    if differing:
        yield make_finding("snapshot-differs", count=plural(len(differing), "chunk"))


def check_server(subject: Subject) -> Iterator[Finding]:
    """Check that the Chroma server of `index.uri` can be reached, and has all rows of this home."""
    uri = subject.settings.index.uri
    if not is_server(uri):
        return
    from memkit.index.outbox import read_unsent, waiting_chunks
    from memkit.index.server import connect

    parts = urlsplit(uri)
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        yield make_finding("server-unencrypted", uri=uri)
    snapshot, count = _snapshot(subject), 0
    if snapshot is not None:
        unsent = read_unsent(snapshot.directory).sources
        collection = "" if unsent is None else snapshot.manifest.collection
        count = waiting_chunks(snapshot.entries, collection, unsent or ())
    waiting, root = plural(count, "chunk"), subject.project.root
    try:
        connect(subject.home, uri)
    except IndexStoreError as error:
        yield make_finding("server-away", what=one_line(str(error)), waiting=waiting, root=root)
    else:
        if count:
            yield make_finding("server-waiting", waiting=waiting, root=root)


def check_gone_projects(subject: Subject) -> Iterator[Finding]:
    """Find indexed projects whose directory is gone."""
    for root in known_roots(subject.home):
        if not Path(root).is_dir():
            yield make_finding("project-gone", root=root)


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
            subject.project,
            subject.home,
            subject.settings,
            rebuild=is_rebuild,
            compare=True,
            announce=lines.append,
        )
    line = f"{plural(report.chunks, 'chunk')} of {subject.project.root} indexed"
    if report.missing and subject.settings.embedding.provider != "none":
        raise MemkitError(f"{line}, but {report.missing} of them not embedded: {report.degraded}")
    lines.append(f"{line}, {report.embedded} embedded" if report.embedded else line)
    return "; ".join([*lines, *filter(None, [report.degraded, report.away])])


def _collection_name(subject: Subject) -> str:
    return collection_name(subject.project, subject.home, space(subject.settings.embedding))


def _snapshot(subject: Subject) -> Snapshot | None:
    try:
        return open_snapshot(subject.project, subject.home, subject.settings, strict=True)
    except StaleSnapshotError:
        return None


def _dimensions(subject: Subject) -> int | None:
    if subject.settings.embedding.provider != "local":
        return None
    from memkit.embedding.local import DIMENSIONS

    return DIMENSIONS
