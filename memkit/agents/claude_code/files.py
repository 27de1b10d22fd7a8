"""Find and read what Claude Code stores: transcripts, and `history.jsonl` with the prompts users typed.

Claude Code keeps the history for longer than transcripts. A line holds `display` (the prompt, pasted text as
`[Pasted text #1 +20 lines]`), `pastedContents`, `timestamp` (ms), `project` (the working directory) and, in
newer versions, `sessionId`.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from memkit.agents.claude_code.transcript import Transcript
from memkit.conversation.turn import Turn, turn_id
from memkit.conversation.values import clean, parse_time
from memkit.errors import NotFoundError, TranscriptError
from memkit.paths import Home
from memkit.privacy.redact import leaves_open, without_private
from memkit.projects.project import Project, is_bare_place
from memkit.state import parse_json

logger = logging.getLogger(__name__)

FIRST_ENTRIES = 50
"""Entries to read to find where and when a session began; usually the first one has both."""

SESSION_PREFIX = "history-"
"""Begins the name of a session made of a day's prompts, where the history names no session."""

_PASTED = re.compile(r"\[Pasted text #(\d+)[^\]\n]*\]")


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


class TranscriptFile(NamedTuple):
    """A transcript: the ID of its session, its path, and when it last changed (seconds since the epoch)."""

    session: str
    path: Path
    changed: float


def claude_directory() -> Path:
    """Return Claude Code's own directory."""
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude").expanduser()


def transcripts_directory() -> Path:
    """Return the directory of Claude Code's transcripts."""
    return claude_directory() / "projects"


def history_file() -> Path:
    """Return the file of typed prompts."""
    return claude_directory() / "history.jsonl"


def session_transcripts(project: Project | None = None) -> Iterator[TranscriptFile]:
    """Yield the transcripts of sessions that began in the root of `project`, or of all sessions."""
    directory = transcripts_directory()
    name = "*" if project is None else re.sub(r"[^A-Za-z0-9]", "-", project.root)
    for path in sorted(directory.glob(f"{name}/*.jsonl")) if directory.is_dir() else ():
        if path.name.startswith("agent-"):  # a sub-agent's; older versions put them next to sessions
            continue
        try:
            yield TranscriptFile(path.stem, path, path.stat().st_mtime)
        except OSError:  # deleted since the listing
            continue


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
    files = {file for path in paths for file in transcripts_in(Path(os.path.abspath(path)))}
    return sorted(map(_source, files), key=lambda one: (one.time, one.modified, one.path))


def _source(path: Path) -> Source:
    cwd, began = "", 0.0
    try:
        status = path.stat()
        for entry in islice(Transcript(path), FIRST_ENTRIES):
            cwd = cwd or entry.cwd
            began = began or (entry.time.timestamp() if entry.time else 0.0)
            if cwd and began:
                break
        return Source(path, status.st_size, status.st_mtime_ns, cwd, began)
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


class TypedPrompt(NamedTuple):
    """One prompt that a user typed in `cwd`. `session` is "" if the history does not name it."""

    text: str
    time: datetime
    cwd: str
    session: str

    @property
    def day(self) -> str:
        """The local ISO date."""
        return self.time.astimezone().date().isoformat()

    @property
    def turn(self) -> Turn:
        """The prompt as a turn without an answer."""
        directory = hashlib.sha256(self.cwd.encode("utf-8", "surrogateescape")).hexdigest()[:8]
        session = self.session or f"{SESSION_PREFIX}{self.day}-{directory}"
        return Turn(
            id=turn_id(session, "", "", f"{self.time.isoformat()}\0{self.text}"),
            session=session,
            prompt=without_private(self.text),
            time=self.time,
            start=0,
            end=0,
            cwd=self.cwd,
            is_private=leaves_open(self.text),
        )


def read_history(path: Path) -> Iterator[TypedPrompt]:
    """Yield the prompts in Claude Code's history, in order. Skip lines of any other form.

    A missing history is empty. Raise `TranscriptError` if it cannot be read.
    """
    try:
        with path.open("rb") as file:
            yield from filter(None, map(_typed_prompt, file))
    except FileNotFoundError:
        return
    except OSError as error:
        raise TranscriptError(
            f"cannot read the prompt history {path}: {error.strerror}; make it readable"
        ) from error


def _typed_prompt(line: bytes) -> TypedPrompt | None:
    try:
        value = parse_json(line.decode("utf-8", "replace"))
        display, cwd, session = value["display"], value["project"], value.get("sessionId")
        typed = datetime.fromtimestamp(value["timestamp"] / 1000, timezone.utc)
    except (ValueError, TypeError, KeyError, OverflowError, OSError):
        return None
    time = None if value["timestamp"] is True else parse_time(typed.isoformat())
    if not isinstance(display, str) or not isinstance(cwd, str) or time is None:
        return None
    text = clean(_with_pasted(display, value.get("pastedContents"))).strip()
    if not text or text.startswith("!"):  # `!` runs a command, which is not a turn
        return None
    return TypedPrompt(text, time, clean(cwd), clean(session) if isinstance(session, str) else "")


def _with_pasted(display: str, pasted: Any) -> str:
    def content(match: re.Match[str]) -> str:
        found = pasted.get(match[1])
        text = found.get("content") if isinstance(found, dict) else None
        return text if isinstance(text, str) else match[0]

    return _PASTED.sub(content, display) if isinstance(pasted, dict) else display
