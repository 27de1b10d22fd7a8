"""What model calls cost: a line each in `MEMKIT_HOME/ledger.jsonl`, and what may still be spent today.

A call is noted before it is made, with what it will use at most, and again when it has ended. One of
which only the first line is there (its process was killed) counts as it was estimated.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from memkit.files import PRIVATE_FILE, make_private_directory
from memkit.paths import Home
from memkit.state import FIELD, check_version, parse_json

logger = logging.getLogger(__name__)

VERSION = 1
"""Of a line's format."""

UNFINISHED = "unfinished"
"""The outcome of a call of which no end is known."""

OK = "ok"
"""The outcome of a call that was answered."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a model.

    `time` is when it began, in seconds since the epoch; `usd` is None where the price is not known;
    `outcome` is `ok`, `unfinished`, or what went wrong (see `memkit.llm.model`).
    """

    id: str
    time: float
    purpose: str
    provider: str
    model: str
    project: str
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float | None = None
    outcome: str = UNFINISHED
    seconds: float = 0.0

    @property
    def day(self) -> str:
        """The local date (ISO) on which it began."""
        return datetime.fromtimestamp(self.time).date().isoformat()

    @property
    def tokens(self) -> int:
        """Read and written."""
        return self.tokens_in + self.tokens_out


@dataclass(slots=True)
class Total:
    """What calls add up to. `usd` is of those whose price is known; `unpriced` counts the others."""

    calls: int = 0
    failed: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float = 0.0
    unpriced: int = 0

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
        """Read and written."""
        return self.tokens_in + self.tokens_out


class Ledger:
    """The ledger of one memory home. Only who holds the lock of the summaries writes it."""

    def __init__(self, home: Home) -> None:
        self.path = Path(home.ledger)

    def begin(self, call: Call) -> Call:
        """Note a call that is about to be made, with its estimate; durable. Raises `OSError`."""
        self._append(call)
        return call

    def end(self, call: Call) -> None:
        """Note how a call ended; durable. Raises `OSError`."""
        self._append(call)

    def calls(self, since: str = "") -> list[Call]:
        """The calls of all days, or from the day `since` (ISO) on, each as it was last noted, in order.

        Raises `NewerFileError`: what a line says that cannot be read may be most of a budget.
        """
        found: dict[str, Call] = {}
        for value in self._lines():
            check_version(self.path, value, VERSION)
            try:
                call = msgspec.convert(value, Call)
            except msgspec.ValidationError as error:
                logger.warning("%s: a line that is no call is passed over: %s", self.path, error)
                continue
            found[call.id] = call
        return [call for call in found.values() if call.day >= since]

    def today(self, now: float | None = None) -> Total:
        """What today's calls add up to."""
        day = datetime.fromtimestamp(time.time() if now is None else now).date().isoformat()
        return total(call for call in self.calls(day) if call.day == day)

    def _append(self, call: Call) -> None:
        make_private_directory(str(self.path.parent))
        line = json.dumps({FIELD: VERSION, **asdict(call)}).encode("ascii") + b"\n"
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
        with os.fdopen(descriptor, "rb+") as file:
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":  # what a full disk cut short
                    line = b"\n" + line
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def _lines(self) -> Iterator[dict[str, Any]]:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return
        for line in data.splitlines():
            try:
                value = parse_json(line)
            except ValueError:
                logger.warning("%s: an unreadable line is passed over", self.path)
                continue
            if isinstance(value, dict):
                yield value


def total(calls: Iterable[Call]) -> Total:
    """What `calls` add up to."""
    result = Total()
    for call in calls:
        result.add(call)
    return result
