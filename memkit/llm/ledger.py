"""The cost of model calls: the prices, and one line per call in `MEMKIT_HOME/ledger.jsonl`.

A call is recorded before it is made, with the most it may use, and again when it has ended. A call with
only the first line (its process was killed) counts as estimated.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from memkit.files import PRIVATE_FILE, make_private_directory
from memkit.llm import TokenUsage
from memkit.paths import Home
from memkit.state import FIELD, check_version, parse_json

logger = logging.getLogger(__name__)

VERSION = 1
"""The format version of a line."""

UNFINISHED = "unfinished"
"""The outcome of a call whose end is unknown."""

OK = "ok"
"""The outcome of a call that was answered."""

_MILLION = 1_000_000
_RELEASE = r"([-@]\d{8}|-\d{4}-\d{2}-\d{2}|-latest)?"
"""A suffix that vendors append to the name of a model without changing its price."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a model.

    `time` is its start in seconds since the epoch. `usd` is None if the price is unknown. `outcome` is
    `ok`, `unfinished`, or the outcome of a `ModelError`.
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
        """The local date (ISO) of its start."""
        return datetime.fromtimestamp(self.time).date().isoformat()

    @property
    def tokens(self) -> int:
        """The tokens read and written."""
        return self.tokens_in + self.tokens_out


@dataclass(slots=True)
class Total:
    """A sum of calls. `usd` covers the calls with a known price, `unpriced` counts the others."""

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
        """The tokens read and written."""
        return self.tokens_in + self.tokens_out


def total(calls: Iterable[Call]) -> Total:
    """Return the sum of `calls`."""
    result = Total()
    for call in calls:
        result.add(call)
    return result


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

        Raise `NewerFileError` rather than skip a line: it may hold most of a budget.
        """
        found: dict[str, Call] = {}
        for value in self._lines():
            check_version(self.path, value, VERSION)
            try:
                call = msgspec.convert(value, Call)
            except msgspec.ValidationError as error:
                logger.warning("%s: skipped a line that is not a call: %s", self.path, error)
                continue
            found[call.id] = call
        return [call for call in found.values() if call.day >= since]

    def today(self, now: float | None = None) -> Total:
        """Return the sum of today's calls."""
        day = datetime.fromtimestamp(time.time() if now is None else now).date().isoformat()
        return total(call for call in self.calls(day) if call.day == day)

    def _lines(self) -> Iterator[dict[str, Any]]:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return
        for line in data.splitlines():
            try:
                value = parse_json(line)
            except ValueError:
                logger.warning("%s: skipped an unreadable line", self.path)
                continue
            if isinstance(value, dict):
                yield value


def price(provider: str, model: str, usage: TokenUsage, base_url: str = "") -> float | None:
    """Return the price of a call in dollars, or None if it is unknown, which is not the same as 0.

    A price in `usage` takes precedence. `base_url` is the setting of this name: a service on this machine
    costs nothing, the price at any other address is unknown.
    """
    if usage.usd is not None:
        return usage.usd
    if base_url:
        return 0.0 if _is_loopback(base_url) else None
    if provider == "ollama":
        return 0.0
    table = _prices().get("anthropic" if provider == "claude-cli" else provider, {})
    for name, prices in table.get("models", {}).items():
        if re.fullmatch(re.escape(name) + _RELEASE, model.removeprefix("models/")):
            return _dollars({**table, **prices}, usage)
    return None


def prices_as_of() -> date:
    """The day on which `prices.toml` was last checked against the vendors' price lists."""
    day: date = _prices()["as_of"]
    return day


def _dollars(prices: dict[str, Any], usage: TokenUsage) -> float:
    uncached = usage.tokens_in - usage.cache_read - usage.cache_written
    read = (
        uncached
        + usage.cache_read * prices["cache_read"]
        + usage.cache_written * prices["cache_written"]
    )
    return float(read * prices["in"] + usage.tokens_out * prices["out"]) / _MILLION


def _is_loopback(url: str) -> bool:
    import ipaddress

    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@cache
def _prices() -> dict[str, Any]:
    data = Path(__file__).with_name("prices.toml").read_bytes()
    return msgspec.toml.decode(data, type=dict[str, Any])
