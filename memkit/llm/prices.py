"""What a call cost: by what the provider says, else by the table in `prices.toml`."""

from __future__ import annotations

import ipaddress
import re
import sys
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from memkit.llm.model import TokenUsage

_MILLION = 1_000_000
_VERSION = r"([-@]\d{8}|-\d{4}-\d{2}-\d{2}|-latest)?"
"""What a maker appends to the name of a model without changing its price."""

_MAKERS = {"claude-cli": "anthropic"}
"""Whose models a provider gives, where it is not the provider's own."""


def price(provider: str, model: str, usage: TokenUsage, base_url: str = "") -> float | None:
    """The dollars a call cost; None if that is not known, which is never the same as 0.

    Args:
        provider: as in `summarize.provider`, never `auto`.
        model: as in `Reply.model`.
        usage: what the call used; a price that it names itself counts.
        base_url: the setting of this name. What runs on this machine costs nothing; of what runs
            anywhere else but at the provider's own address the price is not known.
    """
    if usage.usd is not None:
        return usage.usd
    if base_url:
        return 0.0 if _is_loopback(base_url) else None
    if provider == "ollama":
        return 0.0
    table = _table().get(_MAKERS.get(provider, provider), {})
    for name, prices in table.get("models", {}).items():
        if re.fullmatch(re.escape(name) + _VERSION, model.removeprefix("models/")):
            return _dollars({**table, **prices}, usage)
    return None


def prices_as_of() -> date:
    """The day on which the table was last compared with what the makers say."""
    day: date = _table()["as_of"]
    return day


def _dollars(prices: dict[str, Any], usage: TokenUsage) -> float:
    plain = usage.tokens_in - usage.cache_read - usage.cache_written
    read = (
        plain
        + usage.cache_read * prices["cache_read"]
        + usage.cache_written * prices["cache_written"]
    )
    return float(read * prices["in"] + usage.tokens_out * prices["out"]) / _MILLION


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@cache
def _table() -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    text = files("memkit.summarize").joinpath("prices.toml").read_text("utf-8")
    table: dict[str, Any] = tomllib.loads(text)
    return table
