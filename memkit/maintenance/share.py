"""Share what a person promotes with everybody who has the repository, and take it back.

memkit writes the author's own files in `.memkit/team`. It never runs `git add`, `git commit`, or `git push`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from re import Pattern
from typing import Any

from memkit import anchors
from memkit.browse.names import Entry, find_entry
from memkit.bullets import bullet_words, read_bullets
from memkit.errors import MemkitError, NotFoundError
from memkit.index.chunk import LEADING_HEADINGS, Chunk
from memkit.index.reader import ChunkReader
from memkit.journal.day_file import DayFile
from memkit.journal.journal import Journal
from memkit.journal.team import SharedEntry, TeamFolder, WrittenEntry, appended
from memkit.paths import Home
from memkit.privacy.leaks import find_leaks
from memkit.projects.git import is_ignored, tracked_below
from memkit.projects.team import author_folder
from memkit.projects.team_files import is_team, team_file
from memkit.text import one_line

MOST_NAMED = 5
"""The reasons for a refusal that are named."""

_DAY = re.compile(r"^# (\d{4}-\d\d-\d\d)[^\n]*$", re.MULTILINE)
_LEAST_ID = 4


@dataclass(frozen=True, slots=True)
class ShareReport:
    """What `memkit share` added to a file, and how many entries were shared already.

    `text` is exactly what was added at its end. `is_ignored` is whether git ignores the file.
    """

    path: str
    author: str
    entries: tuple[SharedEntry, ...]
    known: int
    text: str
    is_ignored: bool

    def as_dict(self) -> dict[str, Any]:
        """Return what `memkit share --json` prints."""
        return {
            "path": self.path,
            "author": self.author,
            "entries": [
                {"key": one.key, "origin": one.origin, "heading": one.heading} for one in self.entries
            ],
            "already_shared": self.known,
            "text": self.text,
            "ignored_by_git": self.is_ignored,
        }


@dataclass(frozen=True, slots=True)
class UnshareReport:
    """The entries that were removed. `committed` are their files that git tracks, and so may keep."""

    entries: tuple[WrittenEntry, ...]
    committed: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return what `memkit unshare --json` prints."""
        return {
            "entries": [
                {"path": one.path, "line": one.start, "key": one.key, "heading": one.heading}
                for one in self.entries
            ],
            "committed": list(self.committed),
        }


def share(
    journal: Journal,
    chunks: ChunkReader | None,
    ids: Sequence[str],
    patterns: Sequence[Pattern[str]],
    *,
    shared: bool,
    dry_run: bool,
) -> ShareReport:
    """Add the entries with these ids to the author's file of today.

    Refuse all of them if one holds what must not be shared. `shared` is as for `Journal`. Raise
    `MemkitError`.
    """
    project = journal.project
    author = author_folder(project.root)
    found = list(dict.fromkeys(one for name in ids for one in _entries(journal, chunks, name)))
    _refuse_leaks(found, patterns)
    folder, today = TeamFolder(project, author, shared=shared), date.today().isoformat()
    known = {one.key for one in folder.entries()}
    new = [one for one in found if one.key not in known]
    path = folder.file(today)
    before = path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""
    text = appended(before, today, new)[len(before) :] if new else ""
    if new and not dry_run:
        folder.add(today, new)
    is_hidden = is_ignored(project.root, str(path)) if new and not dry_run else False
    return ShareReport(str(path), author, tuple(new), len(found) - len(new), text, is_hidden)


def unshare(
    journal: Journal,
    chunks: ChunkReader | None,
    ids: Sequence[str],
    home: Home,
    *,
    shared: bool,
    dry_run: bool,
) -> UnshareReport:
    """Remove the author's own entries with these ids, or copied from them. Raise `MemkitError`."""
    project = journal.project
    author = author_folder(project.root)
    folder = TeamFolder(project, author, shared=shared)
    own = folder.entries()
    found: dict[str, WrittenEntry] = {}
    for name in ids:
        matches = [one for one in own if _is_named(one, name)] or _matches(journal, chunks, own, author, name)
        if not matches:
            raise NotFoundError(f"{author} shares nothing with the id {name!r} in {project.root}")
        found |= {one.key: one for one in matches}
    paths = dict.fromkeys(one.path for one in found.values())
    committed = tuple(path for path in paths if tracked_below(project.root, path))
    if not dry_run:
        folder.remove(found.keys(), home)
    return UnshareReport(tuple(found.values()), committed)


