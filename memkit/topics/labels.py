"""Name topics without a model: the title of a typical turn, and two words that set the topic apart.

Words count by entry, those of prompts and headings more than those of answers; tool lines do not count. They
are ranked by class-based TF-IDF (Grootendorst, 2022): a word is telling if many entries of the topic hold it
and few others do. Of the titles of the most central turns, of their sessions, and of their commits, the one
with the most telling words is the label.

`names` has a model name topics as well, where summaries are on.
"""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from memkit.bullets import COMMITTED, PULL_REQUEST, read_bullet
from memkit.errors import JournalError
from memkit.hook.phrases import PRAISE
from memkit.index.chunk import Chunk
from memkit.index.snapshot import Snapshot
from memkit.index.tokens import tokenizer_of
from memkit.journal.journal import Journal
from memkit.journal.sentences import (
    PLAN,
    is_log,
    is_question,
    names_subject,
    prose_sentences,
    says_nothing,
    wording,
    wording_pattern,
)
from memkit.journal.turn_parts import COMPACTION_TITLE, NO_TITLE, read_parts
from memkit.subject import STOP_WORDS, subject_of
from memkit.text import one_line, printable
from memkit.topics.clusters import Points

logger = logging.getLogger(__name__)

LABEL_CHARACTERS = 50
MADE_CHARACTERS = 96
"""The most characters of a label from a model or a user, and of one that is made of a title and words."""

MOST_WORDS = 12
"""Words to keep for a topic; a search looks at them."""

HEADING_WEIGHT, ANSWER_WEIGHT = 1.5, 0.3
"""What a word of a heading or a commit counts, and one that only the answer has, where one of the prompt
counts 1.
"""

_SAMPLES = 20
"""The most central entries of a topic, whose titles are candidates."""

_PROMPT_CHARACTERS, _ANSWER_CHARACTERS = 800, 500
_RELEASED_EVERY = 1_000
_TELLING = 24
"""The best words of a topic. A title is as good as what it has of them."""

_NAME_WEIGHT, _WEAK_WEIGHT = 1.3, 0.6
"""What a name, such as `OTEL` or `index.jsonl`, and a word that is seldom a noun weigh: 1 for others."""

_LEAST_FIT = 0.2
_ADDED_WORDS, _LONGEST_WORD = 2, 24
_MOST_LABEL_WORDS = 4

