"""Periods that questions name."""

from __future__ import annotations

import importlib
import re
import sys
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memkit.errors import MemkitError
from memkit.questions import periods
from memkit.questions.period_days import LANGUAGES, parse_day
from memkit.questions.periods import MOST_CHARACTERS, find_period, is_about_work
from tests.ci import examples

TODAY = date(2026, 11, 25)
"""A Wednesday."""

LAST_WEEK = "2026-11-16 to 2026-11-22"
YESTERDAY = "2026-11-24"
OCTOBER = "2026-10-01 to 2026-10-31"
MARCH = "2026-03-01 to 2026-03-31"

PERIODS = [
    ("what did we do yesterday", YESTERDAY, "what did we do"),
    ("yesterday's work on the gateway", YESTERDAY, "work on the gateway"),
    ("what happened last night", YESTERDAY, "what happened"),
    ("what did we do the day before yesterday", "2026-11-23", "what did we do"),
    ("what have we decided this morning", "2026-11-25", "what have we decided"),
    ("which port did we choose last week?", LAST_WEEK, "which port did we choose?"),
    ("Last week: gateway timeouts", LAST_WEEK, "gateway timeouts"),
    ("what did we do the week before last", "2026-11-09 to 2026-11-15", "what did we do"),
    ("errors over the past two weeks", "2026-11-11 to 2026-11-25", "errors"),
    ("what did we fix in the past month", "2026-10-25 to 2026-11-25", "what did we fix"),
    ("what did we do monday", "2026-11-23", "what did we do"),
    ("what did we do on Wednesday", "2026-11-18", "what did we do"),
    ("last Friday's outage", "2026-11-20", "outage"),
    ("what did we do Thursday last week", "2026-11-19", "what did we do"),
    ("what did we do a couple of days ago", "2026-11-22 to 2026-11-23", "what did we do"),
    ("what did we do 2 hours ago", "2026-11-24 to 2026-11-25", "what did we do"),
    ("what topics did we work on in spring", "2026-03-01 to 2026-05-31", "what topics did we work on in"),
    ("what did we do last summer", "2026-06-01 to 2026-08-31", "what did we do"),
    ("gateway fixes in the winter of 2024", "2024-12-01 to 2025-02-28", "gateway fixes"),
    ("was haben wir im Sommer 2025 gemacht", "2025-06-01 to 2025-08-31", "was haben wir gemacht"),
    ("été 2025 passerelle", "2025-06-01 to 2025-08-31", "passerelle"),
    ("2025年の夏は何をした", "2025-06-01 to 2025-08-31", "何をした"),
    ("what did we do in May", "2026-05-01 to 2026-05-31", "what did we do"),
    ("what did we do on November 3rd", "2026-11-03", "what did we do"),
    ("what did we do between 2026-11-01 and 2026-11-10", "2026-11-01 to 2026-11-10", "what did we do"),
    ("what did we do before last week", "all days until 2026-11-15", "what did we do"),
    ("what did we do in the week of November 4", "2026-11-02 to 2026-11-08", "what did we do"),
    ("was haben wir vorgestern am Gateway geändert", "2026-11-23", "was haben wir am Gateway geändert"),
    ("was war Ende des letzten Monats", "2026-10-21 to 2026-10-31", "was war"),
    ("la décision d'hier sur le port", YESTERDAY, "la décision sur le port"),
    ("qu'est-ce qu'on a décidé la semaine dernière", LAST_WEEK, "qu'est-ce qu'on a décidé"),
    ("qu'a-t-on fait aujourd'hui", "2026-11-25", "qu'a-t-on fait"), ("昨天我们做了什么？", YESTERDAY, "我们做了什么?"),
    ("上个星期我们决定了什么", LAST_WEEK, "我们决定了什么"), ("今天做了什么", "2026-11-25", "做了什么"),
]  # fmt: skip

