"""Choose the title of a turn: the first words that say something, as plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memkit.hook.phrases import EMOJI, PRAISE, is_filler, sentences
from memkit.journal.markup import one_line
from memkit.subject import STOP_WORDS, subject_of

TITLE_CHARACTERS = 100

_LINES = 40
"""The number of lines of a text to search for a title. The rest of a prompt is usually pasted."""

_LINE_CHARACTERS = 1000
_LABEL_CHARACTERS = 50
_EMPHASIS = re.compile(r"\*\*|__|^#{1,6} ")
_LINK = re.compile(r"!?\[([^\[\]]+)\]\([^()\s]*\)")
_TICKS = re.compile(r"(`+) ?([^`]+?) ?\1(?!`)")
_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1|\Z)", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"\[Image #\d+\]|^/\S+")
_REVIEW = re.compile(r"^(?:code|pr|pull request) (?:review|feedback)\b", re.IGNORECASE)
_LOG = re.compile(
    r"Traceback\b|\d{4}-\d\d-\d\d[T ]|\[?\d\d?:\d\d|[$❯>] ?\S|at \S+\(|File \"|npm (?:ERR|WARN|error)|"
    r"make: |\w*(?:Error|Exception|Warning)\b:?|(?:error|warning|fatal)(?:\[\w+\])?: |\S+:\d+:\d+",
    re.IGNORECASE,
)
_FILLERS = frozenset(
    "a again ahead alright also and bitte check continue could danke das do doch done eh es favor fine "
    "forgotten go going good gracias great hello hey hi hmm image it ja just keep la let lets like mach "
    "me merci more nein next nice no not now of ok okay on one oui please por proceed push right so "
    "sounds sure text thank thanks that the them then there these this those try vale vas-y weiter well "
    "with yeah yep yes you".split()
)
PLAN = re.compile(
    r"""(?:(?:now|next|first|then|so|and|ok(?:ay)?|good|great|actually),?\ +)*
    (?:let['’]?s?\ (?:me|us)\b|let['’]s\b|looking\ at|based\ on|going\ to|ready\ to|shall|should\ i|would\ you
    |i['’]?(?:ll|\ will|\ need|\ should|\ want|['’]m\ (?:going|ready|now))\b
    |i\ (?:can\ see|see|now\ )?(?:have|understand|see)\b|want\ me|do\ you|you\ can|you['’]?re?\b|please|see
    |next\ steps?|here['’]s|here\ (?:is|are)|below|(?:in\ )?summary\b|what\ i\ did|to\ summarize|the\ user\b
    |lass\ mich|ich\ werde|voy\ a|je\ vais)""",
    re.IGNORECASE | re.VERBOSE,
)
"""The start of a sentence that says what comes next or who asked, not what holds."""

_ACCEPTED = re.compile(
    r"(?:implement the following plan|setze den folgenden plan um|implémente(?:z)? le plan suivant"
    r"|implementa el siguiente plan|次の(?:計画|プラン)を実装)[^:：\n]{0,20}[:：]\s*(?:\n|$)",
    re.IGNORECASE,
)
"""What Claude Code writes above a plan that was accepted."""

_KIND = re.compile(
    r"^(?:(?:\w+ )?plan|bug ?fix|feat(?:ure)?|fix|goal|review|task)(?: \d+)?: +(?=\S)"
    r"|(?<=\w)(?: [-–—])?(?: implementation)? plan$",
    re.IGNORECASE,
)
_UNTOLD = STOP_WORDS["english"] | _FILLERS | frozenset(
    "around based competing conflict couple critical especially existing feedback got high implementation "
    "local low medium messed multiple parent respond severity somewhere thorough thoughts understand "
    "understanding successfully used using valid went".split()
)
_CONTRACTED = re.compile(r"n?['’](?:s|t|d|ll|m|re|ve)$")
_CLAUSE = re.compile(r"(?:(?<=[,.;:!?])| [-–—]) +(?:(?:and|but|so) +)?| +(?:and|but|so) +")
_POLITE = re.compile(
    r"/\S+ +|(?:(?:can|could|would) (?:you|we)|i(?:['’]d| would) like (?:you )?to)(?: please)? +",
    re.IGNORECASE,
)
WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{4}")
_WORDS = re.compile(r"[^\W\d_][\w'’-]*")


def title_of(prompt: str, answer: str) -> str:
    """Return the title of a turn as one line of plain text, or "" if nothing was said.

    It is the first line of the prompt that names a subject, else the first one that says anything, else the
    first such sentence of the answer. A short line that ends with a colon joins the next one. A pasted review
    says what a reviewer found, so the answer to it has the title.
    """
    plan = _ACCEPTED.match(prompt)
    lines = list(_telling_lines(prompt[plan.end() :] if plan else prompt))
    asked = next(filter(names_subject, lines), lines[0]) if lines else ""
    if plan and lines:
        asked = one_line(_KIND.sub("", lines[0]), TITLE_CHARACTERS)
    is_review = _REVIEW.match(asked) is not None and "\n" in prompt.strip()
    said = "" if asked and not is_review else next(_telling_sentences(answer), "")
    return said or asked or one_line(prompt, TITLE_CHARACTERS) or one_line(answer, TITLE_CHARACTERS)


def subject_words(text: str) -> list[str]:
    """Return the words of a text that name its subject, in order."""
    words = subject_of(plain(text)).replace("`", " ").split()
    bare = (word.strip(".,;:!?…()[]{}\"'“”‘’*<>|").casefold() for word in words if "://" not in word)
    told = (word for word in bare if len(word) > 3 or (len(word) > 1 and any(map(str.isalpha, word))))
    return [word for word in told if _CONTRACTED.sub("", word) not in _UNTOLD]


def names_subject(line: str) -> bool:
    """Return whether a line tells what it is about, and not only what to do ("review the changes")."""
    return len(subject_words(line)) > 1 or WIDE.search(line) is not None


def says_nothing(line: str, words: int = 2) -> bool:
    """Return whether a line makes no title: only an agreement, a command, or the start of a log.

    A line with fewer than `words` words besides those of an agreement says nothing. So more says nothing
    than `is_filler`.
    """
    line = _COMMAND.sub("", plain(line)).strip()
    if _LOG.match(line):
        return True
    telling = {word.casefold() for word in _WORDS.findall(line)} - _FILLERS
    return len(telling) < words and not WIDE.search(line)


def plain(text: str) -> str:
    """Return `text` without emphasis, marks of headings, and emoji."""
    return re.sub(f"{EMOJI.pattern} ?", "", _EMPHASIS.sub("", text)).strip()


def _telling_lines(prompt: str) -> Iterator[str]:
    if prompt.startswith("! "):  # a command that the user ran
        yield one_line(prompt, TITLE_CHARACTERS)
        return
    label = ""
    for line in _lines(prompt):
        while match := PRAISE.match(line):
            line = line[match.end() :]
        if line.endswith(":") and len(line) <= _LABEL_CHARACTERS:
            label = line
        elif not is_filler(_COMMAND.sub("", line)) and not _LOG.match(line):
            yield _cut(f"{label} {line}".strip())
            label = ""
    if label:
        yield one_line(label, TITLE_CHARACTERS)


def _cut(line: str) -> str:
    """Cut a line, if it is too long first the clauses at its start that name no subject."""
    whole = line
    while len(line) > TITLE_CHARACTERS and (match := _POLITE.match(line) or _CLAUSE.search(line)):
        if match.start() and subject_words(line[: match.start()]):
            break
        line = line[match.end() :]
    return one_line(line if names_subject(line[:TITLE_CHARACTERS]) else whole, TITLE_CHARACTERS)


def _telling_sentences(answer: str) -> Iterator[str]:
    for line in _lines(answer):
        for sentence in sentences(line):
            if not says_nothing(sentence) and not PLAN.match(sentence):
                yield one_line(sentence.rstrip(":"), TITLE_CHARACTERS)


def _lines(text: str) -> Iterator[str]:
    for line in _FENCED.sub("\n", text).split("\n")[:_LINES]:
        line = plain(one_line(line, _LINE_CHARACTERS))
        line = _TICKS.sub(r"\2", _LINK.sub(r"\1", line))
        if line:
            yield line
