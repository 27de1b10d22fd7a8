"""Find decisions, agreements, open questions, and plans by their wording, and shorten answers to them.

English first; the usual words of German, French, and Spanish.
"""

from __future__ import annotations

import re
import textwrap
from bisect import bisect
from collections.abc import Iterator

from memkit.journal.markup import LEAST_GAP, cut_middle, gap, one_line
from memkit.journal.titles import plain, says_nothing

SENTENCE_CHARACTERS = 240
"""Longer text is usually not a sentence."""

_SENTENCE = re.compile(r"(?<=[.!?…])[\"')*]*\s+|\n+")
_FENCED = re.compile(
    r"^[ \t]*(`{3,}(?=[^`\n]*$)|~{3,}).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_UNIT_END = re.compile(
    r"(?P<announces>^ *#{1,6} [^\n]*\n+|(?<=[:*])\s*\n+)"
    r"|(?<=[^\d][.!?…])[\"')\]]*\s+(?=[^a-z\s])|(?<=[。！？])|\n+",
    re.MULTILINE,
)
"""The end of a sentence, list item, or row. What a heading or a colon announces belongs to it."""

_REASON = re.compile(r"\b(?:decision|decided|because|instead of|never|must)\b", re.IGNORECASE)
_BOLD_OPENING = re.compile(r"\s*(?:[-*+]\s+|\d+[.)]\s+)?(?:\*\*|__)")
_CODE_SPAN = re.compile(r"`([^`\n]+)`")
_DECIDES, _BOLD, _OTHER, _REPEATED = 1, 2, 3, 4

OPENING_CHARACTERS = 40
"""What begins here is kept: the first sentence may say only "Perfect!"."""

LONGEST_ANSWER = 100_000
"""No sentence of an answer is kept for its words beyond these characters."""


_PLAN = re.compile(
    r"\b(?:I|we)(?:['’]ll| will)(?: (?:have to|need to|then|first|just|also))? "
    r"(?:ask|call|check|clarify|come back|decide|discuss|do|find out|fix|look|see|speak|talk|think|try)\b"
    r"|\b(?:ich|wir) (?:frage|fragen|kläre|klären|schaue|schauen|rede|reden)\b"
    r"|\bje (?:vais|dois) (?:demander|vérifier|regarder|voir|parler)\b"
    r"|\bvoy a (?:preguntar|comprobar|mirar|hablar|ver)\b",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"\b(?:anything|something|what) else\b|\bhow can I help\b|\bwhat would you like\b"
    r"|\b(?:would you like|want) me to\b|\bhelp you with\b|\blet me know\b",
    re.IGNORECASE,
)


def shorten_answer(text: str, limit: int, most: int, hint: str, tools: str) -> str:
    """Shorten an answer to about `limit` characters, and to `most` if it decides more than that.

    Leave out whole sentences, list items, and blocks of code. Keep those that decide or give a reason, the
    first and the last one, then bold openings, then the others from both ends. Those whose names all stand in
    the lines of the `tools` come last. Each gap has at least `LEAST_GAP` characters. The last one states how
    many are missing, with the `hint`.
    """
    if len(text) < limit + LEAST_GAP:
        return text
    ranked = []
    for start, end in _units(text[:LONGEST_ANSWER]):
        if end - start <= most:
            is_end = start < OPENING_CHARACTERS or end == len(text)
            rank = 0 if is_end else _rank(text[start:end], tools)
            ranked.append((rank, min(start, 2 * (len(text) - end)), start, end))
    kept, left = [(0, 0), (len(text), len(text))], len(text)
    for rank, _, start, end in sorted(ranked):
        place = bisect(kept, (start, end))
        before, after = kept[place - 1][1], kept[place][0]
        start = before if start - before < LEAST_GAP else start
        end = after if after - end < LEAST_GAP else end
        room = (most if rank <= _BOLD else limit) - (len(text) - left)
        if 0 < end - start <= room:
            kept.insert(place, (start, end))
            left -= end - start
    if not left:
        return text
    if len(text) - left < limit // 2 and all(rank != _DECIDES for rank, *_ in ranked):
        return cut_middle(text, limit, hint)  # most of it is one long block
    parts, at = [""], 0
    for start, end in kept:
        if start > at:
            parts.append("")
        parts[-1] += text[start:end]
        at = end
    parts = [textwrap.dedent(part.strip("\n")).rstrip() for part in parts]
    marks = ["[…]"] * (len(parts) - 2) + [gap(left, hint), ""]
    return "\n\n".join(one for pair in zip(parts, marks, strict=True) for one in pair if one)


def _units(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each sentence, list item, row, and block of code: all of `text`."""
    at = 0
    for fence in [*_FENCED.finditer(text), None]:
        for match in _UNIT_END.finditer(text, at, fence.start() if fence else len(text)):
            if not match["announces"] or match.end() - at > LEAST_GAP:
                yield at, match.end()
                at = match.end()
        end = fence.end() if fence else len(text)
        if at < end:
            yield at, end
            at = end


def _rank(unit: str, tools: str) -> int:
    if not _FENCED.search(unit) and (_REASON.search(unit)):
        return _DECIDES
    names = _CODE_SPAN.findall(unit)
    if names and all(name in tools for name in names):
        return _REPEATED
    return _BOLD if _BOLD_OPENING.match(unit) else _OTHER


def last_question(text: str) -> str:
    """Return the question at the end of a text, or "" if there is none or it is only polite."""
    ends = [one for one in prose_sentences(text)[-3:] if one.endswith("?") and not _COURTESY.search(one)]
    return ends[-1] if ends and not says_nothing(ends[-1]) else ""


def plan(prompt: str) -> str:
    """Return the first sentence of a prompt that says what a person still has to do, or ""."""
    return next((one for one in prose_sentences(prompt) if _PLAN.search(one) and not one.endswith("?")), "")


def prose_sentences(text: str) -> list[str]:
    """Return the sentences of a text outside of code, quotes, and tables, without emphasis."""
    prose = _FENCED.sub("\n", text)
    lines = [line for line in prose.split("\n") if not re.match(r"\s*(?:>|\||\\?#|    )", line)]
    found = (
        one_line(plain(part), 2 * SENTENCE_CHARACTERS) for part in _SENTENCE.split("\n".join(lines))
    )
    return [one for one in found if 0 < len(one) <= SENTENCE_CHARACTERS]
