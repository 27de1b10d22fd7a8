"""Find what a user decided: a choice among options that an answer offered, a rule, or an agreement.

A choice is resolved: for "Take 7443." or "the second one", the line names the option. Whether another
sentence decides is a matter of weight: of what it says, what it takes up of the answer, and what stands
around it. The phrases are English first, with the usual ones of German, French, Spanish, and Japanese.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

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

_FEW_WORDS, _MANY_WORDS, _SHORT_QUESTION = 8, 11, 5
"""A choice of so few words, or with a pronoun, needs the question that it answers."""

_TOLD, _ASKED = 8, 3
"""The sentences at the end of an answer that a prompt takes up, and those that may ask it."""

_STEM, _FEW_TAKEN, _VALUE_WORDS = 5, 3, 5
"""The letters by which words are the same, how many of an answer are enough, and the most around a value."""

_TAKEN = (0.9, 0.7, 0.5, 0.8, 0.9, -0.6)
"""The weights of what `_taken_up` returns."""

_ENOUGH = 2.1
"""The weight above which a sentence decides. It and the other weights were fitted to labeled dialogues."""


class _Signal(NamedTuple):
    place: str
    weight: float
    pattern: re.Pattern[str]


def _signals() -> Iterator[_Signal]:
    for group in "\n".join(wording("signals"))[2:].split("\n= "):
        head, *patterns = group.split("\n")
        start = "^" if head.startswith(("opens", "clauses")) else ""
        pattern = re.compile(f"{start}(?:{'|'.join(patterns)})", re.IGNORECASE | re.MULTILINE)
        for place, weight in zip(head.split()[::2], head.split()[1::2], strict=True):
            yield _Signal(place, float(weight), pattern)


_AGREEMENT = frozenset(" ".join(wording("agreement")).split())
_LEAD = rf"(?:(?:{'|'.join(wording('lead'))})[\s,:]+)*"
_VERB = r"(?: (?:are|fail|had|has|have|is|looks?|seems?|sounds?|was|were|works?|would)\b)"
_FIRST, _SECOND, _THIRD = wording("ordinals")

_CHOSE, _PROPOSED, _ALTERNATIVES = map(wording_pattern, ("chose", "proposed", "alternatives"))
_SHALL = wording_pattern("shall", after=r"\b(?! (?:it|this|that|these|those|them)\b)[^?]{4,}\?")
_DELEGATES = wording_pattern("delegates", r"(?:[\w']+,? ){0,2}")
_BOTH = wording_pattern("both", _LEAD, rf"(?!{_VERB})")
_LABEL = re.compile(
    rf"{_LEAD}#?([1-9]|[A-E])(?P<more>(?:(?:, ?| ?[+&] ?| (?:and|und|et|y) )(?:[1-9]|[A-E])\b)*)"
    r"(?:\)|で|\b(?![.:]\d| ?[%°]))(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_ORDINAL = re.compile(
    rf"{_LEAD}(?:({_FIRST})|({_SECOND})|({_THIRD}))"
    rf"(?:で| (?=(?:{'|'.join(wording('after'))})\b)|(?=[.,;:!]|$))(?!(?: \w+)?{_VERB})(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_NOUN = r"(?:option|variante?|opción|lösung|solution|piste|plan|案)"
_OPTION = re.compile(
    r"(?:^|(?<=[:;,.。] )|(?<=[:;,.。])(?=案)|(?<= )(?=\(|[2-9B-E]\)|[2-9]\. ))[ \t>]*"
    rf"(?:[-*•] +|#{{1,4}} +)?(?:\*\*|__)?(?:{_NOUN} *)?"
    r"[(#]?([1-9]|[A-E])(?:[.)は]| ?:| [-–—]|(?<=#\d) )(?:\*\*|__)? *"
    rf"([^\n]+?)(?=[,;.、。]? ?(?:or |and )?(?:{_NOUN} *|\()?(?<![a-zß-ž\d])"
    r"(?:(?:[2-9]|[B-E])(?:[)は]| ?:)|[2-9]\. )|\n|$)",
    re.IGNORECASE | re.MULTILINE,
)
_EITHER = re.compile(r",? (?:o|oder|or|ou) ")
_ITEM = re.compile(r"^[ \t]*[-*•] +([^\n]+)$", re.MULTILINE)
_HEDGE = wording_pattern("hedge", "^", " *")
_WORK = wording_pattern("work")
_NUMBER = re.compile(r"\d(?:[\d.,:]*\d)?")
_PRONOUN = re.compile(r"\b(?:it|this|that|them|one|es|das|ça|lo)\b", re.IGNORECASE)
_AGREES = wording_pattern("agrees", r"\A", r"\b")
_SIGNALS = list(_signals())
_OPENING = wording_pattern("opening words", r"\A(?:", r")*")
_CLAUSE = re.compile(r"[,;:.!…] | [-–—]+ |[、。]| (?:and|but|then|because|und|et|y) ")
_WORD = re.compile(r"[a-z0-9ß-ž](?:[a-z0-9ß-ž_.+#/'’-]*[a-z0-9ß-ž+#])?|[゠-ヿ]{2,}|[一-鿿]+")
_JOINING = frozenset(" ".join(wording("joining words")).split())
_TAIL = re.compile(
    r"(?:[,;]| [-–—]) *(?=(?:can|could|would|do|does|is|are|should)\b[^,;?]*\?$)", re.IGNORECASE
)
"""What is before a question behind a statement."""

_BEHIND_COLON = re.compile(r":[ \t]*\n[ \t]*\n")
"""The end of an opening line; a long text behind it is pasted."""

_PASTED = re.compile(
    r"(?<!\w)[\"“][^\"”\n]{60,}[\"”]|^.*(?:[❯$] |\bERR!|\b[A-Z]*(?:ERROR|FATAL)\b|Traceback).*$"
    r"|^(?:(?i:debug|error|fatal|hint|info|remote|warn(?:ing)?)\b[:\]]|\S+\.\w+:\d+"
    r"|[^\n]*(?:/tmp/|\b[0-9a-f]{8}-[0-9a-f]{4}-))[^\n]*(?:\n[^\n]*\S[^\n]*)*",
    re.MULTILINE,
)
"""Long quotations, and paragraphs that begin like the output of a program."""

_VAGUE = re.compile(rf"{_LEAD}(?:add|address|do|implement|let['’]?s|make|remove|skip)\b", re.IGNORECASE)
"""Without a word for a subject, such a sentence says only that work goes on."""

_NEAR_OR = wording_pattern("alternatives", "[^\\n]{0,40}", "[^\\n]{0,40}")
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
    said = [part for one in prose_sentences("\n".join(lines)) if one[-1] != ":" for part in _TAIL.split(one)]
    if len(said) > 1 and len(said[0].split()) <= 2 and not accepts(said[0]):
        said[:2] = [" ".join(said[:2])]
    own = next((one for one in said if not accepts(one)), "")
    if chosen := _chosen(own, prompt, before, told[-_ENDING:]):
        return [chosen]
    found = _decided(said, prompt, told)
    if not found and said and accepts(said[0]) and "?" not in prompt:
        found = said[: len(_accepted(told[-_ENDING:]))]
    reply = " ".join(one for one in said if not is_question(one))
    if found and told and 0 < len(reply) <= SENTENCE_CHARACTERS:
        found = [reply]
    whole = [_whole(one, told, asked) for one in found]
    return [one for one in whole if subject_words(one) or not (_VAGUE.match(one) or _AGREES.match(one))]


def _decided(said: Sequence[str], prompt: str, told: Sequence[str]) -> list[str]:
    """Return the sentences that decide."""
    around = _around(prompt, told)
    least = _ENOUGH - _weigh(around)
    return [one for one in said if not accepts(one) and _weight(one, said, around) > least]


def _around(prompt: str, told: Sequence[str]) -> dict[str, str]:
    """Return the texts that are the same for all sentences of a prompt, by place."""
    asked = next(filter(is_question, reversed(told[-_ASKED:])), "")
    offer = "\n".join(_accepted(told[-_ENDING:]))
    return {"prompt": prompt, "asked": asked, "offer": offer, "told": "\n".join(told[-_TOLD:])}


def _weight(said: str, others: Sequence[str], around: dict[str, str]) -> float:
    """Return how much speaks for a decision in a sentence: its signals, and the words that it takes up."""
    taken = zip(_TAKEN, _taken_up(said, around["told"]), strict=True)
    return _weigh(_texts(said, others, around)) + sum(weight * share for weight, share in taken)


def _texts(said: str, others: Sequence[str], around: dict[str, str]) -> dict[str, str]:
    """Return the texts in which the signals of a sentence are looked for, by place."""
    return {
        "opens": _opened(said),
        "clauses": "\n".join(map(_opened, _CLAUSE.split(said))),
        "says": said,
        "rest": "\n".join(one for one in others if one is not said),
        "reply": f"{around['asked']}\n{said}",
        "agreed": f"{around['offer']}\n{said}",
    }


def _weigh(texts: dict[str, str]) -> float:
    """Return the weight of the signals in some places."""
    return sum(one.weight for one in _SIGNALS if one.place in texts and one.pattern.search(texts[one.place]))


def _taken_up(said: str, told: str) -> tuple[float, ...]:
    """Return what a sentence takes up of an answer.

    That is a share of its first clause, the first word, a few words of all, an alternative, a number that
    stands for another one, and nothing.
    """
    part = _CLAUSE.split(_opened(said), maxsplit=1)[0]
    words, every = _stems(part), _stems(said)
    known = set(_stems(told))
    first = set(words[:1])
    numbers, given = set(_NUMBER.findall(part)), set(_NUMBER.findall(told))
    return (
        sum(one in known for one in words) / max(1, len(words)),
        not first.isdisjoint(known),
        min(1, sum(one in known for one in every) / _FEW_TAKEN),
        any(first & set(_stems(around)) for around in _NEAR_OR.findall(told)),
        bool(numbers and given and numbers.isdisjoint(given)) and len(part.split()) <= _VALUE_WORDS,
        known.isdisjoint(every),
    )


def _stems(text: str) -> list[str]:
    """Return the words of a text that tell something, without their endings."""
    return [one[:_STEM] for one in _WORD.findall(text.casefold()) if one not in _JOINING]


def _opened(said: str) -> str:
    """Return a clause without the words such as "ok, then" before it."""
    return _OPENING.sub("", said, count=1) or said


def _accepted(last: Sequence[str]) -> list[str]:
    """Return what the `last` sentences of an answer chose or proposed, as a statement."""
    found = [one for said in reversed(_proposals(last)) if (one := _HEDGE.sub("", said).strip())]
    stated = [one[:1].upper() + one[1:] for one in found]
    clear = [one for one in stated if not _PRONOUN.search(one[:20])]
    return (clear or [one for one in stated if not _PRONOUN.match(one)])[:1]


def _proposals(last: Sequence[str]) -> list[str]:
    """Return the sentences that choose or propose, and those that a short question at the end asks about."""
    found = []
    asked = last[-1] if last and is_question(last[-1]) and not _WORK.search(last[-1]) else ""
    ends_in_question = 0 < len(asked.split()) <= _SHORT_QUESTION
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
    if _BOTH.match(said) and "?" not in said:
        offer = "; ".join(options.values()) or _question(last, is_open=True)
        return one_line(f"{said.rstrip('.')}: {offer}", SENTENCE_CHARACTERS)
    option = ""
    if match := _LABEL.match(said):
        labels = [match[1], *re.findall(r"[1-9a-eA-E]\b", match["more"])]
        option = "; ".join(options[one.upper()] for one in labels if one.upper() in options)
    elif match := _ORDINAL.match(said):
        number = next(n for n, one in enumerate(match.groups()[:3]) if one)
        values = list(options.values()) or [one.strip() for one in _ITEM.findall(before)[-4:]]
        if not values and (number or match.start(1)):  # "first, fix it" names no option
            values = _EITHER.split(_question(last, is_open=True))
        option = values[number] if number < len(values) else ""
    if match is None or not option:
        return ""
    if said.endswith("?") and not _AND.match(match["rest"]):
        return ""
    adds_more = _MORE.search(match["rest"]) or len(match["rest"].split()) > 2 or len(prompt) > 2 * len(said)
    added = f" ({one_line(prompt, SENTENCE_CHARACTERS // 2)})" if adds_more else ""
    return one_line(option, SENTENCE_CHARACTERS - len(added)) + added


def _options(before: str) -> dict[str, str]:
    """Return the last list of numbered or lettered options of an answer, by label."""
    found: dict[str, str] = {}
    for label, text in _OPTION.findall(before):
        if label.upper() in ("1", "A"):
            found = {}
        found.setdefault(label.upper(), re.sub(r"\*\*|__", "", text).strip())
    return found if len(found) > 1 else {}


def _question(last: Sequence[str], *, is_open: bool = False) -> str:
    """Return the sentence at the end of an answer that asks for a choice or proposes one, or "".

    With `is_open`, prefer the sentence that names the alternatives.
    """
    asked = [one for one in last if is_question(one)]
    proposed = [one for one in last if _PROPOSED.search(one) or _CHOSE.search(one)]
    offered = [one for one in last if _ALTERNATIVES.search(one)]
    groups = (offered, asked, proposed) if is_open else (asked, proposed, offered)
    return next((group[-1] for group in groups if group), "")


def _whole(text: str, told: Sequence[str], asked: str) -> str:
    """Return a sentence; behind a short one or an agreement, also what it answers."""
    agrees = _AGREES.match(text)
    if not agrees and len(text.split()) > (_MANY_WORDS if _PRONOUN.search(text) else _FEW_WORDS):
        return text
    value = next(iter(_NUMBER.findall(text)), "")
    clauses = (one for part in told for one in re.split(r"[,;] ", part))
    about = (one for one in clauses if _NUMBER.findall(one)[:2] == [value])
    question = _question(told[-_ENDING:])
    offered = [*_accepted(told[-_ENDING:]), question] if agrees else []
    contexts = [asked, *offered, *about, question]
    if len(told) <= _ENDING and (agrees or not names_subject(text)):
        contexts += reversed(told)
    context = next(filter(subject_words, contexts), "")
    return one_line(f"{text} ({context})", SENTENCE_CHARACTERS) if context else text
