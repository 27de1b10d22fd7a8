"""Where Claude Code keeps its sessions, and which of its transcripts belong to which project."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from memkit.claude_code.transcript import Transcript
from memkit.errors import NotFoundError, TranscriptError
from memkit.hook.project import Project
from memkit.paths import Home

logger = logging.getLogger(__name__)

FIRST_ENTRIES = 50
"""Looked at for where and when a session began; usually the first one tells both."""


@dataclass(frozen=True, slots=True)
class Source:
    """One session's transcript, before it is read.

    `cwd` is where the session began, empty if its first entries do not tell; `time` when it began, in
    seconds since the epoch, 0 if unknown; `size` in bytes and `modified` (ns) as of now.
    """

    path: Path
    size: int
    modified: int
    cwd: str
    time: float


def claude_directory() -> Path:
    """Claude Code's own directory."""
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude").expanduser()


def transcripts_directory() -> Path:
    """Where Claude Code keeps its transcripts."""
    return claude_directory() / "projects"


def history_file() -> Path:
    """Where Claude Code keeps what was typed, longer than it keeps transcripts."""
    return claude_directory() / "history.jsonl"


def transcripts_in(path: Path) -> list[Path]:
    """The session transcripts at or below `path`, sorted; sub-agents' files belong to their sessions.

    Raises `NotFoundError` if there is no such file or directory.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise NotFoundError(f"no such file or directory: {path}")
    return sorted(
        found
        for found in path.rglob("*.jsonl")
        if found.is_file() and "subagents" not in found.relative_to(path).parts
    )


def find_sources(paths: Iterable[Path]) -> list[Source]:
    """The transcripts at or below `paths`, each once, in the order in which the sessions began.

    That order is the order of live capture, and a session comes before what was forked from it: both
    begin with the same entries, and the older one was written last at an earlier time. Raises
    `NotFoundError`.
    """
    # Not `resolve`: a live session is known by the path that the client says, links and all.
    found = (file for path in paths for file in transcripts_in(Path(os.path.abspath(path))))
    files = dict.fromkeys(found)
    return sorted(map(_source, files), key=lambda one: (one.time, one.modified, one.path))


def project_of(cwd: str, home: Home) -> Project | None:
    """The project that a session in `cwd` belongs to; None if that names no directory.

    A project whose directory is gone is remembered under the memory home.
    """
    if not os.path.isabs(cwd):
        return None
    return Project.remembering(cwd, home)


def is_likely_project(project: Project, home: Home) -> bool:
    """Return whether a memory may be made in a directory that a transcript names, on its word alone.

    Not in a place of the system, a hidden folder of the user's home (keys, settings), or a directory of
    another user. Where memkit has a memory already it may.
    """
    root = os.path.realpath(project.root)
    if os.path.isdir(project.memory) or os.path.dirname(root) == os.path.realpath(home.projects):
        return True
    if any(_is_below(root, place) for place in _system_places()):
        return False
    user = os.path.realpath(os.path.expanduser("~"))
    if _is_below(root, user) and os.path.relpath(root, user).startswith("."):
        return False
    return sys.platform == "win32" or os.stat(root).st_uid == os.geteuid()


def _system_places() -> list[str]:
    names = ["bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "run", "sbin", "sys", "usr"]
    names += ["Applications", "Library", "System"]  # macOS
    places = [os.path.join(os.sep, name) for name in names]
    places += filter(None, map(os.environ.get, ("SystemRoot", "ProgramFiles", "ProgramFiles(x86)")))
    return [os.path.realpath(place) for place in places]


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)


def _source(path: Path) -> Source:
    """What is known of a transcript beforehand; nothing of one that cannot be read, which reading it says."""
    cwd, began = "", 0.0
    try:
        status = path.stat()
        for entry in islice(Transcript(path), FIRST_ENTRIES):
            cwd = cwd or entry.cwd
            began = began or (entry.time.timestamp() if entry.time else 0.0)
            if cwd and began:
                break
    except (OSError, TranscriptError) as error:
        logger.warning("cannot look into %s: %s", path, error)
        return Source(path, 0, 0, "", 0.0)
    return Source(path, status.st_size, status.st_mtime_ns, cwd, began)
