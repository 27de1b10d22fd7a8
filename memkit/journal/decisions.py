"""Find what a user decided: a choice among options that an answer offered, a rule, or an agreement.

A choice is resolved: after "Take 7443." or "the second one", the line says what that is. English first; the
usual words of German, French, Spanish, and Japanese.
"""

from __future__ import annotations

import re

from memkit.journal.sentences import PROMPT_LINES, SENTENCE_CHARACTERS, prose_sentences
from memkit.journal.titles import subject_words
from memkit.text import one_line

ACCEPTED_CHARACTERS = 80
_CHOICE_CHARACTERS = 300
"""A longer prompt is more than a choice, so only its sentences count."""

_READ_CHARACTERS = 6000
_FEW_WORDS = 3
"""A choice with fewer words of a subject needs the question that it answers."""

_DECISION = re.compile(
    r"""\b(?:
      let(?:['’]?s|\ us)\ (?:just\ |please\ )?(?:use|go\ (?:with|for)|keep(?!\ \w+in[g'’])|stick|drop|switch|move\ to
        |not|skip|avoid|leave|remove|raise|lower|increase|reduce|limit|rename|set|store|make|abandon|completely)\b
    | we\ (?:have\ |['’]ve\ )?(?:decided|agreed|settled)\b
    | (?:we|i)(?:['’]ll|\ will)\ (?:use|keep|go\ with|stick|switch|drop|not)\b
    | we['’]?(?:re|\ are)\ (?:getting\ rid|dropping|changing|moving|switching|keeping|going)\b
    | (?:for\ now\ |from\ now\ on\ )we\ \w+ | we\ (?:use|store|keep|round|ship|deploy|log|name)\b[^.?!]*\b(?:everywhere|always)\b
    | i(?:['’]d|\ would)?\ (?:prefer|rather)\b
    | i(?:['’]d|\ would)?\ (?:want|like)\ (?:it\ )?to\ (?:use|switch|drop|keep|move|avoid|do)\b | moving\ away\ from\b
    | us(?:e|ing)\b[^.?!]{1,60}(?:(?:,|\ and|\ —|\ -)\ not\ |\ for\ (?:everything|all|every|any)\b)
    | (?:go|going|went)\ (?:with|for)\ (?!it\b|the\ flow|a\ (?:walk|run))\S
    | (?:use|using|do|take|put|keep|want|choose|pick|switch|move|make\ it)\b[^.?!]{1,80}
        \ (?:instead|rather\ than)\b
    | from\ now\ on\b | going\ forward\b | (?:stick|switch(?:\ back)?)\ (?:to|with)\b | no\ more\ \w+
    | (?:new\ code|everything\ new)\ goes\b | \w+\ it\ is$
    | (?:lassen|nehmen)\ wir\b | wir\ (?:nehmen|verwenden|benutzen|bleiben|behalten|entscheiden|nutzen)\b | bleib(?:t|en)\b[^.?!]{1,40}\ (?:drin|dabei|bei)\b
    | lass(?:t)?\ uns\b[^.?!]{1,80}\ (?:nehmen|verwenden|bleiben)\b | speichern\ wir\ immer
    | (?:nimm|verwende|benutze)\b[^.?!]{1,80}\ statt(?:dessen)?\b
    | haben\ (?:uns\ )?(?:entschieden|beschlossen)\b | ab\ (?:jetzt|sofort)\b
    | on\ (?:utilise|prend|garde|part\ sur|reste\ sur|a\ décidé)\b | plus\ jamais\b
    | (?:utilisons|prenons|gardons)\b | désormais\b
    | (?:utilise|prends|mets)\b[^.?!]{1,80}\ (?:plutôt\ que|au\ lieu\ de)\b
    | (?:usemos|vamos\ con|hemos\ decidido|decidimos|(?:nos\ quedamos|quedémonos)\ con|a\ partir\ de\ ahora)\b
    | (?:usa|pon|utiliza)\b[^.?!]{1,80}\ en\ (?:vez|lugar)\ de\b
    )
    | (?:今後は|これからは|必ず)|(?:に|で)(?:いきましょう|しましょう|します$)""",
    re.IGNORECASE | re.VERBOSE,
)
_RULE = re.compile(
    r"""(?:(?:please|and|so|but|no),?\ +)*(?:(?:do\ not|don['’]t)\ (?:fall|use|add|commit|push|write|touch|log|put|call|edit|mock)\b
    |(?:always|never)\ \w+ |[\w-]+s\ must\ (?:not\ |never\ |always\ )?(?!be\ an?\b)(?:have|use|go|be|run|come|live)\b
    |for\ \w+,?\ (?:the\ )?\w[^.?!]{3,60}\bshould\ be\b)""",
    re.IGNORECASE | re.VERBOSE,
)
_NOT_DECIDED = re.compile(
    r"^(?:\w+, )?(?:why|what|how|where|who|when|which|is|are|does|did|do (?:we|you|i)|let me|warum|wieso|pourquoi)\b"
    r"|\bi['’]ll (?:ask|check|look|see|think|try|decide|test)\b|\b(?:if (?:i|we|you)|should (?:i|we)|not sure|wonder(?:ing)?|whether|was thinking|deciding|i don['’]t know"
    r"|i guess|tomorrow|let me think|maybe we|could we|asked|morgen|lundi|lunes|wenn wir|si on)\b|明日",
    re.IGNORECASE,
)
_REQUEST = re.compile(r"^(?:please|can|could|would|will)\b", re.IGNORECASE)
_ACCEPTED = re.compile(
    r"^(?:yes|yep|yeah|yup|ok(?:ay)?|sure|agreed|approved|go ahead|go for it|do (?:it|that|so)|sounds good|makes sense"
    r"|that sounds better|(?:please )?do|perfect|great|good|fine|right|exactly|ja|genau|passt(?: so)?|einverstanden"
    r"|mach das|oui|d['’]accord|vas-y|sí|si|vale|perfecto|parfait|de acuerdo|hazlo|はい)\b(?:[\s,.!]+(?:please|thanks|go ahead|good|great"
    r"|do (?:it|that|so)|sounds good|leave it (?:like that|as it is)|así se queda|for now|that works|bitte|danke|merci|gracias"
    r"|por favor))*[\s.!]*$",
    re.IGNORECASE,
)
_CHOSE = re.compile(
    r"\bI(?:['’]ve| have)? (?:chose|chosen|went with|picked|opted|decided|kept)\b"
    r"|\bich habe mich für\b.*\bentschieden\b|\bj['’]ai (?:choisi|opté)\b|\bhe (?:elegido|optado)\b",
    re.IGNORECASE,
)
_PROPOSED = re.compile(
    r"\b(?:I(?:['’]d| would)? (?:suggest|recommend|propose|lean|go with|keep|leave|take|say|rename|use)"
    r"|my (?:suggestion|proposal|recommendation|instinct)|ich schlage|ich würde|je propose|propongo)\b",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"^I(?:['’]d| would)? (?:suggest|recommend|propose|say|lean (?:to|towards?))(?: that we| we| to)?:? *", re.IGNORECASE
)
_WORK = re.compile(r"\b(?:review|work on|look at|start with|brainstorm|help)\b", re.IGNORECASE)
"""In a question that asks what to do next. The answer to it decides nothing."""

