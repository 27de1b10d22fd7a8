"""Pointers at the moment of action: a command failed as before, or a file with decisions is edited.

Both come from what the index and the day files already have. Nothing of it is stored.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memkit import anchors
from memkit.agents.tools import role_of
from memkit.bullets import DECIDED, WrittenBullet, bullet_words, read_bullets
from memkit.hook.entries import (
    HOOK_BYTES,
    OwnEntries,
    did_words,
    heading_words,
    read_days,
    sections_of,
)
from memkit.index.chunk import LEADING_HEADINGS
from memkit.journal.tool_lines import COUNTED, LOOKS, CallLine, names_file, read_call
from memkit.journal.turn_parts import read_parts, read_turn
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.recall.corpus import Corpus
from memkit.recall.pointers import Pointer, quotable_line
from memkit.recall.selection import BulletIndex
from memkit.recall.superseded import SupersededIndex
from memkit.text import one_line

# How an earlier turn got past an error: from its tool calls, as the day file has them.
#
#     **Did** Bash `pytest -q` → failed: ModuleNotFoundError: No module named yaml
#             Bash `pip install pyyaml` → Successfully installed pyyaml-6.0.2
#             Bash `pytest -q` → 12 passed
#
# Two failures are the same if their commands are of one family (`pytest`, `npm run build`), their messages
# have the same words without numbers, paths, and hashes, and neither names another file.

LEAST_WORDS = 2
"""A message with fewer telling words ("1 failed, 2 passed", "Exit code 1") says nothing about the cause."""

STEPS = 2
"""The most steps to show between a failure and the call that got past it: the last ones."""

COMMAND_CHARACTERS = 60
REASON_CHARACTERS = 90

_PREFIX = re.compile(
    r"\A(?:cd\s[^;&|]+(?:&&|;)\s*|(?:export\s+)?[A-Za-z_]\w*=\S*\s+(?:&&\s*)?|(?:time|sudo|env|npx|uvx)\s+"
    r"|(?:uv|poetry|pipenv|bundle)\s+(?:run|exec)\s+(?:-\S+\s+)*|timeout\s+\S+\s+)"
)
_MODULE = re.compile(r"\A(?:\S*/)?python[\d.]*\s+(?:-\S\s+)*-m\s+")
_PROGRAM = re.compile(r"(?:[^\s/]*/)*([\w.+-]+)")
_SUBCOMMAND = re.compile(r"[a-z][a-z0-9:_-]*")
_SCRIPTS = frozenset({"run", "exec", "run-script"})
_MAIN = frozenset({"bash", "node", "python", "ruby", "sh"})
"""Programs that run the file they name."""

_PATH = re.compile(r"(?:[\w.~-]*/)+[\w.@+-]*|\b[\w-]+\.[A-Za-z]{1,5}\b(?!\()")
_HEX = re.compile(r"\b(?:0x[0-9a-f]+|(?=[a-f]*\d)[0-9a-f]{7,})\b", re.IGNORECASE)
_WORDS = re.compile(r"[^\W\d_]{3,}")
_NO_SUBJECT = frozenset(
    """and assert assertionerror cannot code command could error errors exit exited failed failure failures
    fatal for from line not passed process returned status test tests the with""".split()
)


@dataclass(frozen=True, slots=True)
class Signature:
    """What identifies a failure. `reason` is the message as it reads; `file` is the one it names, or ""."""

    reason: str
    message: str
    family: str
    file: str

    @property
    def tells(self) -> bool:
        """Whether the message says anything about the cause."""
        words = set(_WORDS.findall(self.message)) - _NO_SUBJECT
        return len(words) >= LEAST_WORDS

    def matches(self, other: Signature) -> bool:
        """Return whether two failures are the same."""
        is_same = (self.message, self.family) == (other.message, other.family)
        return is_same and (self.file == other.file or not (self.file and other.file))


REASON_CHARACTERS = 300
"""memkit writes less; what a stranger wrote can be of any length."""


def signature(call: CallLine) -> Signature:
    """Return the signature of a shell's call that failed."""
    reason = one_line(call.reason, REASON_CHARACTERS)
    files = [match.rstrip("/").rpartition("/")[2] for match in _PATH.findall(reason)]
    message = _HEX.sub(" ", _PATH.sub(" ", reason.lower()))
    message = " ".join(re.findall(r"[^\W\d_]+", message))
    return Signature(reason, message, family(call.given), next(filter(None, files), ""))


