"""Read a model's answer about segments: titles and bullets, checked against the turns that they name."""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from memkit.bullets import sentences
from memkit.hook.phrases import EMOJI, PRAISE
from memkit.journal.markup import one_line, short_id
from memkit.llm import UnusableReplyError
from memkit.summarize.bullets import LABELS, MAX_TURNS, Bullet, Evidence, clean_sentence, provable_by
from memkit.summarize.checks import is_order, is_proved
from memkit.summarize.wording import KnownVectors, is_covered

if TYPE_CHECKING:
    from memkit.embedding import Embedder

logger = logging.getLogger(__name__)

MAX_BULLETS = 6
"""The most bullets of a segment. Those after them are left out."""

MAX_DRAFTS = 100
"""The most bullets of a segment to read, usable or not."""

MAX_TITLE = 60
"""The most characters of a title. A longer one is cut."""

MAX_GIVEN = 5_000
"""A longer text in an answer is not a title, bullet, or fact."""

MAX_NUMBERS = 100
"""The most numbers that are read from a list of turns."""

LIMITS, PERSON_LIMITS, ORDER_LIMITS, NO_LIMITS = (1.45, 0.6), (0.85, 0.5), (0.0, 0.0), (inf, inf)
"""The limits of doubt about a bullet's wording; see `is_covered`. Lower ones would mark true paraphrases.

Lies in the turns' own words are for the second look.
"""

_LIMITS_OF = dict.fromkeys(("decision", "preference"), PERSON_LIMITS)
_LIMITS_OF |= dict.fromkeys(("pattern", "open"), NO_LIMITS)
"""A pattern is rarely in the person's words as it is, so the second look alone decides. Open work stays."""

_NUMBER = re.compile(r"(?<![0-9])[0-9]{1,6}(?![0-9])")
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()]*\)")
_MARKUP = re.compile(r"[`*<\[\]]")
_WORDS = re.compile(r"\w+")
_ORDER = re.compile(
    r"^(?:always|never|ignore|do not|don't|please|you)\b|\byou (?:must|should|shall|have to|are to)\b"
    r"|\b(?:assistants?|claude|models?|ai) (?:must|should|shall|has to|have to)\b",
    re.IGNORECASE,
)


@dataclass(slots=True)
class SegmentSummary:
    """The title and bullets of a segment. Without a usable title, it is ""."""

    title: str = ""
    bullets: list[Bullet] = field(default_factory=list)


class _Draft(NamedTuple):
    """A bullet as the model gave it, and the segment and turns that it names."""

    segment: int
    turns: tuple[str, ...]
    kind: str
    text: str
    quote: str


def read_answer(
    value: Mapping[str, Any], numbers: Mapping[int, tuple[int, str]], evidence: Mapping[str, Evidence],
    redact: Callable[[str], str], embedder: Embedder | None = None,
) -> dict[int, SegmentSummary]:  # fmt: skip
    """Return the summaries in a model's answer by the index of their segment.

    `numbers` is what `turn_numbers` returns, `evidence` what `read_evidence` returns. `embedder` compares
    the wording; without one, words alone count. A bullet that gives an order becomes what the person
    asked, and is dropped if they did not ask it. A bullet belongs to the segment of the first turn it
    names; without a turn in `evidence`, it is dropped. An entry belongs to the segment of its first bullet;
    without a bullet, to the segment of its number. A segment without an entry, or with bullets of which none
    is usable, is not in the result: it is asked again, and bullets from other entries are dropped with it.
    Raise `UnusableReplyError` if there is no list of segments.
    """
    given = value.get("segments")
    if not isinstance(given, list):
        raise UnusableReplyError("the model's answer has no list of segments")
    count = 1 + max(index for index, _ in numbers.values())
    titles: dict[int, Any] = {}
    drafts: dict[int, list[_Draft]] = defaultdict(list)
    empty = set()
    total = 0
    for entry in given:
        items = entry.get("bullets") if isinstance(entry, dict) else None
        if not isinstance(items, list):
            continue
        total += len(items)
        named = [draft for item in items if (draft := _read_draft(item, numbers, evidence)) is not None]
        for draft in named:
            drafts[draft.segment].append(draft)
        if named:
            is_mixed = any(turn not in evidence for item in items for _, turn in _cited(item, numbers))
            titles.setdefault(named[0].segment, "" if is_mixed else entry.get("title"))
        elif not items:
            number = 1 if count == 1 else next(iter(read_numbers(entry.get("number"))), 0)
            if 1 <= number <= count:
                titles.setdefault(number - 1, entry.get("title"))
                empty.add(number - 1)
    found = {}
    vectors = KnownVectors(embedder) if embedder else None
    for index, title in titles.items():
        bullets = _read_bullets(drafts[index], evidence, redact, vectors)
        if bullets or index in empty:
            found[index] = SegmentSummary(clean_title(title, redact), bullets)
    left_out = total - sum(len(one.bullets) for one in found.values())
    if left_out:
        logger.info("%d of %d bullets in a model's answer are left out", left_out, total)
    return found


