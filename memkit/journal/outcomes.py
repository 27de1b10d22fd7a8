"""The outcome of some turns in one line, without a model: the final state, not the attempts.

It is the first of these that exists: a pull request or commits, the change or finding that an answer reports,
the edited files, the result of the last command.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from memkit.agents.tools import role_of
from memkit.bullets import COMMITTED, EDITED, PULL_REQUEST
from memkit.hook.phrases import sentences
from memkit.journal.markup import FENCED
from memkit.journal.sentences import (
    PLAN,
    WIDE,
    is_question,
    names_subject,
    plain,
    subject_words,
    wording,
    wording_pattern,
)
from memkit.journal.tool_lines import COMMIT_LINE, PULL_URL, Call, read_call
from memkit.journal.turn_parts import TurnParts

READ_CHARACTERS = 4000
MOST_COMMITS, MOST_FILES, MOST_CHANGES = 2, 4, 3
OUTCOME_CHARACTERS = 240
NEAR = 6.0
"""Another finding is shown if its score is that near to the best one."""

LONG = 110
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
_KIND = re.compile(r"\w+(?:\([^()]*\))?!?: ")
_UPKEEP = re.compile(r"(?:build|chore|ci|docs|refactor|style|tests?)\b")
_PULL = re.compile(r"(?:^|[;&|(\n])\s*(?:gh\s+pr|glab\s+mr)\s+(create|merge|close)\b(.*)", re.DOTALL)
_PULL_TOOL = re.compile(r"create_(?:pull|merge)_request$")
_PULL_TITLE = re.compile(r"""\s(?:--title|-t)[\s=]+(?:"((?:[^"\n\\]|\\.)+)|'([^'\n]+))""")

PLANS = "/.claude/plans/"
_HEADING = re.compile(r"^[ \t]*(?:\\?#{1,6} [^\n]*|\*\*[^*\n]+\*\*:?[ ]*|\|[^\n]*)$", re.MULTILINE)
"""A heading in an answer, which the journal writes in bold or escaped, or a row of a table."""

_HEADING_MARKS = re.compile(r"^[\s\\#*]*(?:\d{1,2}[.)] )?(?:summary: )?", re.IGNORECASE)
_ITEM = re.compile(r"\n?(?P<indent>\s*)(?:[-*+]|\d{1,2}[.)])\s")
_BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d{1,2}[.)])\s)|(?<=:)\n")
CHANGED = re.compile(
    r"(?:`[^`]+`(?: \([^()]*\))?[ :–—-]+|[\w./-]+\.\w+[ :–—-]+|[^\n:.]{3,40}?(?::| [–—-]) )?"
    r"(?:(?:i(?:['’]ve| have)?|now|also|successfully|all|both|we) )*"
    rf"(?:(?:{'|'.join(wording('changed'))})(?:ed|ied|ten)|made|split|(?:re)?wrote)\b"
    r"|(?:the|this) (?:change|fix|refactoring)\b",
    re.IGNORECASE,
)
_EFFECT = re.compile(
    r"(?:[\w ]{3,30}: )?now\b|(?:after|result):|`[^`]+` (?:now|no longer)\b"
    r"|this (?:ensures|fixes|means|preserves|prevents|resolves|solves)\b",
    re.IGNORECASE,
)
_STATUS = frozenset(" ".join(wording("status")).split())
_CAUSE = re.compile(
    r"^(?:the )?(?:root )?(?:cause|problem|issue|bug|reason)\b|^(?:before|previously):"
    r"|\b(?:was|were)(?:n['’]t)? (?!now)",
    re.IGNORECASE,
)
_CHECKS = wording_pattern("checks", r"\b", r"\b")
"""A word of a title about tests and the like: that they pass is the result."""
_FILE_IN_FRONT = re.compile(
    r"^(?:`[^`]+` ?[:–—-]+ (?=\w)|`[^`]+\.\w+` (?=[A-Z])|[\w./-]+\.\w+(?::\d+)? ?[:–—-]+ (?=\w)"
    r"|(?:after|changes?|fix|now|result|solution): )",
    re.IGNORECASE,
)
_PLACE = re.compile(r" (?:at|in) `?[\w./-]+:\d[\d-]*`?| \((?:`?[\w./-]+:|lines? )\d[\d-]*`?\)")
_DETAIL = re.compile(
    r"(?<! of)(?<! in) (?:—|–|-|(?:so that|because|instead of|which|ensuring|to (?:match|ensure|avoid))\b) ?"
    r"|[;:] |\. | \([^()]*\)\.?$"
)
_NEXT = re.compile(r"; |\. ")
_PAIRS = re.compile("`"), re.compile('"'), re.compile(r"[()]")
_MORE = re.compile(r",? (?:and|but|so)\b|, | \(")
_HOLDS = wording_pattern("holds", r"\b", r"\b")
_REFUSED = wording_pattern("refused")
"""The start of a prompt that rejects the previous answer."""

_SHORT = re.compile(r"(?:no|not|yes|ja|nein|non|oui|sí)\b|.*\d", re.IGNORECASE)
"""A short answer that the next sentence explains."""

_WORDS = re.compile(r"[^\W\d_]{3,}")
_NAMES = re.compile(r"[`\d]")
_ASIDE = re.compile(
    r"\bimports? (?:for|of|statement)|(?:missing|unused)\b.{0,30}\bimport|[`\"'] import\b|\bi was\b"
    r"|^`?(?:test\w+|verif\w+)\b",
    re.IGNORECASE,
)
"""An import line, which only serves a change, or what the assistant did on its way."""

_OPEN_END = re.compile(r",?(?: (?:that|to|which|with)(?: \w+)?)?:$")
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


def main_commits(subjects: Iterable[str], most: int) -> list[str]:
    """Return the `most` main subjects of commits, in order, each once: features first, then the last ones.

    Those that are not main, see `is_main`, count only if there are no others.
    """
    known = list(dict.fromkeys(subjects))
    main = list(filter(is_main, known)) or known
    last_first = main[::-1]
    last_first.sort(key=_rank)
    return [one for one in main if one in last_first[:most]]


def _rank(commit: str) -> int:
    return 0 if commit.startswith("feat") else 2 if _UPKEEP.match(commit) else 1


def is_main(commit: str) -> bool:
    """Return whether a commit's subject says what was done, unlike "Merge branch" or "address comments"."""
    return not _MERGE.match(commit) and not _tells_status(_KIND.sub("", commit))


