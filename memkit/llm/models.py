"""The models that memkit knows: their prices, and the days on which they end."""

from __future__ import annotations

import re
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from memkit.llm import TokenUsage

_MILLION = 1_000_000
_RELEASE = r"([-@]\d{8}|-\d{4}-\d{2}-\d{2}|-latest)?"
"""A suffix that vendors append to the name of a model without changing its price."""


def price(provider: str, model: str, usage: TokenUsage, base_url: str = "") -> float | None:
    """Return the price of a call in dollars, or None if it is unknown, which is not the same as 0.

    A price in `usage` takes precedence. `base_url` is the setting of this name: the price there is unknown,
    except for Ollama on this machine. Any other service there may pass the calls on.
    """
    if usage.usd is not None:
        return usage.usd
    if base_url:
        return 0.0 if provider == "ollama" and _is_loopback(base_url) else None
    if provider == "ollama":
        return 0.0
    known = _known(provider, model)
    return _dollars(known, usage) if "in" in known else None


def end_of(provider: str, model: str, base_url: str = "") -> date | None:
    """Return the first day on which the provider no longer serves a model, or None if it is not known.

    `base_url` is the setting of this name: a service at another address has days of its own.
    """
    return None if base_url else _known(provider, model).get("ends")


def _known(provider: str, model: str) -> dict[str, Any]:
    table = _table().get("anthropic" if provider == "claude-cli" else provider, {})
    for name, entry in table.get("models", {}).items():
        if re.fullmatch(re.escape(name) + _RELEASE, model.removeprefix("models/")):
            return {**table, **entry}
    return {}


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
def _table() -> dict[str, Any]:
    data = Path(__file__).with_name("models.toml").read_bytes()
    return msgspec.toml.decode(data, type=dict[str, Any])