NARROWED = [
    ("what did we do last year in March", "2025-03-01 to 2025-03-31", "what did we do"),
    ("in March, what did we do last year", "2025-03-01 to 2025-03-31", "what did we do"),
    ("march of the penguins last year", "2025-01-01 to 2025-12-31", "march of the penguins"),
]
"""Phrases that narrow each other, and joined ones, which reach over all of them."""

HINTED = [
    ("what did we do only last week", LAST_WEEK, "what did we do only"),
    ("what did we do the day after yesterday", "2026-11-25", "what did we do"),
]
"""Phrases that were once not looked for, or read as another one."""

RANGES = [
    ("from 20 to 24 July, which tests broke?", "2026-07-20 to 2026-07-24", "which tests broke?"),
    ("which decisions did we make Oct 12-18?", "2026-10-12 to 2026-10-18", "which decisions did we make?"),
    ("what did we do in September or October", "2026-09-01 to 2026-10-31", "what did we do"),
    ("qu'a-t-on fait du 3 au 9", "2026-11-03 to 2026-11-09", "qu'a-t-on fait"),
]
"""What has no month or year has that of the other end, or is the latest one."""

POINTS = [
    ("sessions in the week of the 12th", "2026-11-09 to 2026-11-15", "sessions"),
    ("what happened before October", "all days until 2026-09-30", "what happened"),
    ("was haben wir 2025 alles umgebaut", "2025-01-01 to 2025-12-31", "was haben wir alles umgebaut"),
]