def outcome(turns: Sequence[TurnParts], about: str = "") -> str:
    """Return what came of `turns`, which follow each other. `about` is the title of their session."""
    if len(turns) == 1 and turns[0].outcome == "Interrupted":
        return "interrupted"
    calls = [read_call(line) for turn in turns for line in turn.tools]
    if pulls := [title for call in calls for title in pull_requests(call)]:
        return PULL_REQUEST + "; ".join(main_commits(pulls, MOST_COMMITS))
    done = [subject for call in calls for subject in commits(call)]
    edits = [[one.path for one in turn.file_calls if one.is_edit and PLANS not in one.path] for turn in turns]
    if any(map(is_main, done)) or (done and not any(edits)):
        return COMMITTED + "; ".join(main_commits(done, MOST_COMMITS))
    if best := _main_findings(turns, edits, about):
        return best
    if done:
        return COMMITTED + done[-1]
    if turns and turns[-1].prompt.endswith("?") and turns[-1].answer:
        return _plain_end(turns[-1])
    changed = list(dict.fromkeys(path for paths in edits for path in paths))
    if changed:
        more = f", and {len(changed) - MOST_FILES} more" if len(changed) > MOST_FILES else ""
        return f"{EDITED}{', '.join(changed[:MOST_FILES])}{more}"
    return _plain_end(turns[-1]) if turns else ""


class _Finding(NamedTuple):
    """What a turn tells: its main sentence; and, by place, that one and the other changes of a list."""

    score: float
    turn: int
    main: str = ""
    parts: Sequence[tuple[int, str]] = ()
    is_result: bool = False


