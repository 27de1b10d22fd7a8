"""Find the line of a tool's result that tells how it went: a commit, an error, a count.

The patterns are ranked and name no program: a test runner, a linter, and a package manager say much the same.
"""

from __future__ import annotations

import re
from collections import Counter

from memkit.hook.phrases import EMOJI
from memkit.journal.markup import one_line, printable

OUTCOME_CHARACTERS = 90
_FEW_LINES = 8
"""The last of more lines, such as of a listing, usually tells nothing."""


REASONS = (
    re.compile(r"(?:^|\s)(?:error|fatal)\b[: \[]|^\w*(?:Error|Exception)\b|^E  ", re.IGNORECASE),
    re.compile(
        r"\b(?:error|failed|failure|cannot|could not|not found|denied|unused|assert)\b"
        r"|\b[1-9][\d,]* (?:broken|conflicts?|invalid|lost|mismatch\w*|missing|unresolved)\b",
        re.IGNORECASE,
    ),
)
"""Patterns of the line that explains a failure. A line that matches the first pattern is preferred."""

COUNTED = re.compile(r"\b[1-9]\d* (?:tests? )?(?:failed|failing|failures?|errors?)\b", re.IGNORECASE)
COMMITTED = re.compile(r"^\[[^\]\n]*\b[0-9a-f]{7,40}\] (.+)$", re.MULTILINE)
PULL_URL = re.compile(r"https://[^\s\"'<>]{1,300}/(?:pull|merge_requests)/\d+")

LOOKS = frozenset(
    "[ awk cat cd command curl du echo fd file find grep head jq less ls ps pwd rg sed sleep stat tail test "
    "tree type wc which".split()
)
"""Commands that only look. Their failure means nothing unless they were tried again."""

_GIT_LOOKS = ("git diff", "git log", "git show", "git status")
_STAGES = re.compile(r"git add [^&|;<>`$]*")
_LIST = re.compile(r"&&|[;&<>`$\n]")

_RESULTS = (
    COMMITTED,
    PULL_URL,
    COUNTED,
    re.compile(r"^(?:error|fatal|panic)\b[: \[]|^\w*(?:Error|Exception): |^! \["),
    re.compile(r"^(?:[+*=-] ?)?(?:[0-9a-f]{6,}\.{2,3}[0-9a-f]{6,}|\[new \w+\]) +\S+ +-> "),
    re.compile(
        r"""\b\d+\ (?:\w+\ )?(?:passed|passing|changed|vulnerabilities)\b
        | \bno\ (?:\w+\ ){0,2}(?:errors?|fixes|issues?|problems?)\b | \bnothing\ to\ commit\b
        | \ball\ (?:\w+\ ){0,3}(?:clean|ok|pass(?:ed)?)\b | \bsuccess(?:ful(?:ly)?)?\b
        | ^(?:added|built|changed|checked|compiled|deployed|fixed|formatted|installed|removed|updated)\b.*\d
        """,
        re.IGNORECASE | re.VERBOSE,
    ),
)
"""Patterns of the line that tells the result of a call that did not fail, the best first."""

_ACKNOWLEDGED = re.compile(
    r"^The file \S+ has been |^\w+ (?:have|has) been \w+ successfully\b|^\w+ recorded successfully\b"
    r"|\b(?:no|without) (?:output|content)\)?\.?$|^Shell cwd was reset\b|^Exit code \d+$",
    re.IGNORECASE,
)
"""What a tool says whatever it did."""

_ADVICE = re.compile(
    r"^(?:tip|hint|note|notice|npm notice)\b|\bsee:? https?://|^run [`'\"]|^\(use |^To \S+$"
    r"|loaded from \.env",
    re.IGNORECASE,
)
_SAME_NAME = re.compile(r" (\S+) -> \1$")
_ECHO = re.compile(r"^> \S")
_CODE = re.compile(r"[;{}(\[,:]\s*$|·")
_FRAME = re.compile("[\u2500-\u259f]+ ?")
_SENTENCE_END = re.compile(r"(?<=[^\s.][.!?])\s")
_SENTENCE_CHARACTERS = 25
"""A shorter sentence at the start of an error is cut together with the next one."""


def telling_line(result: str, *, has_failed: bool, first: bool = False) -> str:
    """Return the line of `result` that tells how the call went, or "".

    Without a known wording, that is the last line of a few, or the `first` one of a report by a sub-agent.
    """
    lines = [line for line in telling_lines(result) if not _ACKNOWLEDGED.search(line)]
    if not lines:
        return ""
    if has_failed:
        return _reason(lines)
    if first:
        return lines[0]
    for pattern in _RESULTS:
        found = [match for line in lines if (match := pattern.search(line))]
        if found:
            line = found[-1][0] if pattern is PULL_URL else found[-1].string
            return _SAME_NAME.sub(r" \1", line)
    if len(lines) > _FEW_LINES:
        return ""
    seen = Counter(lines)
    said = [line for line in lines if not _ADVICE.search(line)]
    once = [line for line in said if seen[line] == 1 and not _CODE.search(line)]
    return (once or said or lines)[-1]


def is_step(command: str) -> bool:
    """Return whether a command only looks, or only stages files, so that what follows from it tells more."""
    if _LIST.search(command):
        return False
    parts = [" ".join(part.split()) for part in command.split("|")]
    looks = (part.startswith(_GIT_LOOKS) or part.split(" ")[0] in LOOKS for part in parts)
    return all(looks) or _STAGES.fullmatch(parts[0]) is not None


def telling_lines(text: str) -> list[str]:
    """Return the lines with letters or digits, without those of a drawn frame if there are others."""
    lines = [line for line in printable(text).split("\n") if any(map(str.isalnum, line))]
    lines = [line for line in lines if not _FRAME.search(line)] or lines
    lines = [line for line in lines if not _ECHO.match(line)] or lines
    cleaned = (
        one_line(re.sub(f"{EMOJI.pattern} ?", "", _FRAME.sub("", line)), OUTCOME_CHARACTERS)
        for line in lines
    )
    return [line for line in cleaned if line]


def _reason(lines: list[str]) -> str:
    told = [line for line in lines if not _CODE.search(line) and not _RESULTS[-1].search(line)] or lines
    wanted = (REASONS[0], COUNTED, REASONS[1])
    line = next((line for pattern in wanted for line in told if pattern.search(line)), told[0])
    end = _SENTENCE_END.search(line, _SENTENCE_CHARACTERS)
    return line[: end.start()] if end else line
