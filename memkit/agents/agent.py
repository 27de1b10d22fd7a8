"""What memkit has to know of an agent: where its sessions are, how to read them, and how to resume one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from memkit.agents.session_file import SessionFile


class Agent:
    """An agent whose sessions memkit reads. The folder of each has one subclass.

    Attributes:
        name: what follows the `@` in the IDs of its sessions, and what `--agent` takes.
        title: what users read.
        reader: yields the entries of one session.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    reader: ClassVar[type[SessionFile]]

    def transcripts(self) -> Iterable[Path]:
        """Return the paths of all sessions on this machine."""
        raise NotImplementedError

    def wrote(self, path: Path) -> bool:
        """Return whether the file at `path`, which a user may have named, is one of its sessions."""
        raise NotImplementedError

    def resume_command(self, session: str) -> tuple[str, ...]:
        """Return the program that resumes a session, with its arguments; empty if it cannot be resumed.

        Anybody may have written the ID. It becomes an argument, so accept only what the agent itself writes.
        """
        return ()