ALONE = {
    "2024-11-01 to 2025-02-28": ["from November 2024 to February"],
    "2024-11-05": ["November 5, 2024"],
    "2025-01-01 to 2025-06-30": ["between Q1 and Q2 2025", "el primer semestre de 2025"],
    "2025-01-01 to 2026-11-22": ["last year and last week"],
    "2025-03-01 to 2025-03-31": ["in March 2025", "2025年3月", "去年3月"],
    "2025-07-01 to 2025-09-30": ["au troisième trimestre 2025"],
    "2025-07-01 to 2025-12-31": ["the second half of last year"],
    "2025-10-01 to 2025-12-31": ["d'octobre à décembre 2025", "the last quarter of 2025"],
    "2025-10-12 to 2025-10-18": ["October 12 – 18, 2025"],
    "2025-11-03": ["am 3.11.2025"],
    "2025-11-03 to 2025-11-09": ["vom 3.-9. November 2025"],
    "2025-11-03 to 2025-11-23": ["weeks 45 to 47 of 2025"],
    "2025-11-10 to 2025-11-16": ["in week 46 last year"],
    "2025-11-25": [
        "this time last year", "heute vor einem Jahr", "l'an dernier à la même époque",
        "por estas fechas el año pasado",
    ],
    "2025-12-01 to 2025-12-31": ["last December"],
    "2025-12-01 to 2026-02-28": ["from December to February"],
    "2026-01-01 to 2026-06-30": ["im ersten Halbjahr"],
    "2026-01-01 to 2026-11-25": ["seit Jahresbeginn", "depuis le début de l'année"],
    "2026-02-21 to 2026-02-28": ["late in February"],
    "2026-03-01 to 2026-11-22": ["from March to last week"],
    "2026-05-01 to 2026-05-31": ["half a year ago"],
    "2026-07-01 to 2026-09-30": ["last quarter"],
    "2026-09-01 to 2026-09-30": ["en setiembre"],
    "2026-09-11 to 2026-10-10": ["from mid-September to early October"],
    "2026-09-21 to 2026-09-30": ["fin septembre"],
    "2026-09-26 to 2026-09-27": ["the last weekend in September"],
    "2026-10-01 to 2026-10-07": ["in der ersten Oktoberwoche"],
    "2026-10-01 to 2026-10-10": ["Anfang Oktober"],
    "2026-10-01 to 2026-10-14": ["the first two weeks of October"],
    "2026-10-01 to 2026-10-15": ["la primera quincena de octubre"],
    "2026-10-01 to 2026-10-31": ["im letzten Monat", "le mois dernier", "el mes pasado", "上个月", "先月"],
    "2026-10-01 to 2026-11-25": ["from October until now", "desde octubre hasta ahora"],
    "2026-10-11 to 2026-10-20": ["a mediados de octubre"],
    "2026-10-12": ["the 12th of last month"],
    "2026-10-28 to 2026-11-03": [
        "between the 28th of October and the 3rd of November", "from the 28th to 3 November",
        "entre le 28 octobre et le 3 novembre",
    ],
    "2026-10-29 to 2026-10-31": ["the last three days of October"],
    "2026-11-01 to 2026-11-03": ["les trois premiers jours de novembre"],
    "2026-11-01 to 2026-11-25": ["since the start of the month"],
    "2026-11-02 to 2026-11-22": ["KW 45 bis 47"],
    "2026-11-03": ["am 3. November"],
    "2026-11-03 to 2026-11-09": ["du 3 au 9 novembre", "del 3 al 9 de noviembre"],
    "2026-11-09 to 2026-11-15": [
        "il y a deux semaines", "hace dos semanas", "上上周", "两周前", "2週間前", "a fortnight ago",
    ],
    "2026-11-10": ["on Tuesday the 10th"],
    "2026-11-11 to 2026-11-25": ["seit zwei Wochen"],
    "2026-11-13": ["le vendredi 13"],
    "2026-11-14 to 2026-11-15": ["the weekend before last"],
    "2026-11-16": ["上周一"],
    "2026-11-16 to 2026-11-18": [
        "last week from Monday to Wednesday", "von Montag bis Mittwoch letzter Woche",
        "de lunes a miércoles de la semana pasada",
    ],
    "2026-11-16 to 2026-11-22": ["la semaine derniere", "la semaine précédente"],
    "2026-11-20": ["2026-11-20", "letzten Freitag", "先週の金曜日", "金曜"],
    "2026-11-20 to 2026-11-23": ["从周五到周一"],
    "2026-11-20 to 2026-11-25": [
        "from Friday to Wednesday", "seit Freitag", "depuis vendredi", "desde el viernes", "周五以来", "金曜日から",
    ],
    "2026-11-21 to 2026-11-22": ["over the weekend", "am Wochenende"],
    "2026-11-22": ["3日前"],
    "2026-11-22 to 2026-11-25": [
        "in den letzten drei Tagen", "les trois derniers jours", "los últimos tres días", "最近三天", "過去3日間",
        "desde hace tres días",
    ],
    "2026-11-23": [
        "avant-hier", "lundi dernier", "anteayer", "前天", "一昨日", "on Monday in the last 3 days",
        "the night before last",
    ],
    "2026-11-23 to 2026-11-24": ["since Monday, until yesterday"],
    "2026-11-23 to 2026-11-25": ["from last Monday on"],
    "2026-11-23 to 2026-11-29": ["this week"],
    "2026-11-24": ["gestern", "hier", "ayer", "昨天", "昨日"],
    "2026-11-24 to 2026-11-25": ["yesterday and today"],
}  # fmt: skip
"""Periods without other words, by their days: narrowed, joined, and once misread ones, ranges, and parts, too."""

PERIODS_ALONE = [(text, days, "") for days, texts in ALONE.items() for text in texts]

UNCLEAR = [
    "between the release and last Friday", "from Monday to the release",
    "what did we do from the release to Friday", "two days before last Friday", "the week after November 3rd",
    "two or three days ago", "between two and three weeks ago", "the same week last year",
    "since before last week", "the first half of last week", "the first days of November",
    "on Tuesday the 12th", "between now and next Friday", "zwischen dem Release und Freitag",
    "von Montag bis zum Release", "vor zwei bis drei Wochen", "entre la release et lundi dernier",
    "le lendemain de vendredi", "del lunes a la release", "dos días antes del viernes",
]
"""Periods of which a part is understood. That part would be another period."""

