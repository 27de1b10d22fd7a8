"""Find what a user decided: a choice among options that an answer offered, a rule, or an agreement.

A choice is resolved: for "Take 7443." or "the second one", the line names the option. The phrases are English
first, with the usual ones of German, French, Spanish, and Japanese.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memkit.journal.sentences import (
    SENTENCE_CHARACTERS,
    is_question,
    names_subject,
    prose_sentences,
    subject_words,
    wording,
    wording_pattern,
)
from memkit.text import one_line

_MOST_AGREEMENT = 10
_CHOICE_CHARACTERS = 300
"""A longer prompt is more than a choice, so only its sentences count."""

_MOST_LINES, _OPENING_LINES = 12, 3
"""Of a prompt of more lines, only the first ones: the rest is usually pasted."""

_READ_CHARACTERS, _ENDING = 6000, 6
"""Of an answer: its end in characters, and in sentences where it offers something."""

_FEW_WORDS, _MANY_WORDS = 5, 11
"""A choice of so few words, or with a pronoun, needs the question that it answers."""

_AGREEMENT = frozenset(" ".join(wording("agreement")).split())
_LEAD = rf"(?:(?:{'|'.join(wording('lead'))})[\s,:]+)*"
_VERB = r"(?: (?:are|had|has|have|is|looks?|seems?|was|were|would)\b)"
_FIRST, _SECOND, _THIRD = wording("ordinals")

_DECIDES = wording_pattern("decides")
_RULE = wording_pattern("rules", r"(?:(?:and|but|no|ok(?:ay)?|please|so|yes),? +)*")
_UNDECIDED = wording_pattern("undecided")
_CHOSE, _PROPOSED, _ALTERNATIVES = map(wording_pattern, ("chose", "proposed", "alternatives"))
_SHALL = wording_pattern("shall", after=r"\b(?P<rest>[^?]{8,})\?")
_ANSWERED = wording_pattern("answered", _LEAD)
_LOOK = wording_pattern("look", r"(?:[\w'’]+[, ]+){0,3}?", r"\b")
_DELEGATES = wording_pattern("delegates", r"(?:[\w']+,? ){0,2}")
_BOTH = wording_pattern("both", _LEAD, rf"(?!{_VERB})")
_LABEL = re.compile(
    rf"{_LEAD}#?([1-9]|[A-E])(?:\)|で|\b(?![.:]\d| ?[%°]))(?P<rest>.*)", re.IGNORECASE | re.DOTALL
)
_ORDINAL = re.compile(
    rf"{_LEAD}(?:({_FIRST})|({_SECOND})|({_THIRD}))"
    rf"(?:で| (?=(?:{'|'.join(wording('after'))})\b)|(?=[.,;:!]|$))(?!(?: \w+)?{_VERB})(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_OPTION = re.compile(
    r"(?:^|(?<=[:;,.] )|(?<= )(?=\())[ \t>]*(?:[-*•] +|#{1,4} +)?(?:\*\*|__)?(?:option +)?"
    r"[(#]?([1-9]|[A-E])(?:[.):]| [-–—]|(?<=#\d) )(?:\*\*|__)? *"
    r"([^\n]+?)(?=[,;.]? (?:or |and )?(?:option |\()?(?:[2-9]|[B-E])[):] |\n|$)",
    re.IGNORECASE | re.MULTILINE,
)
_ITEM = re.compile(r"^[ \t]*[-*•] +([^\n]+)$", re.MULTILINE)
_REQUEST = re.compile(r"^(?:please|can|could|would|will)\b", re.IGNORECASE)
_HEDGE = wording_pattern("hedge", "^", " *")
_WORK = wording_pattern("work")
_NUMBER = re.compile(r"\d(?:[\d.,:]*\d)?")
_PRONOUN = re.compile(r"\b(?:it|this|that|them|one|es|das|ça|lo)\b", re.IGNORECASE)
_FOLLOWS = re.compile(r"(?:they|only|instead)\b", re.IGNORECASE)
_AGREES = re.compile(r"\A(?:agreed|ja|ok(?:ay)?|oui|sure|sí|yeah|yep|yes)[,:.]? +", re.IGNORECASE)
_INTERJECTION = re.compile(r"\A(?:(?:ah|hm+|oh|um+|well|so),? +)+", re.IGNORECASE)
_CLAUSE = re.compile(r"[,;:!] (?:but |and )?| but | [-–—] ")
_TAIL = re.compile(
    r"(?:[,;]| [-–—]) *(?:can|could|would|do|does|is|are|should)\b[^,;?]*\?$", re.IGNORECASE
)
"""A question behind what a sentence states."""

_BEHIND_COLON = re.compile(r":[ \t]*\n[ \t]*\n")
"""The end of an opening line; a long text behind it is pasted."""

_PASTED = re.compile(
    r"[\"“][^\"”\n]{25,}[\"”]|^.*(?:[❯$] |\bERR!|\b[A-Z]*(?:ERROR|FATAL)\b|Traceback).*$"
    r"|^(?:(?i:debug|error|fatal|hint|info|remote|warn(?:ing)?)\b[:\]]|\S+\.\w+:\d+"
    r"|[^\n]*(?:/tmp/|\b[0-9a-f]{8}-[0-9a-f]{4}-))[^\n]*(?:\n[^\n]*\S[^\n]*)*",
    re.MULTILINE,
)
"""Long quotations, and paragraphs that begin like the output of a program."""

_VAGUE = re.compile(rf"{_LEAD}(?:add|address|do|implement|let['’]?s|make|remove|skip)\b", re.IGNORECASE)
"""Without a word for a subject, such a sentence says only that work goes on."""

_AND = re.compile(r"[ .)]*(?:,|and )")
_MORE = re.compile(
    r"\b(?:but|with|without|and|also|except|only|aber|mit|mais|avec|pero|con)\b|\d", re.IGNORECASE
)


def accepts(prompt: str) -> bool:
    """Return whether a prompt only agrees."""
    words = prompt.casefold().replace("’", "'").split()
    bare = [word.strip(".,!:;()👍") for word in words]
    return 0 < len(words) <= _MOST_AGREEMENT and _AGREEMENT.issuperset(filter(None, bare))


def decisions(prompt: str, before: str = "", asked: str = "") -> list[str]:
    """Return what a prompt decides. `before` is the answer before it, `asked` the title of that turn."""
    before = before[-_READ_CHARACTERS:]
    told = prose_sentences(before)
    if accepts(prompt) or _DELEGATES.match(prompt):
        return _accepted(told[-_ENDING:])
    prompt = prompt[:_READ_CHARACTERS]
    opening, *pasted = _BEHIND_COLON.split(prompt, maxsplit=1)
    own_text = opening if len("".join(pasted)) > _CHOICE_CHARACTERS else prompt
    lines = _PASTED.sub("", own_text).split("\n")
    lines = lines if len(lines) <= _MOST_LINES else lines[:_OPENING_LINES]
    said = [_TAIL.sub("", one) for one in prose_sentences("\n".join(lines)) if not one.endswith(":")]
    own = next((one for one in said if not accepts(one)), "")
    if chosen := _chosen(own, prompt, before, told[-_ENDING:]):
        return [chosen]
    found = [number for number, one in enumerate(said) if decides(one)]
    if not found and own and len(prompt) <= _CHOICE_CHARACTERS and _answers(own, told[-_ENDING:]):
        found = [said.index(own)]
    whole = [_whole(said[number : number + 2], told, asked) for number in found]
    return [one for one in whole if subject_words(one) or not _VAGUE.match(one)]


def decides(sentence: str) -> bool:
    """Return whether a sentence states a decision by itself."""
    if is_question(sentence) and not _REQUEST.match(sentence):
        return False
    if _UNDECIDED.search(sentence):
        return False
    return (_DECIDES.search(sentence) or _RULE.match(sentence)) is not None


def _accepted(last: Sequence[str]) -> list[str]:
    """Return what the `last` sentences of an answer chose or proposed, as a statement."""
    found = [one for said in reversed(_proposals(last)) if (one := _HEDGE.sub("", said).strip())]
    stated = [one[:1].upper() + one[1:] for one in found]
    clear = [one for one in stated if not _PRONOUN.search(one[:20])]
    return (clear or stated)[:1]


def _proposals(last: Sequence[str]) -> list[str]:
    """Return the sentences that choose or propose, and those that a short question at the end asks about."""
    found = []
    ends_in_question = is_question(last[-1]) and len(last[-1].split()) <= _FEW_WORDS if last else False
    for number, said in enumerate(last):
        if _WORK.search(said):
            continue
        is_asked = ends_in_question and number == len(last) - 2 and names_subject(said)
        if shall := _SHALL.match(said):
            found.append(said[shall.start(1) : shall.end()].rstrip("?"))
        elif not is_question(said) and (is_asked or _CHOSE.search(said) or _PROPOSED.search(said)):
            found.append(said)
    return found


def _chosen(said: str, prompt: str, before: str, last: Sequence[str]) -> str:
    """Return the option that a sentence picks by its number, letter, or place, with what the prompt adds."""
    if not before:
        return ""
    said = prompt if len(prompt) <= _CHOICE_CHARACTERS else said
    options = _options(before)
    if _BOTH.match(said):
        offer = "; ".join(options.values()) or _question(last, is_open=True)
        return one_line(f"{said.rstrip('.')}: {offer}", SENTENCE_CHARACTERS)
    option = ""
    if match := _LABEL.match(said):
        option = options.get(match[1].upper(), "")
    elif match := _ORDINAL.match(said):
        number = next(n for n, one in enumerate(match.groups()[:3]) if one)
        values = list(options.values()) or [one.strip() for one in _ITEM.findall(before)[-4:]]
        option = values[number] if number < len(values) else ""
    if match is None or not option:
        return ""
    if said.endswith("?") and not _AND.match(match["rest"]):
        return ""
    adds_more = _MORE.search(match["rest"]) or len(prompt) > 2 * len(said)
    added = f" ({one_line(prompt, SENTENCE_CHARACTERS // 2)})" if adds_more else ""
    return one_line(option, SENTENCE_CHARACTERS - len(added)) + added


def _options(before: str) -> dict[str, str]:
    """Return the last list of numbered or lettered options of an answer, by label."""
    found: dict[str, str] = {}
    for label, text in _OPTION.findall(before):
        if label.upper() in ("1", "A"):
            found = {}
        found[label.upper()] = re.sub(r"\*\*|__", "", text).strip()
    return found if len(found) > 1 else {}


def _answers(said: str, last: Sequence[str]) -> bool:
    """Return whether a sentence answers what the `last` ones offered: it takes up its words, or chooses."""
    said = _INTERJECTION.sub("", _AGREES.sub("", said))
    end = " ".join(last).casefold()
    question = _question(last) or (end if _NUMBER.search(said) else "")
    if not question or _WORK.search(question):
        return False
    if said[-1:] == "." and said[:-1].isdigit():  # the number of a list item
        return False
    if is_question(said) or _LOOK.match(said) or _UNDECIDED.search(said):
        return False
    opening = re.split(r"[,;:.] | [-–—] ", said)[0].split()
    is_short = len(opening) <= _FEW_WORDS
    if any(map(_ANSWERED.match, _CLAUSE.split(said))):
        return is_short or any(word[:6] in end for word in subject_words(said))
    start = " ".join(opening)
    words = [*subject_words(start), *_NUMBER.findall(start), *opening[: len(opening) == 1]]
    return is_short and any(word[:6].casefold() in end for word in words)


def _question(last: Sequence[str], *, is_open: bool = False) -> str:
    """Return the sentence at the end of an answer that asks for a choice or proposes one, or "".

    With `is_open`, prefer the sentence that names the alternatives.
    """
    asked = [one for one in last if is_question(one)]
    proposed = [one for one in last if _PROPOSED.search(one) or _CHOSE.search(one)]
    offered = [one for one in last if _ALTERNATIVES.search(one)]
    groups = (offered, asked, proposed) if is_open else (asked, proposed, offered)
    return next((group[-1] for group in groups if group), "")


def _whole(said: Sequence[str], told: Sequence[str], asked: str) -> str:
    """Return a sentence with what it needs to be understood: the next one, or the question it answers."""
    text = said[0]
    if len(said) > 1 and _FOLLOWS.match(said[1]) and len(text) + len(said[1]) < SENTENCE_CHARACTERS:
        return " ".join(said)
    if len(text.split()) > (_MANY_WORDS if _PRONOUN.search(text) else _FEW_WORDS):
        return text
    value = next(iter(_NUMBER.findall(text)), "")
    clauses = (one for part in told for one in re.split(r"[,;] ", part))
    about = (one for one in clauses if _NUMBER.findall(one)[:2] == [value])
    contexts = [asked, next(about, "") if value else "", _question(told[-_ENDING:])]
    context = next(filter(names_subject, contexts), "")
    return one_line(f"{text} ({context})", SENTENCE_CHARACTERS) if context else text
