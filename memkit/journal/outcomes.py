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
from memkit.journal.sentences import PLAN, WIDE, is_question, plain, subject_words, wording, wording_pattern
from memkit.journal.titles import ACCEPTED
from memkit.journal.tool_lines import COMMIT_LINE, PULL_URL, Call, read_call
from memkit.journal.turn_parts import TurnParts

READ_CHARACTERS, PLAN_CHARACTERS = 4000, 400
MOST_COMMITS, MOST_FILES, MOST_CHANGES = 2, 4, 3
NEAR, MUCH, MOST_SHARED = 4.0, 5, 3
"""Another finding is shown if its score is that near to the best, and its turn has a fifth of the edits."""

FEW_WORDS = 4
"""A sentence with fewer words, such as "No." or "Clean solution.", needs the next one."""

_GIT = re.compile(r"\bgit\b", re.IGNORECASE)
_COMMIT = re.compile(
    r"(?:^|[;&|(\n])\s*(?:(?!echo|printf)\w+\s+)?git(?:\s+-\S+(?:\s+[^\s-]\S*)?)*?\s+commit\b(?P<rest>.*)",
    re.DOTALL,
)
_REBASE = re.compile(r"\brebase\b")
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

_HEADING = re.compile(r"^[ \t]*(?:\\?#{1,6} ([^\n]*)|\*\*([^*\n]+)\*\*:?[ ]*|(\|[^\n]*))$", re.MULTILINE)
"""A heading in an answer, which the journal writes in bold or escaped, or a row of a table."""

_NUMBER = re.compile(r"\d{1,2}[.)] ")
_CODE = "<code>"
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,2}[.)])\s")
_BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d{1,2}[.)])\s)|(?<=:)\n")
_CHANGED = re.compile(
    r"(?:`[^`]+`[ :–—-]+|[\w./-]+\.\w+[ :–—-]+|i(?:['’]ve| have)? |all )?(?:(?:now|also|successfully) )?"
    rf"(?:(?:{'|'.join(wording('changed'))})(?:(?<=mad|rot)e|ed|ied|ten)|built|kept)\b(?! \()"
    r"|(?:the|this) (?:change|fix|refactoring)\b",
    re.IGNORECASE,
)
_WHOLE = re.compile(r"i(?:['’]ve)? |successfully |all |.*\b(?:has|have) been \w+ed\b", re.IGNORECASE)
"""The start of a change that tells of the work as a whole."""

_STATUS = frozenset(" ".join(wording("status")).split())
_CAUSE = re.compile(r"(?:the )?(?:root )?(?:cause|problem|issue|bug|reason)\b", re.IGNORECASE)
_ENDED = re.compile(
    rf"\A(?:before\b|{_CAUSE.pattern})|\b(?:did|was|were)n['’]t\b"
    r"|\b(?:was|were) (?:always|caused|missing|never|not|(?:\w+ly )?\w+ing)\b"
    r"|\b(?:breaks|incorrect|only had|would)\b",
    re.IGNORECASE,
)
"""What edits have ended."""

_UNTIL = re.compile(r"If |.*\b(?:are|is) failing\b")
"""What may come, or what the edits are against."""

_LABEL = re.compile(
    r"\A(?:after|changes?|fix(?:es)?|result|solution|summary): +(?=\w)"
    rf"|\A[^`.:;]{{3,30}}: +(?={_CHANGED.pattern})",
    re.IGNORECASE,
)
_FILE_IN_FRONT = re.compile(r"^(?:`[^`]+`|[\w./-]+\.\w+(?::\d+)?) ?[:–—-]+ (?=\w)")
_DETAIL = re.compile(
    r" (?:—|–|-|(?:so that|because|instead of|which|ensuring|to (?:match|ensure|avoid))\b) ?|; |\. "
    r"|(?<!mplemented the plan): (?!`)| \([^()]*\)\.?$"
)
_LOOSE_END = re.compile(r"(?: (?:as|by|that|to|with))?[ .,:]*\Z")
_PLANNED = "Implemented the plan: "
_NOW, _HOLDS = (wording_pattern(name, r"\b", r"\b") for name in ("now", "holds"))
_UNDONE, _REFUSED = wording_pattern("undone"), wording_pattern("refused")
"""The start of a prompt that rejects the previous answer."""