NO_PERIODS = [
    "which port is between 3 and 9", "from 3 to 9 workers", "pages 3-9 of the manual",
    "on the 12th line of the file", "invoices are due on the 15th", "a quarter of the requests fail",
    "the second half of the file", "which font does h1 use",
    "what is the first day of the week in the calendar", "May we do it", "version 2025.3 to 2025.4",
    "zwischen 3 und 9 Versuchen", "du 3 au 9 essai", "entre 3 y 9 intentos", "winter",
    "Spring Boot beans in Spring", "spring cleaning of the code", "may", "march", "march of the penguins",
    "may we use port 443", "it may fail in some cases", "second", "the second argument of fetch",
    "timeout of 30 seconds", "error on line 5", "python 3.11", "the last commit", "last 3 commits",
    "the last test that failed", "Sunday driver class", "Friday", "monday.com integration", "MondayParser",
    "the cron job runs on Sunday", "next week", "what is planned for tomorrow", "the last week filter",
    "add a today button", "today's date in the header", "how does today() work", "yesterday.py",
    "`yesterday` in the query", 'the text "last week" in the footer', "the label shows 2 days ago",
    "keep logs for the last 30 days", "older than two weeks ago", "this week number", "ago.js",
    "what does the service do today", "deploy before Monday", "in may cases", "api version 2023-06-01",
    "CVE-2026-1120", "2026-11-20T14:02:11Z ERROR gateway", "RFC 2025", "allocate 2048 bytes in 2020 mode",
    "port 2025 is taken", "dec 10 to hex", "chmod oct 755", "since version 2.0", "the past tense of go",
    "day picker component", "time in weeks", "src/last week/report.md", "was passiert hier",
    "der letzte Commit", "morgen früh", "nächste Woche", "vor drei Tests", "le dernier commit",
    "tous les lundis", "la semaine prochaine", "el último commit", "todos los lunes", "la próxima semana",
    "hace falta un test", "一周一次", "每周一发布", "下周", "周日志", "今天的日期格式", "3个月的数据", "今日头条", "毎週月曜日",
    "what did we do yesterday, last year", "来週", "今日の日付", "最後のコミット",
]


@pytest.mark.parametrize(("text", "days", "rest"), [*PERIODS, *NARROWED, *HINTED, *RANGES, *POINTS, *PERIODS_ALONE])
def test_a_period(text: str, days: str, rest: str) -> None:
    found = find_period(text, TODAY)
    assert (found.period.days, found.rest) == (days, rest)
    assert str(found.period).startswith(days)


@pytest.mark.parametrize("text", [*UNCLEAR, *NO_PERIODS])
def test_no_period(text: str) -> None:
    assert find_period(text, TODAY) is None


def test_questions_about_work() -> None:
    for text in (
        "what did we do", "What did you work on?", "was haben wir gemacht", "qu'avons-nous fait ?", "¿qué hicimos?",
        "我们做了什么？", "何をしましたか", "",
    ):  # fmt: skip
        assert is_about_work(text), text
    for text in (
        "gateway", "what did we do about the gateway", "网关的端口", "ポート", "do_it.sh", "on-call rotation",
    ):  # fmt: skip
        assert not is_about_work(text), text


WORDS = sorted(
    {word for language in LANGUAGES for word in [*language.days, *language.weekdays, *language.units, *language.numbers, *language.ranks]}
    | {"between", "and", "the 3rd", "9.", "half", "the month", "mid", "end of", "zwischen", "und", "Anfang", "du", "au", "entre", "el", "y", "last", "since", "from", "to", "ago", "on", "in", "letzte", "vor", "il y a", "hace", "从", "到", "上", "前", "から"}
)


