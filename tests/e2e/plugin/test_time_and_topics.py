"""Find the way without a query: a history of 14 months, asked when and what about, without and with a model.

The tests share one user. They run in order: those with a model come last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from memkit.timeline import nodes
from tests.e2e.client import ClaudeHome
from tests.e2e.plugin.test_recall import ANSWER, FACT, OUTPUT, asking, remember_the_port
from tests.e2e.plugin.user import MemkitUser, answers_so_far, printed_json
from tests.messages_api import MessagesApi, Reply, Request, text, tool

SUBJECTS = {
    "billing": ("invoice total", "refund of a card payment", "tax rate of an invoice", "dunning letter"),
    "courier": ("parcel label", "delivery route", "tracking number of a parcel", "pickup time"),
    "login": ("password reset", "session cookie", "second factor", "locked account"),
    "sitemap": ("robots file", "crawler budget", "canonical address", "page title"),
}
"""What the sessions of a month are about, in turn."""

LAST_BILLING_DAYS = 40
"""Billing has not been touched for so many days."""

_TODAY = date.today()
_LAST_YEAR = f" of {_TODAY.year - 1}"
WEEK = "what did we do in week 14" + _LAST_YEAR * (_TODAY.isocalendar().week == 14)
TOPICS = "what topics did we work on in spring" + _LAST_YEAR * (3 <= _TODAY.month <= 5)
BILLING = "when did we last touch billing"
"""The questions. In that week and season, the ones before it are meant."""


@dataclass(frozen=True)
class Session:
    """A session of the history: its day, its subject, and its turns by id, each a question and an answer."""

    day: date
    subject: str
    id: str
    turns: dict[str, tuple[str, str]]

    @classmethod
    def make(cls, number: int, today: date) -> Session:
        day = today - timedelta(days=2 * number)
        others = [one for one in SUBJECTS if one != "billing" or 2 * number > LAST_BILLING_DAYS]
        subject = others[(day.year * 12 + day.month) % len(others)]
        turns = {}
        for place in range(3 if number < 12 or is_week_14(day) else 1):
            thing = SUBJECTS[subject][(number + place) % 4]
            answer = f"The {thing} of {subject} is right since part {number}.{place}."
            turns[f"{number:06x}{place:02x}"] = f"Why is the {thing} of {subject} wrong in part {number}.{place}?", answer
        return cls(day, subject, f"{number:08x}-3c55-4a43-9d35-51a4e7a2f8c6", turns)

    def markdown(self) -> str:
        parts = [f"# {self.day}\n\n## 09:00 Work on {self.subject} <!-- session:{self.id} -->"]
        for place, (turn, (asked, answer)) in enumerate(self.turns.items()):
            parts.append(f"### 09:{place:02} {asked} <!-- turn:{turn} -->\n**Asked** {asked}\n**Answered** {answer}")
        return "\n\n".join(parts) + "\n"


def is_week_14(day: date) -> bool:
    return day.isocalendar().week == 14


@dataclass(frozen=True)
class History:
    """A user with 211 sessions in more than 14 months, the newest one a real one of today."""

    user: MemkitUser
    today: date
    sessions: list[Session]

    @property
    def in_week(self) -> list[Session]:
        """Those of the last week 14 that is over, oldest first."""
        weeks = [nodes.week_of(one.day) for one in self.sessions if is_week_14(one.day)]
        last = max(week for week in weeks if week != nodes.week_of(self.today))
        return [one for one in reversed(self.sessions) if nodes.week_of(one.day) == last]

    @property
    def week(self) -> str:
        """The name of that week."""
        return nodes.week_of(self.in_week[0].day)

    @property
    def last_billing(self) -> Session:
        """The newest session on billing."""
        return next(one for one in self.sessions if one.subject == "billing")

    def turn_shown(self, name: str) -> str:
        """The first turn that `memkit show` names for an id."""
        turns: list[str] = json.loads(self.user.run("show", name, "--json"))["turns"]
        return turns[0]


@pytest.fixture(scope="module")
def api() -> Iterator[MessagesApi]:
    with MessagesApi() as api:
        yield api


@pytest.fixture(scope="module")
def past(api: MessagesApi, claude: Path, plugin: Path, models: Path) -> Iterator[History]:
    with ClaudeHome(claude, api.url) as home:
        user = MemkitUser(home, plugin, models)
        user.run("config", "set", "service.idle_minutes", "5")
        user.run("config", "set", "summarize.provider", "none")
        remember_the_port(api, user)
        sessions = [Session.make(number, _TODAY) for number in range(1, 211)]
        for one in sessions:
            (home.project / ".memkit" / "memory" / f"{one.day}.md").write_text(one.markdown())
        user.run("index")
        user.run("topics", "--refresh")
        yield History(user, _TODAY, sessions)
        user.run("service", "stop")


class Walker:
    """The script of a session whose agent goes down the timeline to the original messages."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self.shown: list[str] = []

    def __call__(self, request: Request) -> Reply:
        if not request.from_subagent:
            call = tool("Skill", skill="memkit:memory-recall", args="what did we do first?")
            return [text("Recalled.")] if answers_so_far(request) else [call]
        step = answers_so_far(request)
        self.shown.append(request.last_user_text)
        if step < len(self._names):
            command = f"memkit timeline {self._names[step]}".strip()
            return [tool("Bash", command=f"{command} --json", description="Look")]
        if step == len(self._names):
            turn = printed_json(request.last_user_text)["children"][0]["id"]
            return [tool("Bash", command=f"memkit timeline {turn} --events", description="Look")]
        return [text(ANSWER)]

    def node(self, step: int) -> dict[str, Any]:
        """What the command of a step printed, from 0."""
        return printed_json(self.shown[step + 1])


