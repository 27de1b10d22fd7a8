"""Depth L0, pointers: what came of earlier work on the subject of a prompt, in one line each next to it.

A pointer leads to the latest turn on the subject in its session, and quotes what came of that turn.
"""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Callable, Collection, Container, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from memkit.bullets import bullet_words
from memkit.hook.entries import OwnEntries, answer_of, entry_words, heading_words
from memkit.hook.phrases import first_sentence, sentences
from memkit.index.chunk import BULLETS, LEADING_HEADINGS, Chunk
from memkit.journal.decisions import decisions
from memkit.journal.outcomes import statements
from memkit.journal.sessions import outcome_of
from memkit.journal.turn_parts import COMPACTION_TITLE, TurnParts, read_parts
from memkit.paths import Home
from memkit.privacy.redact import redact
from memkit.projects.team_files import is_trusted
from memkit.search.corrections import ChangedTurns, goes_on, tells_change
from memkit.search.fusion import Scores
from memkit.search.ranking import Searcher
from memkit.search.results import SearchRequest
from memkit.search.selection import BulletIndex, Place, SupersededIndex
from memkit.search.shared_by import shared_by
from memkit.subject import subject_of
from memkit.text import defuse, one_line, printable

MOST_POINTERS = 3
MOST_RECENT = 2
MOST_CHARACTERS = 700
TEXT_CHARACTERS = 200
TITLE_CHARACTERS = 50

LEAST_RELEVANCE = 0.3
RELEVANCE_STEP = 0.03
SMALL_MEMORY = 64
MOST_RELEVANCE = 0.5
"""The relevance that the best match must have: `LEAST_RELEVANCE` in a memory of up to `SMALL_MEMORY` chunks,
and `RELEVANCE_STEP` more with each doubling, up to `MOST_RELEVANCE`.

A larger memory has better matches by chance: with 61 chunks, 5 % of the questions about something else reach
0.28, with 4,300 chunks 0.43. Its own questions reach about the same in both. `docs/benchmarks.md` has the
figures.
"""

ONE_WORD_RELEVANCE = 0.6
"""The same for a prompt with one word that names a subject: many entries have any one word."""



class Form(NamedTuple):
    """How much more relevance the form of a prompt asks of an entry, and how many of its words.

    "What do we do" and "which port is it" ask what was said. A task ("add a test for the port") often shares
    words with a memory that does not help, and so does a question that any book answers ("explain …").
    """

    relevance: float
    words: int


OURS, QUESTION, TASK, GENERAL = Form(-0.09, 0), Form(-0.04, 1), Form(0.17, 2), Form(0.4, 2)

LEAST_COSINE, COSINE_STEP = 0.42, 0.02
"""An entry with this cosine needs no word of a question. To a task, it must be a decision."""

USUAL_WEIGHT = 0.3
"""The rarity of a word that nearly every entry has, such as the year."""

QUESTION_WORDS, QUESTION_CHARACTERS = 60, 500
"""The most words of a question, and where to look for its form. A longer one is a task, with pasted text."""

