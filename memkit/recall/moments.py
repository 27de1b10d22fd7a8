"""Pointers at the moment of action: a command failed as before, or a file with decisions is edited.

Both come from what the index and the day files already have. Nothing of it is stored.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memkit import anchors
from memkit.bullets import DECIDED, WrittenBullet, bullet_words, read_bullets
from memkit.hook.entries import (
    HOOK_BYTES,
    OwnEntries,
    answer_of,
    did_words,
    entry_words,
    heading_words,
    read_days,
    sections_of,
)
from memkit.hook.phrases import first_sentence, sentences
from memkit.index.chunk import LEADING_HEADINGS
from memkit.journal.sentences import decisions
from memkit.journal.tool_lines import CallLine, FileCall, names_file, read_call
from memkit.journal.turn_parts import read_parts, read_turn
from memkit.paths import Home
from memkit.privacy.redact import redact
from memkit.projects.project import Project
from memkit.recall.corpus import Corpus
from memkit.recall.failures import Failure, failure_of, is_failure, way_past
from memkit.recall.pointers import Pointer, quotable_line
from memkit.recall.selection import BulletIndex
from memkit.recall.superseded import SupersededIndex
from memkit.text import one_line

MOST_CANDIDATES = 30
"""The turns to look at: the best matches of an error, or the newest that name a file."""

MOST_FOLLOWING = 20
"""The turns after an error in which a call may have got past it."""

WORDS_CHARACTERS = 300


_BOLD = re.compile(r"(?<![\w*])\*\*([^\s*][^*\n]{20,400})(?:\.\*\*|\*\*(?=[,:]? [a-z`]))")
_STATES = re.compile(
    r"""^(?:the\ |our\ |key\ )?(?:choice|decision|direction|rule)\b[^.:]{0,20}:\ | \bfrom\ now\ on\b
    | \bwe(?:['’]ll|\ will)?\ (?:agreed|always|decided|do\ not|don['’]t|keep|never|now\ use|only|stay|store|use)\b
    | \bI(?:['’]ve)?\ (?:chose|chosen|decided|picked|preferred|rejected|ruled\ out|settled|went\ with)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""What a sentence states as decided."""

_DOUBTS = re.compile(
    r"[?:…]$|\b(?:I['’]d|would|could|should (?:I|we)|suggest|propose|recommend|maybe|perhaps|if you|the user)\b",
    re.IGNORECASE,
)
_REPORT = re.compile(r"(?:all|both|done|everything|fixed|now|the fix)\b", re.IGNORECASE)
_NO_PROSE = re.compile(r"^\s*(?:[>|]|[-*+]\s|\\?#|\d+[.)]\s|```)", re.MULTILINE)
_GOES_ON = re.compile(
    r"(?:agreed|build|do (?:it|so|that|the|this|both)|fine|go|good|great|implement|make it|ok(?:ay)?|perfect|sure"
    r"|write (?:it|that|the)|ye(?:s|p|ah))\b[^?]{0,50}\Z",
    re.IGNORECASE,
)
"""A prompt that has the answer before it carried out."""

LEAST_WORDS = 5
SHORT_CHARACTERS = 900
MOST_EDITED = 3
"""A turn that edited more files decided nothing about one of them in particular."""


@dataclass(frozen=True, slots=True)
class _Turn:
    line: str
    body: str
    bullets: list[WrittenBullet]


def stated(answer: str) -> str:
    """Return the sentence of an answer that decides something by its words or, in a short answer, its emphasis."""
    for line in "\n".join(answer.split("```")[::2]).split("\n"):
        if _NO_PROSE.match(line):
            continue
        bold = _BOLD.findall(line) if _is_short(answer) else []
        openings = tuple(one[:30] for one in bold if len(one.split()) >= LEAST_WORDS)
        said = list(sentences(line.replace("**", "")))
        for number, one in enumerate(said):
            is_decided = _STATES.search(one) is not None or one.startswith(openings)
            if is_decided and not _DOUBTS.search(one):
                is_label = len(one.split()) < LEAST_WORDS  # "Decision: Redis."
                return " ".join(said[number : number + 1 + is_label])
    return ""


def _is_short(answer: str) -> bool:
    return len(answer) <= SHORT_CHARACTERS and not _NO_PROSE.search(answer)


class Moments:
    """Finds pointers in one corpus for a project. It quotes only what this home wrote."""

    def __init__(self, corpus: Corpus, project: Project, home: Home) -> None:
        self._corpus = corpus
        self._project = project
        self._home = home
        self._own = OwnEntries(home, project.root)
        self._days: dict[str, dict[str, _Turn]] = {}

    def past_failure(self, met: Failure, session: str, shown: Collection[str]) -> Pointer | None:
        """Return how the newest turn outside of `session` and `shown` got past the failure `met`.

        If none did, return the newest one that met it; else None.
        """
        if not met.tells:
            return None
        scores = self._corpus.match(met.reason).scores
        scores = np.where(self._corpus.where("kind", lambda kind: kind == "turn"), scores, 0.0)
        best = np.argsort(-scores, kind="stable")[:MOST_CANDIDATES]
        candidates = [n for n in best.tolist() if scores[n] > 0 and self._is_here(n, session)]
        unsolved = None
        for position in sorted(candidates, key=self._age):
            if self._corpus.shown_id(position) in shown:
                continue
            calls = map(read_call, read_parts(self._corpus.turn_text(position)).tools)
            if not any(is_failure(one) and met.matches(failure_of(one)) for one in calls):
                continue
            way = way_past(self._calls_since(position), met)
            if way is not None and way.last is not None:
                return self._pointer(position, way.text)
            if way is not None and unsolved is None:
                unsolved = self._pointer(position, way.text)
        return unsolved

    def decision(self, paths: Collection[str], session: str, shown: Collection[str]) -> Pointer | None:
        """Return the newest decision about a file, which `paths` name relative to the project; or None.

        That is a line `Decided: …` that names the file, or rests on a turn that edited it, or what such a
        turn states. A line outside of turns comes first. Leave out `session` itself, and ids in `shown`.
        """
        newest = sorted(np.flatnonzero(self._holding(paths)).tolist(), key=self._age)[:MOST_CANDIDATES]
        # A line outside of turns names the file.
        for position in sorted(newest, key=lambda one: self._corpus.name("kind", one) == "turn"):
            for at, words in self._decided(position, paths) if self._is_here(position, session) else ():
                pointer = self._pointer(at, words)
                if pointer.id not in shown:
                    return pointer
        return None

    def _decided(self, position: int, paths: Collection[str]) -> Iterator[tuple[int, str]]:
        """Yield the decisions that hold in a chunk, or that rest on its turn if that edited the file."""
        corpus, kind = self._corpus, self._corpus.name("kind", position)
        if kind in ("fact", "summary"):
            yield from (one for one in self._decided_in(position) if _is_named(one[1], paths))
        if kind != "turn":
            return
        section = corpus.turn_text(position)
        edits = [one for one in read_turn(section).calls if one.is_edit]
        if any(one.is_at(paths) for one in edits):
            bullets = [at for turn in corpus.derived(BulletIndex).turns(position) for at in turn.bullets]
            for at in bullets:
                yield from self._decided_in(at)
            for turn in corpus.turns(position)[:1]:
                one = self._turn(position, turn)
                for bullet in one.bullets if one and not bullets else ():
                    words = bullet.text
                    if words.startswith(DECIDED) and bullet.is_verified and words in self._own:
                        yield position, words
        if words := self._stated(position, section, edits, paths):
            yield position, words

    def _stated(self, position: int, section: str, edits: list[FileCall], paths: Collection[str]) -> str:
        """Return what a turn decides about the file that it edited or names by its path, or "".

        Without words of a decision, it may still explain a file that it only names or that it created, or the
        prompt decides.
        """
        parts, answer = read_parts(section), self._answer(position, section)
        is_named = any(_is_named(span, paths) for span in re.findall(r"`([^`\s]+/[^`\s]+)`", answer))
        is_edited = len({one.path for one in edits}) <= MOST_EDITED and any(one.is_at(paths) for one in edits)
        if not is_named and not is_edited:
            return ""
        words = stated(answer)
        if not words and is_edited and _GOES_ON.match(parts.prompt):
            before = self._before(position)
            words = stated(self._answer(before, self._corpus.turn_text(before))) if before is not None else ""
        is_new = is_edited and any(line.startswith("Write ") for line in parts.tools)
        is_told = is_edited and bool(decisions(parts.prompt))
        explains = (is_new if edits else is_named) and not _REPORT.match(first_sentence(answer))
        is_repair = any(is_failure(read_call(line)) for line in parts.tools)
        if not words and (is_told or explains) and _is_short(answer) and not is_repair:
            title = heading_words(self._corpus.chunk(position).heading).partition(" ")[2]
            words = f"{title} → {one_line(answer.replace('**', ''))}"
        # Without emphasis, parts of a secret can join.
        return words if words in answer else redact(words)

    def _answer(self, position: int, section: str) -> str:
        """Return the answer of a turn if this home wrote it, else ""."""
        known, answer = answer_of(section, 0), read_parts(section).answer
        is_own = entry_words(heading_words(self._corpus.chunk(position).heading), known) in self._own
        return answer if is_own and known == " ".join(answer.split()) else ""

    def _before(self, position: int) -> int | None:
        """Return the last piece of the turn before that of a chunk in its session, or None."""
        corpus, sessions = self._corpus, self._corpus.columns["session"]
        own = corpus.turns(position)[:1]
        for at in reversed(np.flatnonzero(sessions[:position] == sessions[position]).tolist()):
            if corpus.name("kind", at) == "turn" and corpus.turns(at)[:1] != own:
                return int(at)
        return None

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

    def _calls_since(self, position: int) -> list[CallLine]:
        """Return the calls of a turn, and of those that follow it in its session."""
        calls: list[CallLine] = []
        for at, turn in self._following(position):
            one = self._turn(at, turn)
            # A stranger may have written the others, of any form and length.
            if one is not None and did_words(heading_words(one.line), one.body) in self._own:
                calls += map(read_call, read_parts(f"{one.line}\n{one.body}").tools)
        return calls

    def _following(self, position: int) -> Iterator[tuple[int, str]]:
        """Yield the turn of a chunk and those that follow it in its session, with their positions."""
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
                    turn = anchors.parse(line).get("turn", "")
                    yield turn, _Turn(line, body, bullets.get(turn, []))

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
