"""Make titles of topics out of prompts, commits, and names of branches."""

from __future__ import annotations

import re

from memkit.journal.sentences import (
    is_log,
    is_question,
    names_subject,
    says_nothing,
    wording,
    wording_pattern,
)
from memkit.journal.turn_parts import COMPACTION_TITLE, NO_TITLE
from memkit.subject import STOP_WORDS
from memkit.text import one_line, printable

TITLE_CHARACTERS = 70
NO_TITLES = frozenset({NO_TITLE, COMPACTION_TITLE})
VAGUE = re.compile(rf"\b(?:{'|'.join(wording('vague'))})\b", re.IGNORECASE)

_SHORTEST = 8
_SHORTEST_CLAUSE = 16
_READ_CHARACTERS = 200
_LEAST_WORDS = 3
_MOST_VAGUE = 3

_POLITE = wording_pattern("polite")
_BEGINNING = wording_pattern("beginnings", after=r"\b[,:]? +")
_PREFIX = re.compile(r"\w+(?:\([^()\n]*\))?!?: +|#\d+:? +")
"""The kind of a commit: `fix(page): `."""

_LINK = re.compile(r" *\(?(?:https?://\S+|#\d+)\)?\Z")
_MARK = re.compile(
    r"(?:=+|[-*#>•⏺]+|\(?(?:\d{1,2}|[A-Za-z])[.)]|(?:step|option|task|part|phase) \d+\s*[:,.-]?|\W+) +",
    re.IGNORECASE,
)
_SHORT_SENTENCE = re.compile(r"[^.!?]{1,40}[.!?] +(?=\S)")
_COMMAND = re.compile(
    r"(?:rm|cd|ls|cat|git|npm|npx|pnpm|yarn|uv|pip|gh|sudo|curl|ssh|docker) +\S", re.IGNORECASE
)
_CLAUSE = re.compile(r"(?<=[^\d\s])[.;:!?]\s+|,\s+| [-–—] | (?:and|but|so|because|since) ")
_NO_NAME = re.compile(r"://|redacted", re.IGNORECASE)
_TICKET = re.compile(r"\A(?:[A-Za-z]+-)?\d+-")


def flaws(title: str) -> float:
    """Return how much a shortened title lacks: 0 for one that names a subject and is whole."""
    found = 0.2 * (not names_subject(title)) + 0.2 * title.endswith("…") + 0.1 * is_question(title)
    found += 0.2 * _is_open(title) + 0.3 * bool(_NO_NAME.search(title))
    return found + 0.2 * min(_MOST_VAGUE, len(VAGUE.findall(title)))


def branch_title(branch: str) -> str:
    """Return the words of a branch's name, `fix-login-page` of `ann/eng-12-fix-login-page`."""
    words = _TICKET.sub("", branch.rpartition("/")[2]).replace("_", "-").split("-")
    return " ".join(words) if len(words) >= _LEAST_WORDS else ""


def shortened(title: str) -> str:
    """Return a title without politeness at its start, cut after a clause; "" if it makes no label."""
    text = one_line(printable(title), _READ_CHARACTERS).strip(" '“”`*>#-•⏺|")
    text = _PREFIX.sub("", text, count=1) if _PREFIX.match(text) else text
    bare = _LINK.sub("", text.removesuffix("…").rstrip())
    text = bare if "://" in text[len(bare) :] else text
    while match := _POLITE.match(text) or _BEGINNING.match(text) or _MARK.match(text) or _untold(text):
        text = text[match.end() :]
    is_other = title in NO_TITLES or text.startswith(("/", "!", "$", "{", "["))
    if is_other or is_log(text) or says_nothing(text) or _COMMAND.match(text):
        return ""
    is_cut = text.endswith("…")
    text = text.removesuffix("…").rstrip()
    if len(text) > TITLE_CHARACTERS or is_cut:
        ends = [one.start() for one in _CLAUSE.finditer(text[: TITLE_CHARACTERS + 2])]
        whole = (one for one in reversed(ends) if one >= _SHORTEST_CLAUSE and _is_balanced(text[:one]))
        end = next(whole, 0)
        text = text[:end] if end and names_subject(text[:end]) else _cut(text)
    text = text.replace("`", "").rstrip(" ,;:.=-([{")
    return text[:1].upper() + text[1:] if len(text) >= _SHORTEST else ""


def _untold(text: str) -> re.Match[str] | None:
    """Match a short sentence at the start that names no subject: "Almost there." """
    match = _SHORT_SENTENCE.match(text)
    return match if match and not names_subject(match[0]) else None


def _is_balanced(text: str) -> bool:
    return text.count("(") == text.count(")") and text.count('"') % 2 == 0


def _is_open(title: str) -> bool:
    """Return whether a title breaks off, or is too short to say something."""
    words = title.split()
    is_cut = words[-1].casefold() in STOP_WORDS["english"]
    return is_cut or len(words) < _LEAST_WORDS or not _is_balanced(title)


def _cut(text: str) -> str:
    """Cut a title after a word that may stand at its end."""
    words = one_line(text, TITLE_CHARACTERS).removesuffix("…").split()
    while len(words) > 1 and words[-1].casefold().strip("\"'(") in STOP_WORDS["english"]:
        words.pop()
    return f"{' '.join(words)} …"