def _is_named(entry: WrittenEntry, name: str) -> bool:
    starts = len(name) >= _LEAST_ID and (entry.key.startswith(name) or entry.origin.startswith(name))
    return starts or name in (entry.key, entry.origin)


def _matches(
    journal: Journal, chunks: ChunkReader | None, own: Sequence[WrittenEntry], author: str, name: str
) -> list[WrittenEntry]:
    chunk = _chunk(chunks, name)
    if chunk is not None and is_team(chunk.source):
        place = team_file(chunk.source)
        if place is None or place.author != author:
            raise MemkitError(
                f"{chunk.source} is {place.author if place else 'somebody'}'s, and only they can unshare it"
            )
        path = str(Path(journal.project.root, chunk.source))
        lines = range(chunk.start_line, chunk.end_line + 1)
        return [one for one in own if one.path == path and one.start < lines.stop and lines.start <= one.end]
    origins = {one.origin for one in _entries(journal, chunks, name)} - {""}
    return [one for one in own if one.origin in origins]


def _refuse_leaks(entries: Sequence[SharedEntry], patterns: Sequence[Pattern[str]]) -> None:
    """Raise `MemkitError` if an entry holds what must not be shared, with kind and place in one line."""
    found = [
        f"{leak.what} in line {leak.line} of {one.origin or repr(one.heading[:30])}"
        for one in entries
        for leak in find_leaks(f"{one.heading}\n\n{one.body}", patterns)
    ]
    if found:
        more = f", and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
        raise MemkitError(
            f"not shared: it contains {', '.join(found[:MOST_NAMED])}{more}. Write a note without that "
            "(`memkit remember`) and share the note"
        )


def _entries(journal: Journal, chunks: ChunkReader | None, name: str) -> Iterator[SharedEntry]:
    entry = find_entry(journal, name)
    if entry is not None:
        yield from _parts(journal, entry)
        return
    chunk = _chunk(chunks, name)
    if chunk is None:
        raise NotFoundError(
            f"{journal.project.root} has no entry {name!r}; `memkit sessions` and `memkit search` list them"
        )
    if is_team(chunk.source):
        raise MemkitError(f"{name} is shared already, in {chunk.source}")
    if entry := find_entry(journal, chunk.entry_id):
        yield from _parts(journal, entry)
    else:
        yield SharedEntry.of(_dated(chunk.date, chunk.heading), LEADING_HEADINGS.sub("", chunk.content))


def _chunk(chunks: ChunkReader | None, name: str) -> Chunk | None:
    if chunks is None:
        return None
    try:
        return chunks.known(name)[1]
    except NotFoundError:
        return None


def _parts(journal: Journal, entry: Entry) -> Iterator[SharedEntry]:
    day = Path(entry.path).stem[:10]
    if entry.kind == "session":
        yield from _of_session(entry.markdown)
    elif entry.kind in ("turn", "note"):
        heading, _, body = entry.markdown.partition("\n")
        yield SharedEntry.of(_dated(day, _words(heading)), body, entry.id)
    else:
        title = _title(journal, entry) if entry.kind == "citation" else "Lasting fact"
        line = entry.markdown.partition("\n")[0]
        yield SharedEntry.of(_dated(day, title), bullet_words(line), entry.id)


def _of_session(markdown: str) -> Iterator[SharedEntry]:
    days = list(_DAY.finditer(markdown))
    ends = [*(match.start() for match in days), len(markdown)][1:]
    for match, end in zip(days, ends, strict=True):
        content = DayFile(markdown[match.end() : end].strip("\n"))
        for section in content.sections:
            heading, _, body = content.text(section).partition("\n")
            if turn := section.pairs.get("turn"):
                yield SharedEntry.of(_dated(match[1], _words(heading)), body, turn)
                continue
            for _, bullet in read_bullets(body.split("\n")):
                yield SharedEntry.of(_dated(match[1], _words(heading)), bullet.text, bullet.id)


def _title(journal: Journal, entry: Entry) -> str:
    for section in DayFile(journal.text(Path(entry.path))).sections:
        if section.pairs.get("session") == entry.session:
            return _words(section.heading)
    return ""


def _words(heading: str) -> str:
    return one_line(anchors.strip(heading).lstrip("#"))


def _dated(day: str, words: str) -> str:
    return f"{day} {words}".strip() if _DAY.match(f"# {day}") else words