_OURS = re.compile(
    r"""\b(?:we|our|ours|us|wir|uns|unser\w*|nous|notre|nos|nosotros|nuestr\w+|did|decided|agreed|discussed
    |last\ time)\b|\bwe['’]|私たち|我々|我们""",
    re.IGNORECASE | re.VERBOSE,
)
_ASKS = re.compile(
    r"""\A\W*(?:(?:and|so|but|ok|until|since|from|in|for|to|at|after|before|with|by|under)\s+){0,3}
    (?:which|where|who|whom|whose|when|why|what|how|is|are|was|were|did|does|do|has|have|had|can|may|must|should
    |dont|doesnt|welche\w*|wo|warum|wieso|wer|wann|was|wie|quel\w*|où|pourquoi|qui|quand|comment|qué|cuál\w*
    |dónde|por\ qué|quién\w*|cuándo|cómo)\b|\b(?:remind\ me|last\ time|as\ (?:agreed|discussed))\b""",
    re.IGNORECASE | re.VERBOSE,
)
_PROPOSES = re.compile(
    r"""\A\W*(?:(?:and|so|but|ok|okay|oh)\W+)?(?:can|could|should|shall|may)\s+we\s+
    (?:(?:also|just|maybe|not|now|please|then)\s+)*(\w+)""",
    re.IGNORECASE | re.VERBOSE,
)
_GENERAL = re.compile(
    r"""\A\W*(?:(?:and|so|but|ok|please)\s+)?(?:explain|show|how\ to
    |how\ (?:do|does|can|could|would|should)\ (?:i|you|one|someone)
    |what(?:\ is|\ are|['’]?s)\ (?:an?|the\ difference\ between|next|up|on)|how\ (?:is|are|does)\ an?
    |(?:is|are|can|does)\ \w+\ .*\b(?:faster|better|slower|in\ parallel)\b
    |why\ (?:is|are|does|do)\ .*\bin\ this
    |what\ (?:do|does)\b.*\b(?:do|mean)|(?:can|could|would|will)\ you(?!\ (?:remind|tell))
    |should\ i|is\ (?:this|that|it)|(?:why|where|what|how)\ (?:is|are|does|do|did)\ (?:this|that|it|these|my)
    |.*\b(?:in\ general|by\ default|pros\ and\ cons|on\ my\ machine|best\ practice)
    |wie\ kann|was\ ist\ ein\w*|comment\ (?:faire|puis)|cómo\ puedo)\b""",
    re.IGNORECASE | re.VERBOSE,
)

WORDS_RELEVANCE = 0.3
"""This much more is needed without vectors, where relevance is only the share of the prompt's words."""

NEAR_BEST = 0.7
"""The least share of the best relevance that the other pointers have."""

SAME_SUBJECT = 0.5
STILL_RELEVANT, STILL_ALIKE = 0.8, 0.7
"""A later turn of the session changes one with this share of its relevance, and this cosine."""

STILL_ASKED = 0.4
"""A turn of another session replaces a turn that it changes if it has this share of its relevance."""

ANSWERS = (0.33, SAME_SUBJECT)
"""The next prompts of a session that may settle a question, by their least cosine."""

NAMED_WORDS = 2
"""The words of the prompt or of the title that a quote without a title must have."""

DECIDED_WEIGHT = 1.5
"""The weight, in words, of a sentence that decides something."""

LEAST_WORDS = 3
"""A shorter prompt ("go on", "yes, please") does not name a subject."""

_CANDIDATES = 16
_BOLD = re.compile(r"(?<![\w*])\*\*([^\s*][^*\n]{20,400})(?:\.\*\*|\*\*(?=[,:]? [a-z`]))")
_STATES = re.compile(
    r"(?i)^(?:the |our |key )?"
    r"(?:choice|conclusion|decision|direction|rule|entscheidung|décision|decisión)\b[^.:]{0,20}: "
    r"|\bfrom now on\b"
    r"|\bwe(?:['’]ll| will)? (?:agreed|always|decided|do(?: no|n['’])t|keep|never|only|stay|store|use)\b"
    r"|\bI(?:['’]ve)? (?:chose|chosen|decided|picked|preferred|rejected|ruled out|settled|went with)\b"
)
_DOUBTS = re.compile(
    r"(?i)[?:…]$|\b(?:I['’]d|could|if you|maybe|perhaps|propose|recommend|should (?:I|we)|suggest|would)\b"
)
_OFFERS = re.compile(
    r"(?i)\?\s*\Z|\b(?:alternatives?|choices?|either|options?|question|sensible|I['’]d|would|could)\b"
)
_NO_PROSE = re.compile(r"^\s*(?:[>|]|[-*+]\s|\\?#|\d+[.)]\s|```)", re.MULTILINE)

STATED_WORDS, SHORT_CHARACTERS = 5, 900
"""The least words of a sentence that says by itself what was decided, and the length of a short answer."""

_LEFT_OUT = "characters left out"
_QUOTES = re.compile("[“”„‟″‶〝〞〟＂❝❞«»]")
OPENING = "Earlier work on this, quoted:"
_CLOSING = "`memkit expand ID` shows an entry."

