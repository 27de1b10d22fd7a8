"""Bullets: what a model wrote, held against the turns it named, and as lines of the journal."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memkit import anchors
from memkit.anchors import UNVERIFIED
from memkit.journal.markup import one_line
from memkit.llm.model import UnusableReplyError
from memkit.summarize.prompt import KINDS

MAX_CHARACTERS = 500
"""Of a bullet; a longer one is cut."""

MAX_TURNS = 12
"""That a bullet names; an anchor has no room for more."""

GRIP_CHARACTERS = 8

_LABELS = {
    "decision": "Decided",
    "change": "Changed",
    "finding": "Found",
    "problem": "Problem",
    "preference": "Preference",
    "open": "Open",
}

_PLAIN = re.compile(r"^(?:[-*•]\s+|\d+[.)]\s+)")
_LABEL = re.compile(
    rf"^(?:{'|'.join((*_LABELS.values(), *KINDS))}|fact|superseded)\s*:\s*", re.IGNORECASE
)

_QUOTED = re.compile(r"`([^`]+)`|\"([^\"]{2,})\"|“([^”]{2,})”|«([^»]{2,})»")
_WORD = re.compile(r"[^\s`\"'“”«»(){}\[\]<>,;!?]+")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_MEASURE = re.compile(r"^(\d[\d.,:]*)[A-Za-z%]{1,3}$")
_IDENTIFIER = re.compile(
    r".*[A-Za-z]\d|.*\d[A-Za-z]|.*[a-z][A-Z]|.*\w[_/\\@#$=]\w|.*\w\w\.\w|[/~.]\w|--?\w|[A-Z]{2,}[-_]"
)
_PROSE = frozenset({"and/or", "either/or", "yes/no", "on/off", "his/her", "he/she", "n/a", "w/o", "i/o"})


@dataclass(frozen=True, slots=True)
class Bullet:
    """A fact, its kind, and the turns it rests on.

    `is_verified` says that every identifier, number, path and quotation in it stands in those turns.
    """

    text: str
    kind: str
    turns: tuple[str, ...]
    is_verified: bool

    @property
    def grip(self) -> str:
        """The id by which its proof is found."""
        key = "\0".join((self.text, *self.turns))
        return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:GRIP_CHARACTERS]

    @property
    def line(self) -> str:
        """As it stands in the journal."""
        mark = "" if self.is_verified else f" ({UNVERIFIED})"
        check = "" if self.is_verified else UNVERIFIED
        anchor = anchors.render(grip=self.grip, turns=",".join(self.turns), check=check)
        return f"- {_LABELS[self.kind]}: {self.text}{mark} {anchor}"


def read_bullets(
    value: Mapping[str, Any],
    numbers: Mapping[int, tuple[int, str]],
    evidence: Callable[[str], str],
    redact: Callable[[str], str],
    *,
    may_be_empty: bool = False,
) -> dict[int, list[Bullet]]:
    """The bullets in a model's answer, by the place of their segment; what names no turn is dropped.

    `numbers` says what its turn numbers stand for, `evidence` gives all that is kept of a turn. Raises
    `UnusableReplyError` if the answer is not of the form asked for, or nothing in it can be used; a list
    that is empty from the start is an answer if it `may_be_empty`.
    """
    given = value.get("bullets")
    if not isinstance(given, list):
        raise UnusableReplyError("the model's answer holds no list of bullets")
    if not given and may_be_empty:
        return {}
    found: dict[int, list[Bullet]] = {}
    for item in given:
        bullet = _read_bullet(item, numbers, evidence, redact)
        if bullet is not None:
            place, made = bullet
            own = found.setdefault(place, [])
            if made.grip not in {one.grip for one in own}:
                own.append(made)
    if not found:
        raise UnusableReplyError(
            f"none of the {len(given)} bullets of the model's answer names a turn that proves it"
        )
    return found


def _read_bullet(
    item: Any,
    numbers: Mapping[int, tuple[int, str]],
    evidence: Callable[[str], str],
    redact: Callable[[str], str],
) -> tuple[int, Bullet] | None:
    if not isinstance(item, dict) or item.get("kind") not in KINDS:
        return None
    named = item.get("turns")
    text = item.get("text")
    if not isinstance(named, list) or not isinstance(text, str):
        return None
    known = [numbers[n] for n in named if isinstance(n, int) and n in numbers]
    if not known:
        return None
    place = known[0][0]
    turns = tuple(dict.fromkeys(turn for its, turn in known if its == place))[:MAX_TURNS]
    text = redact(sentence(redact(text)))  # joining its lines can join a secret
    if not text:
        return None
    is_verified = is_proved(text, [evidence(turn) for turn in turns])
    return place, Bullet(text, item["kind"], turns, is_verified)


def sentence(text: str) -> str:
    """What a model wrote as one line of a memory file, without a label of its own; "" if it says nothing."""
    whole = text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair is no text
    plain = anchors.strip(" ".join(whole.split()))
    line = one_line(_LABEL.sub("", _PLAIN.sub("", plain)), MAX_CHARACTERS)
    return line if any(letter.isalnum() for letter in line) else ""


def is_proved(text: str, turns: Sequence[str]) -> bool:
    """Whether every identifier, number, path, hash and quotation in `text` stands in `turns`."""
    source = _folded("\n".join(turns))
    return all(_stands_in(_folded(claim), source) for claim in claims(text))


def claims(text: str) -> Iterator[str]:
    """What in a bullet must stand in its turns word for word."""
    for match in _QUOTED.finditer(text):
        yield next(group for group in match.groups() if group)
    for word in _WORD.findall(_QUOTED.sub(" ", text)):
        bare = word.strip(".:")
        measure = _MEASURE.match(bare)
        if measure:
            yield measure[1]
        elif _IDENTIFIER.match(bare) and bare.casefold() not in _PROSE:
            yield bare
        else:
            yield from _NUMBER.findall(bare)


def _stands_in(claim: str, source: str) -> bool:
    """Whether `claim` stands in `source` as itself, not as a part of another word or number."""
    before = r"(?<!\w)" if claim[:1].isalnum() else ""
    after = r"(?!\w)" if claim[-1:].isalnum() else ""
    return re.search(f"{before}{re.escape(claim)}{after}", source) is not None


def _folded(text: str) -> str:
    return " ".join(text.casefold().replace("\\", "").split())