_THANKS = wording_pattern("thanks", r"(?:\w+[,.! ]+){0,3}?", r"\b")

_SHORT = re.compile(r"(?:no|not|yes|ja|nein|non|oui|sí)\b|.*\d", re.IGNORECASE)
"""A short answer that the next sentence explains."""

_WORDS = re.compile(r"[^\W\d_]{3,}")
_QUOTED = re.compile(r"`[^`]+`")
_NAMES = re.compile(r"[`\d]")
_CUT_OFF = re.compile(r"\b(?:now(?: \w+)?|as|is|like|looks?|reads?|see|shows?|to|uses?|with):$")
_TESTS = re.compile(r"\b(?:assert|tests?\b|[`\"']?Test[A-Z_])|_tests?\b")
_ASIDE = re.compile(
    r"\bimports? (?:for|of|statement)|(?:missing|unused)\b.{0,30}\bimport|[`\"'] import\b|\bi was\b"
    r"|\A\d+ ",
    re.IGNORECASE,
)
"""An import line, which only serves a change, what the assistant did on its way, or a number of things."""

_OPEN_END = re.compile(
    r",?(?: [-–—] it now \w+| (?:because|that|to|which|with)(?: the following)?(?: \w+){0,2})?:$"
)
_NAME_PARTS = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}|[^\W\d_a-zA-Z]{2,}")


def commits(call: Call) -> Iterator[str]:
    """Yield the subjects of the commits that a call made, as git printed them or as the command has them."""
    if role_of(call.name) != "shell" or call.has_failed or not _GIT.search(call.given):
        return
    match = _COMMIT.search(call.given)
    is_written = match is not None and "<<" in call.given[: match.start()]  # in a script
    if is_written or "git init" in call.given:  # a repository to try things in
        return
    if match is None and _REBASE.search(call.given):  # it names older commits
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
    rank = {one: 0 if one.startswith("feat") else 2 if _UPKEEP.match(one) else 1 for one in reversed(main)}
    return [one for one in main if one in sorted(rank, key=rank.__getitem__)[:most]]


def is_main(commit: str) -> bool:
    """Return whether a commit's subject says what was done, unlike "Merge branch" or "address comments"."""
    return not _MERGE.match(commit) and not _tells_status(_KIND.sub("", commit))


def outcome(turns: Sequence[TurnParts], about: str = "") -> str:
    """Return what came of `turns`, which follow each other. `about` is the title of their session."""
    while len(turns) > 1 and is_thanks(turns[-1]):
        turns = turns[:-1]
    if len(turns) == 1 and turns[0].outcome == "Interrupted":
        return "interrupted"
    calls = [read_call(line) for turn in turns for line in turn.tools]
    if pulls := [title for call in calls for title in pull_requests(call)]:
        return PULL_REQUEST + "; ".join(main_commits(pulls, MOST_COMMITS))
    done = [subject for call in calls for subject in commits(call)]
    edits = [turn.edited for turn in turns]
    if any(map(is_main, done)) or (done and not any(edits)):
        return COMMITTED + "; ".join(main_commits(done, MOST_COMMITS))
    if best := _main_findings(turns, edits, _stems(subject_words(about))):
        return best
    if done:
        return COMMITTED + done[-1]
    if turns and is_question(turns[-1].prompt) and 0 < len(turns[-1].answer.split()) <= FEW_WORDS:
        return _plain_end(turns[-1])
    changed = list(dict.fromkeys(path for paths in edits for path in paths))
    if changed:
        more = f", and {len(changed) - MOST_FILES} more" if len(changed) > MOST_FILES else ""
        return f"{EDITED}{', '.join(changed[:MOST_FILES])}{more}"
    return _plain_end(turns[-1]) if turns else ""


def is_thanks(turn: TurnParts) -> bool:
    """Return whether a turn only thanks for the work before it."""
    return not turn.tools and _THANKS.match(turn.prompt) is not None and not subject_words(turn.prompt)