OwnOf = Callable[[str, Chunk], Container[str] | None]
"""Returns the words that may be quoted of a chunk in the project at a root, or None for any."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """One remembered entry: its short id, its day, what it says in one line, and whether that still holds."""

    id: str
    date: str
    text: str
    is_superseded: bool = False


def find_pointers(
    searcher: Searcher,
    prompt: str,
    session: str,
    shown: Collection[str],
    own_of: OwnOf = lambda root, chunk: None,
    recent: Sequence[str] = (),
) -> list[Pointer]:
    """Return at most three pointers on the subject of `prompt`, best first; for most prompts none.

    Leave out entries of `session` itself, ids in `shown`, and sessions of which `recent` has `MOST_RECENT`
    ids.
    """
    corpus, subject = searcher.corpus, subject_of(prompt)
    if len(prompt.split()) < LEAST_WORDS or not subject or not len(corpus):
        return []
    count = _CANDIDATES + min(len(shown), _CANDIDATES)
    request = SearchRequest(prompt, k=count, minimum=0.0, subject=subject)
    relevance, cosines, places = searcher.places(request)
    if session:
        relevance = np.where(corpus.where("session", lambda name: name == session), 0.0, relevance)
    form, doublings = _form_of(prompt), max(0.0, math.log2(len(corpus) / SMALL_MEMORY))
    least = _least_relevance(searcher, subject, doublings) + form.relevance
    alike = np.zeros(len(corpus))
    if form is not GENERAL and len(corpus.terms(subject)) > 1:
        alike = np.where(relevance > 0, cosines, 0.0)
    is_alike = alike >= LEAST_COSINE + COSINE_STEP * doublings
    if not is_alike.any() and relevance.max() < least:
        return []
    quotation = _Quotation(searcher, relevance, prompt, own_of)
    found: dict[int, Pointer] = {}
    matches = []
    for place, _ in places:
        pieces = [place.position, *place.merged]
        near = float(max(relevance[pieces]))
        if (near >= least and quotation.shared_words(place) >= form.words) or (
            is_alike[pieces].any() and (form is not TASK or quotation.decides(quotation.current(place)))
        ):
            matches.append((near, place))
    # An entry that may not be quoted must not raise the bar.
    ranked = sorted(matches, key=lambda one: -one[0])
    best = next((near for near, place in ranked if quotation.pointer(place.position)), 1.0)
    for place in (place for near, place in ranked if near >= NEAR_BEST * best):
        position = quotation.current(place)
        pointer, ids = quotation.pointer(position), quotation.ids(position)
        if not pointer or pointer in found.values() or not ids.isdisjoint(shown):
            continue
        is_told = any(quotation.is_same_subject(position, other) for other in found)
        if not is_told and quotation.times(position, recent) < MOST_RECENT:
            found[position] = pointer
        if len(found) == MOST_POINTERS:
            break
    return list(found.values())


def _form_of(prompt: str) -> Form:
    is_long, prompt = len(prompt.split()) > QUESTION_WORDS, prompt[:QUESTION_CHARACTERS]
    proposed = _PROPOSES.match(prompt)
    is_task = proposed is not None and not subject_of(proposed[1])  # "can we add a test?"
    if _GENERAL.match(prompt):
        return GENERAL
    if is_task or is_long or not _ASKS.search(prompt):
        return TASK
    return OURS if _OURS.search(prompt) else QUESTION


def _least_relevance(searcher: Searcher, subject: str, doublings: float) -> float:
    corpus = searcher.corpus
    least = min(LEAST_RELEVANCE + RELEVANCE_STEP * doublings, MOST_RELEVANCE)
    if len(corpus.terms(subject)) < 2:
        least = ONE_WORD_RELEVANCE
    return least if searcher.embedder is not None and corpus.has_vectors else least + WORDS_RELEVANCE


def written_by(home: Home) -> OwnOf:
    """Return a function for `find_pointers` that lets it quote what this home, or its user, wrote.

    And what people shared in a clone that the user trusts. It reads the record of a project once.
    """
    record = functools.cache(lambda root: OwnEntries(home, root))
    trusts = functools.cache(lambda root: is_trusted(home, root))

    def own_of(root: str, chunk: Chunk) -> Container[str] | None:
        if chunk.kind == "team":  # the words of others, quoted as such
            return None if trusts(root) else ()
        if root == home.root or os.path.isabs(chunk.source):
            return None  # no repository brings the user's memory, or a file outside of the project
        return record(root)

    return own_of


def lay_out(pointers: Sequence[Pointer], opening: str = OPENING) -> str:
    """Return the pointers below `opening`, one a line, in at most `MOST_CHARACTERS`; "" if there are none."""
    text = ""
    room = MOST_CHARACTERS - len(opening) - len(_CLOSING) - 1
    for pointer in pointers:
        mark = ", superseded" if pointer.is_superseded else ""
        line = f"- {pointer.date} “{pointer.text}” ({pointer.id}{mark})\n".replace("-  ", "- ")
        if len(text) + len(line) > room:
            break
        text += line
    return f"{opening}\n{text}{_CLOSING}" if text else ""


def stated(answer: str) -> str:
    """Return the sentence that decides something: by its words or, in a short answer, its emphasis; or ""."""
    for line in "\n".join(answer.split("```")[::2]).split("\n"):
        if _NO_PROSE.match(line):
            continue
        bold = _BOLD.findall(line) if is_short(answer) else []
        openings = tuple(one[:30] for one in bold if len(one.split()) >= STATED_WORDS)
        said = list(sentences(line.replace("**", "")))
        for number, one in enumerate(said):
            is_decided = _STATES.search(one) is not None or one.startswith(openings)
            if is_decided and not _DOUBTS.search(one):
                is_label = len(one.split()) < STATED_WORDS  # "Decision: Redis."
                return " ".join(said[number : number + 1 + is_label])
    return ""


def is_short(answer: str) -> bool:
    """Return whether an answer is short prose, which hardly has emphasis but for what it decides."""
    return len(answer) <= SHORT_CHARACTERS and not _NO_PROSE.search(answer)


def own_answer(section: str, heading: str, own: Container[str]) -> str:
    """Return the answer of a turn as this home wrote it, or "" if it did not."""
    # An earlier version recorded the start of an answer only.
    forms = (answer_of(section, 0), answer_of(section))
    known = next((one for one in forms if entry_words(heading, one) in own), "")
    answer = read_parts(section).answer
    # Quote what was recorded, whatever else is in the section.
    return answer if " ".join(answer.split()) == known else known


def bullet_lines(chunk: Chunk) -> list[str]:
    """Return the words of each bullet in a chunk."""
    lines = LEADING_HEADINGS.sub("", chunk.content).splitlines()
    return [bullet_words(line) for line in lines if line.strip()]


def quotable_line(text: str, limit: int = TEXT_CHARACTERS) -> str:
    """Return text of a conversation as one line that cannot end its quotation."""
    return defuse(one_line(_QUOTES.sub('"', printable(text)), limit), "system-reminder")


def _asks_back(turn: TurnParts) -> bool:
    """Return whether a turn leaves something to decide: its answer offers, or it only answers a question."""
    if stated(turn.answer):
        return False
    is_question = _ASKS.search(turn.prompt) is not None or "?" in turn.prompt
    return _OFFERS.search(turn.answer) is not None or (is_question and not turn.edited)


class _Quotation:
    def __init__(self, searcher: Searcher, relevance: Scores, prompt: str, own_of: OwnOf) -> None:
        self._corpus = searcher.corpus
        self._least = searcher.settings.best_relevance
        self._relevance = relevance
        self._prompt = prompt
        self._subject = subject_of(prompt)
        self._own_of = own_of
        self._known: dict[int, tuple[Pointer | None, set[int]]] = {}
        self._changes: set[int] = set()
        self._titles: dict[int, int] = {}
        """The turn whose title tells what a settling one is about."""

    def pointer(self, position: int) -> Pointer | None:
        """Return the pointer for the entry at `position`, or None if nothing of it may be quoted."""
        return self._found(position)[0]

    def ids(self, position: int) -> set[str]:
        """Return the ids of the entry to which that pointer leads, with its turns and bullets."""
        return set(map(self._corpus.shown_id, self._found(position)[1]))

    def times(self, position: int, recent: Sequence[str]) -> int:
        """Return how many of the `recent` ids are those, or others of the session."""
        sessions, ids = self._corpus.columns["session"], self.ids(position)
        if sessions[position] >= 0:
            ids = set(map(self._corpus.shown_id, np.flatnonzero(sessions == sessions[position]).tolist()))
        return sum(one in ids for one in recent)

    def current(self, place: Place) -> int:
        """Return the position of a place, or of the later entry that settles or changes it, if quotable."""
        matched = position = place.position
        if place.changed_by and self.pointer(place.changed_by.position):
            position = place.changed_by.position
        if not self._corpus.is_turn[position]:
            return position
        settled = self._settled(position)
        self._titles[settled] = position
        position = settled if self.pointer(settled) else position
        if self._corpus.has_vectors:
            near = self._relevance >= STILL_ASKED * min(self._relevance[[matched, position]])
            later = self._corpus.derived(ChangedTurns).change_of(position, near)
            if later is not None:
                self._changes.add(later)
                position = later if self.pointer(later) else position
        return position

    def decides(self, position: int) -> bool:
        """Return whether the prompt of the turn is a decision."""
        at, turns = self._session(position)
        before = self._parts(turns[at - 1]).answer if at else ""
        return bool(decisions(self._parts(turns[at]).prompt, before))

    def is_same_subject(self, position: int, other: int) -> bool:
        """Return whether two entries are of one session, and alike as far as vectors tell."""
        sessions, corpus = self._corpus.columns["session"], self._corpus
        if sessions[position] < 0 or sessions[position] != sessions[other]:
            return False
        return not corpus.has_vectors or corpus.likeness(position, [other]) >= SAME_SUBJECT

    def shared_words(self, place: Place) -> int:
        """Return how many words of the prompt a place has, of those that not every entry has."""
        corpus = self._corpus
        text = " ".join(corpus.chunk(n).content for n in (place.position, *place.merged))
        held = set(corpus.lexical_of(place.position).terms(text))
        weights = corpus.lexical_of(place.position).rarities(self._subject)
        rare = {term for term, weight in weights.items() if weight > USUAL_WEIGHT}
        words = map(corpus.terms, dict.fromkeys(self._subject.lower().split()))
        return sum(not held.isdisjoint(one & rare) for one in words)

    def _found(self, position: int) -> tuple[Pointer | None, set[int]]:
        if position not in self._known:
            self._known[position] = self._find(position)
        return self._known[position]

    def _find(self, position: int) -> tuple[Pointer | None, set[int]]:
        corpus = self._corpus
        shown, text = self._quoted(position, self._titles.get(position, position))
        if not text:
            return None, set()
        about = np.ones(len(corpus), bool)
        facts = (corpus.derived(SupersededIndex).fact(n, about) for n in (shown, position))
        fact = next(filter(None, facts), None)
        if fact is not None and self._relevance[fact.position] >= self._least:
            holds, words = self._quoted(fact.position, fact.position)
            if words:  # quote the fact instead
                shown, text, fact = holds, words, None
        name, day, entries = corpus.shown_id(shown), corpus.chunk(shown).date, corpus.columns["entry"]
        entry = {shown, *np.flatnonzero(entries == entries[position]).tolist()}
        for turn in corpus.derived(BulletIndex).turns(position):
            entry |= {*turn.pieces, *turn.bullets}
        return Pointer(name, day, quotable_line(text), fact is not None), entry

    def _quoted(self, position: int, matched: int) -> tuple[int, str]:
        """Return the position of a bullet or of the entry itself, and what may be quoted of it, or ""."""
        chunk = self._corpus.chunk(position)
        shown, text = self._bullet(position, chunk) or (position, self._outcome(position, chunk, matched))
        return shown, text if self._adds(position, text) else ""

    def _adds(self, position: int, text: str) -> bool:
        """Return whether a text has a word of a subject beyond the prompt's: "It works now." has none."""
        terms = self._corpus.lexical_of(position).terms
        return not set(terms(subject_of(text))) <= set(terms(self._prompt))

    def _settled(self, position: int) -> int:
        """Return the later turn of the session that settles what the one at `position` says, or `position`.

        A turn that asks is settled by a decision in one of the next prompts, and one that decides by a later
        one that is much like it.
        """
        corpus, relevance = self._corpus, self._relevance
        at, turns = self._session(position)
        later = [(pieces, corpus.likeness(position, pieces)) for pieces in turns[at + 1 :]]
        if _asks_back(self._parts(turns[at])):
            following = zip(later, ANSWERS, strict=False)
            near = [pieces for (pieces, alike), least in following if alike >= least]
        else:
            least = STILL_RELEVANT * relevance[position]
            near = [pieces for pieces, alike in reversed(later) if alike >= STILL_ALIKE]
            near = [pieces for pieces in near if max(relevance[pieces]) >= least]
        return next((pieces[-1] for pieces in near if self._goes_on(pieces[-1])), position)

    def _session(self, position: int) -> tuple[int, list[list[int]]]:
        """Return the turns of a turn's session, each as its pieces, and the number of that one."""
        turns = list(self._corpus.derived(BulletIndex).session_turns(position)) or [[position]]
        return next(n for n, pieces in enumerate(turns) if pieces[-1] >= position), turns

    def _parts(self, pieces: list[int]) -> TurnParts:
        return read_parts(self._corpus.turn_text(pieces[0]))

    def _goes_on(self, position: int) -> bool:
        """Return whether a turn does in a few words what was talked about, or its prompt decides it."""
        return goes_on(read_parts(self._corpus.turn_text(position))) or self.decides(position)

    def _bullet(self, position: int, chunk: Chunk) -> tuple[int, str] | None:
        corpus = self._corpus
        bullets = [position] if chunk.kind in BULLETS else []
        if chunk.kind == "turn":
            bullets = corpus.derived(BulletIndex).verified(position)
        for best in sorted(bullets, key=self._relevance.__getitem__, reverse=True):
            one = corpus.chunk(best)
            words = bullet_lines(one)
            own = self._own_of(corpus.root(best), one)
            if words and (own is None or all(line in own for line in words)):
                return best, " ".join(words)
        return None

    def _outcome(self, position: int, chunk: Chunk, matched: int) -> str:
        """Return what came of an entry that has no bullet, or its heading; "" if nothing may be quoted.

        An outcome that does not name the subject follows its title, or the title of the entry `matched`.
        """
        if chunk.kind in BULLETS or COMPACTION_TITLE in chunk.heading:  # not own, or it repeats the session
            return ""
        own = self._own_of(self._corpus.root(position), chunk)
        if chunk.kind == "team":
            said = one_line(LEADING_HEADINGS.sub("", chunk.content)) or heading_words(chunk.heading)
            return f"{shared_by(chunk.source).get('author', '')} shared: {said}" if own is None else ""
        heading = heading_words(chunk.heading)
        said = self._said(position, heading, own) if chunk.kind == "turn" else ""
        if not said:
            words = heading or (one_line(chunk.content) if own is None else "")
            return words if own is None or words in own else ""
        title = heading if subject_of(heading[5:]) else heading_words(self._corpus.chunk(matched).heading)
        terms = self._corpus.lexical_of(position).terms
        subject = {*terms(subject_of(title[5:])), *terms(self._subject)}
        if len(subject.intersection(terms(said))) >= NAMED_WORDS or (own is not None and title not in own):
            return said
        return f"{one_line(title.partition(' ')[2], TITLE_CHARACTERS)} → {said}"

    def _said(self, position: int, heading: str, own: Container[str] | None) -> str:
        """Return the sentence of a turn's answer with the most words of the prompt, rare ones first.

        Without one, return what came of the turn. Quote only words in `own`.
        """
        section = self._corpus.turn_text(position)
        outcome, answer = outcome_of(section), read_parts(section).answer
        if own is not None:
            answer = own_answer(section, heading, own)
            if not answer:
                return ""
            outcome = outcome if outcome == "interrupted" else first_sentence(answer)
        said = [one for one in statements(answer) if not one.endswith("…") and _LEFT_OUT not in one]
        telling = [one for one in said if tells_change(one)] if position in self._changes else []
        weigh, decided = self._weigher(position), stated(answer)
        ranked = [outcome, *(telling or said)]
        ranked.sort(key=lambda one: -weigh(one) - DECIDED_WEIGHT * (bool(one) and one in decided))
        best = next((one for one in ranked if self._adds(position, one)), "")
        for following in said[said.index(best) + 1 :] if best in said else ():
            if len(best) + len(following) >= TEXT_CHARACTERS:
                break
            best = f"{best} {following}"
        # Without emoji or emphasis, parts of a secret can join.
        return best if best in answer else redact(best)

    def _weigher(self, position: int) -> Callable[[str], float]:
        """Return a function for the weight of the prompt's words in a text: rare words weigh more."""
        lexical = self._corpus.lexical_of(position)
        weights = lexical.rarities(self._subject)
        return lambda text: sum(weights[term] for term in weights.keys() & set(lexical.terms(text)))
