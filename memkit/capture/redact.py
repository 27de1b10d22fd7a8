"""Takes secrets out of text before anything is written.

Each is replaced by `[redacted:kind]`. Standard library only, Python 3.9 syntax: the hooks redact
before they spool.
"""

from __future__ import annotations

import math
import re
from typing import Iterable, List, Pattern, Tuple

# Anchored on each provider's documented prefix, so look-alikes (hashes, UUIDs, base64 images) stay.
_KEY_FORMATS: Tuple[Tuple[str, str], ...] = (
    (
        "private-key",
        # Up to its end, else as far as the key itself goes.
        r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:(?!-----(?:BEGIN|END) )[\s\S]){0,20000}"
        r"-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s\\]*)",
    ),
    ("anthropic-key", r"\bsk-ant-[A-Za-z0-9_-]{16,}"),
    ("openai-key", r"\bsk-(?:proj-|svcacct-|admin-)[A-Za-z0-9_-]{20,}|\bsk-[A-Za-z0-9]{32,}\b"),
    ("aws-key", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    (
        "google-key",
        r"\bAIza[A-Za-z0-9_-]{35}|\bGOCSPX-[A-Za-z0-9_-]{20,}|\bya29\.[A-Za-z0-9_-]{20,}",
    ),
    ("github-token", r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})"),
    ("gitlab-token", r"\bgl(?:pat|dt|ptt|rt|cbt|soat|ft)-[A-Za-z0-9_-]{20,}"),
    ("slack-token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-\d-[A-Za-z0-9-]{10,}"),
    ("slack-webhook", r"https://hooks\.slack\.com/services/[A-Za-z0-9/]{20,}"),
    ("stripe-key", r"\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9]{24,}"),
    ("npm-token", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("pypi-token", r"\bpypi-[A-Za-z0-9_-]{50,}"),
    ("huggingface-token", r"\bhf_[A-Za-z0-9]{30,}\b"),
    ("sendgrid-key", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("jwt", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    ("azure-key", r"(?<=AccountKey=)[A-Za-z0-9+/]{40,}={0,2}"),
    (
        "bearer-token",
        r"(?i:(?<=\bbearer )|(?<=\bbearer: ))(?=[A-Za-z._~+/-]{0,100}[0-9])[A-Za-z0-9._~+/-]{20,}=*",
    ),
    ("url-password", r"(?<=://)[^\s:/@\"'`<>]{0,100}:[^\s/@\"'`<>]{1,200}(?=@[\w.\[-])"),
)
_FORMATS = re.compile("|".join("(?P<k{}>{})".format(n, p) for n, (_, p) in enumerate(_KEY_FORMATS)))

# NAME=value, "name": "value", name: value, name := value, also in escaped quotes, where the name says
# that the value is secret. Addresses and relative paths are not.
_ASSIGNMENT = re.compile(
    r"""(?P<name>(?:secret|token(?!i[sz])|passw(?:or)?d|passwd|api[_-]?key|access[_-]?key|private[_-]?key|credential|auth[_-]?key)[\w.-]{0,20}"""
    r"""(?:\\?["'])?[ \t]{0,4}(?:=>|:=|=|:)[ \t]{0,4})(?P<quote>\\?["']|)(?![=:]|https?://|\.{1,2}/|~/)"""
    # Not written with a bound: what lies behind one would stay.
    r"""(?P<value>(?:[^\s"'`,;<>(){}\[\]\\]|\\(?!["'])){8,})(?P=quote)""",
    re.IGNORECASE,
)
_PRIVATE_TAG = re.compile(r"<(/?)private>", re.IGNORECASE)

MIN_ENTROPY = 2.5
"""Bits per character from which the value of a secret-looking assignment counts as a secret.

Repeated letters and placeholders lie below, passwords and random keys above (hexadecimal reaches
4.0, base64 6.0). The value must also hold a digit or symbol, which rules words out.
"""


def redact(text: str, patterns: Iterable[Pattern[str]] = ()) -> str:
    """`text` without private parts, known key formats, secret assignments and `patterns`.

    Redacting twice changes nothing more.
    """
    text = without_private(text)
    text = _FORMATS.sub(_name_format, text)
    text = _ASSIGNMENT.sub(_hide_assignment, text)
    for pattern in patterns:
        text = pattern.sub("[redacted:custom]", text)
    return text


def _name_format(match: "re.Match[str]") -> str:
    kind = _KEY_FORMATS[int(str(match.lastgroup)[1:])][0]
    return "[redacted:{}]".format(kind)


def _hide_assignment(match: "re.Match[str]") -> str:
    value, quote = match.group("value"), match.group("quote")
    is_count = value.isdigit() and match.group("name").lower().startswith("token")
    is_call = not quote and match.string[match.end() : match.end() + 1] == "("
    if is_count or is_call or entropy(value) < MIN_ENTROPY or not _has_digit_or_symbol(value):
        return match.group(0)
    return "{}{}[redacted:secret]{}".format(match.group("name"), quote, quote)


def _has_digit_or_symbol(value: str) -> bool:
    """Rules out plain words and dotted names such as `config.tokenProvider`."""
    return any(not (letter.isalpha() or letter in "._-/$") for letter in value)


def entropy(value: str) -> float:
    """Shannon entropy of `value` in bits per character."""
    counts = [value.count(letter) for letter in set(value)]
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts)


def without_private(text: str) -> str:
    """Cut `<private>` parts, nested ones whole, an unclosed one to the end."""
    if "<private>" not in text.lower():
        return text
    kept: List[str] = []
    depth = position = 0
    for match in _PRIVATE_TAG.finditer(text):
        closing = match.group(1) == "/"
        if depth == 0:
            kept.append(text[position : match.start()])
            kept.append(match.group(0) if closing else "[redacted:private]")
        depth = max(0, depth - 1) if closing else depth + 1
        position = match.end()
    if depth == 0:
        kept.append(text[position:])
    return "".join(kept)