class Asker:
    """The script of a session that asks the skill each question, whose agent looks at the best evidence.

    `told` has the agent's first search by question, `looked` what it looked at next.
    """

    def __init__(self, commands: dict[str, str]) -> None:
        """`commands` are what the agent runs after the search, by question; `{}` takes the first id found by
        the pattern behind ` # `.
        """
        self._commands = commands
        self.told: dict[str, str] = {}
        self.looked: dict[str, str] = {}

    def __call__(self, request: Request) -> Reply:
        step = answers_so_far(request)
        if not request.from_subagent:
            questions = list(self._commands)
            if step < len(questions):
                return [tool("Skill", skill="memkit:memory-recall", args=questions[step])]
            return [text("\n".join(f"{self.looked[one]}" for one in questions))]
        question = next(one for one in self._commands if one in request.text)
        if step == 0:
            return [tool("Bash", command=asking(question), description="Search")]
        if step == 1:
            self.told[question] = request.last_user_text
            command, _, pattern = self._commands[question].partition(" # ")
            found = re.search(pattern, request.last_user_text)
            assert found, f"no {pattern} in:\n{request.last_user_text}"
            return [tool("Bash", command=command.format(found[1]), description="Look deeper")]
        self.looked[question] = request.last_user_text
        return [text(f"{question}: {self.looked[question]}")]


def ask(api: MessagesApi, past: History, commands: dict[str, str]) -> Asker:
    asker = Asker(commands)
    api.script = asker
    result = past.user.home.run_prompt("Find out when and what.")
    assert result["permission_denials"] == []
    for question in commands:  # the evidence reached the answer
        assert asker.looked[question] in result["result"]
    return asker


