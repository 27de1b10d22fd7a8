"""Find the period that a question names: "last week", "am Montag", "il y a deux semaines", "上周".

A phrase counts only if it can hardly mean anything else: "the last commit", "march of the penguins", and the
"last week" filter are no periods. Text in quotation marks or backticks never is.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from memkit.questions.period_days import LANGUAGES, Language, days_of, is_span, search, shift
from memkit.search.results import Period

MOST_CHARACTERS = 200
"""A longer question is a pasted text, whose dates are not those of the question."""

_HINTS = [re.compile(language.hint, re.IGNORECASE) for language in LANGUAGES]
"""Every period of a language has a hint. Hints compile and match faster than the phrases."""

_QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|「[^」]*」|(?<!\w)'[^']*'(?!\w)")
_CODE_BEHIND = r"(?<![\w./\\@#$=<>{\[_:-])(?<!\w['’])"
_CODE_AHEAD = r"(?![\w(=\[{/\\@_-]|[.:][\w/\\]|\s*\d\d?:\d\d)"
_PUNCTUATION = "?!.,;:…\"()¿¡、。？！，；：「」 \t\n-–"
_LOOK_BEHIND = 40
_LINK = r"^\s*,?\s*(?:(?:of the|of|in|on|am|im|des|der|de|du|del|de la|le|la|el|en)\s+|[的の]\s*)?$"
"""The words between a month or weekday and the year or week that it is in."""

_DASH = re.compile(
    r"(?<![\w.-])(\d{1,2}(?:\.|st|nd|rd|th)?(?=-\d{1,2}(?:st|nd|rd|th)?\b(?!-))|mid?|early|late)-", re.I
)
"""The one of "3-9 November" and "mid-October". Elsewhere a hyphen makes one word of two."""

_IN_YEAR = ("month", "date", "week_of", "week_number", "quarter", "half", "season")
_INSIDE = {"weekday": "week", "this_weekend": "week", "day": "month", **dict.fromkeys(_IN_YEAR, "year")}
"""By kind of point, the length of the period that can narrow it."""

_EVERY = {"weekday": 7, "day": 30, **dict.fromkeys(_IN_YEAR, 364)}
"""After how many days such a point comes again. Without a year, it is the latest one, or next to another."""

_ALONE = ("weekday", "season", "month", "year", "iso_month", "whole")
"""Kinds that need no preposition in a question about nothing else, but are none without a question."""

_NUMBERED = ("date", "day", "week_number")
_ENDS = r"^\s*(?:$|[?!,;.:]|(?:about|on|nous|qu|sobre|con|en|sur|pour)\b)"  # behind "del 3 al 9"
_PAST = r"last|past|letzt|vorig|vergangen|derni|pasad|[úu]ltim"
_AND = r"^\s*(?:and|or|und|oder|et|ou|[you]|和|と)\b"


class Found(NamedTuple):
    """A period in a question, and the words that are left of the question."""

    period: Period
    rest: str


class _Point(NamedTuple):
    """Days that words name. If `is_fixed`, other words decided the year, month, or week."""

    start: int
    end: int
    first: date
    last: date
    kind: str
    is_bare: bool
    text: str
    named: Mapping[str, str | None]
    part: Mapping[str, str | None]
    is_fixed: bool = False
    is_range: bool = False

    def on(self, today: date, language: Language) -> _Point | None:
        days = days_of(self.kind, self.named, self.part, language, today)
        return self._replace(first=days[0], last=days[1], is_fixed=True) if days else None

    @property
    def every(self) -> int:
        is_only = self.is_fixed or self.is_range or self.named.get("year")
        return 0 if is_only else _EVERY.get(self.kind, 0)


class _Unclear(Exception):
    """A text names a period, but only a part of it is understood. The argument is its length."""


def find_period(text: str, today: date) -> Found | None:
    """Return the period that a question names, or None. Never raises.

    If only a part of a period is understood, return None: half a range would be wrong.
    """
    if len(text) > MOST_CHARACTERS:
        return None
    text = unicodedata.normalize("NFKC", text)
    whole = text.strip(_PUNCTUATION + "'’“”„")
    shown = _QUOTED.sub(lambda one: "\ufffc" * len(one[0]) if whole not in one[0] else one[0], text)
    shown = _DASH.sub(r"\1–", shown)
    best, most = list[_Phrase](), 0
    for language, hint in zip(LANGUAGES, _HINTS, strict=True):
        if hint.search(text) and (language.is_spaced or not text.isascii()):
            try:
                phrases = _read(shown, language, today)
                size = sum(one.end - one.start for one in phrases)
            except _Unclear as unclear:
                phrases, size = [], unclear.args[0]
            if size > most:
                best, most = phrases, size
    return _joined(best, text) if best else None


def _read(text: str, words: Language, today: date) -> list[_Phrase]:
    points: list[_Point] = []
    for point in sorted(_points(text, words, today), key=lambda one: (one.start, -one.end, one.is_bare)):
        if not points or point.start >= points[-1].end:  # of those that overlap the first, then the longest
            points.append(point)
    points = _with_ranges(_resolved(points, text, words), text, words, today)
    rest = _cut(text, points)
    phrases, behind = [], 0
    for point in points:
        if phrase := _in_context(point, text[behind : point.start], text[point.end :], rest, words, today):
            if _is_half(point, text, words):
                raise _Unclear(phrase.end - phrase.start)
            phrases.append(phrase)
        behind = point.end
    return phrases


def _is_join(words: Language, gap: str, text: str) -> bool:
    """Return whether the text between two points, or the first word of the second one, joins them."""
    word = gap if gap.strip() else f"{text.split(' ')[0]} "
    return search(rf"^\s*(?:{words.join})\s*$", word) is not None


def _with_ranges(points: list[_Point], text: str, words: Language, today: date) -> list[_Point]:
    """Return the points, those that are joined as one. Numbers that are joined to nothing are left out."""
    found = points[:1]
    for point in points[1:]:
        one = found[-1]
        gap = text[one.end : point.start]
        if not _is_join(words, gap, point.text):
            found.append(point)
            continue
        is_and = search(_AND, gap) is not None
        joined = _range(one, point, text[point.end :], words, today)
        if joined and not is_and and not point.is_bare:
            joined = joined._replace(is_bare=False)
        cuts = [*points, point._replace(start=one.end, end=point.start)]
        rest = _cut(text, sorted(cuts, key=lambda cut: (cut.start, cut.end)))
        if joined and _preposition(joined, text[: one.start], rest, words) is not None:
            found[-1] = joined
        elif is_and or "number" in (one.kind, point.kind):
            found.append(point)
        else:
            raise _Unclear(point.end - one.start)
    return [one for one in found if one.kind not in ("number", "now")]


def _range(one: _Point, other: _Point, after: str, words: Language, today: date) -> _Point | None:
    """Return what two joined points reach over, or None if they do not go together.

    A day without a month takes it from the other point, and what has no year is the one next to the other.
    """
    if one.kind == "number" and other.kind in _NUMBERED:
        one = one._replace(kind="day" if other.kind == "date" else other.kind, is_bare=other.is_bare)
    is_same_month = one.kind == "date" and other.kind in ("number", "day")  # not "March 28 to 3"
    if other.kind in ("number", "day") and one.kind in _NUMBERED:
        if other.kind == "number" and one.kind == "day" and not search(_ENDS, after):
            return None
        named = {**one.named, **{name: word for name, word in other.named.items() if word}}
        other = other._replace(kind=one.kind, named=named)
    if "number" in (one.kind, other.kind):
        return None
    last: _Point | None = other
    if other.every and not one.every:
        last = other.on(shift(one.first, other.every), words)
    elif other.every or other.named.get("year"):
        last = other.on(shift(today, other.kind == "weekday"), words)
    first = one.on(last.first, words) if last and one.every else one
    if not first or not last or (is_same_month and last.first - first.first > timedelta(31)):
        return None
    begin, end = min(first.first, last.first), max(first.last, last.last)
    return one._replace(end=other.end, first=begin, last=end, is_range=True)


def is_about_work(text: str) -> bool:
    """Return whether a question has no words but those of questions about work as such, or none."""
    return any(_is_generic(text, one) for one in LANGUAGES)


def without_work_words(text: str, more: Collection[str]) -> str:
    """Return a question without the words of questions about work as such and `more`; all if nothing is left.

    Only in languages with spaces, and in the one with the most of these words.
    """
    tokens = [one for one in text.split() if one.strip(_PUNCTUATION).casefold() not in more]
    spaced = [one for one in LANGUAGES if one.is_spaced]
    kept = (" ".join(one for one in tokens if not _is_generic(one, known)) for known in spaced)
    return min(kept, key=len) or text


class _Phrase(NamedTuple):
    """A period with the words that belong to it: its start and end in the text, and its days."""

    start: int
    end: int
    first: date | None
    last: date | None


def _joined(phrases: list[_Phrase], text: str) -> Found | None:
    first = max((one.first for one in phrases if one.first), default=None)
    last = min((one.last for one in phrases if one.last), default=None)
    if first and last and last < first:
        return None
    named = " ".join(text[one.start : one.end] for one in phrases)
    return Found(Period(first, last, " ".join(named.split())), _tidy(_cut(text, phrases)))


def _resolved(points: list[_Point], text: str, words: Language) -> list[_Point]:
    """Return the points with a month or weekday resolved inside the year or week that stands next to it.

    Two such points become one if only a preposition is between them: "in March last year".
    """
    found = points[:1]
    for point in points[1:]:
        before = found[-1]
        gap = text[before.end : point.start]
        is_join = _is_join(words, gap, point.text)
        inner = None if is_join else _inside(before, point, words) or _inside(point, before, words)
        if inner is None:
            found.append(point)
        elif search(_LINK, gap):
            found[-1] = inner._replace(start=before.start, end=point.end, is_bare=False)
        elif inner.start == before.start:
            found[-1:] = [inner, point]
        else:
            found.append(inner)
    return found


def _inside(inner: _Point, outer: _Point, words: Language) -> _Point | None:
    unit = _INSIDE.get(inner.kind)
    if not unit or outer.part or not is_span(unit, outer.first, outer.last):
        return None
    # The last such day of the week is the last one before the next week.
    found = inner.on(shift(outer.last, inner.kind == "weekday"), words)
    return found if found and outer.first <= found.first <= outer.last else None


def _in_context(
    point: _Point, before: str, after: str, rest: str, words: Language, today: date
) -> _Phrase | None:
    """Return a point with the words that go with it ("since", "on"), or None if it does not count."""
    first: date | None = point.first
    last: date | None = point.last
    end, trailing = point.end, None
    for relation in ("since", "until", "before", "after") if not point.is_range else ():
        sign = _sign(words, getattr(words, relation), before)
        if not sign and (behind := getattr(words, f"{relation}_behind", "")):
            trailing = search(rf"^\s*(?:{behind})", after)
        if sign or trailing:
            break
    else:
        preposition = _preposition(point, before, rest, words)
        if preposition is None:
            return None
        relation, sign = "", preposition
    if relation:
        sign = sign or _sign(words, words.between, before)  # "from Monday on"
        end += trailing.end() if trailing else 0
        is_over = point.part or point.named.get("year") or search(_PAST, point.text)
        may_come = relation != "since" and point.kind in ("weekday", "month") and not is_over
        if may_come and words.is_spaced and not _may_stand_alone(point, rest, words):
            return None  # "before Monday" may be the next one
    if relation == "since":
        last = max(today, point.first)
    elif relation == "after":
        first, last = shift(point.last, 1), max(today, point.last)
    elif relation:
        first, last = None, point.last if relation == "until" else shift(point.first, -1)
    start = point.start - len(sign)
    left = before.removesuffix(sign)
    if words.is_spaced and _sign(words, f"{words.since}|{words.before}|{words.after}", left):
        raise _Unclear(end - start)  # "since before last week"
    if _sign(words, words.not_behind, left) or search(rf"^(?:{words.not_before})", after[end - point.end :]):
        return None
    return _Phrase(start, end, first, last)


def _preposition(point: _Point, before: str, rest: str, words: Language) -> str | None:
    """Return the preposition in front of a point or "", or None if the point does not count without one."""
    at = words.at.get(point.kind) if point.is_bare else "|".join(filter(None, words.at.values()))
    signs = "|".join(filter(None, (at, *((words.between, words.since) if point.is_range else ()))))
    has_own = signs and _begins(point, words, signs)  # in "work on in May", "on" belongs to the verb
    sign = _sign(words, signs, before) if signs and (point.is_range or not has_own) else ""
    counts = sign or has_own or not point.is_bare or at == "" or _may_stand_alone(point, rest, words)
    return sign if counts else None


def _begins(point: _Point, words: Language, signs: str) -> bool:
    return words.is_spaced and search(rf"^(?!the\b)(?:{signs})(?:(?<=['’])|\s)", point.text) is not None


def _is_half(point: _Point, text: str, words: Language) -> bool:
    """Return whether the words next to a point show that the period is another one."""
    if point.is_range or not words.is_spaced:
        return False
    before, after = text[: point.start], text[point.end :]
    if _compiled(LANGUAGES.index(words))[-1][2].search(before, max(0, point.start - _LOOK_BEHIND)):
        return True
    opens = _begins(point, words, words.between) or _sign(words, words.between, before)
    return bool(opens and not search(_AND, after) and search(rf"^\s*(?:{words.join})\s", after))


def _sign(words: Language, pattern: str, before: str) -> str:
    start, space = (r"(?<!\w)", r"(?:(?<=['’])|\s+)") if words.is_spaced else ("", r"\s*")
    found = search(f"{start}(?:{pattern}){space}$", before[-_LOOK_BEHIND:])
    return found[0] if found else ""


def _may_stand_alone(point: _Point, rest: str, words: Language) -> bool:
    """Return whether a bare name is a period without a preposition."""
    if not _is_generic(rest, words):
        return point.kind == "days" and search(words.past, rest) is not None  # today, hier
    is_name = point.kind in _ALONE and words.is_spaced and not (point.is_range and not rest.strip())
    return len(rest.strip()) >= 4 or not is_name


def _points(text: str, words: Language, today: date) -> Iterator[_Point]:
    *patterns, (_, _, part_before), _ = _compiled(LANGUAGES.index(words))
    for kind, is_bare, pattern in patterns:
        for match in pattern.finditer(text):
            start, end = match.span()
            named = match.groupdict()
            part = part_before.search(text, max(0, start - _LOOK_BEHIND), start) if kind != "number" else None
            is_compound = named.get("part") or (kind == "month" and named.get("rank"))  # "Jahresanfang"
            of = part.groupdict() if part else named if is_compound else {}
            days = days_of(kind, named, of, words, today)
            if of and days is None:
                if "rank" not in of or not search(_PAST, of["rank"] or ""):
                    raise _Unclear(end - start)
                # "last year in March" is no part of March.
                part, of, days = None, {}, days_of(kind, named, {}, words, today)
            if days is None or (kind.startswith("whole") and (not of or days[0] > today)):
                continue
            if part:
                start = part.start()
                is_bare = is_bare and (kind == "whole" or (not part["rank"] and days[0] == days[1]))
            yield _Point(start, end, *days, kind, is_bare, text[start:end], named, of)


@functools.cache
def _compiled(number: int) -> list[tuple[str, bool, re.Pattern[str]]]:
    """Return the patterns of a language as (kind, is bare, pattern). The last two stand before one."""
    language = LANGUAGES[number]
    digits = r"\d{1,2})(?!\d" if language.is_spaced else r"\d{1,3}|[一二三四五六七八九十]{1,3}"
    numbers = [r"\d{1,3}", *language.numbers]
    places = {  # day of the month, number of a month, year
        "D": f"(?P<day>{digits})", "O": f"(?P<order>{digits})", "Y": r"(?P<year>(?:19|20)\d\d)(?!\d)",
        "E": f"(?P<weekend>{language.weekend})", "T": _group("days", language.days),
        "U": _group("unit", language.units), "N": _group("count", numbers), "n": _group("more", numbers),
        "W": _group("weekday", language.weekdays), "M": _group("month", language.months),
        "m": _group("month", [*language.months, *language.short_months]),
        "S": _group("season", language.seasons), "R": _group("rank", language.ranks),
        "P": _group("part", language.parts),
    }  # fmt: skip
    bare = [("days", f"(?P<days>{language.present})"), *language.bare]
    near = [("part", language.part), ("unclear", language.unclear)]
    found = []
    for is_bare, templates in ((False, language.phrases), (True, bare), (True, near)):
        for kind, template in templates:
            pattern = re.sub(r"\{([A-Za-z])\}", lambda one: places[one[1]], template)
            if language.is_spaced:
                pattern = pattern.replace(" ?", r"\s*").replace(" ", r"\s+")
                ahead = "$" if kind in ("part", "unclear") else _CODE_AHEAD
                pattern = f"{_CODE_BEHIND}(?:{pattern}){ahead}"
            found.append((kind, is_bare, re.compile(pattern, re.IGNORECASE)))
    return found


def _group(name: str, words: Iterable[str]) -> str:
    longest_first = sorted(words, key=len, reverse=True)
    return f"(?P<{name}>{'|'.join(longest_first)})" if longest_first else "(?!)"


def _is_generic(text: str, language: Language) -> bool:
    words = language.generic
    tokens = [token.strip(_PUNCTUATION + "'’") for token in text.split()]
    if language.is_spaced:
        parts = [part for token in tokens for part in re.split(r"['’-]", token.lower())]
        return all(part in words for part in parts if part)
    known = _group("word", words)
    return not any(re.sub(known, "", re.sub(f"[{re.escape(_PUNCTUATION)}]", "", token)) for token in tokens)


def _cut(text: str, cuts: Sequence[_Point | _Phrase]) -> str:
    edges = [0, *(edge for cut in cuts for edge in (cut.start, cut.end)), len(text)]
    return " ".join(text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True))


def _tidy(text: str) -> str:
    words = " ".join(text.split()).strip(" ,;:、，")
    words = re.sub(r"^(?:[のにはから]+|的)(?=[^\x00-\x7f])", "", words)
    return re.sub(r"\s+([?!.,;:])", r"\1", words)
