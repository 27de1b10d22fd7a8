"""Pointers at the moment of action: a command failed as before, or a file with decisions is edited.

Both come from what the index and the day files already have. Nothing of it is stored.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from memkit.agents.tools import role_of
from memkit.bullets import DECIDED, WrittenBullet, read_bullets
from memkit.hook.entries import HOOK_BYTES, OwnEntries, did_words, heading_words, read_days
from memkit.journal.sentences import prose_sentences
from memkit.journal.tool_lines import Call, FileCall, names_file, read_call
from memkit.journal.turn_parts import read_parts
from memkit.paths import Home
from memkit.pointers.failures import Failure, Way, way_past
from memkit.pointers.prompts import Pointer, bullet_lines, is_short, own_answer, quotable_line, stated
from memkit.privacy.redact import redact
from memkit.projects.project import Project
from memkit.search.corpus import Corpus
from memkit.search.selection import BulletIndex, SupersededIndex
from memkit.text import one_line

MOST_CANDIDATES = 30
"""The turns to look at: the best matches of an error, or the newest that name a file."""

WORDS_CHARACTERS, TOLD_CHARACTERS, ERROR_CHARACTERS = 400, 140, 1000
_DONE = re.compile(  # what was done, not what was looked at
    r"(?i)\bI(?:['’]ve| have)? (?!can|check|could|did|do|found|gave|guess|look|ran|reproduced|see|saw|sus|suggest"
    r"|think|tried|would)\w+|\bnow\b"
)
_REPORT = re.compile(r"(?i)(?:all|clean|committed|created|done|fixed|it['’]s|now|the (?:fix|problem)|you)\b")
_GOES_ON = re.compile(  # a prompt that has the answer before it carried out
    r"(?i)(?:agreed|build|do (?:it|so|th(?:at|is|e)|both)|fine|go|good|great|implement|make it|ok(?:ay)?"
    r"|perfect|sure|write (?:it|that|the)|ye(?:s|p|ah))\b[^?]{0,50}\Z"
)

MOST_EDITED = 3
"""The most files of a turn that decides about one of them."""


class Moments:
    """Finds pointers in one corpus for a project. It quotes only what this home wrote."""

    def __init__(self, corpus: Corpus, project: Project, home: Home) -> None:
        self._corpus = corpus
        self._project = project
        self._own = OwnEntries(home, project.root)
        self._days: dict[str, list[WrittenBullet]] = {}

    def past_failure(self, met: Failure, session: str, shown: Collection[str]) -> Pointer | None:
        """Return how the newest turn outside of `session` and `shown` got past the failure `met`.

        If none did, return the newest one that met it; else None.
        """
        if not (met.tells or met.others):
            return None
        said = " ".join(one.reason for one in (met, *met.others))
        scores = self._corpus.match(said[:ERROR_CHARACTERS]).scores
        scores = np.where(self._corpus.is_turn, scores, 0.0)
        best = np.argsort(-scores, kind="stable")[:MOST_CANDIDATES]
        candidates = [n for n in best.tolist() if scores[n] > 0 and self._is_here(n, session)]
        candidates = [n for n in candidates if self._corpus.shown_id(n) not in shown]
        unsolved = None
        for position in sorted(candidates, key=self._age):
            calls = map(read_call, read_parts(self._corpus.turn_text(position)).tools)
            found = self._calls_since(position) if way_past(list(calls), met) else []
            if way := way_past([call for _, call in found], met, [at for at, _ in found]):
                if way.last is None:
                    unsolved = unsolved or self._pointer(position, way.text)
                    continue
                told = self._told(way, met, dict.fromkeys(at for at, _ in found[way.at : way.last + 1]))
                return self._pointer(position, f"{way.text} ({told})" if told else way.text)
        return unsolved

    def _told(self, way: Way, met: Failure, turns: Collection[int]) -> str:
        """Return what the answers of some turns say of the edits that got past a failure."""
        steps = way.steps
        if not any(role_of(step.name) == "edit" for step in steps):
            return ""
        answers = [self._answer(at, self._corpus.turn_text(at)) for at in turns]
        words = {*met.words, *re.findall(r"\w{3,}", " ".join(step.given for step in steps).lower())}
        said = [one for answer in answers for one in prose_sentences(answer)]
        said = [one for one in said if _DONE.search(one) or _shared(one, words) > 1]
        told = max(said, key=lambda one: (_DONE.search(one) is not None, _shared(one, words)), default="")
        told = one_line(told.rstrip("."), TOLD_CHARACTERS)
        return told if any(told in answer for answer in answers) else redact(told)

    def decision(self, paths: Collection[str], session: str, shown: Collection[str]) -> Pointer | None:
        """Return the newest decision about a file, which `paths` name relative to the project; or None.

        That is a line `Decided: …` that names the file, or rests on a turn that edited it, or what such a
        turn states. A line outside of turns comes first. Leave out `session` itself, and ids in `shown`.
        """
        newest = sorted(np.flatnonzero(self._holding(paths)).tolist(), key=self._age)[:MOST_CANDIDATES]
        for position in sorted(newest, key=lambda one: self._corpus.name("kind", one) == "turn"):
            for words in self._decided(position, paths) if self._is_here(position, session) else ():
                pointer = self._pointer(position, words)
                if pointer.id not in shown:
                    return pointer
        return None

    def _decided(self, position: int, paths: Collection[str]) -> Iterator[str]:
        """Yield the decisions about the file in a chunk, or in the bullets that its turn proves."""
        chunk, section = self._corpus.chunk(position), self._corpus.turn_text(position)
        said = bullet_lines(chunk) if chunk.kind in ("fact", "summary") else []
        lines = [line for line in said if _is_named(line, paths)]
        edits = [one for one in read_parts(section).file_calls if one.is_edit] if chunk.kind == "turn" else []
        if any(one.is_at(paths) for one in edits):
            lines = [bullet.text for bullet in self._bullets(position) if not bullet.is_doubted]
        yield from (line for line in lines if line.startswith(DECIDED) and line in self._own)
        if chunk.kind == "turn" and (words := self._stated(position, section, edits, paths)):
            yield words

    def _stated(self, position: int, section: str, edits: list[FileCall], paths: Collection[str]) -> str:
        """Return what a turn decides about the file that it edited or names by its path, or "".

        Without words of a decision, it may still explain a file that it only names or that it created, or the
        prompt decides.
        """
        from memkit.journal.decisions import decisions  # 0.02 s to compile its table

        parts, answer = read_parts(section), self._answer(position, section)
        is_named = any(_is_named(span, paths) for span in re.findall(r"`([^`\s]+/[^`\s]+)`", answer))
        is_edited = len({one.path for one in edits}) <= MOST_EDITED and any(one.is_at(paths) for one in edits)
        if not is_named and not is_edited:
            return ""
        words = stated(answer)
        if not words and is_edited and _GOES_ON.match(parts.prompt):
            turns = self._session(position)
            for before in turns[: next(n for n, at in enumerate(turns) if at >= position)][-1:]:
                words = stated(self._answer(before, self._corpus.turn_text(before)))
        is_new = is_edited and any(line.startswith("Write ") for line in parts.tools)
        is_told = is_edited and bool(decisions(parts.prompt))
        explains = (is_new if edits else is_named) and not _REPORT.match(answer)
        is_repair = any(read_call(line).says_why for line in parts.tools)
        if not words and (is_told or explains) and is_short(answer) and not is_repair:
            title = heading_words(self._corpus.chunk(position).heading).partition(" ")[2]
            words = f"{title} → {one_line(answer.replace('**', ''))}"
        # Without emphasis, parts of a secret can join.
        return words if words in answer else redact(words)

    def _answer(self, position: int, section: str) -> str:
        heading = heading_words(self._corpus.chunk(position).heading)
        return own_answer(section, heading, self._own) if read_parts(section).answer else ""

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

    def _session(self, position: int) -> list[int]:
        """Return the last piece of each turn in the session of a chunk, in order."""
        turns = self._corpus.derived(BulletIndex).session_turns(position)
        return [pieces[-1] for pieces in turns] or [position]

    def _calls_since(self, position: int) -> list[tuple[int, Call]]:
        """Return the calls of a turn, and of those that follow it in its session, with their turns."""
        calls: list[tuple[int, Call]] = []
        for at in (n for n in self._session(position) if n >= position):
            section = self._corpus.turn_text(at)
            did = did_words(heading_words(self._corpus.chunk(at).heading), section)
            if did and did not in self._own:  # a stranger may have written it, of any form and length
                return []
            calls += [(at, read_call(line)) for line in read_parts(section).tools]
        return calls

    def _bullets(self, position: int) -> list[WrittenBullet]:
        """Return the bullets in its day file that cite the turn of a chunk. The index leaves out extracts."""
        source = self._corpus.name("source", position)
        if source not in self._days:
            self._days[source] = [
                bullet
                for _, text in read_days(self._project, [self._project.name_at(source)], HOOK_BYTES)
                for _, bullet in read_bullets(text.split("\n"))
            ]
        turns = set(self._corpus.turns(position)[:1])
        return [bullet for bullet in self._days[source] if not turns.isdisjoint(bullet.turns)]

    def _pointer(self, position: int, words: str) -> Pointer:
        about = np.ones(len(self._corpus), bool)
        is_superseded = self._corpus.derived(SupersededIndex).fact(position, about) is not None
        day, shown = self._corpus.chunk(position).date, quotable_line(words, WORDS_CHARACTERS)
        return Pointer(self._corpus.shown_id(position), day, shown, is_superseded)


def _shared(text: str, words: Collection[str]) -> int:
    return len(set(re.findall(r"[^\W_]{3,}", text.lower())).intersection(words))


def _is_named(words: str, paths: Collection[str]) -> bool:
    """Return whether words name a file by its path, or by the last parts of it."""
    ends = [path.split("/", start)[-1] for path in paths for start in range(path.count("/") + 1)]
    return names_file(words, ends)
