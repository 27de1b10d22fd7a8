"""The outcome of some turns in one line, without a model: the final state, not the attempts.

It is the first of these that exists: a pull request or commits, the change or finding that an answer reports,
the edited files, the result of the last command.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence

from memkit.agents.tools import role_of
from memkit.bullets import COMMITTED, EDITED, PULL_REQUEST
from memkit.hook.phrases import sentences
from memkit.journal.markup import FENCED
from memkit.journal.sentences import (
    PLAN,
    WIDE,
    is_question,
    plain,
    subject_words,
    wording,
    wording_pattern,
)
from memkit.journal.tool_lines import COMMIT_LINE, PULL_URL, Call, read_call
from memkit.journal.turn_parts import TurnParts

READ_CHARACTERS = 4000
MOST_COMMITS, MOST_FILES, MOST_CHANGES = 2, 4, 3
FEW_WORDS = 4
"""A sentence with fewer words, such as "No." or "Clean solution.", needs the next one."""

_GIT = re.compile(r"\bgit\b", re.IGNORECASE)
_COMMIT = re.compile(
    r"(?:^|[;&|(\n])\s*(?:(?!echo|printf)\w+\s+)?git(?:\s+-\S+(?:\s+[^\s-]\S*)?)*?\s+commit\b(?P<rest>.*)",
    re.DOTALL,
)
_SUBJECT = re.compile(
    r"""(?:\s-[a-z]*m|\s--message|-F\ -)[\s=]*
    (?:(?:"\$\(cat\ )?<<-?\s*(?P<mark>['"]?)\w+(?P=mark)\s+(?P<here>[^\n]+)
      |"(?!\$\()(?P<double>(?:[^"\n\\]|\\.)+)|'(?P<single>[^'\n]+))""",
    re.VERBOSE,
)
_NOT_COMMITTED = re.compile(r"nothing (?:added )?to commit|no changes added|^(?:fatal|error): ", re.MULTILINE)
_MERGE = re.compile(r"Merge (?:branch|remote-tracking|pull request|origin|tag)\b")
_PULL = re.compile(r"(?:^|[;&|(\n])\s*(?:gh\s+pr|glab\s+mr)\s+(create|merge|close)\b(.*)", re.DOTALL)
_PULL_TOOL = re.compile(r"create_(?:pull|merge)_request$")
_PULL_TITLE = re.compile(r"""\s(?:--title|-t)[\s=]+(?:"((?:[^"\n\\]|\\.)+)|'([^'\n]+))""")

_HEADING = re.compile(r"^[ \t]*(?:\\?#{1,6} [^\n]*|\*\*[^*\n]+\*\*:?[ ]*|\|[^\n]*)$", re.MULTILINE)
"""A heading in an answer, which the journal writes in bold or escaped, or a row of a table."""

_BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d{1,2}[.)])\s)|(?<=:)\n")
_CHANGED = re.compile(
    r"(?:`[^`]+`[ :–—-]+|[\w./-]+\.\w+[ :–—-]+|i(?:['’]ve| have)? (?:now |also )?|all )?"
    rf"(?:{'|'.join(wording('changed'))})(?:e|ed|ied|ten|te)\b",
    re.IGNORECASE,
)
_CAUSE = re.compile(r"(?:the )?(?:root )?(?:cause|problem|issue|bug|reason)\b", re.IGNORECASE)
_FILE_IN_FRONT = re.compile(r"^(?:`[^`]+`|[\w./-]+\.\w+(?::\d+)?) ?[:–—-]+ (?=\w)")
_DETAIL = re.compile(
    r" (?:—|–|-|(?:so that|because|instead of|which|ensuring|to (?:match|ensure|avoid))\b) ?|[;:] |\. "
    r"| \([^()]*\)\.?$"
)
_HOLDS = wording_pattern("holds", r"\b", r"\b")
_REFUSED = wording_pattern("refused")
"""The start of a prompt that rejects the previous answer."""

_SHORT = re.compile(r"(?:no|not|yes|ja|nein|non|oui|sí)\b|.*\d", re.IGNORECASE)
"""A short answer that the next sentence explains."""

_NAME_PARTS = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}|[^\W\d_a-zA-Z]{2,}")


def commits(call: Call) -> Iterator[str]:
    """Yield the subjects of the commits that a call made, as git printed them or as the command has them."""
    if role_of(call.name) != "shell" or call.has_failed or not _GIT.search(call.given):
        return
    match = _COMMIT.search(call.given)
    if match is not None and "<<" in call.given[: match.start()]:  # a script that the call wrote
        return
    written = COMMIT_LINE.findall(call.outcome)
    subject = _SUBJECT.search(match["rest"]) if match else None
    if written:
        yield from written
    elif subject is not None and not _NOT_COMMITTED.search(call.outcome):
        yield (subject["here"] or subject["double"] or subject["single"]).strip().replace('\\"', '"')


def pull_requests(call: Call) -> Iterator[str]:
    """Yield the title and the address of a pull request that a call opened, or what it did to another."""
    if call.has_failed:
        return
    match = _PULL.search(call.given) if role_of(call.name) == "shell" else None
    is_tool = _PULL_TOOL.search(call.name) is not None
    url = PULL_URL.search(call.outcome) if match or is_tool else None
    if match is not None:
        title = _PULL_TITLE.search(match[2])
        words = next(filter(None, title.groups())).replace('\\"', '"') if title else ""
        if match[1] == "create":
            yield " ".join(filter(None, [words, url[0] if url else ""])) or "created"
        else:
            number = re.match(r"\s*(\S*\d)\b", match[2])
            yield f"{number[1] if number else 'the open one'} {match[1].rstrip('e')}ed"
    elif url is not None:
        yield url[0]


def without_merges(subjects: Iterable[str]) -> list[str]:
    """Return the subjects of commits, each once, without those of merges if there are others."""
    known = list(dict.fromkeys(subjects))
    return [one for one in known if not _MERGE.match(one)] or known


def outcome(turns: Sequence[TurnParts], about: str = "") -> str:
    """Return what came of `turns`, which follow each other. `about` is the title of their session."""
    if len(turns) == 1 and turns[0].outcome == "Interrupted":
        return "interrupted"
    calls = [read_call(line) for turn in turns for line in turn.tools]
    if pulls := [title for call in calls for title in pull_requests(call)]:
        return _last_ones(PULL_REQUEST, pulls)
    if done := [subject for call in calls for subject in commits(call)]:
        return _last_ones(COMMITTED, done)
    edits = [list(dict.fromkeys(call.path for call in turn.file_calls if call.is_edit)) for turn in turns]
    if best := _best_finding(turns, edits, _stems(subject_words(about))):
        return best
    if turns and turns[-1].prompt.endswith("?") and turns[-1].answer:
        return _plain_end(turns[-1])
    changed = list(dict.fromkeys(path for paths in edits for path in paths))
    if changed:
        more = f", and {len(changed) - MOST_FILES} more" if len(changed) > MOST_FILES else ""
        return f"{EDITED}{', '.join(changed[:MOST_FILES])}{more}"
    return _plain_end(turns[-1]) if turns else ""


def _last_ones(label: str, subjects: Iterable[str]) -> str:
    return label + "; ".join(without_merges(subjects)[-MOST_COMMITS:])


def _best_finding(turns: Sequence[TurnParts], edits: Sequence[list[str]], title: set[str]) -> str:
    """Return the best finding of the turns with edits, else the finding of the last turn with one, or "".

    The best finding matches the title. The last edit may only be a small repair.
    """
    best, best_score = "", -math.inf
    following = [*(turn.prompt for turn in turns[1:]), ""]
    for turn, paths, prompt in zip(turns, edits, following, strict=False):
        if turn.outcome == "Interrupted" or _REFUSED.match(prompt):
            continue
        score, sentence = _finding(turn, paths, title)
        if not paths:
            score = -math.inf
        if sentence and score >= best_score:
            best, best_score = sentence, score
    return best


def _finding(turn: TurnParts, edits: Sequence[str], title: set[str]) -> tuple[float, str]:
    """Return the score and the sentence of an answer that tells most about the prompt, the edits, and the
    title. The sentence is "" if the answer has only plans, praise, questions, and status.
    """
    asked = subject_words(turn.prompt[:READ_CHARACTERS])
    subject = _stems([*asked, *subject_words(" ".join(edits))]) | title
    is_answer = is_question(turn.prompt)
    best, best_score = "", -math.inf
    changes: list[tuple[int, float, str]] = []
    for number, sentence in enumerate(statements(turn.answer[:READ_CHARACTERS])):
        words = _stems(subject_words(sentence))
        shared = len(words & subject)
        is_telling = shared or len(words) > 1 or WIDE.search(sentence)
        may_be_short = words and (is_answer or not asked)
        if not (is_telling or may_be_short):
            continue
        score = float(min(shared, 3) + min(len(words & title), 3))
        is_change = _CHANGED.match(sentence) is not None
        if is_change or _CAUSE.match(sentence):
            score += 2
        if _HOLDS.search(sentence):
            score += 1
        if "`" in sentence:
            score += 0.5
        if number == 0:
            score += 3 if is_answer else 1
        score -= min(number, 20) / 10
        if is_change and edits:
            changes.append((number, score, sentence))
        if score > best_score:
            best, best_score = sentence, score
    if len(changes) > 1 and _CHANGED.match(best):
        chosen = sorted(sorted(changes, key=lambda one: -one[1])[:MOST_CHANGES])
        best = "; ".join(dict.fromkeys(_shortened(sentence) for _, _, sentence in chosen))
    return best_score, best


def _shortened(change: str) -> str:
    """Return what a change is, without the file in front of it and the reason behind it."""
    said = _FILE_IN_FRONT.sub("", change)
    short = _DETAIL.split(said, maxsplit=1)[0].rstrip(" .,")
    is_whole = len(short.split()) >= FEW_WORDS - 1 and not any(short.count(mark) % 2 for mark in "`\"")
    return short if is_whole else said.rstrip(" .")


def statements(answer: str) -> Iterator[str]:
    """Yield the sentences that state something; a short one, and one that ends in a colon, with the next."""
    prose = _HEADING.sub("\n", FENCED.sub("\n", answer))
    lead = ""
    for sentence in (one for block in _BLOCK.split(prose) for one in sentences(block.lstrip("\\ "))):
        said = f"{lead} {sentence}".strip()
        if PLAN.match(sentence) or is_question(sentence) or sentence.startswith("[…"):
            lead = ""
        elif sentence.endswith(":"):
            lead = sentence if subject_words(sentence) else ""
        elif len(said.split()) < FEW_WORDS and not WIDE.search(said):
            lead = said if subject_words(sentence) or _SHORT.match(sentence) else ""
        else:
            yield said
            lead = ""


def _stems(words: Iterable[str]) -> set[str]:
    return {part.casefold()[:6] for word in words for part in _NAME_PARTS.findall(word)}


def _plain_end(turn: TurnParts) -> str:
    prose = " ".join(plain(_HEADING.sub("\n", FENCED.sub("\n", turn.answer))).split())
    best = next(statements(turn.answer[:READ_CHARACTERS]), prose)
    if best and not PLAN.match(best):
        return best
    return turn.tools[-1].partition(" → ")[2] if turn.tools else ""