def family(command: str) -> str:
    """Return the program and subcommand that `command` runs first, such as `git push` or `npm run build`."""
    command, count = command.strip(), 1
    while count:
        command, count = _PREFIX.subn("", command, count=1)
        command = command.lstrip()
    command = _MODULE.sub("", command, count=1)
    words = command.split()
    if not words:
        return ""
    program = _PROGRAM.match(words[0])
    name = re.sub(r"^(python|node|ruby)[\d.]+$", r"\1", program[1] if program else words[0])
    rest = [word for word in words[1:4] if not word.startswith("-")]
    if name in _MAIN:
        return " ".join([name, *(one.rpartition("/")[2] for one in rest[:1])])
    if not rest or not _SUBCOMMAND.fullmatch(rest[0]):
        return name
    return " ".join([name, *rest[: 2 if rest[0] in _SCRIPTS else 1]])


def way_past(calls: Sequence[CallLine], met: Signature) -> str:
    """Return how `calls` got past the failure `met`, in one line, or "" if they did not meet or pass it."""
    for number, call in enumerate(calls):
        if role_of(call.name) != "shell" or not call.reason or not met.matches(signature(call)):
            continue
        for last, later in enumerate(calls[number + 1 :], number + 1):
            is_same = role_of(later.name) == "shell" and family(later.given) == met.family
            # Behind a pipe, a failure ends without an error.
            has_passed = not later.has_failed and later.outcome != "no result"
            if is_same and has_passed and not COUNTED.search(later.outcome):
                return _told(call, calls[number + 1 : last], later)
    return ""



def _told(failed: CallLine, between: Sequence[CallLine], passed: CallLine) -> str:
    steps = list(dict.fromkeys(step for call in between if (step := _step(call))))[-STEPS:]
    how = f" after {', then '.join(steps)}" if steps else ""
    again = "it passed" if passed.given == failed.given else f"{_code(passed.given)} passed"
    reason = one_line(failed.reason, REASON_CHARACTERS).rstrip(" .:;")
    return f"{_code(failed.given)} failed: {reason}; {again}{how or ' when it was run again'}"


def _step(call: CallLine) -> str:
    if call.has_failed:
        return ""
    if role_of(call.name) == "edit":
        return f"{call.name} {one_line(call.given, COMMAND_CHARACTERS)}"
    if role_of(call.name) != "shell" or family(call.given).split(" ")[0] in LOOKS:
        return ""
    return _code(call.given)


def _code(command: str) -> str:
    return f"`{one_line(command, COMMAND_CHARACTERS).replace('`', chr(39))}`"


MOST_CANDIDATES = 30
"""The turns to look at: the best matches of an error, or the newest that name a file."""

MOST_FOLLOWING = 4
"""The turns after an error in which a call may have got past it."""

WORDS_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class _Turn:
    heading: str
    bullets: list[WrittenBullet]
    calls: list[CallLine]
    is_own: bool


