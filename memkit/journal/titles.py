"""Choose the title of a turn: the first words that say something, as plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memkit.hook.phrases import PRAISE, is_filler, sentences
from memkit.journal.markup import FENCED, one_line
from memkit.journal.sentences import (
    PLAN,
    is_log,
    names_subject,
    plain,
    says_nothing,
    subject_words,
    without_command,
    wording_pattern,
)

TITLE_CHARACTERS = 100

_LINES = 40
"""The number of lines of a text to search for a title. The rest of a prompt is usually pasted."""

_LINE_CHARACTERS = 1000
_LABEL_CHARACTERS = 50
_STOPPED = "Operation stopped by hook: "
"""Claude Code's words in place of a prompt that a hook stopped."""

_LINK = re.compile(r"!?\[([^\[\]]+)\]\([^()\s]*\)")
_TICKS = re.compile(r"(`+) ?([^`]+?) ?\1(?!`)")
_REVIEW = wording_pattern("pasted review")
ACCEPTED = wording_pattern("accepted plan", after=r"[^:：\n]{0,20}[:：]\s*(?:\n|\Z)")
_KIND = wording_pattern("kinds of plans")
_CLAUSE = re.compile(r"(?:(?<=[,.;:!?])| [-–—]) +(?:(?:and|but|so) +)?| +(?:and|but|so) +")
_POLITE = wording_pattern("polite")


def title_of(prompt: str, answer: str) -> str:
    """Return the title of a turn as one line of plain text, or "" if nothing was said.

    It is the first line of the prompt that names a subject, else the first one that says anything, else the
    first such sentence of the answer. A short line that ends with a colon joins the next one. A pasted review
    holds a reviewer's words, so the title comes from the answer to it.
    """
    plan = ACCEPTED.match(prompt)
    lines = list(_telling_lines(prompt[plan.end() :] if plan else prompt))
    asked = next(filter(names_subject, lines), lines[0]) if lines else ""
    if plan and lines:
        asked = one_line(_KIND.sub("", lines[0]), TITLE_CHARACTERS)
    is_review = _REVIEW.match(asked) is not None and "\n" in prompt.strip()
    said = "" if asked and not is_review else next(_telling_sentences(answer), "")
    return said or asked or one_line(prompt, TITLE_CHARACTERS) or one_line(answer, TITLE_CHARACTERS)


def _telling_lines(prompt: str) -> Iterator[str]:
    if prompt.startswith("! "):  # a command that the user ran
        yield one_line(prompt, TITLE_CHARACTERS)
        return
    if prompt.startswith(_STOPPED):
        return
    label = ""
    for line in _lines(prompt):
        while match := PRAISE.match(line):
            line = line[match.end() :]
        if line.endswith(":") and len(line) <= _LABEL_CHARACTERS:
            label = line
        elif label and is_log(line):
            yield label.rstrip(":")
            label = ""
        elif not is_filler(without_command(line)) and not is_log(line):
            yield _cut(f"{label} {line}".strip())
            label = ""
    if label:
        yield one_line(label, TITLE_CHARACTERS)


def _cut(line: str) -> str:
    """Shorten a line. If it is too long, first drop clauses at its start that name no subject."""
    whole = line
    while len(line) > TITLE_CHARACTERS and (match := _POLITE.match(line) or _CLAUSE.search(line)):
        head = line[: match.start()]
        if head and (subject_words(head) or "://" in head):
            break
        line = line[match.end() :]
    return one_line(line if names_subject(line[:TITLE_CHARACTERS]) else whole, TITLE_CHARACTERS)


def _telling_sentences(answer: str) -> Iterator[str]:
    for line in _lines(answer):
        for sentence in sentences(line):
            if not says_nothing(sentence) and not PLAN.match(sentence):
                yield one_line(sentence.rstrip(":"), TITLE_CHARACTERS)


def _lines(text: str) -> Iterator[str]:
    for line in FENCED.sub("\n", text).split("\n")[:_LINES]:
        line = plain(one_line(line, _LINE_CHARACTERS))
        line = _TICKS.sub(r"\2", _LINK.sub(r"\1", line))
        if line:
            yield line
