"""Find a session by what was said in it, and where its agent can resume it.

Claude Code finds a session by its title, or by its id in the directory in which it began.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any

from memkit import anchors
from memkit.agents.claude_code.places import folder_of
from memkit.agents.registry import agent_of, open_transcript
from memkit.agents.sources import FIRST_ENTRIES
from memkit.browse.names import find_entry
from memkit.browse.transcript import locate
from memkit.errors import MemkitError, NotFoundError
from memkit.hook.entries import heading_words
from memkit.index.chunk import Chunk
from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.search.results import Answer

MOST_RESULTS = 20
"""The number of results to look for sessions in."""

_NAME = re.compile(r"(?:[0-9a-f][0-9a-f-]{3,}|[a-z]{3}_[0-9A-Za-z]+)(?:@[a-z-]+)?")
_TIME = re.compile(r"\A\d\d:\d\d ")


@dataclass(frozen=True, slots=True)
class FoundSession:
    """A session of the project at `root`, as memory has it: id, ISO date, and title."""

    id: str
    root: str
    date: str
    title: str


@dataclass(frozen=True, slots=True)
class Resumable:
    """A session that its agent can resume: its full id, and the directory in which it began."""

    id: str
    directory: str

    @property
    def command(self) -> str:
        """The command for a shell."""
        return f"cd {quote(self.directory)} && {' '.join(self.arguments)}"

    @property
    def arguments(self) -> tuple[str, ...]:
        """The program and its arguments, to run in `directory`."""
        return agent_of(self.id).resume_command(self.id)


def named_session(journal: Journal, words: Sequence[str]) -> FoundSession | None:
    """Return the session whose id, or a turn's, `words` begin, or None. Raise `AmbiguousIdError`."""
    if len(words) != 1 or not _NAME.fullmatch(words[0]):
        return None
    found = find_entry(journal, words[0])
    if found is None or not found.session:
        return None
    headings = (line for line in found.markdown.split("\n") if line.startswith("##"))
    title = _TIME.sub("", heading_words(anchors.strip(next(headings, ""))))
    return FoundSession(found.session, journal.project.root, Path(found.path).name[:10], title)


def sessions_of(answer: Answer) -> list[FoundSession]:
    """Return the sessions of the results, best first, each once. The results have excerpts."""
    found: dict[tuple[str, str], FoundSession] = {}
    for result in answer.results:
        chunk, excerpt = result.chunk, result.excerpt
        if chunk.session:
            title = (excerpt.session or excerpt.title) if excerpt else chunk.heading
            one = FoundSession(chunk.session, result.root, chunk.date, title)
            found.setdefault((one.root, one.id), one)
    return list(found.values())


def resumable(
    home: Home, session: FoundSession, chunks: Callable[[], Sequence[Chunk]], *, other_projects: bool = True
) -> Resumable:
    """Return how to resume `session`. Raise `MemkitError` with the reason if that is not possible.

    `chunks` and `other_projects` are as for `memkit.browse.transcript.locate`.
    """
    shown = f"session {session.id[:8]} cannot be resumed"
    agent = agent_of(session.id)
    how = f"`memkit show {quote(session.id)}` shows it"
    gone = f"{shown}: {agent.title} no longer has its transcript; {how}"
    if "/" in session.id or os.sep in session.id or session.id.endswith(".jsonl"):
        raise NotFoundError(f"{shown}: that is not a {agent.title} session ID")
    project = Project(session.root, home)
    try:
        original = locate(home, project, session.id, None, chunks, other_projects=other_projects)
    except NotFoundError as error:
        raise NotFoundError(gone) from error
    if original.archive is not None or agent_of(original.session) is not agent:
        raise NotFoundError(gone)
    if not agent_of(original.session).resume_command(original.session):
        raise NotFoundError(f"{shown}: {original.session!r} is not a {agent.title} session ID")
    directory = _directory(original.path)
    if not directory:
        raise MemkitError(f"{shown}: {original.path} does not name its directory")
    if not directory.isprintable() or not os.path.isdir(directory):
        raise NotFoundError(f"{shown}: its directory {directory} is gone")
    return Resumable(original.session, directory)


def as_dict(session: FoundSession, way: Resumable | None, problem: str) -> dict[str, Any]:
    """Return a session as `memkit resume --json` prints it."""
    return {
        "session": way.id if way else session.id,
        "project": session.root,
        "date": session.date,
        "title": session.title,
        "directory": way.directory if way else None,
        "command": way.command if way else None,
        **({"problem": problem} if problem else {}),
    }


def _directory(transcript: Path) -> str:
    """Return where a session began, by its folder's name: its first entries can be from elsewhere."""
    first = islice(open_transcript(transcript), FIRST_ENTRIES)
    found = [entry.cwd for entry in first if os.path.isabs(entry.cwd)]
    named = (one for one in found if folder_of(one) == transcript.parent.name)
    return next(named, found[0] if found else "")
