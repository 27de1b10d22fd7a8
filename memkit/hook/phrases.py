"""Separate words that say something from praise, emoji, and filler.

Standard library only, Python 3.9 syntax.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

EMOJI = re.compile("[\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff\ufe0f\u200d\u20e3]+")
_MARKS = re.compile(r"\*\*|__|^[\s#>*_•–—-]+")
# Also at a heading, which the journal writes with a backslash, and before the first number of a list.
_SENTENCES = re.compile(
    r"(?<=[.!?])[\"')\]]*\s+(?=[^a-z\s])|(?<=[。！？])|(?<!\s)\s+\\?#{1,6}\s+|(?<=:)\s+(?=\d{1,2}[.)]\s)"
)
_NUMBER = re.compile(r"\d{1,2}[.)]")

PRAISE = re.compile(
    r"""(?:¡?(?:absolutely|all\ (?:done|good|right|set)|alright|amazing|awesome|brilliant|certainly
    |congratulations|done
    |excelente|excellent|fantastic|found\ it|good|got\ it|great|nice|of\ course|outstanding|parfait
    |perfect|perfecto
    |i\ see|perfekt|success|super|sure|thank\ you|thanks|understood|well\ done|wonderful|wow
    |(?:glad|happy)\ to\ help
    |you['’]re\ (?:absolutely\ |completely\ |quite\ |totally\ )?(?:right|correct|welcome)))
    (?:\ (?:call|catch|choice|example|find|idea|job|news|observation|one|point|question
    |suggestion|thing|work))?
    (?:\s*[!.,:;…]+|\s+[–—-]+|$)(?=\s|$)\s*""",
    re.IGNORECASE | re.VERBOSE,
)

_FILLER = frozenset(
    """again ahead all and bitte continue cool correct danke do done fine genau go going good great gut it
    ja k keep lgtm looks merci mach nein next nice no now ok okay on oui perfect please proceed right si so
    sure sí thank thanks that the then this try vale weiter y yeah yep yes you""".split()
)
_FILLER_WORDS = 6


def first_sentence(text: str) -> str:
    """Return the first sentence that says something, without praise in front of it, or ""."""
    return next(sentences(text), "")


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences that say something, each on one line and without praise in front of it."""
    found = _SENTENCES.split(EMOJI.sub("", text))
    for number, sentence in enumerate(found, start=1):
        sentence = _MARKS.sub("", sentence).strip()
        while (match := PRAISE.match(sentence)) is not None:
            sentence = sentence[match.end() :]
        is_numbering = number < len(found) and _NUMBER.fullmatch(sentence)
        if re.search(r"\w", sentence) and not is_numbering:
            yield " ".join(sentence.split())


def is_filler(prompt: str) -> bool:
    """Return whether every word of a prompt only agrees or goes on: "yes.", "ok, go on", "2"."""
    words = re.findall(r"\w+", prompt.lower())
    return len(words) <= _FILLER_WORDS and all(word in _FILLER or word.isdigit() for word in words)
