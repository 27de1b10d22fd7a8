"""What was forgotten: ids and stretches of time, no text, in `MEMKIT_HOME/forgotten.json`.

Written before anything is removed, so that neither capture nor an import brings back what is half gone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from memkit import anchors
from memkit.errors import DamagedFileError
from memkit.files import make_private_directory, write_durably
from memkit.paths import Home
from memkit.state import check_version, parse_json

VERSION = 1
"""Of the file's format; one of a newer memkit is neither read nor written."""

_HISTORY_SECONDS = 5.0


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """All turns that began from `since` on and before `until` (seconds since the epoch).

    `project` is a root directory, `session` an id as in the journal's anchors; "" stands for any. `whole`
    says that the markdown of a project's memory went with them.
    """

    since: float = 0.0
    until: float
    project: str = ""
    session: str = ""
    whole: bool = False

    def covers(self, project: str, session: str, time: float) -> bool:
        """Whether a turn of that project and session, begun at that time, is in it."""
        if self.project not in ("", project) or self.session not in ("", session):
            return False
        return self.since <= time < self.until


class Ids(msgspec.Struct, frozen=True):
    """Turns, bullets (by grip), notes and facts by their ids."""

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
    """Turns, bullets (by grip), notes and facts by their ids, and periods of turns.

    `minutes` (since the epoch) are those in which the turns began: the client's history of prompts tells
    no more of them. `roots` are those of the projects where something was found. `only` names, by root,
    what one project forgot and another one may still hold.
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
        """The same, with the ids that the project at `root` forgot among those that hold everywhere."""
        own = self.only.get(root, _NO_IDS)
        return self | Forgotten(own.turns, own.grips, own.notes, own.facts)

    def keeps_elsewhere(self, turn: str) -> bool:
        """Whether one project forgot the turn while another one held it."""
        return any(turn in ids.turns for ids in self.only.values())

    def covers_everywhere(self, turn: str, session: str, time: datetime | float | None) -> bool:
        """Whether a turn is forgotten whatever its project; see `covers`."""
        periods = tuple(period for period in self.periods if not period.project)
        return Forgotten(self.turns, periods=periods).covers(turn, "", session, time)

    def covers(self, turn: str, project: str, session: str, time: datetime | float | None) -> bool:
        """Whether a turn is forgotten; `time` is when it began, None if it does not say."""
        if turn in self.turns or turn in self.only.get(project, _NO_IDS).turns:
            return True
        if not self.periods:
            return False
        began = time.timestamp() if isinstance(time, datetime) else time or 0.0
        name = anchors.safe(session)
        return any(period.covers(project, name, began) for period in self.periods)

    def covers_fact(self, name: str, turns: Iterable[str], grips: Iterable[str]) -> bool:
        """Whether the fact of that id is forgotten, or one of the turns or bullets that it cites."""
        is_resting = not self.turns.isdisjoint(turns) or not self.grips.isdisjoint(grips)
        return is_resting or name in self.facts

    def covers_typed(self, time: datetime | None) -> bool:
        """Whether a prompt of which only that is known was one of a forgotten turn."""
        if time is None or not self.minutes:
            return False
        # The history notes the time a moment before the transcript does.
        seconds = (time.timestamp() + late for late in (-_HISTORY_SECONDS, 0.0, _HISTORY_SECONDS))
        return any(int(second // 60) in self.minutes for second in seconds)


_NO_IDS = Ids()
NOTHING = Forgotten()


class _Content(msgspec.Struct):
    version: int = VERSION
    all: Forgotten = Forgotten()
    unfinished: Forgotten | None = None


class Tombstones:
    """What was forgotten in one memory home. Who writes holds the index lock."""

    def __init__(self, home: Home) -> None:
        self.path = Path(home.forgotten)

    def forgotten(self) -> Forgotten:
        """All that was ever forgotten.

        Raises `DamagedFileError`, `NewerFileError`: read as empty, it would all come back.
        """
        return self._read().all

    def unfinished(self) -> Forgotten | None:
        """What a killed process left half removed; None if nothing. Raises as `forgotten`."""
        return self._read().unfinished

    def reopen(self, other: Forgotten) -> bool:
        """Note, durably, what `other` has forgotten too, and that all of it is to be looked for again.

        For text that comes from elsewhere: the next `begin` finds what is forgotten of it. False, and
        nothing noted, if nothing was ever forgotten. Raises as `forgotten`, and `OSError`.
        """
        content = self._read()
        content.all |= other
        if content.all == NOTHING:
            return False
        content.unfinished = content.all
        self._write(content)
        return True

    def begin(self, forgotten: Forgotten) -> Forgotten:
        """Note, durably, what is about to be removed; return it with what is still unfinished.

        Raises as `forgotten`, and `OSError`.
        """
        content = self._read()
        content.all |= forgotten
        content.unfinished = forgotten | (content.unfinished or Forgotten())
        self._write(content)
        return content.unfinished

    def finish(self) -> None:
        """Note that all is removed. Raises as `forgotten`, and `OSError`."""
        content = self._read()
        content.unfinished = None
        self._write(content)

    def _read(self) -> _Content:
        return _read(self.path)

    def _write(self, content: _Content) -> None:
        make_private_directory(str(self.path.parent))
        data = json.dumps(msgspec.to_builtins(content, order="deterministic"))
        write_durably(str(self.path), data.encode("ascii") + b"\n")


def read_forgotten(path: Path) -> Forgotten:
    """What a file like that of a memory home, as in a backup, says was forgotten.

    Raises `DamagedFileError`, `NewerFileError`.
    """
    return _read(path).all


def _read(path: Path) -> _Content:
    try:
        value: Any = parse_json(path.read_bytes())
        check_version(path, value, VERSION)
        return msgspec.convert(value, _Content)
    except FileNotFoundError:
        return _Content()
    except (OSError, ValueError, AttributeError, msgspec.ValidationError) as error:
        # The error of a validation names types, never values.
        raise DamagedFileError(
            f"what was forgotten cannot be read from {path} ({type(error).__name__}), and "
            "without it might come back; restore that file from a backup, or remove it"
        ) from error
