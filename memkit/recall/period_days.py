"""The days that a phrase or an option names: a calendar week, the last Friday, a day of a month, `3d`."""

from __future__ import annotations

import calendar
import functools
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from memkit.errors import MemkitError
from memkit.state import parse_json
from memkit.text import one_line

# How people name periods, by language: words, and templates of phrases made of them.
#
# The words are in `period_words.json`; `memkit.recall.periods` uses them. A template is a regular expression
# in which {U} stands for a unit, {N} for a number, {W} for a day of the week, {M} for the name of a month,
# {m} for it or its abbreviation, {D} for a day of the month, {O} for the number of a month, {Y} for a year,
# {T} for one of `days`, {S} for a season, and {E} for a weekend. Spaces in it stand for any white space.

Count = Sequence[int]
"""Two numbers, the least and the most that a number can mean: "a few days" is two to seven."""


class Language(NamedTuple):
    """The words of a language.

    `days` maps words to days before today, `bare_days` those that `bare` has. `seasons` are spring, summer,
    autumn, and winter of the north. `units` maps them to day, week, month, year, or hour. `phrases` are
    periods wherever they stand, as pairs of kind and template; `bare` ones only after one of the words `at`
    their kind, or in a question about nothing else; `present` are the words for today and others that need
    a sign (`past`) that the question is about what was done. `since`, `until`, `before`, and `after` stand
    in front of a period, `since_behind` and the like behind it, `join` between two. A phrase does not count
    behind `not_behind` or in front of `not_before`. `generic` are the words of questions about work as
    such.
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
    since_behind: str = ""
    until_behind: str = ""
    before_behind: str = ""
    bare_days: Mapping[str, int] = MappingProxyType({})
    is_spaced: bool = True


_WORDS = parse_json(Path(__file__).with_name("period_words.json").read_text(encoding="utf-8"))

LANGUAGES = tuple(Language(**words) for words in _WORDS.values())


_T = TypeVar("_T")

_AGO = re.compile(r"(\d{1,5})\s*([dwmy])", re.IGNORECASE)
_DIGITS = re.compile(r"[\d-]*")
_UNITS = {"d": "days", "w": "weeks", "m": "months", "y": "years"}


@functools.lru_cache(512)
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def search(pattern: str, text: str) -> re.Match[str] | None:
    """Return where a pattern of words is in `text`, in upper or lower case."""
    return _pattern(pattern).search(text)


def days_of(
    kind: str, named: _Named, language: Language, today: date
) -> tuple[date, date] | None:
    """Return the first and the last day of a phrase, or None if there are no such days."""
    try:
        return _KINDS[kind](named, language, today)
    except (ValueError, OverflowError):  # 31 February, or before the year 1
        return None


def _span(unit: str, day: date) -> tuple[date, date]:
    """Return the day, or the calendar week (ISO: Monday to Sunday), month, or year that `day` is in."""
    if unit == "week":
        monday = day - timedelta(days=day.weekday())
        return monday, monday + timedelta(days=6)
    if unit == "month":
        first = day.replace(day=1)
        return first, _back("month", -1, first) - timedelta(days=1)
    if unit == "year":
        return day.replace(month=1, day=1), day.replace(month=12, day=31)
    return day, day


def _back(unit: str, count: int, day: date) -> date:
    if unit == "hour":
        return day - timedelta(days=-(-count // 24))
    if unit in ("day", "week"):
        return day - timedelta(days=count * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 - count * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    days_in_month = calendar.monthrange(year, month + 1)[1]
    return date(year, month + 1, min(day.day, days_in_month))


def shift(day: date, days: int) -> date:
    """Return `day` so many days later, or the same one at the ends of the calendar."""
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return day


def _unit(named: _Named, language: Language) -> str:
    return _value_of(named["unit"] or "", language.units)


def _count(named: _Named, language: Language) -> tuple[int, int]:
    word = named.get("count")
    if word is None:
        return 1, 1
    if word.isdecimal():
        return int(word), int(word)
    least, most = _value_of(word, language.numbers)
    return least, most


def _value_of(word: str, known: Mapping[str, _T]) -> _T:
    """Return the value of the pattern that `word` matches. Raise `ValueError`."""
    for name, value in known.items():
        if search(f"^(?:{name})$".replace(" ", r"\s+"), word):
            return value
    raise ValueError(word)


def _number(word: str, language: Language) -> int:
    return int(word) if word.isdecimal() else _count({"count": word}, language)[0]


def _index(word: str, names: list[str]) -> int:
    for number, name in enumerate(names):
        if re.fullmatch(name, word, re.IGNORECASE) or re.fullmatch(name, word.title(), re.IGNORECASE):
            return number
    raise ValueError(word)


def _days_kind(named: _Named, language: Language, today: date) -> tuple[date, date]:
    word = named["days"] or ""
    known = {**language.days, language.present: 0, **language.bare_days}
    day = today - timedelta(days=_value_of(word, known))
    return day, day


def _calendar(back: int) -> _Kind:
    def kind(named: _Named, language: Language, today: date) -> tuple[date, date]:
        unit = _unit(named, language)
        return _span(unit, _back(unit, back, _span(unit, today)[0]))

    return kind


def _ago(named: _Named, language: Language, today: date) -> tuple[date, date]:
    (least, most), unit = _count(named, language), _unit(named, language)
    if unit == "hour":
        return _back(unit, most, today), today
    return _span(unit, _back(unit, most, today))[0], _span(unit, _back(unit, least, today))[1]


def _rolling(named: _Named, language: Language, today: date) -> tuple[date, date]:
    return _back(_unit(named, language), _count(named, language)[1], today), today


def _weekday(weeks: int | None) -> _Kind:
    """Return a kind for the last such day before today, or that of so many weeks ago."""

    def kind(named: _Named, language: Language, today: date) -> tuple[date, date]:
        wanted = _index(named["weekday"] or "", list(language.weekdays))
        monday = today - timedelta(days=today.weekday())
        day = today - timedelta(days=(today.weekday() - wanted - 1) % 7 + 1)
        if weeks is not None:
            day = monday + timedelta(days=wanted - 7 * weeks)
        return day, day

    return kind


def _weekend(*, may_be_now: bool) -> _Kind:
    def kind(named: _Named, language: Language, today: date) -> tuple[date, date]:
        saturday = today - timedelta(days=today.weekday()) + timedelta(days=5)
        if not (may_be_now and today >= saturday):
            saturday -= timedelta(days=7)
        return saturday, saturday + timedelta(days=1)

    return kind


def _month_of(named: _Named, language: Language) -> int:
    if order := named.get("order"):
        return _number(order, language)
    word = named["month"] or ""
    long = list(language.months)
    if language.short_months:
        try:
            return _index(word.rstrip("."), long) + 1
        except ValueError:
            return _index(word.rstrip("."), list(language.short_months)) + 1
    return _index(word, long) + 1


def _month(named: _Named, language: Language, today: date) -> tuple[date, date]:
    month = _month_of(named, language)
    if named.get("year"):
        return _span("month", date(int(named["year"] or 0), month, 1))
    found = date(today.year, month, 1)
    return _span("month", found if found <= today else found.replace(year=today.year - 1))


def _date(named: _Named, language: Language, today: date) -> tuple[date, date]:
    month, day = _month_of(named, language), _number(named["day"] or "", language)
    if named.get("year"):
        found = date(int(named["year"] or 0), month, day)
        return found, found
    for year in range(today.year, today.year - 9, -1):  # 29 February
        try:
            found = date(year, month, day)
        except ValueError:
            continue
        if found <= today:
            return found, found
    raise ValueError(day)


def _week_of(named: _Named, language: Language, today: date) -> tuple[date, date]:
    return _span("week", _date(named, language, today)[0])


def _week_number(named: _Named, language: Language, today: date) -> tuple[date, date]:
    week = int(named["week"] or 0)
    year = int(named.get("year") or today.isocalendar().year)
    found = date.fromisocalendar(year, week, 1)
    if found > today and not named.get("year"):
        found = date.fromisocalendar(year - 1, week, 1)
    return _span("week", found)


def _season(named: _Named, language: Language, today: date) -> tuple[date, date]:
    month = 3 * _index(named["season"] or "", list(language.seasons)) + 3
    if named.get("year"):
        first = date(int(named["year"] or 0), month, 1)
    else:
        first = date(today.year, month, 1)
        first = first if first <= today else first.replace(year=today.year - 1)
    return first, _span("month", _back("month", -2, first))[1]


def _year(named: _Named, language: Language, today: date) -> tuple[date, date]:
    return _span("year", date(int(named["year"] or 0), 1, 1))


if TYPE_CHECKING:
    from collections.abc import Callable

    _Named = Mapping[str, str | None]
    _Kind = Callable[[_Named, Language, date], tuple[date, date]]

_KINDS: dict[str, _Kind] = {
    "days": _days_kind,
    "this": _calendar(0),
    "last": _calendar(1),
    "before_last": _calendar(2),
    "ago": _ago,
    "rolling": _rolling,
    "weekday": _weekday(None),
    "weekday_this_week": _weekday(0),
    "weekday_last_week": _weekday(1),
    "weekend": _weekend(may_be_now=False),
    "this_weekend": _weekend(may_be_now=True),
    "month": _month,
    "iso_month": _month,
    "date": _date,
    "iso": _date,
    "week_of": _week_of,
    "week_number": _week_number,
    "year": _year,
    "season": _season,
}


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

        midnight = datetime.combine(today, time.min)
        options = {"PREFER_DATES_FROM": "past", "RELATIVE_BASE": midnight}
        found: datetime | None = parse(words, languages=["en"], settings=options)
        if found is not None:
            return found.date()
    raise MemkitError(
        f"{text!r} is not a day: write 2026-11-20, 3d, 2w, yesterday, or last monday"
    )
