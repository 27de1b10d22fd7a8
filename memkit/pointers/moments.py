"""Pointers at the moment of action: a command failed as before, or a file with decisions is edited.

Both come from what the index and the day files already have. Nothing of it is stored.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from memkit.bullets import DECIDED, WrittenBullet, read_bullets
from memkit.hook.entries import HOOK_BYTES, OwnEntries, did_words, heading_words, read_days
from memkit.journal.sentences import prose_sentences, wording_pattern
from memkit.journal.tool_lines import Call, names_file, read_call
from memkit.journal.turn_parts import read_parts
from memkit.paths import Home
from memkit.pointers.failures import NO_SUBJECT, Failure, Way, way_past
from memkit.pointers.prompts import Pointer, bullet_lines, is_short, own_answer, quotable_line, stated
from memkit.privacy.redact import redact
from memkit.projects.project import Project
from memkit.search.corpus import Corpus
from memkit.search.selection import BulletIndex, SupersededIndex
from memkit.text import one_line

MOST_CANDIDATES = 30
"""The turns to look at: the best matches of an error, or the newest that name a file."""

WORDS_CHARACTERS, TOLD_CHARACTERS, ERROR_CHARACTERS = 400, 140, 1000
_DONE, _UNSOLVED = wording_pattern("done"), wording_pattern("unsolved")
NAMED, RULE, ONLY = 3, 3, 2
"""The weights of a decision that names the file, is a rule, or is of a turn that edited no other file."""

_RULES = wording_pattern("rules", r"(?<!was )(?<!were )(?<!\bI )\b", r"\b")
_LIMITS = wording_pattern("limits", r"\A(?!.*\b(?:had|was|were)\b).*\b", r"\b")
_SAME = re.compile(r"(?:Its?|Th(?:e|is) file)\b")
_BESIDE = re.compile(r"(?i)\.(?:md|rst|txt)$|test")  # what their turn decides is about the code


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
        if not met.matches(met) and not met.others:
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
            found = self._calls_since(position) if way_past(list(calls), met.matches) else []
            answer = self._answer(position, self._corpus.turn_text(position))
            turns = [] if _UNSOLVED.search(answer) else [at for at, _ in found]
            if way := way_past([call for _, call in found], met.matches, turns):
                if way.last is None:
                    unsolved = unsolved or self._pointer(position, way.text)
                    continue
                told = self._told(way, met, dict.fromkeys(at for at, _ in found[way.at : way.last + 1]))
                return self._pointer(position, f"{way.text} ({told})" if told else way.text)
        return unsolved

    def _told(self, way: Way, met: Failure, turns: Collection[int]) -> str:
        """Return what the answers of some turns say of the edits that got past a failure."""
        answers = [self._answer(at, self._corpus.turn_text(at)) for at in turns]
        words = _words(" ".join([met.reason, *(call.given for call in way.calls[way.at : way.last])]))
        said = ["", *prose_sentences("\n\n".join(answers))]
        best = max(said, key=lambda one: (_DONE.search(one) is not None, len(words & _words(one))))
        told = one_line(best.rstrip("."), TOLD_CHARACTERS)
        return told if any(told in answer for answer in answers) else redact(told)

    def decision(self, paths: Collection[str], session: str, shown: Collection[str]) -> Pointer | None:
        """Return what was decided about a file, which `paths` name relative to the project; or None.

        That is a line `Decided: …` or what a turn states: what says most of the file, else the newest. Leave
        out `session` itself, and ids in `shown`.
        """
        best, found, held = 0, None, np.flatnonzero(self._holding(paths)).tolist()
        for position in sorted(held, key=self._age)[:MOST_CANDIDATES]:
            for weight, words in self._decided(position, paths) if self._is_here(position, session) else ():
                pointer = self._pointer(position, words) if weight > best else None
                if pointer and pointer.id not in shown:
                    best, found = weight, pointer
        return found

    def _decided(self, position: int, paths: Collection[str]) -> Iterator[tuple[int, str]]:
        """Yield the decisions about the file in a chunk or in the bullets that its turn proves, weighed."""
        chunk, section = self._corpus.chunk(position), self._corpus.turn_text(position)
        lines = [(line, False) for line in (bullet_lines(chunk) if chunk.kind in ("fact", "summary") else ())]
        calls = read_parts(section).file_calls if chunk.kind == "turn" else []
        edits = [one for one in calls if one.is_edit]
        is_edited = any(one.is_at(paths) for one in edits)
        is_only = is_edited and all(one.is_at(paths) is not bool(_BESIDE.search(one.path)) for one in edits)
        if is_edited:
            bullets = [one for one in self._bullets(position) if not one.is_doubted]
            lines = [(one.text, one.turns[-1:] == (self._corpus.turns(position)[0],)) for one in bullets]
        for line, is_last in lines:
            is_named, is_mine = _is_named(line, paths), is_only and is_last
            if (is_named or is_mine) and line.startswith(DECIDED) and line in self._own:
                yield (NAMED + RULE) * is_named + RULE * (chunk.kind == "fact") + ONLY * is_mine, line
        if chunk.kind == "turn":
            yield from self._stated(section, position, paths, is_only)

    def _stated(
        self, section: str, position: int, paths: Collection[str], is_only: bool
    ) -> Iterator[tuple[int, str]]:
        """Yield what a turn states as a rule about the file that it edited or names: two sentences."""
        from memkit.journal.decisions import decisions  # 0.02 s to compile its table

        folders = [re.escape(folder) for path in paths if "/" in (folder := path.rpartition("/")[0])]
        around = re.compile(rf"(?:{'|'.join(folders) or '(?!)'})/?[*`\s]")
        parts = read_parts(section)
        if not (is_only or _is_named(parts.answer, paths) or around.search(parts.answer)):
            return
        answer = self._answer(position, section)
        decides, is_prose, is_decided = stated(answer), is_short(answer), False
        told, is_named = list[tuple[int, int, str]](), False
        for number, one in enumerate(prose_sentences(answer, WORDS_CHARACTERS)):
            is_same = is_named and _SAME.match(one) is not None
            is_named = is_same or _is_named(one, paths) or around.search(one) is not None
            is_rule = one in decides or _RULES.search(one) is not None
            is_mine = is_only and is_prose and (is_named or not re.search(r"`[^`\s]+/[^`\s]+`", one))
            if (is_named and (is_rule or is_prose)) or (is_rule and is_mine):
                is_decided |= is_rule or _LIMITS.search(one) is not None
                told.append((NAMED * is_named + RULE * is_rule + ONLY * is_mine, -number, one))
        if told and (is_decided or decisions(parts.prompt)):
            told = sorted(sorted(told)[-2:], key=lambda one: -one[1])
            words = " ".join(one for _, _, one in told)
            # Without emphasis, parts of a secret can join.
            yield max(told)[0], words if words in answer else redact(words)

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


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]{3,}", text.lower())) - NO_SUBJECT


def _is_named(words: str, paths: Collection[str]) -> bool:
    """Return whether words name a file by its path, or by the last parts of it."""
    ends = [path.split("/", start)[-1] for path in paths for start in range(path.count("/") + 1)]
    return names_file(words, ends)
