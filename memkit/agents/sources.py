"""Find the sessions to import, and the projects that they belong to."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from memkit.agents.claude_code.files import transcripts_in
from memkit.agents.fields import head_of
from memkit.agents.registry import AGENTS, agent_at, open_transcript
from memkit.errors import TranscriptError
from memkit.files import files_below
from memkit.paths import Home
from memkit.projects.project import Project, is_bare_place

logger = logging.getLogger(__name__)

FIRST_ENTRIES = 50
"""Entries to read to find where and when a session began; usually the first one has both."""


class Source(NamedTuple):
    """One session's transcript, before it is read.

    The session began at `time` (seconds since the epoch, 0 if unknown) in `cwd` ("" if unknown). The file
    has `size` bytes and was last changed at `modified` (nanoseconds since the epoch).
    """

    path: Path
    size: int
    modified: int
    cwd: str
    time: float


def find_sources(paths: Iterable[Path]) -> list[Source]:
    """Return the transcripts at or below `paths`; see `sources_of`. Raise `NotFoundError`."""
    return sources_of(
        session
        for path in paths
        for file in _files_at(Path(os.path.abspath(path)))
        for session in agent_at(file).sessions_in(file, 0.0)
    )


def _files_at(path: Path) -> Iterator[Path]:
    yield from transcripts_in(path)
    # No link: what one of these has may not be from below the path that the user named.
    found = sorted(Path(one) for one in files_below(str(path)) if not os.path.islink(one))
    for agent in AGENTS:
        for pattern in agent.patterns:
            own = (one for one in found if fnmatch(one.name, pattern))
            yield from (one for one in own if agent.recognizes(one, head_of(one)))


def sources_of(transcripts: Iterable[Path]) -> list[Source]:
    """Return `transcripts`, each once, in the order in which the sessions began.

    That is the order of live capture. A session comes before its forks: they begin with the same entries,
    and the older one was last written earlier.
    """
    # Keep links: a live session's state has the path as Claude Code reports it.
    paths = {Path(os.path.abspath(path)) for path in transcripts}
    return sorted(map(_source, paths), key=lambda one: (one.time, one.modified, one.path))


def _source(path: Path) -> Source:
    cwd, began = "", 0.0
    try:
        transcript = open_transcript(path)
        status = transcript.status()
        for entry in islice(transcript, FIRST_ENTRIES):
            cwd = cwd or entry.cwd
            began = began or (entry.time.timestamp() if entry.time else 0.0)
            if cwd and began:
                break
        return Source(path, *status, cwd, began)
    except (OSError, TranscriptError) as error:
        logger.warning("cannot look into %s: %s", path, error)
        return Source(path, 0, 0, "", 0.0)


def project_of(cwd: str, home: Home) -> Project | None:
    """Return the project of a session in `cwd`, or None if that is not an absolute path.

    A project whose directory is gone is remembered under the memory home.
    """
    return Project.remembering(cwd, home) if os.path.isabs(cwd) else None


def is_likely_project(project: Project, home: Home) -> bool:
    """Return whether memkit may create a memory in a directory only because a transcript names it.

    Not in a system directory, a hidden directory of the user's home (keys, settings), or another user's
    directory. A directory that already has a memory is fine.
    """
    root = os.path.realpath(project.root)
    if os.path.isdir(project.memory) or os.path.dirname(root) == os.path.realpath(home.projects):
        return True
    if is_bare_place(root) or root.startswith("/usr/"):
        return False
    return sys.platform == "win32" or os.stat(root).st_uid == os.geteuid()