_TIME = re.compile(r"\d\d:\d\d ")
_SESSION = re.compile(r" > (?:\d\d:\d\d )?([^\n]+)")
_WORD = re.compile(r"[^\W_](?:[\w'’./:-]*[^\W_])?")
_LETTERS = re.compile(r"[^\W\d_]{2}")
_HEX = re.compile(r"(?=.*\d)[0-9a-f-]{6,}")
_CODE = re.compile(r"```.*?(?:```|\Z)|https?://\S+|<[^<>\n]+>", re.DOTALL)
_WEAK = ("ing", "ed", "ly", "able", "es")
_COMMITS = re.compile(rf"^- (?:{COMMITTED}|{PULL_REQUEST}).*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TopicWords:
    """What a topic may be named after: its telling words and titles of its turns, best first."""

    words: tuple[str, ...]
    titles: tuple[str, ...]


@dataclass(slots=True)
class _Counts:
    """The words of one topic's entries by stem, and the titles to choose from."""

    held: dict[str, float] = field(default_factory=dict)
    entries: Counter[str] = field(default_factory=Counter)
    titles: dict[str, int] = field(default_factory=dict)
    sessions: Counter[str] = field(default_factory=Counter)
    commits: dict[str, int] = field(default_factory=dict)
    told: dict[str, int] = field(default_factory=dict)
    branches: Counter[str] = field(default_factory=Counter)


def clean(label: str) -> str:
    """Return a label of a model or a user as one line of at most `LABEL_CHARACTERS` printable characters."""
    return one_line(printable(label), LABEL_CHARACTERS)


def words_of_topics(
    snapshot: Snapshot, points: Points, clusters: Sequence[NDArray[np.int64]], language: str,
    commits: Mapping[str, Sequence[str]],
) -> list[TopicWords]:
    """Return what to name each cluster of points after; the most central points of a cluster come first.

    `commits` are those of `commits_of`.
    """
    reader = _Reader(language)
    counts = []
    for members in clusters:
        own = _Counts()
        for rank, point in enumerate(members.tolist()):
            made = commits.get(points.keys[point], ())
            reader.count(snapshot.chunk(int(points.first_chunks[point])), made, rank, own)
            if rank % _RELEASED_EVERY == 0:
                snapshot.release()
        counts.append(own)
    weights = _weights(counts, [len(members) for members in clusters])
    return [reader.named(own, best) for own, best in zip(counts, weights, strict=True)]


def labels_of(topics: Sequence[TopicWords]) -> list[str]:
    """Return a label for each topic. No two are equal: an earlier topic has the first choice."""
    used: set[str] = set()
    found = []
    for topic in topics:
        title = next((one for one in topic.titles if one.casefold() not in used), "")
        label = first = _label(title, topic.words) if title else _phrase(topic.words)
        number = 1
        while label.casefold() in used:
            number += 1
            label = f"{first} ({number})"
        used |= {title.casefold(), label.casefold()}
        found.append(label)
    return found


def _label(title: str, words: Sequence[str]) -> str:
    added: list[str] = []
    for word in words[: _TELLING // 2]:
        known = f"{title} {' '.join(added)}".casefold()
        long_words = (one for one in _WORD.findall(known) if len(one) > 3)
        is_known = word.casefold() in known or any(one in word.casefold() for one in long_words)
        room = len(title) + 3 + len(", ".join([*added, word]))
        if not is_known and len(word) <= _LONGEST_WORD and room <= MADE_CHARACTERS:
            added.append(word)
        if len(added) == _ADDED_WORDS:
            break
    return f"{title} · {', '.join(added)}" if added else title


def _phrase(words: Sequence[str]) -> str:
    chosen: list[str] = []
    for word in words:
        lower, known = word.casefold(), [one.casefold() for one in chosen]
        if len(word) <= _LONGEST_WORD and not any(lower in one or one in lower for one in known):
            chosen.append(word)
    return clean(", ".join(chosen[:_MOST_LABEL_WORDS])) or "unnamed"


def commits_of(journal: Journal) -> dict[str, list[str]]:
    """Return the subjects of commits and pull requests by the turns that made them."""
    found: dict[str, list[str]] = {}
    for day in journal.days():
        try:
            text = journal.text(f"{day}.md")
        except JournalError as error:
            logger.warning("%s", error)
            continue
        for line in _COMMITS.findall(text):
            bullet = read_bullet(line)
            if bullet is not None and bullet.is_verified:
                for turn in bullet.turns:
                    found.setdefault(turn, []).extend(bullet.text.partition(": ")[2].split("; "))
    return found


class _Reader:
    def __init__(self, language: str) -> None:
        self._tokenizer = tokenizer_of(language)
        self._forms: dict[str, Counter[str]] = {}
        self.stem = cache(self._stem)

    def count(self, chunk: Chunk, commits: Sequence[str], rank: int, counts: _Counts) -> None:
        """Count the words of an entry and its commits, each once, and note the titles of a central one."""
        heading, session = _TIME.sub("", chunk.heading), ""
        if chunk.kind == "turn":
            parts = read_parts(chunk.content)
            asked, answer = parts.prompt[:_PROMPT_CHARACTERS], parts.answer[:_ANSWER_CHARACTERS]
            above = chunk.breadcrumb.removesuffix(chunk.heading).removesuffix(" > ")
            match = _SESSION.search(above)
            session = match[1] if match else heading
        else:
            asked, answer = chunk.content[:_PROMPT_CHARACTERS], ""
        headed = " ".join(["" if heading in NO_TITLES else heading, *commits])
        found: dict[str, float] = {}
        for text, weight in ((answer, ANSWER_WEIGHT), (asked, 1.0), (headed, HEADING_WEIGHT)):
            found |= dict.fromkeys(self.words(text), weight)
        for stem, weight in found.items():
            counts.held[stem] = counts.held.get(stem, 0.0) + weight
            counts.entries[stem] += 1
        counts.sessions[session] += 1
        counts.branches[branch_title(chunk.branch)] += 1
        for title in commits:
            counts.commits.setdefault(title, rank)
        if rank < _SAMPLES:
            for title in (heading, session):
                if title:
                    counts.titles.setdefault(title, rank)
            prose = (one for one in prose_sentences(answer) if not PLAN.match(one) and not PRAISE.match(one))
            if told := next(prose, ""):
                counts.told.setdefault(told, rank)

    def words(self, text: str) -> Iterator[str]:
        """Yield the stems of the words that may name a subject, and remember how they are written."""
        for word in _WORD.findall(_CODE.sub(" ", text)):
            stem = self.stem(word)
            if stem:
                self._forms.setdefault(stem, Counter())[word] += 1
                yield stem

    def _stem(self, word: str) -> str:
        if not 2 < len(word) <= 2 * _LONGEST_WORD or not _LETTERS.search(word) or _HEX.fullmatch(word):
            return ""
        if word.casefold() in STOP_WORDS["english"] or VAGUE.fullmatch(word) or not subject_of(word):
            return ""
        return next(iter(self._tokenizer.tokenize(word)), "")

    def named(self, counts: _Counts, weights: dict[str, float]) -> TopicWords:
        """Return the telling words as they are written, and the titles, best first."""
        shown_forms = {stem: _form(self._forms[stem]) for stem in list(weights)[: 3 * _TELLING]}
        weights = {stem: weights[stem] * _form_weight(form) for stem, form in shown_forms.items()}
        order = sorted(weights, key=lambda one: (-weights[one], one))
        telling = {stem: weights[stem] for stem in order[:_TELLING]}
        best = sum(list(telling.values())[:3]) or 1.0
        size = sum(counts.sessions.values())
        scores: dict[str, tuple[float, bool, int]] = {}
        branches = {title: 0 for title in counts.branches if title}
        for title, rank in (branches | counts.told | counts.titles | counts.commits).items():
            shown, is_commit = shortened(title), title in counts.commits
            if not shown:
                continue
            fit = min(1.0, sum(telling.get(stem, 0.0) for stem in set(self.words(shown))) / best)
            score = fit + 0.25 / (1 + rank / 4) - flaws(shown) - 0.4 * (fit < _LEAST_FIT)
            score += 0.5 * is_commit - 0.1 * (title in counts.told)
            score += 0.3 * counts.sessions[title] / size + counts.branches[title] / size
            # Of equal ones, a heading comes first, then the shorter one.
            key = (-score, not is_commit and title not in counts.sessions, len(shown))
            scores[shown] = min(key, scores.get(shown, key))
        words = tuple(dict.fromkeys(shown_forms[stem] for stem in telling))
        return TopicWords(words[:MOST_WORDS], tuple(sorted(scores, key=scores.__getitem__)))


def _weights(counts: Sequence[_Counts], sizes: Sequence[int]) -> Iterator[dict[str, float]]:
    """Yield the words of each topic that two of its entries hold, with their weights, best first."""
    totals: Counter[str] = Counter()
    for own in counts:
        totals.update(own.held)
    all_points = sum(sizes)
    for own, size in zip(counts, sizes, strict=True):
        found = {
            stem: math.sqrt(held / size) * math.log1p(all_points / totals[stem])
            for stem, held in own.held.items()
            if own.entries[stem] > 1
        }
        yield {stem: found[stem] for stem in sorted(found, key=lambda one: (-found[one], one))}


def _form(found: Counter[str]) -> str:
    form = max(found, key=lambda one: (found[one], one))
    return form.lower() if form[1:].islower() and form.lower() in found else form


def _form_weight(form: str) -> float:
    if form[1:] != form[1:].lower() or not form.isalpha():
        return _NAME_WEIGHT
    return _WEAK_WEIGHT if form.endswith(_WEAK) else 1.0


TITLE_CHARACTERS = 70
NO_TITLES = frozenset({NO_TITLE, COMPACTION_TITLE})
VAGUE = re.compile(rf"\b(?:{'|'.join(wording('vague'))})\b", re.IGNORECASE)

_SHORTEST = 8
_SHORTEST_CLAUSE = 16
_READ_CHARACTERS = 200
_LEAST_WORDS = 3
_MOST_VAGUE = 3

_POLITE = wording_pattern("polite")
_BEGINNING = wording_pattern("beginnings", after=r"\b[,:]? +")
_PREFIX = re.compile(r"\w+(?:\([^()\n]*\))?!?: +|#\d+:? +")
"""The kind of a commit: `fix(page): `."""

_LINK = re.compile(r" *\(?(?:https?://\S+|#\d+)\)?\Z")
_MARK = re.compile(
    r"(?:=+|[-*#>•⏺]+|\(?(?:\d{1,2}|[A-Za-z])[.)]|(?:step|option|task|part|phase) \d+\s*[:,.-]?|\W+) +",
    re.IGNORECASE,
)
_SHORT_SENTENCE = re.compile(r"[^.!?]{1,40}[.!?] +(?=\S)")
_COMMAND = re.compile(
    r"(?:rm|cd|ls|cat|git|npm|npx|pnpm|yarn|uv|pip|gh|sudo|curl|ssh|docker) +\S", re.IGNORECASE
)
_CLAUSE = re.compile(r"(?<=[^\d\s])[.;:!?]\s+|,\s+| [-–—] | (?:and|but|so|because|since) ")
_NO_NAME = re.compile(r"://|redacted", re.IGNORECASE)
_TICKET = re.compile(r"\A(?:[A-Za-z]+-)?\d+-")


def flaws(title: str) -> float:
    """Return how much a shortened title lacks: 0 for one that names a subject and is whole."""
    found = 0.2 * (not names_subject(title)) + 0.2 * title.endswith("…") + 0.1 * is_question(title)
    found += 0.2 * _is_open(title) + 0.3 * bool(_NO_NAME.search(title))
    return found + 0.2 * min(_MOST_VAGUE, len(VAGUE.findall(title)))


def branch_title(branch: str) -> str:
    """Return the words of a branch's name, `fix-login-page` of `ann/eng-12-fix-login-page`."""
    words = _TICKET.sub("", branch.rpartition("/")[2]).replace("_", "-").split("-")
    return " ".join(words) if len(words) >= _LEAST_WORDS else ""


def shortened(title: str) -> str:
    """Return a title without politeness at its start, cut after a clause; "" if it makes no label."""
    text = one_line(printable(title), _READ_CHARACTERS).strip(" '“”`*>#-•⏺|")
    text = _PREFIX.sub("", text, count=1) if _PREFIX.match(text) else text
    bare = _LINK.sub("", text.removesuffix("…").rstrip())
    text = bare if "://" in text[len(bare) :] else text
    while match := _POLITE.match(text) or _BEGINNING.match(text) or _MARK.match(text) or _untold(text):
        text = text[match.end() :]
    is_other = title in NO_TITLES or text.startswith(("/", "!", "$", "{", "["))
    if is_other or is_log(text) or says_nothing(text) or _COMMAND.match(text):
        return ""
    is_cut = text.endswith("…")
    text = text.removesuffix("…").rstrip()
    if len(text) > TITLE_CHARACTERS or is_cut:
        ends = [one.start() for one in _CLAUSE.finditer(text[: TITLE_CHARACTERS + 2])]
        whole = (one for one in reversed(ends) if one >= _SHORTEST_CLAUSE and _is_balanced(text[:one]))
        end = next(whole, 0)
        text = text[:end] if end and names_subject(text[:end]) else _cut(text)
    text = text.replace("`", "").rstrip(" ,;:.=-([{")
    return text[:1].upper() + text[1:] if len(text) >= _SHORTEST else ""


def _untold(text: str) -> re.Match[str] | None:
    """Match a short sentence at the start that names no subject: "Almost there." """
    match = _SHORT_SENTENCE.match(text)
    return match if match and not names_subject(match[0]) else None


def _is_balanced(text: str) -> bool:
    return text.count("(") == text.count(")") and text.count('"') % 2 == 0


def _is_open(title: str) -> bool:
    """Return whether a title breaks off, or is too short to say something."""
    words = title.split()
    is_cut = words[-1].casefold() in STOP_WORDS["english"]
    return is_cut or len(words) < _LEAST_WORDS or not _is_balanced(title)


def _cut(text: str) -> str:
    """Cut a title after a word that may stand at its end."""
    words = one_line(text, TITLE_CHARACTERS).removesuffix("…").split()
    while len(words) > 1 and words[-1].casefold().strip("\"'(") in STOP_WORDS["english"]:
        words.pop()
    return f"{' '.join(words)} …"