def _main_findings(turns: Sequence[TurnParts], edits: Sequence[list[str]], about: str) -> str:
    """Return the findings of the main turns with edits, in order, else that of the last turn with one, or "".

    The main turns match the title and edit much. The last edit may only be a small repair.
    """
    title, found, status = _stems(subject_words(about)), list[_Finding](), ""
    following = [*(turn.prompt for turn in turns[1:]), ""]
    for number, (turn, paths, prompt) in enumerate(zip(turns, edits, following, strict=False)):
        if turn.outcome != "Interrupted" and not _REFUSED.match(prompt):
            status = (paths and _status(turn.answer)) or status
            found.append(_finding(number, turn, paths, title))
    found = sorted((one for one in found if one.main), reverse=True)
    main = next(iter(found), None)
    if main is None or main.score == -math.inf:
        return status or ("" if main is None or any(edits) else main.main)
    near = [one for one in found if one is main or (one.is_result and one.score > main.score - NEAR)]
    status = status.rstrip(" .!") if _CHECKS.search(about) else ""
    told = [[((one.turn, place), text) for place, text in one.parts] for one in near]
    said = joined(told, OUTCOME_CHARACTERS - len(status))
    if status or len(said) > 1:
        return "; ".join(filter(None, [status, *said]))
    bare = _FILE_IN_FRONT.sub("", main.main)
    return bare if CHANGED.match(bare) else main.main


def joined(told: Sequence[Sequence[tuple[tuple[int, ...], str]]], room: int) -> list[str]:
    """Return the texts that fit into `room` and name a new subject, in order of their places.

    `told` has the best text of each group first, and the best group first. Its first text is always there.
    """
    chosen, known = list[tuple[tuple[int, ...], str]](), set[str]()
    for level, texts in enumerate(itertools.zip_longest(*told)):
        for place, text in filter(None, texts):
            text = text.rstrip(" .")
            words = _stems(subject_words(text))
            if not chosen or (len(words - known) > (level == 0) and len(text) + 2 <= room):
                chosen.append((place, text))
                known |= words
                room -= len(text) + 2
    return [text for _, text in sorted(chosen)]


def _status(answer: str) -> str:
    """Return the sentences at the start of an answer that tell only the state of the work."""
    prose = _HEADING.sub("\n", FENCED.sub("\n", answer))
    said = itertools.takewhile(_tells_status, sentences(_BLOCK.split(prose.strip(), maxsplit=1)[0]))
    text = " ".join(one for one in said if not one.endswith(":"))
    return text if " " in text else ""


def _finding(number: int, turn: TurnParts, edits: Sequence[str], title: set[str]) -> _Finding:
    """Return the sentence of an answer that tells most about the prompt, the edits, and the title.

    It is "" if the answer has only plans, praise, questions, and status.
    """
    asked = subject_words(turn.prompt[:READ_CHARACTERS])
    subject = _stems([*asked, *subject_words(" ".join(edits))]) | title
    is_answer = is_question(turn.prompt)
    best, best_score, best_place, is_lead = "", -math.inf, 0, False
    changes: list[tuple[bool, float, int, str]] = []
    said = [one for one in _told(turn.answer[:READ_CHARACTERS]) if not _tells_status(one[0])]
    for place, (sentence, level) in enumerate(said):
        words = _stems(subject_words(sentence))
        shared = len(words & subject)
        is_change = CHANGED.match(sentence) is not None
        is_telling = shared or len(words) > 1 or WIDE.search(sentence)
        if not (is_telling or (is_change and _NAMES.search(sentence))):
            continue
        is_result = is_change or _EFFECT.match(sentence) is not None
        is_cause = not is_change and _CAUSE.search(sentence) is not None
        is_aside = _ASIDE.search(_FILE_IN_FRONT.sub("", sentence)) is not None
        score = min(shared, 3) + 2 * is_result - 2 * is_aside + 0.5 * ("`" in sentence)
        score += 0 if not is_cause else -2 if edits else 2
        holds = _HOLDS.search(sentence) is not None
        score += holds - 1.5 * bool(edits and level and not (is_result or holds))
        if place == 0 and not (is_cause and edits):
            score += 1 if level else 3 if is_answer or is_change else 2
        score -= min(place, 20 if level else 5) / 10
        if is_result and edits and not is_aside:
            changes.append((level > 1, -score, place, sentence))
        if score > best_score:
            best, best_score, best_place, is_lead = sentence, score, place, place == level == 0
    if edits and turn.answer.endswith(":") and not changes:  # the work went on behind it
        best = ""
    parts = [(best_place, shortened(best))]
    if edits and len(said) < FEW_WORDS and not any(level for _, level in said):
        others = ((place, one) for place, (one, _) in enumerate(said) if place != best_place)
        parts += [(place, shortened(one)) for place, one in others if not _CAUSE.search(one)]
    elif len(changes) > 1 and not is_lead and best in {sentence for *_, sentence in changes}:
        top = [one for one in sorted(changes) if one[0] == min(changes)[0]]
        chosen = (top if len(top) > 1 else sorted(changes))[:MOST_CHANGES]
        parts = [(place, shortened(sentence)) for _, _, place, sentence in chosen]
    best_score += min(len(_stems(subject_words(" ".join(text for _, text in parts))) & title), 3)
    is_result = not _ASIDE.search(best) and any(one.match(best) for one in (CHANGED, _EFFECT))
    score = best_score + math.log2(1 + len(edits)) if edits else -math.inf
    return _Finding(score, number, best, parts, is_result or _HOLDS.search(best) is not None)


