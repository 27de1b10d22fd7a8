"""Remove secrets from text before anything is written.

Invisible text (colors, control characters, zero-width characters) goes first, so that it
cannot hide a secret. Each secret becomes `[redacted:kind]`. `secret_formats` knows secrets by their form,
`secret_values` by their context.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from re import Match, Pattern

from memkit.privacy.literals import lower
from memkit.privacy.secret_formats import known, of_literals, without_wrapped_lines
from memkit.privacy.secret_values import assigned

MAX_PASSES = 5
"""Passes of the search. Hiding one secret can give another a new neighbor; two passes are usual."""

SHORTEST = 8
"""Characters of the shortest text with a secret, and half of those of the shortest key without a name."""

NEAR = 400
"""Characters around a mark in which another pass searches."""

MOST_CLEAN = 8192
_clean: set[tuple[object, ...]] = set()
"""Digests of texts that hold no secret, with the patterns. An import asks for the same text up to six times."""

SKIP = "#skip"
"""The word in a prompt that drops its turn."""

_SKIP = re.compile(r"(?i)(?<!\S)" + SKIP + r"(?![\w-])")
MARK = re.compile(r"\[redacted:([a-z-]+)\]")
"""The replacement of a secret, with its kind as the only group."""

_MARK_START = "[redacted:"
_GAP = "\0"

FINANCIAL = (
    r"(?<![\w.-])(?:4\d{3}|5[1-5]\d{2}|2[2-7]\d{2}|6(?:011|4[4-9]\d|5\d\d|2\d\d)|35\d{2})(?:[ -]?\d{4}){3}(?:[ -]?\d{1,3})?(?![\w-])"
    r"|(?<![\w.-])3[47]\d{2}[ -]?\d{6}[ -]?\d{5}(?![\w-])|(?<![\w.-])3[068]\d{2}[ -]?\d{6}[ -]?\d{4}(?![\w-])"
    r"|(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]){11,30}(?![A-Za-z0-9])"
)
"""A pattern for card numbers and IBANs. `redact` hides a match only if its check digits are right."""

# An escape sequence ends on its line. One without an end hides nothing.
_ESCAPES = (
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"  # colors, movements of the cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f\n]{0,4000}(?:\x07|\x1b\\|\x9c)"  # titles, links
    r"|\x1b[ -/]{0,8}[0-~]"
)
_OVERSTRUCK = r"([^\n])\x08(?=\1)"
_CONTROLS = r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]"
_PRINTABLE = bytes([*b"\t\n\r", *range(32, 127)])
_LINE_ENDS = r"[\r\x0b\x0c\x85\u2028\u2029](?!(?<=\r)\n)"
_BIDI = r"[\u202a-\u202e\u2066-\u2069]"
# Between letters of other scripts, and in emoji, these have a meaning.
_NO_WIDTH = (
    r"[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    r"\ufff9-\ufffb\U000e0000-\U000e01ef]"
)
_NO_WIDTHS = _NO_WIDTH + _NO_WIDTH + "*"  # faster than `+`, for which the search cannot skip ahead
_PRIVATE_TAG = r"(?i)<[ \t]{0,9}(/?)[ \t]{0,9}private(?=[\s/>])[^<>]{0,200}>"


@cache
def rules() -> str:
    """Return a fingerprint of the rules: text that was redacted by the same ones has nothing to redact."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def visible(text: str, instead: str = "") -> str:
    """Return `text` without escape sequences, control characters, and invisible characters between letters.

    Line ends and tabs stay. `instead` replaces each removed part.
    """
    if text.isascii() and not text.encode().translate(None, _PRINTABLE):
        return text
    letters = text.encode("utf-8", "surrogatepass").translate(None, _PRINTABLE).decode("utf-8", "surrogatepass")
    if _compiled(_CONTROLS).search(letters):  # each escape sequence begins with one
        text = _compiled(_ESCAPES).sub(instead, text)
        if "\x08" in text:
            text = _compiled(_OVERSTRUCK).sub("", text)
        text = _compiled(_CONTROLS).sub(instead, text)
    if _compiled(_BIDI).search(letters):
        text = _compiled(_BIDI).sub(instead, text)
    if _compiled(_NO_WIDTH).search(letters):
        text = _compiled(_NO_WIDTHS).sub(lambda match: instead if _is_hiding(match) else match[0], text)
    return text


