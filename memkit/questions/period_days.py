"""The days that a phrase or an option names: a calendar week, the last Friday, a day of a month, `3d`."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from memkit.errors import MemkitError
from memkit.state import parse_json
from memkit.text import one_line

Count = Sequence[int]
"""Two numbers, the least and the most that a number can mean: "a few days" is two to seven."""


class Language(NamedTuple):
    """The words of a language for questions about work, and templates of phrases made of them.

    `days` maps words to days before today, `bare_days` those that `bare` has. `seasons` are spring, summer,
    autumn, and winter of the north. `units` maps them to day, week, month, year, or hour. `phrases` are
    periods wherever they are, as pairs of kind and template; `bare` ones only after one of the words `at`
    their kind, or in a question about nothing else; `present` are the words for today and others that need a
    sign (`past`) that the question is about what was done. `since`, `until`, `before`, and `after` come
    before a period, `since_behind` and the like after it, `join` between the two of a range, which
    `between` opens. A phrase does not count behind `not_behind` or in front of `not_before`. `generic` are
    the words of questions about work as such; `recent`, `topics`, `last_time`, and `open` are the forms of
    questions that `memkit.questions.answering` knows. In `open`, a group has what they are about. `ranks` are
    ordinal numbers, the last one -1; `parts` are thirds and halves, as pairs of how many there are and which
    one. The template `part` names a part of the period that follows it: "the end of", "the first three days
    of". Behind `unclear`, a period is half of one that is not understood: "two days before".
    `periods._compiled` defines {U} and the like in a template, a regular expression. A space in it matches
    any white space.
    """

    days: Mapping[str, int]
    present: str
    past: str
    units: Mapping[str, str]
    numbers: Mapping[str, Count]
    weekdays: Sequence[str]
    months: Sequence[str]
    short_months: Sequence[str]
    weekend: str
    seasons: Sequence[str]
    phrases: Sequence[tuple[str, str]]
    bare: Sequence[tuple[str, str]]
    at: Mapping[str, str]
    since: str
    until: str
    before: str
    after: str
    join: str
    between: str
    not_behind: str
    not_before: str
    generic: Collection[str]
    recent: str
    topics: str
    last_time: str
    open: str
    hint: str = "(?!)"
    since_behind: str = ""
    until_behind: str = ""
    before_behind: str = ""
    bare_days: Mapping[str, int] = MappingProxyType({})
    ranks: Mapping[str, int] = MappingProxyType({})
    parts: Mapping[str, Count] = MappingProxyType({})
    part: str = "(?!)"
    unclear: str = "(?!)"
    is_spaced: bool = True


_WORDS = parse_json(Path(__file__).with_name("period_words.json").read_text(encoding="utf-8"))
LANGUAGES = tuple(Language(**{**words, "generic": frozenset(words["generic"])}) for words in _WORDS.values())

_T = TypeVar("_T")
_Days = tuple[date, date]
_Named = Mapping[str, str | None]
_Kind = Callable[[_Named, Language, date], _Days]

_AGO = re.compile(r"(\d{1,5})\s*([dwmy])", re.IGNORECASE)
_DIGITS = re.compile(r"[\d-]*")
_DAYS = {"day": 1, "week": 7, "fortnight": 14}
_MONTHS = {"month": 1, "quarter": 3, "half": 6, "year": 12}
_PLURAL = "(?:days|weeks|months|tagen?|wochen|monaten?|jours|semaines|d[ií]as|semanas|meses)$"
_UNITS = {"d": "days", "w": "weeks", "m": "months", "y": "years"}


_compiled = lru_cache(512)(partial(re.compile, flags=re.IGNORECASE))


def search(pattern: str, text: str) -> re.Match[str] | None:
    """Return where a pattern of words is in `text`, in upper or lower case."""
    return _compiled(pattern).search(text)


def days_of(kind: str, named: _Named, part: _Named, language: Language, today: date) -> _Days | None:
    """Return the first and the last day of a phrase, or of a part of it, or None if there are none."""
    try:
        days = _KINDS[kind](named, language, today)
        days = _part_of(*days, part, language) if part else days
    except (ValueError, OverflowError):  # 31 February, or before the year 1
        return None
    # "Monday the 12th" is none if the 12th was another day.
    is_other = named.get("weekday") and days[0].weekday() != _index(named["weekday"], language.weekdays)
    return None if is_other else days


def _part_of(first: date, last: date, part: _Named, language: Language) -> _Days:
    """Return "the end of", "the second half of", "the first three days of", or "the last Friday of" days."""
    length = (last - first).days + 1
    if name := part.get("part"):
        pieces, rank = _value_of(name, language.parts)
        if length == 1 and pieces == 3:  # "early on Monday"
            return first, last
        unit = "month" if length > 31 else "day"
        size = round(length / 30.4) if length > 31 else 30 if length >= 28 else length
        if size % pieces and (size, pieces) != (7, 3):
            raise ValueError(name)
        step = size // pieces
        end = last if rank == pieces else shift(_back(unit, -step * rank, first), -1)
        return _back(unit, -step * (rank - 1), first), end
    rank = _value_of(part["rank"], language.ranks)
    if part.get("weekday") or part.get("weekend"):
        wanted = _index(part["weekday"], language.weekdays) if part["weekday"] else 5
        begin = shift(first, (wanted - first.weekday()) % 7 + 7 * (rank - 1))
        begin = begin if rank > 0 else shift(last, -((last.weekday() - wanted) % 7))
        end = shift(begin, not part["weekday"])
    else:
        unit, word = _value_of(part["unit"], language.units), part.get("count") or part.get("more")
        count = _count(word, language)[1]
        begin = _back(unit, -count * (rank - 1), first) if rank > 0 else _back(unit, count, shift(last, 1))
        end = shift(_back(unit, -count * rank, first), -1) if rank > 0 else last
        is_vague = not word and search(_PLURAL, part["unit"] or "")
        if is_vague or unit == "hour" or (end > last and unit != "week"):
            raise ValueError(rank)
        end = min(end, last)
    if not first <= begin <= last:
        raise ValueError(rank)
    return begin, end


def _span(unit: str, day: date) -> _Days:
    """Return the day, or the calendar week (ISO: Monday to Sunday), month, quarter, … that `day` is in."""
    if unit in ("week", "fortnight"):
        monday = day - timedelta(days=day.weekday())
        return monday, monday + timedelta(days=6)
    if unit not in _MONTHS:
        return day, day
    size = _MONTHS[unit]
    first = date(day.year, (day.month - 1) // size * size + 1, 1)
    return first, shift(_back(unit, -1, first), -1)


def is_span(unit: str, first: date, last: date) -> bool:
    """Return whether these are the first and last day of a calendar week, month, quarter, …"""
    with suppress(ValueError, OverflowError):  # the calendar ends
        return _span(unit, first) == (first, last)
    return False


def _back(unit: str, count: int, day: date) -> date:
    if unit == "hour":
        return day - timedelta(days=-(-count // 24))
    if unit not in _MONTHS:
        return day - timedelta(days=count * _DAYS[unit])
    year, month = divmod(day.year * 12 + day.month - 1 - count * _MONTHS[unit], 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def shift(day: date, days: int) -> date:
    """Return the day `days` after `day`, or `day` itself at the ends of the calendar."""
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return day


def _count(word: str | None, language: Language) -> Count:
    if word is None:
        return 1, 1
    return (int(word), int(word)) if word.isdecimal() else _value_of(word, language.numbers)


def _value_of(word: str | None, known: Mapping[str, _T]) -> _T:
    """Return the value of the pattern that `word` matches. Raise `ValueError`."""
    for name, value in known.items():
        if search(f"^(?:{name})$".replace(" ?", r"\s*").replace(" ", r"\s+"), word or ""):
            return value
    raise ValueError(word)


def _index(word: str | None, names: Sequence[str]) -> int:
    return _value_of(word, {name: number for number, name in enumerate(names)})


def _in_days(named: _Named, language: Language, today: date) -> _Days:
    known = {**language.days, language.present: 0, **language.bare_days}
    return _span("day", today - timedelta(days=_value_of(named["days"], known)))


def _calendar(named: _Named, language: Language, today: date, *, count: int) -> _Days:
    unit = _value_of(named["unit"], language.units)
    return _span(unit, _back(unit, count, _span(unit, today)[0]))


def _ago(named: _Named, language: Language, today: date) -> _Days:
    least, most = _count(named.get("count") or named.get("more"), language)
    unit = _value_of(named["unit"], language.units)
    if unit == "half":
        least, most, unit = 6 * least, 6 * most, "month"
    if unit == "hour":
        return _back(unit, most, today), today
    return _span(unit, _back(unit, most, today))[0], _span(unit, _back(unit, least, today))[1]


def _rolling(named: _Named, language: Language, today: date) -> _Days:
    count = _count(named.get("count") or named.get("more"), language)[1]
    return _back(_value_of(named["unit"], language.units), count, today), today


def _weekday(named: _Named, language: Language, today: date, *, weeks: int = -1, more: int = 0) -> _Days:
    """Return the last such day before today, or `more` days earlier, or the one `weeks` weeks ago."""
    back = today.weekday() - _index(named["weekday"], language.weekdays)
    return _span("day", today - timedelta(days=back + 7 * weeks if weeks >= 0 else (back - 1) % 7 + 1 + more))


def _weekend(named: _Named, language: Language, today: date, *, weeks: int) -> _Days:
    """Return the weekend of this week if it has begun (0), the last one (1), or the one before it (2)."""
    is_ahead = weeks == 0 and today.weekday() < 5
    saturday = today + timedelta(days=5 - today.weekday() - 7 * (weeks + is_ahead))
    return saturday, saturday + timedelta(days=1)


def _month_of(named: _Named, language: Language) -> int:
    if order := named.get("order"):
        return _count(order, language)[0]
    name = (named["month"] or "").rstrip(".").title()  # "may" alone is a verb
    return _index(name, [*language.months, *language.short_months]) % 12 + 1


def _latest(named: _Named, today: date, first_of: Callable[[int], date]) -> date:
    """Return the first day in the named year, or else in the latest year that has such a day before today."""
    if year := named.get("year"):
        return first_of(int(year))
    for number in range(today.year, today.year - 9, -1):  # 29 February
        with suppress(ValueError):
            if (found := first_of(number)) <= today:
                return found
    raise ValueError(today)


def _month(named: _Named, language: Language, today: date) -> _Days:
    month = _month_of(named, language)
    return _span("month", _latest(named, today, lambda year: date(year, month, 1)))


def _date(named: _Named, language: Language, today: date) -> _Days:
    if not (named.get("month") or named.get("order")):
        return _day(named, language, today)
    month, word = _month_of(named, language), named.get("day")
    day = _count(word, language)[0] if word else _value_of(named["rank"], language.ranks)
    return _span("day", _latest(named, today, lambda year: date(year, month, day)))


def _day(named: _Named, language: Language, today: date) -> _Days:
    number, month = _count(named["day"] or "", language)[0], today.replace(day=1)
    for count in range(3):  # the month before it may have no such day
        with suppress(ValueError):
            if (found := _back("month", count, month).replace(day=number)) <= today:
                return found, found
    raise ValueError(number)


def _week_number(named: _Named, language: Language, today: date) -> _Days:
    week = int(named.get("day") or named.get("week") or 0)
    thursday = shift(today, 3 - today.weekday())  # a week is in the year of its Thursday
    return _span("week", _latest(named, thursday, lambda year: date.fromisocalendar(year, week, 1)))


def _season(named: _Named, language: Language, today: date) -> _Days:
    month = 3 * _index(named["season"], language.seasons) + 3
    first = _latest(named, today, lambda year: date(year, month, 1))
    return first, _span("month", _back("month", -2, first))[1]


def _nth(named: _Named, language: Language, today: date, *, unit: str) -> _Days:
    order, size = named.get("order"), _MONTHS[unit]
    number = int(order) if order else _value_of(named["rank"], language.ranks)
    month = size * (number % (12 // size + 1) - 1) + 1  # the last one is -1
    return _span(unit, _latest(named, today, lambda year: date(year, month, 1)))


_KINDS: dict[str, _Kind] = {
    "days": _in_days, "ago": _ago, "rolling": _rolling,
    **dict.fromkeys(("now", "number"), lambda named, language, today: (today, today)),
    "exactly": lambda named, language, today: _span("day", _rolling(named, language, today)[0]),
    "this": partial(_calendar, count=0), "whole": partial(_calendar, count=0),
    "last": partial(_calendar, count=1), "before_last": partial(_calendar, count=2),
    "weekday": _weekday, "weekday_before_last": partial(_weekday, more=7),
    "weekday_this_week": partial(_weekday, weeks=0), "weekday_last_week": partial(_weekday, weeks=1),
    "this_weekend": partial(_weekend, weeks=0), "weekend": partial(_weekend, weeks=1),
    "weekend_before_last": partial(_weekend, weeks=2),
    "date": _date, "iso": _date, "day": _day, "month": _month, "iso_month": _month, "season": _season,
    "week_of": lambda named, language, today: _span("week", _date(named, language, today)[0]),
    **dict.fromkeys(("year", "whole_year"), lambda named, *_: _span("year", date(int(named["year"]), 1, 1))),
    "quarter": partial(_nth, unit="quarter"), "half": partial(_nth, unit="half"), "week_number": _week_number,
}  # fmt: skip


def parse_day(text: str, today: date) -> date:
    """Return the day that a user named: `2026-11-20`, `3d`, `2w`, `yesterday`, `last monday`.

    If a name fits two days, return the past one. Raise `MemkitError` for anything else.
    """
    words = one_line(text)
    with suppress(ValueError):
        return date.fromisoformat(words)
    if ago := _AGO.fullmatch(words):
        words = f"{ago[1]} {_UNITS[ago[2].lower()]} ago"
    if not _DIGITS.fullmatch(words):  # dateparser would guess: 2026-13-01 as 13 January
        from dateparser import parse  # slow to import

        options = {"PREFER_DATES_FROM": "past", "RELATIVE_BASE": datetime.combine(today, time.min)}
        found: datetime | None = parse(words, languages=["en"], settings=options)
        if found is not None:
            return found.date()
    raise MemkitError(f"{text!r} is not a day: write 2026-11-20, 3d, 2w, yesterday, or last monday")