def shortened(change: str) -> str:
    """Return what a change is, without the file in front of it and the reason behind it."""
    said = _PLACE.sub("", _FILE_IN_FRONT.sub("", change))
    detail = _DETAIL if CHANGED.match(change) else _NEXT
    ends = [match.start() for match in _MORE.finditer(said, LONG // 2, LONG)] if len(said) > LONG else []
    heads = [detail.split(said, maxsplit=1)[0], *(said[:end] for end in reversed(ends))]
    long = (one.rstrip(" .,") for one in heads if len(one.split()) >= FEW_WORDS)
    whole = [one for one in long if not any(len(pair.findall(one)) % 2 for pair in _PAIRS)]
    return next((one for one in whole if len(one) <= LONG), min(whole, key=len, default=said.rstrip(" .")))


def statements(answer: str) -> Iterator[str]:
    """Yield the sentences that state something; a short one, and one that ends in a colon, with the next.

    What was changed is told without the list behind its colon.
    """
    return (sentence for sentence, _ in _told(answer))


def _told(answer: str) -> Iterator[tuple[str, int]]:
    """Yield `statements`, and the level of each one in a list: 0 outside, 1, or 2 for an item of an item.

    A heading that tells a change is an item.
    """
    prose = _HEADING.sub(_as_item, FENCED.sub("\n\n[code]\n\n", answer))
    lead = ""
    for block in _BLOCK.split(prose):
        item = _ITEM.match(block)
        level = 0 if item is None else 2 if item["indent"] else 1
        for sentence in sentences(block.lstrip("\\ ")):
            if not lead.endswith(":") and CHANGED.match(sentence):
                lead = ""
            said = f"{lead} {sentence}".strip()
            if PLAN.match(sentence) or is_question(sentence) or sentence.startswith(("[", "<")):
                lead = ""
            elif sentence.endswith(":"):
                lead = ""
                if _tells_status(sentence):
                    continue
                if CHANGED.match(sentence) and len(sentence.split()) > FEW_WORDS:
                    yield _OPEN_END.sub("", sentence) + ".", level
                elif subject_words(sentence):
                    lead = sentence
            elif len(said.split()) < FEW_WORDS and not WIDE.search(said):
                lead = said if subject_words(sentence) or _SHORT.match(sentence) else ""
            else:
                yield said, level
                lead = ""


def _as_item(heading: re.Match[str]) -> str:
    text = _HEADING_MARKS.sub("", heading[0]).strip("*: ")
    is_item = not text.startswith("|") and CHANGED.match(text) and names_subject(text.partition(" (")[0])
    return f"\n\n- {text}.\n\n" if is_item else "\n"


def tells_result(sentence: str) -> bool:
    """Return whether a sentence tells a result: with a subject, and not only that all tests pass."""
    return len(subject_words(sentence)) > 1 and not _tells_status(sentence) and not PLAN.match(sentence)


def _tells_status(text: str) -> bool:
    return _STATUS.issuperset(_WORDS.findall(text.casefold()))


def shared_subject(text: str, other: str) -> int:
    """Return the number of words that name a subject of both texts."""
    return len(_stems(subject_words(text)) & _stems(subject_words(other)))


def _stems(words: Iterable[str]) -> set[str]:
    return {part.casefold()[:6] for word in words for part in _NAME_PARTS.findall(word)}


def _plain_end(turn: TurnParts) -> str:
    prose = " ".join(plain(_HEADING.sub("\n", FENCED.sub("\n", turn.answer))).split())
    best = next(statements(turn.answer[:READ_CHARACTERS]), prose)
    if best and not PLAN.match(best):
        return best
    return turn.tools[-1].partition(" → ")[2] if turn.tools else ""
