"""Claude Code's own files, and the projects that its transcripts belong to."""

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
from memkit.hook.project import Project, is_bare_place
from memkit.paths import Home, is_plain_name

logger = logging.getLogger(__name__)

FIRST_ENTRIES = 50
"""Entries to read for where and when a session began; usually the first one has both."""


@dataclass(frozen=True, slots=True)
class Source:
    """One session's transcript, before it is read.

    Attributes:
        size: in bytes.
        modified: when it was last changed, in nanoseconds since the epoch.
        cwd: where the session began; "" if its first entries do not say.
        time: when the session began, in seconds since the epoch; 0 if unknown.
    """

    path: Path
    size: int
    modified: int
    cwd: str
    time: float


def claude_directory() -> Path:
    """Return Claude Code's own directory."""
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude").expanduser()


def transcripts_directory() -> Path:
    """Return the directory of Claude Code's transcripts."""
    return claude_directory() / "projects"


def history_file() -> Path:
    """Return the file of prompts, which Claude Code keeps for longer than transcripts."""
    return claude_directory() / "history.jsonl"


def transcripts_in(path: Path) -> list[Path]:
    """Return the session transcripts at or below `path`, sorted, without those of sub-agents.

    Raise `NotFoundError` if there is no such file or directory.
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
    """Return the transcripts at or below `paths`, each once, in the order in which the sessions began.

    That is the order of live capture. A session comes before its forks: they begin with the same entries,
    and the older one was last written earlier. Raise `NotFoundError`.
    """
    # Keep links: a live session's state has the path as Claude Code reports it.
    found = (file for path in paths for file in transcripts_in(Path(os.path.abspath(path))))
    files = dict.fromkeys(found)
    return sorted(map(_source, files), key=lambda one: (one.time, one.modified, one.path))


def project_of(cwd: str, home: Home) -> Project | None:
    """Return the project of a session in `cwd`, or None if that is not an absolute path.

    A project whose directory is gone is remembered under the memory home.
    """
    if not os.path.isabs(cwd):
        return None
    return Project.remembering(cwd, home)


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


def subagent_path(transcript: Path, agent: str) -> Path | None:
    """Return the transcript of a sub-agent that `transcript` started, or None.

    Claude Code writes `<session>/subagents/agent-<id>.jsonl` next to `<session>.jsonl`.
    """
    if not is_plain_name(agent):  # it comes from outside
        return None
    path = transcript.with_suffix("") / "subagents" / f"agent-{agent}.jsonl"
    return path if path.is_file() else None


def _source(path: Path) -> Source:
    """Look into a transcript. One that cannot be read is reported when it is imported."""
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
