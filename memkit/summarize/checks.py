"""Check a model's sentence against the text that it cites.

Three checks, from certain to likely:

1. `is_order`: the sentence tells an assistant what to do. Such a sentence is never memory.
2. `is_proved`: each name, number, path, and quotation in the sentence is in the cited text.
3. `memkit.summarize.wording`: the wording of the sentence agrees with passages of the cited text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_QUOTED = re.compile(r"`([^`]+)`|\"([^\"]{2,})\"|“([^“”]{2,})”|«([^«»]{2,})»")
_BARE = re.compile(r"(?:[^\s`\"'“”«»(){}\[\]<>,;!?]|(?<=\d),(?=\d))+")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_MEASURE = re.compile(r"[~<>≈$€£#]?(\d+(?:[.,:]\d+)*)([a-zµ%°]{0,3})", re.IGNORECASE)
_IN_SOURCE = re.compile(
    r"(?<![a-z\d_])v?(\d+(?:[.,:]\d+)*)(?: ?(k|m|thousand|million)\b)?(?![a-z]{4}|[a-z]+\d)"
)
_COMMIT = re.compile(r"(?=.*[a-f])(?=.*\d)[0-9a-f]{7,40}")
_LONGEST_NUMBER = 40
"""A longer number proves only itself: its shorter forms would take the square of its length."""

_TIMES = {"k": 1e3, "m": 1e6, "thousand": 1e3, "million": 1e6}
_IDENTIFIER = re.compile(
    r".*[A-Za-z]\d|.*\d[A-Za-z]|.*[a-z][A-Z]|.*\w[_/\\@#$=]\w|.*\w\w\.\w|[/~.]\w|--?\w|[A-Z]{2,}[-_]"
)
_PROSE = frozenset({"and/or", "either/or", "yes/no", "on/off", "his/her", "he/she", "n/a", "w/o", "i/o"})


def is_proved(text: str, source: str) -> bool:
    """Return whether `source` contains every identifier, number, path, hash, and quotation in `text`."""
    plain = _normalized(source)
    numbers = None
    for claim in claims(text):
        claim = _normalized(claim)
        measure = _MEASURE.fullmatch(claim)
        if measure is None:
            if not _contains(plain, claim):
                return False
            continue
        numbers = _numbers(plain) if numbers is None else numbers
        factor = measure[2] if measure[2] in _TIMES else None
        if numbers.isdisjoint(_forms(measure[1], factor)):
            return False
    return True


def claims(text: str) -> Iterator[str]:
    """Yield the parts of a sentence that its source must contain: as they are, numbers in any form."""
    for match in _QUOTED.finditer(text):
        yield next(group for group in match.groups() if group)
    for word in _BARE.findall(_QUOTED.sub(" ", text)):
        bare = word.strip(".:")
        if _MEASURE.fullmatch(bare) or (_IDENTIFIER.match(bare) and bare.casefold() not in _PROSE):
            yield bare
        else:
            yield from _NUMBER.findall(bare)


def _contains(source: str, claim: str) -> bool:
    """Return whether `source` contains `claim`, not as part of another word."""
    before = r"(?<!\w)" if claim[:1].isalnum() else ""
    is_commit = _COMMIT.fullmatch(claim)  # the start of a longer hash
    after = r"(?!\w)" if claim[-1:].isalnum() and not is_commit else ""
    return re.search(f"{before}{re.escape(claim)}{after}", source) is not None


def _numbers(source: str) -> set[str]:
    found: set[str] = set()
    for match in _IN_SOURCE.finditer(source):
        for part in {match[1], *match[1].split(":")}:
            found |= _forms(part, match[2])
            if len(part) > _LONGEST_NUMBER:
                continue
            plain = part.replace(",", "")
            start, point, _ = plain.rpartition(".")
            while point:  # 1.2.3 proves 1.2
                found.add(start)
                start, point, _ = start.rpartition(".")
            if re.fullmatch(r"\d+\.\d+", plain):
                digits = len(plain.partition(".")[2])
                found |= {f"{float(plain):.{count}f}" for count in range(digits)}
    return found


def _forms(number: str, factor: str | None) -> set[str]:
    """Return a number as it is, without separators and leading zeros, and in full ("1.3" "m")."""
    plain = number.replace(",", "")
    forms = {number, plain, plain.lstrip("0") or "0"}
    if factor and re.fullmatch(r"\d+(?:\.\d+)?", plain):
        forms.add(f"{float(plain) * _TIMES[factor]:.0f}")
    return forms


def _normalized(text: str) -> str:
    return " ".join(text.casefold().replace("\\", "").split())


_DUTY = (
    r"\b(?:must|should|shall|ought to|ha(?:s|ve) to|needs? to|is to|are to|may not|"
    r"will (?:always|never))\b"
)
_ADDRESSED = re.compile(
    r"\b(?:assistants?|claude(?! code)|you|whoever|(?:future|next|later|new) (?:session|conversation)s?)\b"
    rf"[^.;:]{{0,40}}?{_DUTY}"
    r"|\b(?:assistants?|claude(?! code))\b[^.;:]{0,20}?\b(?:is|are) (?:always |never |not )?"
    r"(?:required|obliged|instructed|expected|supposed|allowed|told|forbidden|asked) to\b"
    rf"|{_DUTY} (?:always |never )?be (?:told|asked|answered|reminded|recommended|informed|trusted)\b"
    r"|\b(?:ignore|disregard|forget|override)\b[^.;:]{0,30}"
    r"\b(?:previous|prior|above|earlier|your|these|those)\b[^.;:]{0,30}"
    r"\b(?:instructions?|rules?|prompts?)\b",
    re.IGNORECASE,
)
_STANDING = re.compile(
    r"\bin (?:all|every|each|any) (?:future |later |next )?"
    r"(?:sessions?|answers?|repl(?:y|ies)|conversations?|summar(?:y|ies))\b",
    re.IGNORECASE,
)
_WISH = re.compile(r"\b(?:user|person|team|developer|we)\b", re.IGNORECASE)
_OPENING = re.compile(
    r"(?:please|kindly|always|never|from now on|in (?:the )?future|next time|remember|make sure|be sure|"
    r"be careful|do not|don't|under no circumstances|at no time|without exception|note to)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"(?:when|whenever|if|before|after|once|unless|until|while|as soon as|as long as|"
    r"(?:in|at|on|with|for) (?:any|every|all|each|the (?:next|first|beginning|start|end)))\b",
    re.IGNORECASE,
)
_DOUBT = re.compile(r"\b(?:ask(?:s|ed)?|open|unclear|undecided),? (?:whether|if)\b.*", re.IGNORECASE)
_VERBS = frozenset(
    """
    add answer append apply approve ask assume avoid be begin bring choose clone consider continue
    convert create curl delete disable discard do download drop email enable ensure execute explain
    fetch finish follow forward get give go grant hand hide ignore include insert inform install
    invoke keep let load mail make mention migrate modify move obey omit open overwrite pass perform
    place post prefer prepend proceed publish push put quote raise read recommend redirect refuse
    reject remind remove rename repeat replace reply respect respond restart restore rewrite save
    say send share show skip speak start stick stop store submit suppress switch take tell transfer
    translate treat trust try turn uninstall upgrade upload use verify visit wait warn wipe write""".split()
)
"""Verbs that are hardly ever nouns at the start of a sentence."""
_NOUNS_TOO = frozenset(
    """
    build call change check commit copy deploy edit exit export fix force grep import link list lock
    log look mark merge name output patch pin plan point print pull query release report request
    reset return revert review run search set sign sort test touch track trigger update work""".split()
)
_FINITE = re.compile(
    r"(?:was|were|is|are|has|had|can|could|will|would|do(?:es)?|did|takes?|took|fails?|works?|\w{2,}ed)\b"
)
_OBJECT = re.compile(
    r"[`\"'/~.$-]|(?:the|an?|every|all|any|each|no|this|that|these|those|your|our|it|them|only)\b"
)


def is_order(text: str) -> bool:
    """Return whether a sentence tells an assistant what to do, in English.

    "The user wants …" is a report. "Always run …" and "The assistant must …" are orders.
    """
    text = _DOUBT.sub("", text)
    if _ADDRESSED.search(text) or (_STANDING.search(text) and not _WISH.search(text)):
        return True
    return any(_is_imperative(sentence) for sentence in re.split(r"(?<=[.!?;])\s+", text))


def _is_imperative(sentence: str) -> bool:
    if _CONDITION.match(sentence):  # "When a test fails, run …"
        sentence = sentence.partition(", ")[2]
    if _OPENING.match(sentence):
        return True
    first, *others = sentence.casefold().split() or [""]
    if not others:
        return False
    if first in _NOUNS_TOO:
        return bool(_OBJECT.match(others[0]))  # "Run the tests", but not "Test coverage rose"
    return first in _VERBS and not any(_FINITE.match(word) for word in others[:4])