@settings(max_examples=examples(300))
@given(
    st.text(max_size=60)
    | st.lists(st.sampled_from(WORDS) | st.integers(0, 10**7).map(str) | st.dates().map(str), max_size=8).map(" ".join),
    st.dates(),
)
@example("what did we do yesterday on Monday", date.max)
def test_any_text_on_any_day(text: str, today: date) -> None:
    """It never fails, and what is found has its days in order."""
    found = find_period(text, today)
    if found is not None:
        first, last = found.period.since, found.period.until
        assert first or last
        assert first is None or last is None or first <= last
        assert found.period.text
        assert len(found.rest) <= len(text) + 20


@settings(max_examples=examples(200))
@given(
    st.dates(date(1990, 1, 1), date(2090, 1, 1)),
    st.integers(1, 28),
    st.integers(1, 28),
    st.sampled_from([
        "from the {}th to the {}th", "from {} to {} March", "between March {} and {}", "vom {}. bis {}.", "zwischen dem {}. und dem {}. März",
        "du {} au {} mars", "entre le {} et le {}", "del {} al {} de marzo", "entre el {} y el {}",
    ]),
)  # fmt: skip
def test_a_range_has_both_ends(today: date, one: int, other: int, text: str) -> None:
    found = find_period(text.format(one, other), today)
    if one > other and "March {}" in text:
        assert found is None
        return
    first, last = found.period.since, found.period.until
    assert first is not None and last is not None
    assert (first.day, last.day, found.rest) == (one, other, "")
    assert first <= last <= today
    assert last - first < timedelta(31)


@settings(max_examples=examples(100))
@given(st.dates(date(1990, 1, 1), date(2090, 1, 1)))
def test_weeks_begin_on_monday(today: date) -> None:
    for text, weeks in (("this week", 0), ("last week", 1), ("上周", 1), ("two weeks ago", 2)):
        found = find_period(text, today)
        first, last = found.period.since, found.period.until
        assert first.weekday() == 0
        assert last == first + timedelta(days=6)
        assert first <= today - timedelta(weeks=weeks) <= last


@settings(max_examples=examples(100))
@given(st.dates(date(1990, 1, 1), date(2090, 1, 1)), st.integers(0, 6))
def test_a_day_of_the_week_is_the_last_one(today: date, number: int) -> None:
    found = find_period(f"what did we do on {LANGUAGES[0].weekdays[number]}", today)
    assert found.period.since.weekday() == number
    assert timedelta(0) < today - found.period.since <= timedelta(7)


@pytest.mark.parametrize("number", range(len(LANGUAGES)))
def test_every_word_has_a_value(number: int) -> None:
    """Each alternative of a template that names a unit is one of the language's units."""
    language = LANGUAGES[number]
    for _, template in (*language.phrases, *language.bare):
        for group in re.findall(r"\(\?P<unit>([^()]*)\)", template):
            for word in group.replace("?", "").replace("[ée]", "e").split("|"):
                assert any(re.fullmatch(unit, word) for unit in language.units), word


def _texts(pattern: Any) -> list[str]:
    """Return texts of a parsed pattern: each alternative once, with the first one of the parts around it."""
    parts = [_alternatives(str(name), value) for name, value in pattern]
    first = [part[0] for part in parts]
    changed = [
        "".join([*first[:number], other, *first[number + 1 :]])
        for number, part in enumerate(parts)
        for other in part[1:]
    ]
    return ["".join(first), *changed]


def _alternatives(name: str, value: Any) -> list[str]:
    if name == "LITERAL":
        return [chr(value)]
    if name == "RANGE":
        return [chr(value[0])]
    if name == "CATEGORY":
        return [{"CATEGORY_DIGIT": "3", "CATEGORY_SPACE": " "}[str(value)]]
    if name == "IN":
        return [text for part in value for text in _alternatives(str(part[0]), part[1])]
    if name == "BRANCH":
        return [text for branch in value[1] for text in _texts(branch)]
    if name == "SUBPATTERN":
        return _texts(value[3])
    if name == "MAX_REPEAT":
        least, _, repeated = value
        return [""] * (least == 0) + [text * max(1, least) for text in _texts(repeated)]
    assert name in ("ASSERT", "ASSERT_NOT", "AT"), name
    return [""]


