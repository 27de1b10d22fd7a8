"""Find what a text must not hold that others will read: stricter than redaction, and it changes nothing.

A false alarm costs the user a rewording. A miss is in the history of a repository for good.
"""

from __future__ import annotations

import ipaddress
import math
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from re import Pattern
from typing import NamedTuple

from memkit.privacy.redact import MARK, redact, visible

LEAST_RANDOM = 20
"""Characters of a string from which on it may be a key."""

_EMAIL = re.compile(r"[\w.+%-]+@(?:[\w-]+\.)+[A-Za-z]{2,}")
_HOME = re.compile(
    r"(?:/home|/Users|/export/home|/var/home)/(?!Shared\b)[\w.-]+|[A-Za-z]:[\\/]+Users[\\/]+\w|/root/"
)
_ADDRESS = re.compile(
    r"(?<![\w.:])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\d)|(?<![\w:])(?:f[cd][0-9a-f]{2}|fe80):[0-9a-f:]+"
)
_HOST = re.compile(
    r"(?<![\w./-])[a-z0-9][\w-]*(?:\.[\w-]+)*\.(?:local|localdomain|internal|intranet|corp|lan|home\.arpa)"
    r"(?![\w-]|\.\w|\()",
    re.IGNORECASE,
)
_URL_HOST = re.compile(r"\b(?:https?|wss?|ssh|git|ftp)://(?:[^\s/@]*@)?([A-Za-z][\w-]*)(?=[:/\s\"')`]|$)")
_OWN_MACHINE = frozenset({"localhost", "host"})
_LONG = re.compile(rf"[A-Za-z0-9+/_-]{{{LEAST_RANDOM},}}={{0,2}}")
_LONG_HEX = re.compile(r"(?<![0-9A-Za-z])(?=[0-9a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{32,}(?![0-9A-Za-z])")
_LEAST_ENTROPY = 3.0
_LEAST_CHANGES = 0.3


class Leak(NamedTuple):
    """The kind of text that must not be shared, and its line (from 1). Never the text itself."""

    what: str
    line: int


def find_leaks(text: str, patterns: Sequence[Pattern[str]] = ()) -> list[Leak]:
    """Return secrets, e-mail addresses, paths in a home, private hosts, and random strings, by line.

    `patterns` are the user's own for secrets.
    """
    found = [Leak(what, number) for number, line in enumerate(text.split("\n"), 1) for what in _in_line(line)]
    shown, redacted = visible(text), redact(text, patterns)
    if shown != redacted:
        same = next((n for n, (a, b) in enumerate(zip(shown, redacted, strict=False)) if a != b), 0)
        kinds = Counter(MARK.findall(redacted)) - Counter(MARK.findall(shown))
        what = f"a secret ({next(iter(kinds), 'secret')})"
        found.append(Leak(what, shown.count("\n", 0, same) + 1))
    return sorted(set(found), key=lambda one: (one.line, one.what))


def _in_line(line: str) -> Iterator[str]:
    # Full-width letters and the like read the same.
    plain = unicodedata.normalize("NFKC", line)
    own = os.path.expanduser("~")
    if any(not match[0].startswith("git@") for match in _EMAIL.finditer(plain)):
        yield "an e-mail address"
    if _HOME.search(plain) or (len(own) > 1 and own in plain):
        yield "a path in somebody's home"
    if _HOST.search(plain) or any(one.lower() not in _OWN_MACHINE for one in _URL_HOST.findall(plain)):
        yield "a private host"
    elif any(_is_private(match[0]) for match in _ADDRESS.finditer(plain)):
        yield "a private address"
    if _LONG_HEX.search(plain) or any(_is_random(match[0]) for match in _LONG.finditer(plain)):
        yield "a long random string"


def _is_private(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:  # a version number, say
        return False
    return found.is_private and not found.is_loopback and not found.is_unspecified


def _is_random(text: str) -> bool:
    """Return whether a string has the letters of a key: of all kinds, and in no order that words have."""
    kinds = [_kind(one) for one in text]
    if not {"digit", "lower"} <= set(kinds):
        return False
    counts = Counter(text)
    entropy = -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values())
    # A capital starts a word in a name like `getUserById2`, so a small letter after it is no change.
    changes = sum(
        one != other and "" not in (one, other) and (one, other) != ("upper", "lower")
        for one, other in pairwise(kinds)
    )
    return entropy >= _LEAST_ENTROPY and changes / len(text) >= _LEAST_CHANGES


def _kind(letter: str) -> str:
    if letter.isdigit():
        return "digit"
    if letter.isalpha():
        return "upper" if letter.isupper() else "lower"
    return ""