class Moments:
    """Finds pointers in one corpus for a project. It quotes only what this home wrote."""

    def __init__(self, corpus: Corpus, project: Project, home: Home) -> None:
        self._corpus = corpus
        self._project = project
        self._home = home
        self._own = OwnEntries(home, project.root)
        self._days: dict[str, dict[str, _Turn]] = {}

    def past_failure(
        self, met: Signature, command: str, session: str, shown: Collection[str]
    ) -> Pointer | None:
        """Return how the newest turn outside of `session` and `shown` got past the failure `met`, or None."""
        if not met.tells:
            return None
        scores = self._corpus.match(f"{met.reason} {command}").scores
        scores = np.where(self._corpus.where("kind", lambda kind: kind == "turn"), scores, 0.0)
        best = np.argsort(-scores, kind="stable")[:MOST_CANDIDATES]
        candidates = [n for n in best.tolist() if scores[n] > 0 and self._is_here(n, session)]
        for position in sorted(candidates, key=self._age):
            if self._corpus.shown_id(position) in shown:
                continue
            if not any(met.matches(one) for one in self._failures(position)):
                continue
            if words := self._way_past(position, met):
                return self._pointer(position, words)
        return None

    def decision(self, paths: Collection[str], session: str, shown: Collection[str]) -> Pointer | None:
        """Return the newest decision about a file, which `paths` name relative to the project; or None.

        That is a line `Decided: …` that names the file, or rests on a turn that edited it. One that names
        it comes first. Leave out those of `session` itself, and ids in `shown`.
        """
        held = self._holding(paths)
        found: list[tuple[bool, tuple[int, int], Pointer]] = []
        for position in sorted(np.flatnonzero(held).tolist(), key=self._age)[:MOST_CANDIDATES]:
            if not self._is_here(position, session):
                continue
            for at, words in self._decided(position, paths):
                pointer = self._pointer(at, words)
                if pointer.id not in shown:
                    found.append((_is_named(words, paths), self._age(at), pointer))
        best = min(found, key=lambda one: (not one[0], one[1]), default=None)
        return best[2] if best else None

    def _decided(self, position: int, paths: Collection[str]) -> Iterator[tuple[int, str]]:
        """Yield the decisions that hold in a chunk, or that rest on its turn if that edited the file."""
        corpus, kind = self._corpus, self._corpus.name("kind", position)
        if kind in ("fact", "summary"):
            yield from (one for one in self._decided_in(position) if _is_named(one[1], paths))
        if kind != "turn":
            return
        calls = read_turn(corpus.turn_text(position)).calls
        if not any(call.is_edit and call.is_at(paths) for call in calls):
            return
        bullets = [at for turn in corpus.derived(BulletIndex).turns(position) for at in turn.bullets]
        for at in bullets:
            yield from self._decided_in(at)
        for turn in corpus.turns(position)[:1]:
            one = self._turn(position, turn)
            for bullet in one.bullets if one and not bullets else ():
                words = bullet.text
                if words.startswith(DECIDED) and bullet.is_verified and words in self._own:
                    yield position, words

    def _decided_in(self, position: int) -> Iterator[tuple[int, str]]:
        chunk = self._corpus.chunk(position)
        if chunk.kind == "unverified":
            return
        for line in LEADING_HEADINGS.sub("", chunk.content).splitlines():
            words = bullet_words(line)
            if words.startswith(DECIDED) and words in self._own:
                yield position, words

    def _holding(self, paths: Collection[str]) -> NDArray[np.bool_]:
        corpus = self._corpus
        held = np.zeros(len(corpus), bool)
        for name in {*paths, *(path.rpartition("/")[2] for path in paths)}:
            found = corpus.holders(name)
            # A name with a space or of another script is not one word.
            held |= corpus.match(name).coverage >= 1 if found is None else found
        return held

    def _age(self, position: int) -> tuple[int, int]:
        return -int(self._corpus.columns["day"][position]), -position

    def _is_here(self, position: int, session: str) -> bool:
        is_own_session = bool(session) and self._corpus.name("session", position) == session
        return not is_own_session and self._corpus.root(position) == self._project.root

    def _failures(self, position: int) -> list[Signature]:
        calls = map(read_call, read_parts(self._corpus.turn_text(position)).tools)
        return [signature(call) for call in calls if role_of(call.name) == "shell" and call.reason]

    def _way_past(self, position: int, met: Signature) -> str:
        """Return how a turn, or those that follow it in its session, got past the failure; or ""."""
        calls: list[CallLine] = []
        for at, turn in self._following(position):
            one = self._turn(at, turn)
            if one is None or not one.is_own:
                break
            calls += one.calls
            if words := way_past(calls, met):
                return words
        return ""

    def _following(self, position: int) -> Iterator[tuple[int, str]]:
        """Yield the turn of a chunk and some that follow it in its session, with their positions."""
        corpus, seen = self._corpus, set[str]()
        sessions = corpus.columns["session"]
        mine: list[int] = [position]
        if sessions[position] >= 0:
            mine = np.flatnonzero(sessions == sessions[position]).tolist()
        for at in (n for n in mine if n >= position):
            if corpus.name("kind", at) != "turn":
                continue
            for turn in corpus.turns(at)[:1]:
                if turn not in seen:
                    seen.add(turn)
                    yield at, turn
            if len(seen) > MOST_FOLLOWING:
                return

    def _turn(self, position: int, turn: str) -> _Turn | None:
        source = self._corpus.name("source", position)
        if source not in self._days:
            self._days[source] = dict(self._read(source))
        return self._days[source].get(turn)

    def _read(self, source: str) -> Iterator[tuple[str, _Turn]]:
        for _, text in read_days(self._project, [self._project.name_at(source)], HOOK_BYTES):
            for _, below, turns in sections_of(text):
                bullets: dict[str, list[WrittenBullet]] = {}
                for _, bullet in read_bullets(below.split("\n")):
                    for turn in bullet.turns:
                        bullets.setdefault(turn, []).append(bullet)
                for line, body in turns:
                    turn, heading = anchors.parse(line).get("turn", ""), heading_words(line)
                    is_own = did_words(heading, body) in self._own
                    # A stranger may have written the others, of any form and length.
                    calls = read_parts(f"{line}\n{body}").tools if is_own else []
                    own = bullets.get(turn, [])
                    yield turn, _Turn(heading, own, [read_call(one) for one in calls], is_own)

    def _pointer(self, position: int, words: str) -> Pointer:
        about = np.ones(len(self._corpus), bool)
        is_superseded = self._corpus.derived(SupersededIndex).fact(position, about) is not None
        day, shown = self._corpus.chunk(position).date, quotable_line(words, WORDS_CHARACTERS)
        return Pointer(self._corpus.shown_id(position), day, shown, is_superseded)


def _is_named(words: str, paths: Collection[str]) -> bool:
    return names_file(words, [end for path in paths for end in _ends(path)])


def _ends(path: str) -> Iterator[str]:
    """Yield the path, and its last parts down to the name: a text may name a file by each."""
    parts = path.split("/")
    yield from ("/".join(parts[start:]) for start in range(len(parts)))
