"""Depth L2: the whole Markdown section around a chunk, and the session it comes from."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypedDict

from memkit.browse.names import find_entry
from memkit.browse.transcript import find_original
from memkit.errors import AmbiguousIdError, ArchiveError, IndexStoreError, NotFoundError
from memkit.files import read_regular
from memkit.index import open_chunks
from memkit.index.blocks import Document
from memkit.index.catalog import also_searched
from memkit.index.chunk import SHOWN_ID_CHARACTERS, Chunk
from memkit.index.chunker import chunk_file, decode
from memkit.index.memory_files import MemoryFile
from memkit.index.reader import ChunkReader
from memkit.index.scanner import sources_of
from memkit.index.sections import read_sections
from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.projects.team_files import copy_of, team_file
from memkit.search.shared_by import team_mark
from memkit.settings import is_server
from memkit.settings.load import Settings

logger = logging.getLogger(__name__)


class _Section(TypedDict):
    id: str
    root: str
    path: str
    start_line: int
    end_line: int
    source: str
    heading: str
    breadcrumb: str
    kind: str
    date: str
    session: str
    branch: str
    turns: list[str]
    citations: list[str]
    transcript: str | None
    archived: bool
    missing: list[str]
    content: str


class Section(_Section, total=False):
    """The Markdown section around a result, as `memkit expand --json` prints it.

    `content` is the text of the file now, without anchors. Lines are 1-based and inclusive. `transcript` is
    the path of Claude Code's transcript. If that is gone, it is None, `archived` is whether the archive
    has the session, and `missing` lists turns that a damaged archive lost. `git` has the marks from git, if
    there are any; see `memkit.browse.git_marks`. `team` says who shared it; see `memkit.search.shared_by`.
    `author` is the colleague whose entry it is: then `content` is what the server holds of it, `path` is
    empty, and the rest is on the colleague's machine.
    """

    git: dict[str, Any]
    team: dict[str, Any]
    author: str


def expand_known(
    project: Project, home: Home, settings_of: Callable[[Project], Settings], prefix: str, *,
    other_projects: bool = True,
) -> Section:
    """Return the section around an entry or other text of any memory that a search of `project` looks into.

    Without `other_projects` that is the project itself and the user's memory. See `expand`.
    """
    problem = ""
    own = settings_of(project)
    others = also_searched(project, home, own.search, all_projects=other_projects)
    for candidate in (project, *others):
        settings = own if candidate == project else settings_of(candidate)
        chunks = open_chunks(candidate, home, settings)
        try:
            name, chunk = _known(candidate, settings, chunks, prefix)
        except NotFoundError as error:
            problem = problem or str(error)
            continue
        return expand(candidate, home, name, chunk)
    if is_server(own.index.uri):
        from memkit.index.colleagues import colleagues_of  # numpy, which a file needs not

        theirs = colleagues_of(project, home, own)
        try:
            row = None if theirs is None else theirs.named(prefix.lower())
        except IndexStoreError as error:
            raise NotFoundError(f"{problem}; if a colleague has it: {error}") from error
        if row is not None:
            shown = row.chunk.entry_id or row.id[:SHOWN_ID_CHARACTERS]
            return {**_section(shown, project.root, "", row.chunk), "author": row.author}
    raise NotFoundError(problem)


def _known(project: Project, settings: Settings, chunks: ChunkReader | None, name: str) -> tuple[str, Chunk]:
    """Return the ID to show, and the chunk: of an entry as its file has it, of other text as the index does.

    The ID of a chunk leads to its entry. Raise `NotFoundError`, `AmbiguousIdError`.
    """
    journal = Journal(project)
    entry = find_entry(journal, name) if len(name) < SHOWN_ID_CHARACTERS or "-" in name else None
    if entry is None:
        if chunks is None:
            raise NotFoundError(f"{project.root} has no index yet; run `memkit index`")
        full, chunk = chunks.known(name)
        entry = find_entry(journal, chunk.entry_id)
        if entry is None:
            return chunk.entry_id or full[:SHOWN_ID_CHARACTERS], chunk
    (source,) = sources_of(Path(project.root), [entry.path])
    file = MemoryFile(source, os.path.realpath(entry.path), "").load()
    above = [one for one in chunk_file(file, settings)[0] if one.start_line <= entry.line]
    if entry.kind == "session" or not above:
        raise NotFoundError(f"{entry.id} is a {entry.kind}; `memkit show {entry.id}` shows it")
    return entry.id, above[-1]


def _section(shown: str, root: str, path: str, chunk: Chunk) -> Section:
    return {
        "id": shown, "root": root, "path": path, "start_line": chunk.start_line, "end_line": chunk.end_line,
        "source": chunk.source, "heading": chunk.heading, "breadcrumb": chunk.breadcrumb, "kind": chunk.kind,
        "date": chunk.date, "session": chunk.session, "branch": chunk.branch, "turns": list(chunk.turns),
        "citations": list(chunk.citations), "transcript": None, "archived": False, "missing": [],
        "content": chunk.content,
    }  # fmt: skip


def expand(project: Project, home: Home, shown: str, chunk: Chunk) -> Section:
    """Return the section around a chunk, which has the ID `shown`. Raise `NotFoundError` if it is gone."""
    path = Path(project.root) / chunk.source
    real = os.path.join(copy_of(home, project.root), chunk.source) if chunk.kind == "team" else path
    try:
        data = read_regular(os.path.realpath(real))
    except OSError as error:
        raise NotFoundError(
            f"{path} cannot be read: {error.strerror}; run `memkit index` to update the index"
        ) from error
    text, _ = decode(data, chunk.source)
    document = Document(text)
    is_unchanged = hashlib.sha256(data).hexdigest() == chunk.source_hash
    start, end = _bounds(document, chunk, path, is_unchanged)
    turns, citations = dict.fromkeys(chunk.turns), dict[str, None]()
    for pairs in document.anchors(start, end):
        for found, names in ((turns, ("turn", "turns")), (citations, ("grip", "grips"))):
            for name in names:
                found |= dict.fromkeys(filter(None, pairs.get(name, "").split(",")))
    transcript, archived, missing = _original(home, chunk.session, turns)
    section: Section = {
        **_section(shown, project.root, str(path), chunk), "start_line": document.line_at(start) + 1,
        "end_line": document.line_at(max(start, end - 1)) + 1, "turns": list(turns),
        "citations": list(citations), "transcript": transcript, "archived": archived, "missing": missing,
        "content": document.body[start:end],
    }  # fmt: skip
    if team_file(chunk.source):
        section["team"] = team_mark(home, project.root, chunk.source)
    return section


def _original(home: Home, session: str, turns: Iterable[str]) -> tuple[str | None, bool, list[str]]:
    """Return `transcript`, `archived`, and `missing` of the section."""
    transcript, archived, missing = None, False, list[str]()
    try:
        found = find_original(home, session)
        if found is not None and found.archive is None:
            transcript = str(found.path)
        elif found is not None:
            archived = True
            missing = found.missing(turns)
    except AmbiguousIdError:  # somebody wrote an abbreviated session by hand
        pass
    except ArchiveError as error:
        logger.warning("%s", error)
        archived = True
    return transcript, archived, missing


def _bounds(document: Document, chunk: Chunk, path: Path, is_unchanged: bool) -> tuple[int, int]:
    """Return the offsets in `document.body` of the chunk's section, without trailing blanks.

    In a changed file, take the section of that name nearest to the chunk's lines. In an unchanged file, a
    chunk of several short sections spans all of them.
    """
    size, last = len(document.body), len(document.lines)
    first_line, last_line = min(chunk.start_line, last) - 1, min(chunk.end_line, last)
    wanted = document.line_starts[first_line], document.line_starts[last_line] - 1
    sections = [s for s in read_sections(document, path.name) if not s.continues]
    found = [(0, next((s.start for s in sections if s.level), size))]
    if chunk.level:
        found = [
            (own.start, next((s.start for s in sections[n:] if s.level <= own.level), size))
            for n, own in enumerate(sections, start=1)
            if (own.level, own.breadcrumb) == (chunk.level, chunk.breadcrumb)
        ]
    if not found:
        raise NotFoundError(f"{path} has changed and no longer has a section {chunk.heading!r}; search again")
    start, end = min(found, key=lambda one: max(0, one[0] - wanted[1] + 1, wanted[0] - one[1] + 1))
    if is_unchanged:
        for held in sections:
            if held.has_text and held.start < wanted[1] and wanted[0] < held.end:
                start, end = min(start, held.start), max(end, held.end)
    return start, start + len(document.body[start:end].rstrip())
