"""Find what a user decided: a choice among options that an answer offered, a rule, or an agreement.

A choice is resolved: after "Take 7443." or "the second one", the line says what that is. English first; the
usual words of German, French, Spanish, and Japanese.
"""

from __future__ import annotations

import re

from memkit.journal.sentences import PROMPT_LINES, SENTENCE_CHARACTERS, prose_sentences
from memkit.journal.titles import names_subject, subject_words
from memkit.text import one_line

ACCEPTED_CHARACTERS = 80
_CHOICE_CHARACTERS = 300
"""A longer prompt is more than a choice, so only its sentences count."""

_READ_CHARACTERS = 6000
_FEW_WORDS, _MANY_WORDS = 5, 11
"""A choice of so few words, or with a pronoun, needs the question that it answers."""

_DECISION = re.compile(
    r"""\b(?:
      let(?:['’]?s|\ us)\ (?:just\ |please\ )?(?:abandon|avoid|completely|drop|go\ (?:for|with)|increase
        |keep(?!\ \w+in[g'’])|leave|limit|lower|make|move\ to|not|raise|reduce|remove|rename|set|skip|stick
        |store|switch|use)\b
    | we\ (?:have\ |['’]ve\ )?(?:agreed|decided|settled)\b
    | (?:i|we)(?:['’]ll|\ will)\ (?:drop|go\ with|keep|not|stick|switch|use)\b
    | we['’]?(?:re|\ are)\ (?:changing|dropping|getting\ rid|going|keeping|moving|switching)\b
    | (?:for\ now|from\ now\ on)\ we\ \w+
    | we\ (?:deploy|keep|log|name|round|ship|store|use)\b[^.?!]*\b(?:always|everywhere)\b
    | i(?:['’]d|\ would)?\ (?:prefer|rather)\b | moving\ away\ from\b
    | i(?:['’]d|\ would)?\ (?:like|want)\ (?:it\ )?to\ (?:avoid|do|drop|keep|move|switch|use)\b
    | us(?:e|ing)\b[^.?!]{1,60}(?:(?:,|\ and|\ —|\ -)\ not\ |\ for\ (?:all|any|every|everything)\b)
    | (?:go|going|went)\ (?:for|with)\ (?!it\b|the\ flow|a\ (?:run|walk))\S
    | (?:choose|do|keep|make\ it|move|pick|put|switch|take|us(?:e|ing)|want)\b[^.?!]{1,80}
        \ (?:instead|rather\ than)\b
    | from\ now\ on\b | going\ forward\b | (?:stick|switch(?:\ back)?)\ (?:to|with)\b | no\ more\ \w+
    | (?:everything\ new|new\ code)\ goes\b | \w+\ it\ is$
    | wir\ (?:behalten|benutzen|bleiben|entscheiden|nehmen|nutzen|verwenden)\b | (?:lassen|nehmen)\ wir\b
    | bleib(?:t|en)\b[^.?!]{1,40}\ (?:bei|dabei|drin)\b | speichern\ wir\ immer
    | lass(?:t)?\ uns\b[^.?!]{1,80}\ (?:bleiben|nehmen|verwenden)\b
    | (?:benutze|nimm|verwende)\b[^.?!]{1,80}\ statt(?:dessen)?\b
    | haben\ (?:uns\ )?(?:beschlossen|entschieden)\b | ab\ (?:jetzt|sofort)\b
    | on\ (?:a\ décidé|garde|part\ sur|prend|reste\ sur|utilise)\b | plus\ jamais\b
    | (?:gardons|prenons|utilisons)\b | désormais\b
    | (?:mets|prends|utilise)\b[^.?!]{1,80}\ (?:au\ lieu\ de|plutôt\ que)\b
    | (?:a\ partir\ de\ ahora|decidimos|hemos\ decidido|(?:nos\ quedamos|quedémonos)\ con|usemos|vamos\ con)\b
    | (?:pon|usa|utiliza)\b[^.?!]{1,80}\ en\ (?:lugar|vez)\ de\b
    )
    | (?:これからは|今後は|必ず) | (?:に|で)(?:いきましょう|しましょう|します$)""",
    re.IGNORECASE | re.VERBOSE,
)
_RULE = re.compile(
    r"""(?:(?:and|but|no|please|so),?\ +)*
    (?:(?:do\ not|don['’]t)\ (?:add|call|commit|edit|fall|log|mock|push|put|touch|use|write)\b
    |(?:always|never)\ \w+\ |for\ \w+,?\ (?:the\ )?\w[^.?!]{3,60}\bshould\ be\b
    |[\w-]+s\ must\ (?:always\ |never\ |not\ )?(?!be\ an?\b)(?:be|come|go|have|live|run|use)\b)""",
    re.IGNORECASE | re.VERBOSE,
)
_NOT_DECIDED = re.compile(
    r"""^(?:\w+,\ )?(?:are|consider|did|do\ (?:i|we|you)|does|how|is|let\ me|operation|those|what|when|where|which|who|why
        |pourquoi|warum|wieso)\b
    |\bi['’]ll\ (?:ask|check|decide|look|see|test|think|try)\b
    |\b(?:asked|could\ we|deciding|i\ don['’]t\ know|i\ guess|if\ (?:i|we|you)|let\ me\ think|maybe\ we
        |not\ sure|should\ (?:i|we)|tomorrow|was\ thinking|whether|wonder(?:ing)?|lundi|lunes|morgen|si\ on|wenn\ wir)\b
    |明日""",
    re.IGNORECASE | re.VERBOSE,
)
_REQUEST = re.compile(r"^(?:please|can|could|would|will)\b", re.IGNORECASE)
_ACCEPTED = re.compile(
    r"""^(?:(?:please\ )?do|agreed|approved|do\ (?:it|so|that)|exactly|fine|go\ ahead|go\ for\ it|good|great
      |makes\ sense|ok(?:ay)?|perfect|right|sounds\ good|sure|that\ sounds\ better|yeah|yep|yes|yup
      |einverstanden|genau|ja|mach\ das|passt(?:\ so)?|d['’]accord|oui|parfait|vas-y
      |de\ acuerdo|hazlo|perfecto|si|sí|vale|はい)\b
    (?:[\s,.!]+(?:do\ (?:it|so|that)|for\ now|go\ ahead|good|great|leave\ it\ (?:as\ it\ is|like\ that)|please
      |sounds\ good|thanks|that\ works|así\ se\ queda|bitte|danke|gracias|merci|por\ favor))*[\s.!]*$""",
    re.IGNORECASE | re.VERBOSE,
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
    r"^I(?:['’]d| would)? (?:suggest|recommend|propose|say|lean (?:to|towards?))(?: that we| we| to)?:? *",
    re.IGNORECASE,
)
_ASKED = re.compile(
    r"\b(?:or|which|prefer|preference|should|option|approach|one|oder|welche|soll|reichen|ou|quel|quelle|o|cuál)\b"
    r"|どちら|案",
    re.IGNORECASE,
)
_ALTERNATIVES = re.compile(r"\b(?:or|oder|ou|o|options?|ways|varianten?|pistes?)\b|案")
_WORK = re.compile(r"\b(?:review|work on|look at|start with|brainstorm|help)\b", re.IGNORECASE)
"""In a question that asks what to do next. The answer to it decides nothing."""