@pytest.mark.parametrize("number", range(len(LANGUAGES)))
def test_every_phrase_is_looked_for(number: int) -> None:
    """The fast check in front of all others lets each word of each template pass."""
    parser = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
    for kind, _, pattern in periods._compiled(number):
        if kind in ("number", "now", "part", "unclear"):  # they count only next to a period
            continue
        texts = [text for text in _texts(parser.parse(pattern.pattern, re.I)) if pattern.fullmatch(text)]
        assert texts or "(?!)" in pattern.pattern or "(?<=" in pattern.pattern, pattern.pattern
        assert [text for text in texts if not periods._HINTS[number].search(text)] == [], kind



def test_long_texts() -> None:
    assert find_period("what did we do yesterday", TODAY)
    assert find_period("what did we do yesterday " + "x" * MOST_CHARACTERS, TODAY) is None
    assert find_period("between the 3rd and " * 5_000, TODAY) is None
    assert find_period("した" * 50_000 + "x", TODAY) is None
    assert not is_about_work("した" * 50_000 + "x")
    assert is_about_work("した" * 50_000)


# Days as people name them


FRIDAY = date(2026, 11, 20)
"""A Friday."""

NAMED_DAYS = {
    "2026-11-20": "2026-11-20", " 2024-02-29 ": "2024-02-29", "2030-01-01": "2030-01-01", "0d": "2026-11-20",
    "3d": "2026-11-17", "3 D": "2026-11-17", "2w": "2026-11-06", "6m": "2026-05-20", "1y": "2025-11-20",
    "today": "2026-11-20", "yesterday": "2026-11-19", "Yesterday": "2026-11-19", "3 days ago": "2026-11-17",
    "two  weeks ago": "2026-11-06", "last monday": "2026-11-16", "last week": "2026-11-13", "thursday": "2026-11-19",
    "20 november": "2026-11-20", "25 november": "2025-11-25", "Dec 24": "2025-12-24", "November 5, 2024": "2024-11-05",
}  # fmt: skip
"""This year's November 25 is still to come."""


@pytest.mark.parametrize(("text", "today", "day"), [
    *((text, FRIDAY.isoformat(), day) for text, day in NAMED_DAYS.items()), ("1y", "2024-02-29", "2023-02-28"),
    ("4y", "2024-02-29", "2020-02-29"), ("1m", "2024-03-31", "2024-02-29"),
    ("12m", "2024-02-29", "2023-02-28"), ("1d", "2024-03-01", "2024-02-29"),
    ("yesterday", "2026-01-01", "2025-12-31"), ("feb 29", "2026-11-20", "2024-02-29"),
])  # fmt: skip
def test_a_day(text: str, today: str, day: str) -> None:
    assert parse_day(text, date.fromisoformat(today)) == date.fromisoformat(day)



@pytest.mark.parametrize(
    "text",
    ["", " ", "nonsense", "5", "2025", "d", "3x", "2026-02-30", "2023-02-29", "2026-13-01",
     "2026-11", "11-20", "-", "99999y", "yesterday\nmonday", "\x00", "last sprint", "10000-01-01", "--help", "0" * 10_000],
)  # fmt: skip
def test_an_error_names_valid_days(text: str) -> None:
    with pytest.raises(MemkitError) as caught:
        parse_day(text, FRIDAY)
    assert "is not a day: write 2026-11-20, 3d, 2w, yesterday" in str(caught.value)
    assert "\n" not in str(caught.value)


@settings(max_examples=examples(100))
@given(st.text(max_size=20) | st.from_regex(r"[0-9]{1,6} ?[a-z]{1,6}", fullmatch=True))
def test_any_text_is_a_day_or_none(text: str) -> None:
    try:
        assert type(parse_day(text, FRIDAY)) is date
    except MemkitError as error:
        assert "\n" not in str(error)
