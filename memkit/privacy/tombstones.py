"""IDs and periods of what was forgotten, without text, in `MEMKIT_HOME/forgotten.json`.

Written before anything is removed, so that neither capture nor an import brings back what is half gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from memkit import anchors
from memkit.errors import DamagedFileError
from memkit.files import make_private_directory
from memkit.paths import Home
from memkit.state import read_state, write_state
from memkit.typed import typed

VERSION = 1
"""The format version. A file of a newer version is neither read nor written."""

_HISTORY_SECONDS = 5.0


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """All turns that began from `since` on and before `until` (seconds since the epoch).

    `project` is a root directory and `session` an ID as in the journal's anchors; "" means any. `whole`
    means that the Markdown of the project's memory went too.
    """

    since: float = 0.0
    until: float
    project: str = ""
    session: str = ""
    whole: bool = False

    def covers(self, project: str, session: str, time: float) -> bool:
        """Return whether a turn of that project and session, begun at that time, falls into the period."""
        if self.project not in ("", project) or self.session not in ("", session):
            return False
        return self.since <= time < self.until


class Ids(msgspec.Struct, frozen=True):
    """Turns, bullets, notes, and facts by ID."""

    turns: frozenset[str] = frozenset()
    grips: frozenset[str] = frozenset()
    notes: frozenset[str] = frozenset()
    facts: frozenset[str] = frozenset()

    def __or__(self, other: Ids) -> Ids:
        return Ids(
            self.turns | other.turns,
            self.grips | other.grips,
            self.notes | other.notes,
            self.facts | other.facts,
        )


class Forgotten(msgspec.Struct, frozen=True):
    """Turns, bullets, notes, and facts by ID, and periods of turns.

    `minutes` (since the epoch) are those in which the turns began: Claude Code's prompt history has nothing
    else to match. `roots` are the projects where something was found. `only` maps a root to what that
    project forgot while another may still hold it.
    """

    turns: frozenset[str] = frozenset()
    grips: frozenset[str] = frozenset()
    notes: frozenset[str] = frozenset()
    facts: frozenset[str] = frozenset()
    periods: tuple[Period, ...] = ()
    minutes: frozenset[int] = frozenset()
    roots: frozenset[str] = frozenset()
    only: dict[str, Ids] = {}

    def __or__(self, other: Forgotten) -> Forgotten:
        return Forgotten(
            turns=self.turns | other.turns,
            grips=self.grips | other.grips,
            notes=self.notes | other.notes,
            facts=self.facts | other.facts,
            periods=tuple(dict.fromkeys(self.periods + other.periods)),
            minutes=self.minutes | other.minutes,
            roots=self.roots | other.roots,
            only={
                root: self.only.get(root, _NO_IDS) | other.only.get(root, _NO_IDS)
                for root in sorted(self.only.keys() | other.only.keys())
            },
        )

    def within(self, root: str) -> Forgotten:
        """Return this, plus the IDs that only the project at `root` forgot."""
        own = self.only.get(root, _NO_IDS)
        return self | Forgotten(own.turns, own.grips, own.notes, own.facts)

    def keeps_elsewhere(self, turn: str) -> bool:
        """Return whether one project forgot the turn while another kept it."""
        return any(turn in ids.turns for ids in self.only.values())

    def covers_everywhere(self, turn: str, session: str, time: datetime | float | None) -> bool:
        """Return whether a turn is forgotten in every project; see `covers`."""
        periods = tuple(period for period in self.periods if not period.project)
        return Forgotten(self.turns, periods=periods).covers(turn, "", session, time)

    def covers(self, turn: str, project: str, session: str, time: datetime | float | None) -> bool:
        """Return whether a turn that began at `time` is forgotten. None stands for an unknown time."""
        if turn in self.turns or turn in self.only.get(project, _NO_IDS).turns:
            return True
        if not self.periods:
            return False
        began = time.timestamp() if isinstance(time, datetime) else time or 0.0
        name = anchors.safe(session)
        return any(period.covers(project, name, began) for period in self.periods)

    def covers_fact(self, name: str, turns: Iterable[str], grips: Iterable[str]) -> bool:
        """Return whether a fact is forgotten, or a turn or bullet that it cites."""
        is_resting = not self.turns.isdisjoint(turns) or not self.grips.isdisjoint(grips)
        return is_resting or name in self.facts

    def covers_typed(self, time: datetime | None) -> bool:
        """Return whether a prompt with this time, and nothing else known, belongs to a forgotten turn."""
        if time is None or not self.minutes:
            return False
        # The history's time is a moment before the transcript's.
        seconds = (time.timestamp() + late for late in (-_HISTORY_SECONDS, 0.0, _HISTORY_SECONDS))
        return any(int(second // 60) in self.minutes for second in seconds)


_NO_IDS = Ids()
NOTHING = Forgotten()


class _Content(msgspec.Struct):
    version: int = VERSION
    all: Forgotten = Forgotten()
    unfinished: Forgotten | None = None


class Tombstones:
    """The tombstones of one memory home. Writers hold the capture lock."""

    def __init__(self, home: Home) -> None:
        self.path = Path(home.forgotten)

    def forgotten(self) -> Forgotten:
        """Return everything that was ever forgotten.

        Raise `DamagedFileError` or `NewerFileError`: if such a file counted as empty, all would come back.
        """
        return self._read().all

    def unfinished(self) -> Forgotten | None:
        """Return what a killed process left half removed, or None. Raise as `forgotten` does."""
        return self._read().unfinished

    def reopen(self, other: Forgotten) -> bool:
        """Add what `other` forgot, and record that all of it must be searched for again. Durable on return.

        Call it for text from elsewhere, such as a backup; the next `begin` removes the forgotten parts.
        Return False if nothing was ever forgotten. Raise as `forgotten` does, and `OSError`.
        """
        content = self._read()
        content.all |= other
        if content.all == NOTHING:
            return False
        content.unfinished = content.all
        self._write(content)
        return True

    def begin(self, forgotten: Forgotten) -> Forgotten:
        """Record, durably, what is about to be removed. Return it together with what is still unfinished.

        Raise as `forgotten` does, and `OSError`.
        """
        content = self._read()
        content.all |= forgotten
        content.unfinished = forgotten | (content.unfinished or Forgotten())
        self._write(content)
        return content.unfinished

    def finish(self) -> None:
        """Record that everything is removed. Raise as `forgotten` does, and `OSError`."""
        content = self._read()
        content.unfinished = None
        self._write(content)

    def _read(self) -> _Content:
        return _read(self.path)

    def _write(self, content: _Content) -> None:
        make_private_directory(str(self.path.parent))
        write_state(self.path, VERSION, msgspec.to_builtins(content, order="deterministic"))


def read_forgotten(path: Path) -> Forgotten:
    """Return what a `forgotten.json`, such as one in a backup, covers.

    Raise `DamagedFileError`, `NewerFileError`.
    """
    return _read(path).all


def _read(path: Path) -> _Content:
    try:
        return read_state(path, VERSION, _content) or _Content()
    except (OSError, DamagedFileError) as error:
        raise DamagedFileError(
            f"cannot read the record of what you have forgotten, {path} "
            f"({type(error.__cause__ or error).__name__}); restore it from a backup; if there is none, the "
            "user may move it away, but forgotten turns can then come back with an import or a restore"
        ) from error


def _content(value: dict[str, Any]) -> _Content:
    try:
        return typed(value, _Content)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error  # names types, never values