def overview_of(past: History, question: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(past.user.run("search", "--json", question))["overview"]
    return found


def test_walking_the_timeline(api: MessagesApi, past: History) -> None:
    """From the years over a history of 14 months to the original exchange, in five commands, unasked."""
    month, week = nodes.month_of(past.today), nodes.week_of(past.today)
    walker = Walker(["", month, week, str(past.today)])
    api.script = walker
    result = past.user.home.run_prompt("What did we do first today?")
    assert result["permission_denials"] == []
    assert "memkit timeline" in walker.shown[0]  # the skill names it
    assert walker.node(0)["node"]["sessions"] > 200
    for step, name in enumerate([month, week, str(past.today)]):
        assert name in [one["id"] for one in walker.node(step)["children"]]
    assert FACT in walker.shown[-1]
    assert OUTPUT in walker.shown[-1]


def check_topics(past: History, told: str, looked: str) -> None:
    """The topics of spring are those of its sessions, with counts, and lead to entries of that time."""
    spring = overview_of(past, TOPICS)
    assert spring["kind"] == "topics"
    first, last = (min(one["first"] for one in spring["topics"]), max(one["last"] for one in spring["topics"]))
    year = first[:4]
    assert f"{year}-03-01" <= first <= last <= f"{year}-05-31"
    held = [one for one in past.sessions if f"{year}-03-01" <= str(one.day) <= f"{year}-05-31"]
    count = sum(len(one.turns) for one in held)
    assert 0 < sum(one["entries"] for one in spring["topics"]) <= count
    subjects = {one.subject for one in held}
    labels = " ".join(one["label"] for one in spring["topics"]).lower()
    assert any(subject in labels for subject in subjects)
    best = spring["topics"][0]
    assert f'<entry topic="{best["id"]}"' in told
    assert f"({best['entries']} entries)" in told
    assert f"{best['id']} · importance" in looked
    assert past.user.run("search", TOPICS).count(best["id"][:8]) == 1


def check_billing(past: History, told: str, looked: str) -> None:
    """The newest of many sessions on billing comes first, and its original words are shown."""
    turn = next(iter(past.last_billing.turns))
    assert sum(one.subject == "billing" for one in past.sessions) > 20
    found = json.loads(past.user.run("search", "--json", BILLING))["results"]
    assert found[0]["date"] == str(past.last_billing.day), (found[0]["kind"], found[0]["content"])
    assert found[0]["turns"] == [turn]
    assert f'date="{past.last_billing.day}"' in told.partition("</entry>")[0]
    assert past.last_billing.turns[turn][1] in looked


FIRST_TOPIC = "memkit topics show {} # <entry topic=\"(\\w+)\""
FIRST_RESULT = "memkit expand {} # <entry id=\"(\\w+)\""


def test_when_and_what_without_a_model(api: MessagesApi, past: History) -> None:
    commands = {WEEK: 'memkit timeline {} # <entry node="([\\w-]+)"', TOPICS: FIRST_TOPIC, BILLING: FIRST_RESULT}
    asker = ask(api, past, commands)
    (node,) = overview_of(past, WEEK)["nodes"]
    assert (node["node"], node["lines"]) == (past.week, [])
    assert [one["session"] for one in overview_of(past, WEEK)["sessions"]] == [one.id for one in past.in_week]
    for one in past.in_week:
        assert f'<entry id="{one.id}" begins="{one.day} 09:00"' in asker.told[WEEK]
        assert str(one.day) in asker.looked[WEEK]
    shown = past.user.run("search", WEEK)
    assert f"memkit timeline {past.week}" in shown
    turn = past.turn_shown(past.in_week[0].id)
    assert turn == next(iter(past.in_week[0].turns))
    check_topics(past, asker.told[TOPICS], asker.looked[TOPICS])
    check_billing(past, asker.told[BILLING], asker.looked[BILLING])


def scripted_model(request: Request) -> Reply:
    """Repeats each answer as a bullet, and each entry as a line of a rollup."""
    material = request.last_user_text
    if "record_bullets" in request.tool_names:
        segments = []
        for number, one in enumerate(re.findall(r"<segment .*?</segment>", material, re.DOTALL), start=1):
            said = re.findall(r'<turn number="(\d+)".*?\*\*Answered\*\* (.*?)\n</turn>', one, re.DOTALL)
            bullets = [{"text": answer, "kind": "finding", "turns": [int(turn)]} for turn, answer in said]
            segments.append({"number": number, "title": "", "bullets": bullets[:6]})
        claims = re.findall(r'<claim number="(\d+)"', material)
        verdicts = [{"number": int(number), "verdict": "supported"} for number in claims]
        return [tool("record_bullets", segments=segments, verdicts=verdicts)]
    assert "record_facts" in request.tool_names
    entries = re.findall(r'<entry number="(\d+)"[^>]*>\n(?:Found: )?(?:.* → )?(.*?)\n</entry>', material)
    facts = [{"text": words, "kind": "fact", "sources": [int(number)]} for number, words in entries]
    return [tool("record_facts", title="Right at last", facts=facts[:8])]


@pytest.fixture
def rolled_up(api: MessagesApi, past: History) -> History:
    """A model has written bullets of the last weeks, the job their rollups, and week 14 was asked for."""
    run = past.user.run
    api.script = scripted_model
    run("config", "set", "keys.anthropic", given="sk-of-the-user")
    run("config", "set", "summarize.provider", "anthropic")
    run("config", "set", "summarize.base_url", past.user.home.environment["ANTHROPIC_BASE_URL"])
    monday = past.today - timedelta(days=past.today.weekday() + 14)
    run("summarize", "--since", str(monday), "--yes")
    assert "2 model calls" in run("jobs", "run", "rollup")
    run("summarize", past.week, "--yes")
    return past


def test_when_and_what_with_a_model(api: MessagesApi, rolled_up: History) -> None:
    past = rolled_up
    closed = past.today - timedelta(days=7)
    day = next(one.day for one in past.sessions if nodes.week_of(one.day) == nodes.week_of(closed))
    week, month = nodes.week_of(day), nodes.month_of(day)
    walker = Walker(["", month, week, str(day)])
    api.script = walker
    assert past.user.home.run_prompt("What did we do then?")["permission_denials"] == []
    (row,) = (one for one in walker.node(1)["children"] if one["id"] == week)
    assert row["title"] == "Right at last"
    assert len(walker.node(2)["node"]["bullets"]) == 8
    assert "is right since part" in walker.node(2)["node"]["bullets"][0]
    (part,) = walker.node(3)["children"]
    assert part["id"] in next(one.turns for one in past.sessions if one.day == day)

    line = 'memkit show {} # <entry id="\\w+" node="[\\w-]+" date="[\\d-]+" citations="(\\w+)'
    asker = ask(api, past, {WEEK: line, TOPICS: FIRST_TOPIC, BILLING: FIRST_RESULT})
    (node,) = overview_of(past, WEEK)["nodes"]
    assert (node["node"], node["title"], len(node["lines"])) == (past.week, "Right at last", 8)
    turns = {turn: answer for one in past.in_week for turn, (_, answer) in one.turns.items()}
    for one in node["lines"]:  # each line is proved by its turn
        (cited,) = one["citations"]
        assert turns[cited] in one["text"]
    assert asker.told[WEEK].index(f'<entry node="{past.week}">Right at last</entry>') < asker.told[WEEK].index("<entry id")
    assert asker.told[WEEK].index("since part") < asker.told[WEEK].index(past.in_week[0].id)
    assert turns[node["lines"][0]["citations"][0]] in asker.looked[WEEK]
    shown = past.user.run("search", WEEK)
    assert shown.index(f"{past.week} Right at last") < shown.index("begun")
    check_topics(past, asker.told[TOPICS], asker.looked[TOPICS])
    check_billing(past, asker.told[BILLING], asker.looked[BILLING])
    (total,) = json.loads(past.user.run("cost", "--by", "model", "--json"))["groups"]
    assert (total["calls"], total["failed"]) == (5, 0)  # bullets, their check, two weeks by the job, and week 14
