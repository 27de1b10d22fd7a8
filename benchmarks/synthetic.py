"""Generate a memory of any size: day files as the journal writes them, the same for the same seed.

The words follow Zipf's law over some 30,000 forms, made of English roots with prefixes and endings, so that
posting lengths and token counts are like those of real text. Turns have identifiers, paths, tool lines,
lists, and code fences, as in coding sessions.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from itertools import accumulate, islice
from pathlib import Path

SESSIONS_A_DAY = (2, 5)
TURNS_A_SESSION = (4, 14)
FIRST_DAY = datetime.date(2015, 1, 1)
BRANCHES = ("main", "main", "feature/gateway", "fix/login", "chore/deps")

_GLUE = (
    "the a of to and in is it that for we on with this as are be was not at by from which or have "
    "an but if so they will can when all has one now then you there what more no only should does"
).split()
_ROOTS = (
    "port staging gateway build cache test deploy service token error route table index search file "
    "config secret vault night team owner login page migration queue worker lock snapshot vector "
    "memory thread branch merge commit review release version package library module function class "
    "method argument return value string number list object field column row query schema database "
    "connect server client request response header cookie context proxy balance cluster node pod image "
    "container volume network firewall certificate key sign verify encrypt hash digest random seed "
    "sample measure profile trace log metric alert dashboard graph chart report budget cost invoice "
    "payment order customer account user role permission policy control access audit event message "
    "topic stream batch job schedule timer delay retry timeout limit quota rate burst window frame "
    "pixel color layout style theme button form input output parse print format encode decode compress "
    "archive backup restore copy move rename delete create update insert select filter sort group count "
    "total average median range bound edge corner case match pattern rule check guard block allow deny "
    "warn fail pass skip wait start stop pause resume open close read write load save fetch send receive "
    "push pull clone fork patch diff apply revert rebase tag label note comment document guide example"
).split()
_PREFIXES = ("re", "un", "pre", "sub", "over", "multi", "auto", "de", "inter")
_ENDINGS = ("s", "ed", "ing", "er", "ers", "able", "ment", "ness", "less", "ful", "like", "wise")
_TOOLS = ("Read {}", "Edit {}", "Bash `pytest -q {}` → {} passed", "Grep `{}`")
_SUFFIXES = ("py", "yaml", "ts", "sql", "toml", "go")


class Vocabulary:
    """Words and identifiers. The n-th word is n^-1.15 times as frequent as the first (Zipf's law).

    Plain roots come before roots with an ending, and those before rare ones with a prefix.
    """

    def __init__(self, seed: int) -> None:
        chance = random.Random(f"vocabulary {seed}")
        self._roots = sorted(set(_ROOTS))
        usual = {root + ending for root in _ROOTS for ending in _ENDINGS} - {*_GLUE, *_ROOTS}
        odd = {prefix + word for prefix in _PREFIXES for word in (*_ROOTS, *usual)}
        odd -= {*_GLUE, *_ROOTS, *usual}
        groups = [list(self._roots), sorted(usual), sorted(odd)]
        for group in groups:
            chance.shuffle(group)
        self._telling = [word for group in groups for word in group]
        self._words = [*_GLUE, *self._telling]
        self._weights = list(accumulate(rank**-1.15 for rank in range(1, len(self._words) + 1)))

    def words(self, chance: random.Random, count: int) -> list[str]:
        """Return `count` words of running text."""
        return chance.choices(self._words, cum_weights=self._weights, k=count)

    def rare(self, chance: random.Random) -> str:
        """Return a word that characterizes a text."""
        return chance.choice(self._telling)

    def identifier(self, chance: random.Random) -> str:
        """Return a name as in code: snake_case, CamelCase, a path, an error code."""
        one, two = chance.choice(self._roots), chance.choice(self._roots)
        return chance.choice(
            (
                f"{one}_{two}",
                f"{one.title()}{two.title()}",
                f"src/{one}/{two}.{chance.choice(_SUFFIXES)}",
                f"{one.upper()}_{chance.randint(100, 999)}",
            )
        )


class SyntheticMemory:
    """An endless journal. Each day depends only on the seed and the day's number."""

    def __init__(self, seed: int = 0, turns_a_session: tuple[int, int] = TURNS_A_SESSION) -> None:
        self.seed = seed
        self._turns_a_session = turns_a_session
        self._vocabulary = Vocabulary(seed)

    def day(self, number: int) -> tuple[str, str]:
        """Return the name and the text of day file `number`, counted from 0."""
        chance = random.Random(f"day {self.seed} {number}")
        date = (FIRST_DAY + datetime.timedelta(days=number)).isoformat()
        lines = [f"# {date}", ""]
        for session in range(chance.randint(*SESSIONS_A_DAY)):
            minute = 8 * 60 + session * 150
            name = f"{chance.getrandbits(128):032x}"
            branch = chance.choice(BRANCHES)
            title = " ".join(self._vocabulary.words(chance, 4))
            lines += [f"## {_clock(minute)} {title} <!-- session:{name} branch:{branch} -->", ""]
            for turn in range(chance.randint(*self._turns_a_session)):
                lines += [self._turn(chance, minute + turn * 10), ""]
        return f"{date}.md", "\n".join(lines)

    def days(self) -> Iterator[tuple[str, str]]:
        """Yield name and text of all days, without end."""
        number = 0
        while True:
            yield self.day(number)
            number += 1

    def questions(self, days: int, count: int) -> list[str]:
        """Return `count` questions about the first `days` days, some by identifier alone."""
        chance = random.Random(f"questions {self.seed} {days}")
        asked: list[str] = []
        while len(asked) < count:
            lines = self.day(chance.randrange(days))[1].split("\n")
            words = chance.choice([line for line in lines if line.startswith("**Asked**")]).split()
            if len(asked) % 5 == 4:
                asked.append(self._vocabulary.identifier(chance))
            else:
                asked.append(" ".join(words[1 : 1 + chance.randint(5, 12)]))
        return asked

    def _turn(self, chance: random.Random, minute: int) -> str:
        """Return the section of one turn. One in four is short, one in five long."""
        asked = self._sentence(chance, chance.randint(6, 30))
        size = chance.choices((20, 90, 250), weights=(5, 11, 4))[0]
        answer = [self._paragraph(chance, size)]
        if chance.random() < 0.25:
            answer.append("\n".join(f"- {self._sentence(chance, 9)}" for _ in range(5)))
        if chance.random() < 0.3:
            answer.append(self._code(chance))
            answer.append(self._sentence(chance, 15))
        tools = " · ".join(
            chance.choice(_TOOLS).format(self._vocabulary.identifier(chance), chance.randint(1, 99))
            for _ in range(chance.randint(1, 5))
        )
        heading = f"### {_clock(minute)} {asked[:80]} <!-- turn:{chance.getrandbits(32):08x} -->"
        return f"{heading}\n**Asked** {asked}\n\n**Did** {tools}\n\n**Answered** " + "\n\n".join(
            answer
        )

    def _sentence(self, chance: random.Random, count: int) -> str:
        words = self._vocabulary.words(chance, count)
        words[chance.randrange(count)] = self._vocabulary.rare(chance)
        if chance.random() < 0.3:
            words[-1] = f"`{self._vocabulary.identifier(chance)}`"
        return " ".join(words).capitalize() + "."

    def _paragraph(self, chance: random.Random, count: int) -> str:
        sentences, left = [], count
        while left > 0:
            size = chance.randint(6, 20)
            sentences.append(self._sentence(chance, size))
            left -= size
        return " ".join(sentences)

    def _code(self, chance: random.Random) -> str:
        lines = [f"def {chance.choice(_ROOTS)}_{chance.choice(_ROOTS)}(value: int) -> int:"]
        lines += [
            f"    {chance.choice(_ROOTS)} = {self._vocabulary.rare(chance)}(value, {chance.randint(0, 99)})"
            for _ in range(chance.randint(3, 14))
        ]
        return "\n".join(["```python", *lines, "```"])


def write_memory(memory: SyntheticMemory, directory: Path, chunks: int) -> int:
    """Write day files into `directory` until they make at least `chunks` chunks. Return how many days."""
    from memkit.index.chunker import chunk_markdown
    from memkit.settings import ChunkingSettings

    options = ChunkingSettings()
    directory.mkdir(parents=True, exist_ok=True)
    made = 0
    for days, (name, text) in enumerate(memory.days(), start=1):
        made += len(chunk_markdown(text, name, source_hash="", options=options))
        (directory / name).write_text(text, encoding="utf-8")
        if made >= chunks:
            return days
    raise AssertionError("a synthetic memory has no last day")


def write_home(memory: SyntheticMemory, root: Path, home: str, days: int, states: int) -> dict[str, int]:
    """Write `days` days of a project, and an archive for each session. Return the number of each kind.

    The last `states` sessions also have a state file: the daily tidying removes those of older ones.
    """
    from memkit.archive.archive import Archive
    from memkit.archive.turn import ArchivedTurn
    from memkit.capture.sessions import Session, Sessions
    from memkit.conversation.turn import Message
    from memkit.journal.day_file import DayFile
    from memkit.paths import Home

    place, archive = root / ".memkit" / "memory", Archive(Home(home))
    place.mkdir(parents=True)
    turns, kept = 0, dict[str, float]()
    for name, text in islice(memory.days(), days):
        (place / name).write_text(text, encoding="utf-8")
        content, exchanges, session = DayFile(text), dict[str, list[ArchivedTurn]](), ""
        for section in content.sections:
            session = section.pairs.get("session", session)
            if "turn" not in section.pairs:
                continue
            turns += 1
            began = datetime.datetime.fromisoformat(f"{name[:10]} {section.minute}").astimezone()
            asked, _, answered = content.text(section).partition("**Answered** ")
            turn = section.pairs["turn"]
            said = (Message("user", began, asked, (), turn), Message("assistant", began, answered, (), turn))
            exchanges.setdefault(session, []).append(
                ArchivedTurn(turn, said, time=began, project=str(root), cwd=str(root), branch="main")
            )
            kept[session] = began.timestamp()
        for session, own in exchanges.items():
            archive.append(session, own)
    for session, ended in list(kept.items())[-states:]:
        Sessions(Home(home)).save(Session(session, project=str(root), last_event=ended))
    return {"days": days, "sessions": len(kept), "turns": turns}


def _clock(minute: int) -> str:
    return f"{minute // 60 % 24:02d}:{minute % 60:02d}"