def _is_hiding(unseen: Match[str]) -> bool:
    """Return whether invisible characters touch a visible one, and so may hide part of a secret."""
    start, end = unseen.span()
    return any("!" <= letter <= "~" for letter in unseen.string[max(0, start - 1) : end + 1])


def redact(text: str, patterns: Iterable[Pattern[str]] = ()) -> str:
    """Return the `visible` part of `text` without known key formats, named secrets, and `patterns`.

    Redacting twice changes nothing more.
    """
    patterns = list(patterns)
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    if (digest, *patterns) in _clean:
        return text
    shown = _without_secrets(text, patterns)
    if shown == text:
        if len(_clean) >= MOST_CLEAN:
            _clean.clear()
        _clean.add((digest, *patterns))
    return shown


def _without_secrets(text: str, patterns: list[Pattern[str]]) -> str:
    seen = visible(text)
    shown = _hide(seen, patterns)
    # Invisible characters may end a word or be inside one, and not every reader ends a line at
    # rare line ends. Use the reading that finds more.
    if seen != text:
        parted = _hide(visible(text.replace(_GAP, ""), _GAP), patterns).replace(_GAP, "")
        shown = max(shown, _hide(parted, patterns), key=_how_much)
    if any(map(seen.__contains__, "\r\x0b\x0c\x85\u2028\u2029")) and _compiled(_LINE_ENDS).search(seen):
        joined = _hide(_compiled(_LINE_ENDS).sub("", seen), patterns)
        shown = max(shown, joined, key=lambda one: one.count(_MARK_START))
    return shown


def _how_much(shown: str) -> tuple[int, int]:
    """Return a sort key: how many secrets are hidden, and how little text is left."""
    return shown.count(_MARK_START), -len(MARK.sub("", shown))


def _hide(text: str, patterns: list[Pattern[str]]) -> str:
    shown = _hide_once(text, patterns)
    for _ in range(MAX_PASSES - 1):
        if shown == text:
            break
        text, shown = shown, _hide_near_marks(shown, patterns)
    return shown


def _hide_once(text: str, patterns: list[Pattern[str]]) -> str:
    if len(text) >= SHORTEST and not (len(text) < 2 * SHORTEST and text.isidentifier()):
        lowered = lower(text)
        places = of_literals(lowered)
        found = [*known(text, places), *((span, "secret") for span in assigned(text, lowered, places))]
        text = without_wrapped_lines(_hide_kinds(text, found)) if found else text
    for pattern in patterns:
        text = _hide_custom(text, pattern)
    return text


def _hide_kinds(text: str, found: list[tuple[tuple[int, int], str]]) -> str:
    """Hide each span as its kind. Spans that overlap become one, of the kind that was found first."""
    united: list[list[int]] = []
    for (start, end), order in sorted((span, order) for order, (span, _) in enumerate(found)):
        if united and start < united[-1][1]:
            united[-1][1:] = max(united[-1][1], end), min(united[-1][2], order)
        else:
            united.append([start, end, order])
    kept: list[str] = []
    done = 0
    for start, end, order in united:
        kept += [text[done:start], _mark(found[order][1])]
        done = end
    return "".join([*kept, text[done:]])


def _hide_near_marks(text: str, patterns: list[Pattern[str]]) -> str:
    """Search `text` again near marks, where a secret may have a new neighbor."""
    kept: list[str] = []
    done = 0
    marks = MARK.finditer(text)
    mark = next(marks, None)
    while mark is not None:
        start = text.rfind("\n", done, max(done, mark.start() - NEAR)) + 1 or done
        end = mark.end()
        while mark is not None and mark.start() - NEAR <= end:
            end = text.find("\n", mark.end() + NEAR)
            end = end if end >= 0 else len(text)
            mark = next(marks, None)
        kept += [text[done:start], _hide_once(text[start:end], patterns)]
        done = end
    kept.append(text[done:])
    return "".join(kept)


