"""The cost of model calls: one line per call in `MEMKIT_HOME/ledger.jsonl`.

A call is recorded before it is made, with the most it may use, and again when it has ended. A call with
only the first line (its process was killed) counts as estimated.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec

from memkit.errors import DamagedFileError
from memkit.files import PRIVATE_FILE, make_private_directory
from memkit.paths import Home
from memkit.state import FIELD, check_version, parse_json
from memkit.typed import typed

logger = logging.getLogger(__name__)

VERSION = 1
"""The format version of a line."""

UNFINISHED = "unfinished"
"""The outcome of a call whose end is unknown."""

OK = "ok"
"""The outcome of a call that was answered."""

_Amount = Annotated[int, msgspec.Meta(ge=0)]
_Dollars = Annotated[float, msgspec.Meta(ge=0)]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a model.

    `time` is its start in seconds since the epoch. `usd` is None if the price is unknown. `outcome` is
    `ok`, `unfinished`, or the outcome of a `ModelError`. `subject` names the
    period of a rollup, with a hash of its material. A call for several projects has their `shares`: tokens
    of material by root.
    """

    id: str
    time: float
    purpose: str
    provider: str
    model: str
    project: str
    tokens_in: _Amount = 0
    tokens_out: _Amount = 0
    usd: _Dollars | None = None
    outcome: str = UNFINISHED
    seconds: float = 0.0
    subject: str = ""
    shares: dict[str, Annotated[int, msgspec.Meta(gt=0)]] = field(default_factory=dict)

    @property
    def day(self) -> str:
        """The local date (ISO) of its start."""
        return _day(self.time)

    @property
    def tokens(self) -> int:
        """The tokens read and written."""
        return self.tokens_in + self.tokens_out


@dataclass(slots=True)
class Total:
    """A sum of calls. `usd` covers the calls with a known price, `unpriced` counts the others.

    `unreadable` counts the lines of the ledger that may hold more of these calls.
    """

    calls: int = 0
    failed: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float = 0.0
    unpriced: int = 0
    unreadable: int = 0

    def add(self, call: Call) -> None:
        """Count `call`."""
        self.calls += 1
        self.failed += call.outcome != OK
        self.tokens_in += call.tokens_in
        self.tokens_out += call.tokens_out
        self.usd += call.usd or 0.0
        self.unpriced += call.usd is None

    @property
    def tokens(self) -> int:
        """The tokens read and written."""
        return self.tokens_in + self.tokens_out


def total(calls: Iterable[Call]) -> Total:
    """Return the sum of `calls`."""
    result = Total()
    for call in calls:
        result.add(call)
    return result


def by_project(calls: Iterable[Call]) -> Iterator[Call]:
    """Yield calls of one project each: of a shared call, each project's part; the parts add up to it."""
    for call in calls:
        shares = call.shares or {call.project: 1}
        whole, end = sum(shares.values()), 0
        for root, share in shares.items():
            begin, end = end, end + share
            tokens = [n * end // whole - n * begin // whole for n in (call.tokens_in, call.tokens_out)]
            usd = None if call.usd is None else call.usd * share / whole
            yield replace(call, project=root, tokens_in=tokens[0], tokens_out=tokens[1], usd=usd, shares={})


def totals(calls: Iterable[Call], by: str) -> dict[str, Total]:
    """Return the sums of calls by their `day`, `project`, `purpose`, or `model` (with its provider)."""
    found: dict[str, Total] = {}
    calls = by_project(calls) if by == "project" else calls
    for call in calls:
        name = f"{call.provider} {call.model}" if by == "model" else getattr(call, by)
        found.setdefault(name, Total()).add(call)
    return found


_Line = tuple[int, Call | None]
"""A line of the ledger: its number, and its call, which is None if the line cannot be read."""


class Ledger:
    """The ledger of one memory home. Only the holder of `calls_lock` writes it."""

    def __init__(self, home: Home) -> None:
        self.path = Path(home.ledger)

    def record(self, call: Call) -> None:
        """Append the current state of a call durably. Raise `OSError`."""
        make_private_directory(str(self.path.parent))
        line = json.dumps({FIELD: VERSION, **asdict(call)}).encode("ascii") + b"\n"
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
        with os.fdopen(descriptor, "rb+") as file:
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":  # a full disk cut the last line short
                    line = b"\n" + line
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def calls(self, since: str = "") -> list[Call]:
        """Return the calls from the day `since` (ISO) on, in order, each in its last recorded state.

        Raise `NewerFileError`, because a line may hold most of a budget, and `DamagedFileError` if the file
        cannot be read.
        """
        return [call for call in _last_states(self._lines()) if call.day >= since]

    def today(self, now: float | None = None) -> Total:
        """Return the sum of today's calls. If the file cannot be read, it is all `unreadable`.

        Raise `NewerFileError`.
        """
        day = _day(time.time() if now is None else now)
        try:
            lines = list(self._lines())
        except DamagedFileError:
            return Total(unreadable=1)
        result = total(call for call in _last_states(lines) if call.day == day)
        result.unreadable = len(self._unreadable(lines, day))
        return result

    def unreadable(self, now: float) -> list[int]:
        """Return the numbers of the unreadable lines that may hold today's calls.

        A line is not of today if a call of an earlier day follows it, or if the file did not change today.
        Raise the errors of `calls`.
        """
        return self._unreadable(self._lines(), _day(now))

    def _unreadable(self, lines: Iterable[_Line], today: str) -> list[int]:
        recent: list[int] = []
        for number, call in lines:
            if call is None:
                recent.append(number)
            elif call.day < today:
                recent = []
        return [] if recent and _day(self.path.stat().st_mtime) < today else recent

    def _lines(self) -> Iterator[_Line]:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise DamagedFileError(
                f"the ledger {self.path} cannot be read ({error.strerror}); make it a file that you can read "
                "and write"
            ) from error
        if not data.strip():  # memkit never leaves it empty
            yield 1, None
        for number, line in enumerate(data.splitlines(), 1):
            if line.strip():
                yield number, self._call(line)

    def _call(self, line: bytes) -> Call | None:
        """Return the call that a line holds, or None if it cannot be read. Raise `NewerFileError`."""
        try:
            value = parse_json(line)
            if isinstance(value, dict):
                check_version(self.path, value, VERSION)
            call = typed(value, Call)
            call.day  # noqa: B018 - raises for an impossible time
        except (ValueError, OverflowError, OSError) as error:
            logger.warning("%s: a line cannot be read: %s", self.path, error)
            return None
        return call


def _last_states(lines: Iterable[_Line]) -> Iterable[Call]:
    return {call.id: call for _, call in lines if call is not None}.values()


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).date().isoformat()
