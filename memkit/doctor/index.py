"""Check the index: that it can be read, has the current format, and matches the Markdown; and fix it."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from memkit.doctor import Finding, Subject, make_finding
from memkit.embedding.models import space
from memkit.errors import IndexStoreError, MemkitError, StaleSnapshotError
from memkit.index import index_lock, is_up_to_date, open_snapshot, read_files
from memkit.index.catalog import collection_name, snapshot_directory
from memkit.index.chunker import chunk_file
from memkit.index.memory_files import RESTORE
from memkit.index.snapshot import Snapshot
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
    except StaleSnapshotError as error:
        yield make_finding("snapshot-damaged", what=error)
        return
    name = collection_name(subject.project, subject.home, space(subject.settings.embedding))
    place = snapshot_directory(subject.home, name)
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


def check_chunks(subject: Subject) -> Iterator[Finding]:
    """Compare the index with what the Markdown gives now."""
    snapshot = _snapshot(subject)
    files = read_files(subject.project, subject.home, subject.settings)
    if snapshot is None or files.problems or not is_up_to_date(snapshot, files, subject.settings):
        return
    model = subject.settings.embedding.model
    expected = {chunk.id(model) for file in files.values() for chunk in chunk_file(file, subject.settings)[0]}
    differing = expected ^ {snapshot.id(position) for position in range(len(snapshot))}
    if differing:
        yield make_finding("index-differs", count=plural(len(differing), "chunk"))


def check_server(subject: Subject) -> Iterator[Finding]:
    """Check that the Chroma server of `index.uri` can be reached, and has all rows of this home."""
    uri = subject.settings.index.uri
    if not is_server(uri):
        return
    from memkit.index.mirror import waiting_chunks
    from memkit.index.server import connect

    parts = urlsplit(uri)
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        yield make_finding("server-unencrypted", uri=uri)
    snapshot, count = _snapshot(subject), 0
    if snapshot is not None:
        count = waiting_chunks(snapshot.directory, snapshot.entries)
    waiting, root = plural(count, "chunk"), subject.project.root
    try:
        connect(subject.home, uri)
    except IndexStoreError as error:
        yield make_finding("server-away", what=one_line(str(error)), waiting=waiting, root=root)
    else:
        if count:
            yield make_finding("server-waiting", waiting=waiting, root=root)


def rebuild(subject: Subject) -> str:
    """Chunk all files again; their vectors, which may have cost money, stay. Raise `MemkitError`."""
    return update(subject, is_rebuild=True)


def update(subject: Subject, *, is_rebuild: bool = False) -> str:
    """Update the project's index. Raise `MemkitError`."""
    from memkit.index import sync_project

    lines: list[str] = []
    with index_lock(subject.home, WAIT_SECONDS):
        report = sync_project(
            subject.project, subject.home, subject.settings, rebuild=is_rebuild, keep_vectors=True,
            compare=True, announce=lines.append,
        )
    line = f"{plural(report.chunks, 'chunk')} of {subject.project.root} indexed"
    if report.missing and subject.settings.embedding.provider != "none":
        raise MemkitError(f"{line}, but {report.missing} of them not embedded: {report.degraded}")
    lines.append(f"{line}, {report.embedded} embedded" if report.embedded else line)
    return "; ".join([*lines, *filter(None, [report.degraded, report.away])])


def _snapshot(subject: Subject) -> Snapshot | None:
    try:
        return open_snapshot(subject.project, subject.home, subject.settings, strict=True)
    except StaleSnapshotError:
        return None