_AGREES = re.compile(r"(?:ok(?:ay)?|yes|yeah|yep|sure|agreed|ja|oui|sí)[,:.]? +", re.IGNORECASE)
_NUMBER = re.compile(r"\d(?:[\d.,:]*\d)?")
_PRONOUN = re.compile(r"\b(?:it|this|that|them|one|es|das|ça|lo)\b", re.IGNORECASE)
_FOLLOWS = re.compile(r"(?:they|it|that|this|only|and|so|but)\b", re.IGNORECASE)
_TAIL = re.compile(r"(?:[,;]| [-–—]) *(?:can|could|would|do|does|is|are|should|right|ok)\b[^,;?]*\?$", re.IGNORECASE)
_ASKED = re.compile(
    r"\b(?:or|which|prefer|preference|should|option|approach|one|oder|welche|soll|reichen|ou|quel|quelle|o|cuál)\b"
    r"|どちら|案",
    re.IGNORECASE,
)
_OPTION = re.compile(
    r"(?:^|(?<=[:;,.] ))[ \t>]*(?:[-*•] +)?(?:\*\*|__)?(?:option +)?([1-9]|[A-Ea-e])(?:[.):]| [-–—])(?:\*\*|__)? *"
    r"([^\n]+?)(?=[,;.]? (?:[2-9]|[B-Eb-e])\) |\n|$)",
    re.IGNORECASE | re.MULTILINE,
)
_ITEM = re.compile(r"^[ \t]*[-*•] +([^\n]+)$", re.MULTILINE)
_LEAD = (
    r"(?:(?:ok(?:ay)?|yes|yeah|yep|sure|no|nah|hmm|ja|nein|oui|non|sí|let['’]?s|do|go|with|for|take|use|pick|i|think|like"
    r"|prefer|the|it|to|nimm|die|das|den|la|le|el|los|las|option|number|variante|version|['’]d)[\s,:]+)*"
)
_LABEL = re.compile(rf"{_LEAD}#?([1-9]|[A-Ea-e])(?:\)|\b(?![.:]\d| ?[%°]))(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_ORDINALS = (
    "first|1st|erste[nrs]?|premi(?:er|ère)|primer[ao]?|1番目",
    "second|2nd|zweite[nrs]?|second[e]?|deuxième|segund[ao]|2番目",
    "third|3rd|dritte[nrs]?|troisième|tercer[ao]?|3番目",
)
_ORDINAL = re.compile(rf"{_LEAD}(?:({')|('.join(_ORDINALS)}))(?:で|\b)(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_BOTH = re.compile(rf"{_LEAD}(?:both|beide[s]?|les deux|(?:las|los) dos|両方)\b", re.IGNORECASE)
_REFUSED = re.compile(
    rf"{_LEAD}(?:keep|leave|stay|do not|don['’]t|never mind|not? (?:need|more)|remove|just|behalt|on garde|\w+ bleibt)\b"
    r"|(?:no|nah|nope|nein|non)[,.:]? (?:an?|the|it|use|we|i) |.*のままで",
    re.IGNORECASE,
)
_LOOK = re.compile(
    r"(?:[\w'’]+[, ]+){0,4}(?:show|look|check|investigate|work|see|explain|list|brainstorm|debug|zeig|schau|run|try"
    r"|continue|fix|commit|again|weiter)\b",
    re.IGNORECASE,
)
_MORE = re.compile(r"\b(?:but|with|without|and|also|except|only|aber|mit|mais|avec|pero|con)\b|\d", re.IGNORECASE)
_ALTERNATIVES = re.compile(r"\b(?:or|oder|ou|o|options?|ways|varianten?|pistes?)\b|案")
_PICKED = re.compile(
    r"(?:(?:ok(?:ay)?|yes|yeah|yep|sure|no|nah|agreed|ja|oui|non|sí)[,:.]? +)?(?:take|go with|go for|use|put|add|keep|leave"
    r"|make|set|let['’]?s|i (?:like|prefer|want|['’]?d)|i think (?:we|it|that) (?:should|is)|nimm|on part|quedémonos|\w+ (?:it is|is (?:fine|enough|right|correct"
    r"|the right))|manual|only|just)\b",
    re.IGNORECASE,
)


def accepts(prompt: str) -> bool:
    """Return whether a prompt only agrees."""
    return len(prompt) <= ACCEPTED_CHARACTERS and _ACCEPTED.match(prompt.strip()) is not None


def decisions(prompt: str, before: str = "", asked: str = "") -> list[str]:
    """Return what a prompt decides. `before` is the answer before it, `asked` the title of that turn."""
    before = before[-_READ_CHARACTERS:]
    if accepts(prompt):
        return _accepted(before)
    said = prose_sentences("\n".join(prompt.split("\n")[:PROMPT_LINES]))
    said = [_TAIL.sub("", one) for one in said]
    own = next((one for one in said if not accepts(one)), "")
    chosen = _chosen(own, prompt, before)
    if chosen:
        return [chosen]
    found = [number for number, one in enumerate(said) if decides(one)]
    if not found and own and len(prompt) <= _CHOICE_CHARACTERS and _answers(own, before):
        found = [said.index(own)]
    return [_whole(said[number : number + 2], before, asked) for number in found]


def decides(sentence: str) -> bool:
    """Return whether a sentence states a decision by itself."""
    is_question = sentence.endswith(("?", "？")) and not _REQUEST.match(sentence)
    if is_question or _NOT_DECIDED.search(sentence):
        return False
    return (_DECISION.search(sentence) or _RULE.match(sentence)) is not None


def _accepted(before: str) -> list[str]:
    said = prose_sentences(before)
    offered = [one for one in said if _CHOSE.search(one)] or [
        one for one in said[-4:] if _PROPOSED.search(one) and not one.endswith("?")
    ]
    return [_HEDGE.sub("", one) for one in offered[-1:]]


def _chosen(said: str, prompt: str, before: str) -> str:
    """Return the option that a sentence picks by its number, letter, or place, with what the prompt adds."""
    if not before or said.endswith("?"):
        return ""
    options = _options(before)
    if _BOTH.match(said):
        offer = "; ".join(options.values()) or _question(before, is_open=True)
        return one_line(f"{said.rstrip('.')}: {offer}", SENTENCE_CHARACTERS)
    if match := _LABEL.match(said):
        option = options.get(match[1].upper(), "")
    elif match := _ORDINAL.match(said):
        number = next(n for n, one in enumerate(match.groups()[:3]) if one)
        values = list(options.values()) or [one.strip() for one in _ITEM.findall(before)[-4:]]
        option = values[number] if number < len(values) else ""
    if not match or not option:
        return ""
    more = _MORE.search(match["rest"]) or len(prompt) > 2 * len(said)
    said = f" ({one_line(prompt, SENTENCE_CHARACTERS // 2)})" if more else ""
    return one_line(option, SENTENCE_CHARACTERS - len(said)) + said


def _options(before: str) -> dict[str, str]:
    """Return the last list of numbered or lettered options of an answer, by label."""
    found: dict[str, str] = {}
    for label, text in _OPTION.findall(before):
        if label.upper() in ("1", "A"):
            found = {}
        found[label.upper()] = re.sub(r"\*\*|__", "", text).strip()
    return found if len(found) > 1 else {}


def _answers(said: str, before: str) -> bool:
    """Return whether a sentence answers what `before` asked or proposed."""
    said = _AGREES.sub("", said)
    question = _question(before) or (before if _NUMBER.search(said) else "")
    if not question or _WORK.search(question):
        return False
    if said.endswith("?") or _LOOK.match(said) or _NOT_DECIDED.search(said):
        return False
    if _PICKED.match(said) or _REFUSED.match(said):
        return True
    opening = re.split(r"[,;:.] | [-–—] ", said)[0]
    words = [*subject_words(opening), *_NUMBER.findall(opening)]
    offered = f"{question} {_question(before, is_open=True)}".casefold()
    return 0 < len(opening.split()) <= 5 and any(word in offered for word in words)


def _question(before: str, *, is_open: bool = False) -> str:
    """Return the sentence at the end of an answer that asks for a choice or proposes one, or ""; with
    `is_open`, rather the one that names the alternatives.
    """
    said = prose_sentences(before)[-6:]
    asked = [one for one in said if one.endswith(("?", "？")) and _ASKED.search(one)]
    proposed = [one for one in said if _PROPOSED.search(one) or _CHOSE.search(one)]
    offered = [one for one in said if _ALTERNATIVES.search(one)]
    groups = (offered, asked, proposed) if is_open else (asked, proposed, offered)
    return next((group[-1] for group in groups if group), "")


def _whole(said: list[str], before: str, asked: str) -> str:
    """Return a sentence with what it needs to be understood: the next one, or the question it answers."""
    text = said[0]
    if len(said) > 1 and _FOLLOWS.match(said[1]) and len(text) + len(said[1]) < SENTENCE_CHARACTERS:
        return " ".join(said)
    if len(subject_words(text)) >= _FEW_WORDS and not (_PRONOUN.search(text) and len(text.split()) < 12):
        return text
    value = next(iter(_NUMBER.findall(text)), "")
    clauses = (one for part in prose_sentences(before) for one in re.split(r"[,;] ", part))
    about = (one for one in clauses if _NUMBER.findall(one)[:2] == [value])
    context = asked or (next(about, "") if value else "") or _question(before)
    return one_line(f"{text} ({context})", SENTENCE_CHARACTERS) if context else text