def _main_findings(turns: Sequence[TurnParts], edits: Sequence[list[str]], title: set[str]) -> str:
    """Return the findings of the main turns with edits, else the finding of the last turn with one, or "".

    The main turns match the title and edit much. The last edit may only be a small repair.
    """
    found: list[tuple[float, int, list[str]]] = []
    following = [*(turn.prompt for turn in turns[1:]), ""]
    for number, (turn, paths, prompt) in enumerate(zip(turns, edits, following, strict=False)):
        if turn.outcome == "Interrupted" or _REFUSED.match(prompt) or not (turn.prompt or turn.tools):
            continue
        score, parts = _finding(turn, paths, title)
        if parts:
            found.append((score + 1.5 * math.log2(1 + len(paths)) if paths else -math.inf, number, parts))
    if not found:
        return ""
    found.sort(reverse=True)
    score, number, best = found[0]
    if score == -math.inf and any(edits):
        return ""
    known, told = _stems(subject_words(" ".join(best))), {number: best}
    for its_score, other, (sentence, *_) in found[1:]:
        is_main = its_score > score - NEAR and len(edits[other]) * MUCH >= len(edits[number])
        is_change = not edits[other] or _CHANGED.match(sentence) or _NOW.search(sentence)
        if is_main and is_change and len(told) < MOST_CHANGES and _is_new(sentence, known):
            told[other] = [sentence]
    told[number] = best[: MOST_CHANGES + 1 - len(told)]
    joined = [sentence for one in sorted(told) for sentence in told[one]]
    return "; ".join(map(_shortened, joined)) if len(joined) > 1 else best[0]


def _finding(turn: TurnParts, edits: Sequence[str], title: set[str]) -> tuple[float, list[str]]:
    """Return the score and the sentence of an answer that tells most about the prompt, the edits, and the
    title, or several changes. There is none if the answer has only plans, praise, questions, and status.
    """
    plan = ACCEPTED.match(turn.prompt)
    asked = subject_words(turn.prompt[: PLAN_CHARACTERS if plan else READ_CHARACTERS])
    subject = _stems([*asked, *subject_words(" ".join(edits))]) | title
    is_answer = is_question(turn.prompt) and not edits
    is_undone = any(map(_UNDONE.match, [*sentences(turn.answer.rpartition("\n")[2])][-1:]))
    best, best_score = "", -math.inf
    changes = dict[str, float]()
    said = [one for one in _told(turn.answer[:READ_CHARACTERS]) if not _tells_status(one[0])]
    for number, (sentence, is_item) in enumerate(said):
        told = subject_words(_FILE_IN_FRONT.sub("", sentence))
        words = _stems(told)
        shared = len(words & subject)
        is_change = _CHANGED.match(sentence) is not None
        is_telling = shared or len(words) > 1 or WIDE.search(sentence) or (words and (is_answer or not asked))
        if not (is_telling or (is_change and _NAMES.search(sentence))):
            continue
        score = min(shared, MOST_SHARED) + min(len(words & title), MOST_SHARED) / 4
        is_now = _NOW.search(sentence) is not None and len(told) > 1
        if edits and (_UNTIL.match(sentence) or (is_undone and not (is_change or is_now))):
            continue
        if is_change or (edits and is_now) or (not edits and _CAUSE.match(sentence)):
            score += 2 + (is_change and (is_now or _WHOLE.match(sentence) is not None))
        elif is_now or _HOLDS.search(sentence):
            score += 1
        if edits and not is_change and _ENDED.search(sentence):
            score -= 4
        is_aside = _ASIDE.search(sentence) is not None
        score += ("`" in sentence) / 2 - 2 * is_aside - (_TESTS.search(sentence) is not None)
        if number == 0:
            score += 1 if is_item else 3 if is_answer else 2
        elif is_item:  # a detail
            score -= 1
        score -= min(number, 20) / (10 if is_item else 40)
        if is_change and edits and not is_aside:
            changes[sentence] = score
        if score > best_score:
            best, best_score = sentence, score
    if not best:
        return best_score, []
    told, known = [best], set[str]()
    is_lead = said[0] == (best, False)  # of the list below it
    is_detail = (best, True) in said and not _NOW.search(best)
    if _CHANGED.match(best) or (is_detail and max(changes.values(), default=-math.inf) > best_score - 1.5):
        top = sorted((one for one in changes if not is_lead or (one, False) in said), key=changes.__getitem__)
        told = [one for one in changes if one in top[-MOST_CHANGES:] and _is_new(one, known)] or told
    if edits and plan and not is_undone and not _WHOLE.match(best):
        told[0] = _PLANNED + (_shortened(told[0]) if told[1:] else _FILE_IN_FRONT.sub("", told[0]))
    return best_score + min(len(_stems(subject_words(told[0])) & title), MOST_SHARED), told