_NUMBER = re.compile(r"\d(?:[\d.,:]*\d)?")
_PRONOUN = re.compile(r"\b(?:it|this|that|them|one|es|das|ça|lo)\b", re.IGNORECASE)
_FOLLOWS = re.compile(r"(?:they|only|instead)\b", re.IGNORECASE)
_TAIL = re.compile(
    r"(?:[,;]| [-–—]) *(?:can|could|would|do|does|is|are|should|right|ok)\b[^,;?]*\?$", re.IGNORECASE
)
"""A question behind what a sentence states."""

_OPTION = re.compile(
    r"(?:^|(?<=[:;,.] ))[ \t>]*(?:[-*•] +)?(?:\*\*|__)?(?:option +)?"
    r"([1-9]|[A-E])(?:[.):]| [-–—])(?:\*\*|__)? *([^\n]+?)(?=[,;.]? (?:[2-9]|[B-E])\) |\n|$)",
    re.IGNORECASE | re.MULTILINE,
)
_ITEM = re.compile(r"^[ \t]*[-*•] +([^\n]+)$", re.MULTILINE)

_AGREES = re.compile(r"(?:agreed|ja|ok(?:ay)?|oui|sure|sí|yeah|yep|yes)[,:.]? +", re.IGNORECASE)
_LEAD = (
    r"(?:(?:['’]d|das|den|die|do|el|for|go|hmm|i|it|ja|la|las|le|let['’]?s|like|los|nah|nein|nimm|no|non|number"
    r"|ok(?:ay)?|option|oui|pick|prefer|sure|sí|take|the|think|to|use|variante|version|with|yeah|yep|yes)[\s,:]+)*"
)
_LABEL = re.compile(
    rf"{_LEAD}#?([1-9]|[A-E])(?:\)|\b(?![.:]\d| ?[%°]))(?P<rest>.*)", re.IGNORECASE | re.DOTALL
)
_ORDINAL = re.compile(
    rf"{_LEAD}(?:(first|1st|erste[nrs]?|premi(?:er|ère)|primer[ao]?|1番目)"
    r"|(second|2nd|zweite[nrs]?|seconde|deuxième|segund[ao]|2番目)"
    r"|(third|3rd|dritte[nrs]?|troisième|tercer[ao]?|3番目))"
    r"(?:で| (?=(?:one|option|approach|choice|way|variante)\b)|(?=[.,;:!]|$))(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_BOTH = re.compile(rf"{_LEAD}(?:both|beide[s]?|les deux|(?:las|los) dos|両方)\b", re.IGNORECASE)
_MORE = re.compile(
    r"\b(?:but|with|without|and|also|except|only|aber|mit|mais|avec|pero|con)\b|\d", re.IGNORECASE
)
_ANSWERED = re.compile(
    rf"""(?:(?:nah|no|non)[,:.]?\ +)?(?:add|go\ (?:for|with)|i\ (?:like|prefer|want|['’]?d)
      |i\ think\ (?:it|that|we)\ (?:is|should)|just|keep|leave|let['’]?s|make|manual|only|put|set|take|use
      |\w+\ (?:is\ (?:correct|enough|fine|right|the\ right)|it\ is)|nimm|on\ part|quedémonos)\b
    |{_LEAD.replace(" ", r"[ ]")}(?:an?\ |do\ not|don['’]t|never\ mind|not?\ (?:more|need)|remove|stay
      |behalt|on\ garde|\w+\ bleibt)\b
    |(?:nah|nein|no|non|nope)[,.:]?\ (?:an?|i|it|the|use|we)\ |.*のままで""",
    re.IGNORECASE | re.VERBOSE,
)
_LOOK = re.compile(
    r"(?:[\w'’]+[, ]+){0,4}(?:again|brainstorm|check|commit|continue|debug|explain|fix|investigate|list|look"
    r"|run|see|show|try|work|schau|weiter|zeig)\b",
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
    said = [_HEDGE.sub("", one) for one in offered[-1:]]
    return [one[:1].upper() + one[1:] for one in said]


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
    if _ANSWERED.match(said):
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
    if len(text.split()) > (_MANY_WORDS if _PRONOUN.search(text) else _FEW_WORDS):
        return text
    value = next(iter(_NUMBER.findall(text)), "")
    clauses = (one for part in prose_sentences(before) for one in re.split(r"[,;] ", part))
    about = (one for one in clauses if _NUMBER.findall(one)[:2] == [value])
    contexts = [asked, next(about, "") if value else "", _question(before)]
    context = next(filter(names_subject, contexts), "")
    return one_line(f"{text} ({context})", SENTENCE_CHARACTERS) if context else text