def _read_bullets(
    drafts: list[_Draft], evidence: Mapping[str, Evidence], redact: Callable[[str], str],
    vectors: KnownVectors | None,
) -> list[Bullet]:
    found: dict[str, Bullet] = {}
    for draft in dict.fromkeys(drafts[:MAX_DRAFTS]):
        if len(found) == MAX_BULLETS:
            break
        text = clean_sentence(draft.text, redact)
        if not text:
            continue
        gives_order = is_order(text)
        kind = "preference" if gives_order else draft.kind
        limits = ORDER_LIMITS if gives_order else _LIMITS_OF.get(kind, LIMITS)
        named = [evidence[turn] for turn in draft.turns]
        is_verified = is_proved(text, "\n".join(one.everything for one in named))
        if is_verified:
            is_verified = is_covered(text, provable_by(kind, named), vectors, limits)
        if gives_order and not is_verified:
            continue
        if gives_order:
            text = f"The person asked: {text}"
        # A mark must not hide open work, and nobody can confirm a question.
        bullet = Bullet(text, kind, draft.turns, is_verified, kind == "open", _proof(draft.quote, named))
        found.setdefault(bullet.grip, bullet)
    return list(found.values())


def _proof(quote: str, evidence: Iterable[Evidence]) -> str:
    """Return the ID of the sentence that has a quotation, "" if none has. The last one is no digest's."""
    words = _WORDS.findall(quote.casefold())
    found = [
        sentence
        for one in evidence
        for sentence in sentences(one.everything)
        if len(words) > 1 and " ".join(words) in " ".join(_WORDS.findall(sentence.casefold()))
    ]
    return short_id(found[-1]) if found else ""


def _cited(item: Any, numbers: Mapping[int, tuple[int, str]]) -> list[tuple[int, str]]:
    turns = read_numbers(item.get("turns")) if isinstance(item, dict) else []
    return [numbers[one] for one in turns if one in numbers]


def _read_draft(item: Any, numbers: Mapping[int, tuple[int, str]], evidence: Container[str]) -> _Draft | None:
    if not isinstance(item, dict):
        return None
    text = item.get("text")
    if not isinstance(text, str) or not 0 < len(text) <= MAX_GIVEN:
        return None
    named = _cited(item, numbers)
    # A call may serve several projects: words that rest on two of them belong to neither.
    if not named or any(turn not in evidence for _, turn in named):
        return None
    index = named[0][0]
    turns = tuple(dict.fromkeys(turn for its, turn in named if its == index))[:MAX_TURNS]
    quote = item.get("quote")
    given = next(sentences(quote[:MAX_GIVEN]), "") if isinstance(quote, str) else ""
    return _Draft(index, turns, read_kind(item.get("kind"), LABELS) or "finding", text, given)


def read_kind(value: Any, labels: Mapping[str, str]) -> str:
    """Return the kind in `labels` that `value` names, also by its label or in the plural, or ""."""
    name = value.strip().casefold() if isinstance(value, str) else ""
    found = (kind for kind in labels if name in (kind, f"{kind}s", labels[kind].casefold()))
    return next(found, "")


def read_numbers(value: Any) -> list[int]:
    """Return the numbers in `value`, whether given as `[1, 2]`, `1`, `["1"]`, or `"1, 2"`."""
    if isinstance(value, list):
        items = (item for item in value[:MAX_NUMBERS] if not isinstance(item, list))
        return [number for item in items for number in read_numbers(item)]
    if isinstance(value, int) and not isinstance(value, bool):
        return [value]
    if isinstance(value, float) and value.is_integer():
        return [int(value)]
    if isinstance(value, str):
        return [int(number) for number in _NUMBER.findall(value[:MAX_GIVEN])][:MAX_NUMBERS]
    return []


def clean_title(title: Any, redact: Callable[[str], str]) -> str:
    """Return a model's title as redacted plain text for a heading, without praise and emoji.

    Return "" if nothing is left, or if it gives an order.
    """
    if not isinstance(title, str) or len(title) > MAX_GIVEN:
        return ""
    text = _MARKUP.sub("", _LINK.sub(r"\1", " ".join(redact(title).split())))
    text = clean_sentence(" ".join(EMOJI.sub(" ", text).split()), redact)
    while praise := PRAISE.match(text):
        text = text[praise.end() :]
    text = text.rstrip(" !.:")
    text = redact(one_line(text, MAX_TITLE))
    is_text = any(letter.isalnum() for letter in text)
    return text if is_text and not _ORDER.search(text) else ""
