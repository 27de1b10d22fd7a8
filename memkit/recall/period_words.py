"""How people name periods, by language: words, and templates of phrases made of them.

The words are in `period_words.json`; `memkit.recall.periods` uses them. A template is a regular expression
in which {U} stands for a unit, {N} for a number, {W} for a day of the week, {M} for the name of a month,
{m} for it or its abbreviation, {D} for a day of the month, {O} for the number of a month, {Y} for a year,
{T} for one of `days`, {S} for a season, and {E} for a weekend. Spaces in it stand for any white space.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from memkit.state import parse_json

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


_WORDS = parse_json(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))

LANGUAGES = tuple(Language(**words) for words in _WORDS.values())
