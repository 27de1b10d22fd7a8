"""The agents. A new one is a folder, a line in `OTHERS` and in `tools.py`, and a name in `capture.agents`."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from memkit.agents.claude_code.files import all_transcripts
from memkit.agents.claude_code.transcript import Transcript
from memkit.agents.codex.rollout import Rollout, is_rollout, rollouts
from memkit.agents.copilot.events import Events, event_files, is_event_file
from memkit.agents.cursor.transcript import Transcript as CursorTranscript
from memkit.agents.cursor.transcript import is_transcript, transcripts
from memkit.agents.fields import UUID, head_of
from memkit.agents.gemini.chat import Chat, chats, chats_in, is_chat
from memkit.agents.opencode.session import OpenCodeSession
from memkit.agents.opencode.stores import SESSION_ID, is_session, sessions_in, stores
from memkit.agents.session_file import SessionFile, Status
from memkit.conversation.entry import Hide

REPORTED = "agent-"
"""How the IDs of sessions begin that agents report over HTTP; none is the ID of a session in a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent whose sessions memkit reads.

    Attributes:
        name: what follows the `@` in the IDs of its sessions, and what `--agent` takes.
        title: what users read.
        reader: yields the entries of one session.
        files: returns the files on this machine that have its sessions, without reading them.
        recognizes: whether a file, which a user may have named, is one of its sessions, or has some: by its
            path, and by its first bytes (`head_of`).
        resume: the program that resumes a session, with the arguments before the ID; () if there is none.
        id: what its own IDs look like. They become arguments, so no other one is accepted.
        patterns: the patterns of the names of its files, besides `.jsonl`.
        sessions_in: returns the paths of the sessions in one file. Those in a database are below its path,
            and those without a change since a time (seconds since the epoch) may be left out.
    """

    name: str
    title: str
    reader: type[SessionFile]
    files: Callable[[], Iterable[str]]
    recognizes: Callable[[Path, bytes], bool]
    resume: tuple[str, ...] = ()
    id: re.Pattern[str] = UUID
    patterns: tuple[str, ...] = ()
    sessions_in: Callable[[Path, float], list[Path]] = lambda path, since: [path]

    def transcripts(self) -> Iterator[Path]:
        """Yield the paths of all its sessions on this machine."""
        for file in sorted(self.files()):
            yield from self.sessions_in(Path(file), 0.0)

    def file_of(self, session: str) -> str:
        """Return the path of the file with a session; "" if there is none whose name has its ID."""
        own = session.removesuffix(f"@{self.name}")
        found = (path for path in self.files() if own in os.path.basename(path))
        return next(found, "") if self.id.fullmatch(own) else ""

    def resume_command(self, session: str) -> tuple[str, ...]:
        """Return the program that resumes a session, with its arguments; () if it cannot be resumed."""
        own = session.removesuffix(f"@{self.name}")
        return (*self.resume, own) if self.resume and self.id.fullmatch(own) else ()


CLAUDE_CODE = Agent(
    name="claude-code", title="Claude Code", reader=Transcript, files=all_transcripts,
    recognizes=lambda path, head: True, resume=("claude", "--resume"),
)  # fmt: skip
"""It has all sessions whose IDs name no other agent, and takes every file."""

OTHERS = (
    Agent(name="codex", title="Codex", reader=Rollout, files=rollouts, recognizes=is_rollout,
          resume=("codex", "resume")),
    Agent(name="copilot", title="Copilot CLI", reader=Events, files=event_files, recognizes=is_event_file,
          resume=("copilot", "--resume")),
    Agent(name="cursor", title="Cursor", reader=CursorTranscript, files=transcripts, recognizes=is_transcript,
          resume=("cursor-agent", "--resume")),
    Agent(name="gemini", title="Gemini CLI", reader=Chat, files=chats, recognizes=is_chat,
          resume=("gemini", "--resume"), patterns=("session-*.json",), sessions_in=chats_in),
    Agent(name="opencode", title="OpenCode", reader=OpenCodeSession, files=stores, recognizes=is_session,
          resume=("opencode", "--session"), id=SESSION_ID, patterns=("opencode*.db", "*.json"),
          sessions_in=sessions_in),
)  # fmt: skip
AGENTS = (*OTHERS, CLAUDE_CODE)


def agent_at(path: Path) -> Agent:
    """Return the agent that wrote the session at `path`."""
    head = head_of(path)
    return next(agent for agent in AGENTS if agent.recognizes(path, head))


def agent_of(session: str) -> Agent:
    """Return the agent of a session by its ID: `ID@NAME`, or an ID of Claude Code."""
    name = session.rpartition("@")[2]
    return next((agent for agent in AGENTS if agent.name == name), CLAUDE_CODE)


def is_by(session: str, agent: str) -> bool:
    """Return whether a session, by its ID, is one of the agent with that name; "" stands for all agents."""
    is_reported = session.startswith(REPORTED)
    return not agent or (bool(session) and not is_reported and agent_of(session).name == agent)


def open_transcript(path: Path, offset: int = 0, hide: Hide | None = None) -> SessionFile:
    """Return the reader of the session at `path` from `offset` on."""
    return agent_at(path).reader(path, offset, hide)


def session_at(path: Path) -> str:
    """Return the ID of the session at `path`."""
    return open_transcript(path).session


def status_of(path: Path) -> Status:
    """Return the size of the session at `path`, and when it was last changed. Raise `OSError`."""
    if path.parent.is_file():  # it is one of many in a database
        return open_transcript(path).status()
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise FileNotFoundError(str(path))
    return Status(found.st_size, found.st_mtime_ns)


def is_there(path: Path) -> bool:
    """Return whether the session at `path` exists, as a file or in one."""
    try:
        status_of(path)
    except OSError:
        return False
    return True
