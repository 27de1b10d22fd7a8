"""Find the period that a question names: "last week", "am Montag", "il y a deux semaines", "上周".

A phrase counts only if it can hardly mean anything else: "the last commit", "march of the penguins", and the
"last week" filter are no periods. Text in quotation marks or backticks never is.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, NamedTuple

from memkit.recall.period_days import days_of, search, shift

if TYPE_CHECKING:
    from memkit.recall.period_days import Language

MOST_CHARACTERS = 200
"""A longer question is a pasted text, whose dates are not those of the question."""

_HINT = re.compile(
    r"yesterday|today|tonight|ago\b|last|past|previous|week|since|until|(?<!\d)(?:19|20)\d\d|\d\.|\d/\d|"
    r"th(?:is|e) (?:morning|afternoon|evening|month|year)|[a-zé]+(?:day|tag|di)s?\b|mittwoch|sonnabend|"
    r"wochenende|"
    r"\b(?:jan|f[eé]v?[br]|m[aä]e?rz?|marzo|a[pvb]r|ma[iy]|ju[nil]|ao[uû]|aug|ago|sep|seti|o[ck]t|nov|"
    r"d[eéi][cz]|ene|jän)|"
    r"aujourd|heute|gestern|diese|(?:letzt|vergangen|vorig)e|\bvor\b|\bkw(?=\s*\d)|kalenderwoche|"
    r"\bhier\b|avant-hier|\bce(?:t|tte)?\b|derni[eè]re?s?|pass[ée]|pr[eé]c[eé]dent|dimanche|il y a|"
    r"\bhoy\b|ayer|anoche|\bhace\b|pasad|\banterior|[uú]ltim|\best[ea]\b|anteayer|antier|lunes|martes|mi[eé]rcoles|jueves|viernes|"
    r"s[aá]bado|domingo|fin de semana|spring|summer|autumn|automne|\bfall\b|winter|sommer|herbst|fr[uü]h|"
    r"printemps|[ée]t[ée]|hiver|primavera|verano|oto[nñ]o|invierno|[春夏秋冬昨今前上去周週星禮礼曜月日年先末本這这近]|きのう|おととい",
    re.IGNORECASE,
)
"""Every period has one of these. Compiled and searched in less time than the phrases take."""

_QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|「[^」]*」|(?<!\w)'[^']*'(?!\w)")
_CODE_BEHIND = r"(?<![\w./\\@#$=<>{\[_:-])(?<!\w['’])"
_CODE_AHEAD = r"(?![\w(=\[{/\\@_-]|[.:][\w/\\]|\s*\d\d?:\d\d)"
_PUNCTUATION = "?!.,;:…\"()¿¡、。？！，；：「」 \t\n-–"
_LOOK_BEHIND = 40
_LINK = r"^\s*,?\s*(?:(?:of|in|on|am|im|de|du|del|de la|le|la|el|en)\s+|[的の]\s*)?$"
"""What can be between a month or weekday and the year or week that it is in."""

_IN_A_WEEK = ("weekday", "this_weekend")
_IN_A_YEAR = ("month", "date", "week_of", "week_number")


@dataclass(frozen=True, slots=True)
class Period:
    """Days, both inclusive; None is open. `text` are the words that name it, or "" if options do."""

    since: date | None
    until: date | None
    text: str = ""

    @property
    def days(self) -> str:
        """The days to show: `2026-11-16 to 2026-11-22`."""
        if self.since == self.until:
            return str(self.since) if self.since else ""
        if self.since is None:
            return f"all days until {self.until}"
        return f"{self.since} to {self.until}" if self.until else f"all days since {self.since}"

    def __str__(self) -> str:
        says_more = self.text and str(self.since or self.until) not in self.text
        return f"{self.days} ({self.text})" if says_more else self.days


class Found(NamedTuple):
    """A period in a question, and the words that are left of the question."""

    period: Period
    rest: str


class _Point(NamedTuple):
    start: int
    end: int
    first: date
    last: date
    kind: str
    is_bare: bool
    language: Language
    named: Mapping[str, str | None]


def find_period(text: str, today: date) -> Found | None:
    """Return the period that a question names, or None. Never raises."""
    if len(text) > MOST_CHARACTERS or not _HINT.search(text):
        return None
    text = unicodedata.normalize("NFKC", text)
    whole = text.strip(_PUNCTUATION + "'’“”„")
    shown = _QUOTED.sub(lambda one: "\ufffc" * len(one[0]) if whole not in one[0] else one[0], text)
    points = _resolved(_without_overlaps(_points(shown, today)), shown)
    rest = _cut(shown, [(one.start, one.end) for one in points])
    phrases: list[_Phrase] = []
    counted = False
    for number, point in enumerate(points):
        ahead = points[number + 1] if number + 1 < len(points) else None
        behind = points[number - 1] if counted else None
        is_second = behind is not None and _is_join(point, shown[behind.end : point.start])
        is_first = ahead is not None and _is_join(point, shown[point.end : ahead.start])
        phrase = _in_context(point, shown, rest, today, is_first=is_first, is_second=is_second)
        counted = phrase is not None
        if phrase is not None and phrase.is_second:
            phrases[-1] = _union(phrases[-1], phrase, today)
        elif phrase is not None:
            phrases.append(phrase)
    return _joined(phrases, text) if phrases else None


def _is_join(point: _Point, gap: str) -> bool:
    """Return whether the text between two points joins them: "from Monday to Friday"."""
    return search(rf"^\s*(?:{point.language.join})\s*$", gap) is not None


def is_about_work(text: str) -> bool:
    """Return whether a question has no words but those of questions about work as such, or none."""
    from memkit.recall.period_days import LANGUAGES

    return any(_is_generic(text, one) for one in LANGUAGES)


def without_work_words(text: str, more: Collection[str]) -> str:
    """Return a question without the words of questions about work as such, and without `more` words.

    Return the same text if nothing is left. Only in languages with spaces, and in the one with the most of
    these words.
    """
    from memkit.recall.period_days import LANGUAGES

    tokens = [one for one in text.split() if one.strip(_PUNCTUATION).casefold() not in more]
    kept = (
        " ".join(one for one in tokens if not _is_generic(one, known))
        for known in LANGUAGES
        if known.is_spaced
    )
    return min(kept, key=len) or text


class _Phrase(NamedTuple):
    """A period with the words around it that belong to it; a second one is joined to the one before it."""

    start: int
    end: int
    first: date | None
    last: date | None
    is_second: bool


def _joined(phrases: list[_Phrase], text: str) -> Found | None:
    cuts = [(one.start, one.end) for one in phrases]
    first: date | None = None
    last: date | None = None
    for one in phrases:
        first = max(filter(None, (first, one.first)), default=None)
        last = min(filter(None, (last, one.last)), default=None)
    if first and last and last < first:
        return None
    named = " ".join(text[start:end].strip() for start, end in cuts)
    return Found(Period(first, last, " ".join(named.split())), _tidy(_cut(text, cuts)))


def _union(one: _Phrase, other: _Phrase, today: date) -> _Phrase:
    begin, end = other.first, other.last
    if one.first and begin and end and end < one.first and one.first - begin < timedelta(7):
        later = end + timedelta(7)  # "from Friday to Wednesday": the Wednesday after it
        begin, end = (later, later) if later <= today else (begin, end)
    first = min(one.first, begin) if one.first and begin else None
    last = max(one.last, end) if one.last and end else None
    return _Phrase(one.start, other.end, first, last, one.is_second)


def _resolved(points: list[_Point], text: str) -> list[_Point]:
    """Return the points with a month or weekday resolved inside the year or week that stands next to it.

    Two such points become one if only a preposition is between them: "in March last year".
    """
    found: list[_Point] = []
    for point in points:
        before = found[-1] if found else None
        gap = text[before.end : point.start] if before else ""
        inner = None
        if before and not _is_join(before, gap) and not _is_join(point, gap):
            inner = _inside(before, point) or _inside(point, before)
        if before is None or inner is None:
            found.append(point)
        elif search(_LINK, gap):
            found[-1] = inner._replace(start=before.start, end=point.end, is_bare=False)
        elif inner.start == before.start:
            found[-1:] = [inner, point]
        else:
            found.append(inner)
    return found


def _inside(inner: _Point, outer: _Point) -> _Point | None:
    first, last = outer.first, outer.last
    if last - first == timedelta(6) and first.weekday() == 0 and inner.kind in _IN_A_WEEK:
        today = shift(last, inner.kind == "weekday")  # the last such day before it
    elif (first, last) == (date(last.year, 1, 1), date(last.year, 12, 31)) and inner.kind in _IN_A_YEAR:
        today = last
    else:
        return None
    days = days_of(inner.kind, inner.named, inner.language, today)
    if days is None or not first <= days[0] <= last:
        return None
    return inner._replace(first=days[0], last=days[1])


def _in_context(
    point: _Point, text: str, rest: str, today: date, *, is_first: bool, is_second: bool
) -> _Phrase | None:
    """Return a point with the words that go with it ("since", "on"), or None if it does not count.

    It `is_first` or `is_second` if it is joined to the next or the previous one.
    """
    words = point.language
    first: date | None = point.first
    last: date | None = point.last
    start, end = point.start, point.end
    before, after = text[max(0, start - _LOOK_BEHIND) : start], text[end:]
    if is_second:
        return _Phrase(start, end, first, last, is_second)
    if is_first and (opening := _sign(words, words.between, before)):
        return _Phrase(start - len(opening), end, first, last, is_second)
    relation = ""
    for name in ("since", "until", "before", "after"):
        sign = _sign(words, getattr(words, name), before)
        behind = getattr(words, f"{name}_behind", "")
        trailing = search(rf"^\s*(?:{behind})", after) if behind and not sign else None
        is_to_come = name != "since" and point.is_bare and point.kind in ("weekday", "month")
        if (sign or trailing) and not (is_to_come and words.is_spaced):  # "before Monday"
            relation, start = name, start - len(sign)
            end += trailing.end() if trailing else 0
            break
    if relation == "since" and not is_first:
        last = max(today, point.last)
    elif relation == "until":
        first = None
    elif relation == "before":
        first, last = None, shift(point.first, -1)
    elif relation == "after":
        first, last = shift(point.last, 1), max(today, point.last)
    elif not relation:
        at = words.at.get(point.kind) if point.is_bare else "|".join(filter(None, words.at.values()))
        # In "work on in May 2026", "on" belongs to the verb.
        has_sign = at and words.is_spaced and search(rf"^(?!the\b)(?:{at})\s", text[start:end])
        sign = _sign(words, at, before) if at and not has_sign else ""
        start -= len(sign)
        if not sign and point.is_bare and at != "" and not _may_stand_alone(point, rest):
            return None
    before = text[max(0, start - _LOOK_BEHIND) : start]
    if _sign(words, words.not_behind, before) or search(rf"^(?:{words.not_before})", text[end:]):
        return None
    return _Phrase(start, end, first, last, is_second)


def _sign(words: Language, pattern: str, before: str) -> str:
    start, space = (r"(?<!\w)", r"(?:(?<=['’])|\s+)") if words.is_spaced else ("", r"\s*")
    found = search(f"{start}(?:{pattern}){space}$", before)
    return found[0] if found else ""


def _may_stand_alone(point: _Point, rest: str) -> bool:
    """Return whether a bare name is a period without a preposition."""
    words = point.language
    is_generic = _is_generic(rest, words)
    if point.kind == "days":  # today, hier
        return is_generic or search(words.past, rest) is not None
    if point.kind in ("weekday", "date", "season"):
        return is_generic and (len(rest.split()) >= 2 or not words.is_spaced)
    return is_generic and point.kind == "iso"


def _points(text: str, today: date) -> Iterator[_Point]:
    from memkit.recall.period_days import LANGUAGES

    for language in LANGUAGES:
        if language.is_spaced or not text.isascii():
            for kind, is_bare, pattern in _compiled(LANGUAGES.index(language)):
                for match in pattern.finditer(text):
                    days = days_of(kind, match.groupdict(), language, today)
                    if days is not None and match[0].strip():
                        start, end = match.span()
                        yield _Point(start, end, *days, kind, is_bare, language, match.groupdict())


def _without_overlaps(points: Iterator[_Point]) -> list[_Point]:
    """Return the points in order; of those that overlap the first, then the longest."""
    kept: list[_Point] = []
    for one in sorted(points, key=lambda one: (one.start, -one.end, one.is_bare)):
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
    return kept


@functools.cache
def _compiled(number: int) -> list[tuple[str, bool, re.Pattern[str]]]:
    from memkit.recall.period_days import LANGUAGES

    language = LANGUAGES[number]
    digits = r"\d{1,3}" if language.is_spaced else r"\d{1,3}|[一二三四五六七八九十]{1,3}"
    places = {
        "U": _group("unit", language.units),
        "N": _group("count", [r"\d{1,3}", *language.numbers]),
        "W": _group("weekday", language.weekdays),
        "M": _group("month", language.months),
        "m": _group("month", [*language.months, *language.short_months]),
        "D": r"(?P<day>\d{1,2})(?!\d)" if language.is_spaced else rf"(?P<day>{digits})",
        "O": r"(?P<order>\d{1,2})(?!\d)" if language.is_spaced else rf"(?P<order>{digits})",
        "Y": r"(?P<year>(?:19|20)\d\d)(?!\d)",
        "T": _group("days", language.days),
        "E": f"(?:{language.weekend})",
        "S": _group("season", language.seasons),
    }
    bare = [("days", f"(?P<days>{language.present})"), *language.bare]
    found = []
    for is_bare, templates in ((False, language.phrases), (True, bare)):
        for kind, template in templates:
            pattern = re.sub(r"\{([A-Za-z])\}", lambda one: places[one[1]], template)
            if language.is_spaced:
                pattern = pattern.replace(" ?", r"\s*").replace(" ", r"\s+")
                pattern = f"{_CODE_BEHIND}(?:{pattern}){_CODE_AHEAD}"
            found.append((kind, is_bare, re.compile(pattern, re.IGNORECASE)))
    return found


def _group(name: str, words: Iterable[str]) -> str:
    longest_first = sorted(words, key=len, reverse=True)
    return f"(?P<{name}>{'|'.join(longest_first)})" if longest_first else "(?!)"


@functools.cache
def _generic(number: int) -> frozenset[str]:
    from memkit.recall.period_days import LANGUAGES

    return frozenset(LANGUAGES[number].generic)


def _is_generic(text: str, language: Language) -> bool:
    from memkit.recall.period_days import LANGUAGES

    words = _generic(LANGUAGES.index(language))
    tokens = [token.strip(_PUNCTUATION + "'’") for token in text.split()]
    if language.is_spaced:
        parts = [part for token in tokens for part in re.split(r"['’-]", token.lower())]
        return all(part in words for part in parts if part)
    return all(_is_made_of(words, re.sub(f"[{re.escape(_PUNCTUATION)}]", "", token)) for token in tokens)


def _is_made_of(words: frozenset[str], text: str) -> bool:
    """Return whether `text` is a sequence of `words`. A regular expression for it takes exponential time."""
    longest = max(map(len, words))
    ends = {0}
    for start in range(len(text)):
        if start in ends:
            stops = range(start + 1, min(start + longest, len(text)) + 1)
            ends.update(stop for stop in stops if text[start:stop] in words)
    return len(text) in ends


def _cut(text: str, cuts: list[tuple[int, int]]) -> str:
    pieces, at = [], 0
    for start, end in cuts:
        pieces.append(text[at:start])
        at = end
    return " ".join([*pieces, text[at:]])


def _tidy(text: str) -> str:
    words = " ".join(text.split()).strip(" ,;:、，")
    words = re.sub(r"^(?:[のにはから]+|的)(?=[^\x00-\x7f])", "", words)
    return re.sub(r"\s+([?!.,;:])", r"\1", words)
