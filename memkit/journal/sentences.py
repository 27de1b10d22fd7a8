"""Split prompts and answers into sentences, and find their subject.

`wording.txt` has the words and phrases, by language.
"""

from __future__ import annotations

import re
from pathlib import Path

from memkit.hook.phrases import EMOJI
from memkit.journal.markup import FENCED, one_line
from memkit.subject import STOP_WORDS, subject_of

SENTENCE_CHARACTERS = 240
"""Longer text is usually not a sentence."""

_HEADER = re.compile(r"^\[([a-z ]+)\]\n", re.MULTILINE)
_, *_PARTS = _HEADER.split(Path(__file__).with_name("wording.txt").read_text("utf-8"))
_SECTIONS = dict(zip(_PARTS[::2], _PARTS[1::2], strict=True))


def wording(section: str) -> list[str]:
    """Return the lines of a section of `wording.txt`."""
    return [line for line in _SECTIONS[section].split("\n") if line and not line.startswith("#")]


def wording_pattern(section: str, before: str = "", after: str = "") -> re.Pattern[str]:
    """Return a pattern of the expressions in a section, with `before` and `after` around them."""
    return re.compile(f"{before}(?:{'|'.join(wording(section))}){after}", re.IGNORECASE | re.MULTILINE)


WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{4}")
"""Four letters of a script without spaces, which are as much as some words."""

PLAN = wording_pattern("plan", r"(?:(?:now|next|first|then|so|and|ok(?:ay)?|good|great|actually),? +)*")
"""The start of a sentence that announces a step or repeats the request, and states no result."""

MOST_ENDS = 6
"""The last sentences of an answer, in which it says what is left to do."""

_TO_DO, _COURTESY = wording_pattern("to do"), wording_pattern("courtesy")
_LEFT_OPEN, _UNDONE_WORK = wording_pattern("left open", "^", r"(?::\s*|$)"), wording_pattern("undone work")
_ITEM = re.compile(r"^(?:(?:[-*•]|\d+[.)])\s+)?(?:\[ \]\s+)?")
_NOTHING = re.compile(r"^(?:all|everything|none)\b|\b(?:no|nothing|nichts|rien|nada)\b", re.IGNORECASE)
_FILLERS = frozenset(" ".join(wording("fillers")).split())
_UNTOLD = STOP_WORDS["english"] | _FILLERS | frozenset(" ".join(wording("untold")).split())
_CONTRACTED = re.compile(r"n?['’](?:s|t|d|ll|m|re|ve)$")
_EMPHASIS = re.compile(r"\*\*|__|^#{1,6} ")
_WORDS = re.compile(r"[^\W\d_][\w'’-]*")
_COMMAND = re.compile(r"\[Image #\d+\]|^/\S+")
_TICKET = re.compile(r"\b[A-Z]{2,6}-\d+\b")
_LOG = wording_pattern("log lines")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"')*]*\s+|\n+")
_NO_PROSE = re.compile(r"\s*(?:>|\||\\?#|    )")


def plain(text: str) -> str:
    """Return `text` without emphasis, marks of headings, and emoji."""
    return re.sub(f"{EMOJI.pattern} ?", "", _EMPHASIS.sub("", text)).strip()


def subject_words(text: str) -> list[str]:
    """Return the words of a text that name its subject, in order."""
    words = subject_of(plain(text)).replace("`", " ").split()
    bare = (word.strip(".,;:!?…()[]{}\"'“”‘’*<>|").casefold() for word in words if "://" not in word)
    told = (word for word in bare if len(word) > 3 or (len(word) > 1 and any(map(str.isalpha, word))))
    return [word for word in told if _CONTRACTED.sub("", word) not in _UNTOLD]


def names_subject(line: str) -> bool:
    """Return whether a line names a subject, unlike "review the changes" or "let's start with ABC-12"."""
    return len(subject_words(_TICKET.sub("", line))) > 1 or WIDE.search(line) is not None


def is_question(sentence: str) -> bool:
    """Return whether a sentence ends with a question mark."""
    return sentence.endswith(("?", "？"))


def without_command(line: str) -> str:
    """Return `line` without a slash command at its start, and without the names of images."""
    return _COMMAND.sub("", line)


def is_log(line: str) -> bool:
    """Return whether a line looks like one of a log or a terminal."""
    return _LOG.match(line) is not None


def says_nothing(line: str, words: int = 2) -> bool:
    """Return whether a line makes no title: only an agreement, a command, or the start of a log.

    A line with fewer than `words` words besides those of an agreement says nothing. So more says nothing
    than `is_filler`.
    """
    line = without_command(plain(line)).strip()
    if is_log(line):
        return True
    telling = {word.casefold() for word in _WORDS.findall(line)} - _FILLERS
    return len(telling) < words and not WIDE.search(line)


def prose_sentences(text: str, most: int = SENTENCE_CHARACTERS) -> list[str]:
    """Return the sentences of a text outside of code, quotes, and tables, without emphasis."""
    lines = [line for line in FENCED.sub("\n", text).split("\n") if not _NO_PROSE.match(line)]
    parts = _SENTENCE_END.split("\n".join(lines))
    found = (one_line(plain(part), 2 * most) for part in parts)
    return [one for one in found if 0 < len(one) <= most]


def last_question(text: str) -> str:
    """Return the question at the end of a text, or "" if there is none or it is only polite."""
    ends = [one for one in prose_sentences(text)[-3:] if one.endswith("?") and not _COURTESY.search(one)]
    return ends[-1] if ends and not says_nothing(ends[-1]) else ""


def open_point(text: str) -> str:
    """Return the question at the end of a text, or what it says there is not done; "" if there is neither."""
    if asked := last_question(text):
        return asked
    ends = [_ITEM.sub("", one) for one in prose_sentences(text)[-MOST_ENDS:] if _WORDS.search(one)]
    for n, said in reversed(list(enumerate(ends))):
        label = _LEFT_OPEN.match(said)
        told = (said[label.end() :] or " ".join(ends[n + 1 : n + 2])) if label else said
        if (label or _UNDONE_WORK.search(said)) and not _NOTHING.search(told) and not says_nothing(told):
            return "" if _COURTESY.search(told) else told
    return ""


def plan(prompt: str) -> str:
    """Return the first sentence of a prompt that names a task for a person, or calls itself open, or ""."""
    for one in prose_sentences(prompt):
        label = _LEFT_OPEN.match(one)
        if label or (_TO_DO.search(one) and not one.endswith("?")):
            return one[label.end() :] if label else one
    return ""
