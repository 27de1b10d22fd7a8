"""The archive of a memory home.

One file per session in `MEMKIT_HOME/archive`. Writers hold the capture lock; readers need none.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from memkit import anchors
from memkit.archive.file import ArchiveFile
from memkit.archive.turn import ArchivedTurn, make_archived_turn
from memkit.conversation.entry import Hide
from memkit.conversation.turn import Turn
from memkit.errors import AmbiguousIdError, ArchiveError, ArchiveVersionError
from memkit.paths import Home, is_plain_name

logger = logging.getLogger(__name__)

SUFFIX = ".jsonl.zst"


class ArchiveSize(NamedTuple):
    """The number of archived sessions, and the bytes of their files."""

    sessions: int
    bytes: int


class Archive:
    """The archive of one memory home. Sessions have the names used in the journal's anchors.

    Its methods raise `ArchiveError` and `OSError`; those of `ArchiveFile` with the same name say more.
    """

    def __init__(self, home: Home) -> None:
        self.directory = Path(home.archive)
        self._last = ArchiveFile(self.directory)

    def keep(
        self, turns: Iterable[tuple[Turn, str]], transcript: Path, redact: Callable[[str], str],
        hide: Hide | None = None,
    ) -> int:
        """Archive turns read from `transcript`, each with the root of its project. All text is redacted.

        `hide` is as for `SessionFile`. Return how many turns were new or changed. Durable on return. A
        session file of a newer memkit is logged and skipped. Raise `ArchiveError`, `TranscriptError`.
        """
        sessions: dict[str, list[tuple[Turn, str]]] = {}
        for turn, root in turns:
            sessions.setdefault(anchors.safe(turn.session), []).append((turn, root))
        written = 0
        for name, group in sessions.items():
            made = (make_archived_turn(turn, root, transcript, redact, hide) for turn, root in group)
            try:
                written += self.append(name, made)
            except ArchiveVersionError as error:  # the journal still gets the turn
                logger.warning("session %s is not archived: %s", name, error)
        return written

    def append(self, session: str, turns: Iterable[ArchivedTurn]) -> int:
        """Append the turns of one session that are new or changed. Return how many."""
        path = self.path(session)
        if self._last.path != path:  # a long session comes in many batches
            self._last = ArchiveFile(path)
        return self._last.append(session, turns)

    def turns(self, session: str) -> list[ArchivedTurn]:
        """Return the latest version of each turn of a session, in order of time."""
        return ArchiveFile(self.path(session)).turns()

    def versions(self, session: str) -> Iterator[ArchivedTurn]:
        """Yield all versions of a session's turns, including replaced ones."""
        return ArchiveFile(self.path(session)).versions()

    def damaged(self, session: str) -> int:
        """Return how many bytes of a session's file cannot be read."""
        return ArchiveFile(self.path(session)).damaged()

    def drop_damage(self, session: str) -> None:
        """Drop unreadable bytes of a session whose transcript was just archived from its start."""
        if self._last.path == self.path(session):
            self._last.drop_damage(session)

    def rewrite(self, session: str, change: Callable[[ArchivedTurn], ArchivedTurn | None]) -> None:
        """Rewrite a session with each turn as `change` returns it; None drops the turn."""
        ArchiveFile(self.path(session)).rewrite(change)

    def remove_left_behind(self) -> None:
        """Remove temporary files of killed writers."""
        for path in self.directory.glob(".*.tmp"):
            path.unlink(missing_ok=True)

    def find(self, session: str) -> str | None:
        """Return the archived session whose ID is, or begins with, `session`. Raise `AmbiguousIdError`."""
        if not session:
            return None
        if self.path(session).is_file():
            return session
        found = [name for name in self.sessions() if name.startswith(session)]
        if len(found) > 1:
            shown = ", ".join(sorted(found)[:5])
            raise AmbiguousIdError(f"{session!r} matches several archived sessions: {shown}")
        return found[0] if found else None

    def sessions(self) -> Iterator[str]:
        """Yield the IDs of archived sessions. A file that cannot be read is logged and skipped."""
        for session, _ in self.files():
            yield session

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield the ID and the path of each archived session, as `sessions` does."""
        for file in self._names():
            path = os.path.join(self.directory, file)
            name = file.removesuffix(SUFFIX)
            if is_plain_name(name):
                yield name, path
                continue
            try:
                yield ArchiveFile(Path(path)).session(), path
            except ArchiveError as error:
                logger.warning("%s", error)

    def size(self) -> ArchiveSize:
        """Return the number and the bytes of archived sessions."""
        sizes = [os.stat(os.path.join(self.directory, name)).st_size for name in self._names()]
        return ArchiveSize(len(sizes), sum(sizes))

    def remove_older(self, time: float) -> int:
        """Remove the sessions that ended before `time` (seconds since the epoch). Return how many.

        For a file without times, or one that cannot be read, its modification time counts.
        """
        removed = 0
        for name in self._names():
            path = self.directory / name
            try:
                last = ArchiveFile(path).last_time()
            except ArchiveError as error:
                logger.warning("%s", error)
                last = None
            if (path.stat().st_mtime if last is None else last) < time:
                path.unlink()
                removed += 1
        return removed

    def path(self, session: str) -> Path:
        """Return the file of a session."""
        # Session IDs are foreign input. One that is not a plain name is hashed.
        name = session
        if not is_plain_name(session):
            name = f"_{hashlib.sha256(session.encode('utf-8', 'replace')).hexdigest()[:32]}"
        return self.directory / f"{name}{SUFFIX}"

    def _names(self) -> list[str]:
        try:
            found = os.listdir(self.directory)
        except FileNotFoundError:
            return []
        return sorted(name for name in found if name.endswith(SUFFIX))