def skips(prompt: str) -> bool:
    """Return whether the prompt drops its turn: it contains `#skip`, or leaves `<private>` open."""
    return _SKIP.search(prompt) is not None or leaves_open(prompt)


def leaves_open(typed: str) -> bool:
    """Return whether a `<private>` in what the user typed is not closed."""
    depth = 0
    for tag in _tags(visible(typed)):
        depth = max(0, depth - 1) if tag[1] else depth + 1
    return depth > 0


def hid_private(text: str) -> bool:
    """Return whether a `<private>` part was cut from `text`."""
    return _mark("private") in text


def _mark(kind: str) -> str:
    return _MARK_START + kind + "]"


def _hide_custom(text: str, pattern: Pattern[str]) -> str:
    """Hide what a user's pattern matches, except parts of existing marks."""
    is_financial = pattern.pattern == FINANCIAL
    if is_financial:
        found = [span for match in pattern.finditer(text) for span in _financial_numbers(match)]
    else:
        found = [match.span() for match in pattern.finditer(text) if match.group()]
    if not found:
        return text
    marks = deque(match.span() for match in MARK.finditer(text))
    kept: list[str] = []
    done = 0
    for start, end in found:
        while marks and marks[0][1] <= start:
            marks.popleft()
        if marks and marks[0][0] <= start and end <= marks[0][1]:
            continue
        while marks and marks[0][0] < end:
            start, end = min(start, marks[0][0]), max(end, marks[0][1])
            marks.popleft()
        if start >= done:  # otherwise it belongs to the mark of the previous match
            kept += [text[done:start], _mark("financial" if is_financial else "custom")]
        done = max(done, end)
    kept.append(text[done:])
    return "".join(kept)


def _financial_numbers(match: Match[str]) -> Iterator[tuple[int, int]]:
    text, start = match.group(), match.start()
    if text[0].isdigit():
        digits = [int(digit) for digit in text if digit.isdigit()]
        odd = digits[-1::-2]
        even = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
        if len(set(digits)) > 1 and (sum(odd) + sum(even)) % 10 == 0:  # Luhn
            yield match.span()
        return
    for end in range(len(text), 14, -1):  # words in capitals can follow an IBAN
        iban = text[:end].replace(" ", "")
        if text[end - 1] == " " or len(iban) < 15 or text[end : end + 1].isalnum():
            continue
        if int("".join(str(int(one, 36)) for one in iban[4:] + iban[:4])) % 97 == 1:
            yield start, start + end
            return


def without_private(text: str) -> str:
    """Cut `<private>` parts from what the user typed: nested ones whole, an unclosed one to the end."""
    text = visible(text)
    kept: list[str] = []
    depth = position = 0
    for match in _tags(text):
        closing = match.group(1) == "/"
        if depth == 0:
            kept.append(text[position : match.start()])
            kept.append(match.group(0) if closing else _mark("private"))
        depth = max(0, depth - 1) if closing else depth + 1
        position = match.end()
    if depth == 0:
        kept.append(text[position:])
    return "".join(kept)


def without_unopened(prompt: str) -> str:
    """Return `prompt` without the text before a `</private>` that nothing in it opened.

    Such a prompt was typed into the middle of a turn, and its private part began in an earlier one.
    """
    prompt = visible(prompt)
    depth = end = 0
    for tag in _tags(prompt):
        if not tag[1]:
            depth += 1
        elif depth:
            depth -= 1
        else:
            end = tag.end()
    return _mark("private") + prompt[end:] if end else prompt


@cache
def _compiled(pattern: str) -> Pattern[str]:
    return re.compile(pattern)


def _tags(text: str) -> Iterator[Match[str]]:
    return _compiled(_PRIVATE_TAG).finditer(text) if "<" in text else iter(())
