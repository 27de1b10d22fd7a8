"""Secrets that only their context gives away: `password = …`, `"apiKey": "…"`, `--token …`, "the key is …".

First the name is looked for, then what it is given is judged by its randomness: names, paths,
versions, calls and placeholders are no secrets.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Match, Optional, Pattern, Tuple

MIN_LENGTH = 8
"""Characters of the shortest value that counts as a secret."""

MIN_ENTROPY = 2.5
"""Bits per character from which the value of a secret-looking assignment counts as a secret.

Repeated letters and placeholders lie below, passwords and random keys above (hexadecimal reaches
4.0, base64 6.0). The value must also hold a digit or symbol, which rules words out.
"""

MIN_CHANGES = 0.25
"""Changes between lower case, capitals and digits, a character, from which letters count as random.

Random hexadecimal has 0.47, base64 0.6; names in camel case, a word's capital not counted, 0.15.
"""

JUDGED_CHARACTERS = 128
"""How much of a value is looked at. If it is a secret it goes as a whole."""

# Looked for in lower-case text. What follows is compiled when it is first needed: hooks start often.
_NAME = re.compile(
    r"secret|token(?!i[sz])|passw|passphrase|_pass(?![a-z])|pwd|api[_ -]?key|credential|authorization"
    r"|(?:access|private|account|auth|encryption|signing|master)[_-]?key"
)
_BEHIND = r"""(?xi)(?P<suffix>[\w.-]{0,30})(?:
    (?P<given>(?:\\?["'`]\]?|\*\*)?[ \t]{0,4}
        (?::[ \t]{0,4}[A-Za-z_][\w.]{0,30}[ \t]{1,4}=|=>|:=|=|:)(?![=:])(?:\*\*)?[ \t]{0,4}
        (?:token[ ]|apikey[ ])?)
    |(?P<passed>(?:\\?["'`][ \t]{0,4},|\()[ \t]{0,4}(?=\\?["'`])
        |["'][ \t]{1,4}value=(?=["'])|>(?=[^<\s]{1,200}</))
    |(?P<said>[ \t]{1,4}(?:(?:is|was|to|as)[ \t]{1,4}|=[ \t])?)
    )(?P<quote>\\?["'`]|)"""
# What a command is given by a short option; group 1 stays.
_OPTIONS = (
    ("curl", r"(\bcurl\b[^\n|;]{0,200}?[ \t](?:-u|--user)[ =]?[\"']?[^\s:\"'$]{1,64}:)([^\s\"'$]{6,200})"),
    ("sshpass", r"(\bsshpass[ \t]{1,4}-p[ \t]{0,4}[\"']?)([^\s\"'$]{6,200})"),
    ("mysql", r"(\bmysql\w{0,10}[ \t][^\n|;]{0,100}?[ \t]-p[\"']?)([^\s\"'$]{6,200})"),
    ("login", r"(\blogin[ \t][^\n|;]{0,100}?[ \t]-p[ \t]{1,4}[\"']?)([^\s\"'$]{6,200})"),
    ("redis-cli", r"(\bredis-cli\b[^\n|;]{0,100}?[ \t]-a[ \t]{1,4}[\"']?)([^\s\"'$]{6,200})"),
)  # fmt: skip

# Where a value ends: at its quote, at a space, at what no unquoted value holds.
_INSIDE = {
    '"': r'(?:[^\s"\\]|\\[^\s])',
    "'": r"(?:[^\s'\\]|\\[^\s])",
    "`": r"(?:[^\s`\\]|\\[^\s])",
    '\\"': r'(?:[^\s"\\]|\\(?!"))',
    "\\'": r"(?:[^\s'\\]|\\(?!'))",
    "\\`": r"(?:[^\s`\\]|\\(?!`))",
    "line": r"[^\s\"'`<>\[\]]",
    "": r"(?:[^\s\"'`,;<>(){}\[\]\\]|\\(?![\"'nrt]))",
}  # fmt: skip

_MARK = r"\[redacted:[a-z-]+\]"
_NOT_SECRET = r"""(?xi)[$%{<]|[*]{3}|x{4}|\.{2}|-|@|\(|&
    |(?:https?|file|env|vault|op|arn|npm|workspace|sha\d{1,3}|md5|ssm)[:]
    |your|my[-_]|example|placeholder|changeme|insert|replace
    |\.{0,2}/[\w@.-]{0,40}/|\.{1,2}[/\\]|~[/\\]|[A-Za-z]:\\
    |[\^~<>=v]{0,3}\d{1,4}(?:\.\d{1,4}){1,3}(?![A-Za-z0-9])[\w.+-]{0,20}\Z
    |\d{4}-\d\d-\d\d(?:[T ]|\Z)
    |[\d.,_]{1,7}[a-z]{0,3}\Z
    |[A-Z]{1,20}=[a-z]{1,20}\Z
    |.{0,200}(?:\(\)|[:…])\Z"""
_NOT_VALUE = (
    r"(?:^|[_.-]|(?<=[a-z0-9])(?=[A-Z]))(?i:names?|file(?:name)?|path|dir|url|uri|endpoint|type|kind|version|count|length|size|limit"
    r"|ref|arn|expir\w*|ttl|at|policy|header|prefix|regex|pattern|field|class|(?<!secret_)ids?|hash|sha\d{0,3}|md5|digest|checksum)$"
)
_LIST_ITEM = r"[a-z0-9_&-]*|[A-Za-z_-]*"
_IDENTIFIER = r"[A-Za-z_$][\w$]*(?:(?:\.|::|\?\.|->)[A-Za-z_$][\w$]*)*"
_FLAG = r"--?[A-Za-z][\w-]{0,30}\Z|--?\Z"
_VARIABLE = r"(?:^|[\s;&|])(?:ENV|set|export) [A-Z][A-Z0-9_]{0,40}\Z"
_RESOURCE = r"\barn:[\w:/-]{0,70}\Z"
_LOGIN = r"\blogin\s+\S{1,100}\s\Z"


def hide_assigned(text: str, mark: str) -> str:
    """`text` with `mark` in place of every value that the name before it makes a secret."""
    for literal, pattern in _OPTIONS:
        if literal in text:
            text = _compiled(pattern).sub(lambda match: _hide_option(match, mark), text)
    kept = []
    done = position = 0
    lowered = _lower(text)
    while True:
        name = _NAME.search(lowered, position)
        if name is None:
            break
        position = name.end()
        value = _value(text, name)
        if value is not None:
            kept += [text[done : value[0]], mark]
            done = position = value[1]
    kept.append(text[done:])
    return "".join(kept)


def _lower(text: str) -> str:
    """`text` in lower case, as long as before: one capital letter would become two characters."""
    return text.replace("\u0130", "I").lower()


def _hide_option(match: Match[str], mark: str) -> str:
    value = match.group(2)
    plain = value.isdigit() or _compiled(_MARK).search(value) or entropy(value) < MIN_ENTROPY
    return match.group(0) if plain else match.group(1) + mark


def _value(text: str, name: Match[str]) -> Optional[Tuple[int, int]]:
    """Where the secret stands that belongs to the name found, if there is one."""
    behind = _compiled(_BEHIND).match(text, name.end())
    before = text[max(0, name.start() - 80) : name.start()]
    if behind is None or _compiled(_RESOURCE).search(before):
        return None
    quote, start = behind.group("quote"), behind.end()
    inside = quote
    if not quote and behind.group("given") == "=" and text[name.start() : name.end()].isupper():
        inside = "line"
    found = _compiled(_INSIDE[inside] + "{%d,%d}" % (MIN_LENGTH, JUDGED_CHARACTERS)).match(
        text, start
    )
    if found is None:
        return None
    value, end = found.group(), found.end()
    is_cut = len(value) == JUDGED_CHARACTERS
    if behind.group("said") and not quote and value.endswith((".", ":", "!", "?")):
        value, end = value[:-1], end - 1
    if _is_no_value(text[name.start() : name.end()], behind.group("suffix"), value):
        return None
    is_closed = bool(quote) and (is_cut or text.startswith(quote, end))
    if behind.group("said") is not None:
        is_given = (
            _compiled(_FLAG).search(before)
            or _compiled(_VARIABLE).search(before)
            or _compiled(_LOGIN).search(before)
        )
        is_secret = bool(is_given) or (_is_said(value) and (is_closed or not quote))
    elif behind.group("passed") is not None:
        is_secret = not _compiled(_LIST_ITEM).fullmatch(value) or is_random(value)
    else:
        is_secret = is_closed or not _is_code(value, text[end : end + 1], behind.group("given"))
    if is_secret and is_cut:
        end = _compiled(_INSIDE[inside] + "*").match(text, end).end()  # type: ignore[union-attr]
    return (start, end) if is_secret else None


def _is_no_value(name: str, suffix: str, value: str) -> bool:
    """Whether it cannot be a secret: what its name is of, a number of tokens, a placeholder, a word."""
    is_count = name.lower() == "token" and suffix.lower().startswith(("s", "_c"))
    if _compiled(_NOT_VALUE).search(suffix) or (is_count and value.isdigit()):
        return True
    return not _looks_secret(value)


@lru_cache(maxsize=None)
def _compiled(pattern: str) -> Pattern[str]:
    return re.compile(pattern)


def _looks_secret(value: str) -> bool:
    """Whether a named value can be a secret: no placeholder, path, version, word or name."""
    if _compiled(_MARK).search(value):
        value = _compiled(_MARK).sub("", value)
    if len(value) < MIN_LENGTH or entropy(value) < MIN_ENTROPY:
        return False
    if _compiled(_NOT_SECRET).match(value) and not (value[0] in "./-" and is_random(value)):
        return False
    return _has_digit_or_symbol(value) or is_random(value)


def _is_said(value: str) -> bool:
    """Whether a value in running text, where any word may follow, is a secret by itself."""
    kinds = sum(
        map(bool, (re.search("[a-z]", value), re.search("[A-Z]", value), re.search("[0-9]", value)))
    )
    if re.fullmatch(r"(?:[0-9a-f-]{1,31}|[0-9a-f]{40}|[0-9a-f]{64})", value):
        return False
    if re.search(r"[!#%&^*+?]", value.rstrip("!?*")) and kinds == 3:
        return True
    return len(value) >= 12 and kinds >= 2 and is_random(value)


def _is_code(value: str, following: str, sign: str) -> bool:
    """Whether an unquoted value is an expression of a program."""
    if following == "(" or re.match(r"[A-Za-z_$][\w.]*[(\[]", value):
        return True
    name = _compiled(_IDENTIFIER).match(value)
    if name is None or is_random(value):
        return False
    is_expression = (
        following in tuple("[;,)}") or "." in name.group() or sign.strip() == "=" != sign
    )
    return (
        (is_expression or "_" in value) if name.end() == len(value) else value[name.end()] in "[{|"
    )


def is_random(value: str) -> bool:
    """Whether the letters and digits of `value` change their kind as often as chance makes them."""
    changes = 0
    before = ""
    for letter in value:
        kind = (
            "0"
            if letter.isdigit()
            else "a"
            if letter.islower()
            else "A"
            if letter.isupper()
            else ""
        )
        # The first small letter of a capitalized word is no change.
        changes += bool(before and kind and kind != before and (before, kind) != ("A", "a"))
        before = kind
    return changes / len(value) >= MIN_CHANGES and changes >= 3


def _has_digit_or_symbol(value: str) -> bool:
    """Rules out plain words and dotted names such as `config.tokenProvider`."""
    return any(not (letter.isalpha() or letter in "._-/$") for letter in value)


def entropy(value: str) -> float:
    """Shannon entropy of `value` in bits per character."""
    counts = [value.count(letter) for letter in set(value)]
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts)