def _is_new(sentence: str, known: set[str]) -> bool:
    """Add the words of a sentence to those `known`; return whether they are few or many are new."""
    words = _stems(subject_words(_FILE_IN_FRONT.sub("", sentence)))
    new = words - known
    known |= new
    return len(words) < MOST_SHARED or len(words) <= 3 * len(new)


def _shortened(change: str) -> str:
    """Return what a change is, without the file in front of it and the reason behind it."""
    said = _FILE_IN_FRONT.sub("", change)
    short = _LOOSE_END.sub("", _DETAIL.split(said, maxsplit=1)[0])
    is_cut = _CUT_OFF.search(f"{short}:") or any(short.count(mark) % 2 for mark in "`\"")
    is_telling = (_CHANGED.match(short) or _NOW.search(short)) and len(short.split()) >= FEW_WORDS - 1
    is_vague = "`" not in short and len(subject_words(short)) < 2 and _NOW.search(said)
    return short if is_telling and not (is_cut or is_vague) else said.rstrip(" .")


def statements(answer: str) -> Iterator[str]:
    """Yield what an answer states: a short sentence with the next one, a change without the list below it."""
    return (sentence for sentence, _ in _told(answer))


def _told(answer: str) -> Iterator[tuple[str, bool]]:
    """Yield `statements`, and whether each one is an item of a list."""
    prose = _HEADING.sub(_told_heading, FENCED.sub(f"\n\n{_CODE}\n\n", answer))
    lead, is_item = "", False
    for block in _BLOCK.split(prose):
        if is_item and not lead.endswith((":", " that", " to")):
            lead = ""
        is_item = _ITEM.match(block) is not None
        for sentence in (_LABEL.sub("", one) for one in sentences(block.lstrip("\\ "))):
            is_change = _CHANGED.match(sentence) is not None
            said = sentence if is_change else f"{lead} {sentence}".strip()
            lead = ""
            if PLAN.match(sentence) or is_question(sentence) or sentence.startswith(("[…", "<")):
                continue
            if sentence.endswith(":"):
                if _tells_status(_QUOTED.sub("", sentence) if " changes " in sentence else sentence):
                    continue
                is_whole = is_change or (_NOW.search(sentence) and not _CUT_OFF.search(sentence))
                if sentence.endswith((" that:", " to:")):
                    lead = sentence.rstrip(":")
                elif is_whole and len(sentence.split()) > FEW_WORDS:
                    yield _OPEN_END.sub("", sentence) + ".", is_item
                elif subject_words(sentence) or is_change:
                    lead = sentence
            elif len(said.split()) >= FEW_WORDS or WIDE.search(said) or (is_change and _QUOTED.search(said)):
                yield said, is_item
            else:
                lead = said if subject_words(sentence) or _SHORT.match(sentence) else ""


def _told_heading(match: re.Match[str]) -> str:
    """Return what a heading or a row of a table tells of a change: most only name what is below them."""
    cells = match[3].split("|") if match[3] else [_NUMBER.sub("", match[1] or match[2], count=1)]
    told = next((one for one in map(plain, reversed(cells)) if _CHANGED.match(one)), "")
    return f"\n\n{'- ' if match[3] else ''}{told}\n\n" if told else "\n"


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
        return best.rstrip(":")
    said = turn.tools[-1].partition(" → ")[2] if turn.tools else ""
    return "" if said == "no result" else said
